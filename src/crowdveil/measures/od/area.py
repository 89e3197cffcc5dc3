"""Measure the size of the areas of published trips, on the ground and in tiles, at either end: MAO and MAD."""

from __future__ import annotations

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows


def origin_km2(compared: OdComparison) -> Floats:
    """Return MAO; NaN where the tiles have no outlines."""
    return _weighted(compared, compared.release.areas.area_m2[compared.release.origin] / 1e6)


def destination_km2(compared: OdComparison) -> Floats:
    """Return MAD; NaN where the tiles have no outlines."""
    return _weighted(compared, compared.release.areas.area_m2[compared.release.destination] / 1e6)


def origin_tiles(compared: OdComparison) -> Floats:
    """Return MAO in tiles."""
    return _weighted(compared, compared.origin_size)


def destination_tiles(compared: OdComparison) -> Floats:
    """Return MAD in tiles."""
    return _weighted(compared, compared.destination_size)


def _weighted(compared: OdComparison, size: Floats | Ints) -> Floats:
    """Return the mean of a size of each row over the trips in rows."""
    return ratio(compared.of_rows(size * compared.release.volume), compared.published)


MEASURES = (
    Measure(
        "origin-area", "mean area of origins", "km²", "lower", Flows, origin_km2,
        "Area of the origin, mean over published trips; needs zones with outlines.", "MAO",
    ),
    Measure(
        "destination-area", "mean area of destinations", "km²", "lower", Flows, destination_km2,
        "Area of the destination, mean over published trips; needs zones with outlines.", "MAD",
    ),
    Measure(
        "origin-tiles", "mean size of origins", "tiles", "lower", Flows, origin_tiles,
        "Tiles of the origin, mean over published trips.",
    ),
    Measure(
        "destination-tiles", "mean size of destinations", "tiles", "lower", Flows, destination_tiles,
        "Tiles of the destination, mean over published trips.",
    ),
)  # fmt: skip
