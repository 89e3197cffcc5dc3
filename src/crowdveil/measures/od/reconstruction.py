"""Compare the original cells with a release whose rows are spread evenly over their cells: E and D."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows


def error(compared: OdComparison) -> Floats:
    """Return E: Σ |ṽ − v| / Σ v over all cells."""
    if compared.row is None:
        filled = compared.of_flows(np.abs(compared.original.volume - compared.rebuilt))
    else:
        filled = compared.of_differences(compared.original.volume, compared.level)
    return ratio(filled + compared.outside, compared.volume)


def distance(compared: OdComparison) -> Floats:
    """Return D: Σ |ṽ / Σ ṽ − v / Σ v| over all cells."""
    if compared.level_share is None:
        filled = compared.of_flows(np.abs(compared.rebuilt_share - compared.volume_share))
    else:
        filled = compared.of_differences(compared.volume_share, compared.level_share)
    # Where nothing is published there is no distribution to compare with.
    empty = ratio(compared.outside, compared.published)
    return np.where(compared.volume > 0, filled + empty, np.nan)


MEASURES = (
    Measure(
        "reconstruction-error", "reconstruction error", "", "lower", Flows, error,
        "Sum over all pairs of tiles of the difference between the original volume and that of its row spread evenly over "
        "the row's pairs, in original trips. At most 2; plain suppression has the share suppressed.", "E",
    ),
    Measure(
        "distribution-distance", "distribution distance", "", "lower", Flows, distance,
        "The same between shares of the original trips and shares of the published trips, so that suppression alone does "
        "not count. At most 2; plain suppression has twice the share suppressed.", "D",
    ),
)  # fmt: skip
