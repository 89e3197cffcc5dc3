"""Merge trajectories to boxes in space and time, k people in each group, and publish one point of each box.

Guarantee
---------
TrajectoryKAnonymity(k): every published trajectory is in an equivalence class, equal point for point and second for second, of
at least k people. Ids are new.

SuppressedTrajectories(suppress, k), with `suppress` and `suppression_cost = 1`: at most that share is suppressed, and the
trajectories of at least k people, or none.

TruthfulBoxes, with `reconstruction = box`: every point of an original trajectory is in a box of the one that is published for it,
and every box has a point of each trajectory that it is published for.

Assumptions
-----------
The column of users names people. Without it, or with `count_trajectories`, k counts trajectories, and a group may be of one
person.

Notes
-----
Points of two trajectories are matched one to one, in order, and each match becomes the box around both. A box costs
`space_weight` times the logs of its lengths east and north, in meters, plus `time_weight` times the log of its length in
seconds; each log is of 1 + the length, so that a box without extent costs nothing. A point without a match is removed, at the
cost of a box as large as all the data, times `suppression_cost`: with 1, the default, a match never
costs more than removing one of its points, so that points are removed only where that makes other matches better. With less,
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

With `reconstruction = box` boxes in space and time are published in place of points: for each point of the centers a box
around the points of the members that are matched with it by dynamic time warping. Bounds are rounded outwards to a public grid
(`box_grid_m`, `box_grid_s`), which does not depend on the data, so that none shows a member's own coordinate or time.

With `suppress` whole groups are suppressed, those with the largest distortion first, until the share is used up: the mean
squared distance of their members from what would be published, in space alone. A person whose trajectory is suppressed is one
of at least k such people.

It is exact: no trajectory is skipped unless a bound proves that another one costs less. Time grows with the square of the
number of trajectories, and with the product of their lengths; of 5,000 with a hundred points each one pair in a hundred is
matched point by point, which takes half a minute; 1,500 flights of 412 points take 80 seconds of processor time.

References
----------
M. E. Nergiz, M. Atzori, Y. Saygın, B. Güç: Towards trajectory anonymization: a generalization-based approach. Transactions on
Data Privacy 2(1), 2009. C. Ferreira Torres, R. Trujillo-Rasua: The Fréchet/Manhattan distance and the trajectory anonymization
problem. DBSec 2016, sections 2 and 5.2.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.method import Method
from crowdveil.methods.guarantee_sets import suppressing_guarantees
from crowdveil.model.arrays import Floats, Ints, row_slices
from crowdveil.model.globe import rounded
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import BoxParams
from crowdveil.progress import Progress
from crowdveil.solve.trajectory.aggregation import DECIMALS, GroupTrajectories, boxes_around
from crowdveil.solve.trajectory.distances import Paths
from crowdveil.solve.trajectory.log_cost import LogCost, SpaceTimeBoxes
from crowdveil.solve.trajectory.microaggregation import release_copies
from crowdveil.solve.trajectory.outliers import PublishedGroups, without_outliers
from crowdveil.solve.trajectory.swapping import owners


class LogCostGeneralizationParams(BoxParams):
    """Parameters of generalization at the smallest log cost."""

    space_weight: float = Field(1.0, ge=0, le=1000)
    """Weight of the logs of a box's lengths east and north in its cost."""
    time_weight: float = Field(1.0, ge=0, le=1000)
    """Weight of the log of a box's length in time in its cost."""
    grouping: Literal["representative", "pivot"] = "representative"
    """A group takes the trajectory with the smallest cost to all its boxes, or to its first trajectory."""
    reconstruction: Literal["center", "random", "box"] = "center"
    """Published for a box: its center, or a point drawn at random, the same for the whole group, or a box around all points."""
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
    if params.publishes_boxes:
        paths = params.box_grid.round_outwards(boxes_around(data, paths, members, of_groups))
    made = PublishedGroups(paths, members, of_groups)
    left = without_outliers(data, made, params.suppress)
    published = np.isin([group.members[0] for group in groups], left.members)
    return release_copies(left, _facts([group for group, so in zip(groups, published, strict=True) if so]))


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


def _facts(groups: list[SpaceTimeBoxes]) -> dict[str, Any]:
    """Return the mean size of boxes over all published points."""
    if not groups:
        return {}
    sides = np.concatenate([group.sides for group in groups], axis=1)
    copies = np.repeat([len(group.members) for group in groups], [group.sides.shape[1] for group in groups])
    meters, seconds = (sides[1] - sides[0] + sides[3] - sides[2]) / 2, sides[5] - sides[4]
    means = {"mean_box_side_m": meters, "mean_box_s": seconds}
    return {name: float(f"{np.average(lengths, weights=copies):.4g}") for name, lengths in means.items()}


METHOD = Method(
    "log-cost-generalization",
    takes=Trajectories,
    params=LogCostGeneralizationParams,
    run=run,
    guarantees=suppressing_guarantees,
    status="proven",
    aliases=("TGA",),
)
