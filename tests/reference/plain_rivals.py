"""The rivals as the papers have them, in plain Python over tuples and dicts: what the fast ones are held against."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from heapq import heappop, heappush, nsmallest
from pathlib import Path
from typing import Any, NamedTuple

from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.release import FlowRelease
from crowdveil.model.zones import Zones


class Row(NamedTuple):
    """A flow of a time step: its crowd, and who that is where people are known."""

    origin: int
    destination: int
    volume: int
    crowd: int
    people: frozenset[int] | None
    step: int = 0


def rows_of(flows: Flows, step: int) -> list[Row]:
    """The flows of a time step."""
    made = []
    for i in range(int(flows.offsets[step]), int(flows.offsets[step + 1])):
        people = None
        if flows.person_ids is not None and flows.person_offsets is not None:
            people = frozenset(flows.person_ids[flows.person_offsets[i] : flows.person_offsets[i + 1]].tolist())
        made.append(
            Row(
                int(flows.origin[i]),
                int(flows.destination[i]),
                int(flows.volume[i]),
                int(flows.people[i]),
                people,
                step,
            )
        )
    return made


def crowd(rows: list[Row]) -> int:
    """Different people of some flows; trips where people are not known."""
    if any(row.people is None for row in rows):
        return sum(row.crowd for row in rows)
    return len(frozenset().union(*(row.people or () for row in rows)))


def volume(rows: list[Row]) -> int:
    """Trips of some flows."""
    return sum(row.volume for row in rows)


def boxes(release: FlowRelease, step: int) -> list[tuple[frozenset[int], frozenset[int], int, int]]:
    """The rows of a release: tiles of origin and destination, trips, crowd."""
    tiles, offsets = release.areas.tiles, release.areas.offsets
    area = [frozenset(tiles[offsets[a] : offsets[a + 1]].tolist()) for a in range(len(release.areas))]
    listed = range(int(release.offsets[step]), int(release.offsets[step + 1]))
    return [
        (area[release.origin[i]], area[release.destination[i]], int(release.volume[i]), int(release.people[i]))
        for i in listed
    ]


def by_tiles(listed: list[tuple[frozenset[int], frozenset[int], int, int]]) -> list[Any]:
    """Boxes in an order of their own, to compare lists of them."""
    return sorted((sorted(o), sorted(d), v, people) for o, d, v, people in listed)


@cache
def taxi_zones(realdata: Path) -> Zones:
    """The taxi zones of New York; read once in a process, since they take half a second."""
    from crowdveil import read_zones

    zones: Zones = read_zones(realdata / "nyc_taxi" / "taxi_zones.geojson", zone_id="OBJECTID")
    return zones


@cache
def taxis(realdata: Path, tree: str | None = None) -> Flows:
    """The yellow taxi sample, one matrix for each hour of the day; read once in a process."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from crowdveil import read_flows

    table = pq.read_table(realdata / "nyc_taxi" / "yellow_sample_2018_2020.parquet")
    hour = pc.multiply(pc.hour(table["pickup_datetime"]).cast(pa.int64()), 3600)
    trips = {"origin": table["pickup_location_id"], "destination": table["dropoff_location_id"], "time": hour}
    zones = taxi_zones(realdata)
    flows: Flows = read_flows(pa.table(trips), zones=zones, step="1h", hierarchy=tree, drop_invalid=True)
    return flows


# Uniform levels (OIGH)


def stepwise_levels(tree: Hierarchy) -> Iterator[frozenset[int]]:
    """Levels as appendix B of the paper has them: going up joins only what makes the smallest parents there are."""
    parent, size = tree.parent.tolist(), tree.size.tolist()
    level = frozenset(tree.leaf_node.tolist())
    yield level
    while len(level) > 1:
        above = {parent[node] for node in level}
        smallest = min(size[node] for node in above)
        made = {node for node in above if size[node] == smallest}
        level = frozenset(node for node in level if parent[node] not in made) | made
        yield level


def plain_levels(
    rows: list[Row], origins: Hierarchy, destinations: Hierarchy, k: int, budget: int
) -> tuple[float, list[tuple[frozenset[int], frozenset[int], int, int]]]:
    """All pairs of levels tried: the least mean size, and the published boxes of the first pair that has it."""
    best: tuple[float, list[Any]] = (float("inf"), [])
    o_maps, d_maps = ([_areas_at(tree, level) for level in stepwise_levels(tree)] for tree in (origins, destinations))
    for of_origin in o_maps:
        for of_destination in d_maps:
            error, published, lost = _pair(rows, of_origin, of_destination, k)
            if lost <= budget and published and error < best[0]:
                best = (error, published)
    return best


def _areas_at(tree: Hierarchy, level: frozenset[int]) -> dict[int, frozenset[int]]:
    areas = [frozenset(tree.node_tiles(node).tolist()) for node in level]
    return {tile: area for area in areas for tile in area}


def _pair(
    rows: list[Row], of_origin: dict[int, frozenset[int]], of_destination: dict[int, frozenset[int]], k: int
) -> tuple[float, list[tuple[frozenset[int], frozenset[int], int, int]], int]:
    cells: dict[tuple[frozenset[int], frozenset[int]], list[Row]] = {}
    for row in rows:
        cells.setdefault((of_origin[row.origin], of_destination[row.destination]), []).append(row)
    published = [(o, d, volume(held), crowd(held)) for (o, d), held in cells.items() if crowd(held) >= k]
    total = sum(v for _, _, v, _ in published)
    cost = sum((len(o) + len(d)) * v for o, d, v, _ in published)
    return cost / max(total, 1), published, volume(rows) - total


# Median cuts (Mondrian)

Point = tuple[float, float, float, float]


def points_of(flows: Flows, rows: list[Row]) -> list[Point]:
    """Centroids of origin and destination, in meters."""
    x, y = (values.tolist() for values in flows.zones.xy)
    return [(x[row.origin], y[row.origin], x[row.destination], y[row.destination]) for row in rows]


def plain_cuts(rows: list[Row], points: list[Point], k: int) -> list[list[Row]]:
    """Clusters by median cuts."""

    def cut(inside: list[int]) -> list[list[int]]:
        values = [[points[i][d] for i in inside] for d in range(4)]
        widths = [max(v) - min(v) for v in values]
        d = widths.index(max(widths))
        trips = sorted((points[i][d], rows[i].volume) for i in inside)
        all_trips, so_far, at = volume([rows[i] for i in inside]), 0, -1
        while 2 * so_far < all_trips:
            at += 1
            so_far += trips[at][1]
        median = trips[at][0]
        for left in ([i for i in inside if points[i][d] <= median], [i for i in inside if points[i][d] < median]):
            chosen = set(left)
            right = [i for i in inside if i not in chosen]
            if min(crowd([rows[i] for i in left]), crowd([rows[i] for i in right])) >= k:
                return cut(left) + cut(right)
        return [inside]

    return [[rows[i] for i in held] for held in cut(list(range(len(rows))))]


def plain_box(flows: Flows, held: list[Row]) -> tuple[frozenset[int], frozenset[int], int, int]:
    """A cluster as a row of a release: tiles with centroids in the rectangles around its ends, trips, crowd."""
    x, y = (values.tolist() for values in flows.zones.xy)

    def around(tiles: set[int]) -> frozenset[int]:
        xs, ys = [x[t] for t in tiles], [y[t] for t in tiles]
        inside = (t for t in range(len(x)) if min(xs) <= x[t] <= max(xs) and min(ys) <= y[t] <= max(ys))
        return frozenset(inside)

    origins, destinations = {row.origin for row in held}, {row.destination for row in held}
    return around(origins), around(destinations), volume(held), crowd(held)


# Greedy merging (Glove)


class Cluster(NamedTuple):
    """Some flows with the box around them."""

    rows: tuple[Row, ...]
    low: Point
    high: Point


def merged(a: Cluster, b: Cluster) -> Cluster:
    """Both clusters as one."""
    low, high = (tuple(map(f, p, q)) for f, p, q in ((min, a.low, b.low), (max, a.high, b.high)))
    return Cluster(a.rows + b.rows, low, high)  # type: ignore[arg-type]


def merging_cost(a: Cluster, b: Cluster, by_volume: bool) -> float:
    """The extent of the common box, or how much the boxes grow, averaged over trips."""

    def extent(c: Cluster) -> float:
        total = 0.0
        for low, high in zip(c.low, c.high, strict=True):
            total += high - low
        return total

    common = extent(merged(a, b))
    if not by_volume:
        return common
    v, w = volume(list(a.rows)), volume(list(b.rows))
    return (v * (common - extent(a)) + w * (common - extent(b))) / (v + w)


def brute_merging(
    rows: list[Row], points: list[Point], k: int, budget: int, *, join_any: bool, by_volume: bool
) -> list[list[Row]]:
    """Exact greedy merging: all pairs are looked at each time."""
    clusters = {i: Cluster((row,), p, p) for i, (row, p) in enumerate(zip(rows, points, strict=True))}
    number = len(rows)

    def small(i: int) -> bool:
        return crowd(list(clusters[i].rows)) < k

    while sum(volume(list(clusters[i].rows)) for i in clusters if small(i)) > budget:
        pairs = [(i, j) for i in clusters for j in clusters if i < j]
        fitting = [p for p in pairs if (any if join_any else all)(small(i) for i in p)]
        # The last one below k may join any.
        fitting = fitting or [p for p in pairs if any(small(i) for i in p)]
        _, i, j = min((merging_cost(clusters[i], clusters[j], by_volume), i, j) for i, j in fitting)
        clusters[number] = merged(clusters.pop(i), clusters.pop(j))
        number += 1
    return [list(clusters[i].rows) for i in clusters if not small(i)]


def plain_nearest(rows: list[Row], points: list[Point], k: int, most: int) -> list[set[int]]:
    """The nearest of each flow below k among these, and those that it is one of the nearest of."""
    small = [i for i, row in enumerate(rows) if row.crowd < k]
    near: list[set[int]] = [set() for _ in rows]
    for i in small:
        a, b, c, d = points[i]
        far = [
            (abs(x - a) + abs(y - b) + abs(z - c) + abs(w - d), j)
            for j, (x, y, z, w) in ((j, points[j]) for j in small)
            if j != i
        ]
        for _, j in nsmallest(most, far):
            near[i].add(j)
            near[j].add(i)
    return near


class PlainGlove:
    """Greedy merging over a graph of neighbors, with a heap: what one would write in Python.

    Every cluster below k has its best pair in the heap, as of when it was last looked for; if a part of it is gone when it
    comes up, the cluster searches again.
    """

    def __init__(
        self, rows: list[Row], points: list[Point], near: list[set[int]], more_near: int, k: int, budget: int, *,
        join_any: bool, by_volume: bool,
    ) -> None:  # fmt: skip
        self.clusters = {i: Cluster((row,), p, p) for i, (row, p) in enumerate(zip(rows, points, strict=True))}
        self.small = {i: row.crowd < k for i, row in enumerate(rows)}
        self.near = {i: set(others) for i, others in enumerate(near)}
        self.more_near, self.k, self.budget = more_near, k, budget
        self.join_any, self.by_volume = join_any, by_volume
        self.heap: list[tuple[float, int, int, int]] = []
        self.number = len(rows)

    def solve(self) -> list[list[Row]]:
        """The clusters that reach k."""
        waste = sum(volume(list(c.rows)) for i, c in self.clusters.items() if self.small[i])
        if waste > self.budget:
            for i in list(self.clusters):
                self.look(i)
        while waste > self.budget:
            if self.heap:
                _, a, b, owner = heappop(self.heap)
                if a not in self.clusters or b not in self.clusters:
                    if owner in self.clusters:
                        self.look(owner)
                    continue
            else:
                a = next(i for i in self.clusters if self.small[i])
                b = min((self.cost(a, i), i) for i in self.clusters if i != a)[1]
            both = [volume(list(self.clusters[i].rows)) for i in (a, b)]
            waste -= sum(v for v, i in zip(both, (a, b), strict=True) if self.small[i])
            new = self.merge(a, b)
            waste += sum(both) if self.small[new] else 0
            if waste > self.budget:
                self.look(new)
        return [list(c.rows) for i, c in self.clusters.items() if not self.small[i]]

    def cost(self, a: int, b: int) -> float:
        """What it costs to merge two."""
        return merging_cost(self.clusters[a], self.clusters[b], self.by_volume)

    def fits(self, a: int, b: int) -> bool:
        """Whether two may be merged."""
        return self.small[a] or self.small[b] if self.join_any else self.small[a] and self.small[b]

    def merge(self, a: int, b: int) -> int:
        """Merge two, and return the new one's number."""
        new, self.number = self.number, self.number + 1
        self.clusters[new] = merged(self.clusters.pop(a), self.clusters.pop(b))
        both = self.small[a] and self.small[b]
        self.small[new] = both and crowd(list(self.clusters[new].rows)) < self.k
        self.near[new] = (self.near.pop(a) | self.near.pop(b)) - {a, b}
        for other in self.near[new]:
            self.near[other] = (self.near[other] - {a, b}) | {new}
        return new

    def look(self, mine: int) -> None:
        """Put the best pair of a cluster into the heap."""
        if not self.small[mine] and not self.join_any:
            return
        fitting = [i for i in self.near[mine] if self.fits(mine, i)]
        if not fitting and self.small[mine]:
            fitting = [i for i in self.clusters if i != mine and self.fits(mine, i)]
            costs = sorted(self.cost(mine, i) for i in fitting)
            fitting = [i for i in fitting if self.cost(mine, i) <= costs[: self.more_near][-1]]
            self.near[mine] |= set(fitting)
            for i in fitting:
                self.near[i].add(mine)
        if fitting:
            best = min((self.cost(mine, i), min(mine, i), max(mine, i)) for i in fitting)
            heappush(self.heap, (*best, mine))


# Noise


def plain_noise(pair: list[int], volumes: list[int], cells: int, epsilon: float, rng: Any) -> list[int]:
    """A full matrix with the difference of two geometric numbers in every cell, cut off at 0."""
    known = dict(zip(pair, volumes, strict=True))
    chance = 1 - math.exp(-epsilon)
    noise = rng.geometric(chance, cells) - rng.geometric(chance, cells)
    return [max(0, known.get(cell, 0) + int(noise[cell])) for cell in range(cells)]


# Complete linkage (Glove-sk)


def plain_linkage(points: list[list[float]]) -> Iterator[frozenset[int]]:
    """The clusters that complete linkage makes: the two whose farthest points are nearest, again and again."""
    clusters = [frozenset([i]) for i in range(len(points))]

    def farthest(a: frozenset[int], b: frozenset[int]) -> float:
        return max(sum(abs(x - y) for x, y in zip(points[i], points[j], strict=True)) for i in a for j in b)

    while len(clusters) > 1:
        pairs = [(a, b) for i, a in enumerate(clusters) for b in clusters[:i]]
        a, b = min(pairs, key=lambda pair: farthest(*pair))
        clusters = [c for c in clusters if c not in (a, b)] + [a | b]
        yield a | b


def plain_cut(rows: list[Row], merges: list[list[int]], k: int, budget: int) -> list[list[Row]]:
    """The clusters with a crowd after the fewest merges that leave at most `budget` trips in others."""
    clusters = {i: [row] for i, row in enumerate(rows)}
    for i, (a, b) in enumerate(merges):
        if sum(volume(held) for held in clusters.values() if crowd(held) < k) <= budget:
            break
        clusters[len(rows) + i] = clusters.pop(a) + clusters.pop(b)
    return [held for held in clusters.values() if crowd(held) >= k]
