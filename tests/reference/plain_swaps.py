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


def in_grid(points: Sequence[Point], meters: float, seconds: int) -> list[Point]:
    """Points in order of window, row and column."""
    west, south = min(p.x for p in points), min(p.y for p in points)
    return sorted(points, key=lambda p: (p.t // seconds, (p.y - south) // meters, (p.x - west) // meters, p.number))


def near(a: Point, b: Point, meters: float, seconds: float) -> bool:
    return abs(a.t - b.t) <= seconds and (a.x - b.x) ** 2 + (a.y - b.y) ** 2 <= meters * meters


def swapmob(points: list[Point], meters: float, seconds: int, enough: int) -> dict[int, list[Point]]:
    """The path that ends with each trajectory. `points` are in the order of trajectories and time."""
    walks = {p.trajectory: Walk([q for q in points if q.trajectory == p.trajectory]) for p in points}
    order = in_grid(points, meters, seconds)
    for window in sorted({p.t // seconds for p in points}):
        met: set[int] = set()

        def partners(p: Point, window: int = window, met: set[int] = met) -> list[Point]:
            found = []
            for q in order:
                if q.owner == p.owner or not near(p, q, meters, seconds) or q.trajectory in met:
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


def radii(least: float, most: float) -> list[float]:
    """The least one, the one in the middle, the largest one."""
    return [least, (least + most) / 2, most]


def swap_locations(
    places: list[Point], seeds: Sequence[int], k: int, meters: tuple[float, float], seconds: tuple[float, float]
) -> dict[int, int]:
    """The trajectory that each point goes to. `places` are in the order of the grid, and seeds are places."""
    left, given = set(range(len(places))), {}
    for seed in seeds:
        if seed not in left:
            continue
        s = places[seed]
        members: list[int] = []
        for within_s in radii(*seconds):
            for within_m in radii(*meters):
                if len(members) >= k:
                    continue
                best: dict[int, tuple[bool, int, float, int]] = {}
                for i in left:
                    p = places[i]
                    far = (p.x - s.x) ** 2 + (p.y - s.y) ** 2
                    if abs(p.t - s.t) <= within_s and far <= within_m * within_m:
                        rank = (i != seed, abs(p.t - s.t), far, i)
                        best[p.owner] = min(best.get(p.owner, rank), rank)
                members = [rank[3] for rank in best.values()]
        if len(members) < k:
            left.remove(seed)
            continue
        members.sort(key=lambda i: places[i].draw)
        for i, after in zip(members, members[1:] + members[:1], strict=True):
            given[places[i].number] = places[after].trajectory
            left.remove(i)
    return given


def swap_in_groups(
    points: Sequence[Point],
    group: Sequence[int],
    seeds: Sequence[int],
    k: int,
    meters: float,
    seconds: float,
    circle: bool,
) -> dict[int, int]:
    """The trajectory that each point goes to, inside the group of its trajectory (-1: none); seeds are points in their order."""
    left: dict[int, set[int]] = {g: set() for g in group}
    for p in points:
        left[group[p.trajectory]].add(p.number)
    given: dict[int, int] = {}
    for s in (points[seed] for seed in seeds):
        here = left[group[s.trajectory]]
        if s.number not in here:
            continue
        best: dict[int, tuple[float, int, int]] = {}
        for p in (points[i] for i in here):
            if p.owner != s.owner and near(s, p, meters, seconds):
                rank = ((p.x - s.x) ** 2 + (p.y - s.y) ** 2, abs(p.t - s.t), p.number)
                best[p.owner] = min(best.get(p.owner, rank), rank)
        others = [number for _, _, number in sorted(best.values())[: k - 1]]
        if len(others) < k - 1:
            here.remove(s.number)
            continue
        chosen = [s.number, *others]
        drawn = sorted(chosen, key=lambda i: points[i].draw)
        for i, to in zip(drawn if circle else chosen, drawn[1:] + drawn[:1] if circle else drawn, strict=True):
            given[i] = points[to].trajectory
            here.remove(i)
    return given


Step = tuple[object, object]


def visits(tiles: Sequence[object]) -> list[tuple[object, int]]:
    """Tiles with how many points follow one another in each."""
    runs: list[tuple[object, int]] = []
    for tile in tiles:
        if runs and runs[-1][0] == tile:
            runs[-1] = (tile, runs[-1][1] + 1)
        else:
            runs.append((tile, 1))
    return runs


def rare_steps(walks: dict[int, list[object]], owner: Sequence[int], least: int) -> set[Step]:
    """Steps from tile to tile that fewer than `least` owners make."""
    made: dict[Step, set[int]] = {}
    for name, tiles in walks.items():
        for (a, _), (b, _) in pairwise(visits(tiles)):
            made.setdefault((a, b), set()).add(owner[name])
    return {step for step, crowd in made.items() if len(crowd) < least}


def remove_rare_steps(walks: dict[int, list[object]], owner: Sequence[int], least: int) -> dict[int, list[int]]:
    """Which points of each walk (by their place in it) stay so that no rare step is left."""
    stay = {name: list(range(len(tiles))) for name, tiles in walks.items()}
    while True:
        here = {name: [walks[name][i] for i in places] for name, places in stay.items()}
        rare = rare_steps(here, owner, least)
        if not rare:
            return stay
        for name, tiles in here.items():
            runs = visits(tiles)
            bad = [(a, b) in rare for (a, _), (b, _) in pairwise(runs)]
            gone: set[int] = set()
            for i in range(len(bad)):
                if not bad[i] or i in gone:
                    continue
                before = i > 0 and bad[i - 1] and i - 1 not in gone
                after = i + 1 < len(bad) and bad[i + 1]
                left_one = before if before != after else runs[i][1] < runs[i + 1][1]
                gone.add(i if left_one else i + 1)
            kept = [i not in gone for i, (_, points) in enumerate(runs) for _ in range(points)]
            stay[name] = [place for place, keep in zip(stay[name], kept, strict=True) if keep]
