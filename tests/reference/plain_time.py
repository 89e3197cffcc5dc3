"""All partitions of tiny data into boxes over origin, destination and hours of a day, by plain sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from plain_boxes import plain_halves, sums

from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones

Tiles = frozenset[int]
Hours = tuple[int, int]
Points = frozenset[tuple[int, int]]
DAY: Hours = (0, 24)


def parts_of_hours(hours: Hours) -> list[Hours]:
    """Half days, then four hours, two, and one."""
    low, high = hours
    length = {24: 12, 12: 4, 4: 2, 2: 1}.get(high - low)
    return [] if length is None else [(x, x + length) for x in range(low, high, length)]


def parts_in_tree(tree: Hierarchy) -> Callable[[Tiles], Iterable[Iterable[Tiles]]]:
    """The one split of each node of a tree."""
    nodes = {frozenset(tree.node_tiles(n).tolist()): n for n in range(len(tree))}

    def parts(tiles: Tiles) -> Iterable[Iterable[Tiles]]:
        children = tree.children(nodes[tiles]).tolist()
        return [[frozenset(tree.node_tiles(c).tolist()) for c in children]] if children else []

    return parts


def parts_in_rectangles(zones: Zones) -> Callable[[Tiles], Iterable[Iterable[Tiles]]]:
    """The halvings of each rectangle."""
    halves = plain_halves(zones)
    return lambda tiles: halves[tiles]


class PlainTime:
    """Boxes are two sets of tiles and a range of hours; of all partitions those that no other beats in both are written out."""

    def __init__(
        self,
        trips: Trips,
        k: int,
        sides: list[Any],
        *,
        weight: Fraction = Fraction(0),
        cells: bool = False,
        tiles: int = 1,
    ) -> None:
        assert trips.t is not None
        person = trips.person if trips.person is not None else np.arange(len(trips))
        columns = (trips.origin, trips.destination, trips.t // 3600, person)
        self.rows = list(zip(*(c.tolist() for c in columns), strict=True))
        self.k, self.sides, self.weight, self.cells, self.tiles = k, sides, weight, cells, tiles
        self.everything = frozenset(range(len(trips.zones)))
        self.partitions = cache(self._partitions)

    def inside(self, a: Tiles, b: Tiles, hours: Hours) -> list[tuple[int, int, int, int]]:
        return [(o, d, t, who) for o, d, t, who in self.rows if o in a and d in b and hours[0] <= t < hours[1]]

    def cost(self, a: Tiles, b: Tiles, hours: Hours) -> int:
        inside = self.inside(a, b, hours)
        if not self.cells:
            # In units that make the weight of an hour whole, as exact fractions.
            length = len(a) + len(b) + self.weight * (hours[1] - hours[0] - 1)
            return int(length * self.weight.denominator * len(inside))
        counts = [
            sum(1 for o, d, t, _ in inside if (o, d, t) == (i, j, h)) for i in a for j in b for h in range(*hours)
        ]
        error = sum(abs(Fraction(v) - Fraction(len(inside), len(counts))) for v in counts)
        return int(1000 * error + Fraction(1, 2))

    def publishable(self, a: Tiles, b: Tiles, hours: Hours) -> bool:
        people = {who for *_, who in self.inside(a, b, hours)}
        return len(people) >= self.k and min(len(a), len(b)) >= self.tiles

    def _partitions(self, a: Tiles, b: Tiles, hours: Hours) -> Points:
        """(cost, suppressed volume) of every partition of a box that is worth it."""
        if not self.publishable(a, b, hours):
            return frozenset({(0, len(self.inside(a, b, hours)))})
        found = {(self.cost(a, b, hours), 0)}
        for parts in self.sides[0](a):
            found |= sums([self.partitions(part, b, hours) for part in parts])
        for parts in self.sides[1](b):
            found |= sums([self.partitions(a, part, hours) for part in parts])
        if parts_of_hours(hours):
            found |= sums([self.partitions(a, b, part) for part in parts_of_hours(hours)])
        return frozenset(p for p in found if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in found))

    def all(self, longest: int = 24) -> Points:
        """All partitions of the day into intervals of at most `longest` hours; those of fewer than k people do not count."""
        tops = [DAY]
        while tops[0][1] - tops[0][0] > longest:
            tops = [part for top in tops for part in parts_of_hours(top)]
        kept = [top for top in tops if self.publishable(self.everything, self.everything, top)]
        return sums([self.partitions(self.everything, self.everything, top) for top in kept]) if kept else frozenset()

    def volume(self, longest: int = 24) -> int:
        """The trips that the budget is a share of."""
        tops = [DAY]
        while tops[0][1] - tops[0][0] > longest:
            tops = [part for top in tops for part in parts_of_hours(top)]
        return sum(
            len(self.inside(self.everything, self.everything, top))
            for top in tops
            if self.publishable(self.everything, self.everything, top)
        )
