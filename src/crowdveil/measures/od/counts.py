"""Count areas and flows of a release."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows


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


MEASURES = (
    Measure(
        "areas", "distinct areas", "", "higher", Flows, areas,
        "Number of distinct areas that occur as an origin or a destination.",
    ),
    Measure("flows", "flows in the release", "", "higher", Flows, flows, "Number of rows, published or reported."),
)  # fmt: skip
