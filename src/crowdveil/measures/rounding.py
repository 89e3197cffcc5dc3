"""Round figures of the original so that they can be published."""

from __future__ import annotations

import math

import numpy as np

from crowdveil.model.arrays import Floats, Ints

DEFAULT_K = 10
"""The group size of figures of methods without k."""
QUANTILES = {"low": 0.1, "middle": 0.5, "high": 0.9}


def round_down_to_groups(number: int, k: int | None) -> int:
    """Return a number of people, rounded down to two digits, and to steps of at least k: 2, 5, 10, 20, 50, ….

    The rounded number may show that some people are suppressed, but then they may be k or more; and if it shows that fewer
    than k are suppressed, there may be none. So it never shows a group of 1 to k − 1 people. For that a step divides the next
    larger ones: no interval of numbers that are rounded alike is shorter than k.
    """
    step = max(_step_of(k or DEFAULT_K), int(10 ** max(len(str(number)) - 2, 0)))
    return number // step * step


def _step_of(k: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, … that is at least k."""
    power = int(10 ** (len(str(k)) - 1))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= k)


def round_share(part: float, whole: float, k: int | None) -> int:
    """Return a share in percents, in steps of 1, 2, 5, 10, 20, 50 or 100: of the first that is at least k.

    An adversary who knows how many are published knows from a share how many are suppressed, up to the step. Each step above 0
    has numbers of k or more, so that a share never shows that 1 to k − 1 are suppressed.
    """
    if whole <= 0:
        return 0
    step = share_step(whole, k)
    return step * math.floor(100 * part / (whole * step) + 0.5)


def share_step(whole: float, k: int | None) -> int:
    """Return the step in which `round_share` gives shares."""
    return next((step for step in (1, 2, 5, 10, 20, 50) if step * whole >= 100 * (k or DEFAULT_K)), 100)


def two_digits(value: float) -> float:
    """Round to two significant digits; numbers of 10 or more are whole."""
    if value == 0 or not math.isfinite(value):
        return 0.0
    return round(value, 1 - math.floor(math.log10(abs(value))))


def group_quantiles(values: Floats, person: Ints, k: int | None) -> dict[str, float | None]:
    """Return the 10 %, 50 % and 90 % quantiles of values, rounded to two digits.

    A quantile is given only if the values up to it are of at least k people, and those from it on too; None otherwise.
    """
    return {name: _quantile(values, person, share, k or DEFAULT_K) for name, share in QUANTILES.items()}


def _quantile(values: Floats, person: Ints, share: float, k: int) -> float | None:
    if not len(values):
        return None
    place = max(math.ceil(share * len(values)) - 1, 0)
    value = np.partition(values, place)[place]
    sides = person[values <= value], person[values >= value]
    return two_digits(float(value)) if min(_count_people(side) for side in sides) >= k else None


def _count_people(person: Ints) -> int:
    seen = np.zeros(int(person.max(initial=-1)) + 1, np.bool_)
    seen[person] = True
    return int(seen.sum())
