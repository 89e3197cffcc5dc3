"""How far published points are from their original trajectories, and medians of slices."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.ordering import first_from


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
                before = max(first_from(times, first, last + 1, wanted[j] + 1) - 1, first)
            while before < last and times[before + 1] <= wanted[j]:
                before += 1
            after = min(before + 1, last)
            moment = min(max(wanted[j], times[first]), times[last])
            part = (moment - times[before]) / max(times[after] - times[before], 1)
            east[j] = east[j] - x[before] - part * (x[after] - x[before])
            north[j] = north[j] - y[before] - part * (y[after] - y[before])


@kernel
def lower_medians(values: Floats, offsets: Ints) -> Floats:
    """Return the median of each slice, the lower one of two; the values are reordered inside their slices."""
    medians = np.empty(len(offsets) - 1, np.float64)
    for i in range(len(medians)):
        low, high = offsets[i], offsets[i + 1] - 1
        middle = low + (high - low) // 2
        # Hoare's selection: what is left of `low` is never larger, and what is right of `high` never smaller, than the rest.
        while low < high:
            pivot = values[(low + high) // 2]
            left, right = low, high
            while left <= right:
                while values[left] < pivot:
                    left += 1
                while values[right] > pivot:
                    right -= 1
                if left <= right:
                    values[left], values[right] = values[right], values[left]
                    left += 1
                    right -= 1
            if middle <= right:
                high = right
            elif middle >= left:
                low = left
            else:
                break
        medians[i] = values[middle]
    return medians
