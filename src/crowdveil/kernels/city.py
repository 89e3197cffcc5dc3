"""Loops of the synthetic cities: gravity draws, trips, and drives along a grid of streets.

Nothing is random in here: every chance is a number in [0, 1) that the caller drew.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import AnyArray, Floats, Indices, Ints


class GravityTables(NamedTuple):
    """A table to draw destinations by attraction and distance.

    Attributes
    ----------
    block
        The block of each tile.
    first, tile, share
        The tiles of block b are tile[first[b]:first[b + 1]]; `share` is their running share of its attraction.
    keep, alias
        Alias tables, one row for each block of origin.
    """

    block: Indices
    first: Ints
    tile: Indices
    share: Floats
    keep: AnyArray
    alias: AnyArray


HOME_TO_WORK = 0
WORK_TO_HOME = 1
HOME_TO_ERRAND = 2
ERRAND_TO_HOME = 3
WORK_TO_ERRAND = 4

KMH = 1000.0 / 3600.0


@kernel
def alias_row(weight: AnyArray, keep: AnyArray, alias: AnyArray) -> None:
    """Build Vose's alias table of one list of weights, which is used up.

    A draw takes a column at random and stays there with chance `keep`, otherwise goes to `alias`: one look at
    memory, however many columns there are.
    """
    n = len(weight)
    weight *= n / weight.sum()
    small, large = np.empty(n, np.int64), np.empty(n, np.int64)
    n_small, n_large = 0, 0
    for i in range(n):
        keep[i], alias[i] = 1.0, i
        if weight[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        low, high = small[n_small], large[n_large - 1]
        keep[low], alias[low] = weight[low], high
        weight[high] -= 1.0 - weight[low]
        if weight[high] < 1.0:
            n_large -= 1
            small[n_small] = high
            n_small += 1


@kernel
def gravity_tables(
    x: AnyArray, y: AnyArray, attraction: AnyArray, decay_m: float, near_m: float
) -> tuple[AnyArray, AnyArray]:
    """Build alias tables, one row an origin, of the weights attraction × exp(−distance / decay_m).

    `near_m` is the distance inside one place.
    """
    n = len(x)
    keep, alias = np.empty((n, n), np.float32), np.empty((n, n), np.int16)
    weight = np.empty(n)
    for i in range(n):
        for j in range(n):
            distance = np.sqrt((x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2)
            weight[j] = attraction[j] * np.exp(-max(distance, near_m) / decay_m)
        alias_row(weight, keep[i], alias[i])
    return keep, alias


@kernel
def gravity_draw(place: int, chance: float, tables: GravityTables) -> int:
    """Draw the tile that a person at tile `place` goes to, by a random number from 0 to 1."""
    block, first, tile, share, keep, alias = tables
    row, n = block[place], keep.shape[1]
    scaled = chance * n
    column = min(int(scaled), n - 1)
    rest, stay = scaled - column, keep[row, column]
    # The rest of the chance after a decision is again even in [0, 1), so one number serves all three choices.
    if rest < stay:
        rest /= stay
    else:
        rest = (rest - stay) / (1.0 - stay)
        column = alias[row, column]
    i = first[column]
    while i < first[column + 1] - 1 and share[i] <= rest:
        i += 1
    return int(tile[i])


@kernel
def gravity_draws(place: AnyArray, chance: AnyArray, tables: GravityTables) -> AnyArray:
    """Draw a tile for every row, as `gravity_draw`."""
    drawn = np.empty(len(place), np.int32)
    for i in range(len(place)):
        drawn[i] = gravity_draw(place[i], chance[i], tables)
    return drawn


@kernel
def trip_ends(
    person: AnyArray, purpose: AnyArray, chance: AnyArray, home: AnyArray, work: AnyArray, tables: GravityTables
) -> tuple[AnyArray, AnyArray]:
    """Return origin and destination of every trip from its purpose; errands lie around the home or the work place."""
    n = len(person)
    origin, destination = np.empty(n, np.int32), np.empty(n, np.int32)
    for i in range(n):
        at_home, at_work = home[person[i]], work[person[i]]
        if purpose[i] == HOME_TO_WORK:
            origin[i], destination[i] = at_home, at_work
        elif purpose[i] == WORK_TO_HOME:
            origin[i], destination[i] = at_work, at_home
        else:
            from_home = purpose[i] == HOME_TO_ERRAND or purpose[i] == ERRAND_TO_HOME
            place = at_home if from_home else at_work
            errand = gravity_draw(place, chance[i], tables)
            if purpose[i] == HOME_TO_ERRAND or purpose[i] == WORK_TO_ERRAND:
                origin[i], destination[i] = place, errand
            else:
                origin[i], destination[i] = errand, place
    return origin, destination


@kernel
def speed_at(x: float, y: float, reach_m: float) -> float:
    """Return the speed of a free drive in meters a second: 17 km/h at the center (the origin of the plane), towards 45 km/h far
    out.
    """
    return (45.0 - 28.0 * math.exp(-math.sqrt(x * x + y * y) / reach_m)) * KMH


@kernel
def block_seconds(x: float, y: float, to_x: float, to_y: float, pace: float, reach_m: float) -> float:
    """Return seconds to drive one block at the speed of its middle."""
    length = abs(to_x - x) + abs(to_y - y)
    return length / (pace * speed_at((x + to_x) / 2, (y + to_y) / 2, reach_m))


@kernel
def drive(
    corner_x: AnyArray,
    corner_y: AnyArray,
    pace: AnyArray,
    block_m: float,
    reach_m: float,
    offsets: AnyArray,
    elapsed: AnyArray,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the seconds that each drive from corner to corner takes, block by block, and where it is at its moments `elapsed`
    (seconds since its start, rising).
    """
    seconds, at_x, at_y = np.empty(len(pace)), np.empty(len(elapsed)), np.empty(len(elapsed))
    for i in range(len(pace)):
        point, end, clock = offsets[i], offsets[i + 1], 0.0
        for leg in range(corner_x.shape[1] - 1):
            x, y = corner_x[i, leg], corner_y[i, leg]
            leg_x, leg_y = corner_x[i, leg + 1] - x, corner_y[i, leg + 1] - y
            blocks = int(np.ceil((abs(leg_x) + abs(leg_y)) / block_m))
            for b in range(blocks):
                f, g = b / blocks, (b + 1) / blocks
                duration = block_seconds(x + f * leg_x, y + f * leg_y, x + g * leg_x, y + g * leg_y, pace[i], reach_m)
                while point < end and elapsed[point] <= clock + duration:
                    h = f + (g - f) * (elapsed[point] - clock) / duration
                    at_x[point], at_y[point] = x + h * leg_x, y + h * leg_y
                    point += 1
                clock += duration
        seconds[i] = clock
        # Moments are whole seconds and the arrival need not be: what comes after it stands at the destination.
        while point < end:
            at_x[point], at_y[point] = corner_x[i, -1], corner_y[i, -1]
            point += 1
    return seconds, at_x, at_y
