"""Measure the size of the areas of published trips, on the ground and in tiles, at either end: MAO and MAD."""

from __future__ import annotations

from functools import partial
from typing import Literal

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows


def mean_size(compared: OdComparison, end: Literal["origin", "destination"], unit: Literal["km²", "tiles"]) -> Floats:
    """Return the mean size of the areas at one end over the trips in rows; NaN in km² where the tiles have no outlines."""
    release = compared.release
    sizes: Floats | Ints = release.areas.size if unit == "tiles" else release.areas.area_m2 / 1e6
    return ratio(compared.of_rows(sizes[getattr(release, end)] * release.volume), compared.published)


MEASURES = (
    Measure(
        "origin-area", "mean area of origins", "km²", "lower", Flows,
        partial(mean_size, end="origin", unit="km²"),
        "Area of the origin, mean over published trips; needs zones with outlines.", "MAO",
    ),
    Measure(
        "destination-area", "mean area of destinations", "km²", "lower", Flows,
        partial(mean_size, end="destination", unit="km²"),
        "Area of the destination, mean over published trips; needs zones with outlines.", "MAD",
    ),
    Measure(
        "origin-tiles", "mean size of origins", "tiles", "lower", Flows,
        partial(mean_size, end="origin", unit="tiles"),
        "Tiles of the origin, mean over published trips.",
    ),
    Measure(
        "destination-tiles", "mean size of destinations", "tiles", "lower", Flows,
        partial(mean_size, end="destination", unit="tiles"),
        "Tiles of the destination, mean over published trips.",
    ),
)  # fmt: skip
