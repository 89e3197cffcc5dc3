"""Swapping by plain loops over all pairs of points: what the kernels must come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass
class Point:
    """A point of the data, with the number that it draws (0 to 1)."""

    number: int
    trajectory: int
    owner: int
    x: float
    y: float
    t: int
    draw: float = 0.0
    sure: bool = True


@dataclass
class Walk:
    """What is known of a trajectory on its way: the path that its coming points go on."""

    points: list[Point]
    path: list[Point] = field(default_factory=list)
    begun: int = 0

    def until(self, moment: int) -> list[Point]:
        """Its path, with its own points up to a moment."""
        return self.path + [p for p in self.points[self.begun :] if p.t <= moment]

    def walk(self, moment: int) -> None:
        self.path[:] = self.until(moment)
        self.begun = sum(p.t <= moment for p in self.points)


def changes(path: Sequence[Point]) -> int:
    """How often the owner changes along a path, points that several own left out."""
    owners = [p.owner for p in path if p.sure]
    return sum(a != b for a, b in pairwise(owners))


def in_grid(points: Sequence[Point], metres: float, seconds: int) -> list[Point]:
    """Points in order of window, row and column."""
    west, south = min(p.x for p in points), min(p.y for p in points)
    return sorted(points, key=lambda p: (p.t // seconds, (p.y - south) // metres, (p.x - west) // metres, p.number))


def near(a: Point, b: Point, metres: float, seconds: int) -> bool:
    return abs(a.t - b.t) <= seconds and (a.x - b.x) ** 2 + (a.y - b.y) ** 2 <= metres * metres


def swapmob(points: list[Point], metres: float, seconds: int, enough: int) -> dict[int, list[Point]]:
    """The path that ends with each trajectory. `points` are in the order of trajectories and time."""
    walks = {p.trajectory: Walk([q for q in points if q.trajectory == p.trajectory]) for p in points}
    order = in_grid(points, metres, seconds)
    for window in sorted({p.t // seconds for p in points}):
        met: set[int] = set()

        def partners(p: Point, window: int = window, met: set[int] = met) -> list[Point]:
            found = []
            for q in order:
                if q.owner == p.owner or not near(p, q, metres, seconds) or q.trajectory in met:
                    continue
                if q.t // seconds > window:
                    continue
                moment = max(p.t, q.t)
                left = [w for w in (walks[p.trajectory], walks[q.trajectory]) if w.points[-1].t > moment]
                if len(left) == 2 or (len(left) == 1 and changes(left[0].until(moment)) >= enough):
                    found.append(q)
            return found

        here = [p for p in order if p.t // seconds == window]
        for p in [p for _, p in sorted(((len(partners(p)), p) for p in here), key=lambda pair: pair[0])]:
            if p.trajectory in met or not partners(p):
                continue
            q = partners(p)[int(p.draw * len(partners(p)))]
            a, b = walks[p.trajectory], walks[q.trajectory]
            for walk in (a, b):
                walk.walk(max(p.t, q.t))
            a.path, b.path = b.path, a.path
            met |= {p.trajectory, q.trajectory}
    for walk in walks.values():
        walk.walk(walk.points[-1].t)
    return {trajectory: walk.path for trajectory, walk in walks.items()}
