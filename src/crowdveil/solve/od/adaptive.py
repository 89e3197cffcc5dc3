"""Intervals of time that fit the flows: boxes over origin, destination and time, window by window, and their release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from crowdveil import engine
from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, FlowRelease
from crowdveil.solve.od.refinement import CutRows, Refinement
from crowdveil.solve.od.small_flows import Reporting
from crowdveil.solve.od.step_solver import (
    ALL_SUPPRESSED,
    StepRange,
    StepSolution,
    check_person_ids,
    join_solutions,
    suppressed_volumes,
)
from crowdveil.solve.od.targets import summarize_gaps
from crowdveil.solve.od.time_boxes import AdaptiveProblem, TimeBoxSpace


class AdaptiveRelease(NamedTuple):
    """How a release with intervals is made.

    How many trips of a volume may be suppressed, what becomes of small flows, and how boxes are cut again, if they are.
    """

    max_suppressed: Callable[[int], int]
    reporting: Reporting
    refinement: Refinement | None = None


def solve_adaptive(problem: AdaptiveProblem, wanted: AdaptiveRelease, progress: Progress) -> FlowRelease:
    """Solve every window on its own, on the engine in use, and make one release of the results; see `as_steps`."""
    check_person_ids(problem.data)
    begin_near = len(problem.windows) > 1 and wanted.refinement is None
    near = _multiplier_of_largest(problem, wanted) if begin_near else None

    def solve(window: int) -> StepSolution:
        try:
            return solve_window(problem, wanted, window, near)
        except InputError as error:
            raise InputError(f"window {window + 1:,} of {len(problem.windows):,}", error.text) from None

    done = engine.current().map(solve, len(problem.windows), progress)
    found = [_in_order_of_time(StepSolution(*arrays)) for arrays in done]
    steps = StepRange(problem.k, lambda: problem.system, lambda _: solve, wanted.reporting, _summarize)
    return join_solutions(problem.data, steps, found, problem.system, problem.windows.intervals)


def solve_window(
    problem: AdaptiveProblem, wanted: AdaptiveRelease, window: int, near: Fraction | None = None
) -> StepSolution:
    """Find the best boxes of a window within its budget; the search for the multiplier begins at `near`."""
    space = problem.space(window)
    if space is None:
        return ALL_SUPPRESSED
    if wanted.refinement is not None:
        return _refined(problem, wanted, window, space, wanted.refinement)
    choice, gaps, _ = space.solve(wanted.max_suppressed(space.total), near)
    return space.solution(choice, gaps, left=wanted.reporting.wanted)


def _refined(
    problem: AdaptiveProblem, wanted: AdaptiveRelease, window: int, space: TimeBoxSpace, refinement: Refinement
) -> StepSolution:
    """Find the best boxes of a window, and cut them again in space; pieces have the interval of their box."""
    windows, left = problem.windows, wanted.reporting.wanted
    slots = np.full(problem.data.steps, -1, np.int64)
    slots[windows.step[windows.step >= 0]] = np.flatnonzero(windows.step >= 0)
    low, high = windows.steps_of(int(windows.offsets[window]), int(windows.offsets[window + 1]))
    rows = CutRows.of(problem.data, low, high, slots=slots)

    def chosen(choice: Ints) -> StepSolution:
        return space.solution(choice, (0.0, 0.0), left=left)

    return refinement.solve(space, wanted.max_suppressed(space.total), rows, chosen, left=left)


def _multiplier_of_largest(problem: AdaptiveProblem, wanted: AdaptiveRelease) -> Fraction | None:
    """Return the multiplier of the window with most flows: the search begins there in all others, which have similar ones."""
    windows = problem.windows
    flows = []
    for tree in windows.trees:
        first, last = windows.steps_of(int(tree.first.min()), int(tree.last.max()))
        flows.append(int(problem.data.offsets[last] - problem.data.offsets[first]))
    try:
        space = problem.space(int(np.argmax(flows)))
        return None if space is None else space.solve_for_budget(wanted.max_suppressed(space.total)).multiplier
    except InputError:
        return None  # its own turn raises the error


def _summarize(facts: Floats) -> dict[str, Any]:
    return summarize_gaps(facts[:, 0], facts[:, 1])


def _in_order_of_time(solution: StepSolution) -> StepSolution:
    """Return the solution with its boxes by start and end."""
    order = np.lexsort((solution.last, solution.first))
    by_box = ("origin", "destination", "volume", "crowd", "first", "last")
    return solution._replace(**{name: getattr(solution, name)[order] for name in by_box})


def as_steps(data: Flows, release: FlowRelease, k: int) -> FlowRelease:
    """Return the release with rows by time step where each interval is one time step; unchanged otherwise.

    Trips with weights are rounded in each window, so that their rows keep their intervals.
    """
    held = release.intervals
    if held is None or data.weight is not None or np.any(held.steps > 1):
        return release
    step = np.searchsorted(data.t, held.t)
    order = np.argsort(step, kind="stable")
    columns = {name: getattr(release, name)[order] for name in ("origin", "destination", "volume", "people", "state")}
    by_step = replace(
        release, t=data.t, offsets=np.searchsorted(step[order], np.arange(data.steps + 1)), intervals=None, figures=None,
        suppressed=np.full(data.steps, NOT_GIVEN), **columns,
    )  # fmt: skip
    return by_step.with_suppressed(suppressed_volumes(data, by_step, k))
