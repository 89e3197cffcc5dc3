"""Cuts of boxes at any tile boundary, in plain Python over sets: every cut of a box is tried, and the best ones are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from plain_rivals import Row, crowd, volume

Tiles = frozenset[int]


class Box(NamedTuple):
    """Tiles of origins and destinations, and the flows between them."""

    origins: Tiles
    destinations: Tiles
    rows: tuple[Row, ...]


class Cut(NamedTuple):
    """What a cut saves less what its suppressed trips are worth; what it saves, what it suppresses; its two sides."""

    worth: float
    gain: int
    lost: int
    sides: tuple[Box, Box]


@dataclass
class PlainCuts:
    """Cuts of boxes: positions and costs of tiles, and what cuts must keep to; see `CutRules`."""

    x: list[int]
    y: list[int]
    tile_cost: list[int]
    counts: set[int]
    k: int
    least: int = 0
    scale: int = 0
    lost_cost: int = 0
    by_step: bool = False
    trip_cost: int = 0
    steps: int = 1
    left: list[Box] = field(default_factory=list)

    def fits(self, tiles: Tiles) -> bool:
        return len(tiles & self.counts) >= self.least

    def trimmed(self, box: Box) -> Box | None:
        """The box without empty strips, if that is wanted; None if it is too small to be published."""
        sides = []
        for tiles, ends in (
            (box.origins, {r.origin for r in box.rows}),
            (box.destinations, {r.destination for r in box.rows}),
        ):
            around = frozenset(
                t
                for t in tiles
                if all(min(p[e] for e in ends) <= p[t] <= max(p[e] for e in ends) for p in (self.x, self.y))
            )
            sides.append(around if self.fits(around) else tiles)
        return Box(*sides, box.rows) if all(map(self.fits, sides)) else None

    def groups(self, rows: tuple[Row, ...]) -> list[list[Row]]:
        """The rows that k is compared with: those of each time step, or all of them."""
        steps = sorted({r.step for r in rows}) if self.by_step else [None]
        return [[r for r in rows if step in (None, r.step)] for step in steps]

    def published(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The rows in groups with k people."""
        return tuple(r for r in rows if any(r in group and crowd(group) >= self.k for group in self.groups(rows)))

    def crowd(self, rows: tuple[Row, ...]) -> int:
        return max(map(crowd, self.groups(rows)), default=0)

    def cost(self, box: Box) -> int:
        """What the published rows of a box cost."""
        if not self.scale:
            tiles = sum(self.tile_cost[t] for side in box[:2] for t in side)
            return (tiles + self.trip_cost) * volume(list(self.published(box.rows)))
        cells, cost = len(box.origins) * len(box.destinations) * self.steps, 0
        for group in self.groups(self.published(box.rows)):
            mean = Fraction(volume(group), cells)
            exact = sum(abs(r.volume - mean) for r in group) + (cells - len(group)) * mean
            cost += int(self.scale * exact + Fraction(1, 2))
        return cost

    def publishable(self, box: Box) -> bool:
        return self.crowd(box.rows) >= self.k

    def best(self, box: Box, multiplier: float, rest: int) -> Cut | None:
        """The best of all cuts in two, the first of equal ones."""
        best = None
        for axis, place in ((p, c) for p in range(4) for c in sorted(set(self.x) | set(self.y))):
            cut = self.cut(box, axis, place, multiplier)
            if cut is not None and cut.lost <= rest and cut.gain > 0 and cut.worth > (best.worth if best else 0):
                best = cut
        return best

    def cut(self, box: Box, axis: int, place: int, multiplier: float) -> Cut | None:
        at = self.x if axis % 2 == 0 else self.y
        sides = []
        for first in (True, False):
            origins = frozenset(t for t in box.origins if axis > 1 or (at[t] <= place) == first)
            destinations = frozenset(t for t in box.destinations if axis < 2 or (at[t] <= place) == first)
            rows = tuple(r for r in box.rows if (at[r.origin if axis < 2 else r.destination] <= place) == first)
            sides.append(Box(origins, destinations, rows))
        kept = [side for side in sides if self.publishable(side)]
        if not all(side.rows for side in sides) or not kept:
            return None
        parts = [self.trimmed(side) for side in kept]
        if None in parts:
            return None
        lost = volume(list(box.rows)) - sum(volume(list(self.published(side.rows))) for side in kept)
        gain = self.cost(box) - sum(self.cost(p) for p in parts if p) - self.lost_cost * lost
        return Cut(gain - multiplier * lost, gain, lost, (sides[0], sides[1]))

    def refine(self, boxes: list[Box], multiplier: float, rest: int) -> list[Box]:
        """Make the best cuts of boxes that may be published, the best gain for a suppressed trip first."""
        pieces = [piece for box in boxes if (piece := self.added(box))]
        gone: set[int] = set()
        for pays in dict.fromkeys((multiplier, 0.0)):
            rest = self.make_cuts(pieces, gone, pays, rest)
        return [piece for i, piece in enumerate(pieces) if i not in gone]

    def make_cuts(self, pieces: list[Box], gone: set[int], multiplier: float, rest: int) -> int:
        """Make cuts until none is left; return what is left of the budget."""
        queue: list[tuple[float, int, Cut]] = []

        def enqueue(i: int, rest: int) -> None:
            cut = self.best(pieces[i], multiplier, rest)
            if cut:
                heappush(queue, (-cut.gain / cut.lost if cut.lost else -inf, i, cut))

        for i in range(len(pieces)):
            if i not in gone:
                enqueue(i, rest)
        while queue:
            _, i, cut = heappop(queue)
            if cut.lost > rest:
                enqueue(i, rest)
                continue
            rest -= cut.lost
            gone.add(i)
            for side in cut.sides:
                piece = self.added(side)
                if piece:
                    pieces.append(piece)
                    enqueue(len(pieces) - 1, rest)
        return rest

    def added(self, box: Box) -> Box | None:
        """The piece that is published of a box, if any; the rest is left out."""
        piece = self.trimmed(box._replace(rows=self.published(box.rows))) if self.publishable(box) else None
        if piece is None:
            self.left.append(box)
        return piece
