"""A tree over trajectories, for the nearest and the farthest ones by the spatio-temporal distance, exactly.

The pairs of the distance are spread evenly over both trajectories. So the first points meet, the last points meet, and pairs up
to the middle are of points up to number p // 2 of each trajectory (from 0), the others of points from there on; a pair in the
middle is of both halves. With a and b the least that such halves can be apart, the mean square of all pairs is at least
(a² + b²) / 2, and at most that of the greatest. A node has boxes around the ends and the halves of its trajectories.

Trajectories are taken out of the tree when they get a group, and the boxes of their nodes shrink.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints, Mask
from crowdveil.kernels.trajectory.spatiotemporal import SURE, SURE_M, pair_distance, remember
from crowdveil.kernels.trajectory.structures import Metric, TrajectoryTree

LEAF = 4
"""Most trajectories of a leaf."""
DEEPEST = 64
"""Entries of a stack: a search keeps one node of each level, and there are fewer levels than bits."""
FIRST, LAST, FIRST_HALF, SECOND_HALF = 0, 6, 12, 18
"""Boxes of a node, each least and greatest x, y and t: of the first points, the last points, and both halves."""
SLOWEST, FASTEST, POINTS = 24, 25, 26
SIDES = 27


@kernel
def _widen(row: Floats, box: int, x: float, y: float, t: float) -> None:
    row[box], row[box + 1] = min(row[box], x), max(row[box + 1], x)
    row[box + 2], row[box + 3] = min(row[box + 2], y), max(row[box + 3], y)
    row[box + 4], row[box + 5] = min(row[box + 4], t), max(row[box + 5], t)


@kernel
def clear(row: Floats) -> None:
    """Make the bounds of a node empty."""
    for box in range(0, POINTS, 2):
        row[box], row[box + 1] = np.inf, -np.inf
    row[POINTS] = 0.0


@kernel
def add(row: Floats, i: int, metric: Metric) -> None:
    """Widen the boxes of a node by a trajectory."""
    x, y, t, offsets = metric.points
    low, high = offsets[i], offsets[i + 1]
    middle = low + (high - low) // 2
    _widen(row, FIRST, x[low], y[low], t[low])
    _widen(row, LAST, x[high - 1], y[high - 1], t[high - 1])
    for e in range(low, middle + 1):
        _widen(row, FIRST_HALF, x[e], y[e], t[e])
    for e in range(middle, high):
        _widen(row, SECOND_HALF, x[e], y[e], t[e])
    row[SLOWEST], row[FASTEST] = min(row[SLOWEST], metric.speed[i]), max(row[FASTEST], metric.speed[i])
    row[POINTS] = max(row[POINTS], high - low)


@kernel
def _join(bounds: Floats, node: int) -> None:
    """Make the boxes of a node those around the boxes of its children."""
    row, a, b = bounds[node], bounds[2 * node], bounds[2 * node + 1]
    for box in range(0, POINTS, 2):
        row[box], row[box + 1] = min(a[box], b[box]), max(a[box + 1], b[box + 1])
    row[POINTS] = max(a[POINTS], b[POINTS])


@kernel
def build(metric: Metric) -> TrajectoryTree:
    """Make the tree of all trajectories: nodes are halved where their ends, or their times, are spread widest."""
    x, y, t, offsets = metric.points
    n, levels = len(offsets) - 1, 0
    while n > LEAF << levels:
        levels += 1
    first, last = offsets[:-1], offsets[1:] - 1
    worth = metric.weight * metric.speed.mean() if n > 0 else 0.0
    keys = (x[first], y[first], x[last], y[last], worth * (t[first] + t[last]) / 2)
    order = np.arange(n)
    for level in range(levels):
        for node in range(1 << level):
            low, high = (n * node) >> level, (n * (node + 1)) >> level
            here = order[low:high].copy()
            widest = keys[0][here]
            for key in keys[1:]:
                values = key[here]
                if values.max() - values.min() > widest.max() - widest.min():
                    widest = values
            order[low:high] = here[np.argsort(widest)]
    leaf_of = np.empty(n, np.int64)
    bounds = np.empty((2 << levels, SIDES))
    for leaf in range(1 << levels):
        row = bounds[(1 << levels) + leaf]
        clear(row)
        for at in range((n * leaf) >> levels, (n * (leaf + 1)) >> levels):
            leaf_of[order[at]] = leaf
            add(row, order[at], metric)
    for node in range((1 << levels) - 1, 0, -1):
        _join(bounds, node)
    return TrajectoryTree(order, leaf_of, bounds, levels)


@kernel
def remove(members: Ints, tree: TrajectoryTree, metric: Metric, taken: Mask) -> None:
    """Take trajectories, which are marked as taken, out of the tree."""
    order, leaf_of, bounds, levels = tree
    n = len(order)
    for i in members:
        leaf = leaf_of[i]
        node = (1 << levels) + leaf
        clear(bounds[node])
        for at in range((n * leaf) >> levels, (n * (leaf + 1)) >> levels):
            if not taken[order[at]]:
                add(bounds[node], order[at], metric)
        while node > 1:
            node //= 2
            _join(bounds, node)


@kernel
def _gap(a: Floats, b: Floats, box: int, worth: float) -> float:
    """Return the least distance between points of two boxes, with time."""
    dx = max(max(b[box] - a[box + 1], a[box] - b[box + 1]), 0.0)
    dy = max(max(b[box + 2] - a[box + 3], a[box + 2] - b[box + 3]), 0.0)
    dt = max(max(b[box + 4] - a[box + 5], a[box + 4] - b[box + 5]), 0.0)
    return float(math.sqrt(dx * dx + dy * dy) + worth * dt)


@kernel
def _reach(a: Floats, b: Floats, box: int, worth: float) -> float:
    """Return the greatest distance between points of two boxes, with time."""
    dx = max(b[box + 1] - a[box], a[box + 1] - b[box])
    dy = max(b[box + 3] - a[box + 2], a[box + 3] - b[box + 2])
    dt = max(b[box + 5] - a[box + 4], a[box + 5] - b[box + 4])
    return float(math.sqrt(dx * dx + dy * dy) + worth * dt)


@kernel
def lower_bound(own: Floats, node: Floats, weight: float) -> float:
    """Return a distance that no trajectory of a node is nearer than; infinite if there is none."""
    if node[0] > node[1]:
        return np.inf
    worth = weight * (own[SLOWEST] + node[SLOWEST]) / 2
    pairs = max((own[POINTS] + node[POINTS] + 1) // 2, 2.0)
    ends = (_gap(own, node, FIRST, worth) ** 2 + _gap(own, node, LAST, worth) ** 2) / pairs
    halves = (_gap(own, node, FIRST_HALF, worth) ** 2 + _gap(own, node, SECOND_HALF, worth) ** 2) / 2
    return math.sqrt(max(ends, halves))


@kernel
def upper_bound(own: Floats, node: Floats, weight: float) -> float:
    """Return a distance that no trajectory of a node is farther than; negative if there is none."""
    if node[0] > node[1]:
        return -2.0
    worth = weight * (own[FASTEST] + node[FASTEST]) / 2
    return math.sqrt((_reach(own, node, FIRST_HALF, worth) ** 2 + _reach(own, node, SECOND_HALF, worth) ** 2) / 2)


@kernel
def _descend(row: Floats, tree: TrajectoryTree, weight: float, node: int, nodes: Ints, least: Floats, top: int) -> int:
    """Put the children of a node on the stack, the nearer one on top; return its new height."""
    a = lower_bound(row, tree.bounds[2 * node], weight)
    b = lower_bound(row, tree.bounds[2 * node + 1], weight)
    first = 0 if a <= b else 1
    nodes[top], least[top] = 2 * node + 1 - first, max(a, b)
    nodes[top + 1], least[top + 1] = 2 * node + first, min(a, b)
    return top + 2


@kernel
def _bounds_of(i: int, metric: Metric) -> Floats:
    """Return the boxes of one trajectory."""
    row = np.empty(SIDES)
    clear(row)
    add(row, i, metric)
    return row


@kernel
def near_people(
    own: int, metric: Metric, tree: TrajectoryTree, taken: Mask, person: Ints, k: int, near: Ints, found: Floats
) -> int:
    """Write trajectories that are left and so near that k people are not nearer, and some others, with their distances.

    Returns how many were written. `own` is not among them.
    """
    n, row = len(tree.order), _bounds_of(own, metric)
    near_d, near_person = np.full(k, np.inf), np.full(k, -1, np.int64)
    near_d[0], near_person[0] = 0.0, person[own]
    people, limit, count = 1, np.inf if k > 1 else 0.0, 0
    nodes, least = np.empty(DEEPEST, np.int64), np.empty(DEEPEST)
    nodes[0], least[0], top = 1, lower_bound(row, tree.bounds[1], metric.weight), 1
    while top > 0:
        top -= 1
        node = nodes[top]
        if least[top] == np.inf or least[top] > limit * SURE + SURE_M:
            continue
        if node < 1 << tree.levels:
            top = _descend(row, tree, metric.weight, node, nodes, least, top)
            continue
        leaf = node - (1 << tree.levels)
        for at in range((n * leaf) >> tree.levels, (n * (leaf + 1)) >> tree.levels):
            j = tree.order[at]
            if taken[j] or j == own:
                continue
            worth = metric.weight * (metric.speed[own] + metric.speed[j]) / 2
            d = pair_distance(metric.points, own, metric.points, j, worth, limit * limit * SURE)
            if d == np.inf:
                continue
            near[count], found[count] = j, d
            count += 1
            if d < limit:
                people = remember(near_d, near_person, people, d, person[j])
                if people == k:
                    limit = near_d[k - 1]
    return count


@kernel
def nearest_distances(
    own: Metric, those: Ints, metric: Metric, tree: TrajectoryTree, rank: Ints, begin: Ints, end: Ints
) -> tuple[Floats, Ints]:
    """Return the least distance of some paths of another set to the trajectories with a rank from `begin` to `end`, and how many
    are at it.
    """
    n, found, ties = len(tree.order), np.full(len(those), np.inf), np.zeros(len(those), np.int64)
    nodes, least = np.empty(DEEPEST, np.int64), np.empty(DEEPEST)
    for at_row in range(len(those)):
        i, limit = those[at_row], np.inf
        row = _bounds_of(i, own)
        nodes[0], least[0], top = 1, lower_bound(row, tree.bounds[1], metric.weight), 1
        while top > 0:
            top -= 1
            node = nodes[top]
            if least[top] == np.inf or least[top] > limit * SURE + SURE_M:
                continue
            if node < 1 << tree.levels:
                top = _descend(row, tree, metric.weight, node, nodes, least, top)
                continue
            leaf = node - (1 << tree.levels)
            for at in range((n * leaf) >> tree.levels, (n * (leaf + 1)) >> tree.levels):
                j = tree.order[at]
                if not begin[at_row] <= rank[j] < end[at_row]:
                    continue
                worth = metric.weight * (own.speed[i] + metric.speed[j]) / 2
                d = pair_distance(own.points, i, metric.points, j, worth, limit * limit * SURE)
                if d < limit:
                    limit, ties[at_row] = d, 1
                elif d == limit and d < np.inf:
                    ties[at_row] += 1
        found[at_row] = limit
    return found, ties


@kernel
def farthest_left(own: int, metric: Metric, tree: TrajectoryTree, taken: Mask, sure: float) -> tuple[float, int]:
    """Return the distance of the farthest other trajectory that is left, and its number, of equal ones the first; `sure` and -1
    if none is as far as `sure`.
    """
    n, row = len(tree.order), _bounds_of(own, metric)
    farthest, who = sure, -1
    nodes, most = np.empty(DEEPEST, np.int64), np.empty(DEEPEST)
    nodes[0], most[0], top = 1, upper_bound(row, tree.bounds[1], metric.weight), 1
    while top > 0:
        top -= 1
        node = nodes[top]
        if most[top] * SURE + SURE_M < farthest or most[top] < 0:
            continue
        if node < 1 << tree.levels:
            a = upper_bound(row, tree.bounds[2 * node], metric.weight)
            b = upper_bound(row, tree.bounds[2 * node + 1], metric.weight)
            first = 0 if a >= b else 1
            nodes[top], most[top] = 2 * node + 1 - first, min(a, b)
            nodes[top + 1], most[top + 1] = 2 * node + first, max(a, b)
            top += 2
            continue
        leaf = node - (1 << tree.levels)
        for at in range((n * leaf) >> tree.levels, (n * (leaf + 1)) >> tree.levels):
            j = tree.order[at]
            if taken[j] or j == own:
                continue
            worth = metric.weight * (metric.speed[own] + metric.speed[j]) / 2
            d = pair_distance(metric.points, own, metric.points, j, worth, np.inf)
            if d > farthest or (d == farthest and (who < 0 or j < who)):
                farthest, who = d, j
    return farthest, who


@kernel
def time_shares(some: Ints, metric: Metric, tree: TrajectoryTree, person: Ints) -> Floats:
    """Return the share of time in the distance from each of some trajectories to the nearest one of another person.

    The share is 1 less the quotient of the distance in space alone and the distance; 0 where there is no distance or no other
    person. Of equally near ones the first counts. All trajectories are in the tree.
    """
    n = len(person)
    taken, near, found, shares = np.zeros(n, np.bool_), np.empty(n, np.int64), np.empty(n), np.zeros(len(some))
    for i in range(len(some)):
        own, at, nearest = some[i], n, np.inf
        count = near_people(own, metric, tree, taken, person, 2, near, found)
        for e in range(count):
            j, d = near[e], found[e]
            if person[j] != person[own] and (d < nearest or (d == nearest and j < at)):
                at, nearest = j, d
        if at == n or nearest == 0:
            continue
        shares[i] = 1 - pair_distance(metric.points, own, metric.points, at, 0.0, np.inf) / nearest
    return shares
