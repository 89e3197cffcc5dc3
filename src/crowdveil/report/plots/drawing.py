"""Helpers for all pictures: figures with panels and notes, scales of colors, outlines, labels and scale bars."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.model.arrays import Floats, Ints
from crowdveil.report.shapes import PictureFrame, Rings

INK, MUTED, BASE, EDGE, NOTHING, CONFIDENTIAL_COLOR = "#1f2933", "#5b6770", "#eceff1", "#c5ccd2", "#e3e7ea", "#b00020"
CONFIDENTIAL = "CONFIDENTIAL: shows the original data. Do not publish."
COLORS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c6d31", "#444444", "#b2df8a", "#6a3d9a", "#fb9a99",
    "#a6cee3", "#d55e00",
)  # fmt: skip
"""Colors of groups that color-blind people can distinguish, as far as possible."""
WIDEST, THINNEST = 5.0, 0.5
"""Widths of the largest and of the smallest flow in points."""
MOST_LABELS, LONGEST_LABEL = 30, 22
"""Labels on a map, and the letters of each."""
_MAP_WIDTHS, _MAP_HEIGHTS = {1: 6.4, 2: 5.0}, (2.4, 7.0)


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure of matplotlib with its panels.

    Attributes
    ----------
    figure, panels
        The figure, and an axis for each panel.
    heading
        The title of the picture.
    confidential
        Whether the original is shown.
    """

    figure: Any
    panels: list[Any]
    heading: str
    confidential: bool

    def save(self, file: Path | BinaryIO, kind: str) -> None:
        """Write the picture as "png" or "svg": equal ones give equal bytes, and the file's title says if it is confidential."""
        import matplotlib

        named = f"{CONFIDENTIAL} {self.heading}" if self.confidential else self.heading
        metadata = {"Title": named, **({"Date": None} if kind == "svg" else {"Software": None})}
        with matplotlib.rc_context({"svg.hashsalt": "crowdveil"}):
            self.figure.savefig(file, format=kind, metadata=metadata)


def new_drawing(
    titles: Sequence[str], heading: str, notes: Sequence[str], *, confidential: bool, size: tuple[float, float], columns: int = 3
) -> Drawing:  # fmt: skip
    """Return a figure with a panel for each title; `size` is the width and height of a panel in inches."""
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure = new_figure(columns * size[0] + 1.6, rows * (size[1] + 0.5) + 0.9)
    figure.suptitle(
        f"{CONFIDENTIAL}\n{heading}" if confidential else heading, x=0.01, ha="left", fontsize=11, wrap=True,
        color=CONFIDENTIAL_COLOR if confidential else INK, weight="bold" if confidential else "normal",
    )  # fmt: skip
    if any(notes):
        figure.supxlabel("\n".join(filter(None, notes)), x=0.01, ha="left", fontsize=7.5, color=MUTED, wrap=True)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in panels[len(titles) :]:
        unused.set_axis_off()
    for axis, title in zip(panels, titles, strict=False):
        axis.set_title(textwrap.fill(title, round(15 * size[0])), fontsize=8, loc="left", color=INK)
        axis.tick_params(labelsize=7, colors=MUTED)
    return Drawing(figure, panels[: len(titles)], heading, confidential)


def new_map(
    frame: PictureFrame, titles: Sequence[str], heading: str, notes: Sequence[str], *, confidential: bool, columns: int = 3
) -> Drawing:  # fmt: skip
    """Return panels for maps of one frame, with a scale bar below the first."""
    wide = _MAP_WIDTHS.get(min(len(titles), columns), 4.1)
    high = float(np.clip(wide * frame.height / frame.width, *_MAP_HEIGHTS))
    wide = min(wide, max(high * frame.width / frame.height, 3.0))
    drawing = new_drawing(titles, heading, notes, confidential=confidential, size=(wide, high), columns=columns)
    for axis in drawing.panels:
        show_frame(axis, frame)
    scale_bar(drawing.panels[0], frame)
    return drawing


def show_frame(axis: Any, frame: PictureFrame) -> None:
    """Make an axis the map of a frame, with a small margin."""
    margin = 0.02 * max(frame.width, frame.height)
    axis.set(xlim=(-margin, frame.width + margin), ylim=(frame.height + margin, -margin), xticks=[], yticks=[])
    axis.set_aspect("equal")
    for spine in axis.spines.values():
        spine.set(color=EDGE, linewidth=0.6)


def scale_bar(axis: Any, frame: PictureFrame) -> None:
    """Draw a scale bar of a round length below a map."""
    from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar

    length = round_length(frame.width * frame.meters / 3)
    label = f"{length / 1000:,g} km" if length >= 1000 else f"{length:g} m"
    axis.add_artist(
        AnchoredSizeBar(
            axis.transData, length / frame.meters, label, "upper left", frameon=False, pad=0.2, color=INK,
            bbox_to_anchor=(0, 0), bbox_transform=axis.transAxes, fontproperties={"size": 7.5},
        )
    )  # fmt: skip


def round_length(most: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above `most`."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(step * power for step in (1, 2, 5) if step * power <= most * 1.000001))


def frame_around(lon: Floats, lat: Floats, zoom: tuple[float, ...] | None) -> PictureFrame:
    """Return a frame around points, or the box of `zoom` (west, south, east, north)."""
    if zoom is not None:
        return PictureFrame.around(np.array([zoom[0], zoom[2]]), np.array([zoom[1], zoom[3]]))
    known = np.isfinite(lon) & np.isfinite(lat)
    if not known.any():
        raise InputError(Option("zones"), "the zones have no positions, so there is no map. Choose another plot.")
    return PictureFrame.around(lon[known], lat[known])


@dataclass(frozen=True)
class VolumeScale:
    """Width, color and opacity from the least to the largest volume; `whole` where all volumes are whole numbers."""

    low: float
    high: float
    whole: bool = False

    @classmethod
    def of(cls, *volumes: Any) -> VolumeScale:
        """Return the scale of the volumes of all panels."""
        values = np.concatenate([np.asarray(v, np.float64).ravel() for v in volumes])
        values = values[np.isfinite(values) & (values > 0)]
        if not len(values):
            return cls(1.0, 1.0)
        return cls(float(values.min()), float(values.max()), bool(np.all(values == np.round(values))))

    @cached_property
    def colors(self) -> Any:
        """A mapping of volumes to colors, which a color bar shows; equal ratios look equal."""
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, LogNorm

        # The lightest colors are hard to see on white.
        shades = LinearSegmentedColormap.from_list("crowdveil", colormaps["viridis_r"](np.linspace(0.18, 1, 256)))
        low = self.low if self.high > self.low else self.high / 2
        return ScalarMappable(LogNorm(low, self.high, clip=True), shades.with_extremes(bad=NOTHING))

    def share(self, volume: Any) -> Floats:
        """Return the position of volumes on the logarithmic scale, from 0 to 1."""
        if self.high <= self.low:
            return np.ones(np.shape(volume))
        share: Floats = np.clip(np.log(np.maximum(volume, self.low) / self.low) / np.log(self.high / self.low), 0, 1)
        return share

    def width(self, volume: Any) -> Floats:
        """Return widths in points, by a power of the volume: 1 where the range is narrow, less where it is wide."""
        ratio = self.high / self.low
        power = 1.0 if ratio <= WIDEST / THINNEST else np.log(WIDEST / THINNEST) / np.log(ratio)
        width: Floats = WIDEST * (np.clip(volume, self.low, self.high) / self.high) ** power
        return width

    def opacity(self, volume: Any) -> Floats:
        """Return opacities: small flows are faded."""
        opacity: Floats = 0.3 + 0.6 * self.share(volume)
        return opacity

    def ticks(self, most: int = 5, log_from: float = 20) -> list[float]:
        """Return round volumes from the smallest to the largest; above a ratio of `log_from`, 1, 2 and 5 times powers of ten."""
        from matplotlib.ticker import LogLocator, MaxNLocator

        if self.high <= self.low:
            return [self.high]
        wide = self.high > log_from * self.low
        even = MaxNLocator(most, steps=[1, 2, 5, 10], integer=self.whole)
        locator = LogLocator(subs=(1, 2, 5), numticks=50) if wide else even
        ticks = [float(f"{v:.6g}") for v in locator.tick_values(self.low, self.high)]
        ticks = [v for v in ticks if self.low * 0.9999 <= v <= self.high * 1.0001]
        if not ticks:
            return [self.low, self.high]
        chosen = np.unique(np.linspace(0, len(ticks) - 1, min(most, len(ticks))).round().astype(int))
        return [ticks[i] for i in chosen]


def number(value: float) -> str:
    """Return a number as text with at most three digits after the point."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:,.3g}"


def color_bar(drawing: Drawing, scale: VolumeScale, title: str) -> None:
    """Draw a scale of colors next to all panels."""
    bar = drawing.figure.colorbar(scale.colors, ax=drawing.panels, shrink=0.6, aspect=25, ticks=scale.ticks())
    bar.ax.minorticks_off()
    bar.ax.yaxis.set_major_formatter(lambda value, _: number(value))
    bar.ax.tick_params(labelsize=7.5, colors=INK)
    bar.set_label(title, fontsize=8, color=INK)


def legend(drawing: Drawing, colors: Sequence[tuple[str, Any]], title: str, handles: Sequence[Any] = ()) -> None:
    """Draw a legend of colored boxes, or of other handles, outside of the panels."""
    from matplotlib.patches import Patch

    boxes = [Patch(facecolor=color, edgecolor="#9aa3ab", linewidth=0.5, label=text) for text, color in colors]
    drawing.figure.legend(
        handles=[*handles, *boxes], title=title, loc="outside right lower", fontsize=7.5, title_fontsize=8, frameon=False,
        alignment="left",
    )  # fmt: skip


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


def fill_areas(axis: Any, rings: Rings, lon: Floats, lat: Floats, frame: PictureFrame, colors: Sequence[Any]) -> None:
    """Fill areas with their colors; areas without an outline are dots."""
    draw_rings(axis, rings, frame, colors, edgecolors="#ffffff", linewidths=0.3)
    x, y = cells(frame, lon, lat)
    dots = np.flatnonzero(~rings.drawn & np.isfinite(lon))
    if len(dots):
        shades = [colors[i] for i in dots.tolist()]
        axis.scatter(x[dots], y[dots], c=shades, s=16, linewidths=0.3, edgecolors="#8a949c", zorder=1)


def cells(frame: PictureFrame, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
    """Return x and y of points on a map; unknown positions are at its corner and must not be drawn."""
    return frame.to_cells(np.nan_to_num(lon), np.nan_to_num(lat))


def line_with_gaps(axis: Any, at: Floats | Ints, values: Floats, *, color: str, **style: Any) -> None:
    """Draw a line with gaps for unknown values; a single value between gaps is a dot."""
    axis.plot(at, values, color=color, **style)
    known = np.isfinite(values)
    alone = known & ~np.append(known[1:], False) & ~np.append(False, known[:-1])
    if alone.any():
        axis.plot(at[alone], values[alone], ".", color=color, markersize=4)


def place_labels(axis: Any, x: Sequence[float], y: Sequence[float], texts: Sequence[str]) -> None:
    """Draw labels, the first ones first, each only where it overlaps no earlier one and lies inside the panel."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patheffects import withStroke

    renderer = FigureCanvasAgg(axis.figure).get_renderer()
    axis.figure.draw_without_rendering()
    inside = axis.get_window_extent(renderer)
    boxes: list[Any] = []
    for left, top, text in zip(x, y, texts, strict=True):
        if len(boxes) >= MOST_LABELS:
            break
        label = axis.annotate(
            text, (left, top), xytext=(0, 5), textcoords="offset points", fontsize=6.5, color=INK, ha="center", va="bottom",
            path_effects=[withStroke(linewidth=2, foreground="#ffffff")], zorder=9,
        )  # fmt: skip
        box = label.get_window_extent(renderer).padded(2)
        within = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
        if within and not any(box.overlaps(other) for other in boxes):
            boxes.append(box)
        else:
            label.remove()


def shorten(name: str) -> str:
    """Return a name that fits on a map, with the number of further zones."""
    if len(name) <= LONGEST_LABEL:
        return name
    zone, plus, others = name.rpartition(" + ")
    if not plus:
        return f"{name[: LONGEST_LABEL - 1]}…"
    return f"{zone[: LONGEST_LABEL - len(others) - 4].rstrip()}…{plus}{others}"
