"""The loops of movers on a road network: the shortest route of each, and where it is at each time-stamp.

A network is `first`, `to` and `length`: the roads that leave node i are first[i] to first[i + 1], and `to` is where they lead.
Nothing is random in here.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.growable import grow


@kernel
def _push(keys: Floats, nodes: Ints, size: int, key: float, node: int) -> int:
    """Put a node into a queue, the least key first, and return its new size."""
    i = size
    while i > 0 and keys[(i - 1) // 2] > key:
        keys[i], nodes[i] = keys[(i - 1) // 2], nodes[(i - 1) // 2]
        i = (i - 1) // 2
    keys[i], nodes[i] = key, node
    return size + 1


@kernel
def _pop(keys: Floats, nodes: Ints, size: int) -> int:
    """Take the first node out of a queue, and return its new size."""
    size -= 1
    key, node, i = keys[size], nodes[size], 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], nodes[i] = keys[child], nodes[child]
        i = child
    keys[i], nodes[i] = key, node
    return size


@kernel
def _search(
    x: Floats,
    y: Floats,
    first: Ints,
    to: Ints,
    length: Floats,
    least: float,
    begin: int,
    goal: int,
    reached: Floats,
    came_by: Ints,
    keys: Floats,
    nodes: Ints,
) -> None:
    """Search from `begin` until the way to `goal` is known: `reached` and `came_by` (a road) of all nodes that were met.

    A node's place in the queue is the way to it and `least` times the straight line from it to the goal, which no way undercuts.
    """
    reached[:] = np.inf
    done = np.zeros(len(x), np.bool_)
    reached[begin], came_by[begin] = 0.0, -1
    size = _push(keys, nodes, 0, 0.0, begin)
    while size > 0:
        node = nodes[0]
        size = _pop(keys, nodes, size)
        if node == goal:
            return
        if done[node]:
            continue  # it was put there again by a shorter way, and has been dealt with
        done[node] = True
        for road in range(first[node], first[node + 1]):
            other, way = to[road], reached[node] + length[road]
            if not done[other] and way < reached[other]:
                reached[other], came_by[other] = way, road
                ahead = least * np.hypot(x[other] - x[goal], y[other] - y[goal])
                size = _push(keys, nodes, size, way + ahead, other)


@kernel
def shortest_routes(
    x: Floats, y: Floats, first: Ints, to: Ints, length: Floats, least: float, begins: Ints, goals: Ints
) -> tuple[Ints, Ints]:
    """Return the roads of a shortest route from each of `begins` to its goal, one after the other, and their offsets.

    There must be a way. `least` is the least ratio of a road's length to the straight line between its ends. No road is used in
    the wrong direction: those of a node lead away from it.
    """
    n = len(x)
    reached, came_by = np.empty(n), np.empty(n, np.int64)
    # Roads are looked at once, from the node that they leave, so that each puts one node into the queue at most.
    keys, nodes = np.empty(len(to) + 1), np.empty(len(to) + 1, np.int64)
    origin = np.empty(len(to), np.int64)
    for node in range(n):
        for road in range(first[node], first[node + 1]):
            origin[road] = node
    roads, size = np.empty(16 * len(begins) + 1, np.int64), 0
    offsets = np.zeros(len(begins) + 1, np.int64)
    for i in range(len(begins)):
        _search(x, y, first, to, length, least, begins[i], goals[i], reached, came_by, keys, nodes)
        node, count = goals[i], 0
        while node != begins[i]:
            count += 1
            node = origin[came_by[node]]
        roads = grow(roads, size + count)
        size += count
        node = goals[i]
        for back in range(count):
            roads[size - 1 - back] = came_by[node]
            node = origin[came_by[node]]
        offsets[i + 1] = size
    return roads[:size].copy(), offsets


@kernel
def _slowed(x: float, y: float, stamp: int, a_stamp: int, events: Floats, life: int) -> float:
    """Return the share of its speed that external objects leave a mover: the least factor of those that it is in, 1 without
    one.

    `a_stamp` objects appear at each time-stamp and stay for `life` of them. The columns of `events` are the middle of each,
    how far it drifts in a time-stamp, half its width and its height, and its factor.
    """
    factor = 1.0
    for i in range(max(stamp - life + 1, 0) * a_stamp, min((stamp + 1) * a_stamp, len(events))):
        age = stamp - i // a_stamp
        middle_x, middle_y = events[i, 0] + age * events[i, 2], events[i, 1] + age * events[i, 3]
        if abs(x - middle_x) <= events[i, 4] and abs(y - middle_y) <= events[i, 5]:
            factor = min(factor, events[i, 6])
    return factor


@kernel
def stamps_on_routes(
    x: Floats,
    y: Floats,
    to: Ints,
    length: Floats,
    roads: Ints,
    offsets: Ints,
    begins: Ints,
    speed: Floats,
    appears: Ints,
    lifespan: int,
    a_stamp: int,
    events: Floats,
    life: int,
) -> tuple[Floats, Floats, Ints]:
    """Return positions of movers on their routes at each time-stamp from the one at which each appears, and offsets of movers.

    A mover stands at its first node, then goes on by its speed a time-stamp, less where external objects slow it down at the
    beginning of the time-stamp. It is last seen at its goal, or when its lifespan is over.
    """
    size, px, py = 0, np.empty(64 * len(begins) + 1), np.empty(64 * len(begins) + 1)
    ends = np.zeros(len(begins) + 1, np.int64)
    for i in range(len(begins)):
        node, road, gone, stamp = begins[i], offsets[i], 0.0, appears[i]
        here_x, here_y = x[node], y[node]
        while True:
            px, py = grow(px, size + 1), grow(py, size + 1)
            px[size], py[size] = here_x, here_y
            size += 1
            if road == offsets[i + 1] or stamp - appears[i] + 1 >= lifespan:
                break
            gone += speed[i] * _slowed(here_x, here_y, stamp, a_stamp, events, life)
            stamp += 1
            while road < offsets[i + 1] and gone >= length[roads[road]]:
                gone -= length[roads[road]]
                node = to[roads[road]]
                road += 1
            here_x, here_y = x[node], y[node]
            if road < offsets[i + 1]:
                other = to[roads[road]]
                share = gone / length[roads[road]]
                here_x += share * (x[other] - x[node])
                here_y += share * (y[other] - y[node])
        ends[i + 1] = size
    return px[:size].copy(), py[:size].copy(), ends
