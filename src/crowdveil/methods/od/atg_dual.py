"""Generalize origins towards a target volume, then destinations for each origin under one budget of suppressed trips.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step.
SuppressionBudget: in each time step at most the given share (or number) of trips is suppressed, or the run stops and names the
step without a solution. A time step with fewer than k people in all is suppressed whole.

Assumptions
-----------
The column of users names people. Without it k counts trips.

Notes
-----
The method of the paper, on trees of any shape. Origins are the best pruning for the penalty (v_target − outgoing volume)².
Destinations of all origins are then partitioned with one multiplier, which is searched in exact fractions; the solution right
of the last breakpoint is taken, which keeps the budget. Where many flows are equal, as in sparse matrices, that leaves a part
of the budget; `spend_rest` spends it. Origins that do not reach k are suppressed whole, and with some target volumes they
exceed the budget. With `v_target = auto` a grid of target volumes is tried on each matrix, and the one with the smallest
generalization error is kept: the best result of the method, at the cost of as many runs. With `v_target = sample` the target is
chosen once, as in the papers: the one of the grid at which origins and destinations have the nearest mean sizes, over 24
matrices spread evenly over the data; where a matrix has no solution with it, the next larger target with a solution is taken.
With `time_partition = stable` all time steps have the same areas, to compare with `joint`: origins are cut by the trips of all
time steps together, and destinations are the best over all of them within one budget; `sample` is then the same as `auto`.
The manifest has the targets, and an upper bound of the gap between the result and the optimum for its origins.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(ATG-Dual; problems P and D, Specific Breakpoints Algorithm).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from crowdveil import engine
from crowdveil.io.step_classes import step_classes
from crowdveil.method import Method, SharedPartition
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Budgeted, SizedAreas, TargetVolume, TimePartitioned
from crowdveil.progress import Progress
from crowdveil.solve.od.boxes import gap_percent
from crowdveil.solve.od.forest import Forest, ForestSolution
from crowdveil.solve.od.region_space import RegionSpace, large_enough_map
from crowdveil.solve.od.requirements import check_tree
from crowdveil.solve.od.stable import StableRelease, release_stable
from crowdveil.solve.od.stable_forest import StableForests, add_up, large_steps, with_volumes
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepSolution
from crowdveil.solve.od.summed_steps import sum_steps
from crowdveil.solve.od.targets import (
    Attempt,
    Targets,
    as_figure,
    one_target,
    summarize_gaps,
    summarize_targets,
    target_volumes,
)


class AtgDualParams(TimePartitioned, Budgeted, SizedAreas):
    """Parameters of ATG-Dual."""

    v_target: TargetVolume = "auto"
    """Target volume of each origin; auto takes the best of a grid for each matrix, sample one for all."""
    spend_rest: bool = False
    """Spend the rest of the budget on the splits that gain most for each trip; the published method leaves it."""


def run(data: Flows, params: AtgDualParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, or of all of them, then find the best destinations of all origins."""
    if params.time_partition == "stable" and len(data):
        return _run_stable(data, params, progress)

    def attempt(matrix: Matrix, origins: Ints) -> Attempt:
        forest = Forest.of(matrix, origins, params.k)
        return forest, forest.solve_for_budget(params.max_suppressed(matrix.total))

    def finish(forest: Forest, solved: ForestSolution) -> tuple[ForestSolution, tuple[float, float]]:
        budget = params.max_suppressed(forest.total)
        final = forest.spend_slack(solved, budget) if params.spend_rest else solved
        return final, (gap_percent(final.cost, solved.lower_bound(budget)), as_figure(solved.multiplier))

    targets = Targets(params.v_target, params.k, attempt, extent=params.extent)
    return targets.solve(data, finish, params.reporting, partial(summarize_diagnostics, params), progress)


def _run_stable(data: Flows, params: AtgDualParams, progress: Progress) -> FlowRelease:
    """Fix the origins by the trips of all time steps of a class, then find the destinations that are best over all of them."""
    system = _regions(data, params)
    classes = step_classes(data.t, data.tz, params.stable_by)
    numbers = np.unique(classes)

    def solve(number: int) -> StepSolution:
        own = data.at_steps(np.flatnonzero(classes == numbers[number]))
        steps, matrix = large_steps(own, system, params.k), Matrix.of(sum_steps(own), 0, system)
        total = sum(step.total for step in steps)

        def forest_of(origins: Ints) -> Forest:  # one at a time, so that memory is that of one
            base = Forest.of(matrix, origins, params.k)
            return with_volumes(base, add_up(base, steps, params.k), total)

        return _solve_targets(matrix, total, forest_of, params)

    solved = [StepSolution(*arrays) for arrays in engine.current().map(solve, len(numbers), progress)]
    facts = np.array([s.facts for s in solved if len(s.facts)])
    release = release_stable(data, system, _wanted(params, classes), solved)
    return replace(release, facts=summarize_diagnostics(params, facts) if len(facts) else {})


def _regions(data: Flows, params: AtgDualParams) -> RegionSpace:
    """Return the nodes that may be published; raise if not even the whole map may."""
    return large_enough_map(RegionSpace.trees(data, extent=params.extent))


def _wanted(params: AtgDualParams, classes: Ints) -> StableRelease:
    return StableRelease(params.stable_by, classes, params.k, params.reporting)


def _targets(params: AtgDualParams, matrix: Matrix) -> list[float]:
    """Return the target volumes to try for all time steps of a class."""
    return target_volumes(params.k, matrix.total) if isinstance(params.v_target, str) else [float(params.v_target)]


def _begin_stable(summed: Flows, params: AtgDualParams) -> StableForests:
    """Build the boxes of all target volumes from the flows of all time steps of a class together."""
    return StableForests.of(summed, _regions(summed, params), params.k, partial(_targets, params)).without_people()


def _add_up_stable(data: Flows, forests: StableForests, params: AtgDualParams) -> list[Ints]:
    """Add up the trips of some time steps, and those that each box publishes."""
    return forests.add_up(large_steps(data, forests.matrix.system, params.k), params.k)


def _solve_stable(_frame: Flows, forests: StableForests, sums: Sequence[Ints], params: AtgDualParams) -> StepSolution:
    """Find the best destinations of a class from the sums over all of its time steps."""
    in_order = forests.with_volumes(sums)
    return _solve_targets(forests.matrix, int(sums[0][0]), lambda _: next(in_order), params)


def _solve_targets(
    matrix: Matrix, total: int, forest_of: Callable[[Ints], Forest], params: AtgDualParams
) -> StepSolution:
    """Find the best destinations over the time steps of a class, which have `total` trips, for the best target volume.

    `forest_of` makes the boxes of some origins; it is called once for each target, in order.
    """
    if total == 0:
        return ALL_SUPPRESSED
    budget = params.max_suppressed(total)

    def attempt(_: Matrix, origins: Ints) -> Attempt:
        forest = forest_of(origins)
        return forest, forest.solve_for_budget(budget)

    def error(forest: Forest, solved: ForestSolution) -> float:
        return solved.cost / max(total - solved.suppressed, 1)

    wanted: Literal["auto"] | float = "auto" if isinstance(params.v_target, str) else params.v_target
    target, forest, best = Targets(wanted, params.k, attempt, error).best(matrix, _targets(params, matrix))
    final = forest.spend_slack(best, budget) if params.spend_rest else best
    gap = gap_percent(final.cost, best.lower_bound(budget))
    return forest.outcome(final.published, target, gap, as_figure(best.multiplier), left=params.aggregate_small)


def _release_stable(
    data: Flows, classes: Ints, solved: Mapping[int, Sequence[Any]], params: AtgDualParams
) -> FlowRelease:
    """Publish the boxes of each class in some time steps."""
    found = [StepSolution(*solved[number]) for number in np.unique(classes).tolist()]
    return release_stable(data, RegionSpace.trees(data), _wanted(params, classes), found)


def shared(params: AtgDualParams) -> SharedPartition | None:
    """Return how one partition for all time steps is found in partitions; None where it is not wanted."""
    if params.time_partition != "stable":
        return None
    return SharedPartition(params.stable_by, _begin_stable, _add_up_stable, _solve_stable, _release_stable)


def partitioning(params: AtgDualParams) -> str | None:
    """Return why time steps cannot be solved independently, as it follows "since"; None if they can."""
    return one_target(params) if params.time_partition == "steps" else None


def summarize_diagnostics(params: AtgDualParams, facts: Floats) -> dict[str, Any]:
    """Return the targets, and the gaps between the results and the optimum."""
    return {**summarize_targets(params.v_target, facts[:, 0]), **summarize_gaps(facts[:, 1])}


METHOD = Method(
    "atg-dual",
    takes=Flows,
    params=AtgDualParams,
    run=run,
    guarantees=flow_guarantees,
    status="proven",
    summarize_diagnostics=summarize_diagnostics,
    figure_names=("v-target", "gap", "multiplier"),
    partitioning=partitioning,
    shared=shared,
    needs_person_ids=True,
    check_data=check_tree,
    aliases=("ATG-Dual",),
)
