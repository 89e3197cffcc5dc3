"""Generalize all origins to one level of the tree and all destinations to another, the best pair within a budget.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget: in each time step at most the given share (or number) of trips is suppressed. A time step with fewer than k
people in all is suppressed whole.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it k counts trips.

Notes
-----
A rival that others are measured against. Level c of a tree is its largest nodes of at most c tiles; these are the levels that
come of going up one step at a time from the tiles, joining only where the smallest node that can be made is made. That
cuts trees with leaves of any depth. Of all pairs of levels that keep the budget, the one with the least mean generalization
error is taken (finest origins first, where several have it), for each time step on its own. That is exact: pairs are left out
only where it is proven that they suppress too much or cannot be better.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(the rival "OIGH", and appendix B); Mahanan, Chaovalitwongse, Natwichai, Data privacy preservation algorithm with k-anonymity.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee, SuppressionBudget
from crowdveil.method import INDEPENDENT, Method
from crowdveil.model.arrays import Floats, Ints, frozen, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams
from crowdveil.progress import Progress
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_solver import NO_BOXES, StepRange, StepSolution, solve_steps


class OighParams(Budgeted, FlowParams):
    """Parameters of uniform levels."""


def run(data: Flows, params: OighParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Find the best pair of levels of each time step."""
    steps = StepRange(
        params.k,
        lambda: RegionSpace.trees(data),
        lambda system: partial(solve, data, params, system),
        params.reporting,
        partial(tell, params),
    )
    return solve_steps(data, steps, progress)


def solve(data: Flows, params: OighParams, system: RegionSpace, step: int) -> StepSolution:
    """What becomes of a time step; its facts are the most tiles of an origin and of a destination."""
    from crowdveil.kernels.od.levels import best_levels, level_boxes

    rows, sides = rows_of(data, system, step), (system.origins.tree, system.destinations.tree)
    (o_levels, o_tree), (d_levels, d_tree) = ((levels_of(tree), tree_arrays(tree)) for tree in sides)
    budget = params.most_suppressed(int(rows[2].sum()))
    search: Any = (*rows, o_levels, *o_tree, d_levels, *d_tree, params.k, budget)
    i, j, _ = best_levels(*search)
    o_most, d_most = int(o_levels[i]), int(d_levels[j])
    levels: Any = (*rows, o_most, *o_tree, d_most, *d_tree)
    origin, destination, volume, crowd = level_boxes(*levels)
    keep = crowd >= params.k
    left = (origin[~keep], destination[~keep]) if params.aggregate_small else NO_BOXES
    facts = np.array([o_most, d_most], np.float64)
    return StepSolution(origin[keep], destination[keep], volume[keep], crowd[keep], *left, facts)


def rows_of(data: Flows, system: RegionSpace, step: int) -> tuple[Any, ...]:
    """The rows of a time step by leaf of origin: leaves of origin and destination, volumes, crowds, members."""
    low, high = int(data.offsets[step]), int(data.offsets[step + 1])
    origin = system.origins.tree.tile_leaf[data.origin[low:high]]
    order = np.argsort(origin, kind="stable")
    rows = low + order
    destination = system.destinations.tree.tile_leaf[data.destination[rows]]
    member_offsets = member = np.zeros(0, np.int64)
    if data.member is not None and data.member_offsets is not None:
        taken, member_offsets = take_slices(data.member_offsets, rows)
        member = data.member[taken]
    columns = (origin[order], destination, data.volume[rows], data.people[rows], member_offsets, member)
    return tuple(frozen(column, np.int64) for column in columns)


def levels_of(tree: Hierarchy) -> Ints:
    """The most leaves of a node at each level of a tree."""
    return frozen(np.unique(tree.size), np.int64)


def tree_arrays(tree: Hierarchy) -> tuple[Any, ...]:
    """What the kernel needs of a tree."""
    return tuple(frozen(a, np.int64) for a in (tree.parent, tree.size, tree.first_leaf))


def tell(params: OighParams, facts: Floats) -> dict[str, Any]:
    """The levels of all time steps, in most tiles of an area."""
    names = ("most_tiles_of_an_origin", "most_tiles_of_a_destination")
    return {name: [int(column.min()), int(column.max())] for name, column in zip(names, facts.T, strict=True)}


def guarantees(data: Flows, params: OighParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    budget = SuppressionBudget(suppress=params.suppress, suppress_trips=params.suppress_trips, k=params.k)
    return (FlowKAnonymity(k=params.k, counts=data.counts), DisjointFlows(), budget)


METHOD = Method(
    "oigh",
    takes=Flows,
    params=OighParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
    summarize_diagnostics=tell,
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    aliases=("OIGH",),
)
