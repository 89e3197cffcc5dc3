"""What reports are put together from: parts of a page, and what stands beside a release in a private one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from crowdveil.model.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class PrivateContext:
    """What stays in the house, for a private report.

    Attributes
    ----------
    original
        `Flows` or `Trajectories` that the release was made from.
    cost
        Exact lines of what it cost.
    measures
        Rows of label, mean and pooled value.
    displaced_m
        How far the points of published trajectories are from those that they come from, in meters.
    lost
        The share of each original tile's trips that are in no row.
    """

    original: Any
    cost: list[str] = field(default_factory=list)
    measures: list[tuple[str, str, str]] = field(default_factory=list)
    displaced_m: Floats | None = None
    lost: Floats | None = None


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture that is always there, with what it shows in words, and the colors of its classes."""

    title: str
    svg: str
    text: str
    legend: list[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Table:
    """A table with its heading; columns of numbers are to the right."""

    title: str
    head: list[str]
    rows: list[list[str]]
    numbers: list[bool]


@dataclass(frozen=True, eq=False)
class Parts:
    """What a page is put together from.

    Attributes
    ----------
    kind
        flows or trajectories.
    data
        What the script draws; without layers there is no map.
    figures, tables, tiles
        Pictures, tables, and the first few numbers with their names.
    left_out
        What the page does not show.
    equal
        How many published trajectories are like each one.
    """

    kind: str
    data: dict[str, Any]
    figures: list[Figure]
    tables: list[Table]
    tiles: list[tuple[str, str]]
    left_out: list[str]
    equal: Ints | None = None
