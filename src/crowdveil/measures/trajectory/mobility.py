"""Measure five mobility statistics of the original and of the release.

The definitions are scikit-mobility's, which counts every point as a visit. Its location entropy is in bits by its formula, as
here; its code uses natural logarithms. Distances are great circles. Individuals are people where both sides have them, otherwise
trajectories, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from pydantic import Field

from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats, Ints, row_slices
from crowdveil.model.projection import great_circle_m
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params

PARTS = ("original", "released", "change", "distance")


class TileParams(Params):
    """Parameters of measures of tiles."""

    tile_m: float = Field(250.0, gt=0, le=100_000)
    """Side of the square tiles of locations."""


class DisplacementParams(Params):
    """Parameters of the mean square displacement."""

    after_s: int = Field(3600, ge=1)
    """Time between the two compared positions."""


@dataclass(frozen=True, eq=False)
class Walks:
    """The points of each individual of one side, in order of time.

    Attributes
    ----------
    lon, lat, t
        Of each point.
    offsets
        The first point of each individual.
    order
        The index of each point in the data.
    """

    lon: Floats
    lat: Floats
    t: Ints
    offsets: Ints
    order: Ints

    def lengths_km(self) -> Floats:
        """Return the kilometers of each individual, in straight lines from point to point."""
        if len(self.lon) < 2:
            return np.zeros(len(self.offsets) - 1)
        leg = great_circle_m(self.lon[:-1], self.lat[:-1], self.lon[1:], self.lat[1:]) / 1000
        leg[self.offsets[1:-1] - 1] = 0.0  # from one individual to the next
        return np.add.reduceat(np.append(leg, 0.0), self.offsets[:-1])

    def square_displacements_km2(self, after_s: int) -> Floats:
        """Return the squared distance of each individual from its first to its last point within `after_s` seconds."""
        first = self.offsets[:-1]
        in_time = self.t <= np.repeat(self.t[first] + after_s, np.diff(self.offsets))
        last = first + np.add.reduceat(in_time.astype(np.int64), first) - 1
        meters = great_circle_m(self.lon[first], self.lat[first], self.lon[last], self.lat[last])
        squares: Floats = (meters / 1000) ** 2
        return squares


def _walks(compared: TrajectoryComparison) -> tuple[Walks, Walks]:
    """Return the walks of the original and of the release."""
    original, release = compared.original, compared.release
    if release.person is not None and original.k_unit == "people":
        people = np.unique(release.person, return_inverse=True)[1]
        return _by_individual(original, original.person), _by_individual(release, people)
    if release.person is not None or original.k_unit == "people":
        unknown = "original" if release.person is not None else "release"
        compared.notes.add(f"the {unknown} has no people, so individuals are trajectories, on both sides.")
    return _by_individual(original, np.arange(len(original))), _by_individual(release, np.arange(len(release)))


def _by_individual(side: Trajectories | TrajectoryRelease, individual: Ints) -> Walks:
    who = individual[row_slices(side.offsets)]
    order = np.lexsort((side.t, who))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(who), dtype=np.int64)])
    return Walks(side.lon[order], side.lat[order], side.t[order], offsets, order)


def _sides(compared: TrajectoryComparison) -> tuple[Walks, Walks]:
    return compared.once("walks", lambda: _walks(compared))


def _visits(compared: TrajectoryComparison, tile_m: float) -> tuple[tuple[Ints, Ints], ...]:
    """Return of each side the tile of every pair of a tile and its visitor, rising, and the number of visits."""

    def make() -> tuple[tuple[Ints, Ints], ...]:
        found = []
        for walks, tile in zip(_sides(compared), compared.tiles(tile_m), strict=True):
            individuals = len(walks.offsets) - 1
            pair = tile[walks.order] * individuals + row_slices(walks.offsets)
            key, count = np.unique(pair, return_counts=True)
            found.append((key // max(individuals, 1), count.astype(np.int64)))
        return tuple(found)

    return compared.once(("visits", tile_m), make)


def _per_tile(compared: TrajectoryComparison, params: TileParams, of_tiles: Callable[[Ints, Ints], Floats]) -> Floats:
    """Return the values of both sides in their tiles, and their distance."""
    sides = _visits(compared, params.tile_m)
    tiles = [np.unique(tile, return_inverse=True) for tile, _ in sides]
    values = [of_tiles(number, count) for (_, number), (_, count) in zip(tiles, sides, strict=True)]
    every = np.unique(np.concatenate([tile for tile, _ in tiles]))
    spread = np.zeros((2, len(every)))
    for row, (tile, _), value in zip(spread, tiles, values, strict=True):
        row[np.searchsorted(every, tile)] = value
    moved = float(np.abs(spread[0] - spread[1]).sum()) / len(values[0]) if len(values[0]) else np.nan
    return _summarize(values[0], values[1], moved)


def _visits_each(tile: Ints, count: Ints) -> Floats:
    return np.bincount(tile, count).astype(np.float64)


def _individuals_bits(tile: Ints, count: Ints) -> Floats:
    return np.log2(np.bincount(tile))


def _entropy_bits(tile: Ints, count: Ints) -> Floats:
    """Return −Σ p log₂ p over the visitors of a tile."""
    share = count / np.bincount(tile, count)[tile]
    return np.abs(np.bincount(tile, -share * np.log2(share)))  # abs: no -0.0 with a single visitor


def straight_line(compared: TrajectoryComparison) -> Floats:
    """Return the kilometers of an individual."""
    return _compare(*(walks.lengths_km() for walks in _sides(compared)))


def square_displacement(compared: TrajectoryComparison, params: DisplacementParams) -> Floats:
    """Return the mean squared displacement of an individual, in square kilometers."""
    return _compare(*(walks.square_displacements_km2(params.after_s) for walks in _sides(compared)))


def _summarize(original: Floats, released: Floats, moved: float) -> Floats:
    """Return the mean of both sides, the change of the mean, and the distance of the distributions, by the original mean."""
    if not len(original) or not len(released):
        return np.array([[original.mean() if len(original) else np.nan, np.nan, np.nan, np.nan]])
    before, after = float(original.mean()), float(released.mean())
    shares = ((after - before) / before, moved / before) if before > 0 else (np.nan, np.nan)
    return np.array([[before, after, *shares]])


def _compare(original: Floats, released: Floats) -> Floats:
    """Summarize values by ∫ |F − G|: the mean change of values that makes two distributions agree."""
    if not len(original) or not len(released):
        return _summarize(original, released, np.nan)
    marks = np.sort(np.concatenate([original, released]))
    below = [np.searchsorted(np.sort(side), marks[:-1], "right") / len(side) for side in (original, released)]
    return _summarize(original, released, float(np.sum(np.abs(below[0] - below[1]) * np.diff(marks))))


def _measure(
    name: str, title: str, compute: Callable[..., Floats], doc: str, params: type[Params] | None = None
) -> Measure:
    return Measure(name, title, "", "neither", Trajectories, compute, doc, parts=PARTS, params=params)


MEASURES = (
    _measure(
        "visits-per-location", "visits of a location", partial(_per_tile, of_tiles=_visits_each),
        "Points in a tile, the mean over tiles that have any.", TileParams,
    ),
    _measure(
        "straight-line-distance", "straight-line distance of an individual, km", straight_line,
        "The sum of the distances from each point to the next, the mean over individuals.",
    ),
    _measure(
        "uncorrelated-location-entropy", "uncorrelated entropy of a location, bits",
        partial(_per_tile, of_tiles=_entropy_bits),
        "Entropy of the visits of a tile over individuals, the mean over tiles.", TileParams,
    ),
    _measure(
        "random-location-entropy", "random entropy of a location, bits",
        partial(_per_tile, of_tiles=_individuals_bits),
        "The logarithm of the number of individuals in a tile, the mean over tiles.", TileParams,
    ),
    _measure(
        "mean-square-displacement", "mean square displacement, km²", square_displacement,
        "Squared distance of individuals from their first position after a time, the mean over them.", DisplacementParams,
    ),
)  # fmt: skip
