"""Count areas and flows of a release, and its volume by the size of areas."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows

SIZES = ("1", "2", "3-5", "6-10", "11-100", "101-1000", "over 1000")
_LARGEST = np.array([1, 2, 5, 10, 100, 1000])


def areas(compared: OdComparison) -> Floats:
    """Return the number of distinct areas at either end of the rows."""
    number = len(compared.release.areas)
    both = np.concatenate([compared.release.origin, compared.release.destination]).astype(np.int64)
    if compared.pooled:
        ends = compared.of_steps(np.bincount(both, minlength=number)[np.newaxis].astype(np.float64))
        return np.asarray(np.count_nonzero(ends, axis=1), np.float64)
    group, row = compared.row_groups
    ends_of_rows = both.reshape(2, -1)[:, row].reshape(-1)
    used = np.unique(np.tile(group, 2) * number + ends_of_rows)
    return np.bincount(used // max(number, 1), minlength=compared.groups).astype(np.float64)


def flows(compared: OdComparison) -> Floats:
    """Return the number of rows; a row that spans several time steps is one of each."""
    return compared.of_rows(np.ones(len(compared.release)) if compared.pooled else compared.release.steps_spanned)


def by_size(compared: OdComparison, end: Literal["origin", "destination"]) -> Floats:
    """Return the share of the published trips by the tiles of one of their ends."""
    column = np.searchsorted(_LARGEST, compared.origin_size if end == "origin" else compared.destination_size)
    shares = [ratio(compared.of_rows(np.where(column == i, compared.release.volume, 0)), compared.published)
              for i in range(len(SIZES))]  # fmt: skip
    return np.column_stack(shares)


MEASURES = (
    Measure(
        "areas", "distinct areas", "", "higher", Flows, areas,
        "Number of distinct areas that occur as an origin or a destination.",
    ),
    Measure("flows", "flows in the release", "", "higher", Flows, flows, "Number of rows, published or reported."),
    Measure(
        "volume-by-origin-size", "trips by tiles of origin", "", "neither", Flows, partial(by_size, end="origin"),
        "Share of the published trips whose origin has this number of tiles.", parts=SIZES,
    ),
    Measure(
        "volume-by-destination-size", "trips by tiles of destination", "", "neither", Flows,
        partial(by_size, end="destination"),
        "Share of the published trips whose destination has this number of tiles.", parts=SIZES,
    ),
)  # fmt: skip
