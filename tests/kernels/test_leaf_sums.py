"""Sums by leaf in order of the leaves, on trees with several rows of marks."""

from __future__ import annotations

import numpy as np
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels.od.leaf_sums import add, new_sums, take

LEAVES = 9000
rows = st.lists(
    st.tuples(st.integers(0, LEAVES - 1) | st.sampled_from([0, 63, 64, 4095, 4096, LEAVES - 1]), st.integers(1, 9)),
    max_size=60,
)


@settings(max_examples=tries(150), deadline=None)
@given(first=rows, second=rows)
def test_sums_come_out_in_order_and_leave_nothing_behind(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    sums, marks, words = new_sums(LEAVES)
    for drawn in (first, second):
        for leaf, volume in drawn:
            add(sums, marks, words, leaf, volume, 2 * volume, 1)
        lists = [np.full(100, -1, np.int64) for _ in range(4)]
        end = take(sums, marks, words, *lists, 3)
        expected: dict[int, list[int]] = {}
        for leaf, volume in drawn:
            here = expected.setdefault(leaf, [0, 0, 0])
            here[0], here[1], here[2] = here[0] + volume, here[1] + 2 * volume, here[2] + 1
        assert end == 3 + len(expected)
        found = list(zip(*(column[3:end].tolist() for column in lists), strict=True))
        assert found == [(leaf, *expected[leaf]) for leaf in sorted(expected)]
        assert not (sums.any() or marks.any() or words.any())
