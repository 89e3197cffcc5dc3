"""Measure the root mean square distance between trajectories and their published versions."""

from __future__ import annotations

import math

import numpy as np

from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.separation import DistanceParams, distance_of, distances_to_originals, weight_of
from crowdveil.model.arrays import Floats
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.distances.nearest import largest


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
)  # fmt: skip
