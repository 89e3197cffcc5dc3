"""Hypothesis strategies for zones, flows, trees and trajectories, for our tests and those of third-party methods.

Needs hypothesis, which is not a dependency of the package. Sizes are small, shapes are edge cases: empty data, one
row, repeated points, equal times, people with many trajectories, zones without visits.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from crowdveil.model.arrays import Indices, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones
from crowdveil.solve.trajectory.distances import Paths

Nested = Any
"""A tile (int), or a list of subtrees."""

_HOUR = 3600
_POOL = 30
_BASE = 1_767_225_600  # 2026-01-01


@st.composite
def zones(draw: st.DrawFn, min_tiles: int = 1, max_tiles: int = 12) -> Zones:
    """Draw zones with ids and centroids; several may have one position."""
    n = draw(st.integers(min_tiles, max_tiles))
    place = st.integers(0, 9 * 9 - 1)  # one number for both coordinates, since drawing takes most of the time
    lat, lon = np.divmod([draw(place) for _ in range(n)], 9)
    ids = [f"z{i}" for i in draw(st.permutations(range(n)))]
    return Zones(np.array(ids, dtype=object), 2.0 + lon / 100, 48.0 + lat / 100, kind="centroids")


@st.composite
def flows(draw: st.DrawFn, max_tiles: int = 6, max_steps: int = 3, empty: bool = False) -> Flows:
    """Draw flows of a few time steps, with or without person ids; volumes are around the usual k."""
    tiles = draw(zones(max_tiles=max_tiles))
    n, with_people = len(tiles), draw(st.booleans())
    cell = st.integers(0, max_steps * n * n - 1)
    keys = sorted(draw(st.lists(cell, min_size=0 if empty else 1, max_size=24, unique=True)))
    volume = draw(st.lists(st.integers(1, 25), min_size=len(keys), max_size=len(keys)))
    step, origin, destination = np.unravel_index(np.array(keys, np.int64), (max_steps, n, n))
    columns = (_BASE + step * _HOUR, origin.astype(np.int32), destination.astype(np.int32), np.array(volume, np.int64))
    if not with_people:
        return Flows.from_rows(tiles, *columns, step_s=_HOUR)
    # Neighbors in a ring of a few people, so that flows share people.
    groups = [sorted((first + i) % _POOL for i in range(draw(st.integers(1, v)))) for v, first in
              ((v, draw(st.integers(0, _POOL - 1))) for v in volume)]  # fmt: skip
    people = np.array([len(c) for c in groups], np.int64)
    made = Flows.from_rows(tiles, *columns, people, step_s=_HOUR)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(people)])
    return replace(made, person_offsets=offsets, person_ids=np.array([m for c in groups for m in c], np.int64))


@st.composite
def trajectories(draw: st.DrawFn, max_trajectories: int = 8, max_points: int = 8, empty: bool = False) -> Trajectories:
    """Draw trajectories with repeated positions and times, some with one point, and people with several trajectories."""
    m = draw(st.integers(0 if empty else 1, max_trajectories))
    lengths = [draw(st.integers(1, max_points)) for _ in range(m)]
    person = [draw(st.integers(0, max(0, m - 1))) for _ in range(m)]
    known = draw(st.booleans())
    people = sorted(set(person)) if known else list(range(m))
    position, moment = st.integers(0, 21 * 21 - 1), st.integers(0, 900)
    lat, lon = np.divmod(np.array([draw(position) for _ in range(sum(lengths))], np.int64), 21)
    times = [sorted(draw(moment) for _ in range(n)) for n in lengths]
    return Trajectories(
        lon=2.3 + lon / 500,
        lat=48.8 + lat / 500,
        t=_BASE + np.array([t for row in times for t in row], np.int64),
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)]),
        ids=np.arange(1000, 1000 + m),
        person=np.array([people.index(p) for p in person] if known else people, np.int64),
        people_ids=np.array([f"person-{p}" for p in people], dtype=object),
        k_unit="people" if known else "trajectories",
    )


@st.composite
def paths(draw: st.DrawFn, min_paths: int = 1, max_paths: int = 8, max_points: int = 5) -> Paths:
    """Draw trajectories on a plane, with few positions and times, so that many distances are equal; some have one point."""
    n = draw(st.integers(min_paths, max_paths))
    lengths = draw(st.lists(st.integers(1, max_points), min_size=n, max_size=n))
    position, moment = st.integers(0, 5 * 5 - 1), st.integers(0, 6)
    y, x = np.divmod(np.array([draw(position) for _ in range(sum(lengths))], np.int64), 5)
    t = [when for size in lengths for when in sorted(draw(moment) for _ in range(size))]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    return Paths(x.astype(np.float64), y.astype(np.float64), np.array(t, np.float64), offsets)


@st.composite
def nested_trees(draw: st.DrawFn, max_tiles: int = 12, chains: bool = False, min_tiles: int = 1) -> Nested:
    """Draw a nested list over the tiles 0, 1, … in any order; with `chains`, nodes may have one child."""
    n = draw(st.integers(min_tiles, max_tiles))

    def grow(tiles: list[int]) -> Nested:
        if len(tiles) == 1:
            tree: Nested = tiles[0]
        else:
            cuts = draw(st.sets(st.integers(1, len(tiles) - 1), min_size=1, max_size=3))
            tree = [grow(tiles[a:b]) for a, b in pairwise([0, *sorted(cuts), len(tiles)])]
        for _ in range(draw(st.integers(0, 2)) if chains else 0):
            tree = [tree]
        return tree

    return grow(draw(st.permutations(range(n))))


@st.composite
def hierarchies(draw: st.DrawFn, max_tiles: int = 12, min_tiles: int = 1) -> Hierarchy:
    """Draw a tree of any shape, without nodes that have one child."""
    nested = draw(nested_trees(max_tiles, min_tiles=min_tiles))
    parent, first, last, leaf_tile = (np.array(a, np.int32) for a in tree_arrays(nested))
    return Hierarchy(parent, first, last, leaf_tile, kind="random")


def tree_arrays(tree: Nested) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return parent, first_leaf, last_leaf and leaf_tile of a nested list, by recursion."""
    parent: list[int] = []
    first: list[int] = []
    last: list[int] = []
    leaf_tile: list[int] = []

    def visit(node: Nested) -> int:
        begin, below = len(leaf_tile), []
        if isinstance(node, int):
            leaf_tile.append(node)
        else:
            below = [visit(child) for child in node]
        parent.append(-1)
        first.append(begin)
        last.append(len(leaf_tile))
        for child in below:
            parent[child] = len(parent) - 1
        return len(parent) - 1

    visit(tree)
    return parent, first, last, leaf_tile


def flow_rows(data: Flows) -> list[tuple[int, int, int, int, int]]:
    """Return flows as plain tuples (step, origin, destination, volume, people)."""
    columns: tuple[Ints | Indices, ...] = (data.step, data.origin, data.destination, data.volume, data.people)
    return list(zip(*(c.tolist() for c in columns), strict=True))
