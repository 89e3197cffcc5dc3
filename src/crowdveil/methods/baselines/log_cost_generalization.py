"""Merge trajectories to boxes in space and time, k people in each group, and publish one point of each box.

Guarantee
---------
TrajectoryKAnonymity(k): every published trajectory is in an equivalence class, equal point for point and second for second, of
at least k people. Ids are new.

SuppressedTrajectories(suppress, k), with `suppress` and `suppression_cost = 1`: at most that share is suppressed, and the
trajectories of at least k people, or none.

Assumptions
-----------
The column of users names people. Without it, or with `count_trajectories`, k counts trajectories, and a group may be of one
person.

Notes
-----
Points of two trajectories are matched one to one, in order, and each match becomes the box around both. A box costs
`space_weight` times the logs of its lengths east and north, in meters, plus `time_weight` times the log of its length in
seconds; each log is of 1 + the length, so a box without extent costs nothing. A point without a match is removed, at the
cost of a box as large as all the data, times `suppression_cost`: with 1, the default, a match never
costs more than removing one of its points, so points are removed only where that makes other matches better. With less,
points far from any match are removed as outliers. The smallest cost of all matchings is the log cost of the two.

A random trajectory takes the one with the smallest cost, and so on until the group has k people, a person with several
trajectories counting once; again with the rest, while there are k people. `grouping = representative` (the paper's multi TGA)
minimizes the cost to the boxes of the whole group, `pivot` (fast TGA) that to the first. The boxes of a group are those of its
trajectories merged in the order in which they were added. The rest of fewer than k people joins, one by one, the group with the
smallest cost, where the paper's later users leave it out. Where all points of a group are outliers, its trajectories are left
out.

A box counts once, whatever its number of points, as in the public code of the second reference; counting it for each point
would let short trajectories attract all others. That code aligns each group again, around its middle trajectory, where here the
boxes of the search stay. The full first reference was not available: statements about it are from its abstract, the second
reference and that code.

Published are the centers of boxes (`reconstruction = center`), or points drawn from each at random, as in the paper, but once
for a group: k-anonymity is then visible in the file, where points drawn for each trajectory on its own would leave it to an
argument. Drawn times are sorted, and each is still in its box, because neither the first nor the last moments of boxes fall
along a group. The mean size of boxes is in the manifest; single ones are not published.

With `suppress` whole groups are suppressed, those with the largest distortion first, until the share is used up: the mean
squared distance of their members from what would be published, in space alone. A person whose trajectory is suppressed is one
of at least k such people.

It is exact: no trajectory is skipped unless a bound proves that another one costs less. Time grows with the square of the
number of trajectories, and with the product of their lengths.

References
----------
M. E. Nergiz, M. Atzori, Y. Saygın, B. Güç: Towards trajectory anonymization: a generalization-based approach. Transactions on
Data Privacy 2(1), 2009. C. Ferreira Torres, R. Trujillo-Rasua: The Fréchet/Manhattan distance and the trajectory anonymization
problem. DBSec 2016, sections 2 and 5.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress, no_progress
from crowdveil.kernels._jit import kernel
from crowdveil.methods.base import Method
from crowdveil.methods.guarantee_sets import suppressing_guarantees
from crowdveil.model.arrays import Floats, Ints, row_slices
from crowdveil.model.globe import rounded
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import GroupingParams
from crowdveil.solve.trajectory.aggregation import DECIMALS, GroupTrajectories
from crowdveil.solve.trajectory.distances import Paths
from crowdveil.solve.trajectory.microaggregation import PublishedGroups, release_copies, without_outliers
from crowdveil.solve.trajectory.swapping import owners

Costs = tuple[float, float, float]
"""The cost of a box that is left out, and the weights of the logs of lengths in space and in time."""
CHUNKS = 12
"""Runs of boxes that a sequence is summarized by, at most."""
SURE, SURE_COST = 1 + 1e-12, 1e-9
"""Bounds are widened by this share and this cost, more than rounding errors."""
PUBLIC_M, PUBLIC_S = 10_000.0, 3_600.0
"""Meters and seconds that the lengths of a box around all the data are rounded up by: no outermost point decides a cost."""


class LogCostGeneralizationParams(GroupingParams):
    """Parameters of generalization at the smallest log cost."""

    space_weight: float = Field(1.0, ge=0, le=1000)
    """Weight of the logs of a box's lengths east and north in its cost."""
    time_weight: float = Field(1.0, ge=0, le=1000)
    """Weight of the log of a box's length in time in its cost."""
    grouping: Literal["representative", "pivot"] = "representative"
    """A group takes the trajectory with the smallest cost to all its boxes, or to its first trajectory."""
    reconstruction: Literal["center", "random"] = "center"
    """Published for a box: its center, or a point drawn at random, the same for the whole group."""
    suppression_cost: float = Field(1.0, gt=0, le=1)
    """Cost of a removed point, as a share of a box around all the data; less than 1 removes outliers."""
    count_trajectories: bool = False
    """Let k count trajectories, as the paper does, even where people are known."""


def run(
    data: Trajectories, params: LogCostGeneralizationParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Make the groups, then a trajectory of each group's boxes."""
    cost = LogCost(Paths.of(data), params.space_weight, params.time_weight, params.suppression_cost)
    person, growing = owners(data, params.count_trajectories), params.grouping == "representative"
    groups = [g for g in cost.groups(person, params.k, growing, rng, progress) if g.sides.shape[1] > 0]
    members = np.concatenate([np.zeros(0, np.int64), *(group.members for group in groups)])
    of_groups = np.cumsum([0, *(len(group.members) for group in groups)])
    sides = np.concatenate([np.zeros((6, 0)), *(group.sides for group in groups)], axis=1)
    offsets = np.cumsum([0, *(group.sides.shape[1] for group in groups)])
    points = _drawn(sides, offsets, rng) if params.reconstruction == "random" else _middles(sides)
    paths = _made(data, *points, offsets)
    made = PublishedGroups(paths, members, of_groups)
    left = without_outliers(data, made, params.suppress)
    published = np.isin([group.members[0] for group in groups], left.members)
    return release_copies(
        left, _facts([group for group, is_published in zip(groups, published, strict=True) if is_published])
    )


def _middles(sides: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the center of each box; times in whole seconds."""
    return (sides[0] + sides[1]) / 2, (sides[2] + sides[3]) / 2, np.floor((sides[4] + sides[5]) / 2)


def _drawn(sides: Floats, offsets: Ints, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return a point of each box, with times in order inside each group."""
    x, y = rng.uniform(sides[0], sides[1]), rng.uniform(sides[2], sides[3])
    t = rng.integers(sides[4].astype(np.int64), sides[5].astype(np.int64), endpoint=True)
    return x, y, t[np.lexsort((t, row_slices(offsets)))].astype(np.float64)


def _made(data: Trajectories, x: Floats, y: Floats, t: Floats, offsets: Ints) -> GroupTrajectories:
    """Return points on the plane of the data as a trajectory for each group."""
    lon, lat = data.projection.to_globe(x, y)
    return GroupTrajectories(rounded(lon, DECIMALS), np.round(lat, DECIMALS), t.astype(np.int64) + data.start, offsets)


def _facts(groups: list[Group]) -> dict[str, Any]:
    """Return the mean size of boxes over all published points, to one digit: of few boxes an exact size would reveal ends."""
    if not groups:
        return {}
    sides = np.concatenate([group.sides for group in groups], axis=1)
    copies = np.repeat([len(group.members) for group in groups], [group.sides.shape[1] for group in groups])
    meters, seconds = (sides[1] - sides[0] + sides[3] - sides[2]) / 2, sides[5] - sides[4]
    means = {"mean_box_side_m": meters, "mean_box_s": seconds}
    return {name: float(f"{np.average(lengths, weights=copies):.1g}") for name, lengths in means.items()}


class Group(NamedTuple):
    """The trajectories of a group, in the order in which they came together, and the boxes that stand for them.

    Boxes are columns of six rows: least and most x, y (meters) and t (seconds).
    """

    members: Ints
    sides: Floats


def _public_length(values: Floats, step: float) -> float:
    """Return the length from the line of a public grid below all values to the line above them."""
    return float((np.ceil(values.max() / step) - np.floor(values.min() / step)) * step) if len(values) else 0.0


@dataclass(frozen=True, eq=False)
class LogCost:
    """The cost of merging trajectories, and the weights of space and time in it.

    `suppression` is the cost of a removed point, as a share of the cost of a box as large as all the data.
    """

    paths: Paths
    space_weight: float = 1.0
    time_weight: float = 1.0
    suppression: float = 1.0

    @cached_property
    def costs(self) -> Costs:
        """Return the cost of a point that is left out, and the two weights."""
        x, y = (_public_length(side, PUBLIC_M) for side in (self.paths.x, self.paths.y))
        t = _public_length(self.paths.t, PUBLIC_S)
        largest = self.space_weight * np.log((1.0 + x) * (1.0 + y)) + self.time_weight * np.log(1.0 + t)
        return self.suppression * float(largest), self.space_weight, self.time_weight

    def groups(
        self, person: Ints, k: int, growing: bool, rng: np.random.Generator, progress: Progress = no_progress
    ) -> list[Group]:
        """Make groups of at least k people; none if all together have fewer.

        A random trajectory takes the one with the least cost, and so on until k people are in the group, while k people are
        left. The remaining ones then join the group with the least cost, one by one. With `growing` costs are those to the boxes
        of all members so far, otherwise those to the first. Of equal costs the smaller number counts.
        """
        x, y, t, offsets = self.paths.points
        boxes = np.stack([x, x, y, y, t, t])
        alive = np.ones(len(person), np.bool_)
        found: list[Group] = []
        for pivot in rng.permutation(len(person)).tolist():
            if not alive[pivot]:
                continue
            if len(np.unique(person[alive])) < k:
                break
            made = self._gather(pivot, np.flatnonzero(alive), person, k, growing, boxes, offsets)
            alive[made.members] = False
            found.append(made)
            progress(len(person) - int(alive.sum()), len(person))
        for i in np.flatnonzero(alive).tolist() if found else []:
            own = boxes[:, offsets[i] : offsets[i + 1]].copy()
            sides = np.concatenate([group.sides for group in found], axis=1)
            of_groups = np.cumsum([0, *(group.sides.shape[1] for group in found)])
            every = np.arange(len(found))
            bound = lower_bounds(own, sides, of_groups, every, self.costs)
            g = int(nearest(own, sides, of_groups, every, bound, self.costs))
            found[g] = Group(np.append(found[g].members, i), put_together(found[g].sides, own, self.costs))
        return found

    def _gather(
        self, pivot: int, alive: Ints, person: Ints, k: int, growing: bool, boxes: Floats, offsets: Ints
    ) -> Group:
        """Return the group of a trajectory. Costs only rise while its boxes grow, so that lower bounds stay valid."""
        first = boxes[:, offsets[pivot] : offsets[pivot + 1]].copy()
        rest, members, made = alive[alive != pivot], [pivot], first
        bound = lower_bounds(first, boxes, offsets, rest, self.costs)
        while len(np.unique(person[members])) < k:
            order = np.argsort(bound, kind="stable")
            rest, bound = rest[order], bound[order]
            j = int(nearest(made if growing else first, boxes, offsets, rest, bound, self.costs))
            made = put_together(made, boxes[:, offsets[j] : offsets[j + 1]].copy(), self.costs)
            members.append(j)
            rest, bound = rest[rest != j], bound[rest != j]
        return Group(np.array(members), made)


@kernel
def saving(x: float, y: float, t: float, costs: Costs) -> float:
    """Return what a match saves whose box has these lengths."""
    s, of_space, of_time = costs
    return 2.0 * s - (of_space * math.log((1.0 + x) * (1.0 + y)) + of_time * math.log(1.0 + t))


@kernel
def saved_by(a: Floats, i: int, b: Floats, j: int, costs: Costs) -> float:
    """Return what a match of two boxes saves."""
    return saving(
        max(a[1, i], b[1, j]) - min(a[0, i], b[0, j]),
        max(a[3, i], b[3, j]) - min(a[2, i], b[2, j]),
        max(a[5, i], b[5, j]) - min(a[4, i], b[4, j]),
        costs,
    )


@kernel
def best_savings(a: Floats, b: Floats, costs: Costs) -> Floats:
    """Return what the best matches of the first boxes of two sequences save, for every number of both."""
    p, q = a.shape[1], b.shape[1]
    best = np.zeros((p + 1, q + 1))
    for i in range(p):
        for j in range(q):
            matched = best[i, j] + saved_by(a, i, b, j, costs)
            best[i + 1, j + 1] = max(matched, max(best[i, j + 1], best[i + 1, j]))
    return best


@kernel
def put_together(a: Floats, b: Floats, costs: Costs) -> Floats:
    """Return the boxes around the matches of two sequences with the least cost. Among equal costs, boxes are matched rather than
    removed, and those of `a` are removed first.
    """
    best = best_savings(a, b, costs)
    i, j = a.shape[1], b.shape[1]
    place = min(i, j)
    made = np.empty((6, place))
    while i > 0 and j > 0:
        if best[i, j] == best[i - 1, j - 1] + saved_by(a, i - 1, b, j - 1, costs):
            i, j, place = i - 1, j - 1, place - 1
            for axis in range(0, 6, 2):
                made[axis, place] = min(a[axis, i], b[axis, j])
                made[axis + 1, place] = max(a[axis + 1, i], b[axis + 1, j])
        elif best[i, j] == best[i - 1, j]:
            i -= 1
        else:
            j -= 1
    return made[:, place:].copy()


@kernel
def chunks_of(boxes: Floats) -> Floats:
    """Summarize runs of boxes: for x, y and t the greatest least value, the least greatest one, and the least length."""
    count = min(CHUNKS, boxes.shape[1])
    chunks = np.empty((9, count))
    for c in range(count):
        first, last = boxes.shape[1] * c // count, boxes.shape[1] * (c + 1) // count
        for axis in range(3):
            least, greatest = boxes[2 * axis, first:last], boxes[2 * axis + 1, first:last]
            chunks[3 * axis, c], chunks[3 * axis + 1, c] = least.max(), greatest.min()
            chunks[3 * axis + 2, c] = (greatest - least).min()
    return chunks


@kernel
def most_saved(boxes: Floats, chunks: Floats, costs: Costs) -> float:
    """Return a bound of what matches save: each box is matched with anything of a chunk, in the order of chunks."""
    length = np.empty(3)
    best = np.zeros(boxes.shape[1] + 1)
    for c in range(chunks.shape[1]):
        most = 0.0
        for i in range(boxes.shape[1]):
            for axis in range(3):
                least, greatest = boxes[2 * axis, i], boxes[2 * axis + 1, i]
                over = max(greatest - chunks[3 * axis, c], chunks[3 * axis + 1, c] - least)
                length[axis] = max(over, max(greatest - least, chunks[3 * axis + 2, c]))
            most = max(most + max(saving(length[0], length[1], length[2], costs), 0.0), best[i + 1])
            best[i + 1] = most
    return float(best[-1])


@kernel
def lower_bounds(own: Floats, boxes: Floats, offsets: Ints, those: Ints, costs: Costs) -> Floats:
    """Return lower bounds of the costs of some sequences with `own`, less what leaving out all of `own` costs."""
    found, own_chunks = np.empty(len(those)), chunks_of(own)
    for at in range(len(those)):
        other = boxes[:, offsets[those[at]] : offsets[those[at] + 1]].copy()
        q = other.shape[1]
        shorter = own.shape[1] <= q
        most = most_saved(own, chunks_of(other), costs) if shorter else most_saved(other, own_chunks, costs)
        found[at] = q * costs[0] - most * SURE - SURE_COST
    return found


@kernel
def nearest(own: Floats, boxes: Floats, offsets: Ints, those: Ints, bound: Floats, costs: Costs) -> int:
    """Return the one of some sequences with the least cost; of equal ones the first in number.

    Costs that are computed replace their `bound`, a little lower. Those with low bounds should come first.
    """
    best, found = np.inf, -1
    for at in range(len(those)):
        if bound[at] > best:
            continue
        j = those[at]
        other = boxes[:, offsets[j] : offsets[j + 1]].copy()
        saved = best_savings(own, other, costs)[-1, -1]
        cost = other.shape[1] * costs[0] - saved
        bound[at] = max(bound[at], cost - saved * (SURE - 1) - SURE_COST)
        if cost < best or (cost == best and j < found):
            best, found = cost, j
    return found


METHOD = Method(
    "log-cost-generalization",
    takes=Trajectories,
    params=LogCostGeneralizationParams,
    run=run,
    guarantees=suppressing_guarantees,
    status="proven",
    aliases=("TGA",),
)
