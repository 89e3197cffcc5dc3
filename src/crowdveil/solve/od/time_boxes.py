"""Boxes over origin, destination and time that hold a crowd, the best partition of each window into them, and their release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from crowdveil import engine
from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError
from crowdveil.kernels.od.partition import published_boxes
from crowdveil.kernels.od.structures import ANY_CHOICE, BY_TIME, WHOLE, BoxArrays, Splits
from crowdveil.kernels.od.time_boxes import find_in_part, link_parts
from crowdveil.model.arrays import Floats, Ints, frozen, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, FlowRelease
from crowdveil.solve.od.box_building import box_deviations, build_matrix_boxes, lost_cost_of
from crowdveil.solve.od.boxes import BoxSpace, check_exact
from crowdveil.solve.od.refinement import CutRows, Refinement
from crowdveil.solve.od.region_space import Objective, RegionSpace
from crowdveil.solve.od.small_flows import Reporting
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import (
    ALL_SUPPRESSED,
    StepRange,
    StepSolution,
    check_person_ids,
    join_solutions,
    suppressed_volumes,
)
from crowdveil.solve.od.targets import summarize_gaps
from crowdveil.solve.od.time_tree import TimeTree, TimeWindows

_NONE = np.zeros(0, np.int64)
_NO_NODE = -1


@dataclass(frozen=True)
class AdaptiveProblem:
    """The problem of finding boxes with intervals of time.

    Attributes
    ----------
    data
        Flows of all time steps.
    system
        The regions that boxes are made of.
    windows
        The windows, and the intervals of each.
    k
        Smallest crowd.
    objective
        The quantity to minimize.
    """

    data: Flows
    system: RegionSpace
    windows: TimeWindows
    k: int
    objective: Objective

    def space(self, window: int) -> TimeBoxSpace | None:
        """Build the boxes of a window; None where no interval that may be published has k people."""
        tree, builder = self.windows.trees[window], _Builder(self, self.windows.trees[window])
        for node in range(len(tree)):
            builder.add(node)
        roots = [builder.nodes[node].number[-1] for node in tree.tops.tolist() if len(builder.nodes[node].number)]
        return builder.joined(np.array(roots, np.int64)) if roots else None


class _NodeBoxes(NamedTuple):
    """Boxes of an interval: keys of their regions in rising order, the box of each key, trips, and numbers among all boxes."""

    keys: Ints
    order: Ints
    volume: Ints
    number: Ints


_EMPTY = _NodeBoxes(_NONE, _NONE, _NONE, _NONE)


class _Builder:
    """Boxes of a window, interval after interval."""

    def __init__(self, problem: AdaptiveProblem, tree: TimeTree) -> None:
        self.problem, self.tree = problem, tree
        self.nodes: list[_NodeBoxes] = []
        self.boxes: list[tuple[Ints, ...]] = []
        self.splits: list[Splits] = []
        self.made = 0

    def add(self, node: int) -> None:
        """Add the boxes of an interval, once those of its parts are added."""
        problem, tree = self.problem, self.tree
        low, high = problem.windows.steps_of(int(tree.first[node]), int(tree.last[node]))
        parts = [self.nodes[c] for c in tree.parts(node).tolist()]
        with_boxes = [part for part in parts if len(part.number)]
        trips = [c for c in tree.parts(node).tolist() if problem.windows.steps_of(tree.first[c], tree.last[c])[1]]
        if low == high:
            self.nodes.append(_EMPTY)
            return
        if len(trips) == 1:  # no trips in any other part: each box has all of its trips in this one
            self.nodes.append(self.nodes[trips[0]])
            return
        matrix = Matrix.over(problem.data, low, high, problem.system)
        boxes, splits, _ = build_matrix_boxes(matrix, problem.k)
        if len(boxes.volume) == 0:
            self.nodes.append(_EMPTY)
            return
        self._append(node, matrix, boxes, splits, with_boxes, divided=len(parts) > 0)

    def _append(
        self, node: int, matrix: Matrix, boxes: BoxArrays, splits: Splits, parts: list[_NodeBoxes], *, divided: bool
    ) -> None:
        n = len(boxes.volume)
        keys = boxes.origin * len(self.problem.system.destinations.cost) + boxes.destination
        order = np.argsort(keys)
        in_part, volume_in_part = np.empty(len(parts) * n, np.int64), np.zeros(len(parts) * n, np.int64)
        for c, part in enumerate(parts):
            place = np.minimum(np.searchsorted(part.keys, keys), len(part.keys) - 1)
            listed = np.where(part.keys[place] == keys, part.order[place], -1)
            found = find_in_part(listed, part.volume, splits)
            known = found >= 0
            in_part[c * n : (c + 1) * n] = np.where(known, part.number[found], -1)
            volume_in_part[c * n : (c + 1) * n] = np.where(known, part.volume[found], 0)
        number, new, own = link_parts(boxes, splits, in_part, volume_in_part, divided, self.made)
        kept = BoxArrays(*(frozen(column[new], np.int64) for column in boxes))
        steps = int(self.tree.last[node] - self.tree.first[node])
        columns = (kept.origin, kept.destination, kept.volume, kept.crowd, self._cost(matrix, kept, steps))
        self.boxes.append((*columns, np.full(len(new), node)))
        self.splits.append(own)
        self.nodes.append(_NodeBoxes(keys[order], order, boxes.volume, number))
        self.made += len(new)

    def _cost(self, matrix: Matrix, boxes: BoxArrays, steps: int) -> Ints:
        """Return the cost of publishing each box of an interval of a number of time steps."""
        if self.problem.objective == "reconstruction":
            return box_deviations(matrix, boxes, steps)
        system, weight = self.problem.system, self.problem.windows.step_weight
        tiles = system.origins.cost[boxes.origin] + system.destinations.cost[boxes.destination]
        cost: Ints = (weight.denominator * tiles + weight.numerator * (steps - 1)) * boxes.volume
        return cost

    def joined(self, roots: Ints) -> TimeBoxSpace:
        """Return all boxes as one space; `roots` are those of the longest intervals."""
        columns = [np.concatenate(column) for column in zip(*self.boxes, strict=True)]
        splits, count = _join_splits(self.splits), self.made
        if len(roots) == 1:
            count = int(roots[0]) + 1
            columns = [column[:count] for column in columns]
            splits = _first_boxes(splits, count)
        origin, destination, volume, crowd, cost, node = columns
        system = self.problem.system
        allowed = np.full(count, ANY_CHOICE, np.int8)
        allowed[~(system.origins.small_enough[origin] & system.destinations.small_enough[destination])] -= WHOLE
        if len(roots) > 1:
            # A box of the whole window, which can only be split into its longest intervals.
            window = (
                origin[roots[0]],
                destination[roots[0]],
                volume[roots].sum(),
                crowd[roots].sum(),
                cost[roots].sum(),
            )
            origin, destination, volume, crowd, cost = (
                np.append(c, x) for c, x in zip((origin, destination, volume, crowd, cost), window, strict=True)
            )
            node, allowed = np.append(node, _NO_NODE), np.append(allowed, np.int8(BY_TIME))
            splits = _with_split(splits, roots)
        total, lost_cost = int(volume[-1]), lost_cost_of(self.problem.objective)
        weight, longest = self.problem.windows.step_weight, int((self.tree.last - self.tree.first).max(initial=1))
        each = weight.denominator * system.widest + weight.numerator * (longest - 1)
        check_exact((each if self.problem.objective != "reconstruction" else 3 * lost_cost) * total)
        return TimeBoxSpace(
            system,
            origin=frozen(origin, np.int64),
            destination=frozen(destination, np.int64),
            volume=frozen(volume, np.int64),
            crowd=frozen(crowd, np.int64),
            cost=frozen(cost, np.int64),
            splits=Splits(*(frozen(a, np.int64) for a in splits)),
            allowed=frozen(allowed, np.int8),
            total=total,
            lost_cost=lost_cost,
            tree=self.tree,
            node=frozen(node, np.int64),
        )


def _join_splits(parts: list[Splits]) -> Splits:
    """Return the splits of all boxes one after the other; links are among all boxes already."""
    kind, lost, link = (np.concatenate([getattr(p, name) for p in parts]) for name in ("kind", "lost", "link"))
    offsets, link_offsets = (
        np.concatenate([[0], *(np.diff(getattr(p, name)) for p in parts)]).cumsum()
        for name in ("offsets", "link_offsets")
    )
    return Splits(offsets, kind, lost, link_offsets, link)


def _first_boxes(splits: Splits, count: int) -> Splits:
    """Return the splits of the first boxes."""
    used = splits.offsets[count]
    links = splits.link_offsets[used]
    return Splits(
        splits.offsets[: count + 1], splits.kind[:used], splits.lost[:used], splits.link_offsets[: used + 1],
        splits.link[:links],
    )  # fmt: skip


def _with_split(splits: Splits, roots: Ints) -> Splits:
    """Add a box that is split by time into the boxes in `roots`."""
    return Splits(
        np.append(splits.offsets, splits.offsets[-1] + 1),
        np.append(splits.kind, BY_TIME),
        np.append(splits.lost, 0),
        np.append(splits.link_offsets, splits.link_offsets[-1] + len(roots)),
        np.concatenate([splits.link, roots]),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class TimeBoxSpace(BoxSpace):
    """All boxes of a window with a crowd of at least k, those that a box can be split into before it.

    Attributes
    ----------
    tree
        The intervals of the window.
    node
        The interval of each box; -1 for the whole window, where that is no interval.
    """

    tree: TimeTree
    node: Ints

    def solution(self, choice: Ints, gaps: tuple[float, float], *, left: bool) -> StepSolution:
        """Return what a partition publishes and, if wanted, leaves out."""
        kept, split = published_boxes(choice, self.splits)
        columns = self.origin[kept], self.destination[kept], self.volume[kept], self.crowd[kept]
        left_o, left_d, *left_slots = self._rest(split, choice) if left else (_NONE,) * 4
        slots = self.tree.first[self.node[kept]], self.tree.last[self.node[kept]], *left_slots
        return StepSolution(*columns, left_o, left_d, np.array(gaps), _NONE, _NONE, *slots)

    def _rest(self, split: Ints, choice: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return origins, destinations and slots of the parts that are not published."""
        origin, destination, box = self.left(split, choice)
        first, last = self.tree.first[self.node[box]], self.tree.last[self.node[box]]
        by_time = split[(self.splits.kind[choice[split]] == BY_TIME) & (self.node[split] >= 0)]
        box, part = self._bare_parts(by_time, choice)
        return (
            np.concatenate([origin, self.origin[box]]),
            np.concatenate([destination, self.destination[box]]),
            np.concatenate([first, self.tree.first[part]]),
            np.concatenate([last, self.tree.last[part]]),
        )

    def _bare_parts(self, split: Ints, choice: Ints) -> tuple[Ints, Ints]:
        """Return the parts in time of split boxes that are no boxes themselves: the split box, and the interval."""
        parts, part_offsets = take_slices(self.tree.child_offsets, self.node[split])
        node = self.tree.children[parts]
        links, link_offsets = take_slices(self.splits.link_offsets, choice[split])
        starts = self.tree.first[self.node[self.splits.link[links]]]
        # Parts of a box follow one another in time: the part that holds a linked box is the last that begins before it.
        covered = np.zeros(len(node), np.bool_)
        for at in range(len(split)):
            parts_of_box = self.tree.first[node[part_offsets[at] : part_offsets[at + 1]]]
            linked = starts[link_offsets[at] : link_offsets[at + 1]]
            covered[part_offsets[at] + np.searchsorted(parts_of_box, linked, side="right") - 1] = True
        box = np.repeat(split, np.diff(part_offsets))
        return box[~covered], node[~covered]


class AdaptiveRelease(NamedTuple):
    """How a release with intervals is made.

    How many trips of a volume may be suppressed, how small flows are reported, and how boxes are cut again, if they are.
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
    slots = release.intervals
    if slots is None or data.weight is not None or np.any(slots.steps > 1):
        return release
    step = np.searchsorted(data.t, slots.t)
    order = np.argsort(step, kind="stable")
    columns = {name: getattr(release, name)[order] for name in ("origin", "destination", "volume", "people", "state")}
    by_step = replace(
        release, t=data.t, offsets=np.searchsorted(step[order], np.arange(data.steps + 1)), intervals=None, figures=None,
        suppressed=np.full(data.steps, NOT_GIVEN), **columns,
    )  # fmt: skip
    return by_step.with_suppressed(suppressed_volumes(data, by_step, k))
