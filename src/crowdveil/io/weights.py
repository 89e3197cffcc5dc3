"""Weights of trips: summed exactly, and rounded to whole trips once.

A weight is a whole number of units, so that sums do not depend on the order of rows or the number of threads. Flows are
rounded cumulatively (bucket rounding): inside a time step, the volumes of the flows up to any flow sum to the rounded sum of
their weights. So no flow, origin or time step is off by a whole trip.
"""

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
            f"{name}: the weights of a flow add up to more than {2**63 // WEIGHT_UNITS:,} trips; check their column."
        ) from None
    return units


def round_to_trips(units: Ints, starts: Ints) -> Ints:
    """Round weights of flows, sorted by time step with first rows `starts`, to whole trips; see the module."""
    whole, rest = np.divmod(units, WEIGHT_UNITS)
    # Fractions summed inside the step, plus half a trip, are carried to the next flow.
    so_far = np.cumsum(rest)
    before = np.repeat(so_far[starts] - rest[starts], np.diff(np.append(starts, len(units))))
    half = WEIGHT_UNITS // 2
    up_to = (so_far - before + half) // WEIGHT_UNITS
    up_to_last = (so_far - rest - before + half) // WEIGHT_UNITS
    trips: Ints = whole + up_to - up_to_last
    return trips
