"""Small problems of generalization, and all their partitions written out by plain sets."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
from hypothesis import strategies as st

from crowdveil.io.flows import trips_to_flows
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones
from crowdveil.testing import hierarchies

TILES = 4


@st.composite
def problems(draw: st.DrawFn, tiles: int = TILES) -> tuple[Flows, Trips]:
    """Trips of a few people between a few tiles, with two trees over them; one time step."""
    trees = draw(st.tuples(*[hierarchies(tiles, min_tiles=tiles)] * 2))
    rows = draw(st.lists(st.tuples(*(st.integers(0, n - 1) for n in (tiles, tiles, 9))), min_size=1, max_size=40))
    zones = Zones.from_ids([f"z{i}" for i in range(tiles)])
    o, d, who = (np.array(c) for c in zip(*rows, strict=True))
    trips = Trips(zones, o, d, person=who if draw(st.booleans()) else None)
    flows = trips_to_flows(trips, members=True)
    return with_trees(flows, *trees), trips


def with_trees(flows: Flows, origins: Hierarchy, destinations: Hierarchy) -> Flows:
    return replace(flows, origin_tree=origins, destination_tree=destinations)


class Plain:
    """The recurrence by plain sets: a box is two nodes, its crowd a set of people, its partitions are all written out."""

    def __init__(self, flows: Flows, trips: Trips, k: int) -> None:
        self.origins, self.destinations, self.k = flows.origin_tree, flows.destination_tree, k
        person = trips.person if trips.person is not None else np.arange(len(trips))
        self.rows = list(zip(trips.origin.tolist(), trips.destination.tolist(), person.tolist(), strict=True))
        self.partitions = cache(self._partitions)

    def inside(self, a: int, b: int) -> list[int]:
        """Who made the trips of a box, once for each trip."""
        froms, tos = set(self.origins.node_tiles(a).tolist()), set(self.destinations.node_tiles(b).tolist())
        return [who for o, d, who in self.rows if o in froms and d in tos]

    def publishable(self, a: int, b: int) -> bool:
        return len(set(self.inside(a, b))) >= self.k

    def tightest(self, a: int, b: int) -> tuple[int, int]:
        """The smallest nodes inside a box that hold all its trips."""
        trips = len(self.inside(a, b))
        below = [(c, b) for c in self.origins.children(a).tolist()]
        below += [(a, c) for c in self.destinations.children(b).tolist()]
        smaller = [box for box in below if len(self.inside(*box)) == trips]
        return self.tightest(*smaller[0]) if smaller else (a, b)

    def cost(self, a: int, b: int) -> int:
        size = len(self.origins.node_tiles(a)) + len(self.destinations.node_tiles(b))
        return size * len(self.inside(a, b))

    def whole(self, a: int, b: int) -> set[tuple[int, int]]:
        """(cost, suppressed volume) of a box that is not split, if it need not be."""
        return {(self.cost(a, b), 0)}

    def _partitions(self, a: int, b: int) -> frozenset[tuple[int, int]]:
        """(cost, suppressed volume) of every partition of a box that may be published."""
        found = self.whole(a, b)
        for children, box in (
            (self.origins.children(a).tolist(), lambda c: (c, b)),
            (self.destinations.children(b).tolist(), lambda c: (a, c)),
        ):
            if children:
                sums = {(0, 0)}
                for c in children:
                    options = (
                        self.partitions(*box(c)) if self.publishable(*box(c)) else {(0, len(self.inside(*box(c))))}
                    )
                    sums = {(x + a2, y + s2) for x, y in sums for a2, s2 in options}
                found |= sums
        return frozenset(found)

    def all(self) -> frozenset[tuple[int, int]]:
        root = self.origins.root, self.destinations.root
        return self.partitions(*root) if self.publishable(*root) else frozenset()


class PlainExtent(Plain):
    """Boxes whose areas must have so many tiles (of those that count), and may have so many."""

    def __init__(self, flows: Flows, trips: Trips, k: int, least: int, most: int, counting: set[int]) -> None:
        super().__init__(flows, trips, k)
        self.least, self.most, self.counting = least, most, counting

    def _sides(self, a: int, b: int) -> tuple[set[int], set[int]]:
        return set(self.origins.node_tiles(a).tolist()), set(self.destinations.node_tiles(b).tolist())

    def publishable(self, a: int, b: int) -> bool:
        large = all(len(side & self.counting) >= self.least for side in self._sides(a, b))
        return large and super().publishable(a, b)

    def whole(self, a: int, b: int) -> set[tuple[int, int]]:
        if all(len(side) <= self.most for side in self._sides(a, b)):
            return super().whole(a, b)
        can_be_split = len(self.origins.children(a)) + len(self.destinations.children(b)) > 0
        return set() if can_be_split else {(0, len(self.inside(a, b)))}


class PlainDeviation(Plain):
    """Boxes that cost what spreading their volume evenly gets wrong, in thousandths of a trip."""

    def cost(self, a: int, b: int) -> int:
        froms, tos = self.origins.node_tiles(a).tolist(), self.destinations.node_tiles(b).tolist()
        cells = [sum(1 for o, d, _ in self.rows if (o, d) == (i, j)) for i in froms for j in tos]
        exact = sum(abs(Fraction(v) - Fraction(sum(cells), len(cells))) for v in cells)
        return int(1000 * exact + Fraction(1, 2))


def on_hull(point: tuple[int, int], everything: frozenset[tuple[int, int]]) -> bool:
    """Whether some price makes the point best, the least suppression among equals."""
    a, s = point
    low, high = 0.0, float("inf")
    for a2, s2 in everything:
        if s2 > s:
            low = max(low, (a - a2) / (s2 - s))
        elif s2 < s:
            high = min(high, (a2 - a) / (s - s2))
        elif a2 < a:
            return False
    return low < high


def sums(parts: list[frozenset[tuple[int, int]]]) -> frozenset[tuple[int, int]]:
    """All sums of one pair of each part."""
    found = {(0, 0)}
    for part in parts:
        found = {(a + x, s + y) for a, s in found for x, y in part}
    return frozenset(found)


class PlainOriginsFirst(Plain):
    """Partitions in which each origin has one partition of destinations."""

    def destinations_of(self, a: int, b: int) -> frozenset[tuple[int, int]]:
        """(cost, suppressed volume) of every partition of the destinations below b for the origin a."""
        inside = self.inside(a, b)
        if len(set(inside)) < self.k:
            return frozenset({(0, len(inside))})
        size = len(self.origins.node_tiles(a)) + len(self.destinations.node_tiles(b))
        below = [self.destinations_of(a, c) for c in self.destinations.children(b).tolist()]
        return frozenset({(size * len(inside), 0)}) | (sums(below) if below else frozenset())

    def pruned(self, a: int) -> frozenset[tuple[int, int]]:
        """The same for every way to part the origins below a."""
        whole = self.destinations_of(a, self.destinations.root)
        if len(set(self.inside(a, self.destinations.root))) < self.k:
            return whole
        below = [self.pruned(c) for c in self.origins.children(a).tolist()]
        return whole | (sums(below) if below else frozenset())


def best_pruning(plain: PlainOriginsFirst, target: float, a: int) -> tuple[float, list[int]]:
    """Least sum of penalties below an origin node, and the nodes that are left, by the paper's recursion."""
    penalty = (target - len(plain.inside(a, plain.destinations.root))) ** 2
    below = [best_pruning(plain, target, c) for c in plain.origins.children(a).tolist()]
    if below and sum(b[0] for b in below) < penalty:
        return sum(b[0] for b in below), [n for b in below for n in b[1]]
    return penalty, [a]


def pruning(plain: PlainOriginsFirst, target: float) -> list[int]:
    """The origins that are left."""
    return best_pruning(plain, target, plain.origins.root)[1]


def plain_halves(zones: Zones) -> dict[frozenset[int], set[frozenset[frozenset[int]]]]:
    """Every dyadic rectangle in rank space as a set of tiles, with its halvings: all intervals are tried, plainly."""
    east, north = (np.round(c, 3).tolist() for c in zones.xy)
    n = len(zones)
    ranks = [
        {tile: i for i, tile in enumerate(sorted(range(n), key=key))}
        for key in (lambda t: (east[t], north[t], t), lambda t: (north[t], east[t], t))
    ]

    def intervals(low: int, high: int) -> list[tuple[int, int]]:
        middle = (low + high) // 2
        below = intervals(low, middle) + intervals(middle, high) if high - low > 1 else []
        return [(low, high), *below]

    def held(x: tuple[int, int], y: tuple[int, int]) -> frozenset[int]:
        return frozenset(t for t in range(n) if x[0] <= ranks[0][t] < x[1] and y[0] <= ranks[1][t] < y[1])

    found: dict[frozenset[int], set[frozenset[frozenset[int]]]] = {}
    for x in intervals(0, n):
        for y in intervals(0, n):
            here = held(x, y)
            if not here:
                continue
            ways = found.setdefault(here, set())
            middles = ((x[0] + x[1]) // 2, (y[0] + y[1]) // 2)
            for parts in (
                (held((x[0], middles[0]), y), held((middles[0], x[1]), y)),
                (held(x, (y[0], middles[1])), held(x, (middles[1], y[1]))),
            ):
                if all(parts):
                    ways.add(frozenset(parts))
    return found


class PlainRectangles:
    """All partitions of the map into boxes of dyadic rectangles, by plain sets."""

    def __init__(self, zones: Zones, trips: Trips, k: int) -> None:
        self.halves, self.k = plain_halves(zones), k
        person = trips.person if trips.person is not None else np.arange(len(trips))
        self.rows = list(zip(trips.origin.tolist(), trips.destination.tolist(), person.tolist(), strict=True))
        self.everything = frozenset(range(len(zones)))
        self.partitions = cache(self._partitions)

    def inside(self, a: frozenset[int], b: frozenset[int]) -> list[int]:
        return [who for o, d, who in self.rows if o in a and d in b]

    def _partitions(self, a: frozenset[int], b: frozenset[int]) -> frozenset[tuple[int, int]]:
        """(cost, suppressed volume) of every partition; the best ones only, since all would be too many."""
        inside = self.inside(a, b)
        if len(set(inside)) < self.k:
            return frozenset({(0, len(inside))})
        found = {((len(a) + len(b)) * len(inside), 0)}
        for parts in self.halves[a]:
            found |= sums([self.partitions(part, b) for part in parts])
        for parts in self.halves[b]:
            found |= sums([self.partitions(a, part) for part in parts])
        return frozenset(p for p in found if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in found))
