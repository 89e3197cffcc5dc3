"""Swap locations that are near in space and time, in clusters of at least k owners."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints, Mask
from crowdveil.kernels.trajectory.structures import CellSlots, GridPoints, SpaceTimeGrid, SwapBuffers, SwapRadii

STEPS = 3
"""A radius is the least one, the one in the middle, or the largest one."""


@kernel
def _take_out(place: int, slots: CellSlots) -> None:
    """Take a position out of its cell: the last one that is left there moves to where it was."""
    cell_of, last, slot, at = slots
    c = cell_of[place]
    last[c] -= 1
    other = slot[last[c]]
    slot[at[place]] = other
    at[other] = at[place]
    slot[last[c]] = place
    at[place] = last[c]


@kernel
def _radius(least: float, largest: float, step: int) -> float:
    """Return one of three radii from the least to the largest."""
    return least + (largest - least) * step / (STEPS - 1)


@kernel
def swap_locations(
    first_seed: int,
    last_seed: int,
    k: int,
    radii: SwapRadii,
    grid: SpaceTimeGrid,
    slab_of: Ints,
    points: GridPoints,
    seed: Ints,
    slots: CellSlots,
    buffers: SwapBuffers,
    new_trajectory: Ints,
) -> None:
    """Swap the locations around seeds first to last (half-open); those without k owners around them are taken out.

    The least time radius is tried first, with all radii in space, then the next, until locations of k owners are inside; all
    owners that are inside take part, each with the location nearest in time. They are put in the order of their draws, and each
    gives its location to the next, the last to the first: no owner keeps its own, and all cycles are equally likely.

    Arrays are by position in the grid. `slots` and `new_trajectory`, which has the trajectory that each location goes to (-1:
    none), are kept from call to call. `buffers.seen` is stamped with numbers that rise with seeds.
    """
    slab, slab_offsets, cell, cell_offsets = grid.slab, grid.slab_offsets, grid.cell, grid.cell_offsets
    x, y, t, trajectory, owner, draw = points
    cell_of, last, slot, at = slots
    seen, best, candidate, apart_s, apart_m = buffers
    min_m, max_m, min_s, max_s = radii
    members = np.empty(len(best), np.int64)
    keys = np.empty(len(best), np.float64)
    for number in range(first_seed, last_seed):
        s = seed[number]
        if at[s] >= last[cell_of[s]]:
            continue
        n = 0
        now = slab_of[s]
        for near in range(max(now - 1, 0), min(now + 2, len(slab))):
            if abs(slab[near] - slab[now]) > 1:
                continue
            low, high = slab_offsets[near], slab_offsets[near + 1]
            for row in range(-1, 2):
                first = cell[cell_of[s]] + row * grid.columns - 1
                c = low + np.searchsorted(cell[low:high], first)
                while c < high and cell[c] <= first + 2:
                    for i in range(cell_offsets[c], last[c]):
                        p = slot[i]
                        seconds = float(abs(t[p] - t[s]))
                        meters = (x[p] - x[s]) ** 2 + (y[p] - y[s]) ** 2
                        if seconds <= max_s and meters <= max_m * max_m:
                            candidate[n], apart_s[n], apart_m[n] = p, seconds, meters
                            n += 1
                    c += 1
        stamp = number * (STEPS * STEPS + 1)
        people = 0
        for i in range(n):
            if seen[owner[candidate[i]]] != stamp:
                seen[owner[candidate[i]]] = stamp
                people += 1
        if people < k:
            _take_out(s, slots)
            continue
        people = 0
        for step in range(STEPS * STEPS):
            if people >= k:
                break
            within_s = _radius(min_s, max_s, step // STEPS)
            within_m = _radius(min_m, max_m, step % STEPS)
            stamp += 1
            people = 0
            for i in range(n):
                if apart_s[i] > within_s or apart_m[i] > within_m * within_m:
                    continue
                who = owner[candidate[i]]
                if seen[who] != stamp:
                    seen[who] = stamp
                    best[who] = i
                    members[people] = who
                    people += 1
                    continue
                b = best[who]
                if apart_s[i] != apart_s[b]:
                    nearer = apart_s[i] < apart_s[b]
                elif apart_m[i] != apart_m[b]:
                    nearer = apart_m[i] < apart_m[b]
                else:
                    nearer = candidate[i] < candidate[b]
                if nearer:
                    best[who] = i
        for i in range(people):
            # The seed goes itself, whatever else of the same owner lies on the same spot.
            members[i] = s if members[i] == owner[s] else candidate[best[members[i]]]
            keys[i] = draw[members[i]]
        members[:people] = members[:people][np.argsort(keys[:people])]
        for i in range(people):
            new_trajectory[members[i]] = trajectory[members[(i + 1) % people]]
            _take_out(members[i], slots)


@kernel
def break_pairs(bad: Mask, points: Ints, trajectory: Ints) -> Mask:
    """Choose visits to remove so that no bad pair is left; bad[i]: visit i and the next, of one trajectory, are a bad pair.

    From left to right: the visit in two bad pairs goes, else the one with fewer points, else the later one.
    """
    gone = np.zeros(len(points), np.bool_)
    for i in range(len(points) - 1):
        if not bad[i] or gone[i]:
            continue
        before = i > 0 and bad[i - 1] and not gone[i - 1] and trajectory[i - 1] == trajectory[i]
        after = i + 2 < len(points) and bad[i + 1] and trajectory[i + 2] == trajectory[i]
        if before != after:
            gone[i if before else i + 1] = True
        else:
            gone[i if points[i] < points[i + 1] else i + 1] = True
    return gone
