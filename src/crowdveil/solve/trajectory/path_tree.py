"""Paths in a tree of boxes over space and time: how many of them are in a circle during an interval, for many circles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdveil import engine
from crowdveil.model.arrays import Floats, Indices, Ints, require, row_slices
from crowdveil.solve.trajectory.distances import Paths

BLOCK = 2048
"""Questions that one thread takes at a time."""
_BITS = 21
"""Of each coordinate in the number by which legs are put in order."""
_HALVES = (
    (32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F), (4, 0x10C30C30C30C30C3), (2, 0x1249249249249249),
)  # fmt: skip
"""Shifts that move the upper half of each group of bits away from the lower one, and the bits that are then in place."""
_COARSER = 3
"""Bits that time has fewer: leaves are small places for a long time, since most questions are of that kind."""


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
        """Return the columns of some legs."""
        return tuple(column[here] for column in (self.x, self.y, self.radius, self.begin, self.end))


@dataclass(frozen=True, eq=False)
class PathTree:
    """Legs of paths in an order in which near ones are together, in boxes, and boxes around every eight boxes, up to a few.

    Attributes
    ----------
    paths
        Whose legs these are.
    legs
        x, y and t of the point that each leg leaves, and of the one that it leads to, which is the same for a path of one point.
    path
        The path of each leg.
    """

    paths: Paths
    legs: Floats
    path: Indices

    @classmethod
    def of(cls, paths: Paths) -> PathTree:
        """Put the legs of paths in order."""
        require(
            bool(np.isfinite(paths.x).all() and np.isfinite(paths.y).all()),
            "trajectories: positions on opposite sides of the globe cannot be compared in meters; take a part of them.",
        )
        points = np.diff(paths.offsets)
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(points - (points > 1))])
        path = row_slices(bounds)
        leaves = paths.offsets[path] + np.arange(len(path)) - bounds[path]
        leads_to = np.minimum(leaves + 1, paths.offsets[path + 1] - 1)
        places = np.column_stack([paths.x, paths.y, paths.t])
        both = np.concatenate([places[leaves], places[leads_to]], axis=1)
        order = np.argsort(_curve((both[:, :3] + both[:, 3:]) / 2), kind="stable")
        return cls(paths, both[order], path[order].astype(np.int32))

    @cached_property
    def boxes(self) -> tuple[Floats, Ints]:
        """Return the boxes of all levels, leaves first, and where each level begins."""
        from crowdveil.kernels.trajectory.path_tree import FAN, leaf_boxes, parent_boxes

        levels = [leaf_boxes(self.legs)]
        while len(levels[-1]) > FAN:
            levels.append(parent_boxes(levels[-1]))
        return np.concatenate(levels), np.cumsum([0, *map(len, levels)])

    def counts(self, queries: RangeQueries) -> tuple[Ints, Ints]:
        """Count the paths that are inside at some time of each interval, and at every time of it; on all threads.

        A path is nowhere before its first time and after its last: it is not always inside if the interval has such times.
        """
        from crowdveil.kernels.trajectory.path_tree import counts_always, counts_sometime

        boxes, paths = self.boxes, len(self.paths)
        # Near questions one after the other look at legs that the last one has just looked at.
        order = np.argsort(_curve(np.column_stack([queries.x, queries.y, queries.begin])), kind="stable")

        def task(block: int) -> tuple[Ints, Ints]:
            asked = queries.part(order[block * BLOCK : (block + 1) * BLOCK])
            some = counts_sometime(self.legs, self.path, paths, *boxes, *asked)
            return some, counts_always(self.legs, self.path, *self.paths.points, *boxes, *asked)

        found = engine.current().map(task, -(-len(queries) // BLOCK))
        some, always = np.zeros(len(queries), np.int64), np.zeros(len(queries), np.int64)
        some[order] = np.concatenate([some[:0], *(counts for counts, _ in found)])
        always[order] = np.concatenate([always[:0], *(counts for _, counts in found)])
        return some, always


def _curve(points: Floats) -> Ints:
    """Return numbers that are near for most points that are near: interleaved bits of the three coordinates."""
    number = np.zeros(len(points), np.int64)
    for place, column in enumerate(points.T):
        wide = float(np.ptp(column)) if len(column) else 0.0
        cell = ((column - column.min(initial=np.inf)) / (wide or 1.0) * (2**_BITS - 1)).astype(np.int64)
        if place == 2:
            cell >>= _COARSER
        number |= _spread(cell) << place
    return number


def _spread(cells: Ints) -> Ints:
    """Return numbers of 21 bits with two zeros after each bit: halves of them are moved apart, then halves of those."""
    for shift, kept in _HALVES:
        cells = (cells | (cells << shift)) & kept
    return cells
