"""Draw a chord diagram: trips among groups of near areas, and the groups on a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.trees import ward
from crowdveil.model.zones import Zones
from crowdveil.report.plots.flow_map import shorten
from crowdveil.report.plots.flow_panels import FlowPanel, common_frame
from crowdveil.report.plots.layout import (
    BASE,
    INK,
    Layout,
    Margins,
    cells,
    draw_rings,
    lay_out,
    place_labels,
    show_frame,
)
from crowdveil.report.plots.teaching import COLORS, cut_groups

OTHER = "#bbbbbb"


@dataclass(frozen=True, eq=False)
class AreaGroups:
    """Groups of areas that all panels share: the group of each area of each panel, and names and colors of the groups."""

    group: list[Ints]
    names: list[str]
    colors: list[str]


def group_areas(panels: Sequence[FlowPanel], most: int) -> AreaGroups:
    """Return groups of near areas with about equally many trips; without positions the busiest areas and all others."""
    if all(panel.located for panel in panels):
        return _near_areas(panels, most)
    trips: dict[str, float] = {}
    for panel in panels:
        for name, count in zip(panel.names, panel.trips.tolist(), strict=True):
            trips[name] = trips.get(name, 0.0) + count
    names = sorted(trips, key=lambda name: (-trips[name], name))
    kept = names if len(names) <= most else names[: most - 1]
    number = {name: i for i, name in enumerate(kept)}
    group = [np.array([number.get(name, len(kept)) for name in panel.names], np.int64) for panel in panels]
    colors = [COLORS[i % len(COLORS)] for i in range(len(kept))]
    if len(kept) < len(names):
        return AreaGroups(group, [*kept, f"{len(names) - len(kept):,} others"], [*colors, OTHER])
    return AreaGroups(group, kept, colors)


def _near_areas(panels: Sequence[FlowPanel], most: int) -> AreaGroups:
    lon, lat, trips = (np.concatenate([getattr(panel, name) for panel in panels]) for name in ("lon", "lat", "trips"))
    names = [name for panel in panels for name in panel.names]
    known = np.isfinite(lon) & np.isfinite(lat)
    place, index = np.unique(np.column_stack([lon[known], lat[known]]), axis=0, return_inverse=True)
    weight = np.bincount(index.ravel(), trips[known], len(place))
    points = Zones(
        np.array([str(i) for i in range(len(place))], dtype=object), place[:, 0], place[:, 1], kind="centroids"
    )
    tree = ward(points)
    cut = cut_groups(tree, min(most, len(COLORS)), weight.astype(np.float64))
    of_place = np.zeros(len(place), np.int64)
    for i, node in enumerate(cut.tolist()):
        of_place[tree.node_tiles(node)] = i
    whole = np.full(len(lon), 0, np.int64)
    whole[known] = of_place[index.ravel()]
    busiest = [
        max(np.flatnonzero(known & (whole == i)).tolist(), key=lambda a: (trips[a], -a)) for i in range(len(cut))
    ]
    titles = [names[a] for a in busiest]
    ends = np.cumsum([0, *(len(panel.names) for panel in panels)])
    group = [whole[ends[i] : ends[i + 1]] for i in range(len(panels))]
    return AreaGroups(group, titles, [COLORS[i] for i in range(len(cut))])


def draw_chords(panels: Sequence[FlowPanel], top: int, zones: Zones | None) -> Layout:
    """Draw the trips among groups of areas as ribbons, and the groups on a map where areas have positions.

    A degree is the same number of trips in all panels: where a release has fewer trips than the original, a gap is left.
    """
    groups = group_areas(panels, top)
    n = len(groups.names)
    found = [
        np.bincount(group[panel.origin] * n + group[panel.destination], panel.volume, n * n)
        .reshape(n, n)
        .astype(np.float64)
        for panel, group in zip(panels, groups.group, strict=True)
    ]
    most = max(float(trips.sum()) for trips in found)
    if most <= 0:
        raise InputError("chord", "nothing was published, so there is nothing to draw.")
    located = all(panel.located for panel in panels)
    side = {1: 5.0, 2: 4.6}.get(len(panels) + located, 4.2)
    titles = [f"{panel.title}: {int(panel.volume.sum()):,} trips" for panel in panels]
    notes = [
        "An arc has the trips that leave a group of areas, then those that reach it. A ribbon has the color of its origin, and a "
        "wider gap at its destination. Groups are areas near one another, named after the busiest.",
    ]  # fmt: skip
    if not located:
        notes = [notes[0].split(" Groups are")[0]]
    made = lay_out(
        (side, side), titles + ["the groups on the map"] * located,
        f"Trips among {n} groups of areas" if located else f"Trips among the {n} busiest areas", notes,
        confidential=any(panel.confidential for panel in panels), margins=Margins(0.15, 0.1, 0.0),
    )  # fmt: skip
    for axis, trips in zip(made.panels, found, strict=False):
        axis.set(xlim=(-1.75, 1.75), ylim=(-1.75, 1.75), aspect="equal")
        axis.set_axis_off()
        _draw_chord(axis, groups, trips, most)
    if located:
        _draw_key(made.panels[-1], panels, groups, zones, side)
    return made


def _draw_key(axis: Any, panels: Sequence[FlowPanel], groups: AreaGroups, zones: Zones | None, side: float) -> None:
    """Draw the areas of the panel with the most areas, in the colors of their groups; the smallest on top."""
    which = max(range(len(panels)), key=lambda i: (panels[i].confidential, len(panels[i].names)))
    panel, group = panels[which], groups.group[which]
    frame = common_frame([panel], zones, None)
    show_frame(axis, frame, (side, side))
    order = np.argsort(-panel.size, kind="stable")
    used = np.zeros(len(panel.names), np.bool_)
    used[panel.origin] = used[panel.destination] = True
    colors = [groups.colors[group[i]] if used[i] else BASE for i in order.tolist()]
    rings = panel.rings.take(order)
    draw_rings(axis, rings, frame, colors, edgecolors="#ffffff")
    x, y = cells(frame, panel.lon, panel.lat)
    dots = np.flatnonzero(~panel.rings.drawn & np.isfinite(panel.lon) & used)
    if len(dots):
        axis.scatter(x[dots], y[dots], c=[groups.colors[group[i]] for i in dots], s=14, linewidths=0)
    named = [int(np.argmax(np.where(group == i, panel.trips, -1.0))) for i in range(len(groups.names))]
    named = [a for a in named if np.isfinite(panel.lon[a])]
    place_labels(axis, x[named].tolist(), y[named].tolist(), [shorten(panel.names[a], 14) for a in named])


def _draw_chord(axis: Any, groups: AreaGroups, trips: Floats, most: float) -> None:
    from matplotlib.patches import Wedge

    leaving, reaching = trips.sum(axis=1), trips.sum(axis=0)
    n, gap = len(groups.names), 2.2
    unit = (360 - gap * n) / (2 * most)
    start, angle = np.zeros(n), 90.0
    for i in range(n):
        start[i] = angle
        angle -= unit * (leaving[i] + reaching[i]) + gap
    out, into = start.copy(), start - unit * leaving
    for i in range(n):
        whole = unit * (leaving[i] + reaching[i])
        axis.add_patch(Wedge((0, 0), 1.0, start[i] - whole, start[i], width=0.05, color=groups.colors[i], linewidth=0))
    ribbons = []
    for i in range(n):
        # Destinations in the order of the circle, so that ribbons of one area cross little.
        for j in [(i - step) % n for step in range(n)]:
            wide = unit * trips[i, j]
            if wide > 0:
                ribbons.append((float(trips[i, j]), i, (out[i], out[i] - wide), (into[j], into[j] - wide)))
                out[i] -= wide
                into[j] -= wide
    for volume, i, a, b in sorted(ribbons, key=lambda ribbon: ribbon[0]):
        _ribbon(axis, a, b, groups.colors[i], 0.75 if volume >= 0.01 * most else 0.3)
    _label_arcs(axis, groups.names, start - unit * (leaving + reaching) / 2)


def _on_circle(degrees: float | Floats, radius: float) -> Any:
    turned = np.radians(degrees)
    return radius * np.column_stack([np.cos(turned), np.sin(turned)])


def _ribbon(axis: Any, a: tuple[float, float], b: tuple[float, float], color: str, alpha: float) -> None:
    """Draw a ribbon between two arcs; it ends short of its destination, which shows its direction."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    near, far = (
        _on_circle(np.linspace(*a, max(int(abs(a[0] - a[1])), 2)), 0.94),
        _on_circle(np.linspace(*b, max(int(abs(b[0] - b[1])), 2)), 0.86),
    )
    middle = np.zeros((1, 2))
    corners = np.concatenate([near, middle, far, middle, near[:1]])
    straight = [Outline.LINETO]
    codes = [Outline.MOVETO, *straight * (len(near) - 1), Outline.CURVE3, Outline.CURVE3, *straight * (len(far) - 1)]
    codes += [Outline.CURVE3, Outline.CURVE3]
    axis.add_patch(PathPatch(Outline(corners, codes), facecolor=color, alpha=alpha, linewidth=0))


def _label_arcs(axis: Any, names: Sequence[str], angles: Floats) -> None:
    """Draw the names around the circle, moved apart where arcs are short."""
    shown = spread_angles(angles, 8.0)
    for name, true, angle in zip(names, angles.tolist(), shown.tolist(), strict=True):
        (x, y), (x1, y1) = _on_circle(angle, 1.14)[0], _on_circle(true, 1.01)[0]
        axis.plot([x1, x], [y1, y], color="#9aa3ab", linewidth=0.5)
        turn = (angle + 360) % 360
        flip = 90 < turn < 270
        axis.text(
            x, y, f" {shorten(name, 14)} ", fontsize=7, color=INK, rotation=turn - 180 if flip else turn,
            rotation_mode="anchor", ha="right" if flip else "left", va="center",
        )  # fmt: skip


def spread_angles(angles: Floats, least: float) -> Floats:
    """Return falling angles that are at least `least` degrees apart, near the given ones."""
    least = min(least, 355 / max(len(angles), 1))
    shown = np.asarray(angles, np.float64).copy()
    for _ in range(200):
        moved = False
        for i in range(len(shown) - 1):
            short = least - (shown[i] - shown[i + 1])
            if short > 1e-6:
                shown[i] += short / 2
                shown[i + 1] -= short / 2
                moved = True
        if not moved:
            break
    return shown
