"""Flows that are read in order against the same rows in any order, grouped by the engine, and a plain dict."""

from __future__ import annotations

import random
import threading
import weakref
from collections.abc import Collection
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.io import od_grouping
from crowdveil.io.flows import read_flows
from crowdveil.io.notes import ReadNotes
from crowdveil.io.parallel import one_ahead, run_ordered
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones

ZONES = Zones.from_ids(["7", "12", "a", "b"])
Row = tuple[int, int, int, int, int]
"""Time in seconds, origin, destination, volume, people."""

rows_of_flows = st.lists(
    st.tuples(
        st.sampled_from([-5400, 0, 1800, 3600, 90_000, 90_001]),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from([0, 1, 9]),
        st.sampled_from([0, 1, 1, 4]),
    ),
    min_size=1,
    max_size=30,
)
bad_rows = st.sets(st.integers(0, 29))


def _table(rows: list[Row], chunk: int, bad: Collection[int] = (), *, people: bool) -> pa.Table:
    columns: dict[str, Any] = {
        "t": pa.array([row[0] * 1000 for row in rows], pa.timestamp("ms", tz="UTC")),
        "origin": pa.array(["nowhere" if i in bad else ZONES.ids[row[1]] for i, row in enumerate(rows)]),
        "destination": pa.array([ZONES.ids[row[2]] for row in rows]),
        "volume": pa.array([row[3] for row in rows], pa.int64()),
    }
    if people:
        columns["people"] = pa.array([row[4] for row in rows], pa.int64())
    table = pa.table(columns)
    return pa.concat_tables([table.slice(i, chunk) for i in range(0, len(rows), chunk)])


def _read(table: pa.Table, **options: Any) -> Any:
    """Flows as plain tuples with the time of their step, or what was said in place of them."""
    notes = ReadNotes()
    try:
        flows = read_flows(table, zones=ZONES, notes=notes, **options)
    except InputError as error:
        return str(error)
    return _plain(flows), flows.k_unit, flows.step_s, notes.messages, notes.dropped


def _plain(flows: Flows) -> list[tuple[int, ...]]:
    columns = (flows.t[flows.step], flows.origin, flows.destination, flows.volume, flows.people)
    return list(zip(*(c.tolist() for c in columns), strict=True))


@examples(150, deadline=None)
@given(
    rows=rows_of_flows, chunk=st.integers(1, 12), bad=bad_rows, people=st.booleans(), sort=st.integers(0, 2),
    step=st.sampled_from(["1h", "1d", "all", None]), tz=st.sampled_from(["UTC", "Asia/Kathmandu"]),
)  # fmt: skip
def test_rows_in_any_order_are_the_same_flows(
    rows: list[Row], chunk: int, bad: set[int], people: bool, sort: int, step: str | None, tz: str
) -> None:
    """Rows in order, all or nearly, with those that cannot be used among them, against the grouping in DuckDB."""
    if sort:
        rows = sorted(rows, key=lambda row: row[: 2 + sort - 1])
    options = {"step": step, "tz": tz, "drop_invalid": True, "time_format": "%Y-%m-%d %H:%M:%S"}
    here = _read(_table(rows, chunk, bad, people=people), **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(od_grouping, "read_in_order", lambda *_: None)
        assert here == _read(_table(rows, chunk, bad, people=people), **options)


@examples(100, deadline=None)
@given(rows=rows_of_flows, chunk=st.integers(1, 12), people=st.booleans())
def test_rows_in_order_are_not_grouped(rows: list[Row], chunk: int, people: bool) -> None:
    cells: dict[tuple[int, int, int], tuple[int, int]] = {}
    for t, o, d, volume, crowd in rows:
        cells[t // 3600 * 3600, o, d] = volume + 1, min(crowd, volume) + 1 if people else volume + 1
    made = sorted((*key, *value) for key, value in cells.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(od_grouping, "_group_chunks", _never)
        flows = read_flows(_table(made, chunk, people=people), zones=ZONES, step="1h", time_format="%Y-%m-%d %H:%M:%S")
    assert _plain(flows) == made


@pytest.mark.parametrize("broken", [(3, 2), (0, 4), (2, 2)])
def test_one_row_out_of_order_is_put_where_it_belongs(broken: tuple[int, int]) -> None:
    """The last of a piece, the first of the next, and a row twice."""
    rows: list[Row] = [(0, 0, 1, 5, 5), (0, 1, 0, 6, 6), (0, 1, 1, 7, 7), (3600, 0, 0, 8, 8), (3600, 0, 1, 9, 9)]
    moved = [*rows]
    moved.insert(broken[0], moved.pop(broken[1]))
    if broken[0] == broken[1]:
        moved.insert(2, moved[2])
    found = _plain(read_flows(_table(moved, 3, people=False), zones=ZONES, step="1h"))
    wanted = [(*row[:3], 14, 14) if broken == (2, 2) and row == rows[2] else row for row in rows]
    assert found == wanted


def test_pairs_of_very_many_zones_do_not_overflow() -> None:
    """Of 50,000 zones, pairs have numbers beyond 32 bits."""
    many = Zones.from_ids([str(i) for i in range(50_000)])
    places = [0, 40_000, 45_000, 49_999]
    table = pa.table({"origin": pa.array(places), "destination": pa.array(places[::-1]), "volume": [1, 2, 3, 4]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(od_grouping, "_group_chunks", _never)
        flows = read_flows(table, zones=many)
    assert flows.origin.tolist() == places and flows.destination.tolist() == places[::-1]


def _never(*_: Any) -> Any:
    raise AssertionError("rows in order need no grouping")


def test_jobs_begin_a_few_ahead_and_end_in_order() -> None:
    begun: list[int] = []

    def jobs() -> Any:
        for i in range(50):
            begun.append(i)
            yield lambda i=i: sum(range(random.randint(0, 3000))) * 0 + i

    found = []
    for done in run_ordered(jobs()):
        found.append(done)
        assert len(begun) <= done + 40, "not all at once"
    assert found == list(range(50))


def test_a_single_job_needs_no_thread() -> None:
    here = threading.get_ident()
    assert list(run_ordered([threading.get_ident])) == [here] and list(run_ordered([])) == []
    assert here not in list(run_ordered([threading.get_ident] * 2))


def test_inputs_of_jobs_that_are_done_are_let_go() -> None:
    class Chunk:
        """Rows of a job."""

    alive: list[weakref.ref[Chunk]] = []

    def jobs() -> Any:
        for i in range(20):
            chunk = Chunk()
            alive.append(weakref.ref(chunk))
            yield partial(lambda i, _: i, i, chunk)

    for done in run_ordered(jobs()):
        assert done < 15 or not any(chunk() for chunk in alive[:5])
    assert done == 19


def test_a_job_that_fails_is_reported_in_its_turn() -> None:
    def fail() -> int:
        raise ValueError("third")

    results = run_ordered([lambda: 1, lambda: 2, fail, lambda: 4])
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="third"):
        next(results)


def test_one_item_is_drawn_ahead_and_no_more() -> None:
    drawn: list[int] = []

    def items() -> Any:
        for i in range(20):
            drawn.append(i)
            yield i
        raise ValueError("the end")

    ahead = one_ahead(items())
    for i in range(20):
        assert next(ahead) == i and len(drawn) <= i + 2
    with pytest.raises(ValueError, match="the end"):
        next(ahead)
    ahead = one_ahead(items())
    assert next(ahead) == 0
    ahead.close()  # type: ignore[attr-defined]
    assert list(one_ahead([])) == []


def test_times_that_repeat_are_read_like_others() -> None:
    """A column of many equal times is read once for each; one that cannot be used is reported for every row of it."""
    t = np.repeat([0, 10**9, 2 * 10**9], [20, 30, 40]) * 1000
    for tz in ("UTC", "Europe/Paris"):
        table = pa.table(
            {
                "t": pa.array(t, pa.timestamp("ms")),
                "origin": pa.array(["7"] * 90),
                "destination": pa.array(["a"] * 90),
                "volume": pa.array([1] * 90),
            }
        )
        text = table.set_column(0, "t", table["t"].cast(pa.string()))
        assert _plain(read_flows(table, zones=ZONES, step="1h", tz=tz)) == _plain(
            read_flows(text, zones=ZONES, step="1h", tz=tz)
        )
    far = pa.array(np.repeat([0, 400_000_000_000], [20, 30]), pa.timestamp("s"))
    table = pa.table({"t": far, "origin": ["7"] * 50, "destination": ["a"] * 50, "volume": [1] * 50})
    with pytest.raises(InputError, match=r"30 rows .first: 21, 22, 23, 24, 25. have no usable time"):
        read_flows(table, zones=ZONES, step="1h")
