"""Generalise origins and destinations together, as little as a crowd of k and a budget of withheld trips allow.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
In each time step at most the given share (or number) of trips is withheld; where no split helps, one flow from everywhere
to everywhere remains. A time step with fewer than k people in all is withheld whole.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips.

Notes
-----
A box is a pair of nodes, one of the tree of origins and one of the tree of destinations. A partition starts from the box
of all tiles and splits any box into the children of its origin or of its destination, again and again; every
partition that fixes origins first, as ATG does, is one of these. For a price of a suppressed trip the best partition is
found exactly, by dynamic programming over the boxes that reach k. The price is then searched in exact fractions, and the
piece of the solution that keeps the budget is taken; what is left of the budget is spent on the splits that gain most for
each trip. People who are behind several flows of a box count once.

References
----------
Matet et al., Adaptative generalisation over a value hierarchy for the k-anonymisation of Origin-Destination matrices
(the generalisation error, the price and the search for it); the joint recurrence is our own.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from crowdveil.errors import InputError
from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee
from crowdveil.method import Method, Params
from crowdveil.model.arrays import Ints, frozen, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, Areas, FlowRelease
from crowdveil.model.trees import ward
from crowdveil.progress import Progress

_HECTARE_M2 = 10_000


def _share(value: Any) -> Any:
    """ "10%" is 0.1; numbers stay as they are."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if isinstance(value, bool) or not (0 <= number <= 1 or (number.is_integer() and 1 < number < 2**53)):
        raise ValueError("a share such as 10% or 0.1, or a whole number of trips")
    return number


class JointParams(Params):
    """Parameters of joint generalisation."""

    k: int = Field(10, ge=2)
    """Smallest crowd."""
    suppress: Annotated[float, BeforeValidator(_share)] = Field(0.1, ge=0)
    """Most that may be withheld of a time step: a share such as 10%, or a number of trips above 1."""
    objective: Literal["generalisation", "area"] = "generalisation"
    """What to lose least: tiles of origin and destination, or their area, each weighted by trips."""

    def budget(self, volume: int) -> int:
        """Trips that may be withheld of so many."""
        return int(self.suppress) if self.suppress > 1 else int(self.suppress * volume + 1e-9)


@dataclass(frozen=True)
class _Tree:
    """A tree as kernels take it, with what each node costs."""

    tree: Hierarchy
    cost: Ints

    @classmethod
    def of(cls, tree: Hierarchy, data: Flows, objective: str) -> _Tree:
        if objective == "generalisation":
            return cls(tree, tree.size.astype(np.int64))
        area = data.zones.area_m2
        if np.isnan(area).any():
            raise InputError("objective: area needs zones with outlines; give polygons with --zones, or a grid.")
        return cls(tree, tree.subtree_sums(np.rint(area / _HECTARE_M2).astype(np.int64)))

    def arrays(self, *names: str) -> list[Ints]:
        return [frozen(getattr(self.tree, name), np.int64) for name in names]


def run(data: Flows, params: JointParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Solve each time step on its own, several at a time."""
    if data.counts == "people" and data.member is None and len(data):
        raise InputError("people of different flows cannot be added up; give trips with a column of users, not flows.")
    if len(data) == 0:
        return _release(data, params, [(np.zeros(0, np.int64),) * 4] * data.steps, None, None)
    origin_tree = data.origin_tree or data.destination_tree or ward(data.zones)
    destination_tree = data.destination_tree or origin_tree
    origins = _Tree.of(origin_tree, data, params.objective)
    destinations = _Tree.of(destination_tree, data, params.objective)
    steps: list[tuple[Ints, Ints, Ints, Ints]] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for solved in pool.map(partial(_solve, data, params, origins, destinations), range(data.steps)):
            steps.append(solved)
            progress(len(steps), data.steps)
    return _release(data, params, steps, origin_tree, destination_tree)


def _solve(
    data: Flows, params: JointParams, origins: _Tree, destinations: _Tree, step: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """The published boxes of a time step: origin node, destination node, volume, crowd."""
    from crowdveil.kernels.joint import build_boxes, evaluate, published_boxes
    from crowdveil.kernels.price import find_price

    of_origins = origins.arrays("child_offsets", "child_nodes", "first_leaf")
    of_destinations = destinations.arrays(
        "parent", "first_leaf", "last_leaf", "leaf_node", "child_offsets", "child_nodes"
    )
    rows = _rows(data, origins.tree, destinations.tree, step)
    built = build_boxes(*rows, *of_origins, *of_destinations, params.k)  # type: ignore[call-arg, arg-type]
    box_o, box_d, volume, crowd, *splits = (frozen(a, np.int64) for a in built)
    if len(volume) == 0:
        return box_o, box_d, volume, crowd
    cost = frozen((origins.cost[box_o] + destinations.cost[box_d]) * volume, np.int64)
    choice = np.zeros(len(volume), np.int8)
    total = int(data.volume[data.offsets[step] : data.offsets[step + 1]].sum())
    _need_small_numbers(cost, total)
    budget = params.budget(total)

    def at_price(p: int, q: int) -> tuple[int, int]:
        a, s = evaluate(cost, *splits, p, q, choice)  # type: ignore[call-arg, arg-type]
        return int(a), int(s)

    found = find_price(at_price, budget)
    if found is None:  # the root is a box, so the whole map keeps every budget
        raise AssertionError("the whole map must keep the budget")
    price, _, suppressed = found
    at_price(*((1, 0) if price is None else price.as_integer_ratio()))
    _spend_rest(cost, splits, choice, budget - suppressed)
    kept = np.sort(published_boxes(choice, *splits[:4]))
    return box_o[kept], box_d[kept], volume[kept], crowd[kept]


def _spend_rest(cost: Ints, splits: list[Ints], choice: Any, rest: int) -> None:
    """Split published boxes once more, best gain for a suppressed trip first, as long as `rest` trips last."""
    from crowdveil.kernels.joint import apply_splits, best_splits, published_boxes

    while True:
        whole = np.sort(published_boxes(choice, *splits[:4]))
        gain, way = best_splits(whole, cost, *splits, rest)  # type: ignore[call-arg, arg-type]
        order = np.argsort(-gain, kind="stable")[: np.count_nonzero(gain)]
        spent = apply_splits(whole[order], way[order], *splits, choice, rest)  # type: ignore[call-arg, arg-type]
        if spent == 0:
            return
        rest -= spent


def _need_small_numbers(cost: Ints, volume: int) -> None:
    """Comparisons of q·A + p·S, with p at most A and q at most S, must fit into 64 bits."""
    if 2 * int(cost.max()) * volume >= 2**63:
        raise InputError(
            "joint: the volumes of a time step are too large to be compared exactly; use shorter time steps."
        )


def _rows(data: Flows, origins: Hierarchy, destinations: Hierarchy, step: int) -> tuple[Ints, ...]:
    """The rows of a step by leaf of their origin, then of their destination, and their people."""
    low, high = data.offsets[step], data.offsets[step + 1]
    o = origins.tile_leaf[data.origin[low:high]].astype(np.int64)
    d = destinations.tile_leaf[data.destination[low:high]].astype(np.int64)
    order = np.lexsort((d, o))
    offsets = np.searchsorted(o[order], np.arange(origins.tiles + 1))
    none = np.zeros(0, np.int64)
    members = (none, none)
    if data.member is not None and data.member_offsets is not None:
        taken, member_offsets = take_slices(data.member_offsets, order + low)
        members = (member_offsets, data.member[taken])
    columns = (offsets, d[order], data.volume[low:high][order], data.people[low:high][order], *members)
    return tuple(frozen(c, np.int64) for c in columns)


def _release(
    data: Flows,
    params: JointParams,
    steps: list[tuple[Ints, Ints, Ints, Ints]],
    origin_tree: Hierarchy | None,
    destination_tree: Hierarchy | None,
) -> FlowRelease:
    """The boxes of all steps as one table."""
    nothing = (np.zeros(0, np.int64),) * 4
    o, d, volume, people = (np.concatenate(column) for column in zip(nothing, *steps, strict=True))
    areas, origin, destination = _areas(data, o, d, origin_tree, destination_tree)
    return FlowRelease(
        areas,
        data.t,
        np.cumsum([0, *(len(s[0]) for s in steps)]),
        origin.astype(np.int32),
        destination.astype(np.int32),
        volume,
        people,
        np.full(len(o), PUBLISHED, np.uint8),
        _withheld(data, params, steps),
        data.counts,
        data.step_s,
        data.tz,
    )


def _withheld(data: Flows, params: JointParams, steps: list[tuple[Ints, Ints, Ints, Ints]]) -> Ints:
    """Withheld volume of each step, where it is sure that k made it: trips add up, people may be the same ones."""
    volume, crowd = (
        np.array([c[a:b].sum() for a, b in pairwise(data.offsets.tolist())], np.int64)
        for c in (data.volume, data.people)
    )
    volume = volume - np.array([s[2].sum() for s in steps], np.int64)
    crowd = crowd - np.array([s[3].sum() for s in steps], np.int64)
    told = (volume == 0) | ((data.counts == "trips") & (np.minimum(volume, crowd) >= params.k))
    return np.where(told, volume, NOT_GIVEN)


def _areas(
    data: Flows, o: Ints, d: Ints, origin_tree: Hierarchy | None, destination_tree: Hierarchy | None
) -> tuple[Areas, Ints, Ints]:
    if origin_tree is None or destination_tree is None:
        return Areas.of_tiles(data.zones, np.zeros(0, np.int32)), o, d
    if origin_tree is destination_tree:
        used, place = np.unique(np.concatenate([o, d]), return_inverse=True)
        areas, (area,) = Areas.of_nodes(data.zones, [(origin_tree, used)])
        return areas, area[place[: len(o)]], area[place[len(o) :]]
    from_nodes, from_place = np.unique(o, return_inverse=True)
    to_nodes, to_place = np.unique(d, return_inverse=True)
    areas, (froms, tos) = Areas.of_nodes(data.zones, [(origin_tree, from_nodes), (destination_tree, to_nodes)])
    return areas, froms[from_place], tos[to_place]


def promises(data: Flows, params: JointParams) -> tuple[Guarantee, ...]:
    """What the release promises."""
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows())


METHOD = Method(
    "joint", takes=Flows, params=JointParams, run=run, promises=promises, status="proved", doc=__doc__ or "",
    needs_members=True,
)  # fmt: skip
