"""Measure generalization in tiles: Ḡ, and the sum G_δ that methods minimize."""

from __future__ import annotations

from pydantic import Field

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
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
    """Return G plus 2δ|U| for each suppressed trip."""
    suppressed = compared.volume - compared.published
    return total(compared) + 2 * params.delta * len(compared.original.zones) * suppressed


MEASURES = (
    Measure(
        "generalization", "mean generalization error", "tiles", "lower", Flows, mean,
        "Tiles of the origin and of the destination together, mean over published trips; 2 means single tiles.", "Ḡ",
    ),
    Measure(
        "generalization-cost", "generalization error with suppressed trips", "tiles × trips", "lower", Flows,
        with_suppressed,
        "Tiles of the origin and of the destination together, summed over published trips, and for each suppressed trip the "
        "share delta of that of a trip from the whole map to the whole map.", "G_δ", params=CostParams,
    ),
)  # fmt: skip
