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
have it), for each time step on its own. That is exact: pairs are skipped only where coarser ones suppress
too much already.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(the baseline "OIGH", and appendix B); Mahanan, Chaovalitwongse, Natwichai, Data privacy preservation algorithm with k-anonymity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from crowdveil.engine.progress import Progress
from crowdveil.methods.base import INDEPENDENT, Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Floats, Indices, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, FlowParams
from crowdveil.solve.od.region_space import RegionSpace, check_tree
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


class Cells(NamedTuple):
    """The pairs of areas of two levels that have trips: nodes of origin and destination, trips and crowd of each."""

    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints


@dataclass(frozen=True)
class Levels:
    """A tree cut at levels: level c has its largest nodes of at most c tiles."""

    tree: Hierarchy

    @cached_property
    def sizes(self) -> list[int]:
        """Return the largest number of tiles of a node at each level, rising to the whole tree."""
        found: list[int] = np.unique(self.tree.size).tolist()
        return found

    def nodes(self, tile: Indices, most: int) -> Ints:
        """Return the node above each tile at a level."""
        tree = self.tree
        above = np.append(tree.size[tree.parent[:-1]], tree.tiles + 1)  # of the root, more than any level
        cut = np.flatnonzero((tree.size <= most) & (above > most))
        order = np.argsort(tree.first_leaf[cut])
        of_leaf = np.repeat(cut[order], tree.size[cut[order]])
        return of_leaf[tree.tile_leaf[tile]]


def cells_of(data: Flows, rows: slice, origin: Ints, destination: Ints) -> Cells:
    """Add up the flows of a time step between nodes."""
    span = int(destination.max()) + 1
    keys, cell = np.unique(origin * span + destination, return_inverse=True)
    volume = np.bincount(cell, data.volume[rows], len(keys)).astype(np.int64)
    if data.person_ids is None or data.person_offsets is None:
        crowd = np.bincount(cell, data.people[rows], len(keys)).astype(np.int64)
    else:
        bounds = data.person_offsets[rows.start : rows.stop + 1]
        person = data.person_ids[bounds[0] : bounds[-1]]
        pairs = np.unique(np.repeat(cell, np.diff(bounds)) * (int(person.max(initial=0)) + 1) + person)
        crowd = np.bincount(pairs // (int(person.max(initial=0)) + 1), minlength=len(keys))
    return Cells(keys // span, keys % span, volume, crowd)


def solve(data: Flows, params: OighParams, system: RegionSpace, step: int) -> StepSolution:
    """Solve a time step; its facts are the largest numbers of tiles of an origin and of a destination.

    Suppression falls as either level coarsens: once a pair exceeds the budget, finer destinations for the same origins
    exceed it too, and are not tried.
    """
    rows = slice(int(data.offsets[step]), int(data.offsets[step + 1]))
    origins, destinations = Levels(system.origins.tree), Levels(system.destinations.tree)
    budget = params.max_suppressed(int(data.volume[rows].sum()))

    def cells_at(o_most: int, d_most: int) -> Cells:
        ends = origins.nodes(data.origin[rows], o_most), destinations.nodes(data.destination[rows], d_most)
        return cells_of(data, rows, *ends)

    tried: list[tuple[float, int, int]] = []
    for o_most in origins.sizes:
        for d_most in reversed(destinations.sizes):
            origin, destination, volume, crowd = cells_at(o_most, d_most)
            kept = crowd >= params.k
            if volume[~kept].sum() > budget:
                break
            size = origins.tree.size[origin[kept]] + destinations.tree.size[destination[kept]]
            mean = (size * volume[kept]).sum() / max(volume[kept].sum(), 1)
            tried.append((float(mean), o_most, d_most))
    _, o_most, d_most = min(tried)  # the whole map to the whole map suppresses nothing
    origin, destination, volume, crowd = cells_at(o_most, d_most)
    keep = crowd >= params.k
    left = (origin[~keep], destination[~keep]) if params.aggregate_small else NO_BOXES
    facts = np.array([o_most, d_most], np.float64)
    return StepSolution(origin[keep], destination[keep], volume[keep], crowd[keep], *left, facts)


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
