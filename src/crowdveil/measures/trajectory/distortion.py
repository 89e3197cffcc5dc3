"""Measure what a release of trajectories lost: how far points moved, lengths, speeds, and the covered part of the map.

It is measured before publication, where the original of each published trajectory is known, and published in the manifest.
Figures are quantiles of at least k people on either side, rounded to two digits, and whole percents of squares that at least k
people visit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdveil.measures.rounding import DEFAULT_K, group_quantiles, two_digits
from crowdveil.model.arrays import Floats, Ints, row_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

CELL_M = 500.0
"""Side of the squares of the coverage."""


class WalkSums(NamedTuple):
    """Meters and seconds of each original trajectory, in the original or over all its published segments."""

    meters: Floats
    seconds: Floats


def measure_distortion(data: Trajectories, release: TrajectoryRelease, k: int | None) -> dict[str, Any] | None:
    """Return the distortion of a release; None if nothing is published, or the originals are not known."""
    if release.source is None or not len(release):
        return None
    at = data.projection.to_plane(release.lon, release.lat)
    published = _walks(*at, release.t, release.offsets)
    of = np.unique(release.source)
    after = WalkSums(*(np.bincount(release.source, values, len(data))[of].astype(np.float64) for values in published))
    before = _walks(*data.xy, data.t, data.offsets)
    person = data.person
    return {
        "moved_m": group_quantiles(_medians(displacements(data, release), release.offsets), person[release.source], k),
        "length_km": {
            "original": group_quantiles(before.meters / 1000, person, k),
            "release": _plain_quantiles(after.meters / 1000),
        },
        "speed_kmh": {
            "original": group_quantiles(*_speeds(before, person), k),
            "release": _plain_quantiles(_speeds(after, of)[0]),
        },
        "coverage_percent": _coverage(data, at, k or DEFAULT_K),
    }


def displacements(data: Trajectories, release: TrajectoryRelease) -> Floats:
    """Return meters from each published point to the position of its original trajectory at that time.

    Between two original points the position is on the line between them; before the first and after the last it is theirs.
    """
    if release.source is None:
        raise ValueError("the original of each published trajectory must be known")
    of = np.repeat(release.source, np.diff(release.offsets))
    first, last = data.offsets[of], data.offsets[of + 1] - 1
    t = np.clip(release.t, data.t[first], data.t[last])
    start = int(data.t.min(initial=0))
    span = int(data.t.max(initial=0)) - start + 1
    at = np.searchsorted(data.trajectory * span + data.t - start, of * span + t - start, side="right") - 1
    after = np.minimum(at + 1, last)
    part = (t - data.t[at]) / np.maximum(data.t[after] - data.t[at], 1)
    x, y = data.xy
    x1, y1 = data.projection.to_plane(release.lon, release.lat)
    meters: Floats = np.hypot(x1 - x[at] - part * (x[after] - x[at]), y1 - y[at] - part * (y[after] - y[at]))
    return meters


def _walks(x: Floats, y: Floats, t: Ints, offsets: Ints) -> WalkSums:
    leg = np.hypot(np.diff(x, append=x[-1:]), np.diff(y, append=y[-1:]))
    leg[offsets[1:] - 1] = 0.0  # from one trajectory to the next
    seconds = t[offsets[1:] - 1] - t[offsets[:-1]]
    return WalkSums(np.add.reduceat(leg, offsets[:-1]), seconds.astype(np.float64))


def _speeds(walks: WalkSums, person: Ints) -> tuple[Floats, Ints]:
    """Return the mean speed of each trajectory that takes time, in km/h, and its person."""
    moving = walks.seconds > 0
    return 3.6 * walks.meters[moving] / walks.seconds[moving], person[moving]


def _medians(values: Floats, offsets: Ints) -> Floats:
    """Return the median of each slice, the lower one of two."""
    order = np.lexsort((values, row_slices(offsets)))
    medians: Floats = values[order][offsets[:-1] + (np.diff(offsets) - 1) // 2]
    return medians


def _plain_quantiles(values: Floats) -> dict[str, float | None]:
    """Return the quantiles of published values, which need no group."""
    if not len(values):
        return dict.fromkeys(("low", "middle", "high"))
    quantiles = np.quantile(values, (0.1, 0.5, 0.9), method="inverted_cdf")
    return {name: two_digits(float(v)) for name, v in zip(("low", "middle", "high"), quantiles, strict=True)}


def _coverage(data: Trajectories, published: tuple[Floats, Floats], k: int) -> int | None:
    """Return the share of the squares with points of at least k people that have a published point, in whole percents."""
    x, y = (np.concatenate(pair) for pair in zip(data.xy, published, strict=True))
    cell = _cells(x, y)
    people = int(data.person.max(initial=0)) + 1
    # One number for a square and a person: a table of rows takes ten times as long to sort.
    visits = np.unique(cell[: data.points] * people + data.person[data.trajectory])
    cells, visitors = np.unique(visits // people, return_counts=True)
    busy = cells[visitors >= k]
    return round(100 * int(np.isin(busy, cell[data.points :]).sum()) / len(busy)) if len(busy) else None


def _cells(x: Floats, y: Floats) -> Ints:
    """Return a number for the square of each point, less than the number of points."""
    column, row = (np.floor(values / CELL_M).astype(np.int64) for values in (x, y))
    height = int(np.ptp(row)) + 1 if len(row) else 1
    return np.unique((column - column.min(initial=0)) * height + row - row.min(initial=0), return_inverse=True)[1]
