"""A heat map over a quadtree as the text describes it, in sets and recursion: the twin that the kernel is held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Box = tuple[int, int, int, int]
"""x, y, width and height, in cells."""


class Point(NamedTuple):
    x: int
    y: int
    person: int


class Sector(NamedTuple):
    x: int
    y: int
    width: int
    height: int
    locations: int
    people: int


@dataclass
class HeatMap:
    """Cuts a box of points with at least k people; the document's method with `halve` False and `suppress` 0."""

    k: int
    split: int
    merge: bool = True
    halve: bool = False
    suppress: float = 0.0
    suppressed: list[Point] = field(default_factory=list)

    def sectors(self, points: Sequence[Point], box: Box) -> list[Sector]:
        width, height = box[2:]
        if len(points) <= self.split:
            return [_sector(points, box)]
        if self.halve and width != height:
            halves = _filled(points, _parts(box, across=width > height, up=width < height))
            small = [i for i in halves if _people(halves[i][0]) < self.k]
            if self._may_go(halves, small):
                return [sector for i in halves if i not in small for sector in self.sectors(*halves[i])]
        if min(width, height) == 1:
            return [_sector(points, box)]
        quarters = _filled(points, _parts(box, across=True, up=True))
        pairs, strays = self._pairs(quarters)
        if not self._may_go(quarters, strays):
            return [_sector(points, box)]
        found = []
        for i in set(quarters) - set(strays) - {i for pair in pairs for i in pair}:
            found += self.sectors(*quarters[i])
        for i, j in pairs:
            both, around = [*quarters[i][0], *quarters[j][0]], _around(quarters[i][1], quarters[j][1])
            found += self.sectors(both, around) if len(both) >= 2 * self.k else [_sector(both, around)]
        return found

    def _may_go(self, parts: dict[int, tuple[list[Point], Box]], small: list[int]) -> bool:
        """Suppress small parts if they hold little, and something is left."""
        left_out = [point for i in small for point in parts[i][0]]
        if len(small) == len(parts) or len(left_out) > self.suppress * sum(len(inner) for inner, _ in parts.values()):
            return False
        self.suppressed += left_out
        return True

    def _pairs(self, quarters: dict[int, tuple[list[Point], Box]]) -> tuple[list[tuple[int, int]], list[int]]:
        """Small quarters with the neighbors that they are merged with, and those that have none."""

        def size(i: int) -> tuple[int, int, int]:
            return _people(quarters[i][0]), len(quarters[i][0]), i

        small = sorted((i for i in quarters if _people(quarters[i][0]) < self.k), key=size)
        if not self.merge:
            return [], small
        free, pairs, strays = set(quarters), [], []
        for i in small:
            if i not in free:
                continue
            adjacent = sorted((j for j in free if i ^ j in (1, 2)), key=size)
            fitting = [j for j in adjacent if _people(quarters[i][0] + quarters[j][0]) >= self.k]
            if fitting:
                pairs.append((i, fitting[0]))
                free -= {i, fitting[0]}
            else:
                strays.append(i)
                free -= {i}
        return pairs, strays


def _people(points: Sequence[Point]) -> int:
    return len({p.person for p in points})


def _sector(points: Sequence[Point], box: Box) -> Sector:
    return Sector(*box, len(points), _people(points))


def _parts(box: Box, across: bool, up: bool) -> dict[int, Box]:
    """South-west, north-west, south-east and north-east are 0 to 3."""
    x, y, width, height = box
    w, h = width // 2 if across else width, height // 2 if up else height
    return {2 * e + n: (x + w * e, y + h * n, w, h) for e in range(1 + across) for n in range(1 + up)}


def _filled(points: Sequence[Point], boxes: dict[int, Box]) -> dict[int, tuple[list[Point], Box]]:
    """The points in each box, without empty ones."""
    inside = {i: ([p for p in points if x <= p.x < x + w and y <= p.y < y + h], (x, y, w, h))
              for i, (x, y, w, h) in boxes.items()}  # fmt: skip
    return {i: part for i, part in inside.items() if part[0]}


def _around(a: Box, b: Box) -> Box:
    x, y = min(a[0], b[0]), min(a[1], b[1])
    return x, y, max(a[0] + a[2], b[0] + b[2]) - x, max(a[1] + a[3], b[1] + b[3]) - y
