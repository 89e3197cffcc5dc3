"""List group sizes in use: values of k, each with its source.

A value of k alone makes nothing anonymous and is no legal judgment; it is a first choice.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """A group size in use.

    Attributes
    ----------
    name
        The organization that uses it.
    k
        The smallest group size.
    source
        Its source, in a sentence.
    """

    name: str
    k: int
    source: str


PRESETS = (
    Preset(
        "CNIL", 10,
        "The French data-protection authority accepts groups of 10 for origin-destination matrices (paper on ATG).",
    ),
    Preset(
        "INSEE", 11,
        "The French statistical office publishes no incomes of fewer than 11 households, as in its data on squares.",
    ),
    Preset(
        "MDS", 10,
        "The Mobility Data Specification publishes no count below 10 in its Metrics and in its reports of trips.",
    ),
    Preset(
        "ACRO", 10,
        "The checker of research outputs requires 10 in each cell, unless an organization sets another threshold.",
    ),
)  # fmt: skip
