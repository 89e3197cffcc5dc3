"""What tests on Spark share: comparing published rows, whoever wrote them."""

from __future__ import annotations

import pyarrow as pa


def plain(rows: pa.Table) -> pa.Table:
    """Rows in one order, with times as UTC: nothing but values is left."""
    t = rows["t"].cast(pa.timestamp("ms", tz="UTC"))
    columns = {"t": t, **{n: rows[n].cast(pa.string()) for n in ("origin_area", "destination_area", "state")}}
    columns |= {n: rows[n] for n in rows.column_names if n not in columns}
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two releases publish the same rows."""
    return set(one.column_names) == set(other.column_names) and plain(one).equals(plain(other))
