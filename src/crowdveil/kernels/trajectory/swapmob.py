"""Trajectories that meet exchange what is still to come of them."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def first_from(values: Ints, low: int, high: int, least: int) -> int:
    """The first place from `low` on, below `high`, where rising values are at least `least`; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _changes_until(
    a: int, moment: int, times: Ints, offsets: Ints, sure: Ints, head: Ints, begun: Ints, last: Ints, changes: Ints
) -> int:
    """How often the owner changes on the path of a trajectory, with the trajectory's own points up to a moment."""
    count: int = changes[head[a]]
    before = last[head[a]]
    at = begun[a]
    while at < offsets[a + 1] and times[at] <= moment:
        if sure[at] >= 0:
            if before >= 0 and sure[at] != before:
                count += 1
            before = sure[at]
        at += 1
    return count


@kernel
def _walk(
    a: int, moment: int, times: Ints, offsets: Ints, sure: Ints,
    head: Ints, begun: Ints, last: Ints, changes: Ints, path: Ints,
) -> None:  # fmt: skip
    """Put the points of a trajectory up to a moment on its path."""
    to = head[a]
    changes[to] = _changes_until(a, moment, times, offsets, sure, head, begun, last, changes)
    at = begun[a]
    while at < offsets[a + 1] and times[at] <= moment:
        path[at] = to
        if sure[at] >= 0:
            last[to] = sure[at]
        at += 1
    begun[a] = at


@kernel
def _partner(
    place: int, wanted: int, now: int, number: int, meters: float, seconds: int, enough: int,
    slab: Ints, slab_offsets: Ints, cell: Ints, cell_offsets: Ints, columns: int,
    x: Floats, y: Floats, t: Ints, trajectory: Ints, owner: Ints, end: Ints, met: Ints,
    times: Ints, offsets: Ints, sure: Ints, head: Ints, begun: Ints, last: Ints, changes: Ints,
) -> int:  # fmt: skip
    """How many points a point may meet in slab `now`, or with `wanted` the place of one of them; `number` is that of its cell.

    A point of another owner, near enough in space and time, in this slab or the one before, whose trajectory has met nobody in
    this slab. Both must go on after they met; if one of them ends there, the path that would end has changed owners enough.
    """
    count = 0
    for near in range(max(now - 1, 0), now + 1):
        if slab[near] < slab[now] - 1:
            continue
        high = slab_offsets[near + 1]
        for row in range(-1, 2):
            first = number + row * columns - 1
            c = first_from(cell, slab_offsets[near], high, first)
            while c < high and cell[c] <= first + 2:
                for other in range(cell_offsets[c], cell_offsets[c + 1]):
                    if owner[other] == owner[place] or abs(t[other] - t[place]) > seconds:
                        continue
                    if (x[other] - x[place]) ** 2 + (y[other] - y[place]) ** 2 > meters * meters:
                        continue
                    a, b = trajectory[place], trajectory[other]
                    if met[b] == now:
                        continue
                    moment = max(t[place], t[other])
                    if end[a] <= moment or end[b] <= moment:
                        if end[a] <= moment and end[b] <= moment:
                            continue
                        on = b if end[a] <= moment else a
                        if _changes_until(on, moment, times, offsets, sure, head, begun, last, changes) < enough:
                            continue
                    if count == wanted:
                        return other
                    count += 1
                c += 1
    return count


@kernel
def _by_number(count: Ints, first: int) -> Ints:
    """Places from `first` on that have partners, those with the fewest first."""
    most = 0
    for i in range(len(count)):
        most = max(most, count[i])
    begin = np.zeros(most + 2, np.int64)
    for i in range(len(count)):
        begin[count[i] + 1] += 1
    alone = begin[1]
    for n in range(most + 1):
        begin[n + 1] += begin[n]
    places = np.empty(len(count), np.int64)
    for i in range(len(count)):
        places[begin[count[i]]] = first + i
        begin[count[i]] += 1
    return places[alone:]


@kernel
def exchange_tails(
    first_slab: int, last_slab: int, meters: float, seconds: int, enough: int,
    slab: Ints, slab_offsets: Ints, cell: Ints, cell_offsets: Ints, columns: int,
    x: Floats, y: Floats, t: Ints, trajectory: Ints, owner: Ints, draw: Floats,
    times: Ints, offsets: Ints, sure: Ints, end: Ints,
    met: Ints, head: Ints, begun: Ints, last: Ints, changes: Ints, path: Ints,
) -> None:  # fmt: skip
    """Let trajectories that meet in slabs first to last (half-open) exchange all that comes after they met.

    Points with the fewest partners draw first, each trajectory once in a slab. A pair belongs to the slab of its later point, so
    that no pair is missed at the border of two slabs, and slabs can be done one after the other.

    x, y, t, trajectory, owner and draw (a number from 0 to 1) are by place; times and sure (the owner of a point, -1 where it
    has several) by point; end, the time of the last point, by trajectory. What is kept from call to call: `met`, the slab in
    which each trajectory last met another (-1 at first); `head`, the path that its coming points go on (its own number at
    first); `begun`, its first point that is on no path yet; of each path `last`, the owner of its last point (-1 at first),
    and `changes`, how often owners changed on it; and `path`, the path of each point.
    """
    for now in range(first_slab, last_slab):
        low, high = slab_offsets[now], slab_offsets[now + 1]
        first = cell_offsets[low]
        count = np.zeros(cell_offsets[high] - first, np.int64)
        number = np.empty(len(count), np.int64)
        for c in range(low, high):
            for place in range(cell_offsets[c], cell_offsets[c + 1]):
                number[place - first] = cell[c]
                count[place - first] = _partner(
                    place, -1, now, cell[c], meters, seconds, enough,
                    slab, slab_offsets, cell, cell_offsets, columns, x, y, t, trajectory, owner, end, met,
                    times, offsets, sure, head, begun, last, changes,
                )  # fmt: skip
        for place in _by_number(count, first):
            a = trajectory[place]
            if met[a] == now:
                continue
            left = _partner(
                place, -1, now, number[place - first], meters, seconds, enough,
                slab, slab_offsets, cell, cell_offsets, columns, x, y, t, trajectory, owner, end, met,
                times, offsets, sure, head, begun, last, changes,
            )  # fmt: skip
            if left == 0:
                continue
            other = _partner(
                place, int(draw[place] * left), now, number[place - first], meters, seconds, enough,
                slab, slab_offsets, cell, cell_offsets, columns, x, y, t, trajectory, owner, end, met,
                times, offsets, sure, head, begun, last, changes,
            )  # fmt: skip
            b = trajectory[other]
            moment = max(t[place], t[other])
            _walk(a, moment, times, offsets, sure, head, begun, last, changes, path)
            _walk(b, moment, times, offsets, sure, head, begun, last, changes, path)
            head[a], head[b] = head[b], head[a]
            met[a] = now
            met[b] = now


@kernel
def walk_to_the_end(
    times: Ints, offsets: Ints, sure: Ints, end: Ints,
    head: Ints, begun: Ints, last: Ints, changes: Ints, path: Ints,
) -> None:  # fmt: skip
    """Put what is left of all trajectories on their paths."""
    for a in range(len(end)):
        _walk(a, end[a], times, offsets, sure, head, begun, last, changes, path)
