"""Put trajectories and people into an order that depends on their content alone, not on the order of rows or the spelling of ids.

Every choice of a method by index (ties, draws, sums of floating-point numbers) then depends on the content alone, and the
numbers of published trajectories reveal nothing that their points do not reveal.

The key of a trajectory is a hash of its points; that of a person, the first of their trajectories and a hash of them all. Keys
are sums over points, so that a cluster can add them in any order. They are hashed again for the order, which then follows
neither lengths nor times. Trajectories that are equal in both keys are interchangeable: either order gives the same arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import AnyArray, Floats, Ints, Words, frozen, number_rows, slice_sums, take_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

HASHES = 4
"""Values of a hash, each below 2**32: their sums do not overflow below two thousand million points."""
_STARTS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
_STEP, _ONE, _TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


def canonical(data: Trajectories) -> Trajectories:
    """Return the same trajectories in canonical order; `ids`, `people_ids` and `row` are reordered with them."""
    data = points_in_order(data)
    order, people = _order_of(data)
    if _known(data):
        number = np.empty(data.people, np.int64)
        number[people] = np.arange(data.people)
        person = number[data.person[order]]
    else:
        people, person = data.person[order], np.arange(len(data))
    (lon, lat, t), offsets = reorder_slices((data.lon, data.lat, data.t), data.offsets, order)
    for degrees in (lon, lat):
        degrees += 0.0  # -0.0 is 0.0
    row = None if data.row is None else data.row[take_slices(data.offsets, order)[0]]
    return replace(
        data, lon=lon, lat=lat, t=t, offsets=offsets, ids=data.ids[order], person=person,
        people_ids=data.people_ids[people], row=row,
    )  # fmt: skip


def _keys_of(data: Trajectories) -> Ints:
    """Return the key of each trajectory, a column each."""
    return trajectory_keys(data.lon, data.lat, data.t, data.offsets)


def _known(data: Trajectories) -> bool:
    """Return whether the person behind each trajectory is known."""
    return data.k_unit == "people" or data.people != len(data)


def _order_of(data: Trajectories) -> tuple[Ints, Ints]:
    """Return the canonical order of trajectories, and that of people."""
    return canonical_order(_keys_of(data), data.person if _known(data) else None, data.people)


def digest(data: Trajectories) -> bytes:
    """Return a hash of trajectories and whose they are, in the order that they have: another order has another one."""
    keys = _keys_of(data)
    return hashlib.sha256(keys.tobytes() + data.person.astype(np.int64).tobytes()).digest()


def with_canonical_source(release: TrajectoryRelease, given: object, original: Trajectories) -> TrajectoryRelease:
    """Return the release with its `source` in the order of `original`, the canonical one of what was `given`.

    A release of a method that ran on what was given, in its own order, is put into the canonical one. One that was made from
    anything else is refused, since it would be paired with the trajectories of others.
    """
    if release.source is None or release.original in (None, digest(original)):
        return release
    if not isinstance(given, Trajectories) or release.original != digest(given):
        raise InputError(
            "release",
            "it was made from other trajectories, or from the same ones in another order, so they "
            "cannot be paired. Give the trajectories that it was made from.",
        )
    place = np.empty(len(given), np.int64)
    place[_order_of(given)[0]] = np.arange(len(given))
    return replace(release, source=place[release.source], point=None, original=digest(original))


def points_in_order(data: Trajectories) -> Trajectories:
    """Return the same trajectories, with points of one time ordered by longitude, then latitude."""
    order = tied_times(data.lon, data.lat, data.t, data.offsets)
    if order is None:
        return data
    row = None if data.row is None else data.row[order]
    return replace(data, lon=data.lon[order], lat=data.lat[order], row=row)


def numbered(release: TrajectoryRelease) -> TrajectoryRelease:
    """Return the same release in the order of its published content; keys of people count from 1 in that order."""
    order, keys = published_order(release)
    columns = [release.lon, release.lat, release.t, *([] if release.point is None else [release.point])]
    (lon, lat, t, *point), offsets = reorder_slices(columns, release.offsets, order)
    return replace(
        release, lon=lon, lat=lat, t=t, offsets=offsets, person=keys, point=point[0] if point else None,
        source=None if release.source is None else release.source[order],
    )  # fmt: skip


def reorder_slices(columns: Sequence[AnyArray], offsets: Ints, order: Ints) -> tuple[list[AnyArray], Ints]:
    """Return columns with their slices in another order, and the new offsets."""
    rows, new = take_slices(offsets, order)
    return [column[rows] for column in columns], new


def published_order(release: TrajectoryRelease) -> tuple[Ints, Ints | None]:
    """Return the order in which trajectories are published, and the keys of their people in that order, if any."""
    keys = trajectory_keys(release.lon, release.lat, release.t, release.offsets, in_places=True)
    if release.person is None:
        return canonical_order(keys, None, 0)[0], None
    found, person = np.unique(release.person, return_inverse=True)
    order, people = canonical_order(keys, person, len(found))
    number = np.empty(len(found), np.int64)
    number[people] = np.arange(1, len(found) + 1)
    return order, number[person[order]]


def point_hashes(lon: Floats, lat: Floats, t: Ints) -> Ints:
    """Return `HASHES` numbers below 2**32 for each point, a row each; their sums over a trajectory are its key."""
    return _hashed([_bits(lon), _bits(lat), _bits(t), np.zeros(len(t), np.uint64)])


def trajectory_keys(lon: Floats, lat: Floats, t: Ints, offsets: Ints, *, in_places: bool = False) -> Ints:
    """Return the key of each trajectory, a column each: the sums of the hashes of its points.

    `in_places`: the order of points with equal times counts, as it does in a published table.
    """
    place = np.arange(len(t)) - np.repeat(offsets[:-1], np.diff(offsets)) if in_places else np.zeros(len(t), np.int64)
    words = [_bits(lon), _bits(lat), _bits(t), _bits(place)]
    return np.stack([slice_sums(offsets, half) for half in _hashes(words)])


def canonical_order(keys: Ints, person: Ints | None, people: int) -> tuple[Ints, Ints]:
    """Return trajectories in the order of their keys, and people in the order of theirs.

    Trajectories with equal keys are in the order of people; without people, in the order given.
    """
    keys = _hashed([_bits(row) for row in keys])
    rank = number_rows(*keys[::-1])
    if person is None or len(rank) == 0:
        return np.argsort(rank, kind="stable"), np.arange(people)
    by_person = np.argsort(person, kind="stable")
    begins = np.flatnonzero(np.diff(person[by_person], prepend=-1))
    known = person[by_person[begins]]
    first = np.minimum.reduceat(rank[by_person], begins)
    sums = np.add.reduceat(keys[:, by_person], begins, axis=1)
    ranked = known[np.lexsort((*sums[::-1], first))]
    position = np.full(people, people, np.int64)
    position[ranked] = np.arange(len(ranked))
    without = np.setdiff1d(np.arange(people), known)
    return np.lexsort((position[person], rank)), np.concatenate([ranked, without])


def _bits(values: Floats | Ints) -> Words:
    """Return the bits of numbers; -0.0 has those of 0.0."""
    plain = values + 0.0 if values.dtype == np.float64 else values
    return frozen(np.ascontiguousarray(plain).view(np.uint64), np.uint64)


def _hashed(words: list[Words]) -> Ints:
    """Return the hashes of columns of words, `HASHES` rows."""
    return np.stack(list(_hashes(words)))


def _hashes(words: list[Words]) -> Iterator[Ints]:
    for start in _STARTS:
        mixed: Words = np.full(len(words[0]), start)
        for word in words:
            mixed = _mix(mixed ^ word)
        yield (mixed >> _S32).astype(np.int64)
        yield (mixed << _S32 >> _S32).astype(np.int64)


def _mix(x: Words) -> Words:
    """Mix the bits of words (SplitMix64)."""
    x = x + _STEP
    x = (x ^ (x >> _S30)) * _ONE
    x = (x ^ (x >> _S27)) * _TWO
    return x ^ (x >> _S31)


def tied_times(lon: Floats, lat: Floats, t: Ints, offsets: Ints) -> Ints | None:
    """Return an order that sorts points of one trajectory and time by position; None where they are sorted already."""
    if len(t) < 2:
        return None
    same = t[1:] == t[:-1]
    same[offsets[1:-1] - 1] = False
    falls = same & ((lon[1:] < lon[:-1]) | ((lon[1:] == lon[:-1]) & (lat[1:] < lat[:-1])))
    if not falls.any():
        return None
    run, order = np.concatenate([np.zeros(1, np.int64), np.cumsum(~same)]), np.arange(len(t))
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    order[tied] = tied[np.lexsort((lat[tied], lon[tied], run[tied]))]
    return order
