"""Measure what a release of trajectories lost: how far points moved, lengths, speeds, and the covered part of the map.

It is measured before publication, where the original of each published trajectory is known, and published in the manifest.
Figures are quantiles of at least k people on either side, rounded to two digits, and whole percents of squares that at least k
people visit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.rounding import DEFAULT_K, group_quantiles
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import (
    AnyArray,
    Floats,
    Ints,
    Mask,
    gather,
    row_slices,
    sorted_distinct,
    take_slices,
)
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

CELL_M = 500.0
"""Side of the squares of the coverage."""
CHUNK = 1 << 20
"""Points that are measured at once."""


class WalkSums(NamedTuple):
    """Meters and seconds of each original trajectory, in the original or over all its published segments."""

    meters: Floats
    seconds: Floats


class PublishedFigures(NamedTuple):
    """Meters and seconds of each published trajectory, the median of the meters that its points moved, and all squares."""

    walks: WalkSums
    moved: Floats
    cells: Ints


def measure_distortion(data: Trajectories, release: TrajectoryRelease, k: int | None) -> dict[str, Any] | None:
    """Return the distortion of a release; None if nothing is published, or the originals are not known."""
    if release.source is None or not len(release):
        return None
    published = _published_figures(data, release, release.source)
    of = sorted_distinct(release.source)
    after = WalkSums(
        *(np.bincount(release.source, values, len(data))[of].astype(np.float64) for values in published.walks)
    )
    before, visits = _original_figures(data)
    person = data.person
    return {
        "moved_m": group_quantiles(published.moved, person[release.source], k),
        "length_km": {
            "original": group_quantiles(before.meters / 1000, person, k),
            "release": group_quantiles(after.meters / 1000, of, 1),  # published figures need no group
        },
        "speed_kmh": {
            "original": group_quantiles(*_speeds(before, person), k),
            "release": group_quantiles(*_speeds(after, of), 1),
        },
        "coverage_percent": _coverage(visits, _owners(data), published.cells, k or DEFAULT_K),
    }


def displacements(data: Trajectories, release: TrajectoryRelease) -> Floats:
    """Return meters from each published point to the position of its original trajectory at that time.

    Between two original points the position is on the line between them; before the first and after the last it is theirs.
    """
    if release.source is None:
        raise ValueError("the original of each published trajectory must be known")
    meters = np.empty(release.points)
    for first, last in _chunks(release.offsets):
        rows = slice(release.offsets[first], release.offsets[last])
        at = data.projection.to_plane(release.lon[rows], release.lat[rows])
        offsets = release.offsets[first : last + 1] - release.offsets[first]
        meters[rows] = _displacements(data, at, release.t[rows], offsets, release.source[first:last])
    return meters


def _displacements(data: Trajectories, at: tuple[Floats, Floats], t: Ints, offsets: Ints, source: Ints) -> Floats:
    """Return the displacements of a chunk of published trajectories, from positions in planar meters."""
    used, number = np.unique(source, return_inverse=True)
    rows, ends = take_slices(data.offsets, used)
    x, y, times = (gather(column, rows) for column in (*data.xy, data.t))
    east, north = positions_at(times, x, y, ends, np.repeat(number, np.diff(offsets)), t)
    meters: Floats = np.hypot(at[0] - east, at[1] - north)
    return meters


def positions_at(times: Ints, x: Floats, y: Floats, offsets: Ints, of: Ints, wanted: Ints) -> tuple[Floats, Floats]:
    """Return the positions of trajectories, by number in `of`, at wanted times; no trajectory is empty.

    Between two points of a trajectory the position is on the line between them; before the first and after the last it is theirs.
    """
    first, last = offsets[of], offsets[of + 1] - 1
    moment = np.clip(wanted, times[first], times[last])
    # Times rise in each trajectory, so that one search finds the last point that is not later.
    begin, span = times.min(initial=0), np.ptp(times) + 1 if len(times) else 1
    before = (
        np.searchsorted(row_slices(offsets) * span + (times - begin), of * span + (moment - begin), side="right") - 1
    )
    after = np.minimum(before + 1, last)
    part = (moment - times[before]) / np.maximum(times[after] - times[before], 1)
    return x[before] + part * (x[after] - x[before]), y[before] + part * (y[after] - y[before])


def _chunks(offsets: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of trajectories with about `CHUNK` points each, so that columns of all points are never copied."""
    first = 0
    while first < len(offsets) - 1:
        last = max(int(np.searchsorted(offsets, offsets[first] + CHUNK, side="right")) - 1, first + 1)
        yield first, last
        first = last


def _published_figures(data: Trajectories, release: TrajectoryRelease, source: Ints) -> PublishedFigures:
    """Return the figures of published trajectories, a chunk of them at a time."""
    walks, moved, cells = [], [], []
    for first, last in _chunks(release.offsets):
        rows = slice(release.offsets[first], release.offsets[last])
        offsets, t = release.offsets[first : last + 1] - release.offsets[first], release.t[rows]
        # Equal trajectories are published one after the other: the first of them stands for all.
        differs = ~_repeats((release.lon[rows], release.lat[rows], t), offsets)
        own, own_offsets = take_slices(offsets, np.flatnonzero(differs))
        at, number = _positions(data, release, rows, own), np.cumsum(differs) - 1
        walks.append([values[number] for values in _walks(*at, gather(t, own), own_offsets)])
        cells.append(sorted_distinct(_without_repeats(_cells(*at))))
        everywhere = take_slices(own_offsets, number)[0]
        each = gather(at[0], everywhere), gather(at[1], everywhere)
        meters = _displacements(data, each, t, offsets, source[first:last])
        rising = meters[np.lexsort((meters, row_slices(offsets)))]
        moved.append(rising[(offsets[:-1] + offsets[1:] - 1) // 2])  # the lower one of two medians
    meters, seconds = (np.concatenate(column) for column in zip(*walks, strict=True))
    return PublishedFigures(WalkSums(meters, seconds), np.concatenate(moved), sorted_distinct(np.concatenate(cells)))


def _repeats(columns: Sequence[AnyArray], offsets: Ints) -> Mask:
    """Return which trajectories are equal to the one before them."""
    lengths = np.diff(offsets)
    before = np.arange(offsets[-1]) - np.repeat(lengths, lengths)  # other rows where lengths differ
    same = np.ones(offsets[-1], np.bool_)
    for column in columns:
        same &= column == gather(column, before)
    repeats: Mask = np.logical_and.reduceat(same, offsets[:-1]) & (lengths == np.append(0, lengths[:-1]))
    return repeats


def _positions(data: Trajectories, release: TrajectoryRelease, rows: slice, own: Ints) -> tuple[Floats, Floats]:
    """Return some published points, `own` among `rows`, in planar meters; those of input points need not be projected again."""
    if release.point is None:
        return data.projection.to_plane(gather(release.lon[rows], own), gather(release.lat[rows], own))
    point, (x, y) = gather(release.point[rows], own), data.xy
    return gather(x, point), gather(y, point)


def _original_figures(data: Trajectories) -> tuple[WalkSums, Ints]:
    """Return the walks of original trajectories, and the visits: one number for each square and person, each once."""
    walks, visits = [], []
    people, (x, y) = _owners(data), data.xy
    for first, last in _chunks(data.offsets):
        rows = slice(data.offsets[first], data.offsets[last])
        offsets = data.offsets[first : last + 1] - data.offsets[first]
        walks.append(_walks(x[rows], y[rows], data.t[rows], offsets))
        # One number for a square and a person: a table of rows takes ten times as long to sort.
        visit = _cells(x[rows], y[rows]) * people + np.repeat(data.person[first:last], np.diff(offsets))
        visits.append(sorted_distinct(_without_repeats(visit)))
    meters, seconds = (np.concatenate(column) for column in zip(*walks, strict=True))
    return WalkSums(meters, seconds), sorted_distinct(np.concatenate(visits), in_runs=True)


def _without_repeats(values: Ints) -> Ints:
    """Return values without those that are equal to the one before: points that follow one another are near."""
    changed: Ints = values[np.append(True, values[1:] != values[:-1])]
    return changed


def _owners(data: Trajectories) -> int:
    """Return how many numbers of people there are."""
    return int(data.person.max(initial=0)) + 1


def _walks(x: Floats, y: Floats, t: Ints, offsets: Ints) -> WalkSums:
    leg = np.hypot(np.diff(x, append=x[-1:]), np.diff(y, append=y[-1:]))
    leg[offsets[1:] - 1] = 0.0  # from one trajectory to the next
    seconds = t[offsets[1:] - 1] - t[offsets[:-1]]
    return WalkSums(np.add.reduceat(leg, offsets[:-1]), seconds.astype(np.float64))


def _speeds(walks: WalkSums, person: Ints) -> tuple[Floats, Ints]:
    """Return the mean speed of each trajectory that takes time, in km/h, and its person."""
    moving = walks.seconds > 0
    return 3.6 * walks.meters[moving] / walks.seconds[moving], person[moving]


def _coverage(visits: Ints, people: int, published: Ints, k: int) -> int | None:
    """Return the share of the squares with points of at least k people that have a published point, in whole percents."""
    cell = visits // people  # rising, as visits do
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    busy = cell[first[np.diff(first, append=len(cell)) >= k]]
    return round(100 * int(np.isin(busy, published).sum()) / len(busy)) if len(busy) else None


def _cells(x: Floats, y: Floats) -> Ints:
    """Return a number for the square of each point, less than 2**32: the plane is less than 2**16 squares wide."""
    column, row = (np.floor(values / CELL_M).astype(np.int64) + 2**15 for values in (x, y))
    return column * 2**16 + row


def trajectories_removed(compared: TrajectoryComparison) -> Floats:
    """Return the share of trajectories that are not published."""
    source = compared.release.source
    left = len(compared.release) if source is None else len(np.unique(source))
    return 1 - ratio(np.array([left]), np.array([len(compared.original)]))


def locations_removed(compared: TrajectoryComparison) -> Floats:
    """Return the share of points that are not published."""
    return 1 - ratio(np.array([compared.release.points]), np.array([compared.original.points]))


MEASURES = (
    Measure(
        "trajectories-removed", "share of trajectories removed", "", "lower", Trajectories, trajectories_removed,
        "Share of the original trajectories that are not published.",
    ),
    Measure(
        "locations-removed", "share of locations removed", "", "lower", Trajectories, locations_removed,
        "Share of the original points by which the release has fewer; below 0 where it has more.",
    ),
)  # fmt: skip
