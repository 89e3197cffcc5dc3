"""Exact comparisons of q·A + p·S in 128 bits: costs of large maps times volumes of large matrices do not fit into 64."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel

LOW = 2**32 - 1


@kernel
def sign_at(p: int, q: int, a: int, s: int) -> int:
    """Return the sign of q·a + p·s, that of a difference of costs `a` and of suppressed volumes `s` at the multiplier p/q.

    All four are numbers of 64 bits with a sign; they are multiplied by hand, in digits of 32 bits. The result is exact for any
    of them except four times −2⁶³.
    """
    top, middle, low = 0, 0, 0
    for x, y in ((p, s), (q, a)):
        x_high, x_low, y_high, y_low = x >> 32, x & LOW, y >> 32, y & LOW
        first, second = x_high * y_low, x_low * y_high
        last = np.uint64(x_low) * np.uint64(y_low)
        top += x_high * y_high + (first >> 32) + (second >> 32)
        middle += (first & LOW) + (second & LOW) + int(np.int64(last >> np.uint64(32)))
        low += int(np.int64(last & np.uint64(LOW)))
    middle += low >> 32
    top += middle >> 32
    if top != 0:
        return 1 if top > 0 else -1
    return 1 if (middle | low) & LOW else 0


@kernel
def is_below(p: int, q: int, other_p: int, other_q: int) -> bool:
    """Return whether the multiplier p/q is below the other; a denominator of 0 is an infinite one."""
    return sign_at(other_q, other_p, -q, p) < 0
