"""Generalize origins and destinations together, as little as k and a budget of suppressed trips allow.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step. SuppressionBudget: in each time step at most
the given share (or number) of trips is suppressed; where no split helps, one flow from the whole map to the whole map
remains. A time step with fewer than k people in all is suppressed whole. MinTiles, MaxArea, where
requested: published areas have at least this number of tiles, or of tiles that count, and at most this number of square
kilometers. With a largest area the budget may be impossible to keep: the run then stops and gives the smallest budget. With
`time_partition = stable` the budget is for all time steps together, or for those of each class in `stable_by`; time steps with
fewer than k people in all do not count. With `time_partition = adaptive` a row has an interval of time, rows are disjoint in
origin, destination and time, people in several time steps of a row count once, and the budget is for each day; intervals of
the longest length with fewer than k people in all do not count.

Assumptions
-----------
The column of users names people. Without it k counts trips.

Notes
-----
A box is a pair of nodes, one of the tree of origins and one of the tree of destinations. A partition starts from the box
of all tiles and splits any box into the children of its origin or of its destination, again and again; every
partition that fixes origins first, as ATG does, is one of these. For a multiplier of suppressed trips the best partition is
found exactly, by dynamic programming over the boxes that reach k. The multiplier is then searched in exact fractions, and the
solution that keeps the budget is taken; the rest of the budget is spent on the splits that gain most for each trip. A multiplier
reaches corners of the curve of costs only, which matters on small matrices: partitions between two corners are then searched
exactly, where that takes few states. People in several flows of a box count once.

With `splits = dyadic` areas are rectangles instead of nodes: tiles are ranked by x and by y (a grid is used unchanged), each
axis is halved again and again, and a box has four splits. That is finer than any tree, and takes longer. Where boxes would take
more than 1 GiB, areas of few tiles are halved in one direction only, as in a tree, for that time step.

The objective `reconstruction` minimizes the error of cells: the sum over the cells of a box of the distance between their volume
and the mean of the box, which is the error of a user who spreads the volume evenly; a suppressed trip counts as one. It counts
in thousandths of a trip, and suppresses less than the budget where that is better.

With `time_partition = stable` all time steps, or all those of one hour of the day, hour of the week or type of day (`stable_by`),
have the same areas and can be compared; rows are published in the time steps in which they reach k. The costs of a box
add up over time steps, and so do the trips that it suppresses where it is below k: the best such partition is found in the same
way. It is coarser than one partition for each time step. The method `fixed` applies it to later data.

With `time_partition = adaptive` a box is an origin, a destination and an interval of time, and can also be split by time.
Intervals are those of the calendar: time steps, 2 and 4 hours, half a day, a day. A trip of a box costs its tiles, and
`hour_weight` tiles for each hour after the first; the objective `reconstruction` counts the error of the cells of all time
steps, and needs no weight. So hours in which few travel are joined where that makes areas smaller. `longest` limits intervals.
Days are solved on their own, so memory is that of one day. As with areas, that an interval is published and not a part of
it shows that more than one of its parts has trips. Where every interval is one time step the release is as with `steps`.
Weights of trips are rounded over each day, not in each time step, and their rows always have intervals.

With `splits = free` the boxes of the best dyadic partition are cut again, at any tile boundary in x or y of their origins or
destinations; areas are then any tiles of a rectangle, named after their tiles. Strips without trips are cut off an area, and
strips with fewer than k people within the budget, of which the partition then leaves a fifth: the cut that gains most for each
suppressed trip comes first. The result never costs more than with dyadic splits. The positions of zones must be known.

With `time_partition = adaptive` a box is cut in space alone: both sides keep its interval and k people in it. With `stable` all
time steps have the same cuts. One side must have k people in at least one time step; a side is published in those in which it
has them, and is suppressed in the others, within the budget. Flows that are suppressed in a time
step influence no cut and no area, other than by being below k.

What cuts reveal: a row is still made by k people, and which of the pairs outside all rows are empty stays unknown, since empty
strips and strips below k are cut off alike. But the place of a cut depends on the trips inside a row: every outer strip of an
area has at least one trip of the row (as for the bounding boxes of Glove and Mondrian). With `stable` such a trip is in at least
one of the time steps in which the row is published, and it is unknown in which. Choose `dyadic` where that is too much.

An upper bound of the gap between the result and the best partition within the budget is published, over all matrices, and also
the gap before the search between corners. The former is 0 where that search was finished. With free splits the result is
compared with the best partition without cuts, and the gap is 0 where it is cheaper than any of those. Gaps are rounded up to 1,
2 or 5 · 10ⁿ per cent.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(the generalization error, the multiplier and the search for it); the joint recurrence is our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil import guarantees as library
from crowdveil.engine.progress import Progress
from crowdveil.errors import Option
from crowdveil.guarantees import Guarantee
from crowdveil.methods.base import INDEPENDENT, Facts, Method, Run
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.model.time_axis import TimeUnits, step_classes
from crowdveil.params import AdaptiveInTime, Budgeted, SizedAreas
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.refinement import Refinement
from crowdveil.solve.od.region_space import (
    Objective,
    RegionExtent,
    RegionSpace,
    check_outlines,
    check_positions,
    check_tree,
    mean_tile_area,
)
from crowdveil.solve.od.stable import StableProblem, StableRelease, solve_stable
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepRange, StepSolution, solve_steps
from crowdveil.solve.od.targets import as_figure, summarize_gaps
from crowdveil.solve.od.time_boxes import AdaptiveProblem, AdaptiveRelease, as_steps, solve_adaptive
from crowdveil.solve.od.time_tree import checked_step, time_windows
from crowdveil.solve.od.weights import rounded_in_windows


class JointParams(AdaptiveInTime, Budgeted, SizedAreas):
    """Parameters of joint generalization."""

    splits: Literal["tree", "dyadic", "free"] = "tree"
    """Areas are nodes of a tree; or rectangles that are halved in either direction, which is finer; or rectangles that are cut
    again at any tile boundary, and trimmed. Then the outer strips of an area are known not to be empty."""
    objective: Objective = "generalization"
    """Objective to minimize: tiles of origin and destination, or their area, each weighted by trips; or the error of cells."""
    max_area_km2: float | None = Field(None, gt=0, title="Largest area")
    """Largest area of a published origin or destination."""

    @property
    def extent(self) -> RegionExtent:
        """Return the limits of the size of published areas."""
        return replace(super().extent, most_km2=self.max_area_km2)


def run(data: Flows, params: JointParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Find the best partition of each time step or day into boxes, or the best one for all time steps."""
    if params.time_partition == "stable" and len(data):
        return _run_stable(data, params, progress)
    if params.time_partition == "adaptive" and len(data):
        return as_steps(data, _run_adaptive(data, params, progress), params.k)
    refinement = _refinement(data, params)

    def solver(system: RegionSpace) -> Callable[[int], StepSolution]:
        def solve(step: int) -> StepSolution:
            boxes = BoxSpace.of(data, step, system, params.k, params.objective)
            if len(boxes) == 0:
                return ALL_SUPPRESSED
            budget = params.max_suppressed(boxes.total)
            if refinement is not None:
                return refinement.solve_step(data, step, boxes, budget, left=params.aggregate_small)
            best = boxes.solve_for_budget(budget)
            choice, gaps, published = boxes.improve(best, budget)
            figures = (*gaps, as_figure(best.multiplier))
            return boxes.outcome(choice, *figures, left=params.aggregate_small, published=published)

        return solve

    summarize = partial(summarize_diagnostics, params)
    steps = StepRange(params.k, partial(_regions, data, params), solver, params.reporting, summarize)
    return solve_steps(data, steps, progress)


def _regions(data: Flows, params: JointParams) -> RegionSpace:
    """Make the regions that boxes consist of."""
    make = RegionSpace.trees if params.splits == "tree" else RegionSpace.rectangles
    return make(data, params.objective, params.extent)


def _refinement(data: Flows, params: JointParams) -> Refinement | None:
    """Return how boxes are cut again; None where they are not."""
    if params.splits != "free" or len(data) == 0:
        return None
    return Refinement.of(data, params.k, params.extent, params.objective)


def _run_stable(data: Flows, params: JointParams, progress: Progress) -> FlowRelease:
    """Find the best partition for all time steps of each class."""
    classes = step_classes(data.t, data.tz, params.stable_by)
    system, refinement = _regions(data, params), _refinement(data, params)
    problem = StableProblem(data, system, params.k, params.objective, params.max_suppressed, refinement)
    return solve_stable(problem, StableRelease(params.stable_by, classes, params.k, params.reporting), progress)


def time_groups(params: JointParams, starts: Ints, tz: str) -> Ints:
    """Return what time steps are solved together: classes that share areas, or days of intervals."""
    if params.time_partition == "stable":
        return step_classes(starts, tz, params.stable_by)
    return TimeUnits(params.time_partition == "adaptive", tz).number(starts)


def in_partition(params: JointParams) -> Run | None:
    """Return what runs in a partition, where rows have intervals of time."""
    if params.time_partition != "adaptive":
        return None
    return lambda data, params, rng, progress: _run_adaptive(data, params, progress)


def _run_adaptive(data: Flows, params: JointParams, progress: Progress) -> FlowRelease:
    """Find the best partition of each day into boxes over origin, destination and time."""
    weight = Fraction(repr(params.hour_weight))
    if params.objective == "area":
        weight *= Fraction(mean_tile_area(data)).limit_denominator(100)
    windows = time_windows(data, params.longest_s, weight)
    data = rounded_in_windows(data, windows.of_steps(data.steps))
    problem = AdaptiveProblem(data, _regions(data, params), windows, params.k, params.objective)
    refinement = _refinement(data, params)
    if refinement is not None:
        refinement = refinement.with_time_weight(windows.step_weight)
    return solve_adaptive(problem, AdaptiveRelease(params.max_suppressed, params.reporting, refinement), progress)


def check_data(data: Flows, params: JointParams) -> None:
    """Raise unless there is a tree or positions of zones, outlines where areas are measured, and time steps for intervals."""
    if params.splits == "tree":
        check_tree(data, params)
    else:
        check_positions(data, params, "dyadic splits")
    if params.max_area_km2 is not None:
        check_outlines(data, Option("max_area_km2"))
    if params.objective == "area":
        check_outlines(data, Option("objective", "area"))
    if params.time_partition == "adaptive":
        checked_step(data.step_s)


def summarize_diagnostics(params: JointParams, facts: Floats) -> dict[str, Any]:
    """Return the gaps between the results and the optimum."""
    return summarize_gaps(facts[:, 0], facts[:, 1])


def guarantees(params: JointParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return the guarantees of flows, and those of the requested sizes of areas."""
    made = list(flow_guarantees(params, facts))
    if params.max_area_km2 is not None:
        made.append(library.MaxArea(km2=params.max_area_km2))
    return tuple(made)


METHOD = Method(
    "joint",
    takes=Flows,
    params=JointParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    summarize_diagnostics=summarize_diagnostics,
    figure_names=("gap", "gap-of-multiplier", "multiplier"),
    partitioning=INDEPENDENT,
    time_groups=time_groups,
    in_partition=in_partition,
    needs_person_ids=True,
    check_data=check_data,
)
