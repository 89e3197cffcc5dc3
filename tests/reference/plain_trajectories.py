"""Distances, means, groups and parts of trajectories, written from the formulas with plain loops: slow and easy to believe.

A path is a list of points (x, y, t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np

Point = tuple[float, float, float]
Path = list[Point]


def distance_matrix(distance: Any, those: Any, to: Any) -> Any:
    """Distances from each of some trajectories, in rows, to others."""
    return np.array([distance.from_one(i, to) for i in those.tolist()]).reshape(len(those), len(to))


def half_up(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def matched(points: int, pairs: int) -> list[int]:
    """Which point of a path is in each pair: evenly spread, from the first to the last."""
    return [half_up(Fraction(i * (points - 1), pairs - 1)) for i in range(pairs)] if pairs > 1 else [0]


def meters(a: Point, b: Point) -> float:
    dx, dy = a[0] - b[0], a[1] - b[1]
    return math.sqrt(dx * dx + dy * dy)


def speed(path: Path) -> float:
    legs = list(pairwise(path))
    if not legs:
        return 0.0
    return sum(meters(a, b) / (b[2] - a[2]) if b[2] > a[2] else 0.0 for a, b in legs) / len(legs)


def spatiotemporal(a: Path, b: Path, weight: float) -> float:
    h = half_up(Fraction(len(a) + len(b), 2))
    worth = weight * (speed(a) + speed(b)) / 2
    total = 0.0
    for i, j in zip(matched(len(a), h), matched(len(b), h), strict=True):
        total += (meters(a[i], b[j]) + worth * abs(a[i][2] - b[j][2])) ** 2
    return math.sqrt(total / h)


def all_walks(a: Path, b: Path) -> list[list[float]]:
    """The meters apart along each walk from both first points to both last ones, by one step on either or both."""
    found: list[list[float]] = []

    def walk(i: int, j: int, sofar: list[float]) -> None:
        here = [*sofar, meters(a[i], b[j])]
        if (i, j) == (len(a) - 1, len(b) - 1):
            found.append(here)
        for di, dj in ((1, 0), (0, 1), (1, 1)):
            if i + di < len(a) and j + dj < len(b):
                walk(i + di, j + dj, here)

    walk(0, 0, [])
    return found


def dtw(a: Path, b: Path) -> float:
    return min(sum(walk) for walk in all_walks(a, b))


def discrete_frechet(a: Path, b: Path) -> float:
    return min(max(walk) for walk in all_walks(a, b))


def equal_points(p: tuple[float, float, float], q: tuple[float, float, float]) -> bool:
    return abs(p[0] - q[0]) <= 100 and abs(p[1] - q[1]) <= 100


def edr(a: Path, b: Path) -> float:
    """Edits, by the recurrence on the first points; an edit counts 100 m, of the points of the longer path."""

    def edits(i: int, j: int) -> int:
        if i == len(a) or j == len(b):
            return len(a) - i + len(b) - j
        replaced = edits(i + 1, j + 1) + (not equal_points(a[i], b[j]))
        return min(replaced, edits(i + 1, j) + 1, edits(i, j + 1) + 1)

    return 100 * edits(0, 0) / max(len(a), len(b))


def lcss(a: Path, b: Path) -> float:
    """Points outside of the longest common subsequence, over all subsequences of the shorter path."""
    short, long = sorted((a, b), key=len)
    for size in range(len(short), 0, -1):
        for picked in combinations(short, size):
            for others in combinations(long, size):
                if all(equal_points(p, q) for p, q in zip(picked, others, strict=True)):
                    return 100 * (1 - size / len(short))
    return 100.0


def frechet(a: Path, b: Path) -> float:
    """The least distance at which a walk through free points exists, of all distances at which that can change."""
    if min(len(a), len(b)) == 1:
        return discrete_frechet(a, b)
    ends = max(meters(a[0], b[0]), meters(a[-1], b[-1]))
    critical = {ends} | {
        value
        for own, other in ((a, b), (b, a))
        for leg in pairwise(other)
        for one in own
        for two in own
        for value in critical_distances(one, two, leg)
    }
    return next(d for d in sorted(critical) if d >= ends and walk_exists(a, b, d * (1 + 1e-11) + 1e-9))


def critical_distances(p: Any, q: Any, leg: Any) -> list[float]:
    """Distances from p to the leg at which it becomes free: the nearest point, the ends, and where p and q are equally far."""
    (x0, y0, _), (x1, y1, _) = leg
    dx, dy = x1 - x0, y1 - y0
    square, found = dx * dx + dy * dy, [0.0, 1.0]
    if square:
        found.append(min(max(((p[0] - x0) * dx + (p[1] - y0) * dy) / square, 0.0), 1.0))
    across = 2 * ((q[0] - p[0]) * dx + (q[1] - p[1]) * dy)
    if across:
        ahead = (q[0] - x0) ** 2 + (q[1] - y0) ** 2 - (p[0] - x0) ** 2 - (p[1] - y0) ** 2
        found.append(min(max(ahead / across, 0.0), 1.0))
    return [math.hypot(x0 + share * dx - p[0], y0 + share * dy - p[1]) for share in found]


def walk_exists(a: Path, b: Path, most: float) -> bool:
    """Whether a walk leads from cell to cell, over all monotone sequences of cells: in each side as low as it can be."""

    def free(p: Any, leg: Any) -> tuple[float, float] | None:
        (x0, y0, _), (x1, y1, _) = leg
        dx, dy, px, py = x1 - x0, y1 - y0, x0 - p[0], y0 - p[1]
        square, half, rest = dx * dx + dy * dy, px * dx + py * dy, px * px + py * py - most * most
        if square == 0:
            return (0.0, 1.0) if rest <= 0 else None
        if half * half < square * rest:
            return None
        root = math.sqrt(half * half - square * rest)
        part = max((-half - root) / square, 0.0), min((-half + root) / square, 1.0)
        return part if part[0] <= part[1] else None

    last = len(a) - 2, len(b) - 2

    def walk(i: int, j: int, at: tuple[float, float]) -> bool:
        """From a point of cell (i, j), given by its least shares of both legs."""
        if (i, j) == last:
            return True  # the ends are free, and a cell is convex
        right = free(a[i + 1], (b[j], b[j + 1]))
        above = free(b[j + 1], (a[i], a[i + 1]))
        if i < last[0] and right and right[1] >= at[1] and walk(i + 1, j, (0.0, max(right[0], at[1]))):
            return True
        return bool(j < last[1] and above and above[1] >= at[0] and walk(i, j + 1, (max(above[0], at[0]), 0.0)))

    return meters(a[0], b[0]) <= most and meters(a[-1], b[-1]) <= most and walk(0, 0, (0.0, 0.0))


def place_at(path: Path, moment: float) -> tuple[float, float]:
    """Return the position at a moment within the trajectory; of several points at that moment the last."""
    before = max(i for i, p in enumerate(path) if p[2] <= moment)
    if path[before][2] == moment:
        return path[before][:2]
    (x0, y0, t0), (x1, y1, t1) = path[before], path[before + 1]
    share = (moment - t0) / (t1 - t0)
    return x0 + share * (x1 - x0), y0 + share * (y1 - y0)


def apart(a: Path, b: Path) -> float:
    """Contemporaries: the root mean square over all moments that either has a point at in the shared span, over its share."""
    begin, end = max(a[0][2], b[0][2]), min(a[-1][2], b[-1][2])
    longest = max(a[-1][2] - a[0][2], b[-1][2] - b[0][2])
    if end < begin or (end == begin and longest > 0):
        return math.inf
    moments = {begin} | {p[2] for p in a + b if begin <= p[2] <= end}
    squares = [
        (ax - bx) ** 2 + (ay - by) ** 2
        for (ax, ay), (bx, by) in ((place_at(a, m), place_at(b, m)) for m in sorted(moments))
    ]
    return math.sqrt(sum(squares) / len(squares)) / ((end - begin) / longest if longest > 0 else 1.0)


def graph(paths: list[Path]) -> list[list[float]]:
    """Shortest ways over contemporaries, by Floyd and Warshall."""
    n = len(paths)
    way = [[0.0 if i == j else apart(paths[i], paths[j]) for j in range(n)] for i in range(n)]
    for via in range(n):
        for i in range(n):
            for j in range(n):
                way[i][j] = min(way[i][j], way[i][via] + way[via][j])
    return way


def mean_path(paths: list[Path]) -> Path:
    """Points as in the distance, the mean of each component, whole seconds, rising inside the times of all."""
    h = half_up(Fraction(sum(map(len, paths)), len(paths)))
    picked = [[path[i] for i in matched(len(path), h)] for path in paths]
    x0, y0, t0 = paths[0][0]
    made: Path = []
    for i in range(h):
        x = x0 + sum(p[i][0] - x0 for p in picked) / len(paths)
        y = y0 + sum(p[i][1] - y0 for p in picked) / len(paths)
        t = t0 + half_up(Fraction(sum(int(p[i][2] - t0) for p in picked), len(paths)))
        made.append((x, y, t))
    every = [p[2] for path in paths for p in path]
    return [(x, y, t) for (x, y, _), t in zip(made, raised([p[2] for p in made], min(every), max(every)), strict=True)]


def raised(times: list[float], earliest: float, latest: float) -> list[float]:
    """Times that rise by a second, as far as there is room."""
    made: list[float] = []
    for t in times:
        made.append(max(t, made[-1] + 1) if made else t)
    return [max(min(t, latest - (len(made) - 1 - i)), earliest) for i, t in enumerate(made)]


def gather(seed: int, order: list[int], person: list[int], k: int) -> list[int]:
    """The seed, and the nearest ones until k people are together."""
    group = [seed]
    for j in order:
        if len({person[i] for i in group}) == k:
            break
        group.append(j)
    return group


def mdav(
    members: list[int],
    far: Callable[[int, int], float],
    from_center: Callable[[list[int]], dict[int, float]],
    person: list[int],
    k: int,
    remaining: bool,
) -> list[set[int]]:
    """Groups of at least k people; none if there are fewer."""
    left, groups = sorted(members), []
    center = from_center(left) if left else {}

    def people() -> int:
        return len({person[i] for i in left})

    def farthest(distance: Callable[[int], float], of: list[int]) -> int:
        return max(of, key=lambda i: (distance(i), -i))

    def take(seed: int, but: int | None = None) -> None:
        order = sorted((i for i in left if i not in (seed, but)), key=lambda i: (far(seed, i), i))
        groups.append(set(gather(seed, order, person, k)))
        left[:] = [i for i in left if i not in groups[-1]]

    while people() >= 2 * k:
        center = from_center(left) if remaining else center
        r = farthest(center.__getitem__, left)
        if people() >= 3 * k:
            s = farthest(lambda i, r=r: far(r, i), [i for i in left if i != r])
            take(r, but=s)
            take(s)
        else:
            take(r)
    if people() >= k:
        groups.append(set(left))
    return groups


def parts_by_time(paths: list[Path], person: list[int], k: int, interval_s: int) -> list[list[int]]:
    """Parts of the trajectories in order of mean time: those of an interval, and the next ones until k people are there."""
    mean = [Fraction(sum(int(p[2]) for p in path), len(path)) for path in paths]
    waiting = sorted(range(len(paths)), key=lambda i: (mean[i], i))
    parts: list[list[int]] = []
    while len({person[i] for i in waiting}) >= k:
        end = (mean[waiting[0]] // interval_s + 1) * interval_s
        part = [i for i in waiting if mean[i] < end]
        rest = [i for i in waiting if mean[i] >= end]
        while len({person[i] for i in part}) < k:
            part.append(rest.pop(0))
        parts.append(part)
        waiting = rest
    if waiting and parts:
        parts[-1] += waiting
    elif waiting:
        parts = [waiting]
    return [sorted(part) for part in parts]
