"""Measures of trajectories, written from their formulas with plain loops: slow and easy to believe."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

from plain_trajectories import Path, discrete_frechet, dtw, spatiotemporal

Place = tuple[float, float]
Tile = tuple[int, int]
Sample = tuple[float, float, int]
"""Longitude, latitude, seconds."""


def distance(name: str, weight: float) -> Callable[[Path, Path], float]:
    """A distance by its name."""
    if name == "spatiotemporal":
        return lambda a, b: spatiotemporal(a, b, weight)
    return dtw if name == "dtw" else discrete_frechet


def rmse(pairs: Sequence[tuple[Path, Path]], far: Callable[[Path, Path], float]) -> float:
    return math.sqrt(sum(far(a, b) ** 2 for a, b in pairs) / len(pairs))


def linkage(
    originals: list[Path], published: list[Path], source: list[int], far: Callable[[Path, Path], float]
) -> float:
    total = 0.0
    for path, true in zip(published, source, strict=True):
        found = [far(path, other) for other in originals]
        group = [i for i, d in enumerate(found) if d == min(found)]
        total += 1 / len(group) if true in group else 0
    return 100 * total / len(originals)


def nearest_in(values: list[float], value: float, size: int) -> list[int]:
    """The places of so many values, one after the other in their order, that are nearest to one; of equally near the smaller.

    Among equal values below it the last ones are taken, and the first ones otherwise.
    """
    order = sorted(range(len(values)), key=lambda i: values[i])
    windows = [order[low : low + size] for low in range(len(order) - size + 1)]

    def key(window: list[int]) -> tuple[list[float], list[float]]:
        here = [values[i] for i in window]
        return sorted((abs(v - value) for v in here), reverse=True), here

    best = [window for window in windows if key(window) == min(map(key, windows))]
    return best[-1] if values[best[0][0]] < value else best[0]


def kilometers(a: Place, b: Place) -> float:
    lon_a, lat_a, lon_b, lat_b = (math.radians(v) for v in (*a, *b))
    half = math.sin((lat_b - lat_a) / 2) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * 6371.0088 * math.asin(math.sqrt(half))


def straight_line(walk: list[Sample]) -> float:
    return sum(kilometers(a[:2], b[:2]) for a, b in pairwise(walk))


def square_displacement(walk: list[Sample], after_s: int) -> float:
    last = [sample for sample in walk if sample[2] <= walk[0][2] + after_s][-1]
    return kilometers(walk[0][:2], last[:2]) ** 2


def visits(tiles: list[tuple[int, Tile]]) -> dict[Tile, Counter[int]]:
    """How often each individual was in each tile, from (individual, tile) of every point."""
    found: dict[Tile, Counter[int]] = defaultdict(Counter)
    for individual, tile in tiles:
        found[tile][individual] += 1
    return found


def entropy(counts: Counter[int]) -> float:
    total = sum(counts.values())
    return -sum(n / total * math.log2(n / total) for n in counts.values())
