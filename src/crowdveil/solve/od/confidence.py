"""Confidence bounds of noisy volumes that are published only from a threshold on."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.release import VolumeBounds

_CAUTION = 1e-9
"""Share by which chances may be rounded: bounds become wider, never narrower."""


def volume_bounds(volume: Ints, rate: float, threshold: int, beyond: float) -> VolumeBounds:
    """Return bounds of the true volume of each published row; both hold with probability at least 1 - `beyond`.

    Noise x has a chance that falls with exp(-|x| rate), and a noisy volume is published from `threshold` on. The chance is that
    among published volumes, for any true volume: one is within the bounds if a published volume as large as this one, and one as
    small, both have a chance above beyond / 2. They depend on the noisy volume, the noise and the threshold alone.
    """
    distinct, place = np.unique(volume, return_inverse=True)
    least = beyond / 2 * (1 - _CAUTION)
    width = math.ceil(-math.log(least) / rate) + 1

    def is_not_too_small(true: Ints) -> Mask:
        return _above(distinct - true, threshold - true, rate) > least

    def is_not_too_large(true: Ints) -> Mask:
        return 1 - _above(distinct + 1 - true, threshold - true, rate) > least

    # Both are monotone in the true volume. A volume that the noise has pushed just above the threshold is its own upper bound.
    low = _first(is_not_too_small, np.zeros(len(distinct), np.int64), distinct)
    high = _first(lambda true: ~is_not_too_large(true), distinct + 1, distinct + width) - 1
    return VolumeBounds(low[place], np.maximum(high, distinct)[place])


def _above(wanted: Ints, known: Ints, rate: float) -> Floats:
    """Return the chance that noise is at least `wanted`, given that it is at least `known`, which is not above it."""
    alpha = math.exp(-rate)

    def tail(x: Ints) -> Floats:
        half: Floats = np.exp(-rate * np.where(x > 0, x, 1 - x)) / (1 + alpha)
        return np.where(x > 0, half, 1 - half)

    # Beyond 0 noise has no memory, and both chances may be too small for a float.
    chance: Floats = np.where(known > 0, np.exp(-rate * (wanted - known)), tail(wanted) / np.maximum(tail(known), 0.1))
    return chance


def _first(holds: Callable[[Ints], Mask], low: Ints, high: Ints) -> Ints:
    """Return the first whole number from `low` to `high` for which a condition holds that holds for all larger ones."""
    low, high = low.copy(), high.copy()
    while np.any(low < high):
        middle = (low + high) // 2
        found = holds(middle)
        low, high = np.where(found, low, np.minimum(middle + 1, high)), np.where(found, middle, high)
    return low
