"""Combinations of visits by itertools, and visits removed by plain loops: what the kernels must come to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

Walk = list[tuple[int, list[int]]]
"""Visits: a symbol, and the numbers of the points in it."""


def without_repeats(walk: Walk) -> Walk:
    """Visits to one symbol that follow one another are one."""
    short: Walk = []
    for symbol, points in walk:
        if short and short[-1][0] == symbol:
            short[-1] = (symbol, short[-1][1] + points)
        else:
            short.append((symbol, list(points)))
    return short


def crowds(walks: Sequence[Sequence[int]], owner: Sequence[int], size: int) -> dict[tuple[int, ...], set[int]]:
    """The owners of each combination of a size, from sequences of symbols."""
    shared: dict[tuple[int, ...], set[int]] = {}
    for walk, who in zip(walks, owner, strict=True):
        for chosen in combinations(walk, size):
            shared.setdefault(chosen, set()).add(who)
    return shared


def all_shared(walks: Sequence[Sequence[int]], owner: Sequence[int], k: int, knowledge: int) -> bool:
    """Whether every combination of up to `knowledge` symbols is shared by k owners."""
    return all(len(crowd) >= k for size in range(1, knowledge + 1) for crowd in crowds(walks, owner, size).values())


def break_one(walk: Walk, size: int, good: set[tuple[int, ...]]) -> Walk:
    """Visits of one trajectory without the bad combinations of a size."""
    symbols = [symbol for symbol, _ in walk]
    chosen = list(combinations(range(len(walk)), size))
    bad = [c for c in chosen if tuple(symbols[i] for i in c) not in good]
    if not bad:
        return walk
    if len(bad) == len(chosen):
        return []
    left = {i: points for i, (_, points) in enumerate(walk)}
    while True:
        within = [sum(i in c and all(j in left for j in c) for c in bad) for i in range(len(walk))]
        if not any(within):
            return [(symbols[i], points) for i, points in left.items()]
        worst = within.index(max(within))
        del left[worst]
        before = [i for i in left if i < worst]
        after = [i for i in left if i > worst]
        if before and after and symbols[before[-1]] == symbols[after[0]]:
            left[before[-1]] = left[before[-1]] + left.pop(after[0])


def remove_rare_visits(walks: list[Walk], owner: Sequence[int], k: int, knowledge: int) -> list[Walk]:
    """Visits removed until every combination of up to `knowledge` of them is shared by k owners."""
    while True:
        before = walks
        for size in range(1, knowledge + 1):
            while True:
                counted = crowds([[s for s, _ in walk] for walk in walks], owner, size)
                good = {c for c, crowd in counted.items() if len(crowd) >= k}
                broken = [break_one(walk, size, good) if len(walk) >= size else walk for walk in walks]
                if broken == walks:
                    break
                walks = broken
        if walks == before:
            return walks


def merged_tiles(points: Sequence[tuple[int, int, int]], least: int) -> list[frozenset[int]]:
    """The points that share an area with each one, itself among them; points are (level, column, row)."""
    cells: dict[tuple[int, int, int], list[int]] = {}
    for i, (level, column, row) in enumerate(points):
        cells.setdefault((level, column, row), []).append(i)
    joined = {cell: {cell} for cell in cells}
    for cell in cells:
        if len(cells[cell]) >= least:
            continue
        level, column, row = cell
        pull: dict[tuple[int, int, int], int] = {}
        for other in (
            (level, column - 1, row),
            (level, column + 1, row),
            (level, column, row - 1),
            (level, column, row + 1),
        ):
            if other in cells:
                pull[other] = len(cells[other])
        if pull:
            best = max(pull, key=lambda c: pull[c])
            both = joined[cell] | joined[best]
            for member in both:
                joined[member] = both
    return [frozenset(i for c in joined[level, column, row] for i in cells[c]) for level, column, row in points]
