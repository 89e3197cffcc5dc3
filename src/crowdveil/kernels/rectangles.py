"""Tiles in rectangles, and rectangles that hold a crowd."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@kernel
def tiles_inside(x: Floats, y: Floats, by_x: Ints, rectangles: Floats) -> tuple[Ints, Ints]:
    """The tiles whose places lie in each rectangle, its edges included, as offsets and tiles, rising.

    Parameters
    ----------
    x, y
        Place of each tile.
    by_x
        The tiles in order of x.
    rectangles
        Least and largest x, least and largest y, one rectangle a row.
    """
    sorted_x = x[by_x]
    n = len(rectangles)
    offsets, first = np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    for r in range(n):
        first[r] = np.searchsorted(sorted_x, rectangles[r, 0])
        i, count = first[r], 0
        while i < len(by_x) and sorted_x[i] <= rectangles[r, 1]:
            count += rectangles[r, 2] <= y[by_x[i]] <= rectangles[r, 3]
            i += 1
        offsets[r + 1] = offsets[r] + count
    tiles = np.empty(offsets[-1], np.int64)
    for r in range(n):
        i, at = first[r], offsets[r]
        while at < offsets[r + 1]:
            if rectangles[r, 2] <= y[by_x[i]] <= rectangles[r, 3]:
                tiles[at] = by_x[i]
                at += 1
            i += 1
        tiles[offsets[r] : offsets[r + 1]].sort()
    return offsets, tiles


@kernel
def _median(values: Floats, weights: Ints, n: int, half: int) -> tuple[float, int, int]:
    """The least of the first n values that, with all below it, has `half` of the weight or more; spoils both arrays.

    Also the weight below it, and its own.

    Comparisons are added up and not branched on: a processor that guesses at medians guesses wrong half of the time.
    """
    below = 0
    while n > 1:
        a, b, c = values[0], values[n // 2], values[n - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        less, equal = 0, 0
        for i in range(n):
            less += weights[i] * (values[i] < pivot)
            equal += weights[i] * (values[i] == pivot)
        kept = 0
        if below + less >= half:
            for i in range(n):
                values[kept], weights[kept] = values[i], weights[i]
                kept += values[i] < pivot
        elif below + less + equal >= half:
            return float(pivot), below + less, equal
        else:
            below += less + equal
            for i in range(n):
                v = values[i]
                values[kept], weights[kept] = v, weights[i]
                kept += v > pivot
        n = kept
    return float(values[0]), below, weights[0]


@kernel
def _people_on_sides(
    rows: Ints, values: Floats, cut: float, member_offsets: Ints, member: Ints, seen: Ints, mark: int
) -> tuple[int, int, int, int]:
    """Different people with x ≤ cut and with x > cut, and with x < cut and with x ≥ cut."""
    up_to, above, below, from_on = 0, 0, 0, 0
    for i in range(len(rows)):
        # Somebody may be on several sides: a bit for each of them, on top of the mark.
        on = (1 if values[i] <= cut else 2) + (4 if values[i] < cut else 8)
        for e in range(member_offsets[rows[i]], member_offsets[rows[i] + 1]):
            person = member[e]
            before = seen[person] - mark if seen[person] >= mark else 0
            new = on & ~before
            seen[person] = mark + (before | on)
            up_to += new & 1
            above += (new >> 1) & 1
            below += (new >> 2) & 1
            from_on += (new >> 3) & 1
    return up_to, above, below, from_on


@kernel
def median_cuts(
    place: Floats, volume: Ints, crowd: Ints, member_offsets: Ints, member: Ints, k: int
) -> tuple[Ints, int]:
    """Cut flows at medians as long as both sides keep a crowd of k: the cluster of each flow, and the number of clusters.

    Of the dimensions the one with the largest range is cut, the first of them if several have it, at its median over
    trips: x ≤ median on one side; if that leaves a side without a crowd, x < median; if that does too, nothing is cut.

    Parameters
    ----------
    place
        The four dimensions of each flow, one row a flow.
    volume, crowd
        Trips and crowd of each flow.
    member_offsets, member
        Who is behind each flow; empty where crowds add up.
    """
    n, people = len(place), -1
    for e in range(len(member)):
        people = max(people, member[e])
    seen, mark = np.zeros(people + 1, np.int64), 0
    label, clusters = np.full(n, -1, np.int64), 0
    order, right = np.arange(n), np.empty(n, np.int64)
    values, weights, spoiled = np.empty(n, np.float64), np.empty(n, np.int64), np.empty(n, np.float64)
    stack, depth = np.empty((n + 1, 3), np.int64), 1
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, volume.sum()
    alike = len(member) == 0 and np.array_equal(volume, crowd)
    while depth > 0:
        depth -= 1
        low, high, trips = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        size, cut, with_cut, cuttable, left_trips = high - low, 0.0, True, False, 0
        # Where trips are the crowd, two sides take two crowds.
        if not alike or trips >= 2 * k:
            dimension = _widest(place, order, low, high)
            if dimension >= 0:
                for i in range(size):
                    values[i] = place[order[low + i], dimension]
                    spoiled[i], weights[i] = values[i], volume[order[low + i]]
                cut, trips_below, trips_at = _median(spoiled, weights, size, (trips + 1) // 2)
                if len(member) > 0:
                    mark += 16
                    up_to, above, below, from_on = _people_on_sides(
                        order[low:high], values, cut, member_offsets, member, seen, mark
                    )
                elif alike:
                    up_to, above = trips_below + trips_at, trips - trips_below - trips_at
                    below, from_on = trips_below, trips - trips_below
                else:
                    up_to, above, below, from_on = 0, 0, 0, 0
                    for i in range(size):
                        here = crowd[order[low + i]]
                        up_to += here * (values[i] <= cut)
                        above += here * (values[i] > cut)
                        below += here * (values[i] < cut)
                        from_on += here * (values[i] >= cut)
                with_cut = up_to >= k and above >= k
                cuttable = with_cut or (below >= k and from_on >= k)
                left_trips = trips_below + trips_at * with_cut
        if not cuttable:
            for i in range(low, high):
                label[order[i]] = clusters
            clusters += 1
            continue
        middle, others = low, 0
        for i in range(size):
            row = order[low + i]
            is_left = values[i] < cut or (with_cut and values[i] == cut)
            order[middle], right[others] = row, row
            middle += is_left
            others += not is_left
        order[middle:high] = right[:others]
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = middle, high, trips - left_trips
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = low, middle, left_trips
        depth += 2
    return label, clusters


@kernel
def _widest(place: Floats, order: Ints, low: int, high: int) -> int:
    """The dimension with the largest range, -1 if all places are one."""
    a0, b0, c0, d0 = place[order[low], 0], place[order[low], 1], place[order[low], 2], place[order[low], 3]
    a1, b1, c1, d1 = a0, b0, c0, d0
    for i in range(low + 1, high):
        row = order[i]
        a, b, c, d = place[row, 0], place[row, 1], place[row, 2], place[row, 3]
        a0, a1, b0, b1 = min(a0, a), max(a1, a), min(b0, b), max(b1, b)
        c0, c1, d0, d1 = min(c0, c), max(c1, c), min(d0, d), max(d1, d)
    widest, dimension = 0.0, -1
    for candidate, width in enumerate((a1 - a0, b1 - b0, c1 - c0, d1 - d0)):
        if width > widest:
            widest, dimension = width, candidate
    return dimension
