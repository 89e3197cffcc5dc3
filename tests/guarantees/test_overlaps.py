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
from crowdveil.guarantees.overlaps import rows_of_pairs

Areas = list[list[int]]
TILES = 10
ALL = np.array(list(itertools.product(range(-1, TILES), repeat=2)))


def _subtrees(tree: Any) -> Areas:
    """The tiles of every node of a nested list."""
    if isinstance(tree, int):
        return [[tree]]
    below = [_subtrees(child) for child in tree]
    return [*itertools.chain(*below), sorted(t for nodes in below for t in nodes[-1])]


nesting = testing.nested_trees(max_tiles=TILES).map(_subtrees)
shapes = st.lists(st.lists(st.integers(0, TILES - 1), max_size=5), min_size=1, max_size=8)


def _rows(areas: Areas, rows: list[tuple[int, int]]) -> list[int] | None:
    tiles = [np.array(area, np.int64) for area in areas]
    origin, destination = np.array(rows, np.int64).reshape(-1, 2).T
    found = rows_of_pairs(tiles, TILES, origin, destination, (ALL[:, 0], ALL[:, 1]))
    return None if found is None else found.tolist()


@settings(max_examples=tries(400))
@given(areas=nesting | shapes, counters=st.sampled_from([1, 8, 1 << 20]), draw=st.data())
def test_each_pair_lies_in_at_most_one_row(areas: Areas, counters: int, draw: st.DataObject) -> None:
    area = st.integers(0, len(areas) - 1)
    rows = draw.draw(st.lists(st.tuples(area, area), max_size=6))
    over: dict[tuple[int, ...], list[int]] = {}
    for row, (o, d) in enumerate(rows):
        for pair in itertools.product({*areas[o]}, {*areas[d]}):
            over.setdefault(pair, []).append(row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps, "AT_ONCE", counters)
        found = _rows(areas, rows)
    if any(len(held) > 1 for held in over.values()):
        assert found is None
    else:
        assert found == [over.get(tuple(pair), [-1])[0] for pair in ALL.tolist()]


def test_rows_that_cannot_be_apart_take_no_memory() -> None:
    """Forty thousand rows from everywhere to everywhere are sixteen billion pairs of a row and tiles."""
    whole = [np.arange(100_000)]
    everywhere = np.zeros(40_000, np.int64)
    assert rows_of_pairs(whole, 100_000, everywhere, everywhere, (everywhere, everywhere)) is None


def test_a_map_of_many_tiles() -> None:
    """Each tile is an area, and one pair in a hundred thousand lies in two rows."""
    n = 100_000
    areas, each = [np.array([i]) for i in range(n)] + [np.arange(10)], np.arange(n)
    found = rows_of_pairs(areas, n, each, each[::-1], (each, each[::-1]))
    assert found is not None and np.array_equal(found, each)
    twice = np.append(each, n), np.append(each[::-1], n - 1)
    assert rows_of_pairs(areas, n, *twice, (each, each)) is None
