"""Units (people or trajectories) by location, from their records in order."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints


@kernel
def units_by_location(location: Ints, offsets: Ints, locations: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return where the units of each location begin and end, the units, and where the positions of each begin, and these.

    The records of unit u are offsets[u] to offsets[u + 1]; positions count from its first. Units rise at a location, and
    positions of a unit do. Records are in the order of units already, so that counting by location is enough.
    """
    last = np.full(locations, -1, np.int64)
    pairs, records = np.zeros(locations + 1, np.int64), np.zeros(locations + 1, np.int64)
    for u in range(len(offsets) - 1):
        for i in range(offsets[u], offsets[u + 1]):
            at = location[i]
            records[at + 1] += 1
            if last[at] != u:
                last[at] = u
                pairs[at + 1] += 1
    for at in range(locations):
        records[at + 1] += records[at]
        pairs[at + 1] += pairs[at]
    unit, first = np.empty(pairs[locations], np.int64), np.empty(pairs[locations] + 1, np.int64)
    position, pair = np.empty(len(location), np.int64), pairs.copy()
    last[:] = -1
    for u in range(len(offsets) - 1):
        for i in range(offsets[u], offsets[u + 1]):
            at = location[i]
            if last[at] != u:
                last[at] = u
                unit[pair[at]], first[pair[at]] = u, records[at]
                pair[at] += 1
            position[records[at]] = i - offsets[u]
            records[at] += 1
    first[len(first) - 1] = len(location)
    return pairs, unit, first, position
