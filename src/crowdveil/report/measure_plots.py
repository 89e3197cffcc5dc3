"""Plot of a measurement as PNG. Needs matplotlib, which is imported for the plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.measures.base import Scores, shown

ORIGINAL, RELEASED = "#d55e00", "#0072b2"
Bar = tuple[str, float]


def draw(found: Sequence[Scores], file: Path) -> None:
    """Draw bars of the measures, a panel per unit; measures with both sides show the release as a share of the original."""
    panels, sides = _panels(found)
    heights = [*(len(bars) for bars in panels.values()), *([len(sides)] if sides else [])]
    figure = new_figure(7.5, 0.5 + sum(0.55 + 0.27 * height for height in heights))
    axes = np.atleast_1d(figure.subplots(len(heights), 1, height_ratios=[height + 1.2 for height in heights]))
    for axis, (unit, bars) in zip(axes, panels.items(), strict=False):
        _bars(axis, bars, unit)
    if sides:
        _both_sides(axes[-1], sides)
    figure.savefig(file)


def _panels(found: Sequence[Scores]) -> tuple[dict[str, list[Bar]], list[tuple[str, float, float]]]:
    """Return bars by unit, and (title, original, released) of measures with both sides."""
    panels: dict[str, list[Bar]] = {}
    sides = []
    for scores in found:
        measure = scores.measure
        title = measure.title + scores.asked.label.removeprefix(measure.name).replace(":", ", ")
        if measure.parts[:2] == ("original", "released"):
            sides.append((title, float(scores.pooled[0]), float(scores.pooled[1])))
            continue
        for part, _, mean, _ in scores.columns():
            panels.setdefault(measure.unit, []).append((f"{title}: {part}" if part else title, mean))
    return panels, sides


def _bars(axis: Any, bars: list[Bar], unit: str) -> None:
    values = [value if np.isfinite(value) else 0.0 for _, value in bars]
    drawn = axis.barh(range(len(bars)), values, height=0.6, color=RELEASED)
    axis.bar_label(drawn, [shown(value, unit) for _, value in bars], padding=3, fontsize=8)
    axis.set_title(unit or "shares and other numbers", fontsize=9, loc="left")
    axis.margins(x=0.15)
    _rows(axis, [title for title, _ in bars])


def _both_sides(axis: Any, sides: list[tuple[str, float, float]]) -> None:
    ratios = [released / original if original > 0 else np.nan for _, original, released in sides]
    axis.axvline(1, color=ORIGINAL, linewidth=1.2, label="original")
    axis.plot(ratios, range(len(sides)), "o", color=RELEASED, label="release")
    for ratio, (row, (_, original, released)) in zip(ratios, enumerate(sides), strict=True):
        if np.isfinite(ratio):
            text = f"{shown(released, '')} of {shown(original, '')}"
            axis.annotate(text, (ratio, row), xytext=(5, 3), textcoords="offset points", fontsize=8)
    axis.set_title("release as a share of the original", fontsize=9, loc="left")
    axis.set_xlim(left=0)
    axis.margins(x=0.25)
    _rows(axis, [title for title, *_ in sides])


def _rows(axis: Any, titles: list[str]) -> None:
    axis.set_yticks(range(len(titles)), titles, fontsize=8)
    axis.set_ylim(len(titles) - 0.4, -0.6)
    axis.tick_params(axis="x", labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
