"""Sums of slices, empty ones among them, at the ends, and values outside of all slices; places in chunks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.model import arrays
from crowdveil.model.arrays import (
    count_distinct,
    gather,
    group_offsets,
    number_rows,
    scatter,
    slice_sums,
    sorted_distinct,
)

numbers = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))


@settings(max_examples=tries(200), deadline=None)
@given(st.data(), st.lists(st.integers(-(2**40), 2**40), max_size=12))
def test_sums_of_slices(data: st.DataObject, values: list[int]) -> None:
    offsets = sorted(data.draw(st.lists(st.integers(0, len(values)), min_size=1, max_size=8)))
    found = slice_sums(np.array(offsets), np.array(values, np.int64))
    assert found.tolist() == [sum(values[low:high]) for low, high in pairwise(offsets)]


@settings(max_examples=tries(200), deadline=None)
@given(st.lists(st.integers(-3, 20) | st.integers(-(2**40), 2**40), max_size=12))
def test_different_values_are_counted(values: list[int]) -> None:
    """In a dense range or not: both ways are taken."""
    assert count_distinct(np.array(values, np.int64)) == len(set(values))
    for in_runs in (False, True):
        assert sorted_distinct(np.array(values, np.int64), in_runs=in_runs).tolist() == sorted(set(values))


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.int32])
def test_sums_of_small_numbers_have_64_bits(kind: type) -> None:
    found = slice_sums(np.array([0, 300, 300]), np.ones(300, kind))
    assert found.dtype == np.int64 and found.tolist() == [300, 0]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_places_are_read_and_written_in_chunks(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "CHUNK", 7)
    rng = np.random.default_rng(2)
    values, places = rng.random(50), rng.integers(0, 50, 33).astype(kind)
    assert np.array_equal(gather(values, places), values[places])
    twin, mine = values.copy(), values.copy()
    twin[places] = np.arange(33)
    scatter(mine, places, np.arange(33.0))
    assert np.array_equal(mine, twin)


@settings(max_examples=tries(100), deadline=None)
@given(rows=st.lists(st.tuples(numbers, numbers, numbers), max_size=60))
def test_equal_rows_have_one_number(rows: list[tuple[int, int, int]]) -> None:
    found = number_rows(*(np.array([row[i] for row in rows], np.int64) for i in range(3))).tolist()
    assert sorted(set(found)) == list(range(len(set(rows))))
    assert len(set(zip(found, rows, strict=True))) == len(set(rows))


def test_zero_has_one_number() -> None:
    assert number_rows(np.array([0.0, -0.0, 1.0]), np.zeros(3)).tolist() == [0, 0, 1]


@given(st.lists(st.integers(0, 4), max_size=20))
def test_offsets_count_the_rows_of_each_group(group: list[int]) -> None:
    assert group_offsets(np.array(group, np.int64), 5).tolist() == [sum(g < i for g in group) for i in range(6)]
