"""Costs and volumes whose products exceed 64 bits, against plain Python integers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_boxes import problems, sums

from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.kernels.od.deviation import deviations
from crowdveil.kernels.od.partition import is_below, sign_at
from crowdveil.kernels.od.structures import ANY_CHOICE, BY_ORIGIN, WHOLE, BoxArrays, MatrixRows, Splits
from crowdveil.model.arrays import frozen
from crowdveil.registry import find_method
from crowdveil.solve.od.boxes import MAX_COST, BoxSpace, as_ratio

WORD = 2**63 - 1
words = st.one_of(
    st.integers(-WORD, WORD), st.integers(WORD - 9, WORD), st.integers(-WORD, 9 - WORD), st.integers(-9, 9)
)
counts = st.one_of(st.integers(0, WORD), st.integers(WORD - 9, WORD), st.integers(0, 9))
costs = st.one_of(st.integers(1, 2**57), st.integers(2**57 - 9, 2**57), st.integers(1, 9))
volumes = st.one_of(st.integers(0, 10**12), st.integers(10**12 - 9, 10**12), st.integers(0, 9))
Pairs = frozenset[tuple[int, int]]


@given(counts, counts, words, words)
def test_signs_are_those_of_whole_numbers(p: int, q: int, a: int, s: int) -> None:
    exact = q * a + p * s
    assert sign_at(p, q, a, s) == (exact > 0) - (exact < 0)


@given(counts, counts, counts, st.integers(-2, 2))
def test_sums_that_nearly_cancel(p: int, q: int, a: int, more: int) -> None:
    s = -(q * a // p) + more if p else 0
    if abs(s) <= WORD:
        exact = q * a + p * s
        assert sign_at(p, q, a, s) == (exact > 0) - (exact < 0)


@given(*[st.integers(1, WORD)] * 4)
def test_multipliers_are_in_order(p: int, q: int, other_p: int, other_q: int) -> None:
    assert is_below(p, q, other_p, other_q) == (Fraction(p, q) < Fraction(other_p, other_q))


def check_multiplier(found: tuple[Fraction | None, int, int], everything: Pairs, budget: int) -> None:
    """Check that no partition is better at the multiplier, and that no smaller multiplier keeps the budget."""
    multiplier, cost, suppressed = found
    p, q = as_ratio(multiplier)
    assert (cost, suppressed) in everything
    assert suppressed <= budget
    best = min(q * a + p * s for a, s in everything)
    assert q * cost + p * suppressed == best
    ties = [s for a, s in everything if q * a + p * s == best]
    assert suppressed == min(ties) or suppressed == budget
    assert p == 0 or suppressed == budget or max(ties) > budget


@st.composite
def spaces(draw: st.DrawFn) -> BoxSpace:
    """Boxes with any splits into earlier boxes that have no box below them in common, as parts of a map have none."""
    n = draw(st.integers(1, 6))
    offsets, lost, link_offsets, link = [0], [], [0], []
    held: list[set[int]] = []
    for box in range(n):
        held.append({box})
        for _ in range(draw(st.integers(0, 2)) if box else 0):
            taken: set[int] = set()
            for part in draw(st.lists(st.integers(0, box - 1), unique=True, max_size=3)):
                if not held[part] & taken:
                    link.append(part)
                    taken |= held[part]
            held[box] |= taken
            lost.append(draw(volumes))
            link_offsets.append(len(link))
        offsets.append(len(lost))
    kinds = np.full(len(lost), BY_ORIGIN, np.int64)
    splits = Splits(*(frozen(c, np.int64) for c in (offsets, kinds, lost, link_offsets, link)))
    cost, volume = (frozen([draw(strategy) for _ in range(n)], np.int64) for strategy in (costs, volumes))
    allowed = frozen([draw(st.sampled_from([ANY_CHOICE, ANY_CHOICE, ANY_CHOICE - WHOLE])) for _ in range(n)], np.int8)
    none: Any = None
    return BoxSpace(none, volume, volume, volume, volume, cost, splits, allowed, int(volume.sum()))


def all_of_boxes(space: BoxSpace) -> Pairs:
    """All costs and suppressed volumes of the last box, as plain integers."""
    splits, found = space.splits, []
    for box in range(len(space)):
        whole = frozenset({(int(space.cost[box]), 0)}) if space.allowed[box] & WHOLE else frozenset[tuple[int, int]]()
        for split in range(splits.offsets[box], splits.offsets[box + 1]):
            parts = [found[i] for i in splits.link[splits.link_offsets[split] : splits.link_offsets[split + 1]]]
            whole |= frozenset((a, s + int(splits.lost[split])) for a, s in sums(parts))
        found.append(whole or frozenset({(0, int(space.volume[box]))}))
    return found[-1]


@settings(max_examples=tries(150))
@given(spaces(), st.integers(0, 4 * 10**12))
def test_boxes_are_solved_exactly(space: BoxSpace, budget: int) -> None:
    everything = all_of_boxes(space)
    possible = [a for a, s in everything if s <= budget]
    if not possible:
        with pytest.raises(InputError, match="no partition of the map suppresses fewer"):
            space.solve_for_budget(budget)
        return
    best = space.solve_for_budget(budget)
    check_multiplier((best.multiplier, best.cost, best.suppressed), everything, budget)
    choice, known = space.solve_exactly(best, best.choice, budget)
    assert known
    assert space.cost_of(choice) == min(possible)


@given(
    st.lists(st.integers(0, 10**12), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(1, 100_000),
)
def test_deviations_of_large_volumes(row: list[int], origins: int, empty: int) -> None:
    tiles, cells = len(row) + empty, origins * (len(row) + empty)
    volume = frozen(row * origins, np.int64)
    rows = MatrixRows(
        frozen(np.append(np.arange(origins + 1) * len(row), np.full(tiles, origins * len(row))), np.int64),
        frozen(np.tile(np.arange(len(row)), origins), np.int32),
        volume,
        volume,
    )
    total = int(volume.sum())
    boxes = BoxArrays(*(frozen([number], np.int64) for number in (0, 0, total, total, np.count_nonzero(volume))))
    side = [frozen(part, np.int64) for part in ([0, origins], range(origins), [0, tiles], range(tiles))]
    mean = Fraction(total, cells)
    exact = 2 * sum((v - mean for v in volume.tolist() if v > mean), Fraction(0))
    assert abs(int(deviations(boxes, rows, 1, 1000, *side)[0]) - 1000 * exact) <= Fraction(1, 2)


@pytest.mark.parametrize(
    "text",
    [{"name": "joint"}, {"name": "joint", "objective": "reconstruction"}, {"name": "atg-dual"}, {"name": "atg-coupled"},
     {"name": "atg-exact", "delta": 0.01}, {"name": "atg-soft"}, {"name": "joint", "time_partition": "stable"}],
)  # fmt: skip
@settings(max_examples=tries(8))
@given(data=problems())
def test_methods_scale_with_the_unit_of_volumes(text: dict[str, Any], data: Any) -> None:
    """A trip of 10¹⁰ units: the same flows are published, with volumes in that unit."""
    unit = 10**10
    flows = replace(data[0], people=np.maximum(data[0].people, 1))
    method = find_method(text["name"])
    params = {**{key: value for key, value in text.items() if key != "name"}, "k": 2}
    if "v_target" in method.params.model_fields:
        params["v_target"] = 5
    try:
        small = method.run(flows, method.params.checked(params), np.random.default_rng(0), no_progress)
    except InputError:
        return
    if "v_target" in params:
        params["v_target"] = 5 * unit
    large = method.run(
        replace(flows, volume=flows.volume * unit), method.params.checked(params), np.random.default_rng(0), no_progress
    )
    assert small.areas.names.tolist() == large.areas.names.tolist()
    for column in ("offsets", "origin", "destination", "people"):
        assert getattr(small, column).tolist() == getattr(large, column).tolist()
    assert (small.volume * unit).tolist() == large.volume.tolist()


def test_costs_that_cannot_be_added_are_refused() -> None:
    from crowdveil.solve.od.boxes import check_exact

    check_exact(MAX_COST - 1)
    with pytest.raises(InputError, match="larger zones"):
        check_exact(MAX_COST)
