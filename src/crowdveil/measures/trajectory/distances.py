"""Measure distances of published trajectories from their originals: RMSE, and record linkage by the nearest original."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from crowdveil.errors import InputError
from crowdveil.kernels.trajectory.aggregation import mean_path
from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.release import has_segments
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params, TimeWeight
from crowdveil.solve.trajectory.distances import Distance, DistanceName, make_distance, time_weight
from crowdveil.solve.trajectory.distances.nearest import NearestNeighbors, largest, same_paths


class DistanceParams(Params):
    """Parameters of measures by distance."""

    distance: DistanceName = "spatiotemporal"
    """Distance between trajectories."""
    time_weight: TimeWeight = "mobidatalab"
    """Weight of time in the spatio-temporal distance: a number (0 is space alone), auto, mobidatalab, or mean-ratio."""


def weight_of(compared: TrajectoryComparison, params: DistanceParams) -> float:
    """Return the weight of time; estimate it from the original where it is not given, and note it."""
    if params.distance != "spatiotemporal":
        return 0.0
    wanted: Any = params.time_weight
    # A sample, where one is taken, is always the same.
    found = compared.once(("weight", wanted), lambda: time_weight(compared.original, wanted, np.random.default_rng(0)))
    if isinstance(wanted, str):
        compared.notes.add(f"the weight of time in the spatio-temporal distance is {found:g} (time_weight = {wanted}).")
    return found


def distance_of(compared: TrajectoryComparison, params: DistanceParams) -> Distance:
    """Return the distance between originals."""
    weight = weight_of(compared, params)
    return compared.once(
        ("distance", params.distance, weight), lambda: make_distance(compared.paths, params.distance, weight)
    )


def distances_to_originals(compared: TrajectoryComparison, params: DistanceParams) -> Floats:
    """Return the distance of each published trajectory to its original."""
    source, distance = compared.source, distance_of(compared, params)
    if len(source) and not (source.min() >= 0 and source.max() < len(compared.original)):
        raise InputError(
            "release", "it comes from trajectories that the original does not have. Give its own original."
        )
    if has_segments(compared.release):
        raise InputError(
            "release",
            "it has several segments of one trajectory, which have no distance from it. Choose other measures.",
        )
    key = "apart", params.distance, weight_of(compared, params)
    return compared.once(key, lambda: NearestNeighbors(distance, compared.published).to_each(source))


def _rmse(compared: TrajectoryComparison, params: DistanceParams) -> float:
    far = distances_to_originals(compared, params)
    return math.sqrt(float(np.mean(far * far))) if len(far) else math.nan


def rmse(compared: TrajectoryComparison, params: DistanceParams) -> Floats:
    """Return √(Σ d² / n)."""
    return np.array([_rmse(compared, params)])


def rmse_document(compared: TrajectoryComparison, params: DistanceParams) -> Floats:
    """Return √(Σ d²) / n, as printed in the MobiDataLab deliverable."""
    n = len(compared.release)
    return np.array([_rmse(compared, params) / math.sqrt(n) if n else math.nan])


def normalized_rmse(compared: TrajectoryComparison, params: DistanceParams) -> Floats:
    """Return √(Σ (d / D)² / n), D the largest distance between two originals."""
    error = _rmse(compared, params)
    key = "largest", params.distance, weight_of(compared, params)
    largest_m, exact = compared.once(key, lambda: largest(distance_of(compared, params), compared.progress))
    if not exact:
        compared.notes.add(
            f"the largest {params.distance} distance between originals is at least {largest_m:,.0f} m; with this many "
            "trajectories not all pairs were searched, so that the normalized RMSE is an upper bound."
        )
    return np.array([error / largest_m if largest_m > 0 else math.nan])


class LinkageParams(DistanceParams):
    """Parameters of record linkage."""

    window: float | None = Field(None, gt=0, le=100)
    """Search only this percentage of the originals: those at the same distance from the center as the published one."""

    @model_validator(mode="after")
    def _can_be_windowed(self) -> LinkageParams:
        if self.window is not None and self.distance == "graph":
            raise ValueError(
                "no window with the distance graph, in which a center is far from all but its contemporaries"
            )
        return self


def record_linkage(compared: TrajectoryComparison, params: LinkageParams) -> Floats:
    """Return 100 Σ Pr / n: Pr = 1 / |G| if the true original is in G, the originals at the smallest distance, otherwise 0."""
    far, n = distances_to_originals(compared, params), len(compared.original)
    if not len(far):
        return np.zeros(1)
    # All in an equivalence class have the same trajectory: it is searched once.
    first, which = same_paths(compared.published)
    order, begin, end = _windows(compared, params, first)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    in_window = (rank[compared.source] >= begin[which]) & (rank[compared.source] < end[which])
    neighbors = NearestNeighbors(distance_of(compared, params), compared.published)
    least, count = neighbors.least(first, order, begin, end, compared.progress)
    linked = in_window & (far == least[which]) & (count[which] > 0)
    return np.array([100 * float(np.sum(1 / count[which[linked]])) / n])


def _windows(compared: TrajectoryComparison, params: LinkageParams, those: Ints) -> tuple[Ints, Ints, Ints]:
    """Return an order of originals, and the range in it that each published trajectory searches: from, to."""
    n = len(compared.original)
    every = np.arange(n)
    if params.window is None:
        return every, np.zeros(len(those), np.int64), np.full(len(those), n)
    distance = distance_of(compared, params)
    center = mean_path(every, compared.paths.points)
    far = distance.between(center, every)
    published = make_distance(compared.published, params.distance, weight_of(compared, params))
    order = np.argsort(far, kind="stable")
    size = max(int(np.ceil(n * params.window / 100)), 1)
    begin = _around(far[order], published.between(center, those), size)
    return order, begin, begin + size


def _around(rising: Floats, values: Floats, size: int) -> Ints:
    """Return where the `size` numbers nearest to each value begin; of equally near ones the smaller."""
    low, high = np.zeros(len(values), np.int64), np.full(len(values), len(rising) - size)
    while np.any(low < high):
        middle = (low + high) // 2
        later = values - rising[middle] > rising[np.minimum(middle + size, len(rising) - 1)] - values
        on = low < high
        low, high = np.where(on & later, middle + 1, low), np.where(on & ~later, middle, high)
    return low


MEASURES = (
    Measure(
        "rmse", "root mean square distance to the original", "m", "lower", Trajectories, rmse,
        "The root of the mean square distance between kept trajectories and their published versions.",
        symbol="RMSE", params=DistanceParams,
    ),
    Measure(
        "rmse-document", "root of summed squares over n, as printed", "m", "lower", Trajectories, rmse_document,
        "The root of the sum of squares, divided by the number of trajectories: it falls as data grows.",
        params=DistanceParams,
    ),
    Measure(
        "normalized-rmse", "root mean square distance, of the largest", "", "lower", Trajectories, normalized_rmse,
        "The root mean square distance, divided by the largest distance between two originals.",
        symbol="NRMSE", params=DistanceParams,
    ),
    Measure(
        "record-linkage", "trajectories linked to their originals", "%", "lower", Trajectories, record_linkage,
        "Percentage of originals re-identified by choosing for each published trajectory one at the smallest distance.",
        symbol="RL", params=LinkageParams,
    ),
)  # fmt: skip
