"""Read weights of trips as whole numbers of units, so that sums depend neither on the order of rows nor on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.flows import WEIGHT_UNITS

MAX_WEIGHT = 10**9
"""Largest weight of a trip."""
SUMS = pa.decimal128(38, 0)
"""Type of sums of weights; they cannot overflow."""


def find_unusable_weights(weight: Floats) -> dict[str, Mask]:
    """Return which weights are unusable, by a reason that follows "rows that"."""
    tiny = (weight > 0) & (np.rint(weight * WEIGHT_UNITS) == 0)
    return {
        f"are above {MAX_WEIGHT:,}": weight > MAX_WEIGHT,
        f"are above zero but below {1 / WEIGHT_UNITS:.9f}": tiny,
    }


def to_weight_units(weight: Floats) -> Ints:
    """Return weights as whole numbers of units; unusable ones are 0."""
    usable = np.where((weight >= 0) & (weight <= MAX_WEIGHT), weight, 0.0)
    units: Ints = np.rint(usable * WEIGHT_UNITS).astype(np.int64)
    return units


def read_weight_sums(column: Any, name: str) -> Ints:
    """Return sums of weights from a column of DuckDB, in units."""
    try:
        units: Ints = column.cast(SUMS).cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise InputError(
            name, f"the weights of a flow add up to more than {2**63 // WEIGHT_UNITS:,} trips. Check their column."
        ) from None
    return units
