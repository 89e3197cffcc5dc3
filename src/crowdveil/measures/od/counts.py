"""Measure suppression, count areas and flows, and check the published confidence bounds of volumes."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows


def areas(compared: OdComparison) -> Floats:
    """Return the number of distinct areas at either end of the rows."""
    number = len(compared.release.areas)
    both = np.concatenate([compared.release.origin, compared.release.destination]).astype(np.int64)
    if compared.pooled:
        return np.array([len(np.unique(both))], np.float64)
    group, row = compared.row_groups
    ends_of_rows = both.reshape(2, -1)[:, row].reshape(-1)
    used = np.unique(np.tile(group, 2) * number + ends_of_rows)
    return np.bincount(used // max(number, 1), minlength=compared.groups).astype(np.float64)


def flows(compared: OdComparison) -> Floats:
    """Return the number of rows; a row that spans several time steps is one of each."""
    return compared.of_rows(np.ones(len(compared.release)) if compared.pooled else compared.release.steps_spanned)


def suppressed(compared: OdComparison) -> Floats:
    """Return S: the share of trips in no row."""
    if compared.release.intervals is not None and compared.row is not None:
        # Rows that span several time steps do not show how many of their trips are in each; the flows in them do.
        return ratio(compared.of_flows(np.where(compared.row < 0, compared.original.volume, 0)), compared.volume)
    return ratio(compared.volume - compared.published, compared.volume)


def coverage(compared: OdComparison) -> Floats:
    """Return the share of rows whose original volume lies within their bounds; NaN where rows overlap or have no bounds."""
    bounds = compared.release.bounds
    if bounds is None or compared.row is None:
        return np.full(compared.groups, np.nan)
    inside = compared.row >= 0
    true = np.bincount(compared.row[inside], compared.original.volume[inside], len(compared.release))
    holds = (bounds.low <= true) & (true <= bounds.high)
    return ratio(compared.of_rows(holds.astype(np.int64)), compared.of_rows(np.ones(len(holds), np.int64)))


def width(compared: OdComparison) -> Floats:
    """Return the mean distance of the two bounds of a row; NaN where rows have none."""
    bounds = compared.release.bounds
    if bounds is None:
        return np.full(compared.groups, np.nan)
    return ratio(compared.of_rows(bounds.high - bounds.low), compared.of_rows(np.ones(len(bounds.low), np.int64)))


MEASURES = (
    Measure(
        "areas", "distinct areas", "", "higher", Flows, areas,
        "Number of distinct areas that occur as an origin or a destination.",
    ),
    Measure("flows", "flows in the release", "", "higher", Flows, flows, "Number of rows, published or reported."),
    Measure(
        "suppressed", "share of trips suppressed", "", "lower", Flows, suppressed,
        "Share of the original trips that are in no row of the release.", "S",
    ),
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
