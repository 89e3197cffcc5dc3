"""Measure the share of suppressed trips: S."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows


def suppressed(compared: OdComparison) -> Floats:
    """Return S: the share of trips in no row."""
    if compared.release.intervals is not None and compared.row is not None:
        # Rows that span several time steps do not show how many of their trips are in each; the flows in them do.
        return ratio(compared.of_flows(np.where(compared.row < 0, compared.original.volume, 0)), compared.volume)
    return ratio(compared.volume - compared.published, compared.volume)


MEASURES = (
    Measure(
        "suppressed", "share of trips suppressed", "", "lower", Flows, suppressed,
        "Share of the original trips that are in no row of the release.", "S",
    ),
)  # fmt: skip
