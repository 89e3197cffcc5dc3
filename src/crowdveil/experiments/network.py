"""Define road networks: nodes on a plane and the roads between them; read from files, or synthetic.

Roads lead both ways. If the network is not connected, its largest connected part is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from crowdveil.errors import InputError, rows_that
from crowdveil.model.arrays import Floats, Ints, Mask, freeze_columns, frozen, require
from crowdveil.synth.city import generators, require_between

MAX_SIDE = 3000
"""Streets of a synthetic network in either direction."""
OFF = 0.25
"""Largest shift of a synthetic crossing, in distances between streets."""
MISSING = 0.15
"""Share of missing roads in a synthetic network."""


@dataclass(frozen=True, eq=False)
class RoadNetwork:
    """A connected network. Lengths are in the unit of the coordinates.

    Attributes
    ----------
    x, y
        Position of each node.
    begin, end, length
        The nodes at either end of each road, and its length; at least 0, and no shorter than the straight line except for
        rounding, so that movers keep to their speed limits.
    left_out
        Number of nodes left out because they are not connected.
    """

    x: Floats
    y: Floats
    begin: Ints
    end: Ints
    length: Floats
    left_out: int = 0

    def __post_init__(self) -> None:
        freeze_columns(self)
        require(
            len(self.begin) > 0 and len(self.x) > 1, "network: expected at least two nodes and a road between them."
        )

    @classmethod
    def largest_part(cls, x: Floats, y: Floats, begin: Ints, end: Ints, length: Floats) -> RoadNetwork:
        """Return the largest connected part of a network; the first of equally large ones."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        roads = coo_array((np.ones(len(begin)), (begin, end)), shape=(len(x), len(x)))
        parts, part = connected_components(roads, directed=False)
        kept: Mask = part == np.bincount(part, minlength=1).argmax() if parts else np.zeros(0, np.bool_)
        number = np.cumsum(kept) - 1
        inside = kept[begin] & (begin != end)
        return cls(
            x[kept], y[kept], number[begin[inside]], number[end[inside]], length[inside], int((~kept).sum())
        )  # fmt: skip

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return len(self.x)

    @property
    def extent(self) -> tuple[float, float]:
        """Return width and height."""
        return float(np.ptp(self.x)), float(np.ptp(self.y))

    @property
    def middle(self) -> tuple[float, float]:
        """Return the middle of the rectangle around all nodes."""
        return (float(self.x.min() + self.x.max()) / 2, float(self.y.min() + self.y.max()) / 2)

    @cached_property
    def leaving(self) -> tuple[Ints, Ints, Floats]:
        """Return `first`, `to` and `length` for the kernels: each road once in either direction, by the node that it leaves."""
        origin = np.concatenate([self.begin, self.end])
        order = np.argsort(origin, kind="stable")
        first = np.searchsorted(origin[order], np.arange(self.nodes + 1))
        to = np.concatenate([self.end, self.begin])[order]
        return frozen(first, np.int64), frozen(to, np.int64), frozen(np.tile(self.length, 2)[order], np.float64)


def read_network(vertices: str | Path, edges: str | Path) -> RoadNetwork:
    """Read a network from two files of text, with spaces, tabs, commas or semicolons between values, with or without a header.

    Parameters
    ----------
    vertices
        A line for each node: its id and its two coordinates on a plane.
    edges
        A line for each road: its id, the ids of the nodes at its ends and its length. Without lengths, roads are straight.
    """
    nodes = _rows(Path(vertices), (3,), "an id and two coordinates")
    roads = _rows(Path(edges), (3, 4), "an id, two ids of nodes and a length")
    ids: dict[str, int] = {}
    repeated = [i + 1 for i, row in enumerate(nodes) if ids.setdefault(row[0], i) != i]
    if repeated:
        which = rows_that(repeated, len(repeated), "repeat an id")
        raise InputError(vertices, f"{which}. Give each node a different id.")
    x, y = (_numbers(Path(vertices), nodes, column) for column in (1, 2))
    unknown = [i + 1 for i, row in enumerate(roads) if row[1] not in ids or row[2] not in ids]
    if unknown:
        which = rows_that(unknown, len(unknown), f"name a node that is not in {vertices}")
        raise InputError(edges, f"{which}. Add the nodes, or leave the roads out.")
    begin, end = (np.array([ids[row[column]] for row in roads], np.int64) for column in (1, 2))
    if len(roads[0]) == 3:
        length = np.hypot(x[begin] - x[end], y[begin] - y[end])
    else:
        length = _numbers(Path(edges), roads, 3)
        negative = np.flatnonzero(length < 0) + 1
        if len(negative):
            raise InputError(edges, f"{rows_that(negative, len(negative), 'have a length below 0')}. Fix them.")
    return RoadNetwork.largest_part(x, y, begin, end, length)


def street_grid(seed: int, side: int = 60, street: float = 170.0) -> RoadNetwork:
    """Make a synthetic town: crossings of streets in two directions, each shifted a little, some roads missing.

    Parameters
    ----------
    seed
        The same seed gives the same town.
    side
        Streets in either direction.
    street
        Distance between parallel streets.
    """
    require_between("side", side, 2, MAX_SIDE)
    require_between("street", street, 1e-3, 1e6)
    (rng,) = generators(seed, 3, 1)
    number = np.arange(side * side).reshape(side, side)
    row, column = np.divmod(number.ravel(), side)
    x, y = ((line + rng.uniform(-OFF, OFF, side * side)) * street for line in (column, row))
    begin = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    end = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    built = rng.random(len(begin)) >= MISSING
    built[0] = True  # a town of two streets has at least one road
    begin, end = begin[built], end[built]
    return RoadNetwork.largest_part(x, y, begin, end, np.hypot(x[begin] - x[end], y[begin] - y[end]))


def _rows(path: Path, wanted: tuple[int, ...], what: str) -> list[list[str]]:
    """Return the values of each line, without a header and empty lines."""
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(path, "the text is not UTF-8. Save the file in that encoding.") from None
    except OSError:
        raise InputError(path, "the file does not exist or cannot be read. Give the path of a network file.") from None
    for mark in (",", ";"):
        text = text.replace(mark, " ")
    rows = [row for line in text.splitlines() if (row := line.split())]
    if rows and not _is_number(rows[0][-1]):
        rows = rows[1:]
    if not rows:
        raise InputError(path, f"the file has no rows. Expected {what} in each line.")
    values = len(rows[0]) if len(rows[0]) in wanted else wanted[-1]
    bad = [i + 1 for i, row in enumerate(rows) if len(row) != values]
    if bad:
        which = rows_that(bad, len(bad), "have more or fewer values")
        raise InputError(path, f"Expected {what} in each line, but {which}. Fix them.")
    return rows


def _numbers(path: Path, rows: list[list[str]], column: int) -> Floats:
    try:
        values = np.array([row[column] for row in rows], np.float64)
    except ValueError:
        values = np.array([float(row[column]) if _is_number(row[column]) else np.nan for row in rows])
    bad = np.flatnonzero(~np.isfinite(values)) + 1
    if len(bad):
        raise InputError(path, f"{rows_that(bad, len(bad), 'have no number')} in column {column + 1}. Fix them.")
    return values


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
