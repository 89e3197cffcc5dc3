"""Trajectories in canonical order: slices that are moved, and keys that are computed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from towns import people

from crowdveil.model import canonical as module
from crowdveil.model.arrays import AnyArray, Ints
from crowdveil.model.canonical import canonical, digest, numbered, reorder_slices
from crowdveil.model.release import TrajectoryRelease


def test_slices_are_moved_whole() -> None:
    rng = np.random.default_rng(3)
    offsets, order = np.array([0, 0, 3, 4, 9, 9, 12]), np.array([3, 0, 5, 2])
    long, short = [rng.random(12), rng.random(12), rng.integers(-9, 9, 12)], rng.integers(0, 9, 12).astype(np.int32)
    for columns in ([*long, short], [*long[1:], short], long, [*long, long[0]]):
        _check_moved(columns, offsets, order)


def _check_moved(columns: list[AnyArray], offsets: Ints, order: Ints) -> None:
    moved, new = reorder_slices(columns, offsets, order)
    assert new.tolist() == [0, 5, 5, 8, 9]
    for column, other in zip(columns, moved, strict=True):
        assert other.dtype == column.dtype
        assert other.tolist() == [*column[4:9].tolist(), *column[9:12].tolist(), *column[3:4].tolist()]


def test_the_digest_is_that_of_the_content() -> None:
    data = canonical(people(np.random.default_rng(1), 40))
    assert digest(data) == digest(replace(data))  # a copy computes its keys
    moved = replace(data, lon=np.where(np.arange(data.points) == 5, data.lon + 1e-6, data.lon))
    assert digest(moved) != digest(data)


def test_input_points_move_with_the_published_ones() -> None:
    data = people(np.random.default_rng(2))
    point = np.arange(data.points, dtype=np.int32)
    source = np.arange(len(data))
    made = numbered(TrajectoryRelease(data.lon, data.lat, data.t, data.offsets, source=source, point=point))
    assert made.point is not None and not np.array_equal(made.point, point)
    assert np.array_equal(data.lon[made.point], made.lon) and np.array_equal(data.t[made.point], made.t)


@pytest.mark.parametrize("values", [3, 10**9])
def test_people_are_in_the_order_of_their_first_trajectory_and_then_of_all(values: int) -> None:
    """With few values many trajectories are equal, with many none."""
    rng = np.random.default_rng(8)
    keys, person = rng.integers(0, values, (4, 60)), rng.integers(0, 25, 60)
    order, people = module.canonical_order(keys, person, 25)
    hashes = [tuple(column) for column in module._hashed([module._bits(row) for row in keys]).T.tolist()]
    mine = {p: [h for h, owner in zip(hashes, person, strict=True) if owner == p] for p in person.tolist()}
    ranked = sorted(mine, key=lambda p: (min(mine[p]), tuple(map(sum, zip(*mine[p], strict=True))), p))
    assert people.tolist() == [*ranked, *sorted(set(range(25)) - mine.keys())]
    place = {p: i for i, p in enumerate(people.tolist())}
    assert order.tolist() == sorted(range(60), key=lambda i: (hashes[i], place[person[i]], i))
