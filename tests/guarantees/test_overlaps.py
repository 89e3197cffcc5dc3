"""Rows of pairs of tiles against plain sets of pairs, for areas that nest and for areas of any shape."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import testing
from crowdveil.guarantees import overlaps
from crowdveil.guarantees.overlaps import Pairs, rows_of_pairs

Areas = list[list[int]]
TILES, STEPS = 10, 3


def _subtrees(tree: Any) -> Areas:
    """The tiles of every node of a nested list."""
    if isinstance(tree, int):
        return [[tree]]
    below = [_subtrees(child) for child in tree]
    return [*itertools.chain(*below), sorted(t for nodes in below for t in nodes[-1])]


nesting = testing.nested_trees(max_tiles=TILES).map(_subtrees)
shapes = st.lists(st.lists(st.integers(0, TILES - 1), max_size=5), min_size=1, max_size=8)


def _pairs(rows: Any) -> Pairs:
    return Pairs(*np.array(rows, np.int64).reshape(-1, 3).T)


def _joined(areas: Areas) -> Any:
    return np.cumsum([0, *map(len, areas)]), np.array([*itertools.chain(*areas)], np.int64)


@settings(max_examples=tries(400))
@given(areas=nesting | shapes, counters=st.sampled_from([1, 40, 1 << 21]), draw=st.data())
def test_each_pair_lies_in_at_most_one_row(areas: Areas, counters: int, draw: st.DataObject) -> None:
    area = st.integers(0, len(areas) - 1)
    rows = sorted(draw.draw(st.lists(st.tuples(st.integers(0, STEPS - 1), area, area), max_size=8)))
    pairs = [*itertools.product(range(STEPS), range(-1, TILES), range(-1, TILES))]
    over: dict[tuple[int, ...], list[int]] = {}
    for row, (step, o, d) in enumerate(rows):
        for pair in itertools.product({*areas[o]}, {*areas[d]}):
            over.setdefault((step, *pair), []).append(row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps, "AT_ONCE", counters)
        found, crossed = rows_of_pairs(_joined(areas), TILES, STEPS, _pairs(rows), _pairs(pairs))
    twice = {pair[0] for pair, held in over.items() if len(held) > 1}
    assert {*np.flatnonzero(crossed).tolist()} == twice
    for pair, row in zip(pairs, found.tolist(), strict=True):
        assert pair[0] in twice or row == over.get(pair, [-1])[0]


def test_rows_that_cannot_be_apart_take_no_memory() -> None:
    """Forty thousand rows from everywhere to everywhere are sixteen billion pairs of a row and tiles."""
    whole = np.array([0, 100_000]), np.arange(100_000)
    everywhere = np.zeros(40_000, np.int64)
    rows = Pairs(everywhere, everywhere, everywhere)
    assert rows_of_pairs(whole, 100_000, 1, rows, rows)[1].all()


def test_a_map_of_many_tiles() -> None:
    """Each tile is an area, and one pair in a hundred thousand lies in two rows."""
    n = 100_000
    areas, each = (np.append(np.arange(n + 1), n + 10), np.append(np.arange(n), np.arange(10))), np.arange(n)
    once = Pairs(each * 0, each, each[::-1])
    found, crossed = rows_of_pairs(areas, n, 1, once, once)
    assert np.array_equal(found, each) and not crossed.any()
    twice = Pairs(np.zeros(n + 1, np.int64), np.append(each, n), np.append(each[::-1], n - 1))
    assert rows_of_pairs(areas, n, 1, twice, once)[1].all()
