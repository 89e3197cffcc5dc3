"""Painted maps against plain sets of pairs, for areas that nest and for areas of any shape."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import testing
from crowdveil.guarantees import painting
from crowdveil.guarantees.painting import Block, blocks, by_step
from crowdveil.guarantees.runs import Runs, distinct

Areas = list[list[int]]
Rows = list[tuple[int, int, int]]


def _subtrees(tree: Any) -> Areas:
    """The tiles of every node of a nested list."""
    if isinstance(tree, int):
        return [[tree]]
    below = [_subtrees(child) for child in tree]
    return [*itertools.chain(*below), sorted(t for nodes in below for t in nodes[-1])]


nesting = testing.nested_trees(max_tiles=10).map(_subtrees)
shapes = st.lists(st.sets(st.integers(0, 9), min_size=1).map(sorted), min_size=1, max_size=8)
mixed = st.tuples(nesting, shapes).map(lambda both: [*both[0], *both[1]])


@st.composite
def painted_rows(draw: st.DrawFn, areas: st.SearchStrategy[Areas]) -> tuple[Areas, Rows]:
    """Areas, and rows (step, origin, destination) sorted by step."""
    made = draw(areas)
    area = st.integers(0, len(made) - 1)
    return made, sorted(draw(st.lists(st.tuples(st.sampled_from([0, 1, 5]), area, area), max_size=12)))


def _runs(areas: Areas, rows: Rows) -> Runs:
    named = np.bincount([a for row in rows for a in row[1:]], minlength=len(areas))
    tiles = max(t for area in areas for t in area) + 1
    return Runs.of([np.array(a, np.int64) for a in areas], tiles, named)


def _columns(rows: Rows) -> list[Any]:
    return [np.array([row[i] for row in rows], np.int64) for i in range(3)]


@settings(max_examples=tries(400))
@given(
    made=painted_rows(nesting | shapes | mixed),
    limits=st.fixed_dictionaries(
        {
            "MAX_STRIPES": st.sampled_from([1, 4, 1 << 15]),
            "MAX_PAIRS": st.sampled_from([0, 150, 1 << 20]),
            "MAX_FLOWS": st.sampled_from([3, 1 << 16]),
            "MAX_STEPS": st.sampled_from([1, 256]),
        }
    ),
    flows=st.none() | st.lists(st.integers(0, 9), min_size=6, max_size=6),
)
def test_pairs_twice_and_the_row_over_each_pair(
    made: tuple[Areas, Rows], limits: dict[str, int], flows: list[int] | None
) -> None:
    """By plain sets of pairs; with all steps at once and a few at a time, on a map and by searching."""
    areas, rows = made
    over: dict[int, dict[tuple[int, int], list[int]]] = {step: {} for step, _, _ in rows}
    for row, (step, o, d) in enumerate(rows):
        for pair in itertools.product(areas[o], areas[d]):
            over[step].setdefault(pair, []).append(row)
    runs = _runs(areas, rows)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(painting, name, value)
        made_blocks = list(blocks(runs, *_columns(rows), None if flows is None else np.array(flows)))
        assert [s for block in made_blocks for s in block.steps.tolist()] == sorted(over)
        assert [row for block in made_blocks for row in range(block.rows.start, block.rows.stop)] == [*range(len(rows))]
        for block in made_blocks:
            _compare(block, runs, over)


def _compare(block: Block, runs: Runs, over: dict[int, dict[tuple[int, int], list[int]]]) -> None:
    painted = block.painted()
    pairs = list(itertools.product(range(len(runs.position)), repeat=2))
    tiles = [runs.position[[pair[i] for pair in pairs]] for i in range(2)]
    for number, (step, crossed) in enumerate(zip(block.steps.tolist(), painted.crossed.tolist(), strict=True)):
        assert crossed == any(len(rows_over) > 1 for rows_over in over[step].values())
        if not crossed:
            found = painted.row_at(np.full(len(pairs), number), *tiles)
            wanted = [over[step].get(pair, [-1])[0] for pair in pairs]
            assert [row + block.rows.start if row >= 0 else -1 for row in found.tolist()] == wanted


@given(made=painted_rows(nesting))
def test_areas_that_nest_are_one_run_each(made: tuple[Areas, Rows]) -> None:
    runs = _runs(*made)
    assert runs.count.tolist() == [1] * len(made[0])
    assert (runs.last - runs.first).tolist() == runs.size.tolist() == [len(area) for area in made[0]]


@given(made=painted_rows(mixed))
def test_runs_of_any_area_are_its_tiles(made: tuple[Areas, Rows]) -> None:
    runs = _runs(*made)
    assert sorted(runs.position.tolist()) == list(range(len(runs.position)))
    for i, area in enumerate(made[0]):
        parts = range(runs.offsets[i], runs.offsets[i + 1])
        places = [place for r in parts for place in range(runs.first[r], runs.last[r])]
        assert places == sorted(runs.position[area].tolist())
        assert all(runs.last[r] < runs.first[r + 1] for r in parts[:-1]), "runs that touch are one"


def test_a_rare_union_is_split_and_breaks_no_other_area() -> None:
    areas = [[0, 1], [2, 3], [4, 5], [6, 7], [0, 1, 2, 3], [4, 5, 6, 7], [1, 3, 5, 7]]
    rows = [(0, a, b) for a in range(4) for b in range(6)] + [(1, 0, 6)]
    runs = _runs(areas, rows)
    assert runs.count[:6].tolist() == [1] * 6 and runs.count[6] > 1


@pytest.mark.parametrize("pairs", [0, 1 << 20])
def test_rows_that_cannot_be_apart_are_not_painted(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty thousand rows from everywhere to everywhere would be four million stripes; the row after them is found."""
    monkeypatch.setattr(painting, "MAX_PAIRS", pairs)
    monkeypatch.setattr(painting, "MAX_STRIPES", 1 << 30)
    rows = [(0, 0, 0)] * 40_000 + [(1, 1, 1)]
    runs = _runs([list(range(100)), [3]], rows)
    (block,) = blocks(runs, *_columns(rows))
    painted = block.painted()
    assert painted.crossed.tolist() == [True, False]
    place = runs.position[[3]]
    assert painted.row_at(np.array([1]), place, place).tolist() == [40_000]
    assert len(painted._first) == 1


@pytest.mark.parametrize("pairs", [0, 1 << 20])
def test_positions_in_no_area(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the place behind the last, which is 3."""
    monkeypatch.setattr(painting, "MAX_PAIRS", pairs)
    rows = [(3, 0, 0), (4, 1, 1)]
    (block,) = blocks(_runs([[0, 1], [2]], rows), *_columns(rows))
    number, origin, destination = (np.array(a) for a in ([0, 0, 0, 1, 1, 1], [0, 3, 1, 3, 2, 3], [1, 0, 3, 2, 2, 3]))
    assert block.painted().row_at(number, origin, destination).tolist() == [0, -1, -1, -1, 1, -1]


def test_no_rows() -> None:
    assert list(blocks(Runs.of([], 0, np.zeros(0, np.int64)), *_columns([]))) == []


def test_rows_are_put_in_the_order_of_steps_if_they_are_not() -> None:
    step, other = np.array([2, 0, 2, 1]), np.array([5, 6, 7, 8])
    order, (steps, others) = by_step(step, other)
    assert order is not None and order.tolist() == [1, 3, 0, 2]
    assert steps.tolist() == [0, 1, 2, 2] and others.tolist() == [6, 8, 5, 7]
    assert by_step(steps, others)[0] is None


def test_distinct_values_rise() -> None:
    assert distinct(np.array([3, -1, 3, 2, -1])).tolist() == [-1, 2, 3]
    assert distinct(np.zeros(0, np.int64)).tolist() == []
