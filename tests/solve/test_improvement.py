"""Exchange of members between groups: never worse, nothing left to gain in a block, and k people in every group."""

from __future__ import annotations

from itertools import combinations
from unittest.mock import patch

import numpy as np
import plain_trajectories as plain
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import ParameterError
from crowdveil.methods.trajectory.microaggregation import MicroaggregationParams
from crowdveil.model.arrays import Ints
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory import mdav
from crowdveil.solve.trajectory.distances import Paths, SpatioTemporal
from crowdveil.solve.trajectory.mdav import Grouping, _blocks, improve_groups
from crowdveil.testing import trajectories

WEIGHT, K = 0.3, 2


def _spread(square: list[list[float]], group: list[int]) -> float:
    """From its definition: over all groups, the squared distances of pairs over the size."""
    total = 0.0
    for g in set(group) - {-1}:
        own = [i for i, of in enumerate(group) if of == g]
        total += sum(square[i][j] for i, j in combinations(own, 2)) / len(own)
    return total


def _people(data: Trajectories, group: list[int]) -> int:
    """Return the people of the smallest group."""
    found = [{int(data.person[i]) for i, of in enumerate(group) if of == g} for g in set(group) - {-1}]
    return min(map(len, found), default=K)


def _grouped(data: Trajectories) -> tuple[SpatioTemporal, Ints, list[list[float]]]:
    distance = SpatioTemporal.of(Paths.of(data), WEIGHT)
    group = Grouping(distance, data.person, K).groups([np.arange(len(data))])
    listed = [list(zip(*(c.tolist() for c in distance.paths.one(i)), strict=True)) for i in range(len(data))]
    return distance, group, [[plain.spatiotemporal(a, b, WEIGHT) ** 2 for b in listed] for a in listed]


@settings(max_examples=tries(40), deadline=None)
@given(data=trajectories(max_trajectories=10, max_points=4))
def test_no_move_and_no_exchange_is_left_that_makes_groups_more_compact(data: Trajectories) -> None:
    distance, before, square = _grouped(data)
    after = improve_groups(distance, before, data.person, K, 3).tolist()
    assert _people(data, after) >= K and [g < 0 for g in after] == [g < 0 for g in before.tolist()]
    now = _spread(square, after)
    assert now <= _spread(square, before.tolist()) * (1 + 1e-9) + 1e-6
    moves = [[*after[:i], g, *after[i + 1 :]] for i in range(len(after)) for g in set(after) - {after[i], -1}]
    for i, j in combinations(range(len(after)), 2):
        other = list(after)
        other[i], other[j] = after[j], after[i]
        moves.append(other)
    for other in moves:
        if _people(data, other) >= K and -1 not in after:
            assert _spread(square, other) >= now * (1 - 1e-9) - 1e-5


@settings(max_examples=tries(40), deadline=None)
@given(data=trajectories(max_trajectories=12, max_points=3), rounds=st.integers(1, 4))
def test_small_blocks_never_make_groups_less_compact(data: Trajectories, rounds: int) -> None:
    distance, before, square = _grouped(data)
    with patch.object(mdav, "BLOCK", 5):
        after = improve_groups(distance, before, data.person, K, rounds).tolist()
    assert _people(data, after) >= K
    assert _spread(square, after) <= _spread(square, before.tolist()) * (1 + 1e-9) + 1e-6


@settings(max_examples=tries(60))
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=30))
def test_every_group_is_in_one_block_of_few_members(groups: list[tuple[int, int, int]]) -> None:
    centers = np.array([(x, y, 0) for x, y, _ in groups], np.float64)
    sizes = np.array([size for _, _, size in groups], np.int64)
    blocks = _blocks(centers, sizes, 6)
    assert sorted(g for block in blocks for g in block.tolist()) == np.flatnonzero(sizes).tolist()
    assert all(len(block) < 2 or sizes[block].sum() <= 6 for block in blocks)


def test_other_distances_are_refused() -> None:
    with pytest.raises(ParameterError, match="spatiotemporal"):
        MicroaggregationParams.checked({"distance": "dtw", "improve": 1})
