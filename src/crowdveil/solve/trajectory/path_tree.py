"""Paths in a tree of boxes: how many of them are in a circle during an interval, for many circles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import shapely

from crowdveil import engine
from crowdveil.kernels.trajectory.path_legs import always, sometime
from crowdveil.kernels.trajectory.spatiotemporal import SURE, SURE_M
from crowdveil.model.arrays import Floats, Ints, require, row_slices, take_slices
from crowdveil.solve.trajectory.distances import Paths

BLOCK = 16
"""Queries of one task."""
PIECE = 8
"""Largest number of consecutive legs in one box."""


@dataclass(frozen=True, eq=False)
class RangeQueries:
    """Closed circles on the plane of the paths, and closed intervals of their seconds."""

    x: Floats
    y: Floats
    radius: Floats
    begin: Floats
    end: Floats

    def __len__(self) -> int:
        return len(self.x)

    def part(self, here: slice | Ints) -> tuple[Floats, ...]:
        """Return the columns of some queries."""
        return tuple(column[here] for column in (self.x, self.y, self.radius, self.begin, self.end))


@dataclass(frozen=True, eq=False)
class PathTree:
    """Legs of paths, and a tree over boxes around a few legs in a row.

    Attributes
    ----------
    paths
        The paths.
    legs
        x, y and t of the point that each leg leaves, and of the one that it leads to, which is the same for a path of one point.
    path
        The path of each leg, rising.
    pieces
        Where the legs of each box begin and end.
    """

    paths: Paths
    legs: Floats
    path: Ints
    pieces: Ints

    @classmethod
    def of(cls, paths: Paths) -> PathTree:
        """Cut paths into legs and pieces."""
        require(
            bool(np.isfinite(paths.x).all() and np.isfinite(paths.y).all()),
            "trajectories: positions on opposite sides of the globe cannot be compared in meters. Take a part of them.",
        )
        points = np.diff(paths.offsets)
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(points - (points > 1))])
        path = row_slices(bounds)
        place = np.arange(len(path)) - bounds[path]
        leaves = paths.offsets[path] + place
        leads_to = np.minimum(leaves + 1, paths.offsets[path + 1] - 1)
        places = np.column_stack([paths.x, paths.y, paths.t])
        legs = np.concatenate([places[leaves], places[leads_to]], axis=1)
        return cls(paths, legs, path, np.append(np.flatnonzero(place % PIECE == 0), len(path)))

    @cached_property
    def boxes(self) -> shapely.STRtree:
        """Return the tree over the boxes around the pieces."""
        first, last = self.legs[:, :2], self.legs[:, 3:5]
        least = np.minimum.reduceat(np.minimum(first, last), self.pieces[:-1])
        greatest = np.maximum.reduceat(np.maximum(first, last), self.pieces[:-1])
        return shapely.STRtree(shapely.box(*least.T, *greatest.T))

    def counts(self, queries: RangeQueries) -> tuple[Ints, Ints]:
        """Count the paths that are inside at some time of each interval, and at every time of it; on all threads.

        A path is nowhere before its first time and after its last: it is not always inside if the interval has such times.
        """
        blocks = -(-len(queries) // BLOCK) if len(self.path) else 0
        found = engine.current().map(
            lambda block: self._counts(queries.part(slice(block * BLOCK, (block + 1) * BLOCK))), blocks
        )
        none = np.zeros(0 if blocks else len(queries), np.int64)
        some, every = (np.concatenate([none, *(counts[i] for counts in found)]) for i in (0, 1))
        return some, every

    def _counts(self, asked: tuple[Floats, ...]) -> tuple[Ints, Ints]:
        x, y, radius, begin, end = asked
        wide = radius * SURE + SURE_M
        which, piece = self.boxes.query(shapely.box(x - wide, y - wide, x + wide, y + wide))
        first, last = self.legs[self.pieces[piece], 2], self.legs[self.pieces[piece + 1] - 1, 5]
        meets = (first <= end[which]) & (last >= begin[which])
        which, piece = which[meets], piece[meets]
        rows, ends = take_slices(self.pieces, piece)
        which = np.repeat(which, np.diff(ends))
        met = sometime(self.legs, rows, which, *asked)
        rows, which = rows[met], which[met]
        some, _ = self._pairs(rows, which)
        met = sometime(self.legs, rows, which, x, y, radius, begin, begin)
        at_begin, paths = self._pairs(rows[met], which[met])
        every = at_begin[always(self.paths.points, paths, at_begin, *asked)]
        return np.bincount(some, minlength=len(x)), np.bincount(every, minlength=len(x))

    def _pairs(self, legs: Ints, which: Ints) -> tuple[Ints, Ints]:
        """Return the distinct pairs of a query and the path of a leg."""
        pairs = np.unique(which * len(self.paths) + self.path[legs])
        return pairs // len(self.paths), pairs % len(self.paths)
