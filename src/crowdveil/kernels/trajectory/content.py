"""Hashes of points, for an order of trajectories by their content."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints, Words

HASHES = 4
"""Values of a hash, each below 2**32: sums of them do not overflow below two thousand million points."""
_FIRST, _SECOND, _LOW = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0xFFFFFFFF)
_STEP, _ONE, _TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@kernel
def _mix(x: np.uint64) -> np.uint64:
    """Mix the bits of a word (SplitMix64)."""
    x = x + _STEP
    x = (x ^ (x >> _S30)) * _ONE
    x = (x ^ (x >> _S27)) * _TWO
    return x ^ (x >> _S31)


@kernel
def hashed(words: Words, hashes: Ints) -> None:
    """Fill `hashes` (`HASHES` rows) with those of the columns of `words`."""
    for i in range(words.shape[1]):
        first, second = _FIRST, _SECOND
        for j in range(words.shape[0]):
            first = _mix(first ^ words[j, i])
            second = _mix(second ^ words[j, i])
        hashes[0, i], hashes[1, i] = np.int64(first >> _S32), np.int64(first & _LOW)
        hashes[2, i], hashes[3, i] = np.int64(second >> _S32), np.int64(second & _LOW)


@kernel
def summed(lon: Words, lat: Words, t: Ints, offsets: Ints, in_places: bool, keys: Ints) -> None:
    """Fill `keys` (`HASHES` rows) with the sums of the hashes of the points of each trajectory."""
    for g in range(len(offsets) - 1):
        for i in range(offsets[g], offsets[g + 1]):
            place = np.uint64(i - offsets[g]) if in_places else np.uint64(0)
            when = np.uint64(t[i])
            first = _mix(_mix(_mix(_mix(_FIRST ^ lon[i]) ^ lat[i]) ^ when) ^ place)
            second = _mix(_mix(_mix(_mix(_SECOND ^ lon[i]) ^ lat[i]) ^ when) ^ place)
            keys[0, g] += np.int64(first >> _S32)
            keys[1, g] += np.int64(first & _LOW)
            keys[2, g] += np.int64(second >> _S32)
            keys[3, g] += np.int64(second & _LOW)
