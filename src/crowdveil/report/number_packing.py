"""Pack whole numbers as text for a page: variable-length bytes in base 64. `web/src/unpack.ts` reads them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from crowdveil.model.arrays import Bytes, Ints


def packed(values: Any, *, rising: bool = False) -> str:
    """Return whole numbers as text, seven bits per byte; as successive differences if they are (nearly) `rising`."""
    numbers: Ints = np.asarray(values, np.int64)
    if rising:
        numbers = np.diff(numbers, prepend=0)
    return base64.b64encode(_bytes(numbers).tobytes()).decode("ascii")


def _bytes(numbers: Ints) -> Bytes:
    """Return the bytes of numbers; the sign is the last bit, so that small negative numbers are short too."""
    code = (numbers.view(np.uint64) << np.uint64(1)) ^ (numbers >> 63).view(np.uint64)
    length = np.ones(len(code), np.int64)
    for more in range(1, 10):
        longer = code >> np.uint64(7 * more) > 0
        if not longer.any():
            break
        length += longer
    ends = np.cumsum(length)
    content = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for i in range(int(length.max(initial=0))):
        here = length > i
        byte = (code[here] >> np.uint64(7 * i)) & np.uint64(127)
        continues = (length[here] > i + 1).astype(np.uint8) << 7
        content[(ends - length)[here] + i] = byte.astype(np.uint8) | continues
    return content
