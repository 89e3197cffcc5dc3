"""A clustering: trajectories in the order of their start, k people at a time."""

from __future__ import annotations

import numpy as np

from crowdveil.model.arrays import Ints
from crowdveil.solve.trajectory.clustering import ClusteringKind, ClusteringProblem


def by_start(problem: ClusteringProblem) -> Ints:
    """Return the group of each trajectory; the last group takes the rest."""
    paths, person = problem.distance.paths, problem.person
    group = np.full(len(person), -1, np.int64)
    number = -1
    for part in problem.parts:
        order = part[np.argsort(paths.t[paths.offsets[part]], kind="stable")]
        left, people = list(order), set[int]()
        if len(set(person[part].tolist())) < problem.k:
            continue
        number += 1
        while left:
            i = left.pop(0)
            rest = set(person[left].tolist()) if left else set()
            group[i] = number
            people.add(int(person[i]))
            if len(people) >= problem.k and len(rest) >= problem.k:
                number, people = number + 1, set()
    return group


CLUSTERING = ClusteringKind("by-start", by_start, "Trajectories in the order of their start, k people at a time.")
