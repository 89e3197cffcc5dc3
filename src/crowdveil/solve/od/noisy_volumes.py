"""Noisy volumes: limits of the trips of each person, and confidence bounds of published volumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from crowdveil.model.arrays import Floats, Ints, Mask, Words, row_slices
from crowdveil.model.flows import Flows
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


def kept_trips(data: Flows, limit: int, key: Sequence[int], *, whole_release: bool) -> Ints:
    """Return how many trips of each flow are kept, if at most `limit` trips of a person are; in a time step, or in all.

    A person counts once in a flow. Which flows of a person are kept is drawn with the `key` from the flows of that person alone:
    without any one person, the trips that are kept of all others are the same. People with equal flows are interchangeable, so
    that they are numbered: neither the order of rows nor ids change how many trips are kept.
    """
    if data.person_ids is None or data.person_offsets is None:
        raise ValueError("trips of a person can only be limited with person ids")
    row = row_slices(data.person_offsets)
    owner = data.person_ids.astype(np.int64)
    if not whole_release:
        owner = data.step[row] * (int(owner.max(initial=0)) + 1) + owner
    _, owner, flows = np.unique(owner, return_inverse=True, return_counts=True)
    over = flows[owner] > limit
    kept = np.bincount(row[~over], minlength=len(data))
    if over.any():
        chosen = _chosen(data, row[over], owner[over], limit, key)
        kept += np.bincount(row[over][chosen], minlength=len(data))
    trips: Ints = kept.astype(np.int64)
    return trips


def _chosen(data: Flows, row: Ints, owner: Ints, limit: int, key: Sequence[int]) -> Mask:
    """Return which flows of people with more than `limit` of them are kept."""
    by_owner = np.argsort(owner, kind="stable")  # inside an owner, flows stay in order of time, origin and destination
    row, begins = row[by_owner], np.flatnonzero(np.diff(owner[by_owner], prepend=-1))
    of_owner = row_slices(np.append(begins, len(row)))
    hashes = [_hash_rows(data, row, key[i], key[i + 1]) for i in (0, 2)]
    content = [np.add.reduceat(_mixed(hashed), begins) for hashed in hashes]
    number = _number_among_equal(content)
    draw = _mixed(content[0] + _mixed(content[1] + number.astype(np.uint64)))
    order = np.lexsort((_mixed(hashes[0] ^ draw[of_owner]), of_owner))
    place = np.empty(len(row), np.int64)
    place[order] = np.arange(len(row)) - begins[of_owner]  # lexsort keeps owners in their order
    chosen = np.empty(len(row), np.bool_)
    chosen[by_owner] = place < limit
    return chosen


def _hash_rows(data: Flows, row: Ints, first: int, second: int) -> Words:
    """Return a keyed hash of the time and the tiles of flows."""
    pair = data.origin[row].astype(np.uint64) * np.uint64(len(data.zones)) + data.destination[row].astype(np.uint64)
    keyed = np.uint64((first << 32 | second) % 2**64)
    return _mixed(_mixed(data.t[data.step[row]].astype(np.uint64) ^ keyed) + pair)


def _number_among_equal(content: Sequence[Words]) -> Ints:
    """Return 0, 1, … for the people of each content."""
    order = np.lexsort(content)
    differ = np.zeros(len(order), np.bool_)
    differ[:1] = True
    for values in content:
        differ[1:] |= np.diff(values[order]) != 0
    position = np.arange(len(order))
    number = np.empty(len(order), np.int64)
    number[order] = position - np.maximum.accumulate(np.where(differ, position, 0))
    return number


def _mixed(x: Words) -> Words:
    """Return well mixed bits of each number (the finalizer of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = x ^ (x >> np.uint64(31))
    return mixed
