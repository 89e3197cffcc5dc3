"""Pictures of flows: the largest on a map, those of one zone, how much zones were merged, and the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.model.area_labels import explained
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.globe import Box
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.zones import Zones
from crowdveil.report import layers
from crowdveil.report.plots.drawing import (
    MUTED,
    NOTHING,
    Drawing,
    VolumeScale,
    cells,
    color_bar,
    draw_rings,
    fill_areas,
    legend,
    new_drawing,
    new_map,
    number,
    place_labels,
    shorten,
)
from crowdveil.report.plots.flow_panels import NONE_PUBLISHED, FlowPanel, common_frame, meaning_of_gray, zone_rings
from crowdveil.report.shapes import PictureFrame

Direction = Literal["from", "to"]
End = Literal["origin", "destination"]
ENDS: tuple[End, End] = ("origin", "destination")
CHOSEN = "#d55e00"
BEND = 0.18
"""Curvature of flows, to their right: both directions of a pair are visible."""
MAX_CELLS = 1200
"""Rows and columns of a drawn matrix; of more tiles, neighbors in the order share one."""


def not_drawn(panels: Sequence[FlowPanel]) -> str:
    """Return a note on the flows that a map leaves out, with what k counts in the releases."""
    units = " or ".join(sorted({panel.k_unit for panel in panels if panel.k_unit}))
    return f"Not drawn: smaller flows, and suppressed ones (fewer than k {units}, possibly none; suppressed is not 0)."


def draw_flow_map(panels: Sequence[FlowPanel], base: Zones | None, top: int, zoom: tuple[float, ...] | None) -> Drawing:
    """Draw the flows of each panel that are at least as large as the `top`-th of the panel with the largest ones.

    All panels have one threshold, one scale and one frame. Circles and arrows of equal volume have equal colors.
    """
    _refuse_nothing("flows", panels)
    least = max(int(p.flows.volume[min(top, len(p.flows.volume)) - 1]) for p in panels if len(p.flows.volume))
    drawn = [int(np.count_nonzero(panel.flows.volume >= least)) for panel in panels]
    scale = VolumeScale.of(*(panel.flows.volume[:n] for panel, n in zip(panels, drawn, strict=True)))
    frame = common_frame(panels, base, zoom or box_around(panels, drawn))
    notes = ["Arrows bend to the right of their direction; circles are trips inside an area."]
    notes.append("Smaller flows are not drawn." if all(p.confidential for p in panels) else not_drawn(panels))
    notes.append(explained(panel.flows.names[i] for panel in panels for i in panel.flows.busiest))
    titles = [_title(panel, n) for panel, n in zip(panels, drawn, strict=True)]
    heading = f"Flows of at least {least:,} trips" if least > 1 else "Flows"
    drawing = new_map(frame, titles, heading, notes, confidential=any(panel.confidential for panel in panels))
    for axis, panel, n in zip(drawing.panels, panels, drawn, strict=True):
        draw_base(axis, panel, base, frame)
        draw_flows(axis, panel, n, frame, scale)
    _width_legend(drawing, scale)
    for axis, panel, n in zip(drawing.panels, panels, drawn, strict=True):
        _label_areas(axis, panel, n, frame)
    return drawing


def _refuse_nothing(name: str, panels: Sequence[FlowPanel]) -> None:
    if not any(len(panel.flows.volume) for panel in panels):
        raise InputError(name, "nothing was published, so there is nothing to draw.")


def box_around(panels: Sequence[FlowPanel], drawn: Sequence[int]) -> tuple[float, ...] | None:
    """Return a box around the ends of the drawn flows of all panels, with a margin; None where it crosses the date line."""
    ends = [
        (p.flows, np.unique(np.concatenate([p.flows.origin[:n], p.flows.destination[:n]])))
        for p, n in zip(panels, drawn, strict=True)
    ]
    lon, lat = (np.concatenate([getattr(flows, name)[areas] for flows, areas in ends]) for name in ("lon", "lat"))
    known = np.isfinite(lon)
    if not known.any() or np.ptp(lon[known]) > 180:
        return None
    box = Box.of(lon[known], lat[known])
    squeeze = max(float(np.cos(np.radians(box.middle[1]))), 0.05)
    margin = 0.08 * max((box.east - box.west) * squeeze, box.north - box.south, 0.02)
    return box.west - margin / squeeze, box.south - margin, box.east + margin / squeeze, box.north + margin


def _title(panel: FlowPanel, drawn: int) -> str:
    volume = panel.flows.volume
    total = max(int(volume.sum()), 1)
    share = 100 * int(volume[:drawn].sum()) / total
    what = "trips" if panel.confidential else "published trips"
    return f"{panel.title}: {drawn:,} of {len(volume):,} flows, {share:.0f}\N{NO-BREAK SPACE}% of {total:,} {what}"


def draw_base(axis: Any, panel: FlowPanel, base: Zones | None, frame: PictureFrame) -> None:
    """Draw the outlines of the zones, or of the panel's areas, as a neutral base; where there are none, their centers."""
    rings = panel.flows.rings if base is None else zone_rings(base)
    draw_rings(axis, rings, frame)
    if not rings.drawn.any():
        lon, lat = (panel.flows.lon, panel.flows.lat) if base is None else (base.lon, base.lat)
        known = np.isfinite(lon)
        x, y = cells(frame, lon, lat)
        axis.plot(x[known], y[known], "o", color="#b3bbc2", markersize=1.8, zorder=0)


def draw_flows(axis: Any, panel: FlowPanel, n: int, frame: PictureFrame, scale: VolumeScale) -> None:
    """Draw flows, the smallest first, so that the largest are on top."""
    flows = panel.flows
    x, y = cells(frame, flows.lon, flows.lat)
    known = np.isfinite(flows.lon)
    for i in range(n - 1, -1, -1):
        a, b, volume = int(flows.origin[i]), int(flows.destination[i]), float(flows.volume[i])
        if not (known[a] and known[b]):
            continue
        if (x[a], y[a]) == (x[b], y[b]):
            _draw_circle(axis, float(x[a]), float(y[a]), volume, scale)
        else:
            draw_arrow(axis, (float(x[a]), float(y[a])), (float(x[b]), float(y[b])), volume, scale)


def draw_arrow(
    axis: Any, start: tuple[float, float], end: tuple[float, float], volume: float, scale: VolumeScale
) -> None:
    """Draw a flow as an arrow; its width, color and opacity are those of the scale."""
    from matplotlib.patches import FancyArrowPatch

    width = float(scale.width(volume))
    style = f"simple,tail_width={width:.2f},head_width={1.7 * width + 2.4:.2f},head_length={1.3 * width + 3:.2f}"
    axis.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle=style, connectionstyle=f"arc3,rad={BEND}", mutation_scale=1, shrinkA=1.5, shrinkB=2.5,
            linewidth=0, facecolor=scale.colors.to_rgba(volume), alpha=float(scale.opacity(volume)), zorder=3, clip_on=True,
        )
    )  # fmt: skip


def _draw_circle(axis: Any, x: float, y: float, volume: float, scale: VolumeScale) -> None:
    """Draw the trips inside an area as a circle; its diameter grows with the width of a flow of that volume."""
    color = (*scale.colors.to_rgba(volume)[:3], 0.75 * float(scale.opacity(volume)))
    axis.plot(
        x, y, "o", markersize=2.8 * float(scale.width(volume)) + 1, markerfacecolor=color, markeredgecolor="#ffffff",
        markeredgewidth=0.5, zorder=4,
    )  # fmt: skip


def _label_areas(axis: Any, panel: FlowPanel, n: int, frame: PictureFrame) -> None:
    """Label the areas with most drawn trips, where there is room; with a zoom there is room for more."""
    flows = panel.flows
    ends, volume = np.concatenate([flows.origin[:n], flows.destination[:n]]), np.tile(flows.volume[:n], 2)
    trips = np.where(np.isfinite(flows.lon), np.bincount(ends, volume, len(flows.names)), 0)
    order = [i for i in np.argsort(-trips, kind="stable").tolist() if trips[i] > 0]
    x, y = cells(frame, flows.lon, flows.lat)
    place_labels(axis, x[order].tolist(), y[order].tolist(), [shorten(flows.names[i]) for i in order])


def _width_legend(drawing: Drawing, scale: VolumeScale) -> None:
    """Draw lines and circles of round volumes, from the largest to the smallest."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=scale.colors.to_rgba(volume), alpha=float(scale.opacity(volume)), label=number(volume),
            linewidth=float(scale.width(volume)), marker="o", markersize=2.8 * float(scale.width(volume)) + 1,
            markeredgewidth=0,
        )
        for volume in reversed(scale.ticks())
    ]  # fmt: skip
    legend(drawing, [], "trips", handles)


def trips_of_zone(panel: FlowPanel, zones: Zones, zone: str, direction: Direction) -> Floats:
    """Return the trips between a zone and each zone, each row spread evenly over its tiles; NaN where there is no row.

    A zone without published trips may have suppressed ones: it is not 0.
    """
    own = zones.index_of(zone)
    if own < 0:
        raise ParameterError(Option("zone"), "there is no such zone among the zones. Name one of them.")
    flows = panel.flows
    own_end, other_end = (flows.origin, flows.destination)[:: 1 if direction == "from" else -1]
    tile_of = _zones_of_tiles(panel, zones)
    tiles = [tile_of[panel.tiles_of(area)] for area in range(len(flows.names))]
    inside = np.array([own in of_area for of_area in tiles], np.bool_)
    trips, known = np.zeros(len(zones)), np.zeros(len(zones), np.bool_)
    for row in np.flatnonzero(inside[own_end]).tolist() if len(inside) else []:
        ends = tiles[other_end[row]]
        trips[ends] += flows.volume[row] / (len(tiles[own_end[row]]) * len(ends))
        known[ends] = True
    return np.where(known, trips, np.nan)


def _zones_of_tiles(panel: FlowPanel, zones: Zones) -> Ints:
    tile_of = np.array([zones.index_of(tile) for tile in panel.tile_names], np.int64)
    if np.any(tile_of < 0):
        raise InputError(
            Option("zones"), "some tiles of the release are not among them. Give the zones of the release."
        )
    return tile_of


def draw_zone(
    panels: Sequence[FlowPanel], zones: Zones, zone: str, direction: Direction, zoom: tuple[float, ...] | None
) -> Drawing:
    """Draw where the trips of a zone go or come from, a map for each panel, with one scale of colors."""
    trips_by_panel = [trips_of_zone(panel, zones, zone, direction) for panel in panels]
    if not any(np.isfinite(trips).any() for trips in trips_by_panel):
        raise InputError("destinations", "nothing was published of this zone, so there is nothing to draw.")
    scale, frame = VolumeScale.of(*trips_by_panel), common_frame([], zones, zoom)
    go = "go to" if direction == "from" else "come from"
    drawing = new_map(
        frame, [panel.title for panel in panels], f"Trips {direction} zone {zone}, by the zone that they {go}",
        [f"Zone {zone} has an orange outline. Trips of an area are spread evenly over its zones.", meaning_of_gray(panels)],
        confidential=any(panel.confidential for panel in panels),
    )  # fmt: skip
    rings, own = zone_rings(zones), zones.index_of(zone)
    for axis, trips in zip(drawing.panels, trips_by_panel, strict=True):
        fill_areas(axis, rings, zones.lon, zones.lat, frame, scale.colors.to_rgba(np.ma.masked_invalid(trips)))
        ring = rings.take(np.array([own]))
        draw_rings(axis, ring, frame, ["none"], edgecolors=CHOSEN, linewidths=1.6, zorder=3)
        if zones.located and not ring.drawn.any():
            x, y = cells(frame, zones.lon[own : own + 1], zones.lat[own : own + 1])
            axis.plot(x, y, "o", markerfacecolor="none", markeredgecolor=CHOSEN, markersize=9, zorder=3)
    color_bar(drawing, scale, "trips")
    return drawing


def merged_with(panel: FlowPanel, end: End) -> Floats:
    """Return for each tile the mean number of tiles in the areas that its trips are published with, by trips; NaN for none."""
    flows = panel.flows
    trips = np.bincount(getattr(flows, end), flows.volume, len(flows.names))
    merged = np.full(len(panel.tile_names), np.nan)
    known, _ = flows.by_tile(trips.astype(np.float64))
    merged[: len(known)] = known
    return merged


def draw_coarsening(
    panels: Sequence[FlowPanel], zones: Zones | None, zoom: tuple[float, ...] | None, end: str = "both"
) -> Drawing:
    """Draw the number of zones that each zone was merged with, as origin, as destination or both, on one scale.

    Without zones, areas are drawn instead, smaller ones on top of larger ones.
    """
    _refuse_nothing("coarsening", panels)
    frame = common_frame([] if zones is not None else panels, zones, zoom)
    sides = [(panel, side) for panel in panels for side in ENDS if end in (side, "both")]
    titles = [f"{panel.title}: as {side}, {_mean(panel, side):.1f} zones on average" for panel, side in sides]
    notes = ["The mean number of zones in the areas that the published trips of a zone start or end in; 1: not merged."]
    drawing = new_map(frame, titles, "Zones that each zone was merged with", notes, confidential=False, columns=2)
    values = [_of_zones_or_areas(panel, zones, merged_with(panel, side)) for panel, side in sides]
    shade = layers.by_size("", "", np.concatenate(values))
    levels = VolumeScale(1.0, 10.0).colors.to_rgba(10 ** (np.arange(7) / 6))
    starts = np.cumsum([0, *map(len, values)])
    for i, (panel, _) in enumerate(sides):
        colors = [NOTHING if c < 0 else tuple(levels[c]) for c in shade.classes[starts[i] : starts[i + 1]].tolist()]
        place: Any = panel.flows if zones is None else zones
        rings = panel.flows.rings if zones is None else zone_rings(zones)
        order = np.argsort(-panel.flows.size, kind="stable") if zones is None else np.arange(len(zones))
        fill_areas(
            drawing.panels[i], rings.take(order), place.lon[order], place.lat[order], frame, [colors[j] for j in order]
        )
    used = sorted(set(shade.classes.tolist()) - {-1})
    listed = [(shade.labels[c], tuple(levels[c])) for c in used]
    legend(drawing, [*listed, (NONE_PUBLISHED, NOTHING)], "zones in the area\nof a trip's end")
    return drawing


def _mean(panel: FlowPanel, end: End) -> float:
    flows = panel.flows
    return float(np.average(flows.size[getattr(flows, end)], weights=flows.volume)) if len(flows.volume) else np.nan


def _of_zones_or_areas(panel: FlowPanel, zones: Zones | None, of_tiles: Floats) -> Floats:
    """Return the values of zones; without zones those of the areas."""
    if zones is None:
        return panel.flows.by_face(of_tiles)
    values = np.full(len(zones), np.nan)
    values[_zones_of_tiles(panel, zones)] = of_tiles
    return values


def tile_order(panels: Sequence[FlowPanel], tree: Hierarchy | None, zone_names: Sequence[str]) -> dict[str, int]:
    """Return the position of each tile: in the order of the tree, or of the areas of the first release, which nest alike."""
    if tree is not None:
        return {zone_names[tile]: i for i, tile in enumerate(tree.leaf_tile.tolist())}
    position: dict[str, int] = {}
    for panel in sorted(panels, key=lambda panel: panel.confidential):
        inside: list[list[int]] = [[] for _ in panel.tile_names]
        areas = [panel.tiles_of(area).tolist() for area in range(len(panel.flows.names))]
        for rank, tiles in enumerate(sorted(areas, key=len, reverse=True)):
            for tile in tiles:
                inside[tile].append(rank)
        for tile in sorted(range(len(inside)), key=inside.__getitem__):
            position.setdefault(panel.tile_names[tile], len(position))
    return position


def dense_matrix(panel: FlowPanel, position: dict[str, int]) -> Floats:
    """Return the mean trips of each pair of tiles, rows of areas spread evenly; NaN where nothing is published.

    With more than `MAX_CELLS` tiles, a cell has the mean of several pairs.
    """
    flows, n = panel.flows, max(len(position), 1)
    m = min(n, MAX_CELLS)
    place = np.array([position[name] for name in panel.tile_names], np.int64)
    per_cell = np.bincount(np.arange(n) * m // n, minlength=m).astype(np.float64)
    weights: list[tuple[Ints, Floats]] = []
    for tiles in map(panel.tiles_of, range(len(flows.names))):
        at, count = np.unique(place[tiles] * m // n, return_counts=True)
        weights.append((at, count / len(tiles)))
    trips, known = np.zeros((m, m)), np.zeros((m, m), np.bool_)
    for o, d, volume in zip(flows.origin.tolist(), flows.destination.tolist(), flows.volume.tolist(), strict=True):
        (rows, share_o), (columns, share_d) = weights[o], weights[d]
        block = np.ix_(rows, columns)
        trips[block] += volume * share_o[:, None] * share_d
        known[block] = True
    return np.where(known, trips / np.outer(per_cell, per_cell), np.nan)


def draw_matrix(panels: Sequence[FlowPanel], position: dict[str, int], by_tree: bool) -> Drawing:
    """Draw the trips of each pair of tiles, with one scale of colors for all panels."""
    _refuse_nothing("matrix", panels)
    values = [dense_matrix(panel, position) for panel in panels]
    scale = VolumeScale.of(*values)
    n, m = len(position), len(values[0])
    side = {1: 5.4, 2: 4.7}.get(len(panels), 4.0)
    order = "the order of the tree" if by_tree else "an order that keeps those of an area together"
    notes = [
        f"Tiles are in {order}: an area is a run of rows or columns, and a published flow a rectangle, whose trips are spread "
        "evenly.",
        meaning_of_gray(panels),
    ]
    if m < n:
        notes.append(f"A row or column has {n / m:.1f} tiles on average.")
    drawing = new_drawing(
        [panel.title for panel in panels], f"Trips between {n:,} tiles", notes,
        confidential=any(panel.confidential for panel in panels), size=(side, side),
    )  # fmt: skip
    for axis, matrix in zip(drawing.panels, values, strict=True):
        shades = scale.colors.to_rgba(np.ma.masked_invalid(matrix))
        axis.imshow(shades, extent=(0, n, n, 0), interpolation="nearest", aspect="equal")
        axis.set_xlabel("destination tile", fontsize=8, color=MUTED)
        axis.set_ylabel("origin tile", fontsize=8, color=MUTED)
    color_bar(drawing, scale, "trips per pair of tiles")
    return drawing
