"""Generalize all origins to one level of the tree and all destinations to another, the best pair within a budget.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget: in each time step at most the given share (or number) of trips is suppressed. A time step with fewer than k
people in all is suppressed whole.

Assumptions
-----------
The column of users names people. Without it k counts trips.

Notes
-----
A baseline. Level c of a tree is its largest nodes of at most c tiles; these are the levels of going up one step at a time from
the tiles, joining only where the smallest possible node is made. That cuts trees with leaves of any depth. Of all pairs of
levels that keep the budget, the one with the smallest mean generalization error is taken (finest origins first, where several
have it), for each time step on its own. That is exact: pairs are skipped only where it is proven that they suppress too much or
cannot be better.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(the baseline "OIGH", and appendix B); Mahanan, Chaovalitwongse, Natwichai, Data privacy preservation algorithm with k-anonymity.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from crowdveil.kernels.od.structures import LevelRows, LevelTree
from crowdveil.method import INDEPENDENT, Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Floats, Ints, frozen, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams
from crowdveil.progress import Progress
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.requirements import check_tree
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
        partial(summarize_diagnostics, params),
    )
    return solve_steps(data, steps, progress)


def solve(data: Flows, params: OighParams, system: RegionSpace, step: int) -> StepSolution:
    """Solve a time step; its facts are the largest numbers of tiles of an origin and of a destination."""
    from crowdveil.kernels.od.levels import best_levels, level_boxes

    rows, sides = rows_of(data, system, step), (system.origins.tree, system.destinations.tree)
    (o_levels, o_tree), (d_levels, d_tree) = ((levels_of(tree), tree_arrays(tree)) for tree in sides)
    budget = params.max_suppressed(int(rows.volume.sum()))
    i, j, _ = best_levels(rows, o_levels, o_tree, d_levels, d_tree, params.k, budget)
    o_most, d_most = int(o_levels[i]), int(d_levels[j])
    origin, destination, volume, people = level_boxes(rows, o_most, o_tree, d_most, d_tree)
    keep = people >= params.k
    left = (origin[~keep], destination[~keep]) if params.aggregate_small else NO_BOXES
    facts = np.array([o_most, d_most], np.float64)
    return StepSolution(origin[keep], destination[keep], volume[keep], people[keep], *left, facts)


def rows_of(data: Flows, system: RegionSpace, step: int) -> LevelRows:
    """Return the rows of a time step by leaf of origin: leaves of origin and destination, volumes, people, person ids."""
    low, high = int(data.offsets[step]), int(data.offsets[step + 1])
    origin = system.origins.tree.tile_leaf[data.origin[low:high]]
    order = np.argsort(origin, kind="stable")
    rows = low + order
    destination = system.destinations.tree.tile_leaf[data.destination[rows]]
    person_offsets = person_ids = np.zeros(0, np.int64)
    if data.person_ids is not None and data.person_offsets is not None:
        taken, person_offsets = take_slices(data.person_offsets, rows)
        person_ids = data.person_ids[taken]
    columns = (origin[order], destination, data.volume[rows], data.people[rows], person_offsets, person_ids)
    return LevelRows(*(frozen(column, np.int64) for column in columns))


def levels_of(tree: Hierarchy) -> Ints:
    """Return the largest number of leaves of a node at each level of a tree."""
    return frozen(np.unique(tree.size), np.int64)


def tree_arrays(tree: Hierarchy) -> LevelTree:
    """Return the arrays of a tree for the kernel."""
    return LevelTree(*(frozen(a, np.int64) for a in (tree.parent, tree.size, tree.first_leaf)))


def summarize_diagnostics(params: OighParams, facts: Floats) -> dict[str, Any]:
    """Return the levels of all time steps, as the largest numbers of tiles of an area."""
    names = ("max_tiles_of_an_origin", "max_tiles_of_a_destination")
    return {name: [int(column.min()), int(column.max())] for name, column in zip(names, facts.T, strict=True)}


METHOD = Method(
    "oigh",
    takes=Flows,
    params=OighParams,
    run=run,
    guarantees=flow_guarantees,
    status="proven",
    summarize_diagnostics=summarize_diagnostics,
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    check_data=check_tree,
    aliases=("OIGH",),
)
