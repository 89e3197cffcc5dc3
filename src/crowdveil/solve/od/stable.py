"""One partition for all time steps of a class: the boxes that cost least over all of them, within one budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from crowdveil import engine
from crowdveil.engine.progress import Progress
from crowdveil.kernels.od.structures import BoxArrays
from crowdveil.kernels.od.time_boxes import fill_step
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Ints, Mask, frozen, row_slices
from crowdveil.model.flows import Flows
from crowdveil.model.partition import BoxPartition
from crowdveil.model.release import FlowRelease
from crowdveil.model.time_axis import StepClass
from crowdveil.solve.od.box_building import box_deviations, build_given_origins, build_matrix_boxes, lost_cost_of
from crowdveil.solve.od.boxes import BoxSpace, check_exact
from crowdveil.solve.od.fixed_boxes import release_fixed_boxes
from crowdveil.solve.od.refinement import CutRows, Refinement
from crowdveil.solve.od.region_space import Objective, RegionSpace
from crowdveil.solve.od.small_flows import Reporting
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import (
    ALL_SUPPRESSED,
    StepSolution,
    areas_of_solutions,
    check_person_ids,
    figures_of_steps,
    summarize_figures,
)
from crowdveil.solve.od.targets import summarize_gaps

MAX_CHUNKS = 16
"""Chunks of time steps whose sums are held at the same time."""
_NONE = np.zeros(0, np.int64)


class StepSums(NamedTuple):
    """Trips that each box publishes over some time steps, and what they cost."""

    volume: Ints
    cost: Ints


@dataclass(frozen=True)
class StableProblem:
    """The problem of finding one partition for all time steps.

    Attributes
    ----------
    data
        Flows of all time steps.
    system
        The regions that boxes are made of.
    k
        Smallest crowd.
    objective
        The quantity to minimize.
    max_suppressed
        From the volume of the time steps with at least k people, the trips of it that may be suppressed.
    refinement
        How boxes are cut again; None where they are not.
    """

    data: Flows
    system: RegionSpace
    k: int
    objective: Objective
    max_suppressed: Callable[[int], int]
    refinement: Refinement | None = None

    def base(self) -> BoxSpace:
        """Return the boxes of the summed matrix: every box that reaches k in any time step is one of them."""
        if self.objective == "reconstruction":
            check_exact(3 * lost_cost_of(self.objective) * self.data.total)
        return BoxSpace.of(sum_steps(self.data), 0, self.system, self.k)

    def add_up(self, base: BoxSpace, steps: Ints) -> StepSums:
        """Add up the published trips of each box in some time steps, and their cost."""
        regions = len(self.system.destinations.cost)
        keys = base.origin * regions + base.destination
        order = np.argsort(keys)
        total, cost = np.zeros(len(base), np.int64), np.zeros(len(base), np.int64)
        volume, cells = np.empty(len(base), np.int64), np.empty(len(base), np.int64)
        for step in steps.tolist():
            if self.data.people_in_step(step) < self.k:
                continue
            matrix = Matrix.of(self.data, step, base.system)
            built = (
                build_matrix_boxes(matrix, self.k)
                if base.given is None
                else build_given_origins(matrix, base.given, self.k)
            )
            boxes = built.boxes
            listed = order[np.searchsorted(keys, boxes.origin * regions + boxes.destination, sorter=order)]
            fill_step(frozen(listed, np.int64), boxes, base.splits, volume, cells)
            total += volume
            if self.objective == "reconstruction":
                published = np.flatnonzero(volume)
                columns = base.origin, base.destination, volume, volume, cells
                some = BoxArrays(*(frozen(column[published], np.int64) for column in columns))
                cost[published] += box_deviations(matrix, some)
        if self.objective != "reconstruction":
            sides = self.system.origins.cost[base.origin] + self.system.destinations.cost[base.destination]
            cost = sides * total
        return StepSums(total, cost)

    def space(self, base: BoxSpace, sums: StepSums) -> BoxSpace:
        """Return the boxes with costs and volumes over all time steps.

        A box that is published whole still suppresses its time steps below k. Counted from there, a split suppresses what the
        box publishes and its parts do not; so the volume of a box is what it publishes, and all else is as for one time step.
        """
        splits = base.splits
        of_split = row_slices(splits.offsets)
        linked = (
            np.add.reduceat(np.append(sums.volume[splits.link], 0), splits.link_offsets[:-1])
            if len(of_split)
            else _NONE
        )
        linked = np.where(np.diff(splits.link_offsets) > 0, linked, 0)
        lost = sums.volume[of_split] - linked
        total, lost_cost = int(sums.volume[-1]), lost_cost_of(self.objective)
        return replace(
            base,
            volume=frozen(sums.volume, np.int64),
            cost=frozen(sums.cost, np.int64),
            splits=splits._replace(lost=frozen(lost, np.int64)),
            total=total,
            lost_cost=lost_cost,
        )

    def solve(self, base: BoxSpace, sums: StepSums, *, left: bool) -> StepSolution:
        """Find the best boxes for all time steps within the budget."""
        if not sums.volume[-1]:
            return ALL_SUPPRESSED
        space = self.space(base, sums)
        budget = self.max_suppressed(space.total)
        if self.refinement is not None:
            return self._refined(space, budget, self.refinement, left=left)
        choice, gaps, published = space.solve(budget)
        return space.outcome(choice, *gaps, left=left, published=published)

    def _refined(self, space: BoxSpace, budget: int, refinement: Refinement, *, left: bool) -> StepSolution:
        """Find the best boxes for all time steps, and cut them again; a side is published in the steps where it has k people."""
        steps = self.data.steps

        def chosen(choice: Ints) -> StepSolution:
            return space.outcome(choice, left=left).during(0, steps)

        rows = CutRows.of(self.data, 0, steps, by_step=True)
        return replace(refinement, by_step=True).solve(space, budget, rows, chosen, left=left)


class StableRelease(NamedTuple):
    """How a release with one partition for each class of time steps is made: the class of each step, k, and small flows."""

    by: StepClass
    step_class: Ints
    k: int
    reporting: Reporting


def solve_stable(problem: StableProblem, wanted: StableRelease, progress: Progress) -> FlowRelease:
    """Find one partition for each class of time steps, and publish its boxes in the steps in which they reach k."""
    check_person_ids(problem.data)
    classes = np.unique(wanted.step_class)
    solved = (
        _solve_one(problem, wanted, progress) if len(classes) <= 1 else _solve_each(problem, wanted, classes, progress)
    )
    return release_stable(
        problem.data, problem.system, wanted, solved, lambda gaps: summarize_gaps(gaps[:, 0], gaps[:, 1])
    )


def release_stable(
    data: Flows,
    system: RegionSpace,
    wanted: StableRelease,
    solved: list[StepSolution],
    summarize: Callable[[Floats], dict[str, Any]],
) -> FlowRelease:
    """Publish the boxes of each class of time steps, in order of the classes, in the steps in which they reach k.

    The figures of a class are those of its first time step.
    """
    classes, first = np.unique(wanted.step_class, return_index=True)
    areas, of_published, of_left = areas_of_solutions(data, system, solved)
    partition, publishable = _join(solved, classes, wanted.by, areas, of_published, of_left)
    release = release_fixed_boxes(data, partition, wanted.step_class, wanted.k, wanted.reporting, publishable)
    figures = figures_of_steps(solved, first, len(wanted.step_class))
    return replace(release, facts=summarize_figures(figures, summarize), figures=figures)


def _solve_one(problem: StableProblem, wanted: StableRelease, progress: Progress) -> list[StepSolution]:
    """Solve all time steps as one class; their sums are made in chunks on the engine in use."""
    if len(problem.data) == 0:
        return [ALL_SUPPRESSED]
    base = problem.base()
    if len(base) == 0:
        return [ALL_SUPPRESSED]
    chunks = np.array_split(np.arange(problem.data.steps), min(MAX_CHUNKS, problem.data.steps))
    done = engine.current().map(lambda i: problem.add_up(base, chunks[i]), len(chunks), progress)
    sums = StepSums(*(np.sum([part[i] for part in done], axis=0) for i in range(2)))
    return [problem.solve(base, sums, left=wanted.reporting.wanted)]


def _solve_each(
    problem: StableProblem, wanted: StableRelease, classes: Ints, progress: Progress
) -> list[StepSolution]:  # fmt: skip
    """Solve each class of time steps on its own, on the engine in use."""

    def solve(number: int) -> StepSolution:
        steps = np.flatnonzero(wanted.step_class == classes[number])
        own = replace(problem, data=problem.data.at_steps(steps))
        base = own.base() if len(own.data) else None
        if base is None or len(base) == 0:
            return ALL_SUPPRESSED
        sums = own.add_up(base, np.arange(len(steps)))
        return own.solve(base, sums, left=wanted.reporting.wanted)

    return [StepSolution(*arrays) for arrays in engine.current().map(solve, len(classes), progress)]


def _join(
    solved: list[StepSolution],
    classes: Ints,
    by: StepClass,
    areas: Areas,
    published: tuple[Ints, Ints],
    left: tuple[Ints, Ints],
) -> tuple[BoxPartition, Mask]:
    """Return the boxes of all classes, and which of them may be published."""
    counts = [(len(s.origin), len(s.left_origin)) for s in solved]
    p_offsets, l_offsets = (np.cumsum([0, *(c[i] for c in counts)]) for i in range(2))
    many = np.arange(len(counts))
    total = p_offsets[-1]
    # Boxes of a class side by side: first those that may be published, then the rest of the map.
    order = np.concatenate([
        _NONE, *(part for i in many for part in (np.arange(p_offsets[i], p_offsets[i + 1]),
                                                 total + np.arange(l_offsets[i], l_offsets[i + 1])))
    ])  # fmt: skip
    origin, destination = (np.concatenate([p, q])[order] for p, q in zip(published, left, strict=True))
    offsets = (p_offsets + l_offsets)[: len(classes) + 1] if len(classes) else np.zeros(1, np.int64)
    partition = BoxPartition(areas, by, classes, offsets, origin.astype(np.int32), destination.astype(np.int32))
    return partition, order < total


def sum_steps(data: Flows) -> Flows:
    """Return the flows of all time steps as those of one."""
    n = len(data.zones)
    keys, cell = np.unique(data.origin.astype(np.int64) * n + data.destination, return_inverse=True)
    volume = np.zeros(len(keys), np.int64)
    np.add.at(volume, cell, data.volume)
    people, offsets, ids = volume, None, None
    if data.person_ids is not None and data.person_offsets is not None:
        span = int(data.person_ids.max(initial=0)) + 1
        pairs = np.unique(cell[row_slices(data.person_offsets)] * span + data.person_ids)
        ids, offsets = pairs % span, np.searchsorted(pairs // span, np.arange(len(keys) + 1))
        people = np.diff(offsets)
    elif data.k_unit == "trips":
        people = np.zeros(len(keys), np.int64)
        np.add.at(people, cell, data.people)
    return replace(
        data, t=np.zeros(1, np.int64), offsets=np.array([0, len(keys)]), origin=(keys // max(n, 1)).astype(np.int32),
        destination=(keys % max(n, 1)).astype(np.int32), volume=volume, people=people, person_offsets=offsets, person_ids=ids,
        weight=None if data.weight is None else np.zeros(len(keys), np.int64), distinct_people=None,
    )  # fmt: skip
