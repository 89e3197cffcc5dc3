"""Intervals of time that fit the flows: boxes over origin, destination and time, window by window, and their release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from crowdveil import engine
from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.intervals import Intervals
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, FlowRelease
from crowdveil.progress import Progress
from crowdveil.solve.od.refinement import ChosenBoxes, CutRows, Refinement
from crowdveil.solve.od.small_flows import Left, Reporting
from crowdveil.solve.od.step_solver import (
    areas_of_solutions,
    check_person_ids,
    finish_release,
    summarize_figures,
    suppressed_volumes,
)
from crowdveil.solve.od.targets import summarize_gaps
from crowdveil.solve.od.time_boxes import WINDOW_SUPPRESSED, AdaptiveProblem, TimeBoxSpace, WindowSolution

_BOX, _LEFT = slice(0, 6), slice(6, 10)
"""Columns of a solution: published boxes, and the rest."""


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

    def solve(window: int) -> WindowSolution:
        try:
            return solve_window(problem, wanted, window, near)
        except InputError as error:
            raise InputError(f"window {window + 1:,} of {len(problem.windows):,}: {error.text}") from None

    done = engine.current().map(solve, len(problem.windows), progress)
    return _release(problem, wanted, [WindowSolution(*arrays) for arrays in done])


def solve_window(
    problem: AdaptiveProblem, wanted: AdaptiveRelease, window: int, near: Fraction | None = None
) -> WindowSolution:
    """Find the best boxes of a window within its budget; the search for the multiplier begins at `near`."""
    space = problem.space(window)
    if space is None:
        return WINDOW_SUPPRESSED
    if wanted.refinement is not None:
        return _refined(problem, wanted, window, space, wanted.refinement)
    choice, gaps, _ = space.solve(wanted.max_suppressed(space.total), near)
    return space.solution(choice, gaps, left=wanted.reporting.wanted)


def _refined(
    problem: AdaptiveProblem, wanted: AdaptiveRelease, window: int, space: TimeBoxSpace, refinement: Refinement
) -> WindowSolution:
    """Find the best boxes of a window, and cut them again in space; pieces have the interval of their box."""
    windows, left = problem.windows, wanted.reporting.wanted
    slots = np.full(problem.data.steps, -1, np.int64)
    slots[windows.step[windows.step >= 0]] = np.flatnonzero(windows.step >= 0)
    low, high = windows.steps_of(int(windows.offsets[window]), int(windows.offsets[window + 1]))
    rows = CutRows.of(problem.data, low, high, slots=slots)

    def chosen(choice: Ints) -> ChosenBoxes:
        found = space.solution(choice, (0.0, 0.0), left=left)
        return ChosenBoxes(
            found.origin, found.destination, found.first, found.last, found.left_origin, found.left_destination,
            found.left_first, found.left_last, int(found.volume.sum()),
        )  # fmt: skip

    cut, facts = refinement.solve(space, wanted.max_suppressed(space.total), rows, chosen, left=left)
    return WindowSolution(*cut[:10], facts, *cut[10:])


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


def _release(problem: AdaptiveProblem, wanted: AdaptiveRelease, done: list[WindowSolution]) -> FlowRelease:
    """Make one release of the boxes of all windows."""
    data, windows = problem.data, problem.windows
    done = [_in_order_of_time(solution) for solution in done]
    o, d, first, last, volume, people = _columns(done, _BOX)
    left_o, left_d, left_first, left_last = _columns(done, _LEFT)
    areas, (origin, destination), (left_origin, left_destination) = areas_of_solutions(
        data, problem.system, done, (o, d), (left_o, left_d)
    )
    figures = _figures(done)
    release = FlowRelease(
        areas,
        windows.start[windows.offsets[:-1]],
        np.cumsum([0, *(len(solution.origin) for solution in done)]),
        origin.astype(np.int32),
        destination.astype(np.int32),
        volume,
        people,
        np.full(len(o), PUBLISHED, np.uint8),
        np.full(len(windows), NOT_GIVEN),
        data.k_unit,
        data.step_s,
        data.tz,
        facts=summarize_figures(figures, lambda facts: summarize_gaps(facts[:, 0], facts[:, 1])),
        figures=figures,
        intervals=Intervals(windows.start, windows.end, windows.offsets, first, last),
    )
    offsets = np.cumsum([0, *(len(solution.left_origin) for solution in done)])
    left = Left(offsets, left_origin, left_destination, left_first, left_last)
    return finish_release(data, release, left, problem.k, wanted.reporting)


def _in_order_of_time(solution: WindowSolution) -> WindowSolution:
    """Return the solution with its boxes by start and end."""
    order = np.lexsort((solution.last, solution.first))
    columns: Any = (column[order] for column in solution[_BOX])
    return solution._replace(**dict(zip(WindowSolution._fields[_BOX], columns, strict=True)))


def _columns(done: list[WindowSolution], which: slice) -> list[Ints]:
    columns: Any = zip(WINDOW_SUPPRESSED[which], *(solution[which] for solution in done), strict=True)
    return [np.concatenate(column) for column in columns]


def _figures(done: list[WindowSolution]) -> Floats | None:
    """Return the facts of all windows, a row each; NaN where a window has none."""
    if not any(len(solution.facts) for solution in done):
        return None
    return np.array([solution.facts if len(solution.facts) else [np.nan, np.nan] for solution in done])


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
