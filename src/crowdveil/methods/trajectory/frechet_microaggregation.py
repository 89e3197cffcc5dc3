"""Cluster trajectories that run in parallel, at least k people each, and publish one mean trajectory for all of a cluster.

Guarantee
---------
TrajectoryKAnonymity(k): every published trajectory is in an equivalence class, equal point for point and second for second, of
at least k people. Ids are new.

SuppressedTrajectories(suppress, k), with `suppress` and `left_over = join`: at most that share is suppressed, and the
trajectories of at least k people, or none.

Assumptions
-----------
The column of users names people. Without it, or with `count_trajectories`, k counts trajectories, and a cluster may be of one
person.

Notes
-----
The distance is Fréchet/Manhattan, in meters on the plane: of the couplings of two trajectories with the smallest longest
distance, the mean distance of one. Times do not count in it, so trips at different hours may be in one cluster. Two
trajectories are brought to the same moments first, by shares of their own time (`resample`); coinciding points count once.

A cluster is tried around each of `pivots` trajectories: a random one, the farthest from it, and others between them; the one
with the smallest sum of squared distances to its pivot is made, and so on while k people are left. It takes the nearest
trajectories until it has k people; a person with several trajectories counts once. No trajectory is skipped unless a bound
proves that it cannot matter. The paper asks for the path from the first pivot to the last with the smallest sum of squared
steps, which needs the distances of all pairs. `pivot_path = sketched` takes for each step the trajectory with the smallest
bound of that sum, by rough distances between sixteen points of each, by which the last pivot is the farthest, too; `exact`
follows the paper, for up to 2,000 trajectories. docs/trajectories.md compares their clusters.

Where a point of the pivot is coupled with points of the others, their mean is published: of positions and times over people, each
the mean of their trajectories, and each of these the mean of its points there. Later points of a trajectory are never coupled
with an earlier point of the pivot, so times never fall. In the paper every point counts once; then a person with more
trajectories or more points would weigh more than the others of the cluster.

The paper leaves out the rest of fewer than k people. Here they join the cluster with the nearest pivot, so that no trajectory is
lost and counts are comparable with the original, unless `left_over = drop`.

With `suppress` whole groups are suppressed, those with the largest distortion first, until the share is used up: the mean
squared distance of their members from what would be published, in space alone. A person whose trajectory is suppressed is one
of at least k such people.

References
----------
Ferreira Torres and Trujillo-Rasua, The Fréchet/Manhattan distance and the trajectory anonymization problem, DBSec 2016.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from crowdveil import engine
from crowdveil.engine.progress import Progress
from crowdveil.kernels.trajectory.frechet_manhattan import mean_of_cluster
from crowdveil.measures.rounding import round_share
from crowdveil.methods.base import Method
from crowdveil.methods.guarantee_sets import suppressing_guarantees
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.globe import rounded
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import GroupingParams
from crowdveil.solve.trajectory.aggregation import DECIMALS, GroupTrajectories, weights_of_people
from crowdveil.solve.trajectory.distances import FrechetManhattan, Paths
from crowdveil.solve.trajectory.microaggregation import PublishedGroups, group_members, release_copies, without_outliers
from crowdveil.solve.trajectory.pivots import Clustering, Clusters, LeftOver, PivotPath
from crowdveil.solve.trajectory.swapping import owners

BATCHES = 32
"""Tasks of the means of all clusters."""


class FrechetMicroaggregationParams(GroupingParams):
    """Parameters of microaggregation by couplings."""

    pivots: int = Field(10, ge=1, le=1000)
    """Trajectories tried as the center of each cluster: more are slower, and clusters tighter."""
    distance: Literal["frechet-manhattan", "frechet-manhattan-exact"] = "frechet-manhattan"
    """The coupling of one pass, as in the paper, or the one with the smallest mean, which takes several times as long."""
    resample: bool = True
    """Bring two trajectories to the same moments, by shares of their time, before they are compared."""
    pivot_path: PivotPath = "sketched"
    """Choice of pivots between the first and the last: sketched, or by all distances, for up to 2,000 trajectories."""
    left_over: LeftOver = Field("join", title="Rest of fewer than k people")
    """The rest of fewer than k people: join the nearest cluster, or drop."""
    count_trajectories: bool = False
    """Let k count trajectories, as the paper does, even where people are known."""


def run(
    data: Trajectories, params: FrechetMicroaggregationParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Make the clusters, then a trajectory for each."""
    distance = FrechetManhattan(Paths.of(data), params.distance == "frechet-manhattan-exact", params.resample)
    person = owners(data, params.count_trajectories)
    clustering = Clustering(distance, person, params.k, params.pivots, params.pivot_path)
    made = clustering.clusters(params.left_over, rng, progress)
    members, offsets = group_members(made.cluster)
    paths = _means(data, distance, made, members, offsets)
    groups = PublishedGroups(paths, members, offsets)
    left = without_outliers(data, groups, params.suppress)
    # The share is rounded, since the exact number may reveal a person. The number of suppressed clusters is not published.
    share = round_share(made.left_over, len(data), params.k)
    return release_copies(left, {"clusters": len(left.offsets) - 1, "left_over_percent": share})


def _means(
    data: Trajectories, distance: FrechetManhattan, made: Clusters, members: Ints, offsets: Ints
) -> GroupTrajectories:
    """Return a trajectory for each cluster, in batches on the engine."""
    batches = np.array_split(np.arange(len(made.pivot)), min(BATCHES, max(len(made.pivot), 1)))

    def one(c: int) -> tuple[Floats, Floats, Floats]:
        pivot, here = int(made.pivot[c]), members[offsets[c] : offsets[c + 1]]
        here = np.append(pivot, here[here != pivot])
        weight = weights_of_people(data, here, np.array([0, len(here)]))
        return mean_of_cluster(pivot, here[1:], weight, distance.columns, distance.resampled, distance.exact)

    def task(batch: int) -> tuple[Floats, ...]:
        found = [one(c) for c in batches[batch].tolist()]
        return tuple(np.concatenate([np.zeros(0), *(f[column] for f in found)]) for column in range(3))

    found = engine.current().map(task, len(batches))
    x, y, t = (np.concatenate(column) for column in zip(*found, strict=True))
    lengths = np.diff(data.offsets)[made.pivot]
    lon, lat = data.projection.to_globe(x, y)
    return GroupTrajectories(
        rounded(lon, DECIMALS),
        np.round(lat, DECIMALS),
        data.start + np.floor(t + 0.5).astype(np.int64),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
    )


METHOD = Method(
    "frechet-microaggregation",
    takes=Trajectories,
    params=FrechetMicroaggregationParams,
    run=run,
    guarantees=suppressing_guarantees,
    status="proven",
)
