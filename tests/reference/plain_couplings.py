"""Couplings, re-sampling and clusters around pivots, written from the paper with plain loops: slow and easy to believe.

A path is a list of points (x, y, t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from plain_trajectories import Path, Point, all_walks, gather, meters

Pair = tuple[int, int]


def one_pass(a: Path, b: Path) -> tuple[float, list[Pair]]:
    """Algorithm 1, and the coupling that it follows; of equal M / L the shorter coupling, then both paths, then the first."""
    longest: dict[Pair, float] = {}
    total: dict[Pair, float] = {}
    length: dict[Pair, int] = {}
    before: dict[Pair, Pair] = {}
    for i in range(len(a)):
        for j in range(len(b)):
            d = meters(a[i], b[j])
            if i == j == 0:
                longest[0, 0], total[0, 0], length[0, 0] = d, d, 1
                continue
            around = [(x, y) for x, y in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if x >= 0 and y >= 0]
            candidates = [c for c in around if longest[c] <= d]
            longest[i, j] = d
            if not candidates:
                longest[i, j] = min(longest[c] for c in around)
                candidates = [c for c in around if longest[c] == longest[i, j]]
            best = min(candidates, key=lambda c: (total[c] / length[c], length[c]))
            total[i, j], length[i, j], before[i, j] = total[best] + d, length[best] + 1, best
    end = (len(a) - 1, len(b) - 1)
    coupling = [end]
    while coupling[0] != (0, 0):
        coupling.insert(0, before[coupling[0]])
    return total[end] / length[end], coupling


def exact(a: Path, b: Path) -> float:
    """Definition 2, by all couplings."""
    walks = all_walks(a, b)
    most = min(max(walk) for walk in walks)
    return min(sum(walk) / len(walk) for walk in walks if max(walk) == most)


def mean_of(a: Path, b: Path, coupling: list[Pair]) -> float:
    return sum(meters(a[i], b[j]) for i, j in coupling) / len(coupling)


def shares(path: Path) -> list[Fraction]:
    """Which share of the time has passed at each point; evenly spread where no time passes."""
    took = int(path[-1][2] - path[0][2])
    if took > 0:
        return [Fraction(int(p[2] - path[0][2]), took) for p in path]
    return [Fraction(i, max(len(path) - 1, 1)) for i in range(len(path))]


def resampled(path: Path, other: Path) -> list[tuple[Point, int | None]]:
    """Section 4.2: the points of a path with their numbers, and new ones (None) where only the other path has a point."""
    own, others = shares(path), shares(other)
    missing = [s for s in sorted(set(others)) for _ in range(max(others.count(s) - own.count(s), 0))]
    listed: list[tuple[Fraction, int, Point, int | None]] = [
        (s, 0, p, i) for i, (s, p) in enumerate(zip(own, path, strict=True))
    ]
    for s in missing:
        before = max(i for i, x in enumerate(own) if x <= s)
        after = min(before + 1, len(path) - 1)
        part = float((s - own[before]) / (own[after] - own[before])) if after > before else 0.0
        x, y, t = (u + part * (v - u) for u, v in zip(path[before], path[after], strict=True))
        listed.append((s, 1, (x, y, t), None))
    listed.sort(key=lambda row: row[:2])
    return [(point, number) for _, _, point, number in listed]


def points(path: list[tuple[Point, int | None]]) -> Path:
    return [point for point, _ in path]


def mean_over_people(values: list[float], person: list[int]) -> float:
    own = [[v for v, p in zip(values, person, strict=True) if p == one] for one in set(person)]
    return sum(sum(o) / len(o) for o in own) / len(own)


def mean_of_cluster(
    pivot: Path, others: list[Path], resample: bool, person: list[int]
) -> list[tuple[float, float, float]]:
    """Algorithm 3 for one cluster, with S(x) as lists for each member: means over people of the means of their members."""
    met: list[list[list[Point]]] = [[[x]] for x in pivot]
    for other in others:
        u: list[tuple[Point, int | None]] = [(x, i) for i, x in enumerate(pivot)]
        v = other
        if resample:
            u, v = resampled(pivot, other), points(resampled(other, pivot))
        here: list[list[Point]] = [[] for _ in pivot]
        for i, j in one_pass(points(u), v)[1]:
            number = u[i][1]
            if number is not None:
                here[number].append(v[j])
        for at, found in enumerate(here):
            met[at].append(found)
    made = []
    for groups in met:
        x, y, t = (
            mean_over_people([sum(p[axis] for p in group) / len(group) for group in groups], person)
            for axis in range(3)
        )
        made.append((x, y, t))
    return made


def clusters(
    far: Callable[[int, int], float],
    sketch: Callable[[int, int], float],
    person: list[int],
    k: int,
    pivots: int,
    draw: Callable[[int], int],
) -> list[tuple[int, set[int]]]:
    """Algorithm 2: the pivot and the members of each cluster; `draw(n)` is a number below n."""
    left, made = list(range(len(person))), []
    while len({person[i] for i in left}) >= k:
        first = left[draw(len(left))]
        last = max((i for i in left if i != first), key=lambda i: (sketch(first, i), -i))
        wanted = min(pivots, len(left))
        tried = [first] if wanted == 1 else [first, last]
        for step in range(1, wanted - 1):
            free = [i for i in left if i not in tried]
            best = min(
                free, key=lambda i: (sketch(first, i) ** 2 / step + sketch(last, i) ** 2 / (wanted - 1 - step), i)
            )
            tried.insert(-1, best)
        best_sum, best_pivot, best_members = math.inf, -1, set[int]()
        for pivot in tried:
            order = sorted((i for i in left if i != pivot), key=lambda i: (far(pivot, i), i))
            members = gather(pivot, order, person, k)
            squares = sum(far(pivot, i) ** 2 for i in sorted(members) if i != pivot)
            if squares < best_sum:
                best_sum, best_pivot, best_members = squares, pivot, set(members)
        made.append((best_pivot, best_members))
        left = [i for i in left if i not in best_members]
    return made
