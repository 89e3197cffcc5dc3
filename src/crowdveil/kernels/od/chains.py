"""Convex chains of costs and suppressed volumes: what the best partitions of a box are as the multiplier of a trip rises.

A corner is a cost A and a suppressed volume S, in turn; along a chain A rises and S falls, less and less for what it costs. The
slope of an edge is the multiplier at which the best partition changes from one corner to the next. All comparisons are exact.
"""

from __future__ import annotations

from crowdveil.kernels._jit import inner_kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.exact_compare import sign_at


@inner_kernel
def add_chain(chain: Ints, count: int, corner: Ints, first: int, more: int) -> int:
    """Add another chain to a chain, in its place; return the number of corners of the sum. It has the edges of both by slope."""
    if count == 1:
        own_a, own_s = chain[0], chain[1]
        for z in range(more):
            chain[2 * z], chain[2 * z + 1] = own_a + corner[2 * (first + z)], own_s + corner[2 * (first + z) + 1]
        return more
    x, y, z = count - 1, more - 1, count + more - 2
    while z >= 0:
        own_a, own_s = chain[2 * x], chain[2 * x + 1]
        a, s = corner[2 * (first + y)], corner[2 * (first + y) + 1]
        chain[2 * z], chain[2 * z + 1] = own_a + a, own_s + s
        if x > 0 and y > 0:
            # From the end: the steeper one of the two last edges is the last edge of the sum.
            up, down = own_a - chain[2 * x - 2], chain[2 * x - 1] - own_s
            steeper = sign_at(up, corner[2 * (first + y) - 2] - a, down, corner[2 * (first + y) - 1] - s) >= 0
        else:
            steeper = x > 0
        if steeper:
            x -= 1
        else:
            y -= 1
        z -= 1
    return count + more - 1


@inner_kernel
def join_chains(own: Ints, count: int, other: Ints, more: int, buffer: Ints) -> int:
    """Write the lower hull of two chains over the first; return the number of its corners."""
    x, y, end = 0, 0, 0
    while x < count or y < more:
        mine = y == more
        if x < count and y < more:
            own_s, s = own[2 * x + 1], other[2 * y + 1]
            mine = own_s > s or (own_s == s and own[2 * x] <= other[2 * y])
        if mine:
            a, s = own[2 * x], own[2 * x + 1]
            x += 1
        else:
            a, s = other[2 * y], other[2 * y + 1]
            y += 1
        if end > 0 and buffer[2 * end - 1] == s and buffer[2 * end - 2] <= a:
            continue
        while end > 0:
            last_a, last_s = buffer[2 * end - 2], buffer[2 * end - 1]
            if last_a < a and (
                end == 1
                or sign_at(last_a - buffer[2 * end - 4], last_a - a, buffer[2 * end - 3] - last_s, last_s - s) < 0
            ):
                break
            end -= 1
        buffer[2 * end], buffer[2 * end + 1] = a, s
        end += 1
    for j in range(2 * end):
        own[j] = buffer[j]
    return end


@inner_kernel
def edge_sign(corner: Ints, at: int, p: int, q: int) -> int:
    """Return the sign of the difference between the slope of the edge from a corner to the next and the multiplier p/q."""
    return sign_at(p, q, corner[2 * at + 2] - corner[2 * at], corner[2 * at + 3] - corner[2 * at + 1])


@inner_kernel
def corners_between(chain: Ints, count: int, least: int, most: int, q: int) -> tuple[int, int]:
    """Return from which to before which corner of a chain one is best at a multiplier from least/q to most/q."""
    low, high = 0, count
    while low + 1 < count and edge_sign(chain, low, least, q) <= 0:
        low += 1
    while high - 1 > low and edge_sign(chain, high - 2, most, q) > 0:
        high -= 1
    return low, high


@inner_kernel
def best_corner(corner: Ints, low: int, high: int, p: int, q: int) -> int:
    """Return the best corner at a multiplier of those from `low` to before `high`; of two equal ones the one with less S."""
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if edge_sign(corner, middle, p, q) <= 0:
            low = middle + 1
        else:
            high = middle
    return low
