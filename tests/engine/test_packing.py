"""Rows in packs: they come out as they went in."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.engine.packing import in_runs, packed, unpacked

SCHEMA = pa.schema([("key", pa.int64()), ("person", pa.string()), ("n", pa.int64())])
ROWS = st.lists(st.tuples(st.integers(-3, 3), st.none() | st.text(max_size=3), st.integers(-(2**63), 2**63 - 1)))


@given(pieces=st.lists(ROWS, max_size=4))
def test_rows_come_out_as_they_went_in(pieces: list[list[tuple[int, str | None, int]]]) -> None:
    packs = []
    for rows in pieces:
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        table = pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)
        packs += [(key, packed(run)) for key, run in in_runs(table, table["key"].to_numpy())]
    for key in range(-3, 4):
        column = pa.chunked_array([pa.array([p for k, p in packs if k == key], pa.binary())])
        found = unpacked(column, SCHEMA)
        wanted = [dict(zip(SCHEMA.names, row, strict=True)) for rows in pieces for row in rows if row[0] == key]
        assert found.to_pylist() == wanted


def test_a_pack_holds_its_own_rows_and_not_those_next_to_it() -> None:
    table = pa.table({"key": pa.array([0] * 10_000 + [1]), "person": ["a"] * 10_001, "n": pa.array([1] * 10_001)})
    (_, large), (_, small) = in_runs(table, table["key"].to_numpy())
    assert len(packed(small)) < 1000 < len(packed(large))
