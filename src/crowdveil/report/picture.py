"""Flows as they are drawn: places, time steps and rows, few enough for a page. From a written release, or from the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crowdveil.analysis.calendar import DAYS
from crowdveil.io.times import Clock, iso_times
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Floats, Ints, Mask, distinct, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.tessellation import outlines
from crowdveil.report.shapes import Rings

MOST_STEPS, MOST_FLOWS, MOST_AREAS = 200, 100_000, 12_000
"""What a page holds; of more, hours of the week are taken together, and the largest are shown."""
MOST_MEETINGS = 1_000_000
"""Time steps times tiles: in so many it is looked which tiles occur, in every second or tenth time step where there are more."""
_SHORTEST_DAY_S = 23 * 3600
"""The day on which the clock is put forward."""
_WEEK = 168
_A_MONDAY_S = 4 * 86400


@dataclass(frozen=True, eq=False)
class FlowPicture:
    """What is drawn of flows.

    Attributes
    ----------
    names, km2, lon, lat
        Of each area; km² and centers are NaN where they are not known.
    offsets, tiles
        The tiles of area i, as numbers, are tiles[offsets[i]:offsets[i + 1]].
    rings
        Outlines.
    labels
        What each time step is called; none where the flows have no times.
    step, origin, destination, volume
        The rows.
    together
        Whether time steps were taken together by hour of the week, or in runs.
    all_areas, all_volume
        How many areas, and how much volume, there are with what is left out.
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
    together: str = ""
    all_areas: int = 0
    all_volume: int = 0
    all_rows: int = 0

    @property
    def size(self) -> Ints:
        """Number of tiles of each area."""
        return np.diff(self.offsets)

    @property
    def located(self) -> bool:
        """Whether there is a map."""
        return bool(len(self.names)) and bool(np.isfinite(self.lon).any())

    @cached_property
    def trips(self) -> Ints:
        """Trips that leave or reach each area."""
        n = len(self.names)
        both = np.bincount(self.origin, self.volume, n) + np.bincount(self.destination, self.volume, n)
        trips: Ints = np.rint(both).astype(np.int64)
        return trips

    def by_tile(self) -> tuple[Floats, Floats]:
        """For each tile the mean number of tiles that its trips are spread over, and its trips if they are spread evenly."""
        count = int(self.tiles.max(initial=-1)) + 1
        area = np.repeat(np.arange(len(self.names)), self.size)
        weight = np.maximum(self.trips, 0).astype(np.float64)
        spread = np.bincount(self.tiles, (weight / np.maximum(self.size, 1))[area], count).astype(np.float64)
        whole = np.bincount(self.tiles, weight[area], count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(spread > 0, whole / spread, np.nan), spread

    def by_face(self, of_tiles: Floats) -> Floats:
        """A value of tiles for each area, where larger areas are painted below smaller ones: the mean of what is seen of it."""
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
    """Of each tile of a release: the mean number of tiles that its trips are spread over, its trips if they are spread evenly,
    and the share of time steps, or of every so many, in which it occurs (None where that is not counted).
    """

    spread_over: Floats
    trips: Floats
    occurs: Floats | None


def released(written: WrittenRelease, tz: str) -> tuple[FlowPicture, TileValues]:
    """What is drawn of a written release, and what it says of tiles."""
    features = written.features
    properties = [feature["properties"] for feature in features]
    tiles = written.area_tiles
    offsets = np.cumsum([0, *(len(t) for t in tiles)])
    t, step = written.row_steps()
    origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
    volume = written.column("volume")
    picture = FlowPicture(
        [str(p["area"]) for p in properties],
        np.array([p.get("area_km2") if p.get("area_km2") is not None else np.nan for p in properties], np.float64),
        np.array([p.get("lon", np.nan) for p in properties], np.float64),
        np.array([p.get("lat", np.nan) for p in properties], np.float64),
        offsets, np.concatenate([np.zeros(0, np.int64), *tiles]), Rings.of_geometries([]),
        [], step, origin, destination, volume,
    )  # fmt: skip
    values = TileValues(*picture.by_tile(), _occurrence(picture, len(t)))
    small, kept = _fewer(picture, t, tz)
    return replace(small, rings=Rings.of_geometries([features[i].get("geometry") for i in kept])), values


def original(flows: Flows) -> FlowPicture:
    """What is drawn of the flows that a release was made from, exactly: for reports that are not for release alone."""
    zones, n = flows.zones, len(flows.zones)
    unknown = np.full(n, np.nan)
    picture = FlowPicture(
        [str(name) for name in zones.ids], zones.area_m2 / 1e6, zones.lon if zones.located else unknown,
        zones.lat if zones.located else unknown, np.arange(n + 1), np.arange(n), Rings.of_geometries([]),
        [], flows.step, flows.origin.astype(np.int64), flows.destination.astype(np.int64), flows.volume,
    )  # fmt: skip
    t = flows.t if flows.step_s is not None else np.full(flows.steps, NO_TIME)
    small, kept = _fewer(picture, t, flows.tz)
    shapes = outlines(zones, kept.astype(np.int32)) if zones.located else [None] * len(kept)
    return replace(small, rings=Rings.of_shapes(list(shapes)))


def _occurrence(picture: FlowPicture, steps: int) -> Floats | None:
    tiles, n = int(picture.tiles.max(initial=-1)) + 1, len(picture.names)
    every = -(-steps * max(tiles, n) // MOST_MEETINGS)
    if not len(picture.step) or every > max(steps // 20, 1):
        return None
    looked, steps = picture.step % every == 0, -(-steps // every)
    there = np.zeros((steps, n), np.bool_)
    at = picture.step[looked] // every
    there[at, picture.origin[looked]] = there[at, picture.destination[looked]] = True
    step, area = np.nonzero(there)
    if int(picture.size[area].sum()) > 20 * MOST_MEETINGS:
        return None
    rows, offsets = take_slices(picture.offsets, area)
    met = np.zeros((steps, tiles), np.bool_)
    met[np.repeat(step, np.diff(offsets)), picture.tiles[rows]] = True
    share: Floats = met.mean(axis=0)
    return share


def _fewer(picture: FlowPicture, t: Ints, tz: str) -> tuple[FlowPicture, Ints]:
    """Few enough steps, rows and areas for a page; also which areas are kept."""
    labels, step, together = _named(t, picture.step, tz)
    total, rows, areas = int(picture.volume.sum()), len(picture.volume), len(picture.names)
    origin, destination, volume = picture.origin, picture.destination, picture.volume
    if together:
        step, origin, destination, volume = _added(step, origin, destination, volume, areas)
    largest = _largest(volume, MOST_FLOWS)
    step, origin, destination, volume = (c[largest] for c in (step, origin, destination, volume))
    order = np.lexsort((destination, origin, step))
    step, origin, destination, volume = (c[order] for c in (step, origin, destination, volume))
    kept, origin, destination, good = _few_areas(origin, destination, volume, areas)
    tile_rows, offsets = take_slices(picture.offsets, kept)
    small = FlowPicture(
        [picture.names[i] for i in kept], picture.km2[kept], picture.lon[kept], picture.lat[kept], offsets,
        picture.tiles[tile_rows], picture.rings, labels, step[good], origin[good], destination[good], volume[good],
        together, areas, total, rows,
    )  # fmt: skip
    return small, kept


def _few_areas(origin: Ints, destination: Ints, volume: Ints, areas: int) -> tuple[Ints, Ints, Ints, Mask]:
    """The areas that rows name, those with most trips if they are too many; rows by their numbers, and which rows are left."""
    kept, place = distinct(np.concatenate([origin, destination]), areas)
    n = len(origin)
    if len(kept) > MOST_AREAS:
        trips = np.bincount(place[:n], volume, len(kept)) + np.bincount(place[n:], volume, len(kept))
        chosen = np.sort(_largest(np.rint(trips).astype(np.int64), MOST_AREAS))
        number = np.full(len(kept), -1)
        number[chosen] = np.arange(len(chosen))
        kept, place = kept[chosen], number[place]
    return kept, place[:n], place[n:], (place[:n] >= 0) & (place[n:] >= 0)


def _largest(values: Ints, most: int) -> Ints:
    """The places of the largest values, ties by place; all in their order where they are few."""
    if len(values) <= most:
        return np.arange(len(values))
    return np.sort(np.argsort(-values, kind="stable")[:most])


def _added(step: Ints, origin: Ints, destination: Ints, volume: Ints, areas: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Rows of one step, origin and destination added up."""
    key = (step * areas + origin) * areas + destination
    order = np.argsort(key)
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    sums = np.add.reduceat(volume[order], first) if len(first) else volume[:0]
    step, pair = np.divmod(key[first], areas * areas)
    return step, pair // areas, pair % areas, sums


def _named(t: Ints, step: Ints, tz: str) -> tuple[list[str], Ints, str]:
    """Names of time steps, the step of each row, and how steps were taken together, if they were."""
    if not len(t) or NO_TIME in t:
        return [], np.zeros(len(step), np.int64), ""
    every, place = every_step(t)
    if len(every) > MOST_STEPS:
        every, place = t, np.arange(len(t))
    if len(every) <= MOST_STEPS:
        return [minutes(text) for text in iso_times(every, tz).to_pylist()], place[step], ""
    if np.diff(t).min() < _SHORTEST_DAY_S:
        hour = (Clock(tz).to_wall(t) - _A_MONDAY_S) // 3600 % _WEEK
        first, apart = int(hour.min()), max(int(np.gcd.reduce(hour - hour.min())), 1)
        labels = [f"{DAYS[h // 24]} {h % 24:02d}:00" for h in range(first, int(hour.max()) + 1, apart)]
        return (
            labels,
            ((hour - first) // apart)[step],
            f"the same hours of all weeks are added up ({len(t):,} time steps)",
        )
    run = -(-len(t) // MOST_STEPS)
    starts: Sequence[str] = iso_times(t[::run], tz).to_pylist()
    labels = [f"from {minutes(text)}" for text in starts]
    return labels, step // run, f"{run} time steps at a time are added up ({len(t):,} in all)"


def every_step(t: Ints) -> tuple[Ints, Ints]:
    """All time steps from the first to the last, and the place of each listed one: steps without a published flow are not."""
    if len(t) < 3:
        return t, np.arange(len(t))
    # Days are 23 to 25 hours long where the clock is changed: the usual distance counts.
    step = max(float(np.median(np.diff(t))), 1.0)
    place: Ints = np.rint((t - t[0]) / step).astype(np.int64)
    if np.any(np.diff(place) < 1) or place[-1] > 100 * len(t):
        return t, np.arange(len(t))
    every: Ints = np.rint(t[0] + step * np.arange(place[-1] + 1)).astype(np.int64)
    every[place] = t
    return every, place


def minutes(text: str) -> str:
    """2026-03-02T08:00:00+01:00 as 2026-03-02 08:00; seconds only where there are any."""
    clock = text[11:16] if text[17:19] == "00" else text[11:19]
    return f"{text[:10]} {clock}"
