"""Weights of trips as they are read: whole numbers of units, so that sums depend neither on the order of rows nor on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.flows import WEIGHT_UNITS

MOST = 10**9
"""Largest weight of a trip."""
SUMS = pa.decimal128(38, 0)
"""A type that holds sums of weights, whatever is added up."""


def unusable(weight: Floats) -> dict[str, Mask]:
    """Which weights cannot be used, by the reason as it follows "rows that"."""
    tiny = (weight > 0) & (np.rint(weight * WEIGHT_UNITS) == 0)
    return {
        f"are above {MOST:,}": weight > MOST,
        f"are above zero but below {1 / WEIGHT_UNITS:.9f}": tiny,
    }


def in_units(weight: Floats) -> Ints:
    """Weights as whole numbers of units; those that cannot be used are 0."""
    usable = np.where((weight >= 0) & (weight <= MOST), weight, 0.0)
    units: Ints = np.rint(usable * WEIGHT_UNITS).astype(np.int64)
    return units


def summed(column: Any, name: str) -> Ints:
    """Sums of weights as the engine gives them."""
    try:
        units: Ints = column.cast(SUMS).cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise InputError(
            name, f"the weights of a flow add up to more than {2**63 // WEIGHT_UNITS:,} trips; check their column."
        ) from None
    return units
