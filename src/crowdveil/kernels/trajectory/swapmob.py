"""SwapMob: trajectories that meet exchange their remaining points."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.trajectory.structures import GridPoints, MeetingRule, OwnedPoints, PathState, SpaceTimeGrid


@kernel
def _follow(a: int, moment: int, points: OwnedPoints, state: PathState) -> tuple[int, int, int]:
    """Return the changes of owner on the path of a trajectory, with the trajectory's own points up to a moment; the owner of its
    last point that has one; and the first point after it.
    """
    times, offsets, sure, _ = points
    to = state.head[a]
    count, before = state.changes[to], state.last[to]
    at, end = state.begun[a], offsets[a + 1]
    while at < end and times[at] <= moment:
        if sure[at] >= 0:
            if before >= 0 and sure[at] != before:
                count += 1
            before = sure[at]
        at += 1
    return count, before, at


@kernel
def _walk(a: int, moment: int, points: OwnedPoints, state: PathState) -> None:
    """Put the points of a trajectory up to a moment on its path."""
    _, head, begun, last, changes, path = state
    to = head[a]
    changes[to], last[to], after = _follow(a, moment, points, state)
    path[begun[a] : after] = to
    begun[a] = after


@kernel
def _reach(now: int, base: int, grid: SpaceTimeGrid, reach: Ints) -> None:
    """Fill `reach` with the points that those of each cell of a slab may be near to, a row for each cell.

    They are in six ranges of positions from `base` on, begin and end of each: three rows of cells in the slab before (none
    where that is farther in time) and in this one. Cells rise, and with them all ranges: nothing is searched for.
    """
    slab_offsets, cell, cell_offsets = grid.slab_offsets, grid.cell, grid.cell_offsets
    for k in range(6):
        near = now - 1 + k // 3
        if near < 0 or grid.slab[near] < grid.slab[now] - 1:
            reach[:, 2 * k : 2 * k + 2] = 0
            continue
        begin, high = slab_offsets[near], slab_offsets[near + 1]
        end = begin
        for i in range(len(reach)):
            first = cell[slab_offsets[now] + i] + (k % 3 - 1) * grid.columns - 1
            while begin < high and cell[begin] < first:
                begin += 1
            end = max(begin, end)
            while end < high and cell[end] <= first + 2:
                end += 1
            reach[i, 2 * k], reach[i, 2 * k + 1] = cell_offsets[begin] - base, cell_offsets[end] - base


@kernel
def _partner(
    place: int,
    wanted: int,
    now: int,
    reach: Ints,
    rule: MeetingRule,
    in_grid: GridPoints,
    points: OwnedPoints,
    state: PathState,
) -> int:
    """Count the points that a point may meet in slab `now`, or return the position of number `wanted` of them (-1: count).

    `reach` has the ranges of positions to look at. A point of another owner, near enough in space and time, in this slab or the
    one before, whose trajectory has met no other in this slab. Both must go on after they met; if one of them ends there, the
    path that would end must have changed owners enough.
    """
    x, y, t, trajectory, owner, _ = in_grid
    end, met = points.end, state.met
    meters, seconds, enough = rule
    own, own_t, own_x, own_y, a = owner[place], t[place], x[place], y[place], trajectory[place]
    count = 0
    for k in range(6):
        for other in range(reach[2 * k], reach[2 * k + 1]):
            if owner[other] == own or abs(t[other] - own_t) > seconds:
                continue
            if (x[other] - own_x) ** 2 + (y[other] - own_y) ** 2 > meters * meters:
                continue
            b = trajectory[other]
            if met[b] == now:
                continue
            moment = max(own_t, t[other])
            if end[a] <= moment or end[b] <= moment:
                if end[a] <= moment and end[b] <= moment:
                    continue
                on = b if end[a] <= moment else a
                if _follow(on, moment, points, state)[0] < enough:
                    continue
            if count == wanted:
                return int(other)
            count += 1
    return count


@kernel
def _by_number(count: Ints, first: int) -> Ints:
    """Return the positions from `first` on that have partners, those with the fewest first."""
    order = np.argsort(count, kind="mergesort")
    return first + order[np.searchsorted(count[order], 1) :]


@kernel
def exchange_tails(
    first_slab: int,
    last_slab: int,
    base: int,
    rule: MeetingRule,
    grid: SpaceTimeGrid,
    in_grid: GridPoints,
    points: OwnedPoints,
    state: PathState,
) -> None:
    """Let trajectories that meet in slabs first to last (half-open) exchange all that comes after they met.

    Points with the fewest partners draw first, each trajectory once in a slab. A pair belongs to the slab of its later point, so
    that no pair is missed at the border of two slabs, and slabs can be done one after the other. `in_grid` has the points from
    position `base` of the grid on: those of these slabs and of the one before. `state` is kept from call to call.
    """
    t, trajectory, draw = in_grid.t, in_grid.trajectory, in_grid.draw
    slab_offsets, cell_offsets = grid.slab_offsets, grid.cell_offsets
    met, head = state.met, state.head
    for now in range(first_slab, last_slab):
        low, high = slab_offsets[now], slab_offsets[now + 1]
        first = cell_offsets[low] - base
        reach = np.empty((high - low, 12), np.int64)
        _reach(now, base, grid, reach)
        count = np.zeros(cell_offsets[high] - base - first, np.int64)
        number = np.empty(len(count), np.int64)
        for c in range(high - low):
            for place in range(cell_offsets[low + c] - base, cell_offsets[low + c + 1] - base):
                number[place - first] = c
                count[place - first] = _partner(place, -1, now, reach[c], rule, in_grid, points, state)
        for place in _by_number(count, first):
            a = trajectory[place]
            if met[a] == now:
                continue
            here = reach[number[place - first]]
            left = _partner(place, -1, now, here, rule, in_grid, points, state)
            if left == 0:
                continue
            other = _partner(place, int(draw[place] * left), now, here, rule, in_grid, points, state)
            b = trajectory[other]
            moment = max(t[place], t[other])
            _walk(a, moment, points, state)
            _walk(b, moment, points, state)
            head[a], head[b] = head[b], head[a]
            met[a] = now
            met[b] = now


@kernel
def finish_paths(points: OwnedPoints, state: PathState) -> None:
    """Put the remaining points of all trajectories on their paths."""
    for a in range(len(points.end)):
        _walk(a, points.end[a], points, state)
