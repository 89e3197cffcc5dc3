"""Maps by zone: where the trips of one zone go or come from, and with how many zones each zone was merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.zones import Zones
from crowdveil.report import layers
from crowdveil.report.plots.flow_panels import NONE_PUBLISHED, FlowPanel, common_frame, meaning_of_gray, zone_rings
from crowdveil.report.plots.layout import INK, Layout, cells, draw_rings, map_layout
from crowdveil.report.plots.scales import VolumeScale, color_bar, colors_of, swatch
from crowdveil.report.shapes import PictureFrame, Rings

Direction = Literal["destinations", "origins"]
NOTHING, CHOSEN = "#e3e7ea", "#d55e00"


def trips_of_zone(panel: FlowPanel, zones: Zones, zone: str, direction: Direction) -> Floats:
    """Return the trips between a zone and each zone, each row spread evenly over its tiles; NaN where there is no row.

    A zone without published trips may have suppressed ones: it is not 0.
    """
    own = zones.index_of(zone)
    if own < 0:
        raise ParameterError(Option("zone"), "there is no such zone among the zones; name one of them.")
    here, there = (
        (panel.origin, panel.destination) if direction == "destinations" else (panel.destination, panel.origin)
    )
    tile_of = _zones_of_tiles(panel, zones)
    inside = np.array([own in tile_of[tiles] for tiles in panel.tiles], np.bool_)
    trips, known = np.zeros(len(zones)), np.zeros(len(zones), np.bool_)
    for row in np.flatnonzero(inside[here]).tolist() if len(inside) else []:
        ends = tile_of[panel.tiles[there[row]]]
        trips[ends] += panel.volume[row] / (len(panel.tiles[here[row]]) * len(ends))
        known[ends] = True
    return np.where(known, trips, np.nan)


def _zones_of_tiles(panel: FlowPanel, zones: Zones) -> Ints:
    tile_of = np.array([zones.index_of(tile) for tile in panel.tile_names], np.int64)
    if np.any(tile_of < 0):
        raise InputError(
            Option("zones"), "some tiles of the release are not among them; give the zones of the release."
        )
    return tile_of


def draw_zone(
    panels: Sequence[FlowPanel], zones: Zones, zone: str, direction: Direction, zoom: tuple[float, ...] | None
) -> Layout:
    """Draw where the trips of a zone go or come from, a map for each panel, with one scale of colors."""
    found = [trips_of_zone(panel, zones, zone, direction) for panel in panels]
    if not any(np.isfinite(trips).any() for trips in found):
        raise InputError(direction, "nothing was published of this zone, so there is nothing to draw.")
    scale, frame = VolumeScale.of(*found), common_frame([], zones, zoom)
    go = ("from", "go to") if direction == "destinations" else ("to", "come from")
    confidential = any(panel.confidential for panel in panels)
    made = map_layout(
        frame, [panel.title for panel in panels], f"Trips {go[0]} zone {zone}, by the zone that they {go[1]}",
        [f"Zone {zone} has an orange outline. Trips of an area are spread evenly over its zones."], confidential=confidential,
    )  # fmt: skip
    rings = zone_rings(zones)
    for axis, trips in zip(made.panels, found, strict=True):
        _paint(axis, rings, zones.lon, zones.lat, frame, _colors(trips, scale))
        _outline_zone(axis, zones, zones.index_of(zone), frame)
    color_bar(made.legend, scale, "trips", none=meaning_of_gray(panels))
    return made


def _colors(values: Floats, scale: VolumeScale) -> list[Any]:
    shades = colors_of(scale.share(np.nan_to_num(values)))
    return [tuple(shade) if np.isfinite(v) else NOTHING for v, shade in zip(values.tolist(), shades, strict=True)]


def _paint(axis: Any, rings: Rings, lon: Floats, lat: Floats, frame: PictureFrame, colors: Sequence[Any]) -> None:
    """Fill areas with their colors; areas without an outline are dots."""
    draw_rings(axis, rings, frame, colors, edgecolors="#ffffff", linewidths=0.3)
    x, y = cells(frame, lon, lat)
    dots = np.flatnonzero(~rings.drawn & np.isfinite(lon))
    if len(dots):
        shades = [colors[i] for i in dots.tolist()]
        axis.scatter(x[dots], y[dots], c=shades, s=16, linewidths=0.3, edgecolors="#8a949c", zorder=1)


def _outline_zone(axis: Any, zones: Zones, own: int, frame: PictureFrame) -> None:
    ring = Rings.of_shapes(list(zones.outlines(np.array([own], np.int32)))) if zones.located else None
    if ring is not None and ring.drawn.any():
        draw_rings(axis, ring, frame, ["none"], edgecolors=CHOSEN, linewidths=1.6, zorder=3)
    elif zones.located:
        x, y = cells(frame, zones.lon[own : own + 1], zones.lat[own : own + 1])
        axis.plot(x, y, "o", markerfacecolor="none", markeredgecolor=CHOSEN, markersize=9, zorder=3)


def merged_with(panel: FlowPanel, end: Literal["origin", "destination", "both"]) -> Floats:
    """Return for each tile the mean number of tiles in the areas that its trips are published with, by trips; NaN for none."""
    n = len(panel.names)
    ends = {"origin": [panel.origin], "destination": [panel.destination], "both": [panel.origin, panel.destination]}
    trips = sum(np.bincount(column, panel.volume, n) for column in ends[end])
    size = panel.size
    area, tile = np.repeat(np.arange(n), size), np.concatenate([np.zeros(0, np.int64), *panel.tiles])
    spread = np.bincount(tile, (trips / np.maximum(size, 1))[area], len(panel.tile_names))
    whole = np.bincount(tile, np.asarray(trips, np.float64)[area], len(panel.tile_names))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0, whole / spread, np.nan)


ENDS: tuple[Literal["origin"], Literal["destination"]] = ("origin", "destination")


def draw_coarsening(
    panels: Sequence[FlowPanel], zones: Zones | None, zoom: tuple[float, ...] | None, end: str = "both"
) -> Layout:
    """Draw with how many zones each zone was merged, as origin, as destination or both, with one scale for all releases."""
    if not any(len(panel.volume) for panel in panels):
        raise InputError("coarsening", "nothing was published, so there is nothing to draw.")
    frame = common_frame([] if zones is not None else panels, zones, zoom)
    shown = [(panel, side) for panel in panels for side in ENDS if end in (side, "both")]
    titles = [f"{panel.title}: as {side}, {_mean(panel, side):.1f} zones on average" for panel, side in shown]
    notes = ["The mean number of zones in the areas that the published trips of a zone start or end in; 1: not merged."]
    made = map_layout(frame, titles, "Zones that each zone was merged with", notes, confidential=False, columns=2)
    values = [_values_of(panel, zones, merged_with(panel, side)) for panel, side in shown]
    shade = layers.by_size("", "", np.concatenate(values))
    of_panels = np.split(shade.classes, np.cumsum([len(of_panel) for of_panel in values])[:-1])
    for axis, (panel, _), classes in zip(made.panels, shown, of_panels, strict=True):
        colors = [NOTHING if c < 0 else tuple(colors_of(np.array(c / 6))) for c in classes.tolist()]
        rings = panel.rings if zones is None else zone_rings(zones)
        lon, lat = (panel.lon, panel.lat) if zones is None else (zones.lon, zones.lat)
        if zones is None:
            order = np.argsort(-panel.size, kind="stable")
            rings, lon, lat, colors = rings.take(order), lon[order], lat[order], [colors[i] for i in order]
        _paint(axis, rings, lon, lat, frame, colors)
    listed = _class_legend(made.legend, shade, "zones in the area\nof a trip's end")
    swatch(made.legend, made.legend.get_ylim()[1] - 0.65 - 0.2 * listed, NONE_PUBLISHED)
    return made


def _class_legend(legend: Any, shade: layers.Shade, title: str) -> int:
    """Draw the classes that occur, each with its own numbers; return how many."""
    top = legend.get_ylim()[1] - 0.1
    legend.text(0.05, top, title, fontsize=7.5, color=INK, va="top")
    occur = sorted(set(shade.classes.tolist()) - {-1})
    for i, c in enumerate(occur):
        swatch(legend, top - 0.45 - 0.2 * i, shade.labels[c], tuple(colors_of(np.array(c / 6))))
    return len(occur)


def _mean(panel: FlowPanel, end: Literal["origin", "destination"]) -> float:
    column = panel.origin if end == "origin" else panel.destination
    return float(np.average(panel.size[column], weights=panel.volume)) if len(column) else float("nan")


def _values_of(panel: FlowPanel, zones: Zones | None, of_tiles: Floats) -> Floats:
    """Return the values of zones; without zones those of the areas, each the mean of its tiles."""
    if zones is None:
        means = [
            float(np.nanmean(of_tiles[t])) if np.isfinite(of_tiles[t]).any() else float("nan") for t in panel.tiles
        ]
        return np.array(means)
    values = np.full(len(zones), np.nan)
    values[_zones_of_tiles(panel, zones)] = of_tiles
    return values


def draw_areas(panel: FlowPanel, zoom: tuple[float, ...] | None) -> Layout:
    """Draw the areas of a release, colored by the number of zones that a trip's end is spread over."""
    if not len(panel.volume):
        raise InputError("areas", "nothing was published, so there is nothing to draw.")
    frame = common_frame([panel], None, zoom)
    shade = layers.by_size("", "", _values_of(panel, None, merged_with(panel, "both")))
    order = np.argsort(-panel.size, kind="stable")
    colors = [NOTHING if c < 0 else tuple(colors_of(np.array(c / 6))) for c in shade.classes[order].tolist()]
    notes = ["Areas of different time steps may overlap: smaller ones are drawn on top."]
    made = map_layout(frame, [f"{panel.title}: {len(panel.names):,} areas"], "Areas", notes, confidential=False)
    _paint(made.panels[0], panel.rings.take(order), panel.lon[order], panel.lat[order], frame, colors)
    _class_legend(made.legend, shade, "zones that a trip's\nend is spread over")
    return made
