"""Clusterings by name: ways to put trajectories into groups of at least k people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

from crowdveil.engine import extensions
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.model.arrays import Ints
from crowdveil.solve.trajectory.distances import Distance, FrechetManhattan
from crowdveil.solve.trajectory.mdav import Center, CenterAggregation, Grouping
from crowdveil.solve.trajectory.pivots import Clustering as PivotClustering

NAMES = extensions.OpenNames("crowdveil.clusterings", ("mdav", "pivots"))
ClusteringName = Annotated[str, AfterValidator(NAMES.check), NAMES]
"""The name of a clustering, for types and parameters: one of `CLUSTERINGS`, or of an installed package."""
PIVOTS = 10
"""Number of trajectories that are tried as the center of a cluster."""


@dataclass(frozen=True, eq=False)
class ClusteringProblem:
    """The trajectories to group, and the criteria.

    Attributes
    ----------
    distance
        How far trajectories are from one another; its `paths` are the trajectories.
    person
        Whom each trajectory counts for.
    k
        Fewest people of a group.
    parts
        Lists of trajectories, rising; no group has members of two of them, and trajectories of no part are in no group.
    rng
        The source of random choices.
    center
        For MDAV: groups begin far from the center of all trajectories, or of the remaining ones.
    center_aggregation
        For MDAV: the center is the mean of trajectories, or the one that is nearest to it.
    progress
        Called with the trajectories done.
    """

    distance: Distance
    person: Ints
    k: int
    parts: Sequence[Ints]
    rng: np.random.Generator
    center: Center = "once"
    center_aggregation: CenterAggregation = "mean-trajectory"
    progress: Progress = no_progress


@dataclass(frozen=True)
class ClusteringKind:
    """The record of a clustering: what parameters, run files and the docs are drawn from.

    Attributes
    ----------
    name
        In lower case with hyphens.
    make
        problem → the group of each trajectory, with numbers from 0, or -1. Each group must have k people: releases are checked.
    summary
        A description in one sentence.
    distances
        Names of the distances that it takes; all where there are none.
    """

    name: str
    make: Callable[[ClusteringProblem], Ints]
    summary: str
    distances: tuple[str, ...] = ()


def find_clustering(name: str) -> ClusteringKind:
    """Return the record of a clustering: ours, or of an installed package."""
    for own in CLUSTERINGS:
        if name == own.name:
            return own
    found: ClusteringKind = extensions.load(NAMES.group, name, ClusteringKind)
    return found


def check_clustering(name: str, distance: str) -> None:
    """Raise ValueError unless a clustering takes a distance."""
    takes = find_clustering(name).distances
    if takes and distance not in takes:
        raise ValueError(f"the distance {' or '.join(takes)} with the clustering {name}", "Change one of the two")
    if name != "mdav" and distance == "graph":
        raise ValueError(
            "the clustering mdav with the distance graph, which has no distance for some pairs", "Choose mdav"
        )


def _mdav(problem: ClusteringProblem) -> Ints:
    grouping = Grouping(
        problem.distance, problem.person, problem.k, problem.center, center_aggregation=problem.center_aggregation
    )
    return grouping.groups(problem.parts, problem.progress)


def _pivots(problem: ClusteringProblem) -> Ints:
    distance = problem.distance
    if not isinstance(distance, FrechetManhattan):
        raise TypeError("pivots take the Fréchet/Manhattan distance")
    clustering = PivotClustering(distance, problem.person, problem.k, PIVOTS)
    return clustering.clusters("join", problem.rng, problem.progress).cluster


CLUSTERINGS: tuple[ClusteringKind, ...] = (
    ClusteringKind(
        "mdav",
        _mdav,
        "Groups begin with the trajectories that are farthest from the center, and take the nearest ones up to k people.",
    ),
    ClusteringKind(
        "pivots",
        _pivots,
        "A cluster is tried around each of ten trajectories across the data, and the tightest is kept.",
        ("frechet-manhattan", "frechet-manhattan-exact"),
    ),
)
