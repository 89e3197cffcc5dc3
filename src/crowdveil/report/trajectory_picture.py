"""Trajectories reduced to the points that a page can draw, and sizes of their equivalence classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from markupsafe import Markup

from crowdveil.io.times import iso_times
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Floats, Ints, sorted_distinct
from crowdveil.model.projection import great_circle_m
from crowdveil.model.trajectories import Trajectories
from crowdveil.report.layers import differences
from crowdveil.report.page_model import STRONGER, Figure
from crowdveil.report.shapes import PictureFrame
from crowdveil.report.svg_figures import class_legend

MAX_POINTS, MAX_BINS, HEAT_CELLS = 150_000, 48, 72
CHUNK = 1 << 18
"""Points that are processed at once."""
_BINS_S = (60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400, 28 * 86400)


@dataclass(frozen=True, eq=False)
class TrajectoryPicture:
    """Points of trajectories; those of trajectory i are lon, lat, t[offsets[i]:offsets[i + 1]]."""

    lon: Floats
    lat: Floats
    t: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shown(self) -> int:
        """Number of trajectories that a page shows: the first ones. In a release, a hash of their points orders them."""
        if len(self.lon) <= MAX_POINTS:
            return len(self)
        return int(np.searchsorted(self.offsets, MAX_POINTS, side="right")) - 1

    @cached_property
    def lengths_km(self) -> Floats:
        """Return the length of each trajectory, along great circles from point to point."""
        if not len(self):
            return np.zeros(0)
        leg = np.zeros(len(self.lon))
        for low in range(0, len(leg) - 1, CHUNK):
            start, end = slice(low, min(low + CHUNK, len(leg) - 1)), slice(low + 1, low + 1 + CHUNK)
            leg[start] = great_circle_m(self.lon[start], self.lat[start], self.lon[end], self.lat[end])
        leg[self.offsets[1:] - 1] = 0.0  # from one trajectory to the next
        return np.add.reduceat(leg, self.offsets[:-1]) / 1000

    def speeds_kmh(self) -> Floats:
        """Return the mean speed of each trajectory that takes time."""
        hours = (self.t[self.offsets[1:] - 1] - self.t[self.offsets[:-1]]) / 3600
        return self.lengths_km[hours > 0] / hours[hours > 0]

    def chunks(self) -> Iterator[TrajectoryPicture]:
        """Yield all trajectories, some at a time, so that columns of all points are never copied."""
        first = 0
        while first < len(self):
            last = max(int(np.searchsorted(self.offsets, self.offsets[first] + CHUNK, side="right")) - 1, first + 1)
            rows = slice(self.offsets[first], self.offsets[last])
            offsets = self.offsets[first : last + 1] - self.offsets[first]
            yield TrajectoryPicture(self.lon[rows], self.lat[rows], self.t[rows], offsets)
            first = last

    def layer(self, frame: PictureFrame, t0: int, bin_s: int) -> dict[str, Any]:
        """Return the shown trajectories as data for the page."""
        last = int(self.offsets[self.shown])
        x, y = frame.to_cells(self.lon[:last], self.lat[:last])
        return {
            "points": np.diff(self.offsets[: self.shown + 1]).tolist(),
            "x": differences(x),
            "y": differences(y),
            "bin": differences((self.t[:last] - t0) // bin_s),
        }


def released(written: WrittenRelease) -> TrajectoryPicture:
    """Return the trajectories of a written release."""
    number = written.column("published_id")
    offsets = np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(number))
    return TrajectoryPicture(written.column("lon"), written.column("lat"), written.column("timestamp"), offsets)


def original(data: Trajectories) -> TrajectoryPicture:
    """Return the original trajectories: for confidential pictures only."""
    return TrajectoryPicture(data.lon, data.lat, data.t, data.offsets)


def time_bins(t: Ints) -> tuple[int, int, list[str]]:
    """Return start, length (seconds) and labels of the time bins of a page."""
    first, last = int(t.min()), int(t.max())
    span = last - first + 1
    bin_s = next((s for s in _BINS_S if span <= s * (MAX_BINS - 1)), -(-span // (MAX_BINS - 1)))
    t0 = first // bin_s * bin_s
    starts = np.arange(t0, last + 1, bin_s)
    return t0, bin_s, [f"{text[:10]} {text[11:16]} UTC" for text in iso_times(starts, "UTC").to_pylist()]


def contents(picture: TrajectoryPicture, *columns: Floats | Ints) -> list[bytes]:
    """Return the values of each trajectory in some columns as bytes, which are equal where all values are."""
    values = np.column_stack([column.astype(np.float64) + 0.0 for column in columns])
    ends = zip(picture.offsets[:-1].tolist(), picture.offsets[1:].tolist(), strict=True)
    return [values[low:high].tobytes() for low, high in ends]


def equivalence_class_sizes(picture: TrajectoryPicture) -> Ints:
    """Return for each trajectory the number of those equal to it in all locations and times, itself included."""
    equal = contents(picture, picture.lon, picture.lat, picture.t)
    sizes = Counter(equal)
    return np.array([sizes[content] for content in equal], np.int64)


def published_class_sizes(written: WrittenRelease) -> Ints:
    """Return the size of the equivalence class of each published trajectory, computed once for a release."""
    sizes: Ints = written.cached("class sizes", lambda: equivalence_class_sizes(released(written)))
    return sizes


def heat_figure(picture: TrajectoryPicture, frame: PictureFrame, title: str) -> Figure:
    """Return a map of square cells, row by row from the north-west, colored by the number of trajectories in each."""
    side = max(frame.width, frame.height) / HEAT_CELLS
    trajectories = count_by_cell(picture, frame, HEAT_CELLS).ravel()
    cells = np.flatnonzero(trajectories)
    count = trajectories[cells]
    classes: Ints = np.minimum((7 * np.sqrt(count / count.max(initial=1))).astype(np.int64), 6)
    marks = [
        f'<rect class="q{q}" x="{c % HEAT_CELLS}" y="{c // HEAT_CELLS}" width="1" height="1"/>'
        for c, q in zip(cells.tolist(), classes.tolist(), strict=True)
    ]
    svg = (
        f'<svg class="map heat" role="img" viewBox="-1 -1 {frame.width / side + 2:.1f} {frame.height / side + 2:.1f}">'
        f"<title>{escape(title)}</title>{''.join(marks)}</svg>"
    )
    text = Markup(
        f"{len(picture):,} trajectories with {len(picture.lon):,} points; {STRONGER} cells have points of more trajectories."
    )
    return Figure(title, svg, text, class_legend("q", classes, count))


def count_by_cell(picture: TrajectoryPicture, frame: PictureFrame, cells: int) -> Ints:
    """Return the number of trajectories with a point in each square cell, rows from the north; `cells` on the longer side."""
    side = max(frame.width, frame.height) / cells
    count = np.zeros(cells * cells, np.int64)
    for chunk in picture.chunks():
        x, y = frame.to_cells(chunk.lon, chunk.lat)
        inside = (x >= 0) & (y >= 0) & (x <= frame.width) & (y <= frame.height)
        column, row = (np.minimum(c[inside] / side, cells - 1).astype(np.int64) for c in (x, y))
        trajectory = np.repeat(np.arange(len(chunk)), np.diff(chunk.offsets))[inside]
        once = sorted_distinct((trajectory * cells + row) * cells + column)
        count += np.bincount(once % (cells * cells), minlength=cells * cells)
    return count.reshape(cells, cells)
