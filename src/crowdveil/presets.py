"""Crowds that somebody asks for: sizes of k in use, each with where it comes from.

A number alone makes nothing anonymous and is no legal judgment; it is where people begin who do not know which k to take.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """A size of the crowd that is in use.

    Attributes
    ----------
    name
        Who asks for it.
    k
        The smallest crowd.
    source
        Where it comes from, in a sentence.
    """

    name: str
    k: int
    source: str


PRESETS = (
    Preset(
        "CNIL", 10,
        "The French data-protection authority accepts crowds of 10 for origin-destination matrices, as the paper on ATG tells.",
    ),
    Preset(
        "INSEE", 11,
        "The French statistical office tells no incomes of fewer than 11 households, as in its data on squares.",
    ),
    Preset(
        "MDS", 10,
        "The Mobility Data Specification gives no count below 10 in its Metrics and in its reports of trips.",
    ),
    Preset(
        "ACRO", 10,
        "The checker of research outputs takes 10 as the least count of a cell, unless an organization says otherwise.",
    ),
)  # fmt: skip
