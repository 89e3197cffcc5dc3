"""Plots of analyses as PNG. Needs matplotlib, which is imported for the first plot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.analysis.calendar import DAYS, GAPS, Slots
from crowdveil.analysis.estimates import Groups, estimates
from crowdveil.analysis.land_use import Clustering, LandUse
from crowdveil.analysis.profiles import Profiles, shown
from crowdveil.analysis.reconstruction import Reconstruction
from crowdveil.analysis.topics import Topics
from crowdveil.errors import InputError, Text
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.zones import Zones
from crowdveil.report.flow_picture import FlowPicture
from crowdveil.report.plots.drawing import (
    COLORS,
    NOTHING,
    VolumeScale,
    color_bar,
    fill_areas,
    line_with_gaps,
    new_map,
    show_frame,
)
from crowdveil.report.plots.flow_maps import box_around, draw_base, draw_flows
from crowdveil.report.plots.flow_panels import FlowPanel, common_frame, zone_rings
from crowdveil.report.shapes import Rings

RELEASED, ORIGINAL = "#0072b2", "#d55e00"
"""Blue and orange, as in the paper."""
HATCH: dict[str, Any] = {"facecolor": "none", "edgecolor": "#c4c4c4", "hatch": "/////", "linewidth": 0}
NO_TRIPS = "Gray: no published trips touch the zone, which does not mean 0."
MAX_PROFILES, MAX_TOPICS = 6, 6
"""Number in one plot; the largest are drawn."""


def draw(found: Any, file: Path) -> None:
    """Draw the result of an analysis."""
    for kind, plot in _PLOTS.items():
        if isinstance(found, kind):
            plot(found, file)
            return
    raise TypeError(f"no plot of {type(found).__name__}")


def flows(found: Reconstruction, file: Path) -> None:
    """Draw maps of the trips that leave and that reach each zone, over all time steps."""
    side, zones = found.study.released, found.zones
    everything, values = Groups.all(side.release), []
    for out in (True, False):
        part = estimates(side, everything, origins=out, destinations=not out)
        volume = np.full(len(zones), np.nan)
        volume[part.origin if out else part.destination] = part.volume
        values.append(volume)
    _check_located(zones)
    frame, scale, rings = common_frame([], zones, None), VolumeScale.of(*values), zone_rings(zones)
    titles = ["trips that leave a zone", "trips that reach a zone"]
    drawing = new_map(frame, titles, "Estimated trips of zones", [NO_TRIPS], confidential=False)
    for axis, volume in zip(drawing.panels, values, strict=True):
        colors = scale.colors.to_rgba(np.ma.masked_invalid(volume))
        fill_areas(axis, rings, zones.lon, zones.lat, frame, colors)
    color_bar(drawing, scale, "trips, estimated")
    drawing.save(file, "png")


def profiles(found: Profiles, file: Path) -> None:
    """Draw the largest profiles one above the other, of the release and of the original."""
    if not len(found):
        raise InputError(Text("there is no profile to draw. Lower {least_trips}."))
    chosen = found.largest(MAX_PROFILES)
    figure = new_figure(10, 1.0 + 1.35 * len(chosen))
    axes = np.atleast_1d(figure.subplots(len(chosen), 1, sharex=True))
    for axis, i in zip(axes, chosen, strict=True):
        if found.original is not None:
            line_with_gaps(
                axis, _hours(found.slots), found.original[i], color=ORIGINAL, linewidth=1.3, label="original"
            )
        line_with_gaps(axis, _hours(found.slots), found.volume[i], color=RELEASED, linewidth=1.3, label="release")
        _hatched(axis, found.slots, np.isfinite(found.volume[i]))
        near = "" if found.original is None else f"   (correlation {shown(found.correlation[i])})"
        axis.set_title(f"{found.name(i)}{near}", fontsize=10, loc="left")
        axis.set_ylim(bottom=0)  # each plot has its own scale, since the largest would flatten the others
        axis.grid(axis="y", alpha=0.3)
        _time_axis(axis, found.slots)
    figure.supylabel("mean trips in the hour", fontsize=10)
    handles = axes[0].get_legend_handles_labels()[0][::-1] if found.original is not None else []
    _legend(figure, handles, gaps=bool(np.isnan(found.volume[chosen]).any()))
    figure.savefig(file)


def land_use(found: LandUse, file: Path) -> None:
    """Draw a map of the groups and their typical profiles; those of the original in a second row."""
    sides = [("release", found.released)] + ([("original", found.original)] if found.original is not None else [])
    rows = [max(side.count for _, side in sides)] * len(sides)
    figure = new_figure(12, 1.2 + max(3.6, 1.0 * rows[0]) * len(sides))
    parts = np.atleast_1d(figure.subfigures(len(sides), 1))
    for part, (name, side) in zip(parts, sides, strict=True):
        left, right = part.subfigures(1, 2, width_ratios=(1, 1.35))
        axis = left.subplots()
        _map_of_groups(axis, found.zones, found.grouped, side)
        agree = f"; agreement {shown(found.agreement)}" if found.original is not None and name == "release" else ""
        axis.set_title(f"{name}: {side.count} groups{agree}", fontsize=11)
        _typical(right, found.slots, side, gaps=name == "release")
    figure.savefig(file)


def topics(found: Topics, file: Path) -> None:
    """Draw the share of each topic by hour, and its main flows on a map."""
    slots, by_slot = found.by_slot()
    count = min(len(found), MAX_TOPICS)
    figure = new_figure(12, 0.6 + 2.6 * count)
    axes = figure.subplots(count, 2, squeeze=False, width_ratios=(2, 1))
    for topic in range(count):
        line, color = axes[topic, 0], COLORS[topic]
        # Bars, since a value of one hour does not extend to a missing next one.
        wide = slots.slot_s / 3600
        line.bar(_hours(slots), 100 * by_slot[:, topic], wide, color=color, alpha=0.75, linewidth=0, align="edge")
        _hatched(line, slots, np.isfinite(by_slot[:, topic]))
        line.set_ylim(0, 100)
        line.set_ylabel("% of trips", fontsize=9)
        line.set_title(f"topic {topic + 1}: {100 * found.share[topic]:.0f} % of all trips", fontsize=10, loc="left")
        line.grid(axis="y", alpha=0.3)
        _time_axis(line, slots)
        _main_flows(axes[topic, 1], found, topic)
    _legend(figure, [], gaps=bool(np.isnan(by_slot).any()))
    figure.savefig(file)


_PLOTS: dict[type, Callable[[Any, Path], None]] = {
    Reconstruction: flows,
    Profiles: profiles,
    LandUse: land_use,
    Topics: topics,
}


def _hatched(axis: Any, slots: Slots, known: Mask) -> None:
    """Hatch the hours with unknown values."""
    hours, wide = _hours(slots), slots.slot_s / 3600
    change = np.flatnonzero(np.diff(np.concatenate([[0], ~known, [0]]).astype(np.int8)))
    for first, last in change.reshape(-1, 2):
        # Lines have their values at the start of an hour, bars over all of it: the gap lies between known values.
        axis.axvspan(hours[first], hours[last - 1] + wide, zorder=0, **HATCH)


def _legend(figure: Any, handles: list[Any], *, gaps: bool) -> None:
    from matplotlib.patches import Patch

    if gaps:
        handles = [*handles, Patch(label=GAPS, **HATCH)]
    if handles:
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), fontsize=9, frameon=False)


def _hours(slots: Slots) -> Floats:
    """Return the position of each slot on an axis of hours."""
    return np.arange(len(slots)) * slots.slot_s / 3600


def _time_axis(axis: Any, slots: Slots) -> None:
    """Label the days of a week with lines between them, or the hours of one day."""
    if slots.weekday is None:
        axis.set_xlim(0, 24)
        axis.set_xticks(range(0, 25, 3), [f"{h:02d}:00" for h in range(0, 25, 3)], fontsize=8)
        return
    axis.set_xlim(0, 168)
    axis.set_xticks([24 * d + 12 for d in range(7)], [day[:3] for day in DAYS], fontsize=8)
    axis.tick_params(axis="x", length=0)
    axis.tick_params(axis="y", labelsize=8)
    for day in range(1, 7):
        axis.axvline(24 * day, color="#bbbbbb", linewidth=0.6, zorder=0)


def _check_located(zones: Zones) -> None:
    if not zones.located:
        raise InputError(Text("a map needs the positions of the zones. Give the zones of the release with {zones}."))


def _map_of_groups(axis: Any, zones: Zones, grouped: Ints, side: Clustering) -> None:
    from matplotlib.patches import Patch

    _check_located(zones)
    frame, colors = common_frame([], zones, None), [NOTHING] * len(zones)
    for zone, cluster in zip(grouped, side.cluster, strict=True):
        colors[zone] = COLORS[cluster % len(COLORS)]
    show_frame(axis, frame)
    fill_areas(axis, zone_rings(zones), zones.lon, zones.lat, frame, colors)
    entries = [Patch(color=COLORS[c % len(COLORS)], label=f"{c + 1} ({side.zones_in(c)})") for c in side.groups]
    entries.append(Patch(color=NOTHING, label="too few trips"))
    axis.legend(handles=entries, title="group (zones)", fontsize=8, title_fontsize=8, loc="upper left", frameon=False)


def _typical(part: Any, slots: Slots, side: Clustering, *, gaps: bool) -> None:
    """Draw the typical profile of each group: a solid line for leaving, a dashed one for reaching trips."""
    axes = np.atleast_1d(part.subplots(side.count, 1, sharex=True))
    hours, missing = len(slots), False
    for axis, group, typical in zip(axes, side.groups, side.typical, strict=True):
        color = COLORS[group % len(COLORS)]
        # Zero in all zones of a group means not published; in the original it means no trips.
        typical = np.where(typical > 0, typical, np.nan) if gaps else typical
        leave, reach = 100 * typical[:hours], 100 * typical[hours:]
        line_with_gaps(axis, _hours(slots), leave, color=color, linewidth=1.2, label="leaving")
        line_with_gaps(
            axis, _hours(slots), reach, color="#555555", linewidth=0.9, linestyle=(0, (2, 1)), label="reaching"
        )
        known = np.isfinite(leave) | np.isfinite(reach) if gaps else slots.times > 0
        _hatched(axis, slots, known)
        missing |= not known.all()
        axis.set_title(f"group {group + 1}", fontsize=9, loc="left", pad=2)
        axis.set_ylim(0, 105 * float(np.nanmax(typical)))
        axis.grid(axis="y", alpha=0.3)
        _time_axis(axis, slots)
    handles = axes[0].get_legend_handles_labels()[0]
    if missing:
        from matplotlib.patches import Patch

        handles.append(Patch(label=GAPS, **HATCH))
    axes[0].legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1, 0.98), ncols=len(handles), fontsize=8, frameon=False
    )
    part.supylabel("% of a zone's trips", fontsize=9)


def _main_flows(axis: Any, found: Topics, topic: int) -> None:
    """Draw the main flows of a topic on a map of the section around them, since they are often short."""
    zones, main = found.study.zones, found.main_flows(topic)
    _check_located(zones)
    origin, destination, share = (np.array(column) for column in zip(*main, strict=True))
    lon, lat = found.places.T
    flows = FlowPicture.between(
        list(found.labels), lon, lat, Rings.of([]), np.zeros(len(main), np.int64), origin, destination, share
    )  # fmt: skip
    panel = FlowPanel(found.params.words, False, flows, [])
    frame = common_frame([panel], None, box_around([panel], [len(main)]))
    show_frame(axis, frame)
    draw_base(axis, panel, zones, frame)
    draw_flows(axis, panel, len(main), frame, VolumeScale.of(share))
    axis.set_title(f"its {len(main)} main flows", fontsize=10, loc="left")
