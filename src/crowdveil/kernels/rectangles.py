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
def _median(values: Floats, weights: Ints, n: int) -> float:
    """The least of the first n values that, with all below it, has half of the weight or more. Puts them in another order."""
    half = 0
    for i in range(n):
        half += weights[i]
    low, high, below = 0, n, 0
    while high - low > 1:
        a, b, c = values[low], values[(low + high) // 2], values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        # Three parts: below the pivot, equal to it, above it.
        less, i, more, weight, equal = low, low, high, 0, 0
        while i < more:
            v, w = values[i], weights[i]
            if v < pivot:
                values[i], weights[i] = values[less], weights[less]
                values[less], weights[less] = v, w
                weight += w
                less += 1
                i += 1
            elif v > pivot:
                more -= 1
                values[i], weights[i] = values[more], weights[more]
                values[more], weights[more] = v, w
            else:
                equal += w
                i += 1
        if 2 * (below + weight) >= half:
            high = less
        elif 2 * (below + weight + equal) >= half:
            return float(pivot)
        else:
            below += weight + equal
            low = more
    return float(values[low])


@kernel
def _sides_reach(
    low: int,
    high: int,
    order: Ints,
    at: Floats,
    cut: float,
    with_cut: bool,
    crowd: Ints,
    member_offsets: Ints,
    member: Ints,
    seen: Ints,
    mark: int,
    k: int,
) -> bool:
    """Whether both sides of a cut have a crowd of k. Uses two marks."""
    left, right = 0, 0
    for i in range(low, high):
        row = order[i]
        is_left = at[row] < cut or (with_cut and at[row] == cut)
        if len(member) == 0:
            if is_left:
                left += crowd[row]
            else:
                right += crowd[row]
            continue
        # Somebody may be on both sides: two bits of what was seen of them since the mark.
        for e in range(member_offsets[row], member_offsets[row + 1]):
            person = member[e]
            if seen[person] < mark:
                seen[person] = mark
            bit = 1 if is_left else 2
            if not (seen[person] - mark) & bit:
                seen[person] += bit
                left += is_left
                right += not is_left
    return left >= k and right >= k


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
        One row for each dimension, with a value for each flow.
    volume, crowd
        Trips and crowd of each flow.
    member_offsets, member
        Who is behind each flow; empty where crowds add up.
    """
    dimensions, n = place.shape
    people = -1
    for e in range(len(member)):
        people = max(people, member[e])
    seen, mark = np.zeros(people + 1, np.int64), 0
    label, clusters = np.full(n, -1, np.int64), 0
    order = np.arange(n)
    values, weights = np.empty(n, np.float64), np.empty(n, np.int64)
    stack, depth = np.empty((n + 1, 2), np.int64), 1
    stack[0, 0], stack[0, 1] = 0, n
    while depth > 0:
        depth -= 1
        low, high = stack[depth, 0], stack[depth, 1]
        widest, dimension = 0.0, -1
        for d in range(dimensions):
            least = most = place[d, order[low]]
            for i in range(low + 1, high):
                least, most = min(least, place[d, order[i]]), max(most, place[d, order[i]])
            if most - least > widest:
                widest, dimension = most - least, d
        middle = low
        if dimension >= 0:
            at = place[dimension]
            for i in range(low, high):
                values[i - low], weights[i - low] = at[order[i]], volume[order[i]]
            cut = _median(values, weights, high - low)
            for with_cut in (True, False):
                mark += 4
                if _sides_reach(
                    low, high, order, at, cut, with_cut, crowd, member_offsets, member, seen, mark, k
                ):  # fmt: skip
                    for i in range(low, high):
                        row = order[i]
                        if at[row] < cut or (with_cut and at[row] == cut):
                            order[i], order[middle] = order[middle], row
                            middle += 1
                    break
        if middle > low:
            stack[depth, 0], stack[depth, 1] = middle, high
            stack[depth + 1, 0], stack[depth + 1, 1] = low, middle
            depth += 2
        else:
            for i in range(low, high):
                label[order[i]] = clusters
            clusters += 1
    return label, clusters
