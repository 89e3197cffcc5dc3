"""The Fréchet/Manhattan distance from one path to many: all of them, the nearest people, or the farthest."""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.trajectory.frechet_manhattan_bounds import (
    SLICES,
    SURE,
    SURE_M,
    between_boxes,
    growth_lower_bounds,
)
from crowdveil.kernels.trajectory.frechet_manhattan_distance import (
    exact_coupling,
    new_work,
    one_pass,
    one_pass_coupling,
)
from crowdveil.kernels.trajectory.frechet_manhattan_upper import PLACES, along, rough_way, weights, within_longest
from crowdveil.kernels.trajectory.resampling import Paths, Points, as_they_are, path_of, together
from crowdveil.kernels.trajectory.spatiotemporal import remember


@kernel
def _pair(
    own: Points,
    other: Points,
    resampled: bool,
    exact: bool,
    limit: float,
    rest: Floats,
    made: Floats,
    number: Ints,
    work: Floats,
) -> float:
    """Return the distance of two paths; may be infinite above a finite limit."""
    p, q = _bring_together(own, other, resampled, made, number)
    return _distance(made, p, q, exact, limit, rest, work)


@kernel
def _bring_together(own: Points, other: Points, resampled: bool, made: Floats, number: Ints) -> tuple[int, int]:
    """Write both paths into `made`, brought to the same moments if wanted; return how many points each has."""
    if resampled:
        n = together(own, other, made, number)
        return n, n
    as_they_are(own, other, made, number)
    return len(own[0]), len(other[0])


@kernel
def _distance(made: Floats, p: int, q: int, exact: bool, limit: float, rest: Floats, work: Floats) -> float:
    """Return the distance of two paths that were brought to the same moments."""
    if exact:
        return exact_coupling(made[0, :p], made[1, :p], made[3, :q], made[4, :q])[0]
    return one_pass(made[0, :p], made[1, :p], made[3, :q], made[4, :q], limit, rest[0], rest[1], work)


@kernel
def coupled_distances(own: Points, to: Ints, paths: Paths, resampled: bool, exact: bool, found: Floats) -> None:
    """Write the distances from a path to those in `to`."""
    p, q = len(own[0]), 0
    for j in to:
        q = max(q, paths[4][j + 1] - paths[4][j])
    made, number, work, rest = np.empty((6, p + q)), np.empty((2, p + q), np.int64), new_work(p + q), np.empty((2, 0))
    for at in range(len(to)):
        found[at] = _pair(own, path_of(paths, to[at]), resampled, exact, np.inf, rest, made, number, work)


@kernel
def coupled_points(first: Points, second: Points, resampled: bool, exact: bool) -> tuple[Floats, Ints, Ints]:
    """Return two paths and their coupling: x, y, t of both, the numbers of their own points, and which meet."""
    size = len(first[0]) + len(second[0])
    made, number = np.empty((6, size)), np.empty((2, size), np.int64)
    p, q = _bring_together(first, second, resampled, made, number)
    if exact:
        return made, number, exact_coupling(made[0, :p], made[1, :p], made[3, :q], made[4, :q])[1]
    return made, number, one_pass_coupling(made[0, :p], made[1, :p], made[3, :q], made[4, :q])


@kernel
def gather(
    i: int,
    to: Ints,
    least: Floats,
    most_of_all: float,
    person: Ints,
    k: int,
    paths: Paths,
    boxes: Floats,
    resampled: bool,
    exact: bool,
    longest: int,
    found: Floats,
) -> int:
    """Write distances from a path to others, given in the order of their lower bounds, until k people are nearer than all that
    follow; the rest are infinite. Return how many were computed; -1 as soon as the squares of the distances of the k − 1
    nearest people are sure to sum up to more than `most_of_all`.
    """
    found[:] = np.inf
    own = path_of(paths, i)
    size = len(own[0]) + longest
    made, number, work = np.empty((6, size)), np.empty((2, size), np.int64), new_work(size)
    rest, moment, apart = np.empty((2, size)), np.empty((2, size)), np.empty((SLICES, SLICES))
    near_d, near_person = np.full(k, np.inf), np.full(k, -1, np.int64)
    near_d[0], near_person[0] = 0.0, person[i]
    people, allowed = 1, most_of_all * SURE + SURE_M
    for at in range(len(to)):
        squares = 0.0
        for place in range(1, k):
            squares += min(near_d[place], least[at]) ** 2
        if squares > allowed:
            return -1
        if least[at] > near_d[k - 1]:
            return at
        limit = min(near_d[k - 1], math.sqrt(allowed)) * SURE + SURE_M
        other = path_of(paths, to[at])
        if limit < np.inf and not exact:
            between_boxes(boxes[i], boxes[to[at]], apart)
            growth_lower_bounds(own, other, apart, limit, resampled, moment, rest)
        d = _pair(own, other, resampled, exact, limit, rest, made, number, work)
        found[at] = d
        if d < near_d[k - 1]:
            people = remember(near_d, near_person, people, d, person[to[at]])
    squares = 0.0
    for place in range(1, k):
        squares += near_d[place] ** 2
    return -1 if squares > allowed else len(to)


@kernel
def farthest(
    i: int,
    to: Ints,
    most: Floats,
    sure: float,
    paths: Paths,
    resampled: bool,
    exact: bool,
    longest: int,
    squares: Floats,
) -> tuple[float, int, int, int]:
    """Find the farthest of some paths: its distance, its number, how many were compared by all pairs of points, and how many of
    these distances were computed. Of equal ones it is the first in number; none (-1) if all are nearer than `sure`.

    It is best to begin with those that look far. `most` is how far each can be at most, `squares` from `new_squares`.
    """
    own = path_of(paths, i)
    size = len(own[0]) + longest
    made, number, work, rest = np.empty((6, size)), np.empty((2, size), np.int64), new_work(size), np.empty((2, 0))
    few, way = np.empty((4, PLACES)), np.empty((2, 2 * size), np.int64)
    weight = weights(2 * size)
    best, who, looked, computed = sure, -1, 0, 0
    for at in range(len(to)):
        if most[at] < best:
            continue
        p, q = _bring_together(own, path_of(paths, to[at]), resampled, made, number)
        a_x, a_y, b_x, b_y = made[0, :p], made[1, :p], made[3, :q], made[4, :q]
        n = rough_way(a_x, a_y, b_x, b_y, few, way)
        if along(a_x, a_y, b_x, b_y, way, n, weight) * SURE + SURE_M < best:
            continue
        looked += 1
        if within_longest(a_x, a_y, b_x, b_y, way, n, weight, work, squares) * SURE + SURE_M < best:
            continue
        d = _distance(made, p, q, exact, np.inf, rest, work)
        if d > best or (d == best and (who < 0 or to[at] < who)):
            best, who = d, to[at]
        computed += 1
    return best, who, looked, computed
