"""Draw the information loss of releases: every measure has an axis of its own, so that no share stands next to a count."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.measures.base import Scores, shown
from crowdveil.report.plots.layout import CONFIDENTIAL, CONFIDENTIAL_COLOR, INK, MUTED, Layout

COLORS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444")
BEFORE = "#d55e00"
_WIDE, _LEFT, _BAR = 2.9, 1.75, 0.19


@dataclass(frozen=True)
class Bar:
    """A bar of a measure: its label, value and color, and its value as text where it is published."""

    label: str
    value: float
    color: str
    text: str = ""


@dataclass(frozen=True)
class LossAxis:
    """A measure with its own axis."""

    title: str
    unit: str
    bars: list[Bar]

    @property
    def height(self) -> float:
        """Height in inches, with its title."""
        return 0.26 + _BAR * len(self.bars) + 0.16 * len(textwrap.wrap(self.title, 52))


def measured_axes(found: Sequence[tuple[str, Sequence[Scores]]]) -> list[LossAxis]:
    """Return an axis for each measure of the scores of several releases, by title; what is defined for none is left out.

    A measure with both sides has one axis for the original and the releases, and one for its relative changes.
    """
    axes: dict[str, LossAxis] = {}
    for i, (release, scores) in enumerate(found):
        for score in scores:
            unused = _unused(found, _title(score))
            for part, _, mean, pooled in score.columns():
                if part and part in unused:
                    continue
                axis = _axis_of(axes, score, part)
                if part == "original" and axis.bars and axis.bars[0].label == "original":
                    continue  # it is the same for all releases
                label = "original" if part == "original" else _label(release, part, several=len(found) > 1)
                value = float(mean if np.isfinite(mean) else pooled)
                axis.bars.append(Bar(label, value, BEFORE if part == "original" else COLORS[i % len(COLORS)]))
    return [axis for axis in axes.values() if any(np.isfinite(bar.value) for bar in axis.bars)]


def _axis_of(axes: dict[str, LossAxis], score: Scores, part: str) -> LossAxis:
    title, unit = _title(score), score.measure.unit
    if "original" in score.measure.parts and part not in ("original", "released"):
        title, unit = f"{score.measure.title}: {part}, relative", ""
    return axes.setdefault(title, LossAxis(title, unit, []))


def _label(release: str, part: str, *, several: bool) -> str:
    if part in ("", "released", "change", "distance"):
        return release
    return f"{release}: {part}" if several else part


def _unused(found: Sequence[tuple[str, Sequence[Scores]]], title: str) -> set[str]:
    """Return the parts of a measure, such as classes of size, that are 0 or undefined in all releases."""
    parts: dict[str, bool] = {}
    for _, scores in found:
        for score in scores:
            if _title(score) == title:
                for part, _, mean, pooled in score.columns():
                    known = [v for v in (mean, pooled) if np.isfinite(v)]
                    parts[part] = parts.get(part, False) or any(value != 0 for value in known)
    return {part for part, used in parts.items() if not used}


def _title(score: Scores) -> str:
    measure = score.measure
    given = score.asked.label.removeprefix(measure.name).replace(":", ", ")
    better = "" if measure.better == "neither" else f"; {measure.better} is better"
    symbol = f" {measure.symbol}" if measure.symbol else ""
    unit = f", {measure.unit}" if measure.unit else ""
    return f"{measure.title}{symbol}{given}{unit}{better}"


def manifest_axes(found: Sequence[tuple[str, Mapping[str, Any]]]) -> list[LossAxis]:
    """Return an axis for each published number of the cost of several releases, as their manifests have them."""
    axes: dict[str, LossAxis] = {}
    for i, (release, numbers) in enumerate(found):
        for name, value in numbers.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                percent = name.endswith("_percent")
                title = name.removesuffix("_percent").replace("_", " ") + (", %" if percent else "")
                axis = axes.setdefault(title, LossAxis(title, "%" if percent else "", []))
                axis.bars.append(Bar(release, float(value), COLORS[i % len(COLORS)], text=f"{value:,}{' %' * percent}"))
    return list(axes.values())


def draw_loss(axes: Sequence[LossAxis], heading: str, notes: Sequence[str], *, confidential: bool) -> Layout:
    """Draw the measures below one another, in two columns where there are many."""
    columns = 1 if sum(axis.height for axis in axes) < 5 else 2
    filled: list[list[LossAxis]] = [[] for _ in range(columns)]
    used = [0.0] * columns
    half = sum(axis.height for axis in axes) / columns
    for axis in axes:
        column = 0 if columns == 1 or used[0] + axis.height / 2 <= half else 1
        filled[column].append(axis)
        used[column] += axis.height
    width = 0.15 + columns * (_LEFT + _WIDE + 0.55)
    lines = [line for note in notes for line in textwrap.wrap(note, int(18 * (width - 0.3)))]
    top = 0.45 + 0.3 * confidential
    height = top + max(used) + 0.15 + 0.15 * len(lines)
    figure = new_figure(width, height, arranged=False)
    if confidential:
        figure.text(
            0.15 / width,
            1 - 0.2 / height,
            CONFIDENTIAL,
            fontsize=9,
            color=CONFIDENTIAL_COLOR,
            weight="bold",
            va="center",
        )
    figure.text(0.15 / width, (height - top + 0.32) / height, heading, fontsize=11, color=INK, va="top")
    for i, line in enumerate(reversed(lines)):
        figure.text(0.15 / width, (0.08 + 0.15 * i) / height, line, fontsize=7.5, color=MUTED, va="bottom")
    panels = []
    for column, group in enumerate(filled):
        y = height - top
        for axis in group:
            y -= axis.height
            x = 0.15 + column * (_LEFT + _WIDE + 0.55) + _LEFT
            inches = (x, y + 0.1, _WIDE, _BAR * len(axis.bars))
            panels.append(figure.add_axes([v / s for v, s in zip(inches, (width, height) * 2, strict=True)]))
            _draw_axis(panels[-1], axis)
    return Layout(figure, panels, None, confidential, heading)


def _draw_axis(panel: Any, axis: LossAxis) -> None:
    values = [bar.value if np.isfinite(bar.value) else 0.0 for bar in axis.bars]
    panel.barh(range(len(values)), values, height=0.66, color=[bar.color for bar in axis.bars])
    low, high = min(0.0, *values), max(0.0, *values)
    span = (high - low) or 1.0
    panel.set_xlim(low - (0.3 * span if low < 0 else 0), high + 0.3 * span)
    for row, bar in enumerate(axis.bars):
        text = bar.text or (shown(bar.value, axis.unit) if np.isfinite(bar.value) else "undefined")
        side = -1 if values[row] < 0 else 1
        panel.annotate(
            text,
            (values[row], row),
            xytext=(3 * side, 0),
            ha="left" if side > 0 else "right",
            textcoords="offset points",
            fontsize=7,
            va="center",
            color=INK,
        )
    labels = [textwrap.shorten(bar.label, 32, placeholder="…") for bar in axis.bars]
    panel.set_yticks(range(len(labels)), labels, fontsize=7)
    panel.set_ylim(len(labels) - 0.5, -0.5)
    panel.set_xticks([])
    panel.axvline(0, color=MUTED, linewidth=0.6)
    title = "\n".join(textwrap.wrap(axis.title, 52))
    panel.set_title(title, fontsize=8, loc="left", x=-_LEFT / _WIDE + 0.02, color=INK, pad=4)
    panel.spines[["top", "right", "bottom", "left"]].set_visible(False)
    panel.tick_params(length=0, colors=MUTED)
