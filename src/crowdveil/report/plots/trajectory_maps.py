"""Maps of trajectories: a heat map, and paths with their points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats
from crowdveil.report.plots.drawing import Drawing, VolumeScale, color_bar, frame_around, new_map
from crowdveil.report.shapes import PictureFrame
from crowdveil.report.trajectory_picture import TrajectoryPicture, contents, count_by_cell

CELLS = 96
"""Cells of a heat map along its longer side."""
FRAMED = 0.998
"""Share of the points along each axis that a map holds; single points far away would shrink it."""


@dataclass(frozen=True, eq=False)
class TrajectoryPanel:
    """Trajectories as a picture shows them: a release, or the original."""

    title: str
    confidential: bool
    picture: TrajectoryPicture


def common_frame(panels: Sequence[TrajectoryPanel], zoom: tuple[float, ...] | None) -> PictureFrame:
    """Return one frame for all panels: nearly all of their points, or the box of `zoom`."""
    lon, lat = (np.concatenate([getattr(p.picture, name) for p in panels]) for name in ("lon", "lat"))
    if not len(lon):
        raise InputError("trajectories", "nothing was published, so there is nothing to draw.")
    inside = np.ones(len(lon), np.bool_)
    if np.ptp(lon) < 180:  # across the date line, all of them are shown
        for values in (lon, lat):
            low, high = np.quantile(values, ((1 - FRAMED) / 2, (1 + FRAMED) / 2))
            inside &= (values >= low) & (values <= high)
    inside = inside if inside.any() else np.ones(len(lon), np.bool_)
    return frame_around(lon[inside], lat[inside], zoom)


def _map(panels: Sequence[TrajectoryPanel], frame: PictureFrame, heading: str, note: str) -> Drawing:
    out, of = 0, 0
    for panel in panels:
        x, y = frame.to_cells(panel.picture.lon, panel.picture.lat)
        of += len(x)
        out += int(np.count_nonzero((x < 0) | (y < 0) | (x > frame.width) | (y > frame.height)))
    notes = [note, *([f"{100 * out / of:.2g} % of the points are outside of the map."] if out else [])]
    titles = [f"{p.title}: {len(p.picture):,} trajectories, {len(p.picture.lon):,} points" for p in panels]
    return new_map(frame, titles, heading, notes, confidential=any(panel.confidential for panel in panels))


def draw_heat_map(panels: Sequence[TrajectoryPanel], zoom: tuple[float, ...] | None) -> Drawing:
    """Draw the number of trajectories in each square cell, with one scale of colors."""
    frame = common_frame(panels, zoom)
    counts = [count_by_cell(panel.picture, frame, CELLS).astype(np.float64) for panel in panels]
    scale, side = VolumeScale.of(*counts), max(frame.width, frame.height)
    meters = side / CELLS * frame.meters
    wide = f"{meters / 1000:.1f} km" if meters >= 1000 else f"{meters:.0f} m"
    drawing = _map(panels, frame, "Trajectories by square cell", f"A cell is {wide} wide.")
    for axis, values in zip(drawing.panels, counts, strict=True):
        shades = scale.colors.to_rgba(values)
        shades[values == 0] = (1, 1, 1, 0)
        limits = axis.get_xlim(), axis.get_ylim()
        axis.imshow(shades, extent=(0, side, side, 0), interpolation="nearest")
        axis.set(xlim=limits[0], ylim=limits[1])
    color_bar(drawing, scale, "trajectories with a point in the cell")
    return drawing


def distinct_paths(picture: TrajectoryPicture) -> list[tuple[Floats, Floats, int]]:
    """Return the distinct paths, in order of their first trajectory, with the number of trajectories on each."""
    counts = Counter(contents(picture, picture.lon, picture.lat))
    return [(*np.frombuffer(content).reshape(-1, 2).T, n) for content, n in counts.items()]


def draw_paths(panels: Sequence[TrajectoryPanel], zoom: tuple[float, ...] | None) -> Drawing:
    """Draw each distinct path with its points, colored by the number of trajectories that are published on it."""
    from matplotlib.collections import LineCollection

    frame = common_frame(panels, zoom)
    paths_by_panel = [sorted(distinct_paths(panel.picture), key=lambda path: path[2]) for panel in panels]
    scale = VolumeScale.of(*([n for *_, n in paths] for paths in paths_by_panel))
    note = "Dots are points, with straight lines between them; a path may be many trajectories."
    drawing = _map(panels, frame, "Paths of trajectories", note)
    for axis, paths in zip(drawing.panels, paths_by_panel, strict=True):
        lines = [np.column_stack(frame.to_cells(lon, lat)) for lon, lat, _ in paths]
        trajectories = np.array([n for *_, n in paths])
        colors, alpha = scale.colors.to_rgba(trajectories), 0.55 if len(lines) > 500 else 0.8
        widths = 0.6 + 0.8 * scale.share(trajectories)
        axis.add_collection(
            LineCollection(lines, colors=colors, linewidths=widths, alpha=alpha, rasterized=True), autolim=False
        )
        points, of_point = (
            np.concatenate([np.zeros((0, 2)), *lines]),
            np.repeat(colors, [len(line) for line in lines], 0),
        )
        axis.scatter(*points.T, c=of_point, s=2.5, alpha=alpha, linewidths=0, rasterized=True)
    color_bar(drawing, scale, "trajectories on the same path")
    return drawing
