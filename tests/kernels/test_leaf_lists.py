"""Lists of leaves in order with their running sums."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels.od.structures import LeafLists, MatrixRows
from crowdveil.kernels.od.tree_nodes import BEYOND, list_leaves, merge_lists, new_lists

LEAVES = 900
Rows = list[tuple[int, int]]
rows = st.lists(
    st.tuples(st.integers(0, LEAVES - 1) | st.sampled_from([0, 1, LEAVES - 1]), st.integers(0, 9)), max_size=60
)


def plain_list(drawn: Rows) -> list[tuple[int, ...]]:
    """Leaves with the volume, the crowd (twice as much) and the rows before each, and all of them after the last."""
    leaves = sorted({leaf for leaf, _ in drawn})
    of_leaf = [[volume for leaf, volume in drawn if leaf == here] for here in leaves]
    volumes, cells = ([0, *accumulate(map(count, of_leaf))] for count in (sum, len))
    return [(leaf, v, 2 * v, c) for leaf, v, c in zip([*leaves, BEYOND], volumes, cells, strict=True)]


def listed(lists: LeafLists, low: int, end: int) -> list[tuple[int, ...]]:
    return list(zip(*(column[low : end + 1].tolist() for column in lists), strict=True))


@settings(max_examples=tries(150), deadline=None)
@given(rows=rows)
def test_a_list_of_rows_has_each_leaf_once(rows: Rows) -> None:
    rows = sorted(rows)
    tile_leaf = np.random.default_rng(len(rows)).permutation(LEAVES)
    tile, volume = np.argsort(tile_leaf)[[leaf for leaf, _ in rows]], np.array([v for _, v in rows], np.int64)
    matrix = MatrixRows(np.array([0, len(rows)]), tile, volume, 2 * volume)
    lists = new_lists(100)
    assert listed(lists, 3, list_leaves(matrix, 0, len(rows), tile_leaf, lists, 3)) == plain_list(rows)


@settings(max_examples=tries(150), deadline=None)
@given(first=rows, second=rows, gap=st.integers(0, 3))
def test_a_merged_list_is_that_of_all_rows(first: Rows, second: Rows, gap: int) -> None:
    lists, spare = new_lists(200), new_lists(LEAVES + 1)
    low = 2
    middle = low + len(plain_list(first)) + gap
    for begin, drawn in ((low, first), (middle, second)):
        entries = np.array(plain_list(drawn), np.int64)
        for column, values in zip(lists, entries.T, strict=True):
            column[begin : begin + len(entries)] = values
    assert listed(lists, low, merge_lists(lists, low, middle, spare)) == plain_list(first + second)
