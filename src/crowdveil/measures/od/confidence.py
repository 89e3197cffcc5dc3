"""Measure the published confidence bounds of volumes: how often they hold, and how wide they are."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows


def coverage(compared: OdComparison) -> Floats:
    """Return the share of rows whose original volume lies within their bounds; NaN where rows overlap or have no bounds."""
    bounds = compared.release.bounds
    if bounds is None or compared.row is None:
        return np.full(compared.groups, np.nan)
    inside = compared.row >= 0
    true = np.bincount(compared.row[inside], compared.original.volume[inside], len(compared.release))
    held = (bounds.low <= true) & (true <= bounds.high)
    return ratio(compared.of_rows(held.astype(np.int64)), compared.of_rows(np.ones(len(held), np.int64)))


def width(compared: OdComparison) -> Floats:
    """Return the mean distance of the two bounds of a row; NaN where rows have none."""
    bounds = compared.release.bounds
    if bounds is None:
        return np.full(compared.groups, np.nan)
    return ratio(compared.of_rows(bounds.high - bounds.low), compared.of_rows(np.ones(len(bounds.low), np.int64)))


MEASURES = (
    Measure(
        "confidence-coverage", "share of volumes within their bounds", "", "higher", Flows, coverage,
        "Share of the rows whose original volume lies within their published confidence bounds (at least 0.95 is claimed of the "
        "trips that were kept; limits of trips per person lower it). Undefined where volumes have no bounds.",
    ),
    Measure(
        "confidence-width", "mean width of confidence bounds", "trips", "lower", Flows, width,
        "Distance of the upper and the lower confidence bound of a row, mean over rows. Undefined where volumes have no bounds.",
    ),
)  # fmt: skip
