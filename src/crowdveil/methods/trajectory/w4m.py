"""Cluster trajectories of at least k people by edit distance, and move their points to within δ of one another (W4M).

Guarantee
---------
No guarantee of anonymity. KDeltaAnonymity(k, δ): every published trajectory has the times of at least k − 1 other people's, and
at each of these times they are all within δ of one another. Ids are new.

Assumptions
-----------
The positions of an adversary are no more precise than δ. Where they are, or where the adversary knows a whole trajectory, points
inside the cylinder distinguish its people: (k, δ)-anonymity was shown not to hide a person among k (third reference), for any δ
above 0. Take it as a rival to compare with, or `delta_m = 0`, where all of a cluster are equal.

Notes
-----
The distance is the edit distance on real sequences, as a share of the longer trajectory: how many points have no match. Points
match within `tolerance_m` east and north, and within the time that the mean speed of the data takes for it.

A cluster is a pivot with the nearest trajectories until it has k people, if all are within a radius; the next pivot is the
farthest one from the last. What is left joins the nearest pivot within the radius, or is left out. If more than `trash` is left
out, it begins again with a larger radius. A person with several trajectories counts once.

Each member gets the times of the pivot. A point of it that matches one of the pivot is moved towards the mean of all points that
match there, as little as brings it to within δ/2; a point without a match is dropped, and where the pivot has a point without a
match, a random point within δ/2 is inserted. The paper edits to the pivot, where the first reference takes the mean as the
center; here the mean is taken, so that no person's trajectory is published unchanged.

The full papers were not available: statements about them are from the abstract of the first, and from the fourth reference.
Time grows with the square of the number of trajectories: 6,581 rides take half a minute.

References
----------
O. Abul, F. Bonchi, M. Nanni: Never walk alone: uncertainty for anonymity in moving objects databases. ICDE 2008. The same:
Anonymization of moving objects databases by clustering and perturbation. Information Systems 35(8), 2010 (W4M).
R. Trujillo-Rasua, J. Domingo-Ferrer: On the privacy offered by (k, δ)-anonymity. Information Systems 38(4), 2013. C. Ferreira
Torres, R. Trujillo-Rasua: The Fréchet/Manhattan distance and the trajectory anonymization problem. DBSec 2016, section 2.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field

from crowdveil.guarantees import Guarantee, KDeltaAnonymity
from crowdveil.method import Method
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.globe import rounded
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params, read_share_of_trajectories
from crowdveil.progress import Progress
from crowdveil.solve.trajectory.aggregation import DECIMALS
from crowdveil.solve.trajectory.distances import Paths, SpatioTemporal
from crowdveil.solve.trajectory.greedy_clusters import GreedyClusters
from crowdveil.solve.trajectory.swapping import owners

INSIDE, ROUNDING_M = 0.99, 1.0
"""Share of the disk that points are moved into, since meters of the plane and of the globe differ by less than one percent, and
what the rounding of published degrees may move them."""


class W4mParams(Params):
    """Parameters of W4M."""

    k: int = Field(3, ge=2)
    """Smallest number of people of a cluster."""
    delta_m: float = Field(500.0, ge=0, le=1_000_000)
    """Largest distance of the published trajectories of a cluster at any time (δ); 0 makes them equal."""
    tolerance_m: float | None = Field(None, gt=0, le=1_000_000)
    """Distance east and north within which points match; 500, or delta_m where that is more, if not given."""
    trash: Annotated[float, BeforeValidator(read_share_of_trajectories)] = 0.1
    """Largest share of the trajectories that may be left out as outliers, such as 10%."""
    count_trajectories: bool = False
    """Let k count trajectories, as the paper does, even where people are known."""


def run(data: Trajectories, params: W4mParams, rng: np.random.Generator, progress: Progress) -> TrajectoryRelease:
    """Make the clusters, then move the points of each."""
    from crowdveil.kernels.trajectory.edit_distance import edit_distances, translated

    paths = Paths.of(data)
    meters = params.tolerance_m or max(500.0, params.delta_m)
    seconds = meters / max(float(SpatioTemporal.of(paths, 1.0).speed.mean()) if len(data) else 0.0, 0.1)
    lengths, every = np.diff(data.offsets), np.arange(len(data))

    def distances(one: int) -> Floats:
        edits: Floats = edit_distances(paths.points, one, every, meters, seconds) / np.maximum(lengths, lengths[one])
        return edits

    search = GreedyClusters(distances, owners(data, params.count_trajectories), params.k)
    clusters = search.clusters(params.trash, rng, progress)
    radius = max(0.0, INSIDE * params.delta_m / 2 - ROUNDING_M)
    x, y, t, sizes, source = [np.zeros(0)], [np.zeros(0)], [data.t[:0]], [every[:0]], [every[:0]]
    for pivot, members in clusters:
        draws = rng.random((2, len(members), int(lengths[pivot])))
        at_x, at_y = translated(paths.points, members, pivot, meters, seconds, radius, draws)
        x.append(at_x.reshape(-1))
        y.append(at_y.reshape(-1))
        t.append(np.tile(data.t[data.offsets[pivot] : data.offsets[pivot + 1]], len(members)))
        sizes.append(np.full(len(members), lengths[pivot]))
        source.append(members)
    return _release(data, np.concatenate(x), np.concatenate(y), np.concatenate(t), np.concatenate(sizes), source)


def _release(data: Trajectories, x: Floats, y: Floats, t: Ints, sizes: Ints, source: list[Ints]) -> TrajectoryRelease:
    """Return moved points as a release; facts about clusters are left out, since outliers would show in them."""
    lon, lat = data.projection.to_globe(x, y)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return TrajectoryRelease(rounded(lon, DECIMALS), np.round(lat, DECIMALS), t, offsets, source=np.concatenate(source))


def guarantees(data: Trajectories, params: W4mParams) -> tuple[Guarantee, ...]:
    """Return that trajectories are within δ of those of k people."""
    unit = "trajectories" if params.count_trajectories else data.k_unit
    return (KDeltaAnonymity(k=params.k, delta_m=params.delta_m, k_unit=unit),)


METHOD = Method(
    "w4m",
    takes=Trajectories,
    params=W4mParams,
    run=run,
    guarantees=guarantees,
    status="heuristic",
    aliases=("W4M", "NWA"),
)
