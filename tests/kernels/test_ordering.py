"""Kernels that order points, against `sorted`."""

from __future__ import annotations

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels import ordering
from crowdveil.kernels.ordering import (
    codes_in_range,
    group_offsets,
    in_order,
    one_owner,
    rows_by_group_and_time,
    spread,
)

unhurried = settings(deadline=None, max_examples=tries(100))
rows = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 40)), max_size=150)
"""Few groups, so that some have more points than the small sort takes; few times, so that many are equal."""


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


@unhurried
@given(rows)
def test_rows_are_sorted_by_group_then_time_then_row(pairs: list[tuple[int, int]]) -> None:
    group, t = columns(pairs)
    order, times = rows_by_group_and_time(group, t, group_offsets(group, 5))
    wanted = sorted(range(len(pairs)), key=lambda i: (pairs[i][0], pairs[i][1], i))
    assert order.tolist() == wanted
    assert times.tolist() == [pairs[i][1] for i in wanted]


@unhurried
@given(st.integers(1, 80), st.sampled_from(["falling", "rising", "equal", "falling by pairs"]))
def test_runs_of_one_kind_are_sorted_too(n: int, kind: str) -> None:
    t = {
        "falling": -np.arange(n),
        "rising": np.arange(n),
        "equal": np.zeros(n),
        "falling by pairs": -(np.arange(n) // 2),
    }
    time = t[kind].astype(np.int64)
    order, times = rows_by_group_and_time(np.zeros(n, np.int64), time, np.array([0, n]))
    assert order.tolist() == sorted(range(n), key=lambda i: (time[i], i))
    assert times.tolist() == sorted(time.tolist())


@unhurried
@given(rows)
def test_order_is_seen(pairs: list[tuple[int, int]]) -> None:
    group, t = columns(pairs)
    assert in_order(group, t) == (pairs == sorted(pairs))
    assert in_order(*columns(sorted(pairs)))


@unhurried
@given(rows)
def test_offsets_count_the_rows_of_each_group(pairs: list[tuple[int, int]]) -> None:
    group, _ = columns(pairs)
    offsets = group_offsets(group, 5).tolist()
    assert offsets == [sum(g < i for g, _ in pairs) for i in range(6)]


@unhurried
@given(rows)
def test_owners_are_found(pairs: list[tuple[int, int]]) -> None:
    group, owner = columns([(g, abs(o)) for g, o in pairs])
    known, first = np.zeros(5, bool), np.full(5, -1)
    half = len(group) // 2  # in two pieces, as columns come
    unique = one_owner(group[:half], owner[:half], known, first) and one_owner(group[half:], owner[half:], known, first)
    owners = {g: {int(o) for gg, o in zip(group, owner, strict=True) if gg == g} for g in group.tolist()}
    assert unique == all(len(o) == 1 for o in owners.values())
    if unique:
        assert first.tolist() == [owners[g].pop() if g in owners else -1 for g in range(5)]


@unhurried
@given(rows)
def test_flags_spread_to_their_group(pairs: list[tuple[int, int]]) -> None:
    group, flag = columns(pairs)
    assert np.flatnonzero(spread(flag > 30, group, 5)).tolist() == sorted({g for g, f in pairs if f > 30})


@unhurried
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=60))
def test_codes_come_in_order_of_appearance(values: list[int]) -> None:
    low, high = min(values), max(values)
    place, seen, codes = np.full(high - low + 1, -1), np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    half, given_values = len(values) // 2, np.array(values)  # in two pieces, as columns come
    n = codes_in_range(given_values[:half], low, place, seen, 0, codes[:half])
    labels = seen[: codes_in_range(given_values[half:], low, place, seen, n, codes[half:])]
    assert labels.tolist() == list(dict.fromkeys(values))
    assert labels[codes].tolist() == values


@pytest.mark.parametrize("few", [0, 2000])
def test_rows_by_two_keys_are_stable_with_few_rows_and_with_many(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "FEW", few)
    drawn = np.random.default_rng(3).integers(0, 9, (2, 1500))
    order = ordering.rows_by_two(drawn[0], drawn[1], 9, 9)
    assert order.tolist() == sorted(range(1500), key=lambda row: (*drawn[:, row], row))
