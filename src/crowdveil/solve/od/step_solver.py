"""Solving all matrices of a data set: each time step on its own, and one release of the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdveil import engine
from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, TimeStepError
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Indices, Ints, slice_sums
from crowdveil.model.flows import Flows
from crowdveil.model.intervals import Intervals
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, FlowRelease
from crowdveil.solve.od.assignment import row_of_flows, sums_in_windows, trips_in_windows, windows_of_steps
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.small_flows import Left, Reporting, aggregate_small
from crowdveil.solve.od.weights import with_exact_volumes

_INTS = np.zeros(0, np.int64)
NO_BOXES: tuple[Ints, Ints] = (_INTS, _INTS)


class StepSolution(NamedTuple):
    """The solution of a time step, of a window, or of a class of time steps with the same boxes.

    Attributes
    ----------
    origin, destination, volume, crowd
        Regions, trips and crowd of the boxes that are published.
    left_origin, left_destination
        Regions of the boxes that are not; empty unless small volumes are reported.
    facts
        Numbers about the solution, which each method defines.
    area_offsets, area_tiles
        Tiles of the areas that boxes are made of, where they are not regions of the system: origins and destinations are then
        positions in this list.
    first, last, left_first, left_last
        Slots of the boxes, half-open, of those that are published and of the others; empty where all are of the same time.
    """

    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints
    left_origin: Ints
    left_destination: Ints
    facts: Floats
    area_offsets: Ints = _INTS
    area_tiles: Ints = _INTS
    first: Ints = _INTS
    last: Ints = _INTS
    left_first: Ints = _INTS
    left_last: Ints = _INTS

    def during(self, first: int, last: int) -> StepSolution:
        """Return the solution with the same slots for all boxes."""
        own, left = np.zeros(len(self.origin), np.int64), np.zeros(len(self.left_origin), np.int64)
        return self._replace(first=own + first, last=own + last, left_first=left + first, left_last=left + last)


ALL_SUPPRESSED = StepSolution(_INTS, _INTS, _INTS, _INTS, _INTS, _INTS, np.zeros(0))
"""A time step, or another part of the data, that is fully suppressed."""


@dataclass(frozen=True)
class StepRange:
    """How the time steps of a data set are solved.

    Attributes
    ----------
    k
        Smallest crowd.
    system
        Makes the regions, once for all steps.
    solver
        Makes the function that solves a step from the regions.
    reporting
        How small volumes are treated.
    summarize
        From the facts of all steps that have any, one row each, what the manifest says of them.
    """

    k: int
    system: Callable[[], RegionSpace]
    solver: Callable[[RegionSpace], Callable[[int], StepSolution]]
    reporting: Reporting
    summarize: Callable[[Floats], dict[str, Any]]


def solve_steps(data: Flows, steps: StepRange, progress: Progress) -> FlowRelease:
    """Solve every time step on its own, on the engine in use, and put the results together."""
    check_person_ids(data)
    if len(data) == 0:
        return join_solutions(data, steps, [ALL_SUPPRESSED] * data.steps, None)
    system = steps.system()
    solve_step = steps.solver(system)

    def solve(step: int) -> StepSolution:
        if data.people_in_step(step) < steps.k:
            return ALL_SUPPRESSED
        try:
            return solve_step(step)
        except InputError as error:
            raise TimeStepError(step + 1, data.steps, error.text) from None

    done = engine.current().map(solve, data.steps, progress)
    return join_solutions(data, steps, [StepSolution(*arrays) for arrays in done], system)


def check_person_ids(data: Flows) -> None:
    """Raise unless people of different flows can be distinguished, where k counts people."""
    if data.k_unit == "people" and data.person_ids is None and len(data):
        raise InputError(
            "people of different flows cannot be added up. Give trips with a column of users, not flows (in Python, read "
            "them with members=True)."
        )


def join_solutions(
    data: Flows,
    steps: StepRange,
    done: list[StepSolution],
    system: RegionSpace | None,
    intervals: Callable[[Ints, Ints], Intervals] | None = None,
) -> FlowRelease:
    """Make one release of the boxes of all steps; or of all windows, with what makes `intervals` of the slots of boxes."""
    volume, people, first, last, left_first, left_last = _columns(
        done, "volume", "crowd", "first", "last", "left_first", "left_last"
    )
    areas, (origin, destination), (left_origin, left_destination) = areas_of_solutions(data, system, done)
    figures = figures_of_steps(done, range(len(done)), len(done))
    release = published_rows(
        data,
        areas,
        _offsets(done, "origin"),
        origin,
        destination,
        volume,
        people,
        facts=summarize_figures(figures, steps.summarize),
        figures=figures,
        intervals=None if intervals is None else intervals(first, last),
    )
    left_times = (None, None) if intervals is None else (left_first, left_last)
    left = Left(_offsets(done, "left_origin"), left_origin, left_destination, *left_times)
    return finish_release(data, release, left, steps.k, steps.reporting)


def _columns(done: Sequence[StepSolution], *names: str) -> list[Ints]:
    """Return columns of all solutions, one after the other."""
    return [np.concatenate([_INTS, *(getattr(outcome, name) for outcome in done)]) for name in names]


def _offsets(done: Sequence[StepSolution], name: str) -> Ints:
    """Return where each solution begins in such a column."""
    return np.cumsum([0, *(len(getattr(outcome, name)) for outcome in done)])


def published_rows(
    data: Flows,
    areas: Areas,
    offsets: Ints,
    origin: Ints | Indices,
    destination: Ints | Indices,
    volume: Ints,
    people: Ints,
    *,
    facts: Mapping[str, Any] | None = None,
    figures: Floats | None = None,
    intervals: Intervals | None = None,
) -> FlowRelease:
    """Return a release of published rows, by the time steps of the data or by windows; suppressed totals are not given yet."""
    t = data.t if intervals is None else intervals.window_start
    return FlowRelease(
        areas,
        t,
        offsets,
        origin.astype(np.int32),
        destination.astype(np.int32),
        volume,
        people,
        np.full(len(volume), PUBLISHED, np.uint8),
        np.full(len(t), NOT_GIVEN),
        data.k_unit,
        data.step_s,
        data.tz,
        facts or {},
        figures,
        intervals,
    )


def figures_of_steps(done: Sequence[StepSolution], step: Iterable[int], steps: int) -> Floats | None:
    """Return the facts of solutions in the rows of their time steps; NaN in rows without any, None where no solution has any."""
    width = max((len(outcome.facts) for outcome in done), default=0)
    if width == 0:
        return None
    figures = np.full((steps, width), np.nan)
    for row, outcome in zip(step, done, strict=True):
        if len(outcome.facts):
            figures[row] = outcome.facts
    return figures


def summarize_figures(figures: Floats | None, summarize: Callable[[Floats], dict[str, Any]]) -> dict[str, Any]:
    """Summarize the figures of all steps for the manifest, in their order; nothing where no step has any."""
    if figures is None:
        return {}
    of_steps = figures[~np.isnan(figures[:, 0])]
    return summarize(of_steps) if len(of_steps) else {}


def finish_release(data: Flows, release: FlowRelease, left: Left, k: int, reporting: Reporting) -> FlowRelease:
    """Complete a release: aggregate small flows if wanted, and count suppressed trips in each step."""
    if reporting.wanted:
        release = aggregate_small(release, data, left, k, reporting)
    release = with_exact_volumes(data, release).without_empty_rows()
    return release.with_suppressed(suppressed_volumes(data, release, k)).without_unused_areas()


def suppressed_volumes(data: Flows, release: FlowRelease, k: int) -> Ints:
    """Return the suppressed volume of each step or window where at least k people certainly made it."""
    window = windows_of_steps(data, release)
    volume = trips_in_windows(data, release) - slice_sums(release.offsets, release.volume)
    if data.k_unit == "people":
        return data.suppressed_totals(row_of_flows(data, release) < 0, volume, k, NOT_GIVEN, window)
    people = sums_in_windows(window, data.people_by_step, len(release.t))
    crowd = people - slice_sums(release.offsets, release.people)
    return np.where((volume == 0) | (np.minimum(volume, crowd) >= k), volume, NOT_GIVEN)


def areas_of_solutions(
    data: Flows, system: RegionSpace | None, done: Sequence[StepSolution]
) -> tuple[Areas, tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Return the areas of the boxes of solutions, regions or areas of their own, and which ones each box has.

    Those of published boxes, then those of the others.
    """
    o, d, left_o, left_d = _columns(done, "origin", "destination", "left_origin", "left_destination")
    if any(len(outcome.area_offsets) for outcome in done):
        return _own_areas(data, done, (o, d), (left_o, left_d))
    return areas_of_boxes(data, system, (o, d), (left_o, left_d))


def _own_areas(
    data: Flows, done: Sequence[StepSolution], published: tuple[Ints, Ints], left: tuple[Ints, Ints]
) -> tuple[Areas, tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Return the areas of boxes that each step has made its own areas for, and which ones each of them has."""
    tiles = [
        outcome.area_tiles[low:high].astype(np.int32)
        for outcome in done
        for low, high in pairwise(outcome.area_offsets)
    ]
    areas, number = Areas.of_sets(data.zones, tiles)
    first = np.cumsum([0, *(max(len(outcome.area_offsets) - 1, 0) for outcome in done)])[:-1]

    def numbered(sides: tuple[Ints, Ints], name: str) -> tuple[Ints, Ints]:
        before = np.repeat(first, np.diff(_offsets(done, name)))
        return number[sides[0] + before], number[sides[1] + before]

    return areas, numbered(published, "origin"), numbered(left, "left_origin")


def areas_of_boxes(
    data: Flows, system: RegionSpace | None, *boxes: tuple[Ints, Ints]
) -> tuple[Areas, tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Return the areas of all boxes, and which ones each of them has."""
    o, d = (np.concatenate(side) if len(side[-1]) else side[0] for side in zip(*boxes, strict=True))
    cut = len(boxes[0][0])
    if system is None:
        areas, froms, tos = Areas.of_tiles(data.zones, np.zeros(0, np.int32)), o, d
    elif system.origins is system.destinations:
        used = _different(len(system.origins.regions), o, d)
        areas, (area,) = Areas.of_nodes(data.zones, [(system.origins.regions, used)])
        froms, tos = _numbered(o, used, area), _numbered(d, used, area)
    else:
        starts, ends = _different(len(system.origins.regions), o), _different(len(system.destinations.regions), d)
        nodes = [(system.origins.regions, starts), (system.destinations.regions, ends)]
        areas, (from_area, to_area) = Areas.of_nodes(data.zones, nodes)
        froms, tos = _numbered(o, starts, from_area), _numbered(d, ends, to_area)
    return areas, (froms[:cut], tos[:cut]), (froms[cut:], tos[cut:])


def _different(regions: int, *lists: Ints) -> Ints:
    """Return the regions in lists, each once, rising; there are as many in all."""
    present = np.zeros(regions, np.bool_)
    for listed in lists:
        present[listed] = True
    return np.flatnonzero(present)


def _numbered(listed: Ints, used: Ints, area: Ints) -> Ints:
    """Return the area of each region in a list, from those of different ones, rising."""
    of_region = np.zeros(int(used.max(initial=-1)) + 1, area.dtype)
    of_region[used] = area
    found: Ints = of_region[listed]
    return found
