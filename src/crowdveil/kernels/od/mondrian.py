"""Mondrian: cut flows at medians of their coordinates, as long as both sides keep k people."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Bytes, Floats, Indices, Ints

DIMENSIONS = 4


@kernel
def _put_in_order(tile: Ints, tiles_in_order: Ints, orders: Indices, at: int) -> None:
    """Write the flows in the order that their tiles have, from `at` on: they are counted, not compared."""
    place = np.zeros(len(tiles_in_order), np.int64)
    for row in range(len(tile)):
        place[tile[row]] += 1
    for t in tiles_in_order:
        flows = place[t]
        place[t] = at
        at += flows
    for row in range(len(tile)):
        orders[place[tile[row]]] = row
        place[tile[row]] += 1


@kernel
def _part(orders: Indices, source: int, size: int, target: int, left_size: int, is_left: Bytes) -> None:
    """Write some flows elsewhere, those of the left side first, each side in the order that it had.

    Nothing is branched on: a processor that guesses at medians guesses wrong half of the time. Numbers are unsigned, so
    that it does not have to be asked of each whether it counts from the end.
    """
    left, right = np.uint64(target), np.uint64(target + left_size)
    for i in range(np.uint64(source), np.uint64(source + size)):
        row = orders[i]
        on_left = np.uint64(is_left[np.uint64(row)])
        orders[right + on_left * (left - right)] = row
        left += on_left
        right += np.uint64(1) - on_left


@kernel
def _fewest_people(
    orders: Indices,
    low: int,
    below: int,
    up_to: int,
    high: int,
    member_offsets: Ints,
    member: Ints,
    seen: Ints,
    mark: int,
) -> tuple[int, int]:
    """Count the different people of the side with fewer of them if flows are cut before `up_to`, and if they are before
    `below`.
    """
    counts = np.zeros(4, np.int64)
    for i in range(low, high):
        # A person may be on several sides, ≤ and > the median, < and ≥ it: a bit for each of them, on top of the mark.
        sides = (1 if i < up_to else 2) + (4 if i < below else 8)
        for e in range(member_offsets[orders[i]], member_offsets[orders[i] + 1]):
            person = member[e]
            before = seen[person] - mark if seen[person] >= mark else 0
            seen[person] = mark + (before | sides)
            for side in range(4):
                counts[side] += ((sides & ~before) >> side) & 1
    return min(counts[0], counts[1]), min(counts[2], counts[3])


@kernel
def median_cuts(
    x: Floats,
    y: Floats,
    by_x: Ints,
    by_y: Ints,
    origin: Ints,
    destination: Ints,
    volume: Ints,
    crowd: Ints,
    member_offsets: Ints,
    member: Ints,
    k: int,
) -> tuple[Ints, int]:
    """Cut flows at medians as long as both sides keep a crowd of k: the cluster of each flow, and the number of clusters.

    The dimensions of a flow are x and y of its origin, x and y of its destination. Of them the one with the largest range
    is cut, the first of them if several have it, at its median over trips: ≤ median on one side; if that leaves a side
    without a crowd, < median; if that does too, nothing is cut.

    Flows are kept in order of each dimension. A range is then given by two flows, a median by walking half of the way,
    and a cut parts each order into two that are still in order. Each part lies in the same place of all four orders; there
    are two copies of these, and a part in one of them is cut into the other.

    Parameters
    ----------
    x, y
        Place of each tile.
    by_x, by_y
        The tiles in order of x, and of y.
    origin, destination, volume, crowd
        Tiles, trips and crowd of each flow.
    member_offsets, member
        Who is behind each flow; empty where crowds add up.
    """
    n, people = len(origin), -1
    for e in range(len(member)):
        people = max(people, member[e])
    seen, mark = np.zeros(people + 1, np.int64), 0
    orders, values, is_left = np.empty(2 * DIMENSIONS * n, np.int32), np.empty(DIMENSIONS * n), np.empty(n, np.uint8)
    for row in range(n):
        values[row], values[n + row] = x[origin[row]], y[origin[row]]
        values[2 * n + row], values[3 * n + row] = x[destination[row]], y[destination[row]]
    _put_in_order(origin, by_x, orders, 0)
    _put_in_order(origin, by_y, orders, n)
    _put_in_order(destination, by_x, orders, 2 * n)
    _put_in_order(destination, by_y, orders, 3 * n)
    label, clusters = np.full(n, -1, np.int64), 0
    # Parts to be cut: where they lie in the orders of a copy, where that copy begins, their trips and crowds.
    stack, depth = np.empty((n + 1, 5), np.int64), 1
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = 0, n, 0, volume.sum(), crowd.sum()
    while depth > 0:
        end_if_stopped()
        depth -= 1
        low, high, copy, trips, crowds = stack[depth]
        widest, dimension, middle, left_trips, left_crowds = 0.0, -1, low, 0, 0
        # Two sides take two crowds.
        if crowds >= 2 * k:
            for d in range(DIMENSIONS):
                first, last = orders[copy + d * n + low], orders[copy + d * n + high - 1]
                width = values[d * n + last] - values[d * n + first]
                if width > widest:
                    widest, dimension = width, d
        order, value = copy + dimension * n, dimension * n
        if dimension >= 0:
            up_to, trips_up_to, crowds_up_to = order + low, 0, 0
            while 2 * trips_up_to < trips:
                trips_up_to += volume[orders[up_to]]
                crowds_up_to += crowd[orders[up_to]]
                up_to += 1
            median = values[value + orders[up_to - 1]]
            below, trips_below, crowds_below = up_to, trips_up_to, crowds_up_to
            while up_to < order + high and values[value + orders[up_to]] == median:
                trips_up_to += volume[orders[up_to]]
                crowds_up_to += crowd[orders[up_to]]
                up_to += 1
            while below > order + low and values[value + orders[below - 1]] == median:
                below -= 1
                trips_below -= volume[orders[below]]
                crowds_below -= crowd[orders[below]]
            least_up_to = min(crowds_up_to, crowds - crowds_up_to)
            least_below = min(crowds_below, crowds - crowds_below)
            if len(member) > 0 and max(least_up_to, least_below) >= k:
                mark += 16
                least_up_to, least_below = _fewest_people(
                    orders, order + low, below, up_to, order + high, member_offsets, member, seen, mark
                )
            if least_up_to >= k:
                middle, left_trips, left_crowds = up_to - order, trips_up_to, crowds_up_to
            elif least_below >= k:
                middle, left_trips, left_crowds = below - order, trips_below, crowds_below
        if middle == low:
            for i in range(copy + low, copy + high):
                label[orders[i]] = clusters
            clusters += 1
            continue
        if max(left_crowds, crowds - left_crowds) < 2 * k:
            # Neither side will be cut again: most cuts are such.
            for i in range(order + low, order + high):
                label[orders[i]] = clusters + (i >= order + middle)
            clusters += 2
            continue
        for i in range(order + low, order + high):
            is_left[orders[i]] = i < order + middle
        other = DIMENSIONS * n - copy
        for d in range(DIMENSIONS):
            source, target = copy + d * n + low, other + d * n + low
            if d == dimension:
                orders[target : target + high - low] = orders[source : source + high - low]
            else:
                _part(orders, source, high - low, target, middle - low, is_left)
        stack[depth] = (middle, high, other, trips - left_trips, crowds - left_crowds)
        stack[depth + 1] = (low, middle, other, left_trips, left_crowds)
        depth += 2
    return label, clusters
