"""How far published points are from their original trajectories."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def subtract_positions(
    times: Ints, x: Floats, y: Floats, offsets: Ints,
    source: Ints, wanted: Ints, wanted_offsets: Ints, east: Floats, north: Floats,
) -> None:  # fmt: skip
    """Subtract from each point (`east`, `north`) the position of a trajectory at its time, `wanted`.

    The points of slice i, by `wanted_offsets`, are compared with trajectory source[i]; times rise in both, and no trajectory is
    empty. Between two of its points the position is on the line between them; before the first and after the last it is theirs.
    """
    for i in range(len(source)):
        first, last = offsets[source[i]], offsets[source[i] + 1] - 1
        before = -1
        for j in range(wanted_offsets[i], wanted_offsets[i + 1]):
            if before < 0 or times[before] > wanted[j]:
                before = first + max(np.searchsorted(times[first : last + 1], wanted[j], side="right") - 1, 0)
            while before < last and times[before + 1] <= wanted[j]:
                before += 1
            after = min(before + 1, last)
            moment = min(max(wanted[j], times[first]), times[last])
            part = (moment - times[before]) / max(times[after] - times[before], 1)
            east[j] = east[j] - x[before] - part * (x[after] - x[before])
            north[j] = north[j] - y[before] - part * (y[after] - y[before])
