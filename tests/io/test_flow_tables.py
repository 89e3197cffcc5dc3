"""Flows of tables with volumes against a plain dict."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.io.flows import read_flows
from crowdveil.io.notes import ReadNotes
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
    rows=rows_of_flows, chunk=st.integers(1, 12), bad=bad_rows, sort=st.integers(0, 2),
    step=st.sampled_from([("1h", 3600), ("1d", 86400), ("all", 10**9)]),
)  # fmt: skip
def test_rows_in_any_order_are_those_of_a_plain_dict(
    rows: list[Row], chunk: int, bad: set[int], sort: int, step: tuple[str, int]
) -> None:
    """Rows in order, all or nearly, with those that cannot be used among them."""
    if sort:
        rows = sorted(rows, key=lambda row: row[: 2 + sort - 1])
    wanted: dict[tuple[int, int, int], int] = defaultdict(int)
    for i, (t, o, d, volume, _) in enumerate(rows):
        if i not in bad:
            wanted[0 if step[0] == "all" else t // step[1] * step[1], o, d] += volume
    found = _read(
        _table(rows, chunk, bad, people=False), step=step[0], drop_invalid=True, time_format="%Y-%m-%d %H:%M:%S"
    )
    if not any(wanted.values()):
        assert "no row can be used" in found
        return
    assert found[0] == [(*key, volume, volume) for key, volume in sorted(wanted.items()) if volume]
    assert sum(found[4].values()) == len(bad & set(range(len(rows))))


@pytest.mark.parametrize("times", [1, 2])
def test_people_of_one_row_are_kept_and_of_two_are_refused(times: int) -> None:
    table = pa.concat_tables([_table([(0, 0, 1, 5, 3), (0, 1, 0, 6, 2)], 1, people=True)] * times)
    found = _read(table, step="1h")
    if times == 1:
        assert found[0] == [(0, 0, 1, 5, 3), (0, 1, 0, 6, 2)] and found[1] == "people"
    else:
        assert "2 pairs of zones have several rows in a time step" in found


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
    flows = read_flows(table, zones=many)
    assert flows.origin.tolist() == places and flows.destination.tolist() == places[::-1]


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


@examples(150, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 3), st.integers(0, 999)), min_size=1, max_size=30
    ),
    order=st.randoms(use_true_random=False), whole=st.booleans(),
)  # fmt: skip
def test_fractions_are_rounded_in_each_time_step_in_the_order_of_the_zones(
    rows: list[tuple[int, int, int, int]], order: random.Random, whole: bool
) -> None:
    """Up to each pair the rounded volumes are the sum of the exact ones, rounded; whole volumes stay."""
    rows = [(*row[:3], row[3] // 100 * 100 if whole else row[3]) for row in rows]
    exact: dict[tuple[int, int, int], Fraction] = defaultdict(Fraction)
    for step, o, d, hundredths in rows:
        exact[step * 3600, o, d] += Fraction(hundredths, 100)
    wanted, so_far = [], defaultdict(Fraction)
    for key, volume in sorted(exact.items()):
        before = so_far[key[0]]
        so_far[key[0]] += volume
        trips = floor(so_far[key[0]] + Fraction(1, 2)) - floor(before + Fraction(1, 2))
        wanted += [(*key, trips, trips)] if trips else []
    order.shuffle(rows)
    table = pa.table(
        {
            "t": pa.array([row[0] * 3600 for row in rows], pa.timestamp("s", tz="UTC")),
            "origin": [ZONES.ids[row[1]] for row in rows],
            "destination": [ZONES.ids[row[2]] for row in rows],
            "volume": [row[3] / 100 for row in rows],
        }
    )
    found = _read(table, step="1h")
    if not wanted:
        assert "no row can be used" in found
    else:
        assert found[0] == wanted
        assert any("volumes in column volume are fractions" in text for text in found[3]) == any(
            row[3] % 100 for row in rows
        )


def test_people_of_a_fractional_flow_are_at_most_its_whole_trips() -> None:
    table = pa.table({"origin": ["7", "a"], "destination": ["a", "7"], "volume": [2.6, 1.6], "people": [2, 2]})
    with pytest.raises(InputError, match=r"1 row \(row 2\) has more people than trips"):
        read_flows(table, zones=ZONES)
