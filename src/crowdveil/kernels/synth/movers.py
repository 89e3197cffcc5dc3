"""The loops of movers on a road network: where each is at each time-stamp.

Each road has the node that it leads to (`to`) and a length. Nothing is random in here.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.growable import grow


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
