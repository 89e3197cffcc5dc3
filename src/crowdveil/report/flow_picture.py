"""Flows of a written release or of the original, reduced to the areas, time steps and rows that a page can draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crowdveil.analysis.calendar import DAYS
from crowdveil.io.geojson import read_outlines
from crowdveil.io.manifest import Manifest
from crowdveil.io.release_reader import read_intervals
from crowdveil.io.times import iso_times
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Floats, Ints, Mask, distinct, take_slices
from crowdveil.model.intervals import Intervals
from crowdveil.model.time_axis import Clock, hour_of_week
from crowdveil.report.shapes import Rings

MAX_STEPS, MAX_FLOWS, MAX_AREAS = 200, 100_000, 12_000
"""Limits of a page; beyond them, time steps are aggregated by hour of the week and the largest flows are shown."""
_SHORTEST_DAY_S = 23 * 3600
"""The day on which clocks go forward."""


@dataclass(frozen=True, eq=False)
class FlowPicture:
    """Flows as drawn.

    Attributes
    ----------
    names, km2, lon, lat
        Of each area; km² and centers are NaN if unknown.
    offsets, tiles
        The tile numbers of area i are tiles[offsets[i]:offsets[i + 1]].
    rings
        Outlines.
    labels
        Label of each time step; none if the flows have no times.
    step, origin, destination, volume
        The rows.
    aggregation
        How time steps were aggregated; empty if they were not.
    all_areas, all_volume
        Number of areas and total volume, including those that are not drawn.
    ids
        Of each area, as in the tables.
    """

    names: list[str]
    km2: Floats
    lon: Floats
    lat: Floats
    offsets: Ints
    tiles: Ints
    rings: Rings
    labels: list[str]
    step: Ints
    origin: Ints
    destination: Ints
    volume: Ints
    aggregation: str = ""
    all_areas: int = 0
    all_volume: int = 0
    ids: Sequence[str] = ()

    @classmethod
    def between(
        cls, names: list[str], lon: Floats, lat: Floats, rings: Rings, step: Ints, origin: Ints, destination: Ints, volume: Any
    ) -> FlowPicture:  # fmt: skip
        """Return flows between places, which are areas of one tile each."""
        n = len(names)
        return cls(
            names, np.full(n, np.nan), lon, lat, np.arange(n + 1), np.arange(n), rings, [], step, origin, destination, volume
        )  # fmt: skip

    def find(self, area: str) -> int:
        """Return the index of an area by its id or its name; -1 if there is none."""
        ids = list(self.ids)
        return ids.index(area) if area in ids else self.names.index(area) if area in self.names else -1

    @property
    def size(self) -> Ints:
        """Number of tiles of each area."""
        return np.diff(self.offsets)

    @property
    def located(self) -> bool:
        """Whether areas have positions, so that there is a map."""
        return bool(len(self.names)) and bool(np.isfinite(self.lon).any())

    @cached_property
    def trips(self) -> Ints:
        """Trips that leave or reach each area."""
        n = len(self.names)
        both = np.bincount(self.origin, self.volume, n) + np.bincount(self.destination, self.volume, n)
        trips: Ints = np.rint(both).astype(np.int64)
        return trips

    @property
    def busiest(self) -> list[int]:
        """Areas by their trips, the busiest first."""
        order: list[int] = np.argsort(-self.trips, kind="stable").tolist()
        return order

    def by_tile(self, trips: Ints | Floats) -> tuple[Floats, Floats]:
        """Return for each tile the mean number of tiles that the trips of its areas are spread over, and its share of them."""
        count = int(self.tiles.max(initial=-1)) + 1
        area = np.repeat(np.arange(len(self.names)), self.size)
        weight = np.maximum(trips, 0).astype(np.float64)
        spread = np.bincount(self.tiles, (weight / np.maximum(self.size, 1))[area], count).astype(np.float64)
        whole = np.bincount(self.tiles, weight[area], count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(spread > 0, whole / spread, np.nan), spread

    def by_face(self, of_tiles: Floats) -> Floats:
        """Return the mean value of each area's visible tiles; larger areas are drawn below smaller ones."""
        n, area = len(self.names), np.repeat(np.arange(len(self.names)), self.size)
        order = np.lexsort((area, -self.size[area]))
        smallest = np.full(len(of_tiles), -1)
        smallest[self.tiles[order]] = area[order]
        seen = (smallest[self.tiles] == area) & np.isfinite(of_tiles[self.tiles])
        known = np.isfinite(of_tiles[self.tiles])
        means = []
        for chosen in (seen, known):
            count = np.bincount(area[chosen], minlength=n)
            with np.errstate(invalid="ignore", divide="ignore"):
                means.append(np.bincount(area[chosen], of_tiles[self.tiles[chosen]], n) / count)
        return np.where(np.isfinite(means[0]), means[0], means[1])


@dataclass(frozen=True, eq=False)
class TileValues:
    """Values of each tile of a release.

    The mean number of tiles that its trips are spread over, its trips spread evenly, and the share of its pairs with all
    tiles, over all time steps, that are in no published flow.
    """

    spread_over: Floats
    trips: Floats
    unpublished: Floats


def released(written: WrittenRelease, manifest: Manifest) -> tuple[FlowPicture, TileValues]:
    """Return a written release as drawn, and its values of tiles; made once for a release."""
    name = f"picture, {manifest.time_zone}"
    drawn: tuple[FlowPicture, TileValues] = written.cached(name, lambda: _released(written, manifest))
    return drawn


def all_flows(written: WrittenRelease, manifest: Manifest) -> tuple[FlowPicture, Ints]:
    """Return all flows of a written release without outlines, and its time steps.

    Trips of intervals of time are spread evenly over their time steps.
    """
    features = written.features
    properties = [feature["properties"] for feature in features]
    origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
    volume = written.column("volume")
    if written.has_intervals:
        t, step, row, volume = spread_intervals(written, manifest)
        origin, destination = origin[row], destination[row]
    else:
        t, step = written.row_steps()
    picture = FlowPicture(
        [str(p.get("name") or p["area"]) for p in properties],
        np.array([p.get("area_km2") if p.get("area_km2") is not None else np.nan for p in properties], np.float64),
        np.array([p.get("lon", np.nan) for p in properties], np.float64),
        np.array([p.get("lat", np.nan) for p in properties], np.float64),
        *written.tiles_by_area, Rings.of([]),
        [], step, origin, destination, volume, ids=[str(p["area"]) for p in properties],
    )  # fmt: skip
    return picture, t


def _released(written: WrittenRelease, manifest: Manifest) -> tuple[FlowPicture, TileValues]:
    picture, t = all_flows(written, manifest)
    intervals = released_intervals(written, manifest) if written.has_intervals else None
    values = TileValues(*picture.by_tile(picture.trips), _unpublished(written, intervals))
    small, kept = _fewer(picture, t, manifest.time_zone)
    if written.has_intervals:
        spread = "trips of intervals of time are spread evenly over their time steps"
        small = replace(small, aggregation=f"{spread}; {small.aggregation}" if small.aggregation else spread)
    return replace(small, rings=Rings.of(read_outlines([written.features[i] for i in kept]))), values


def spread_intervals(written: WrittenRelease, manifest: Manifest) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the time steps of all windows, and each row once for each time step that it spans: step, row, and its trips there.

    Trips are whole, and add up to those of the row.
    """
    intervals = released_intervals(written, manifest)
    slot, row = intervals.spread()
    volume, steps, at = written.column("volume")[row], intervals.steps[row], slot - intervals.first[row]
    part: Ints = volume * (at + 1) // steps - volume * at // steps
    kept = part > 0
    return intervals.start, slot[kept], row[kept], part[kept]


def released_intervals(written: WrittenRelease, manifest: Manifest) -> Intervals:
    """Return the interval of each row of a written release."""
    return read_intervals(written, manifest.step_seconds, manifest.time_zone)


def _unpublished(written: WrittenRelease, intervals: Intervals | None) -> Floats:
    """Return for each tile the share of its pairs with all tiles, over all time steps, that are in no published flow."""
    sizes, tiles = written.area_sizes, written.tile_count
    ends = written.area_numbers("origin_area"), written.area_numbers("destination_area")
    if intervals is not None:
        steps, spans = len(intervals.start), intervals.steps
    else:
        steps, spans = len(written.listed_steps()[0]), np.ones(len(written.data), np.int64)
    covered = np.zeros(len(sizes))
    for end, other in (ends, ends[::-1]):
        covered += np.bincount(end, sizes[other] * spans, len(sizes))
    of_tile = np.bincount(written.tiles_by_area[1], np.repeat(covered, sizes), tiles)
    share: Floats = np.clip(1 - of_tile / max(2 * tiles * steps, 1), 0, 1)
    return share


def _fewer(picture: FlowPicture, t: Ints, tz: str) -> tuple[FlowPicture, Ints]:
    """Reduce steps, rows and areas to the limits of a page; also return which areas are kept."""
    labels, step, aggregation = _label_steps(t, picture.step, tz)
    total, areas = int(picture.volume.sum()), len(picture.names)
    origin, destination, volume = picture.origin, picture.destination, picture.volume
    if aggregation:
        step, origin, destination, volume = _sum_equal(step, origin, destination, volume, areas)
    largest = _largest(volume, MAX_FLOWS)
    step, origin, destination, volume = (c[largest] for c in (step, origin, destination, volume))
    order = np.lexsort((destination, origin, step))
    step, origin, destination, volume = (c[order] for c in (step, origin, destination, volume))
    kept, origin, destination, good = _few_areas(origin, destination, volume, areas)
    tile_rows, offsets = take_slices(picture.offsets, kept)
    small = FlowPicture(
        [picture.names[i] for i in kept], picture.km2[kept], picture.lon[kept], picture.lat[kept], offsets,
        picture.tiles[tile_rows], picture.rings, labels, step[good], origin[good], destination[good], volume[good],
        aggregation, areas, total, [picture.ids[i] for i in kept],
    )  # fmt: skip
    return small, kept


def _few_areas(origin: Ints, destination: Ints, volume: Ints, areas: int) -> tuple[Ints, Ints, Ints, Mask]:
    """Return the areas in rows (those with most trips if too many), rows by their numbers, and which rows are kept."""
    kept, index = distinct(np.concatenate([origin, destination]), areas)
    n = len(origin)
    if len(kept) > MAX_AREAS:
        trips = np.bincount(index[:n], volume, len(kept)) + np.bincount(index[n:], volume, len(kept))
        chosen = np.sort(_largest(np.rint(trips).astype(np.int64), MAX_AREAS))
        number = np.full(len(kept), -1)
        number[chosen] = np.arange(len(chosen))
        kept, index = kept[chosen], number[index]
    return kept, index[:n], index[n:], (index[:n] >= 0) & (index[n:] >= 0)


def _largest(values: Ints, most: int) -> Ints:
    """Return the indices of the `most` largest values, ascending; ties by index."""
    return np.sort(np.argsort(-values, kind="stable")[:most])


def _sum_equal(step: Ints, origin: Ints, destination: Ints, volume: Ints, areas: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Sum the rows of equal step, origin and destination."""
    cells, cell = np.unique((step * areas + origin) * areas + destination, return_inverse=True)
    sums = np.bincount(cell, volume, len(cells)).astype(np.int64)
    return cells // areas**2, cells // areas % areas, cells % areas, sums


def _label_steps(t: Ints, step: Ints, tz: str) -> tuple[list[str], Ints, str]:
    """Return labels of time steps, the step of each row, and how steps were aggregated (empty if not)."""
    if not len(t) or NO_TIME in t:
        return [], np.zeros(len(step), np.int64), ""
    every, index = every_step(t)
    if len(every) <= MAX_STEPS:
        return [minutes(text) for text in iso_times(every, tz).to_pylist()], index[step], ""
    if len(t) > MAX_STEPS and np.diff(t).min() < _SHORTEST_DAY_S:
        hour = hour_of_week(Clock(tz).to_wall(t))
        first, distance = int(hour.min()), max(int(np.gcd.reduce(hour - hour.min())), 1)
        labels = [f"{DAYS[h // 24]} {h % 24:02d}:00" for h in range(first, int(hour.max()) + 1, distance)]
        how = f"equal hours of all weeks are summed ({len(t):,} time steps)"
        return labels, ((hour - first) // distance)[step], how
    slot, run = _slots_with_gaps(index)
    starts: list[str] = iso_times(t, tz).to_pylist()
    labels = [f"none published until {minutes(starts[int(slot.searchsorted(i))])}" for i in range(int(slot[-1]) + 1)]
    for i in np.flatnonzero(np.diff(slot, prepend=-1)).tolist():
        labels[slot[i]] = minutes(starts[i]) if run == 1 else f"from {minutes(starts[i])}"
    return labels, slot[step], "" if run == 1 else f"every {run} time steps are summed ({len(t):,} in total)"


def _slots_with_gaps(index: Ints) -> tuple[Ints, int]:
    """Return a slot for each time step, and how many steps are in one; a gap between steps is one empty slot.

    No slot has steps from both sides of a gap. Gaps are left out if they would make too many slots.
    """
    at = np.arange(len(index))
    stretch = np.cumsum(np.diff(index, prepend=index[0]) > 1)
    size = np.bincount(stretch)
    inside = at - np.repeat(np.cumsum(size) - size, size)
    least = -(-len(index) // MAX_STEPS)
    for run in range(least, 4 * least + 1) if least > 1 else (1,):
        slots = -(-size // run) + 1
        if slots.sum() - 1 <= MAX_STEPS:
            return (np.cumsum(slots) - slots)[stretch] + inside // run, run
    return at // least, least


def every_step(t: Ints) -> tuple[Ints, Ints]:
    """Return all time steps from the first to the last, and the index of each listed one; unpublished steps are not listed."""
    if len(t) < 3:
        return t, np.arange(len(t))
    # Days are 23 to 25 hours long when clocks change: the median difference is the step.
    step = max(float(np.median(np.diff(t))), 1.0)
    index: Ints = np.rint((t - t[0]) / step).astype(np.int64)
    if np.any(np.diff(index) < 1) or index[-1] > 100 * len(t):
        return t, np.arange(len(t))
    every: Ints = np.rint(t[0] + step * np.arange(index[-1] + 1)).astype(np.int64)
    every[index] = t
    return every, index


def minutes(text: str) -> str:
    """Shorten 2026-03-02T08:00:00+01:00 to 2026-03-02 08:00; keep seconds that are not 0."""
    clock = text[11:16] if text[17:19] == "00" else text[11:19]
    return f"{text[:10]} {clock}"


def sum_by_pair(origin: Ints, destination: Ints, volume: Any, areas: int) -> tuple[Ints, Ints, Ints]:
    """Return the pairs of areas and the sums of their trips, the largest first; ties by the numbers of the areas."""
    n = max(areas, 1)
    key, pair = np.unique(origin * n + destination, return_inverse=True)
    sums = np.rint(np.bincount(pair, volume, len(key))).astype(np.int64)
    order = np.argsort(-sums, kind="stable")
    return key[order] // n, key[order] % n, sums[order]


def top_flows(picture: FlowPicture, most: int) -> tuple[Ints, Ints, Ints]:
    """Return the pairs of areas with most trips over all time steps, the largest first."""
    o, d, v = sum_by_pair(picture.origin, picture.destination, picture.volume, len(picture.names))
    return o[:most], d[:most], v[:most]
