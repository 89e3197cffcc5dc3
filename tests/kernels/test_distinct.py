from __future__ import annotations

import numpy as np
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels.distinct import count_pairs, number_triples

numbers = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))


@settings(max_examples=tries(100))
@given(pairs=st.lists(st.tuples(numbers, numbers), max_size=60))
def test_different_pairs_are_counted(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array([p[i] for p in pairs], np.int64) for i in range(2))
    assert count_pairs(first, second) == len(set(pairs))


def test_many_pairs_of_degrees() -> None:
    """Bits of numbers with few decimals end in alike patterns, and must not crowd one part of the table."""
    lon = np.round(np.random.default_rng(1).uniform(2, 3, 50_000), 4)
    lat = np.round(np.random.default_rng(2).uniform(48, 48.01, 50_000), 4)
    wanted = len(set(zip(lon.tolist(), lat.tolist(), strict=True)))
    assert count_pairs(lon.view(np.int64), lat.view(np.int64)) == wanted


@settings(max_examples=tries(100), deadline=None)
@given(rows=st.lists(st.tuples(numbers, numbers, numbers), max_size=60))
def test_equal_triples_have_one_number_in_order_of_appearance(rows: list[tuple[int, int, int]]) -> None:
    seen: dict[tuple[int, int, int], int] = {}
    wanted = [seen.setdefault(row, len(seen)) for row in rows]
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(3)]
    assert number_triples(*columns).tolist() == wanted


def test_triples_that_differ_in_one_place_alone_have_different_numbers() -> None:
    """So many of them meet in one place of the table that every value is compared."""
    rising, same = np.arange(3000), np.zeros(3000, np.int64)
    for columns in ((rising, same, same), (same, rising, same), (same, same, rising)):
        assert number_triples(*columns).tolist() == rising.tolist()
        assert np.array_equal(number_triples(*(np.tile(c, 2) for c in columns)), np.tile(rising, 2))
