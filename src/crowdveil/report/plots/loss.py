"""Draw the information loss of releases: every measure has its own axis, so that no share stands next to a count."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.errors import InputError
from crowdveil.measures.base import Scores, shown
from crowdveil.report.plots.drawing import COLORS, INK, MUTED, Drawing, new_drawing

BEFORE = "#d55e00"


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


def measured_axes(found: Sequence[tuple[str, Sequence[Scores]]]) -> list[LossAxis]:
    """Return an axis for each measure that is defined for one of several releases, which are given by title.

    A measure with both sides has one axis for the original and the releases, and one for its relative changes.
    """
    axes: dict[str, LossAxis] = {}
    # Parts of a measure, such as classes of size, that are 0 or undefined in all releases are left out.
    used = {
        (_title(score), part)
        for _, scores in found
        for score in scores
        for part, _, mean, pooled in score.columns()
        if any(np.isfinite(value) and value != 0 for value in (mean, pooled))
    }
    for i, (release, scores) in enumerate(found):
        for score in scores:
            for part, _, mean, pooled in score.columns():
                if part and (_title(score), part) not in used:
                    continue
                axis = _axis_of(axes, score, part)
                if part == "original" and axis.bars and axis.bars[0].label == "original":
                    continue  # all releases have the same original
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


def _title(score: Scores) -> str:
    measure = score.measure
    parameters = score.asked.label.removeprefix(measure.name).replace(":", ", ")
    better = "" if measure.better == "neither" else f"; {measure.better} is better"
    symbol = f" {measure.symbol}" if measure.symbol else ""
    unit = f", {measure.unit}" if measure.unit else ""
    return f"{measure.title}{symbol}{parameters}{unit}{better}"


def manifest_axes(found: Sequence[tuple[str, Mapping[str, Any]]]) -> list[LossAxis]:
    """Return an axis for each number of the cost that the manifests of releases publish."""
    axes: dict[str, LossAxis] = {}
    for i, (release, numbers) in enumerate(found):
        for name, value in numbers.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                percent = name.endswith("_percent")
                title = name.removesuffix("_percent").replace("_", " ") + (", %" if percent else "")
                axis = axes.setdefault(title, LossAxis(title, "%" if percent else "", []))
                axis.bars.append(Bar(release, float(value), COLORS[i % len(COLORS)], text=f"{value:,}{' %' * percent}"))
    return list(axes.values())


def draw_loss(axes: Sequence[LossAxis], heading: str, notes: Sequence[str], *, confidential: bool) -> Drawing:
    """Draw the measures below one another, in two columns where there are many."""
    if not axes:
        raise InputError("loss", "no measure is defined, so there is nothing to draw.")
    columns = 1 if len(axes) < 6 else 2
    bars = max(len(axis.bars) for axis in axes)
    titles = [axis.title for axis in axes]
    size = 4.6, 0.3 + 0.2 * bars
    drawing = new_drawing(titles, heading, notes, confidential=confidential, size=size, columns=columns)
    for panel, axis in zip(drawing.panels, axes, strict=True):
        _draw_axis(panel, axis, bars)
    return drawing


def _draw_axis(panel: Any, axis: LossAxis, bars: int) -> None:
    values = [bar.value if np.isfinite(bar.value) else 0.0 for bar in axis.bars]
    drawn = panel.barh(range(len(values)), values, height=0.66, color=[bar.color for bar in axis.bars])
    texts = [bar.text or (shown(bar.value, axis.unit) if np.isfinite(bar.value) else "undefined") for bar in axis.bars]
    panel.bar_label(drawn, texts, padding=3, fontsize=7, color=INK)
    panel.margins(x=0.3)
    labels = [textwrap.fill(bar.label, 28, max_lines=2, placeholder="…") for bar in axis.bars]
    panel.set_yticks(range(len(labels)), labels, fontsize=7)
    panel.set_ylim(bars - 0.5, -0.5)
    panel.set_xticks([])
    panel.axvline(0, color=MUTED, linewidth=0.6)
    panel.spines[["top", "right", "bottom", "left"]].set_visible(False)
    panel.tick_params(length=0)
