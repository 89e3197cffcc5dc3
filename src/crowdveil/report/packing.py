"""Numbers as text for a page: whole numbers of few bytes each, in base 64. `web/src/unpack.ts` reads them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from crowdveil.model.arrays import Bytes, Ints


def packed(values: Any, *, rising: bool = False) -> str:
    """Whole numbers as text, seven bits a byte; as differences from one to the next where they are `rising` or nearly so."""
    numbers: Ints = np.asarray(values, np.int64)
    if rising:
        numbers = np.diff(numbers, prepend=0)
    return base64.b64encode(_bytes(numbers).tobytes()).decode("ascii")


def _bytes(numbers: Ints) -> Bytes:
    """The sign goes into the last bit, so that small negative numbers are short too."""
    code = (numbers.view(np.uint64) << np.uint64(1)) ^ (numbers >> 63).view(np.uint64)
    length = np.ones(len(code), np.int64)
    for more in range(1, 10):
        longer = code >> np.uint64(7 * more) > 0
        if not longer.any():
            break
        length += longer
    ends = np.cumsum(length)
    made = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for place in range(int(length.max(initial=0))):
        here = length > place
        byte = (code[here] >> np.uint64(7 * place)) & np.uint64(127)
        goes_on = (length[here] > place + 1).astype(np.uint8) << 7
        made[(ends - length)[here] + place] = byte.astype(np.uint8) | goes_on
    return made
