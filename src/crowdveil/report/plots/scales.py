"""Scales of pictures: one for all panels, so that original and release are comparable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.model.arrays import Floats
from crowdveil.report.plots.layout import INK, MUTED, round_length

MAP_COLORS = "viridis_r"
LIGHTEST = 0.18
"""Where the scale of colors begins: lighter colors are hard to see on white."""
WIDEST, THINNEST, CIRCLE = 5.0, 0.5, 2.8
"""Widths of the largest and of the smallest flow in points, and the diameter of a circle in widths of its flow."""


def colors_of(share: Floats) -> Any:
    """Return colors of shares from 0 (light) to 1 (dark); equal steps look equal."""
    from matplotlib import colormaps

    return colormaps[MAP_COLORS](LIGHTEST + (1 - LIGHTEST) * np.clip(share, 0, 1))


@dataclass(frozen=True)
class VolumeScale:
    """Width, color and opacity of flows from the least to the largest volume; `whole` where all volumes are whole numbers."""

    low: float
    high: float
    whole: bool = False
    """Whether the volumes are whole numbers, so that a legend has no fractions."""

    @classmethod
    def of(cls, *volumes: Any) -> VolumeScale:
        """Return the scale of the volumes of all panels."""
        values = np.concatenate([np.asarray(v, np.float64) for v in volumes])
        values = values[np.isfinite(values) & (values > 0)]
        if not len(values):
            return cls(1.0, 1.0)
        return cls(float(values.min()), float(values.max()), bool(np.all(values == np.round(values))))

    def share(self, volume: Any) -> Floats:
        """Return the position of volumes on the logarithmic scale, from 0 to 1."""
        if self.high <= self.low:
            return np.ones(np.shape(volume))
        share: Floats = np.log(np.maximum(volume, self.low) / self.low) / np.log(self.high / self.low)
        return np.clip(share, 0, 1)

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

    def ticks(self, most: int = 5) -> list[float]:
        """Return round volumes from the smallest to the largest, for a legend."""
        return round_numbers(self.low, self.high, most, least_step=1.0 if self.whole else 0.0)


def round_numbers(low: float, high: float, most: int, least_step: float = 0.0) -> list[float]:
    """Return two to `most` round numbers between two numbers, by powers of ten or, in a narrow range, by equal steps.

    Equal steps are at least `least_step` long.
    """
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    found = [step * 10.0**p for p in range(first, last + 1) for step in (1, 2, 5)]
    found = [value for value in found if low * 0.9999 <= value <= high * 1.0001]
    if len(found) < 4 and high > low:
        step = max(round_length((high - low) / 2.5), least_step)
        found = _multiples(low, high, step)
        if len(found) < 3:
            found = _multiples(low, high, max(round_length(step / 2), least_step))
    if len(found) < 2:
        return sorted({low, high})
    chosen = np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).round().astype(int))
    return [found[i] for i in chosen]


def _multiples(low: float, high: float, step: float) -> list[float]:
    """Return the multiples of a step between two numbers."""
    steps = np.arange(np.ceil(low / step - 1e-6), np.floor(high / step + 1e-6) + 1) * step
    return [float(f"{value:.6g}") for value in steps]


def number(value: float) -> str:
    """Return a number as text with at most three digits after the point."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:,.3g}"


def color_bar(axis: Any, scale: VolumeScale, title: str, *, none: str = "") -> None:
    """Draw a scale of colors into a legend's axis, in inches; `none` explains the neutral color."""
    top = axis.get_ylim()[1] - 0.05
    for i, line in enumerate(title.split("\n")):
        axis.text(0.05, top - 0.14 * i, line, fontsize=7.5, color=INK, va="top")
    top -= 0.14 * title.count("\n") + 0.3
    height = min(1.7, top - 0.9)
    shade = colors_of(np.linspace(0, 1, 128))[:, None, :]
    axis.imshow(shade, extent=(0.05, 0.23, top - height, top), origin="lower", aspect="auto", interpolation="nearest")
    for value in scale.ticks():
        y = top - height + height * float(scale.share(value))
        axis.plot([0.23, 0.28], [y, y], color=MUTED, linewidth=0.7)
        axis.text(0.33, y, number(value), fontsize=7.5, color=INK, va="center")
    if none:
        swatch(axis, top - height - 0.28, none)


def swatch(axis: Any, y: float, text: str, color: Any = "#e3e7ea") -> None:
    """Draw a box of a color with its meaning into a legend's axis, in inches."""
    from matplotlib.patches import Rectangle

    axis.add_patch(Rectangle((0.05, y - 0.07), 0.18, 0.14, facecolor=color, edgecolor="#9aa3ab", linewidth=0.5))
    for i, line in enumerate(text.split("\n")):
        axis.text(0.33, y - 0.13 * i, line, fontsize=7.5, color=INK, va="center")
