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

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil import engine
from crowdveil.engine.progress import Progress
from crowdveil.methods.base import Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.model.time_axis import step_classes
from crowdveil.params import Budgeted, SizedAreas, TargetVolume, TimePartitioned
from crowdveil.solve.od.boxes import BoxSolution, BoxSpace, gap_percent
from crowdveil.solve.od.region_space import RegionSpace, check_tree, large_enough_map
from crowdveil.solve.od.stable import StableProblem, StableRelease, release_stable, sum_steps
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepSolution, check_person_ids
from crowdveil.solve.od.targets import (
    Targets,
    as_figure,
    one_target,
    origins_near,
    summarize_gaps,
    summarize_targets,
    target_volumes,
)


class AtgDualParams(TimePartitioned, Budgeted, SizedAreas):
    """Parameters of ATG-Dual."""

    v_target: TargetVolume = Field("auto", title="Target volume")
    """Target volume of each origin; auto takes the best of a list for each matrix, sample one for all."""
    spend_rest: bool = Field(False, title="Spend the rest of the budget")
    """Spend the rest of the budget on the splits that gain most for each trip; the published method leaves it."""


def run(data: Flows, params: AtgDualParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Fix the origins of each time step, or of all of them, then find the best destinations of all origins."""
    if params.time_partition == "stable" and len(data):
        return _run_stable(data, params, progress)

    def build(matrix: Matrix, origins: Ints) -> BoxSpace:
        return BoxSpace.of_origins(matrix, origins, params.k)

    targets = Targets(params.v_target, params.k, build, partial(_attempt, params), extent=params.extent)
    summarize = partial(summarize_diagnostics, params)
    return targets.solve(data, partial(_finish, params), params.reporting, summarize, progress)


def _attempt(params: AtgDualParams, boxes: BoxSpace) -> BoxSolution:
    """Find the best destinations within the budget."""
    return boxes.solve_for_budget(params.max_suppressed(boxes.total))


def _finish(params: AtgDualParams, boxes: BoxSpace, solved: BoxSolution) -> tuple[Ints, tuple[float, float]]:
    """Spend the rest of the budget where that is wanted; return the partition, its gap and its multiplier."""
    budget, cost = params.max_suppressed(boxes.total), solved.cost
    bound = solved.lower_bound(budget)
    if params.spend_rest:
        boxes.spend_slack(solved, budget - solved.suppressed)
        cost = boxes.cost_of(solved.choice)
    return solved.choice, (gap_percent(cost, bound), as_figure(solved.multiplier))


def _run_stable(data: Flows, params: AtgDualParams, progress: Progress) -> FlowRelease:
    """Fix the origins by the trips of all time steps of a class, then find the destinations that are best over all of them."""
    system = large_enough_map(RegionSpace.trees(data, extent=params.extent))
    check_person_ids(data)
    classes = step_classes(data.t, data.tz, params.stable_by)
    numbers = np.unique(classes)

    def solve(number: int) -> StepSolution:
        own = data.at_steps(np.flatnonzero(classes == numbers[number]))
        problem = StableProblem(own, system, params.k, "generalization", params.max_suppressed)
        steps = np.arange(own.steps)
        if not any(own.people_in_step(step) >= params.k for step in steps.tolist()):
            return ALL_SUPPRESSED
        # One target at a time, since the boxes of a target take much memory.
        bases = _bases(sum_steps(own), params, system)
        return _best(((target, problem.space(base, problem.add_up(base, steps))) for target, base in bases), params)

    solved = [StepSolution(*arrays) for arrays in engine.current().map(solve, len(numbers), progress)]
    wanted = StableRelease(params.stable_by, classes, params.k, params.reporting)
    return release_stable(data, system, wanted, solved, partial(summarize_diagnostics, params))


def _bases(summed: Flows, params: AtgDualParams, system: RegionSpace) -> Iterator[tuple[float, BoxSpace]]:
    """Build the boxes of each target volume from the flows of all time steps of a class together."""
    matrix = Matrix.of(summed, 0, system)
    targets = target_volumes(params.k, matrix.total) if isinstance(params.v_target, str) else [float(params.v_target)]
    for target in targets:
        yield target, BoxSpace.of_origins(matrix, origins_near(matrix, target), params.k)


def _best(candidates: Iterable[tuple[float, BoxSpace]], params: AtgDualParams) -> StepSolution:
    """Find the best destinations over the time steps of a class, for the best target volume."""
    wanted: Literal["auto"] | float = "auto" if isinstance(params.v_target, str) else params.v_target
    targets = Targets(wanted, params.k, partial(BoxSpace.of_origins, k=params.k), partial(_attempt, params))
    target, boxes, best = targets.best(candidates)
    choice, facts = _finish(params, boxes, best)
    return boxes.outcome(choice, target, *facts, left=params.aggregate_small)


def time_groups(params: AtgDualParams, starts: Ints, tz: str) -> Ints:
    """Return what time steps are solved together: classes that share areas."""
    return step_classes(starts, tz, params.stable_by) if params.time_partition == "stable" else starts


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
    time_groups=time_groups,
    needs_person_ids=True,
    check_data=check_tree,
    aliases=("ATG-Dual",),
)
