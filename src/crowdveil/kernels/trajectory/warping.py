"""Classical distances between paths: dynamic time warping and the discrete Fréchet distance. Times do not count."""

from __future__ import annotations

import math

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def warped_distances(
    own_x: Floats, own_y: Floats, to: Ints, x: Floats, y: Floats, offsets: Ints, added: bool, found: Floats
) -> None:
    """Write the distances from one path to those in `to`: the least sum of distances over a walk along both, if `added`
    (dynamic time warping), or the least longest one (discrete Fréchet).
    """
    p = len(own_x)
    row = np.empty(p, np.float64)
    for at in range(len(to)):
        low, high = offsets[to[at]], offsets[to[at] + 1]
        for b in range(low, high):
            diagonal = np.inf
            for a in range(p):
                dx, dy = own_x[a] - x[b], own_y[a] - y[b]
                d = math.sqrt(dx * dx + dy * dy)
                above = row[a] if b > low else np.inf
                before = row[a - 1] if a > 0 else np.inf
                best = min(min(above, before), diagonal)
                if a == 0 and b == low:
                    best = 0.0
                diagonal = above
                row[a] = d + best if added else max(d, best)
        found[at] = row[p - 1]
