"""Draw the largest flows on a map: width and color by volume, arrows for direction, circles for trips inside an area."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats
from crowdveil.model.globe import Box
from crowdveil.model.zones import Zones
from crowdveil.report.plots.flow_panels import FlowPanel, common_frame, zone_rings
from crowdveil.report.plots.layout import INK, MUTED, Layout, cells, draw_rings, map_layout, place_labels
from crowdveil.report.plots.scales import CIRCLE, VolumeScale, colors_of, number
from crowdveil.report.shapes import PictureFrame

NOT_DRAWN = "Not drawn: smaller flows, and suppressed ones (fewer than k people, possibly none; suppressed is not 0)."
BEND = 0.18
"""Curvature of flows, to their right: both directions of a pair are visible."""


def draw_flow_map(panels: Sequence[FlowPanel], base: Zones | None, top: int, zoom: tuple[float, ...] | None) -> Layout:
    """Draw the flows of each panel that are at least as large as the `top`-th of the panel with the largest ones.

    All panels have one threshold, one scale and one frame. Circles and arrows of equal volume have equal colors.
    """
    if not any(len(panel.volume) for panel in panels):
        raise InputError("flows", "nothing was published, so there is nothing to draw.")
    least = max(int(panel.volume[min(top, len(panel.volume)) - 1]) for panel in panels if len(panel.volume))
    drawn = [int(np.count_nonzero(panel.volume >= least)) for panel in panels]
    scale = VolumeScale.of(*(panel.volume[:n] for panel, n in zip(panels, drawn, strict=True)))
    frame = common_frame(panels, base, zoom or _around_flows(panels, drawn))
    titles = [_title(panel, n) for panel, n in zip(panels, drawn, strict=True)]
    confidential = any(panel.confidential for panel in panels)
    notes = ["Of the original, smaller flows are not drawn."] if all(p.confidential for p in panels) else [NOT_DRAWN]
    heading = f"Flows of at least {least:,} trips" if least > 1 else "Flows"
    made = map_layout(frame, titles, heading, notes, confidential=confidential)
    for axis, panel, n in zip(made.panels, panels, drawn, strict=True):
        draw_base(axis, panel, base, frame)
        _draw_flows(axis, panel, n, frame, scale)
        _label_areas(axis, panel, n, frame)
    draw_legend(made.legend, scale)
    return made


def _around_flows(panels: Sequence[FlowPanel], drawn: Sequence[int]) -> tuple[float, ...] | None:
    """Return a box around the ends of the drawn flows of all panels, with a margin; None where it crosses the date line."""
    used = [
        (panel, np.unique(np.concatenate([panel.origin[:n], panel.destination[:n]])))
        for panel, n in zip(panels, drawn, strict=True)
    ]
    lon, lat = (np.concatenate([getattr(panel, name)[areas] for panel, areas in used]) for name in ("lon", "lat"))
    known = np.isfinite(lon)
    if not known.any() or np.ptp(lon[known]) > 180:
        return None
    box = Box.of(lon[known], lat[known])
    squeeze = max(float(np.cos(np.radians(box.middle[1]))), 0.05)
    margin = 0.08 * max((box.east - box.west) * squeeze, box.north - box.south, 0.02)
    return box.west - margin / squeeze, box.south - margin, box.east + margin / squeeze, box.north + margin


def _title(panel: FlowPanel, drawn: int) -> str:
    total = max(int(panel.volume.sum()), 1)
    share = 100 * int(panel.volume[:drawn].sum()) / total
    what = "trips" if panel.confidential else "published trips"
    return f"{panel.title}: {drawn:,} of {len(panel.volume):,} flows, {share:.0f} % of {total:,} {what}"


def draw_base(axis: Any, panel: FlowPanel, base: Zones | None, frame: PictureFrame) -> None:
    """Draw the outlines of the zones, or of the panel's areas, as a neutral base; where there are none, their centers."""
    rings = panel.rings if base is None else zone_rings(base)
    draw_rings(axis, rings, frame)
    if not rings.drawn.any():
        lon, lat = (panel.lon, panel.lat) if base is None else (base.lon, base.lat)
        known = np.isfinite(lon)
        x, y = cells(frame, lon, lat)
        axis.plot(x[known], y[known], "o", color="#b3bbc2", markersize=1.8, zorder=0)


def _draw_flows(axis: Any, panel: FlowPanel, n: int, frame: PictureFrame, scale: VolumeScale) -> None:
    """Draw flows, the smallest first, so that the largest are on top."""
    x, y = cells(frame, panel.lon, panel.lat)
    known = np.isfinite(panel.lon)
    for i in range(n - 1, -1, -1):
        a, b, volume = int(panel.origin[i]), int(panel.destination[i]), float(panel.volume[i])
        if not (known[a] and known[b]):
            continue
        if (x[a], y[a]) == (x[b], y[b]):
            draw_circle(axis, float(x[a]), float(y[a]), volume, scale)
        else:
            draw_arrow(axis, (float(x[a]), float(y[a])), (float(x[b]), float(y[b])), volume, scale)


def draw_arrow(
    axis: Any, start: tuple[float, float], end: tuple[float, float], volume: float, scale: VolumeScale, bend: float = BEND
) -> None:  # fmt: skip
    """Draw a flow as an arrow; its width, color and opacity are those of the scale."""
    from matplotlib.patches import FancyArrowPatch

    width = float(scale.width(volume))
    style = f"simple,tail_width={width:.2f},head_width={1.7 * width + 2.4:.2f},head_length={1.3 * width + 3:.2f}"
    axis.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle=style, connectionstyle=f"arc3,rad={bend}", mutation_scale=1, shrinkA=1.5, shrinkB=2.5,
            linewidth=0, facecolor=_shade(volume, scale), alpha=float(scale.opacity(volume)), zorder=3, clip_on=True,
        )
    )  # fmt: skip


def draw_circle(axis: Any, x: float, y: float, volume: float, scale: VolumeScale) -> None:
    """Draw the trips inside an area as a circle; its diameter grows with the width of a flow of that volume."""
    size = CIRCLE * float(scale.width(volume)) + 1
    axis.plot(
        x, y, "o", markersize=size, markerfacecolor=(*_shade(volume, scale)[:3], 0.75 * float(scale.opacity(volume))),
        markeredgecolor="#ffffff", markeredgewidth=0.5, zorder=4,
    )  # fmt: skip


def _shade(volume: float, scale: VolumeScale) -> tuple[float, ...]:
    return tuple(colors_of(scale.share(volume)))


def _label_areas(axis: Any, panel: FlowPanel, n: int, frame: PictureFrame) -> None:
    """Label the areas with most drawn trips, where there is room; with a zoom there is room for more."""
    ends, volume = np.concatenate([panel.origin[:n], panel.destination[:n]]), np.tile(panel.volume[:n], 2)
    trips: Floats = np.bincount(ends, volume, len(panel.names)).astype(np.float64)
    trips[~np.isfinite(panel.lon)] = 0
    order = [i for i in np.argsort(-trips, kind="stable").tolist() if trips[i] > 0]
    x, y = cells(frame, panel.lon, panel.lat)
    place_labels(axis, x[order].tolist(), y[order].tolist(), [shorten(panel.names[i]) for i in order], most=30)


def shorten(name: str, most: int = 22) -> str:
    """Return a name that fits on a map: without the region, which the map shows, and with the number of further zones."""
    if len(name) <= most:
        return name
    _, found, inner = name.partition(" (")
    core = inner.rstrip(")") if found and inner.endswith(")") else name
    zone, plus, others = core.rpartition(" + ")
    if not plus or len(core) <= most:
        return core if len(core) <= most else f"{core[: most - 1]}…"
    return f"{zone[: most - len(others) - 4].rstrip()}…{plus}{others}"


def draw_legend(axis: Any, scale: VolumeScale) -> None:
    """Draw arrows and circles of round volumes, from the largest to the smallest, into the legend's axis."""
    top = axis.get_ylim()[1] - 0.05
    axis.text(0.05, top, "trips", fontsize=8.5, color=INK, va="top", weight="bold")
    axis.text(0.05, top - 0.24, "between\nareas", fontsize=7, color=MUTED, va="top")
    axis.text(0.72, top - 0.24, "inside\nan area", fontsize=7, color=MUTED, va="top")
    y = top - 0.72
    for volume in reversed(scale.ticks()):
        draw_arrow(axis, (0.05, y), (0.62, y), volume, scale, bend=0)
        draw_circle(axis, 0.85, y, volume, scale)
        axis.text(1.08, y, number(volume), fontsize=7.5, color=INK, va="center")
        y -= 0.3
    axis.text(0.05, y, "Arrows bend to\nthe right of their\ndirection.", fontsize=7, color=MUTED, va="top")
