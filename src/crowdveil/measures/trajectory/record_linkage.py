"""Measure how many trajectories are re-identified by the nearest original of each published one."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field, model_validator

from crowdveil.kernels.trajectory.aggregation import mean_path
from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.separation import DistanceParams, distance_of, distances_to_originals
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.distances import make_distance
from crowdveil.solve.trajectory.distances.nearest import NearestNeighbors, same_paths


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
    there = (rank[compared.source] >= begin[which]) & (rank[compared.source] < end[which])
    neighbors = NearestNeighbors(distance_of(compared, params), compared.published)
    least, count = neighbors.least(first, order, begin, end, compared.progress)
    linked = there & (far == least[which]) & (count[which] > 0)
    return np.array([100 * float(np.sum(1 / count[which[linked]])) / n])


def _windows(compared: TrajectoryComparison, params: LinkageParams, those: Ints) -> tuple[Ints, Ints, Ints]:
    """Return an order of originals, and the range in it that each published trajectory searches: from, to."""
    n = len(compared.original)
    every = np.arange(n)
    if params.window is None:
        return every, np.zeros(len(those), np.int64), np.full(len(those), n)

    distance: Any = distance_of(compared, params)
    center = mean_path(every, compared.paths.points)
    far = distance.between(center, every)
    published = make_distance(compared.published, params.distance, getattr(distance, "weight", 0.0))
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
        "record-linkage", "trajectories linked to their originals", "%", "lower", Trajectories, record_linkage,
        "Percentage of originals re-identified by choosing for each published trajectory one at the smallest distance.",
        symbol="RL", params=LinkageParams,
    ),
)  # fmt: skip
