"""Measure the similarity of the original and the reconstruction, as in transport research: CPC, cosine, Jensen-Shannon."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows


def common_part(compared: OdComparison) -> Floats:
    """Return CPC: 2 Σ min(v, ṽ) / (Σ v + Σ ṽ)."""
    common = compared.of_flows(np.minimum(compared.original.volume, compared.rebuilt))
    return ratio(2 * common, np.where(compared.volume > 0, compared.volume + compared.published, 0))


def cosine_distance(compared: OdComparison) -> Floats:
    """Return 1 − v·ṽ / (‖v‖ ‖ṽ‖)."""
    volume = compared.original.volume.astype(np.float64)
    product = compared.of_flows(volume * compared.rebuilt)
    squares = compared.of_flows(volume**2) * compared.squares
    return np.maximum(1 - ratio(product, np.sqrt(squares)), 0.0)


def jensen_shannon(compared: OdComparison) -> Floats:
    """Return √ of the Jensen-Shannon divergence of the two distributions, in bits, between 0 and 1."""
    p, q = compared.volume_share, compared.rebuilt_share
    filled = compared.of_flows(_towards(p, q) + _towards(q, p))
    # A cell without an original trip adds half of its reconstructed share: log₂ 2 = 1.
    empty = ratio(compared.outside, compared.published) / 2
    return np.sqrt(np.where(compared.volume > 0, np.maximum(filled + empty, 0.0), np.nan))


def _towards(p: Floats, q: Floats) -> Floats:
    """Return ½ p log₂(p / m), m the middle of p and q; 0 where p is 0."""
    quotient = np.where(p > 0, 2 * p / (p + q), 1.0)
    divergence: Floats = p / 2 * np.log2(quotient)
    return divergence


MEASURES = (
    Measure(
        "common-part", "common part of commuters", "", "higher", Flows, common_part,
        "Share of trips that the original and the reconstruction have in common; 1 where they are equal, 0 where they share "
        "no pair of tiles.", "CPC",
    ),
    Measure(
        "cosine-distance", "cosine distance", "", "lower", Flows, cosine_distance,
        "One minus the cosine between the original and the reconstructed matrix; from 0, proportional, to 1, nothing in common.",
    ),
    Measure(
        "jensen-shannon", "Jensen-Shannon distance", "", "lower", Flows, jensen_shannon,
        "Square root of the Jensen-Shannon divergence (base 2) of the original and the reconstructed shares; from 0, "
        "equal, to 1, nothing in common.", "JS",
    ),
)  # fmt: skip
