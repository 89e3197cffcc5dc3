"""Map layers as data for the page; `web/src` draws them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from crowdveil.measures.rounding import two_digits
from crowdveil.model.arrays import Floats, Ints
from crowdveil.report.flow_picture import FlowPicture
from crowdveil.report.shapes import PictureFrame

MAX_TILES = 400_000
"""Tiles of all areas up to which the page contains them, for the profile of a zone."""
SIZES = ((1, 2, 3, 5, 9, 17, 33), ("1", "2", "3–4", "5–8", "9–16", "17–32", "33 and more"))
SHARES = (
    (0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85),
    ("below 10 %", "10–25 %", "25–40 %", "40–55 %", "55–70 %", "70–85 %", "85–100 %"),
)


@dataclass(frozen=True, eq=False)
class Shade:
    """Classes of areas by a number, at most seven.

    Attributes
    ----------
    name, title
        For the page and for readers.
    values
        Value of each area; NaN if it has none.
    least, labels
        Lower bound of each class, ascending, and its label.
    """

    name: str
    title: str
    values: Floats
    least: Sequence[float]
    labels: Sequence[str]

    @property
    def classes(self) -> Ints:
        """Class of each area; -1 if it has no value."""
        with np.errstate(invalid="ignore"):
            found = np.searchsorted(np.asarray(self.least, np.float64), self.values, side="right") - 1
        return np.where(np.isfinite(self.values), np.maximum(found, 0), -1)

    @property
    def uniform(self) -> str:
        """The label of the class of all areas; empty if there are several classes, or none."""
        occur = np.unique(self.classes[self.classes >= 0])
        return self.labels[occur[0]] if len(occur) == 1 else ""

    def as_json(self) -> dict[str, Any]:
        """Return the shade as data for the page."""
        return {"name": self.name, "title": self.title, "labels": list(self.labels), "least": list(map(float, self.least)),
                "classes": self.classes.tolist()}  # fmt: skip


def by_size(name: str, title: str, values: Floats) -> Shade:
    """Return classes of numbers of tiles: usual ones, unless nearly all areas would be in one of them."""
    shade = Shade(name, title, np.round(values), *SIZES)
    return shade if _is_varied(shade) else _by_own_values(shade, values, lambda value: f"{value:,.3g}")


def by_share(name: str, title: str, values: Floats) -> Shade:
    """Return classes of percents: usual ones, unless nearly all areas would be in one of them."""
    shade = Shade(name, title, values, *SHARES)
    return shade if _is_varied(shade) else _by_own_values(shade, values, lambda value: f"{100 * value:.3g} %")


def _is_varied(shade: Shade) -> bool:
    """Return whether no class has more than nine in ten of the areas."""
    classes = shade.classes[shade.classes >= 0]
    return not len(classes) or float(np.bincount(classes).max()) <= 0.9 * len(classes)


def _by_own_values(usual: Shade, values: Floats, text: Callable[[float], str]) -> Shade:
    """Return classes with about equally many different values; the usual ones if there are too few values."""
    known = np.unique([two_digits(float(v)) for v in values[np.isfinite(values)]])
    if len(known) < 2:
        return usual
    least = [float(v) for v in np.unique(np.quantile(known, np.arange(7) / 7, method="inverted_cdf"))]
    labels = [f"{text(low)}–{text(high)}" for low, high in pairwise(least)]
    last = text(least[-1]) if least[-1] == known[-1] else f"{text(least[-1])} and more"
    return Shade(usual.name, usual.title, values, least, [*labels, last])


def by_rank(name: str, title: str, values: Floats, low: int) -> Shade:
    """Return classes with about equally many areas; only the first is of values below `low`, the smallest published flow."""
    known = values[np.isfinite(values)]
    if not len(known):
        return Shade(name, title, values, (0.0,), ("none",))
    cuts = [_round(float(v)) for v in np.quantile(known, np.arange(1, 7) / 7)]
    least = list(dict.fromkeys([0.0, *(c for c in cuts if c >= low)]))
    if len(least) == 1:
        return Shade(name, title, values, least, (f"up to {known.max():,.0f}",))
    labels = [f"{low:,.0f}–{high:,.0f}" for low, high in pairwise(least[1:])]
    return Shade(name, title, values, least, [f"below {least[1]:,.0f}", *labels, f"{least[-1]:,.0f} and more"])


def _round(value: float) -> float:
    """Round to two significant digits."""
    if value < 1:
        return 0.0
    scale = 10 ** max(int(np.floor(np.log10(value))) - 1, 0)
    return float(round(value / scale) * scale)


def differences(values: Ints) -> list[int]:
    """Return the first value and the differences of successive ones, which are shorter as text; `web/src` adds them up."""
    steps: list[int] = np.diff(values, prepend=0).tolist()
    return steps


def flow_layer(picture: FlowPicture, frame: PictureFrame, shades: Sequence[Shade]) -> dict[str, Any]:
    """Return areas and flows as data for the page."""
    snapped = picture.rings.fitted(frame)
    x, y = frame.to_cells(
        *(np.nan_to_num(c, nan=v) for c, v in ((picture.lon, frame.west), (picture.lat, frame.north)))
    )
    per_step = np.bincount(picture.step, minlength=max(len(picture.labels), 1))
    layer = {
        "areas": picture.names,
        "sizes": picture.size.tolist(),
        "x": differences(x),
        "y": differences(y),
        "rings": snapped.rings.tolist(),
        "corners": snapped.corners.tolist(),
        "cx": differences(snapped.x),
        "cy": differences(snapped.y),
        "steps": picture.labels,
        "rows": per_step.tolist(),
        "origin": differences(picture.origin),
        "destination": differences(picture.destination),
        "volume": picture.volume.tolist(),
        "shades": [shade.as_json() for shade in shades],
    }
    if len(picture.tiles) <= MAX_TILES:
        layer["tiles"] = differences(picture.tiles)
    return layer
