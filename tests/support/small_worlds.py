"""Small worlds for adversaries: people at named places, as trajectories; and releases of a few flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from written_flows import written

from crowdveil.io.release_reader import load_flow_release_alone
from crowdveil.model.release import FlowRelease, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones

HOUR, DAY = 3600, 86_400
NOON = 1_296_691_200 + 12 * HOUR  # 2011-02-03
PLACES = "BCDAEFGH"
"""From south to north; a few kilometers apart, on one meridian."""

Walk = Sequence[tuple[str, int]]
"""Places and times of one trajectory."""


def columns(walks: Sequence[Walk]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    points = [record for walk in walks for record in walk]
    lat = np.array([43.5 + PLACES.index(place) / 20 for place, _ in points], np.float64)
    offsets = np.cumsum([0, *map(len, walks)])
    return np.full(len(lat), 10.5), lat, np.array([t for _, t in points], np.int64), offsets


def world(walks: Sequence[Walk], person: Sequence[int] | None = None) -> Trajectories:
    """Each walk a trajectory, of a person of its own unless it is said whose."""
    owner = np.arange(len(walks)) if person is None else np.array(person)
    people = np.array([f"p{i}" for i in range(int(owner.max(initial=-1)) + 1)], dtype=object)
    return Trajectories(*columns(walks), np.arange(len(walks)), owner, people)


def published(walks: Sequence[Walk], source: Sequence[int] | None) -> TrajectoryRelease:
    return TrajectoryRelease(*columns(walks), source=None if source is None else np.array(source))


def flow_release(rows: list[tuple[Any, ...]], steps: list[tuple[Any, ...]] | None = None) -> FlowRelease:
    """Rows (time, origin, destination, volume, people) between the areas a, b, c and ab."""
    made = written(rows, steps)
    return load_flow_release_alone(made, Zones.from_ids(made.tile_names), 3600, "UTC")


def walk(places: str, times: Sequence[int] | None = None) -> Walk:
    """A walk over places of one letter each, hour by hour from noon unless times are given."""
    return list(zip(places, [NOON + HOUR * i for i in range(len(places))] if times is None else times, strict=True))


def _at(*moments: tuple[int, int]) -> list[int]:
    """Seconds of (day, hour)."""
    return [NOON - 12 * HOUR + (day - 3) * DAY + hour * HOUR + 34 * 60 + 4 for day, hour in moments]


TOY = [
    walk("ABCD", _at((3, 8), (3, 9), (3, 10), (4, 10))),
    walk("ACAB", _at((3, 8), (3, 9), (4, 10), (4, 11))),
    walk("BCAD", _at((3, 8), (3, 9), (4, 10), (4, 11))),
    walk("CBD", _at((4, 10), (4, 11), (4, 12))),
    walk("CDA", _at((4, 10), (4, 11), (5, 12))),
    walk("AB", _at((4, 10), (4, 11))),
    walk("AAD", _at((4, 10), (4, 11), (5, 12))),
]
"""The seven people of scikit-mobility's example, at the four towns A, B, C, D."""
