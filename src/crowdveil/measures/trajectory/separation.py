"""Compute the distances of published trajectories from their originals, for several measures."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.errors import InputError
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.release import has_segments
from crowdveil.params import Params, TimeWeight
from crowdveil.solve.trajectory.distances import Distance, DistanceName, make_distance, time_weight
from crowdveil.solve.trajectory.distances.nearest import NearestNeighbors


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
