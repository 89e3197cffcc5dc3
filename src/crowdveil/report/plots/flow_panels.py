"""Flows as a picture shows them: a release, or the original, summed over time steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.io.times import iso_times
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones
from crowdveil.report.flow_page import time_zone
from crowdveil.report.flow_picture import spread_intervals
from crowdveil.report.shapes import PictureFrame, Rings
from crowdveil.report.svg_figures import sum_by_pair

ORIGINAL = "original (confidential)"
NONE_PUBLISHED = "none published,\nwhich is not 0"


@dataclass(frozen=True, eq=False)
class FlowPanel:
    """Flows between areas, over all chosen time steps.

    Attributes
    ----------
    title, confidential
        What it is, and whether it is the original.
    names, lon, lat, rings
        Of each area; centers are NaN if unknown.
    tile_names, tiles
        The tiles, and the numbers of the tiles of each area.
    origin, destination, volume
        A row for each pair of areas with trips, the largest first.
    """

    title: str
    confidential: bool
    names: list[str]
    lon: Floats
    lat: Floats
    rings: Rings
    tile_names: list[str]
    tiles: list[Ints]
    origin: Ints
    destination: Ints
    volume: Ints

    @property
    def located(self) -> bool:
        """Whether areas have positions, so that there is a map."""
        return bool(len(self.names)) and bool(np.isfinite(self.lon).any())

    @property
    def size(self) -> Ints:
        """Number of tiles of each area."""
        return np.array([len(tiles) for tiles in self.tiles], np.int64)

    @property
    def trips(self) -> Floats:
        """Trips that leave or reach each area."""
        n = len(self.names)
        both = np.bincount(self.origin, self.volume, n) + np.bincount(self.destination, self.volume, n)
        return both.astype(np.float64)


def released_panel(written: WrittenRelease, manifest: Mapping[str, Any], at: str | None) -> FlowPanel:
    """Return the flows of a written release; `at` chooses time steps by the beginning of their local time.

    Trips of rows that span several time steps are then spread evenly over these.
    """
    rows, volume = _rows_at(written, time_zone(written, dict(manifest)), at)
    if at is not None and not len(rows):
        raise InputError(Option("at"), "the release has no flow in such a time step; name one of its time steps.")
    origin, destination = (written.area_numbers(f"{end}_area")[rows] for end in ("origin", "destination"))
    properties = [feature["properties"] for feature in written.features]
    o, d, v = summed(origin, destination, volume, len(properties))
    return FlowPanel(
        release_title(manifest), False, [str(p.get("name") or p["area"]) for p in properties],
        np.array([p.get("lon", np.nan) for p in properties], np.float64),
        np.array([p.get("lat", np.nan) for p in properties], np.float64),
        Rings.of_geometries([feature.get("geometry") for feature in written.features]), written.tile_names,
        written.area_tiles, o, d, v,
    )  # fmt: skip


def _rows_at(written: WrittenRelease, tz: str, at: str | None) -> tuple[Ints, Ints]:
    """Return the rows of the chosen time steps, and the trips of each there."""
    if at is not None and written.has_intervals:
        t, step, row, volume = spread_intervals(written, tz)
    else:
        (t, step), volume = written.row_steps(), written.column("volume")
        row = np.arange(len(step))
    here = _chosen(t, tz, at)[step]
    return row[here], volume[here]


def original_panel(flows: Flows, at: str | None) -> FlowPanel:
    """Return the original flows between zones. Confidential."""
    chosen = steps_that_begin(flows, at)
    if at is not None and not chosen.any():
        raise InputError(Option("at"), "the original has no trip in such a time step; name another.")
    rows = chosen[flows.step]
    zones, n = flows.zones, len(flows.zones)
    o, d, v = summed(
        flows.origin[rows].astype(np.int64), flows.destination[rows].astype(np.int64), flows.volume[rows], n
    )
    return FlowPanel(
        ORIGINAL, True, _zone_labels(zones), np.asarray(zones.lon), np.asarray(zones.lat),
        zone_rings(zones), [str(name) for name in zones.ids], list(np.arange(n).reshape(-1, 1)), o, d, v,
    )  # fmt: skip


def _zone_labels(zones: Zones) -> list[str]:
    """Return the readable names of zones where they are known, else their ids."""
    names = zones.ids if zones.names is None else zones.names
    return [str(name or tile) for name, tile in zip(names, zones.ids, strict=True)]


def steps_that_begin(flows: Flows, at: str | None) -> Mask:
    """Return which time steps of the original begin so in local time; all of them without `at`."""
    t = flows.t if flows.step_s is not None else np.full(flows.steps, NO_TIME)
    return _chosen(t, flows.tz, at)


def release_title(manifest: Mapping[str, Any]) -> str:
    """Return the method and k of a release."""
    method = manifest["method"]
    k = method["parameters"].get("k")
    return f"release: {method['name']}{'' if k is None else f', k = {k:,}'}"


def zone_rings(zones: Zones) -> Rings:
    """Return the outlines of zones; none where there are only centroids or ids."""
    shapes = list(zones.shapes()) if zones.located else [None] * len(zones)
    return Rings.of_shapes(shapes)


def meaning_of_gray(panels: Sequence[FlowPanel]) -> str:
    """Return what it means that there is no value: of the original no trips, and of a release that none are published."""
    if all(panel.confidential for panel in panels):
        return "no trips"
    original = "original: no trips;\nrelease: " if any(panel.confidential for panel in panels) else ""
    return f"{original}{NONE_PUBLISHED}"


def _chosen(t: Ints, tz: str, at: str | None) -> Mask:
    if at is None:
        return np.ones(len(t), np.bool_)
    wanted = at.strip().replace(" ", "T")
    known = t != NO_TIME
    texts = iso_times(np.where(known, t, 0), tz).to_pylist()
    begins = np.array([text.startswith(wanted) for text in texts], np.bool_)
    chosen: Mask = known & begins
    return chosen


def summed(origin: Ints, destination: Ints, volume: Any, areas: int) -> tuple[Ints, Ints, Ints]:
    """Return the pairs of areas with trips and their sums, the largest first; ties by the numbers of the areas."""
    o, d, v = sum_by_pair(origin, destination, volume, areas)
    return o[v > 0], d[v > 0], v[v > 0]


def common_frame(panels: Sequence[FlowPanel], base: Zones | None, zoom: tuple[float, ...] | None) -> PictureFrame:
    """Return one frame for all panels: what they show, or the box of `zoom` (west, south, east, north)."""
    if zoom is not None:
        west, south, east, north = zoom
        return PictureFrame.around(np.array([west, east]), np.array([south, north]))
    lon, lat = [], []
    for panel in panels:
        used = np.unique(np.concatenate([panel.origin, panel.destination]))
        lon += [panel.lon[used], panel.rings.lon]
        lat += [panel.lat[used], panel.rings.lat]
    if base is not None and base.located:
        rings = zone_rings(base)
        lon += [base.lon, rings.lon]
        lat += [base.lat, rings.lat]
    x, y = np.concatenate(lon), np.concatenate(lat)
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        raise InputError(Option("zones"), "the zones have no positions, so there is no map; choose another plot.")
    return PictureFrame.around(x[known], y[known])
