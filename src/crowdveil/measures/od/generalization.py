"""Measure how coarse areas are: in tiles (Ḡ, and the sums G and G_δ that methods minimize), and on the ground (MAO, MAD)."""

from __future__ import annotations

from pydantic import Field

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.params import Params


class CostParams(Params):
    """Parameters of the generalization error with suppressed trips."""

    delta: float = Field(0.01, ge=0, le=1)
    """Cost of a suppressed trip, as a share of one generalized to the whole map at both ends; 1 counts it as such a trip."""


def total(compared: OdComparison) -> Floats:
    """Return Σ (|o| + |d|) v over the rows."""
    return compared.of_rows((compared.origin_size + compared.destination_size) * compared.release.volume)


def mean(compared: OdComparison) -> Floats:
    """Return G of a published trip."""
    return ratio(total(compared), compared.published)


def with_suppressed(compared: OdComparison, params: CostParams) -> Floats:
    """Return G, and 2δ|U| for each suppressed trip."""
    suppressed = compared.volume - compared.published
    return total(compared) + 2 * params.delta * len(compared.original.zones) * suppressed


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
        "generalization", "mean generalization error", "tiles", "lower", Flows, mean,
        "Tiles of the origin and of the destination together, mean over published trips; 2 means single tiles.", "Ḡ",
    ),
    Measure(
        "generalization-total", "total generalization error", "tiles × trips", "lower", Flows, total,
        "Tiles of the origin and of the destination together, summed over published trips.", "G",
    ),
    Measure(
        "generalization-cost", "generalization error with suppressed trips", "tiles × trips", "lower", Flows,
        with_suppressed,
        "The total generalization error, and for each suppressed trip the share delta of that of a trip from the whole map to "
        "the whole map.", "G_δ", params=CostParams,
    ),
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
