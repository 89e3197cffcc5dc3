"""Lists of leaves in order with their running sums, on trees with several rows of marks."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels.od.leaf_sums import BEYOND, add, merge_lists, new_lists, new_sums, take
from crowdveil.kernels.od.structures import LeafLists

LEAVES = 9000
Rows = list[tuple[int, int]]
rows = st.lists(
    st.tuples(st.integers(0, LEAVES - 1) | st.sampled_from([0, 63, 64, 4095, 4096, LEAVES - 1]), st.integers(0, 9)),
    max_size=60,
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
@given(first=rows, second=rows)
def test_sums_come_out_in_order_and_leave_nothing_behind(first: Rows, second: Rows) -> None:
    sums, marks, words = new_sums(LEAVES)
    for drawn in (first, second):
        for leaf, volume in drawn:
            add(sums, marks, words, leaf, volume, 2 * volume, 1)
        lists = new_lists(100)
        assert listed(lists, 3, take(sums, marks, words, lists, 3)) == plain_list(drawn)
        assert not (sums.any() or marks.any() or words.any())


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
