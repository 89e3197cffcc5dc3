"""Put trajectories that run side by side into clusters of at least k people, and publish one mean path for all of a cluster.

Guarantee
---------
TrajectoryKAnonymity(k): every published trajectory is equal, point for point and second for second, to those of at least k − 1
other people. Ids are new.

Assumptions
-----------
Owed by the caller: the column of users names people. Without it, or with `count_trajectories`, k counts trajectories, and a
cluster may be one person's.

Notes
-----
The distance is the Fréchet/Manhattan one, in meters on the plane: of the ways to walk along two paths with the least longest
distance, the mean distance of one. Times do not count in it, so that rides at different hours may be in one cluster. Two paths
are brought to the same moments first, by shares of their own time (`resample`); points that coincide are there once.

A cluster is tried around each of `pivots` trajectories: a random one, the farthest from it, and others on the way between; that
with the least sum of squared distances to its pivot is made, and so on while k people are left. It takes whoever is nearest until
k people are together; a person with several trajectories counts once. No trajectory is passed over unless a bound says that it
cannot matter. The paper asks for the way from the first pivot to the last with the least sum of squared steps, which takes the
distances of all pairs. `pivot_path = sketched` takes for each step the trajectory for which a bound of that sum is least, by
rough distances between sixteen places of each; `exact` does what the paper says, for up to 2,000 trajectories. How far apart
their clusters are is in docs/trajectories.md.

Where a point of the pivot meets points of the others, their mean is published. Its place is the mean of all these points, as in
the paper. Its time is the mean of the times of all members, each the mean of its points there: later points of a member never
meet an earlier point of the pivot, so that times never fall. If every point counted once, as for places, members at other hours
would weigh more where they have more points, and times would jump.

The paper leaves out those that are left when fewer than k people are. Here they join the cluster whose pivot is nearest, so that
nobody is lost and counts can be held against those of the original, unless `left_over = drop`.

References
----------
Ferreira Torres and Trujillo-Rasua, The Fréchet/Manhattan distance and the trajectory anonymization problem, DBSec 2016.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil import engine
from crowdveil.guarantees import Guarantee, TrajectoryKAnonymity
from crowdveil.method import Method
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.globe import rounded
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.solve.trajectory.aggregation import DECIMALS, GroupTrajectories
from crowdveil.solve.trajectory.distances import FrechetManhattan, Paths
from crowdveil.solve.trajectory.microaggregation import group_members, release_copies
from crowdveil.solve.trajectory.pivots import Clustering, Clusters, LeftOver, PivotPath

BATCHES = 32
"""Tasks that the means of all clusters are made in."""


class FrechetMicroaggregationParams(Params):
    """Parameters of microaggregation by couplings."""

    k: int = Field(3, ge=2)
    """Fewest people of a cluster."""
    pivots: int = Field(10, ge=1, le=1000)
    """So many trajectories are tried as the middle of each cluster: more are slower, and clusters tighter."""
    distance: Literal["frechet-manhattan", "frechet-manhattan-exact"] = "frechet-manhattan"
    """The coupling that one pass finds, as in the paper, or the very least mean, which takes several times as long."""
    resample: bool = True
    """Bring two trajectories to the same moments, by shares of their time, before they are compared."""
    pivot_path: PivotPath = "sketched"
    """How pivots between the first and the last are chosen: roughly, or by all distances, for up to 2,000 trajectories."""
    left_over: LeftOver = "join"
    """What becomes of those that are left with fewer than k people: they join the nearest cluster, or are left out."""
    count_trajectories: bool = False
    """Let k count trajectories, as the paper does, even where people are known."""


def run(
    data: Trajectories, params: FrechetMicroaggregationParams, rng: np.random.Generator, progress: Progress
) -> TrajectoryRelease:
    """Make the clusters, then a trajectory for each."""
    distance = FrechetManhattan(Paths.of(data), params.distance == "frechet-manhattan-exact", params.resample)
    person = np.arange(len(data)) if params.count_trajectories else data.person
    clustering = Clustering(distance, person, params.k, params.pivots, params.pivot_path)
    made = clustering.clusters(params.left_over, rng, progress)
    members, offsets = group_members(made.cluster)
    # A whole percent: the number itself may be a person.
    facts = {"clusters": len(made.pivot), "left_over_percent": round(100 * made.left_over / max(len(data), 1))}
    return release_copies(_means(data, distance, made, members, offsets), members, offsets, facts)


def _means(
    data: Trajectories, distance: FrechetManhattan, made: Clusters, members: Ints, offsets: Ints
) -> GroupTrajectories:
    """A trajectory for each cluster, in batches on the engine."""
    from crowdveil.kernels.trajectory.cluster_mean import mean_of_cluster

    batches = np.array_split(np.arange(len(made.pivot)), min(BATCHES, max(len(made.pivot), 1)))

    def one(c: int) -> tuple[Floats, Floats, Floats]:
        pivot, here = int(made.pivot[c]), members[offsets[c] : offsets[c + 1]]
        how: Any = (distance.columns, distance.resampled, distance.exact)
        return mean_of_cluster(pivot, here[here != pivot], *how)

    def task(batch: int) -> tuple[Floats, ...]:
        found = [one(c) for c in batches[batch].tolist()]
        return tuple(np.concatenate([np.zeros(0), *(f[column] for f in found)]) for column in range(3))

    found = engine.current().map(task, len(batches), lambda done, total: None)
    x, y, t = (np.concatenate(column) for column in zip(*found, strict=True))
    lengths = np.diff(data.offsets)[made.pivot]
    lon, lat = data.projection.to_globe(x, y)
    return GroupTrajectories(
        rounded(lon, DECIMALS),
        np.round(lat, DECIMALS),
        data.start + np.floor(t + 0.5).astype(np.int64),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
    )


def guarantees(data: Trajectories, params: FrechetMicroaggregationParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    counts = "trajectories" if params.count_trajectories else data.counts
    return (TrajectoryKAnonymity(k=params.k, counts=counts),)


METHOD = Method(
    "frechet-microaggregation",
    takes=Trajectories,
    params=FrechetMicroaggregationParams,
    run=run,
    guarantees=guarantees,
    status="proven",
    doc=__doc__ or "",
)
