"""The log cost by plain loops and lists, and by trying all ways to match: what the kernels must come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

Box = tuple[float, float, float, float, float, float]
"""Least and most x, y and t."""
Costs = tuple[float, float, float]
"""What a box that is left out costs, and the weights of space and time."""


def boxes_of(path: Sequence[tuple[float, float, float]]) -> list[Box]:
    return [(x, x, y, y, t, t) for x, y, t in path]


def around(a: Box, b: Box) -> Box:
    return (
        min(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), max(a[3], b[3]), min(a[4], b[4]), max(a[5], b[5])
    )  # fmt: skip


def size(box: Box, costs: Costs) -> float:
    """What a box costs."""
    x, y, t = box[1] - box[0], box[3] - box[2], box[5] - box[4]
    return costs[1] * math.log((1 + x) * (1 + y)) + costs[2] * math.log(1 + t)


def cost_of_all_ways(a: list[Box], b: list[Box], costs: Costs) -> float:
    """The least cost over all ways to match boxes one to one and in order."""
    ways = []
    for matches in range(min(len(a), len(b)) + 1):
        for first in combinations(a, matches):
            for second in combinations(b, matches):
                made = sum(size(around(i, j), costs) for i, j in zip(first, second, strict=True))
                ways.append(made + (len(a) + len(b) - 2 * matches) * costs[0])
    return min(ways)


def savings(a: list[Box], b: list[Box], costs: Costs) -> list[list[float]]:
    """What the best matches of the first boxes of a and b save, for every number of both."""
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a)):
        for j in range(len(b)):
            matched = best[i][j] + (2 * costs[0] - size(around(a[i], b[j]), costs))
            best[i + 1][j + 1] = max(matched, best[i][j + 1], best[i + 1][j])
    return best


def put_together(a: list[Box], b: list[Box], costs: Costs) -> list[Box]:
    """The boxes around all matches; where it costs the same boxes are matched, and otherwise that of a is left out first."""
    best, i, j, made = savings(a, b, costs), len(a), len(b), []
    while i and j:
        if best[i][j] == best[i - 1][j - 1] + (2 * costs[0] - size(around(a[i - 1], b[j - 1]), costs)):
            i, j = i - 1, j - 1
            made.append(around(a[i], b[j]))
        elif best[i][j] == best[i - 1][j]:
            i -= 1
        else:
            j -= 1
    return made[::-1]


def dearness(own: list[Box], other: list[Box], costs: Costs) -> float:
    """The log cost, less what leaving out all of `own` costs."""
    return len(other) * costs[0] - savings(own, other, costs)[-1][-1]


def groups(
    paths: list[list[Box]], person: Sequence[int], k: int, growing: bool, order: Sequence[int], costs: Costs
) -> list[tuple[list[int], list[Box]]]:
    """Members and boxes of each group; pivots are taken in `order`."""
    left, found = list(range(len(paths))), []
    for pivot in order:
        if pivot not in left or len({person[j] for j in left}) < k:
            continue
        members, made = [pivot], paths[pivot]
        left.remove(pivot)
        while len({person[j] for j in members}) < k:
            own = made if growing else paths[pivot]
            nearest = min(left, key=lambda j: (dearness(own, paths[j], costs), j))
            made = put_together(made, paths[nearest], costs)
            members.append(nearest)
            left.remove(nearest)
        found.append((members, made))
    for i in left if found else []:
        g = min(range(len(found)), key=lambda g: (dearness(paths[i], found[g][1], costs), g))
        found[g] = ([*found[g][0], i], put_together(found[g][1], paths[i], costs))
    return found
