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
center; here the mean is taken. Points that are within δ/2 of it stay where they are, so trajectories of people who travel
close together are published unchanged.

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

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field

from crowdveil.engine.progress import Progress
from crowdveil.guarantees import Guarantee, KDeltaAnonymity
from crowdveil.kernels._jit import kernel
from crowdveil.kernels.trajectory.structures import Points
from crowdveil.methods.base import Facts, Method
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.flows import trips_within
from crowdveil.model.globe import rounded
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params, read_share_of_trajectories
from crowdveil.solve.trajectory.aggregation import DECIMALS
from crowdveil.solve.trajectory.distances import Paths, SpatioTemporal
from crowdveil.solve.trajectory.swapping import owners

INSIDE, ROUNDING_M = 0.99, 1.0
"""Share of the disk that points are moved into, since meters of the plane and of the globe differ by less than one percent, and
the meters by which rounding to published degrees may move them."""
FIRST_RADIUS, GROWTH = 0.1, 1.5
"""Radius of the first round, as a share of the largest distance, and its growth from round to round."""
MOST_KEPT = 50_000_000
"""Distances that are kept for the next round."""


class W4mParams(Params):
    """Parameters of W4M."""

    k: int = Field(3, ge=2, title="Smallest group (k)")
    """Smallest number of people of a cluster."""
    delta_m: float = Field(500.0, ge=0, le=1_000_000)
    """Largest distance of the published trajectories of a cluster at any time (δ); 0 makes them equal."""
    tolerance_m: float | None = Field(None, gt=0, le=1_000_000)
    """Distance east and north within which points match; 500, or δ if that is more, where not given."""
    trash: Annotated[float, BeforeValidator(read_share_of_trajectories)] = 0.1
    """Largest share of the trajectories that may be left out as outliers, such as 10%."""
    count_trajectories: bool = False
    """Let k count trajectories, as the paper does, even where people are known."""


def run(data: Trajectories, params: W4mParams, rng: np.random.Generator, progress: Progress) -> TrajectoryRelease:
    """Make the clusters, then move the points of each."""
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


@dataclass(eq=False)
class GreedyClusters:
    """Clusters of at least k people around pivots.

    Attributes
    ----------
    distances
        Trajectory → its distances to all, from 0 to 1.
    person
        The owner of each trajectory.
    k
        Smallest number of people of a cluster.
    """

    distances: Callable[[int], Floats]
    person: Ints
    k: int
    _kept: dict[int, Floats] = field(default_factory=dict, repr=False)

    def clusters(self, left_out: float, rng: np.random.Generator, progress: Progress) -> list[tuple[int, Ints]]:
        """Return the pivot and the members of each cluster; at most the share `left_out` of all is in none.

        Each round has a larger radius, until no more than that share is left out. At radius 1 none is, if there are k people.
        """
        n, radius = len(self.person), FIRST_RADIUS
        allowed = trips_within(left_out, n)
        first = int(rng.integers(n)) if n else 0
        while n:
            found, missing = self._round(radius, first, progress)
            if missing <= allowed or radius >= 1:
                return found
            radius = min(1.0, radius * GROWTH)
        return []

    def _round(self, radius: float, first: int, progress: Progress) -> tuple[list[tuple[int, Ints]], int]:
        """Return the clusters of one radius, and how many trajectories are in none."""
        n = len(self.person)
        free, active = np.ones(n, np.bool_), np.ones(n, np.bool_)
        pivots: list[int] = []
        members: list[list[int]] = []
        pivot = first
        while active.any():
            far = self._from(pivot)
            chosen = self._nearest(pivot, far, free, radius)
            active[pivot] = False
            if chosen is not None:
                pivots.append(pivot)
                members.append(chosen.tolist())
                free[chosen] = active[chosen] = False
            # The next pivot is the farthest one from the last.
            if active.any():
                pivot = int(np.argmax(np.where(active, far, -1.0)))
            progress(n - int(active.sum()), n)
        missing = self._join(pivots, members, free, radius)
        return [(p, np.sort(np.array(m, np.int64))) for p, m in zip(pivots, members, strict=True)], missing

    def _nearest(self, pivot: int, far: Floats, free: Mask, radius: float) -> Ints | None:
        """Return the pivot and the nearest free trajectories until there are k people; None where the radius is too small."""
        near = np.flatnonzero(free & (far <= radius))
        order = near[np.lexsort((near, far[near], near != pivot))]
        new = np.zeros(len(order), np.bool_)
        new[np.unique(self.person[order], return_index=True)[1]] = True
        reached = np.flatnonzero(np.cumsum(new) >= self.k)
        return order[: reached[0] + 1] if len(reached) else None

    def _join(self, pivots: list[int], members: list[list[int]], free: Mask, radius: float) -> int:
        """Let each free trajectory join the cluster with the nearest pivot within the radius; return how many have none."""
        rest = np.flatnonzero(free)
        if not len(rest) or not pivots:
            return len(rest)
        far = np.stack([self._from(pivot)[rest] for pivot in pivots])
        nearest = np.argmin(far, axis=0)
        for i, (trajectory, cluster) in enumerate(zip(rest.tolist(), nearest.tolist(), strict=True)):
            if far[cluster, i] <= radius:
                members[cluster].append(trajectory)
        return int((far.min(axis=0) > radius).sum())

    def _from(self, pivot: int) -> Floats:
        """Return the distances of a trajectory to all; they are kept while there is space for them."""
        if pivot in self._kept:
            return self._kept[pivot]
        found = self.distances(pivot)
        if (len(self._kept) + 1) * len(self.person) <= MOST_KEPT:
            self._kept[pivot] = found
        return found


@kernel
def matches(points: Points, a: int, b: int, meters: float, seconds: float) -> bool:
    """Return whether two points are within a tolerance of each other: east, north and in time, each by itself."""
    near = abs(points.x[a] - points.x[b]) <= meters and abs(points.y[a] - points.y[b]) <= meters
    return bool(near and abs(points.t[a] - points.t[b]) <= seconds)


@kernel
def edit_distances(points: Points, one: int, to: Ints, meters: float, seconds: float) -> Ints:
    """Return the edit distance of one trajectory to each of some others."""
    found = np.empty(len(to), np.int64)
    begin, end = points.offsets[one], points.offsets[one + 1]
    row = np.empty(end - begin + 1, np.int64)
    for at in range(len(to)):
        low, high = points.offsets[to[at]], points.offsets[to[at] + 1]
        apart = points.t[low] - points.t[end - 1] > seconds or points.t[begin] - points.t[high - 1] > seconds
        if apart:  # no point has a match
            found[at] = max(end - begin, high - low)
            continue
        for j in range(len(row)):
            row[j] = j
        for i in range(low, high):
            diagonal = row[0]
            row[0] += 1
            for j in range(1, len(row)):
                replaced = diagonal + (0 if matches(points, i, begin + j - 1, meters, seconds) else 1)
                diagonal = row[j]
                row[j] = min(replaced, min(row[j], row[j - 1]) + 1)
        found[at] = row[len(row) - 1]
    return found


@kernel
def matched_points(points: Points, one: int, other: int, meters: float, seconds: float) -> Ints:
    """Return, for each point of one trajectory, the point of another that it is matched with at the least edit distance; -1 where
    it has none. Of equal alignments it is the one with the latest matches.
    """
    begin, end = points.offsets[one], points.offsets[one + 1]
    low, high = points.offsets[other], points.offsets[other + 1]
    n, m = end - begin, high - low
    table = np.empty((n + 1, m + 1), np.int32)
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                table[i, j] = i + j
                continue
            same = matches(points, begin + i - 1, low + j - 1, meters, seconds)
            table[i, j] = min(table[i - 1, j - 1] + (0 if same else 1), min(table[i - 1, j], table[i, j - 1]) + 1)
    found = np.full(n, -1, np.int64)
    i, j = n, m
    while i > 0 and j > 0:
        same = matches(points, begin + i - 1, low + j - 1, meters, seconds)
        if table[i, j] == table[i - 1, j - 1] + (0 if same else 1):
            i, j = i - 1, j - 1
            if same:
                found[i] = low + j
        elif table[i, j] == table[i - 1, j] + 1:
            i -= 1
        else:
            j -= 1
    return found


@kernel
def translated(
    points: Points, members: Ints, pivot: int, meters: float, seconds: float, radius: float, draws: Floats
) -> tuple[Floats, Floats]:
    """Return x and y of each member, a row each, at the times of the pivot: points within a radius of the common center.

    The center of a point of the pivot is the mean of it and of all points matched with it. A matched point is moved to the circle
    around the center if it is outside; where there is none, a point of the disk is taken, by two draws from 0 to 1 for each.
    """
    begin = points.offsets[pivot]
    n = points.offsets[pivot + 1] - begin
    matched = np.empty((len(members), n), np.int64)
    for e in range(len(members)):
        if members[e] == pivot:
            matched[e] = np.arange(begin, begin + n)
        else:
            matched[e] = matched_points(points, pivot, members[e], meters, seconds)
    x, y = np.empty((len(members), n), np.float64), np.empty((len(members), n), np.float64)
    for i in range(n):
        center_x, center_y, count = 0.0, 0.0, 0
        for e in range(len(members)):
            if matched[e, i] >= 0:
                # Sums are of differences from the pivot, so that no digit is lost.
                center_x += points.x[matched[e, i]] - points.x[begin + i]
                center_y += points.y[matched[e, i]] - points.y[begin + i]
                count += 1
        center_x = points.x[begin + i] + center_x / count
        center_y = points.y[begin + i] + center_y / count
        for e in range(len(members)):
            at = matched[e, i]
            if at >= 0:
                dx, dy = points.x[at] - center_x, points.y[at] - center_y
                share = min(1.0, radius / max(np.sqrt(dx * dx + dy * dy), 1e-9))
            else:
                angle = 2 * np.pi * draws[0, e, i]
                dx, dy, share = np.cos(angle), np.sin(angle), radius * np.sqrt(draws[1, e, i])
            x[e, i], y[e, i] = center_x + share * dx, center_y + share * dy
    return x, y


def guarantees(params: W4mParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return that trajectories are within δ of those of k people."""
    unit = "trajectories" if params.count_trajectories else facts.k_unit
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
