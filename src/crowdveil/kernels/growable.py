"""Arrays whose length is not known beforehand."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import AnyArray


@kernel
def grow(array: AnyArray, needed: int) -> AnyArray:
    """Return the array, or a copy of twice the size if it is too small."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), array.dtype)
    for i in range(len(array)):
        larger[i] = array[i]
    return larger
