"""Lay out pictures: panels of one size, a legend next to them and notes below, so that nothing covers a map."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.model.arrays import Floats, Ints
from crowdveil.report.shapes import PictureFrame, Rings

INK, MUTED, BASE, EDGE, CONFIDENTIAL_COLOR = "#1f2933", "#5b6770", "#eceff1", "#c5ccd2", "#b00020"
CONFIDENTIAL = "CONFIDENTIAL: shows the original data. Do not publish."
MAX_HEIGHT, MIN_WIDTH = 7.0, 3.0
_WIDTHS = {1: 6.4, 2: 5.0, 3: 4.1}
_CHARACTERS = {7.5: 18.5, 8.0: 17.3, 11.0: 12.2}
"""Characters of ordinary text in an inch, by font size."""


@dataclass(frozen=True, eq=False)
class Layout:
    """A figure with panels and a legend.

    Attributes
    ----------
    figure
        The figure of matplotlib.
    panels
        An axis for each panel.
    legend
        An axis for the legend, in inches from its lower left corner; it touches no panel. None without a legend.
    confidential
        Whether the original is shown.
    heading
        The title of the picture.
    """

    figure: Any
    panels: list[Any]
    legend: Any
    confidential: bool
    heading: str

    def save(self, file: Path | BinaryIO, kind: str) -> None:
        """Write the picture as "png" or "svg": equal ones give equal bytes, and the file's title says if it is confidential."""
        import matplotlib

        named = f"{CONFIDENTIAL} {self.heading}" if self.confidential else self.heading
        metadata = {"Title": named, **({"Date": None} if kind == "svg" else {"Software": None})}
        with matplotlib.rc_context({"svg.hashsalt": "crowdveil"}):
            self.figure.savefig(file, format=kind, metadata=metadata)


@dataclass(frozen=True)
class Margins:
    """Space around each panel, and width of the legend, in inches."""

    left: float = 0.12
    below: float = 0.42
    legend: float = 1.75


def lay_out(
    size: tuple[float, float],
    titles: Sequence[str],
    heading: str,
    notes: Sequence[str],
    *,
    confidential: bool,
    margins: Margins | None = None,
    columns: int = 3,
) -> Layout:
    """Return a figure with a panel for each title; `size` is the width and height of a panel in inches."""
    margins = margins or Margins()
    wide, high = size
    columns = min(columns, max(len(titles), 1))
    rows = -(-len(titles) // columns)
    width = 0.12 + columns * (wide + margins.left) + 0.12 + margins.legend
    lines = [line for note in notes for line in wrap(note, width - 0.3, 7.5)]
    head = wrap(heading, width - 0.3, 11.0)
    above = max((len(wrap(title, wide, 8.0)) for title in titles), default=0) * 0.16 + 0.08
    top = 0.1 + 0.3 * confidential + 0.21 * len(head)
    bottom = 0.12 + 0.15 * len(lines)
    height = top + rows * (above + high + margins.below) + bottom
    figure = new_figure(width, height, arranged=False)
    if confidential:
        _mark(figure, width, height)
    for i, line in enumerate(head):
        y = height - 0.1 - 0.3 * confidential - 0.21 * i
        figure.text(0.15 / width, y / height, line, fontsize=11, color=INK, va="top", ha="left")
    for i, line in enumerate(reversed(lines)):
        figure.text(0.15 / width, (0.08 + 0.15 * i) / height, line, fontsize=7.5, color=MUTED, va="bottom", ha="left")
    panels = []
    for i, title in enumerate(titles):
        row, column = divmod(i, columns)
        x = 0.12 + margins.left + column * (wide + margins.left)
        y = height - top - (row + 1) * (above + high) - row * margins.below
        axis = figure.add_axes((x / width, y / height, wide / width, high / height))
        axis.set_title("\n".join(wrap(title, wide, 8.0)), fontsize=8, loc="left", color=INK, pad=4)
        panels.append(axis)
    legend = None
    if margins.legend:
        x, y = width - margins.legend, height - top - above - high
        legend = figure.add_axes((x / width, y / height, (margins.legend - 0.1) / width, high / height))
        legend.set(xlim=(0, margins.legend - 0.1), ylim=(0, high))
        legend.set_axis_off()
    return Layout(figure, panels, legend, confidential, heading)


def wrap(text: str, inches: float, size: float) -> list[str]:
    """Return the lines of a text that fit into a width."""
    return textwrap.wrap(text, max(int(inches * _CHARACTERS[size]), 12)) or [""]


def _mark(figure: Any, width: float, height: float) -> None:
    from matplotlib.patches import Rectangle

    band = Rectangle((0, 1 - 0.3 / height), 1, 0.3 / height, transform=figure.transFigure, color=CONFIDENTIAL_COLOR)
    figure.add_artist(band)
    figure.text(0.15 / width, 1 - 0.15 / height, CONFIDENTIAL, fontsize=9, color="#ffffff", weight="bold", va="center")


def panel_size(frame: PictureFrame, panels: int) -> tuple[float, float]:
    """Return the width and height of a map of a frame in inches."""
    wide = _WIDTHS.get(panels, 3.6)
    ratio = frame.height / frame.width
    if wide * ratio > MAX_HEIGHT:
        wide = MAX_HEIGHT / ratio
    return max(wide, MIN_WIDTH), float(np.clip(wide * ratio, 2.4, MAX_HEIGHT))


def map_layout(
    frame: PictureFrame,
    titles: Sequence[str],
    heading: str,
    notes: Sequence[str],
    *,
    confidential: bool,
    columns: int = 3,
) -> Layout:
    """Return panels for maps of one frame, with a scale bar below the first."""
    size = panel_size(frame, min(len(titles), columns))
    made = lay_out(size, titles, heading, notes, confidential=confidential, columns=columns)
    for axis in made.panels:
        show_frame(axis, frame, size)
    scale_bar(made, frame, size)
    return made


def show_frame(axis: Any, frame: PictureFrame, size: tuple[float, float]) -> None:
    """Set the limits of a map so that its units are square, with a small margin around the frame."""
    wide, high = size
    unit = 1.04 * max(frame.width / wide, frame.height / high)
    x, y = frame.width / 2, frame.height / 2
    axis.set(xlim=(x - unit * wide / 2, x + unit * wide / 2), ylim=(y + unit * high / 2, y - unit * high / 2))
    axis.set_axis_off()


def scale_bar(made: Layout, frame: PictureFrame, size: tuple[float, float]) -> None:
    """Draw a scale bar of a round length below the first map."""
    per_inch = 1.04 * max(frame.width / size[0], frame.height / size[1]) * frame.meters
    length = round_length(per_inch * size[0] / 3.2)
    first = made.panels[0].get_position()
    width, height = made.figure.get_size_inches()
    axis = made.figure.add_axes((first.x0, first.y0 - 0.36 / height, size[0] / width, 0.3 / height))
    axis.set(xlim=(0, size[0]), ylim=(0, 0.3))
    axis.set_axis_off()
    end = length / per_inch
    axis.plot([0.02, 0.02, 0.02 + end, 0.02 + end], [0.22, 0.15, 0.15, 0.22], color=INK, linewidth=1.1)
    label = f"{length / 1000:,g} km" if length >= 1000 else f"{length:g} m"
    axis.text(0.1 + end, 0.15, label, fontsize=7.5, color=INK, va="center")


def round_length(most: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above `most`."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(step * power for step in (1, 2, 5) if step * power <= most * 1.000001))


def draw_rings(axis: Any, rings: Rings, frame: PictureFrame, colors: Sequence[Any] | None = None, **style: Any) -> None:
    """Draw the outlines of areas, each in its color, or as a neutral base; areas without an outline are left out."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Outline

    snapped = rings.fitted(frame)
    ends = np.cumsum(snapped.corners)
    first = np.concatenate([[0], np.cumsum(snapped.rings)])
    corners = np.column_stack([snapped.x, snapped.y])
    paths, filled = [], []
    for area in range(len(snapped.rings)):
        parts = [
            Outline(corners[ends[j] - snapped.corners[j] : ends[j]], closed=True)
            for j in range(first[area], first[area + 1])
        ]
        if parts:
            paths.append(Outline.make_compound_path(*parts))
            filled.append(BASE if colors is None else colors[area])
    look: dict[str, Any] = {"edgecolors": EDGE, "linewidths": 0.4, "zorder": 0} | style
    axis.add_collection(PathCollection(paths, facecolors=filled, **look), autolim=False)


def cells(frame: PictureFrame, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
    """Return x and y of points on a map; unknown positions are at its corner and must not be drawn."""
    return frame.to_cells(np.nan_to_num(lon), np.nan_to_num(lat))


def place_labels(axis: Any, x: Sequence[float], y: Sequence[float], texts: Sequence[str], most: int = 40) -> list[Any]:
    """Draw labels, the first ones first, each only where it overlaps no earlier one and lies inside the panel."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patheffects import withStroke

    renderer = FigureCanvasAgg(axis.figure).get_renderer()
    inside = axis.get_window_extent(renderer)
    placed: list[Any] = []
    boxes: list[Any] = []
    for left, top, text in zip(x, y, texts, strict=True):
        if len(placed) >= most:
            break
        label = axis.annotate(
            text, (left, top), xytext=(0, 5), textcoords="offset points", fontsize=6.5, color=INK, ha="center", va="bottom",
            path_effects=[withStroke(linewidth=2, foreground="#ffffff")], zorder=9,
        )  # fmt: skip
        box = label.get_window_extent(renderer).padded(2)
        held = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
        if held and not any(box.overlaps(other) for other in boxes):
            placed.append(label)
            boxes.append(box)
        else:
            label.remove()
    return placed
