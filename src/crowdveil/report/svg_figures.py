"""Static figures of a report: SVG without scripts, for print, screen readers and browsers without scripts.

Colors are CSS classes, so that they follow light and dark mode; widths are attributes, which the page's policy allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise

import numpy as np

from crowdveil.model.arrays import Floats, Ints
from crowdveil.report.flow_picture import FlowPicture, top_flows
from crowdveil.report.layers import Shade
from crowdveil.report.page_model import Figure
from crowdveil.report.shapes import PictureFrame

FLOW_CLASSES = 5
CELLS = 900
"""Cells of a static map along its longer side."""
MARGIN = 14
MAX_LINES, MAX_OUTLINES, MAX_VERTICES = 300, 3_000, 25_000
_WIDTH, _HEIGHT, _LEFT, _BELOW = 640, 260, 74, 54


def still_frame(frame: PictureFrame) -> PictureFrame:
    """Return a coarse frame for a static map."""
    factor = max(frame.width, frame.height) / CELLS
    width, height = (max(round(side / factor), 1) for side in (frame.width, frame.height))
    return PictureFrame(frame.west, frame.north, frame.unit * factor, frame.squeeze, width, height)


def map_outlines(picture: FlowPicture, frame: PictureFrame) -> list[str]:
    """Return the SVG path of each area; empty if it has no outline."""
    if int(picture.rings.drawn.sum()) > MAX_OUTLINES:
        return [""] * len(picture.names)
    return picture.rings.fitted(frame, MAX_VERTICES).paths()


def still_map(
    picture: FlowPicture,
    frame: PictureFrame,
    paths: list[str],
    title: str,
    *,
    shade: Shade | None = None,
    flows: bool = False,
) -> str:
    """Return a static map of areas, colored by `shade` if given, with the largest flows if `flows`."""
    small = still_frame(frame)
    x, y = (c.tolist() for c in small.to_cells(np.nan_to_num(picture.lon), np.nan_to_num(picture.lat)))
    classes = None if shade is None else shade.classes.tolist()
    marks = []
    for i in np.argsort(-picture.size, kind="stable").tolist():  # the largest first, so that none hides another
        color = "a" if classes is None else f"q{classes[i]}" if classes[i] >= 0 else "none"
        if paths[i]:
            marks.append(f'<path class="{color}" d="{paths[i]}"/>')
        elif np.isfinite(picture.lon[i]) and len(picture.names) <= MAX_OUTLINES:
            marks.append(f'<circle class="{color}" cx="{x[i]}" cy="{y[i]}" r="4"/>')
    if flows:
        marks += _lines(picture, x, y)
    return (
        f'<svg class="map" role="img" viewBox="{-MARGIN} {-MARGIN} {small.width + 2 * MARGIN} {small.height + 2 * MARGIN}">'
        f"<title>{escape(title)}</title>{''.join(marks)}</svg>"
    )


def _lines(picture: FlowPicture, x: list[int], y: list[int]) -> list[str]:
    o, d, v = top_flows(picture, MAX_LINES)
    top = float(v.max(initial=1))
    marks = []
    level = flow_classes(v, top)
    for origin, destination, volume, c in np.column_stack([o, d, v, level])[::-1].tolist():
        if not (np.isfinite(picture.lon[origin]) and np.isfinite(picture.lon[destination])):
            continue
        width = 0.8 + 6 * np.sqrt(max(volume, 0) / top)
        x0, y0, x1, y1 = x[origin], y[origin], x[destination], y[destination]
        if (x0, y0) == (x1, y1):
            marks.append(
                f'<circle class="f f{c}" cx="{x0}" cy="{y0}" r="{3 + width:.1f}" stroke-width="{width / 2:.1f}"/>'
            )
        else:
            # Bent to its right, so that both directions are visible.
            bx, by = (x0 + x1) / 2 - 0.15 * (y1 - y0), (y0 + y1) / 2 + 0.15 * (x1 - x0)
            marks.append(
                f'<path class="f f{c}" d="M{x0} {y0}Q{bx:.0f} {by:.0f} {x1} {y1}" stroke-width="{width:.1f}"/>'
            )
    return marks


def flow_classes(volume: Ints, top: float) -> Ints:
    """Return the class of color of each flow, where the largest has `top` trips: it grows with the square root of the volume."""
    share = np.sqrt(np.maximum(volume, 0) / max(top, 1.0))
    classes: Ints = np.minimum((FLOW_CLASSES * share).astype(np.int64), FLOW_CLASSES - 1)
    return classes


def flow_legend(volume: Ints) -> list[tuple[str, str]]:
    """Return the classes of color of some flows, each with its numbers of trips."""
    classes = class_legend("f", flow_classes(volume, float(volume.max(initial=1))), volume)
    return [(color, f"{label} trips") for color, label in classes]


def class_legend(prefix: str, classes: Ints, values: Ints) -> list[tuple[str, str]]:
    """Return the classes of color that occur, by the name of their style, each with the range of its values."""
    listed = []
    for c in np.unique(classes).tolist():
        least, most = int(values[classes == c].min()), int(values[classes == c].max())
        listed.append((f"{prefix}{c}", f"{least:,}" if least == most else f"{least:,}–{most:,}"))
    return listed


def bars(values: Sequence[float], labels: Sequence[str], title: str, x_title: str, y_title: str) -> str:
    """Return a bar chart with a label for each bar."""
    top = max([*values, 1])
    step = (_WIDTH - _LEFT - 8) / max(len(values), 1)
    every = -(-len(values) // 7)
    marks = _scale(top, y_title)
    for i, (value, label) in enumerate(zip(values, labels, strict=True)):
        height = (_HEIGHT - _BELOW - 36) * value / top
        left, low = _LEFT + i * step, _HEIGHT - _BELOW
        marks.append(
            f'<rect class="bar" x="{left + 0.08 * step:.1f}" y="{low - height:.1f}" width="{0.84 * step:.1f}" '
            f'height="{height:.1f}"><title>{escape(label)}: {value:,.0f}</title></rect>'
        )
        if i % every == 0:
            middle = min(left + step / 2, _WIDTH - 4.5 * len(label))  # so that no long label is cut off
            marks.append(f'<text x="{middle:.1f}" y="{low + 20}" text-anchor="middle">{escape(label)}</text>')
    return _chart(title, x_title, marks)


def line(values: Floats, labels: Sequence[str], title: str, x_title: str, y_title: str) -> str:
    """Return a line chart over time steps with gaps for missing values; a single value between gaps is a dot."""
    top = max(float(np.nanmax(values, initial=0)), 1.0)
    low, wide = _HEIGHT - _BELOW, _WIDTH - _LEFT - 8
    n = max(len(values) - 1, 1)
    points = [(_LEFT + wide * i / n, low - (low - 36) * v / top) for i, v in enumerate(values.tolist())]
    known = np.isfinite(values)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], known, [0]]).astype(np.int8))).reshape(-1, 2).tolist()
    marks = _scale(top, y_title)
    for first, last in zip([0, *(e for _, e in edges)], [*(b for b, _ in edges), len(values)], strict=True):
        if last > first:
            left, right = (_LEFT + wide * min(max(i, 0), n) / n for i in (first - 1, last))
            marks.append(f'<rect class="gap" x="{left:.1f}" y="36" width="{right - left:.1f}" height="{low - 36}"/>')
    for first, last in edges:
        run = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[first:last])
        dot = f'<circle class="dot" cx="{points[first][0]:.1f}" cy="{points[first][1]:.1f}" r="2.5"/>'
        marks.append(dot if last - first == 1 else f'<polyline class="line" points="{run}"/>')
    for i in sorted({0, len(labels) // 2, len(labels) - 1}) if len(labels) else []:
        anchor = "start" if i == 0 else "end" if i == len(labels) - 1 else "middle"
        marks.append(
            f'<text x="{_LEFT + wide * i / n:.1f}" y="{low + 20}" text-anchor="{anchor}">{escape(labels[i])}</text>'
        )
    return _chart(title, x_title, marks)


def _scale(top: float, title: str) -> list[str]:
    low = _HEIGHT - _BELOW
    marks = [f'<text x="4" y="17" class="axis">{escape(title)}</text>']
    for part in (0, 0.5, 1):
        y = low - (low - 36) * part
        marks.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>')
        if part:
            marks.append(f'<text x="{_LEFT - 6}" y="{y + 5:.1f}" text-anchor="end">{_short(top * part)}</text>')
    return marks


def _chart(title: str, x_title: str, marks: list[str]) -> str:
    name = f'<text class="axis" x="{(_WIDTH + _LEFT) / 2:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x_title)}</text>'
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}"><title>{escape(title)}</title>'
        f"{''.join(marks)}{name}</svg>"
    )


def _short(value: float) -> str:
    for least, sign in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= least:
            return f"{value / (1e3 if sign == ' k' else least):.3g}{sign}"
    return f"{value:,.3g}" if value < 10 else f"{value:,.0f}"


def histogram(
    title: str, values: Ints, axes: tuple[str, str, str], text: str, least: int = 1, times: Ints | None = None
) -> Figure:
    """Return a figure of bars by classes of growing width, from `least` on; a value counts `times` times.

    `axes` are the title of the drawing and those of both axes.
    """
    top = int(values.max(initial=least))
    cuts = [least]
    while cuts[-1] <= top:
        cuts.append(max(cuts[-1] + 1, round(cuts[-1] * 1.35)))
    counts, _ = np.histogram(values, np.array(cuts, np.float64) - 0.5, weights=times)
    labels = [f"{low:,}" if high - low == 1 else f"{low:,}–{high - 1:,}" for low, high in pairwise(cuts)]
    return Figure(title, bars(counts.tolist(), labels, *axes), text)
