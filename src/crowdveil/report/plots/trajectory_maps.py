"""Maps of trajectories: a heat map, points, paths, and one trajectory with what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.model.arrays import Floats, Ints
from crowdveil.report.plots.layout import INK, MUTED, Layout, map_layout
from crowdveil.report.plots.scales import VolumeScale, color_bar, colors_of
from crowdveil.report.shapes import PictureFrame
from crowdveil.report.trajectory_picture import TrajectoryPicture

CELLS = 96
"""Cells of a heat map along its longer side."""
FRAMED = 0.998
"""Share of the points along each axis that a map holds; single points far away would shrink it."""
BEFORE, AFTER = "#d55e00", "#0072b2"
CONNECTORS = 12


@dataclass(frozen=True, eq=False)
class TrajectoryPanel:
    """Trajectories as a picture shows them: a release, or the original."""

    title: str
    confidential: bool
    picture: TrajectoryPicture


def common_frame(panels: Sequence[TrajectoryPanel], zoom: tuple[float, ...] | None) -> PictureFrame:
    """Return one frame for all panels: nearly all of their points, or the box of `zoom` (west, south, east, north)."""
    if zoom is not None:
        return PictureFrame.around(np.array([zoom[0], zoom[2]]), np.array([zoom[1], zoom[3]]))
    lon, lat = (np.concatenate([getattr(p.picture, name) for p in panels]) for name in ("lon", "lat"))
    if not len(lon):
        raise InputError("trajectories", "nothing was published, so there is nothing to draw.")
    sides = (1 - FRAMED) / 2, (1 + FRAMED) / 2
    inside = np.ones(len(lon), np.bool_)
    if np.ptp(lon) < 180:  # across the date line, all of them are held
        for values in (lon, lat):
            low, high = np.quantile(values, sides)
            inside &= (values >= low) & (values <= high)
    inside = inside if inside.any() else np.ones(len(lon), np.bool_)
    return PictureFrame.around(lon[inside], lat[inside])


def _framed(panels: Sequence[TrajectoryPanel], frame: PictureFrame) -> list[str]:
    """Return a note on the points outside of the frame."""
    out, of = 0, 0
    for panel in panels:
        x, y = frame.to_cells(panel.picture.lon, panel.picture.lat)
        of += len(x)
        out += int(np.count_nonzero((x < 0) | (y < 0) | (x > frame.width) | (y > frame.height)))
    return [f"{100 * out / of:.2g} % of the points are outside of the map."] if out else []


def heat_cells(picture: TrajectoryPicture, frame: PictureFrame) -> Floats:
    """Return the number of trajectories with a point in each square cell, rows from the north; NaN where there are none."""
    cell = max(frame.width, frame.height) / CELLS
    x, y = frame.to_cells(picture.lon, picture.lat)
    inside = (x >= 0) & (y >= 0) & (x <= frame.width) & (y <= frame.height)
    column, row = (np.minimum(c[inside] / cell, CELLS - 1).astype(np.int64) for c in (x, y))
    trajectory = np.repeat(np.arange(len(picture)), np.diff(picture.offsets))[inside]
    once = np.unique((trajectory * CELLS + row) * CELLS + column) % (CELLS * CELLS)
    counts = np.bincount(once, minlength=CELLS * CELLS).astype(np.float64).reshape(CELLS, CELLS)
    return np.where(counts > 0, counts, np.nan)


def draw_heat_map(panels: Sequence[TrajectoryPanel], zoom: tuple[float, ...] | None) -> Layout:
    """Draw the number of trajectories in each square cell, with one scale of colors."""
    frame = common_frame(panels, zoom)
    counts = [heat_cells(panel.picture, frame) for panel in panels]
    scale = VolumeScale.of(*counts)
    made = _map(panels, frame, "Trajectories by square cell", f"A cell is {_cell_size(frame)} wide.")
    side = max(frame.width, frame.height)
    for axis, values in zip(made.panels, counts, strict=True):
        shades = colors_of(scale.share(np.nan_to_num(values)))
        shades[~np.isfinite(values)] = (1, 1, 1, 0)
        limits = axis.get_xlim(), axis.get_ylim()
        axis.imshow(shades, extent=(0, side, side, 0), interpolation="nearest", aspect="auto")
        axis.set(xlim=limits[0], ylim=limits[1])
        _border(axis)
    color_bar(made.legend, scale, "trajectories with\na point in the cell")
    return made


def _cell_size(frame: PictureFrame) -> str:
    meters = max(frame.width, frame.height) / CELLS * frame.meters
    return f"{meters / 1000:.1f} km" if meters >= 1000 else f"{meters:.0f} m"


def _map(panels: Sequence[TrajectoryPanel], frame: PictureFrame, heading: str, note: str) -> Layout:
    titles = [f"{p.title}: {len(p.picture):,} trajectories, {len(p.picture.lon):,} points" for p in panels]
    confidential = any(panel.confidential for panel in panels)
    return map_layout(frame, titles, heading, [note, *_framed(panels, frame)], confidential=confidential)


def _border(axis: Any) -> None:
    """Frame a map that has no outlines of zones."""
    axis.set_axis_on()
    axis.set(xticks=[], yticks=[])
    for spine in axis.spines.values():
        spine.set(color="#c5ccd2", linewidth=0.6)


def draw_points(panels: Sequence[TrajectoryPanel], zoom: tuple[float, ...] | None) -> Layout:
    """Draw each distinct location, colored by the number of points there."""
    frame = common_frame(panels, zoom)
    found = []
    for panel in panels:
        places = np.column_stack([panel.picture.lon + 0.0, panel.picture.lat + 0.0])
        found.append(np.unique(places, axis=0, return_counts=True))
    scale = VolumeScale.of(*(count for _, count in found))
    made = _map(panels, frame, "Locations of trajectories", "A dot is a distinct location.")
    for axis, (places, count) in zip(made.panels, found, strict=True):
        order = np.argsort(count, kind="stable")
        x, y = frame.to_cells(places[order, 0], places[order, 1])
        shades = colors_of(scale.share(count[order]))
        axis.scatter(x, y, c=shades, s=3 + 9 * scale.share(count[order]), linewidths=0, rasterized=True)
        _border(axis)
    color_bar(made.legend, scale, "points at the\nlocation")
    return made


def distinct_paths(picture: TrajectoryPicture) -> list[tuple[Floats, Floats, int]]:
    """Return the distinct paths, in order of their first trajectory, with the number of trajectories on each."""
    counts: Counter[tuple[bytes, bytes]] = Counter()
    columns = picture.lon + 0.0, picture.lat + 0.0
    for low, high in zip(picture.offsets[:-1].tolist(), picture.offsets[1:].tolist(), strict=True):
        counts[columns[0][low:high].tobytes(), columns[1][low:high].tobytes()] += 1
    return [(np.frombuffer(lon), np.frombuffer(lat), n) for (lon, lat), n in counts.items()]


def draw_paths(panels: Sequence[TrajectoryPanel], zoom: tuple[float, ...] | None) -> Layout:
    """Draw each distinct path, colored by the number of trajectories that are published on it."""
    from matplotlib.collections import LineCollection

    frame = common_frame(panels, zoom)
    found = [sorted(distinct_paths(panel.picture), key=lambda path: path[2]) for panel in panels]
    scale = VolumeScale.of(*([n for *_, n in paths] for paths in found))
    made = _map(
        panels, frame, "Paths of trajectories", "Straight lines between points; a path may be many trajectories."
    )
    for axis, paths in zip(made.panels, found, strict=True):
        lines = [np.column_stack(frame.to_cells(lon, lat)) for lon, lat, _ in paths]
        share = scale.share(np.array([n for *_, n in paths]))
        alpha = 0.55 if len(lines) > 500 else 0.8
        axis.add_collection(
            LineCollection(lines, colors=colors_of(share), linewidths=0.6 + 0.8 * share, alpha=alpha, rasterized=True),
            autolim=False,
        )
        _border(axis)
    color_bar(made.legend, scale, "trajectories on\nthe same path")
    return made


def draw_example(
    before: TrajectoryPicture, after: TrajectoryPicture, source: Ints, chosen: int | None, method: str
) -> Layout:
    """Draw one original trajectory and the published one that was made from it. Confidential.

    `source` is the original of each published trajectory, `chosen` the number of an original one; by default one of
    ordinary length.
    """
    which, published = choose_example(before, source, chosen)
    old, new = _path(before, which), _path(after, published)
    frame = _around(np.concatenate([old[0], new[0]]), np.concatenate([old[1], new[1]]))
    lon0, lat0, lon1, lat1 = _at_same_time(old, new)
    meters = np.hypot((lon1 - lon0) * frame.squeeze, lat1 - lat0) * frame.meters / frame.unit
    titles = [f"{method}: {len(old[0])} original points, {len(new[0])} published ones"]
    far = f"At the same time, the two are {np.mean(meters):,.0f} m apart on average." if len(meters) else ""
    notes = ["Gray: other published trajectories. Dotted: positions at the same time.", *([far] if far else [])]
    made = map_layout(frame, titles, "One trajectory, and what became of it", notes, confidential=True)
    axis = made.panels[0]
    for lon, lat, _ in distinct_paths(after):
        axis.plot(*frame.to_cells(lon, lat), color="#d5dade", linewidth=0.6, zorder=0)
    (x0, y0), (x1, y1) = frame.to_cells(lon0, lat0), frame.to_cells(lon1, lat1)
    for a, b, c, d in zip(x0, y0, x1, y1, strict=True):
        axis.plot([a, c], [b, d], ":", color=MUTED, linewidth=0.8, zorder=2)
    for (lon, lat, _), color in ((old, BEFORE), (new, AFTER)):
        x, y = frame.to_cells(lon, lat)
        axis.plot(x, y, "-o", color=color, markersize=3, linewidth=1.4, zorder=4)
        axis.plot(x[0], y[0], "o", color="#ffffff", markeredgecolor=color, markeredgewidth=1.6, markersize=7, zorder=5)
        axis.plot(x[-1], y[-1], "s", color=color, markersize=7, zorder=5)
    _border(axis)
    _example_legend(made.legend)
    return made


def choose_example(before: TrajectoryPicture, source: Ints, chosen: int | None) -> tuple[int, int]:
    """Return an original trajectory and the first published one made from it; by default one of median length in points."""
    if not len(source):
        raise InputError("example", "nothing was published, so there is nothing to draw.")
    if chosen is None:
        kept = np.unique(source)
        points = np.diff(before.offsets)[kept]
        chosen = int(kept[np.argsort(points, kind="stable")[len(kept) // 2]])
    published = np.flatnonzero(source == chosen)
    if not len(published):
        raise ParameterError(
            Option("number"), "wanted the number of an original trajectory that was published; name another."
        )
    return chosen, int(published[0])


def _path(picture: TrajectoryPicture, i: int) -> tuple[Floats, Floats, Ints]:
    rows = slice(int(picture.offsets[i]), int(picture.offsets[i + 1]))
    return picture.lon[rows], picture.lat[rows], picture.t[rows]


def _around(lon: Floats, lat: Floats) -> PictureFrame:
    x, y = np.ptp(lon) or 1e-3, np.ptp(lat) or 1e-3
    margin = 0.2 * max(x, y)
    return PictureFrame.around(
        np.array([lon.min() - margin, lon.max() + margin]), np.array([lat.min() - margin, lat.max() + margin])
    )


def _at_same_time(old: tuple[Floats, Floats, Ints], new: tuple[Floats, Floats, Ints]) -> tuple[Floats, ...]:
    """Return positions of both (old lon, old lat, new lon, new lat) at times that both have; none where there are none."""
    low, high = max(old[2][0], new[2][0]), min(old[2][-1], new[2][-1])
    if high < low:
        return (np.zeros(0),) * 4
    times = np.linspace(low, high, CONNECTORS if high > low else 1)
    return tuple(np.interp(times, path[2], path[axis]) for path in (old, new) for axis in (0, 1))


def _example_legend(axis: Any) -> None:
    top = axis.get_ylim()[1] - 0.15
    for i, (label, color) in enumerate((("original", BEFORE), ("published", AFTER))):
        axis.plot([0.05, 0.4], [top - 0.25 * i] * 2, "-o", color=color, markersize=3, linewidth=1.4)
        axis.text(0.5, top - 0.25 * i, label, fontsize=8, color=INK, va="center")
    for i, (label, marker) in enumerate((("first point", "o"), ("last point", "s"))):
        y = top - 0.6 - 0.22 * i
        fill = "#ffffff" if marker == "o" else MUTED
        axis.plot(0.22, y, marker, color=fill, markeredgecolor=MUTED, markersize=6)
        axis.text(0.5, y, label, fontsize=7.5, color=INK, va="center")
