"""Distances between trajectories: the one list, for every method and measure, by name."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from crowdveil.engine import extensions
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.distances.base import Distance, DistanceKind, Paths
from crowdveil.solve.trajectory.distances.contemporaries import Contemporaries
from crowdveil.solve.trajectory.distances.coupled import FrechetManhattan, Warped
from crowdveil.solve.trajectory.distances.spatiotemporal import SpatioTemporal, published_weight, time_weight

__all__ = [
    "DISTANCES",
    "Contemporaries",
    "Distance",
    "DistanceKind",
    "DistanceName",
    "FrechetManhattan",
    "Paths",
    "SpatioTemporal",
    "Warped",
    "distance_kind",
    "make_distance",
    "published_weight",
    "time_weight",
]

DISTANCES: tuple[DistanceKind, ...] = (
    DistanceKind(
        "spatiotemporal",
        SpatioTemporal.of,
        "Root mean square over evenly matched points of meters apart, plus seconds apart at the mean speed of both, times λ.",
        ("Martinez2021",),
    ),
    DistanceKind(
        "graph",
        lambda paths, weight: Contemporaries(paths),
        "Shortest way over trajectories that are on their way at the same time, each step as long as they are apart then.",
        ("DomingoTrujillo2012",),
    ),
    DistanceKind(
        "dtw",
        lambda paths, weight: Warped(paths, "dtw"),
        "Dynamic time warping: the least sum of meters apart over a walk along both; times do not count.",
    ),
    DistanceKind(
        "discrete-frechet",
        lambda paths, weight: Warped(paths, "discrete-frechet"),
        "Discrete Fréchet distance: the least longest meters apart over a walk along both; times do not count.",
    ),
    DistanceKind(
        "frechet",
        lambda paths, weight: Warped(paths, "frechet"),
        "Fréchet distance: the shortest leash with which both can be walked, legs included; times do not count.",
    ),
    DistanceKind(
        "edr",
        lambda paths, weight: Warped(paths, "edr"),
        "Edit distance on real sequences: share of points to insert, delete or replace, times the 100 m within which points are "
        "equal; times do not count.",
    ),
    DistanceKind(
        "lcss",
        lambda paths, weight: Warped(paths, "lcss"),
        "Share of the shorter one's points that are not in the longest common subsequence, times the 100 m within which points "
        "are equal; times do not count.",
    ),
    DistanceKind(
        "frechet-manhattan",
        lambda paths, weight: FrechetManhattan(paths),
        "Mean meters apart over the walk along both, of those with the least longest, that one pass finds; times do not count.",
        ("FerreiraTrujillo2016",),
    ),
    DistanceKind(
        "frechet-manhattan-exact",
        lambda paths, weight: FrechetManhattan(paths, exact=True),
        "The same, over the walk with the least mean of all with the least longest: the definition that one pass comes near to.",
    ),
)


NAMES = extensions.OpenNames("crowdveil.distances", tuple(kind.name for kind in DISTANCES))
DistanceName = Annotated[str, AfterValidator(NAMES.check), NAMES]
"""The name of a distance, for types and parameters: one of ours, or of an installed package."""


def distance_kind(name: str) -> DistanceKind:
    """Return the record of a distance by its name or one of its aliases."""
    for kind in DISTANCES:
        if name == kind.name or name in kind.aliases:
            return kind
    found: DistanceKind = extensions.load(NAMES.group, name, DistanceKind)
    return found


def make_distance(data: Trajectories | Paths, name: str, weight: float = 0.0) -> Distance:
    """Make a distance by its name, between the trajectories of a data set; `weight` is the weight of time in the spatio-
    temporal one.
    """
    return distance_kind(name).make(data if isinstance(data, Paths) else Paths.of(data), weight)
