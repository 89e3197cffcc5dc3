"""How far the destinations of each origin are from those of all trips of its time step."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def distance_sums(
    step: Ints, origin: Ints, destination: Ints, volume: Ints, offsets: Ints, tiles: Ints, count: int
) -> tuple[float, float]:
    """Return the sum over trips of the distance of their origin, and the number of trips.

    Rows are sorted by step and origin. The volume of a row is spread evenly over the tiles of its destination, which are
    tiles[offsets[d]:offsets[d + 1]], of `count`. The distance is half the sum of differences of shares.
    """
    whole, own, to_area = np.zeros(count), np.zeros(count), np.zeros(len(offsets) - 1)
    far, trips = 0.0, 0.0
    begin = 0
    while begin < len(step):
        end = begin
        of_step = 0.0
        while end < len(step) and step[end] == step[begin]:
            to_area[destination[end]] += volume[end]
            end += 1
        for row in range(begin, end):  # each area once
            of_step += _spread(to_area[destination[row]], destination[row], offsets, tiles, whole)
            to_area[destination[row]] = 0.0
        first = begin
        while first < end:
            last = first
            of_origin = 0.0
            while last < end and origin[last] == origin[first]:
                of_origin += _spread(float(volume[last]), destination[last], offsets, tiles, own)
                last += 1
            if of_origin > 0:
                far += of_origin * _difference(first, last, destination, offsets, tiles, own, whole, of_origin, of_step)
            first = last
        whole[:] = 0.0
        trips += of_step
        begin = end
    return far, trips


@kernel
def _spread(trips: float, area: int, offsets: Ints, tiles: Ints, held: Floats) -> float:
    """Add trips to the tiles of an area, evenly; return them, 0 if it has no tile."""
    low, high = offsets[area], offsets[area + 1]
    if high == low or trips == 0:
        return 0.0
    for e in range(low, high):
        held[tiles[e]] += trips / (high - low)
    return trips


@kernel
def _difference(
    first: int, last: int, destination: Ints, offsets: Ints, tiles: Ints, own: Floats, whole: Floats,
    of_origin: float, of_step: float,
) -> float:  # fmt: skip
    """Return half the sum of |own share − share of all| over tiles, and empty `own`.

    Tiles that the origin has no trips to differ by their whole share: those of all tiles sum to 1.
    """
    sum_of_differences = 1.0
    per_trip, per_trip_of_step = 1 / of_origin, 1 / of_step
    for row in range(first, last):
        for e in range(offsets[destination[row]], offsets[destination[row] + 1]):
            tile = tiles[e]
            if own[tile] > 0:
                share = whole[tile] * per_trip_of_step
                sum_of_differences += abs(own[tile] * per_trip - share) - share
                own[tile] = 0.0
    return sum_of_differences / 2
