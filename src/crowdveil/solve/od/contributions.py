"""Limits of the trips of each person, so that one person more or less changes few volumes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crowdveil.model.arrays import Ints, Mask, Words, row_slices
from crowdveil.model.flows import Flows


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
