"""Boxes of a matrix: pairs of nodes of two trees that hold a crowd, and the best partition of the map into them.

What the methods that generalise on trees share. They differ in which splits they allow.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crowdveil.errors import InputError
from crowdveil.model.arrays import Ints, Mask, frozen, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.regions import DyadicRegions
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, Areas, FlowRelease
from crowdveil.model.trees import ward
from crowdveil.progress import Progress

Small = npt.NDArray[np.int8]
Published = tuple[Ints, Ints, Ints, Ints]
"""Origin node, destination node, volume and crowd of the published boxes of a time step."""
Objective = Literal["generalisation", "area"]

WHOLE, BY_DESTINATION, BY_ORIGIN = 1, 2, 4
"""What a box may do; sums of these are allowed ways."""
TARGETS = 12
_HECTARE_M2 = 10_000
_NOTHING: Published = (np.zeros(0, np.int64),) * 4


@dataclass(frozen=True)
class Trees:
    """The trees of origins and of destinations, and what each of their nodes costs a trip."""

    origins: Hierarchy
    destinations: Hierarchy
    origin_cost: Ints
    destination_cost: Ints

    @classmethod
    def of(cls, data: Flows, objective: Objective = "generalisation") -> Trees:
        """The trees that the data comes with, or the Ward tree of its zones."""
        origins = data.origin_tree or data.destination_tree or ward(data.zones)
        destinations = data.destination_tree or origins
        tile_cost = _tile_cost(data, objective)
        return cls(origins, destinations, *(tree.subtree_sums(tile_cost) for tree in (origins, destinations)))

    def build(self, data: Flows, step: int, k: int) -> tuple[Ints, ...]:
        """The boxes of a time step, as the kernel gives them."""
        from crowdveil.kernels.tree_boxes import build_boxes

        rows = _rows(data, self.origins, self.destinations, step)
        of_origins = _arrays(self.origins, "child_offsets", "child_nodes", "first_leaf")
        of_destinations = _arrays(
            self.destinations, "parent", "first_leaf", "last_leaf", "leaf_node", "child_offsets", "child_nodes"
        )
        return build_boxes(*rows, *of_origins, *of_destinations, k)  # type: ignore[call-arg, arg-type]


@dataclass(frozen=True)
class Rectangles:
    """Dyadic rectangles for both origins and destinations, and what each costs a trip."""

    regions: DyadicRegions
    cost: Ints

    @classmethod
    def of(cls, data: Flows, objective: Objective = "generalisation") -> Rectangles:
        """The dyadic rectangles over the zones of the data."""
        regions = DyadicRegions.of(data.zones)
        return cls(regions, regions.sums(_tile_cost(data, objective)))

    @property
    def origins(self) -> DyadicRegions:
        """The regions of origins."""
        return self.regions

    @property
    def destinations(self) -> DyadicRegions:
        """The regions of destinations."""
        return self.regions

    @property
    def origin_cost(self) -> Ints:
        """What a region costs a trip as its origin."""
        return self.cost

    @property
    def destination_cost(self) -> Ints:
        """What a region costs a trip as its destination."""
        return self.cost

    def build(self, data: Flows, step: int, k: int) -> tuple[Ints, ...]:
        """The boxes of a time step, as the kernel gives them."""
        from crowdveil.kernels.dyadic import build_dyadic_boxes

        here = slice(data.offsets[step], data.offsets[step + 1])
        origin = data.origin[here]
        offsets = np.searchsorted(origin, np.arange(len(data.zones) + 1))
        columns = (offsets, data.destination[here], data.volume[here], data.people[here], *_pairs(data, step))
        rows = [frozen(column, np.int64) for column in columns]
        regions = _arrays(self.regions, "tile_offsets", "tiles", "way_offsets", "first", "second")
        return build_dyadic_boxes(*rows, *regions, k)  # type: ignore[call-arg, arg-type]


def _tile_cost(data: Flows, objective: Objective) -> Ints:
    """What a tile costs a trip: 1, or its area in hectares."""
    if objective == "generalisation":
        return np.ones(len(data.zones), np.int64)
    area = data.zones.area_m2
    if np.isnan(area).any():
        raise InputError("objective: area needs zones with outlines; give polygons with --zones, or a grid.")
    return np.rint(area / _HECTARE_M2).astype(np.int64)


def _pairs(data: Flows, step: int) -> tuple[Ints, Ints, Ints]:
    """Who went from where to where in a time step, by person; empty where people are not known."""
    low, high = data.offsets[step], data.offsets[step + 1]
    if data.member is None or data.member_offsets is None:
        return (np.zeros(0, np.int64),) * 3
    person = data.member[data.member_offsets[low] : data.member_offsets[high]]
    row = np.repeat(np.arange(low, high), np.diff(data.member_offsets[low : high + 1]))
    order = np.argsort(person, kind="stable")
    _, number = np.unique(person, return_inverse=True)
    return number[order], data.origin[row[order]].astype(np.int64), data.destination[row[order]].astype(np.int64)


@dataclass(frozen=True)
class Boxes:
    """All boxes of a matrix with a crowd of at least k, those that a box can be split into before it.

    Attributes
    ----------
    origin, destination
        The nodes of each box.
    volume, crowd
        Its trips, and the people (or trips) that k is compared with.
    cost
        What it costs to publish it whole.
    ways
        How each box can be split: offsets of its ways; of each way its kind, the volume that it gives up and the offsets of
        the boxes that it leaves; and these.
    total
        Volume of the whole matrix.
    """

    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints
    cost: Ints
    ways: tuple[Ints, Ints, Ints, Ints, Ints]
    total: int

    @classmethod
    def of(cls, data: Flows, step: int, regions: Trees | Rectangles, k: int) -> Boxes:
        """The boxes of a time step."""
        o, d, volume, crowd, *ways = (frozen(a, np.int64) for a in regions.build(data, step, k))
        cost = frozen((regions.origin_cost[o] + regions.destination_cost[d]) * volume, np.int64)
        total = int(data.volume[data.offsets[step] : data.offsets[step + 1]].sum())
        # Comparisons of q·A + p·S, with p at most A and q at most S, must fit into 64 bits.
        if 2 * int(cost.max(initial=0)) * total >= 2**63:
            raise InputError("the volumes of a time step are too large to be compared exactly; use shorter time steps.")
        return cls(o, d, volume, crowd, cost, tuple(ways), total)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.volume)

    def every_way(self) -> Small:
        """Allow each box all that it can do."""
        return np.full(len(self), WHOLE + BY_DESTINATION + BY_ORIGIN, np.int8)

    def evaluate(self, price: Fraction | None, allowed: Small) -> tuple[int, int, Ints]:
        """Cost, suppressed volume and choices of the best partition at a price; None is an infinite one."""
        from crowdveil.kernels.partition import evaluate

        p, q = (1, 0) if price is None else price.as_integer_ratio()
        choice = np.empty(len(self), np.int64)
        a, s = evaluate(self.cost, *self.ways, p, q, allowed, choice)
        return int(a), int(s), choice

    def within(self, budget: int, allowed: Small) -> tuple[Fraction | None, int, int, Ints] | None:
        """Price, cost, suppressed volume and choices of the partition that keeps a budget; None if none does."""
        from crowdveil.kernels.price import find_price

        found = find_price(lambda p, q: self.evaluate(Fraction(p, q) if q else None, allowed)[:2], budget)
        if found is None:
            return None
        price, cost, suppressed = found
        return price, cost, suppressed, self.evaluate(price, allowed)[2]

    def spend(self, choice: Ints, allowed: Small, rest: int) -> None:
        """Split published boxes once more, best gain for a suppressed trip first, as long as `rest` trips last."""
        from crowdveil.kernels.partition import apply_splits, best_splits

        while True:
            whole = self.whole(choice)
            gain, way = best_splits(whole, self.cost, *self.ways, allowed, rest)
            order = np.argsort(-gain, kind="stable")[: np.count_nonzero(gain)]
            spent = apply_splits(whole[order], way[order], *self.ways[2:], choice, rest)
            if spent == 0:
                return
            rest -= spent

    def whole(self, choice: Ints) -> Ints:
        """The boxes that stay whole."""
        from crowdveil.kernels.partition import published_boxes

        return np.sort(published_boxes(choice, *self.ways[3:])) if len(self) else np.zeros(0, np.int64)

    def published(self, choice: Ints) -> Published:
        """The boxes that stay whole, with their nodes."""
        kept = self.whole(choice)
        return self.origin[kept], self.destination[kept], self.volume[kept], self.crowd[kept]


@dataclass(frozen=True)
class TreeBoxes(Boxes):
    """Boxes over trees, for methods that part origins before destinations.

    Attributes
    ----------
    trees
        The trees.
    outgoing
        Volume that leaves each node of the tree of origins, box or not.
    """

    trees: Trees
    outgoing: Ints

    @classmethod
    def on(cls, data: Flows, step: int, trees: Trees, k: int) -> TreeBoxes:
        """The boxes of a time step."""
        plain = Boxes.of(data, step, trees, k)
        here = slice(data.offsets[step], data.offsets[step + 1])
        outgoing = np.zeros(len(data.zones), np.int64)
        np.add.at(outgoing, data.origin[here], data.volume[here])
        fields = {f.name: getattr(plain, f.name) for f in dataclass_fields(plain)}
        return cls(**fields, trees=trees, outgoing=trees.origins.subtree_sums(outgoing))

    def origins_first(self) -> Small:
        """Allow splits of an origin only while its destinations are not split: origins have one partition."""
        allowed = np.full(len(self), WHOLE + BY_DESTINATION, np.int8)
        allowed[self.destination == self.trees.destinations.root] += BY_ORIGIN
        return allowed

    def given_origins(self, split: Mask) -> Small:
        """Fix the partition of origins: nodes in `split` must be split where they can be, and no others may be."""
        allowed = np.full(len(self), WHOLE + BY_DESTINATION, np.int8)
        inner = ~self.trees.origins.is_leaf[self.origin]
        must = (self.destination == self.trees.destinations.root) & split[self.origin] & inner
        allowed[must] = BY_ORIGIN
        return allowed

    def origins_near(self, volume: float) -> Mask:
        """The nodes of origins that are split so that what leaves each part is as near to `volume` as can be."""
        from crowdveil.kernels.partition import best_pruning

        penalty = (volume - self.outgoing.astype(np.float64)) ** 2
        split: Mask = best_pruning(penalty, *_arrays(self.trees.origins, "child_offsets", "child_nodes"))
        return split


def _arrays(tree: Hierarchy | DyadicRegions, *names: str) -> list[Ints]:
    return [frozen(getattr(tree, name), np.int64) for name in names]


def _rows(data: Flows, origins: Hierarchy, destinations: Hierarchy, step: int) -> tuple[Ints, ...]:
    """The rows of a step by leaf of their origin, then of their destination, and their people."""
    low, high = data.offsets[step], data.offsets[step + 1]
    o = origins.tile_leaf[data.origin[low:high]].astype(np.int64)
    d = destinations.tile_leaf[data.destination[low:high]].astype(np.int64)
    order = np.lexsort((d, o))
    offsets = np.searchsorted(o[order], np.arange(origins.tiles + 1))
    members = (np.zeros(0, np.int64),) * 2
    if data.member is not None and data.member_offsets is not None:
        taken, member_offsets = take_slices(data.member_offsets, order + low)
        members = (member_offsets, data.member[taken])
    columns = (offsets, d[order], data.volume[low:high][order], data.people[low:high][order], *members)
    return tuple(frozen(c, np.int64) for c in columns)


def target_volumes(k: int, volume: int) -> list[float]:
    """Target volumes of origins to choose from: from k to twice the volume of the matrix, in equal ratios."""
    targets: list[float] = np.geomspace(k, max(2 * volume, k + 1), TARGETS).tolist()
    return targets


def generalise(
    data: Flows,
    k: int,
    objective: Objective,
    solve: Callable[[Boxes], Ints | None],
    progress: Progress,
    *,
    dyadic: bool,
) -> FlowRelease:
    """Solve every time step on its own, over trees or dyadic rectangles, and put the results together.

    `solve` says what becomes of each box of a matrix; None withholds the whole step. It gets matrices with a box only.
    """
    return _by_step(data, k, Rectangles if dyadic else Trees, Boxes.of, objective, solve, progress)


def generalise_origins_first(
    data: Flows, k: int, solve: Callable[[TreeBoxes], Ints | None], progress: Progress
) -> FlowRelease:
    """The same over trees, for methods that part origins before destinations."""
    return _by_step(data, k, Trees, TreeBoxes.on, "generalisation", solve, progress)


def _by_step(
    data: Flows, k: int, system: Any, boxes_of: Any, objective: Objective, solve: Any, progress: Progress
) -> FlowRelease:
    if data.counts == "people" and data.member is None and len(data):
        raise InputError(
            "people of different flows cannot be added up; give trips with a column of users, not flows (in Python, read "
            "them with members=True)."
        )
    if len(data) == 0:
        return _release(data, k, [_NOTHING] * data.steps, None)
    regions = system.of(data, objective)

    def solve_step(step: int) -> Published:
        boxes = boxes_of(data, step, regions, k)
        try:
            choice = solve(boxes) if len(boxes) else None
        except InputError as error:
            raise InputError(f"time step {step + 1:,} of {data.steps:,}: {error}") from None
        return _NOTHING if choice is None else boxes.published(choice)

    steps: list[Published] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for solved in pool.map(solve_step, range(data.steps)):
            steps.append(solved)
            progress(len(steps), data.steps)
    return _release(data, k, steps, regions)


def _release(data: Flows, k: int, steps: list[Published], trees: Trees | Rectangles | None) -> FlowRelease:
    """The boxes of all steps as one table."""
    o, d, volume, people = (np.concatenate(column) for column in zip(_NOTHING, *steps, strict=True))
    areas, origin, destination = _areas(data, o, d, trees)
    return FlowRelease(
        areas,
        data.t,
        np.cumsum([0, *(len(s[0]) for s in steps)]),
        origin.astype(np.int32),
        destination.astype(np.int32),
        volume,
        people,
        np.full(len(o), PUBLISHED, np.uint8),
        _withheld(data, k, steps),
        data.counts,
        data.step_s,
        data.tz,
    )


def _withheld(data: Flows, k: int, steps: list[Published]) -> Ints:
    """Withheld volume of each step, where it is sure that k made it: trips add up, people may be the same ones."""

    def left(column: Ints, which: int) -> Any:
        before = [int(column[a:b].sum()) for a, b in pairwise(data.offsets.tolist())]
        return np.array([n - int(s[which].sum()) for n, s in zip(before, steps, strict=True)], np.int64)

    volume, crowd = left(data.volume, 2), left(data.people, 3)
    told = (volume == 0) | ((data.counts == "trips") & (np.minimum(volume, crowd) >= k))
    return np.where(told, volume, NOT_GIVEN)


def _areas(data: Flows, o: Ints, d: Ints, trees: Trees | Rectangles | None) -> tuple[Areas, Ints, Ints]:
    if trees is None:
        return Areas.of_tiles(data.zones, np.zeros(0, np.int32)), o, d
    if trees.origins is trees.destinations:
        used, place = np.unique(np.concatenate([o, d]), return_inverse=True)
        areas, (area,) = Areas.of_nodes(data.zones, [(trees.origins, used)])
        return areas, area[place[: len(o)]], area[place[len(o) :]]
    from_nodes, from_place = np.unique(o, return_inverse=True)
    to_nodes, to_place = np.unique(d, return_inverse=True)
    nodes = [(trees.origins, from_nodes), (trees.destinations, to_nodes)]
    areas, (froms, tos) = Areas.of_nodes(data.zones, nodes)
    return areas, froms[from_place], tos[to_place]
