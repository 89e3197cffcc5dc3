"""Person ids in a Parquet file that DuckDB groups: normalized where needed, counted, and compared without case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.io.duckdb_engine import fetch, quote_identifier
from crowdveil.io.od_columns import OdColumns
from crowdveil.io.person_ids import count_case_variants, id_type, normalized_ids
from crowdveil.io.source import Source

_CHANGED = "changed_ids"


@dataclass(frozen=True)
class EnginePeople:
    """The people of a file in SQL.

    Attributes
    ----------
    column, join
        SQL that follows the other selected columns, and SQL that follows the file `f`.
    count
        Number of distinct people; None if they are not known.
    alike
        Number of ids that differ from another one only in case.
    """

    column: str = ""
    join: str = ""
    count: int | None = None
    alike: int = 0

    @classmethod
    def of(cls, connection: Any, source: Source, columns: OdColumns, file: str) -> EnginePeople:
        """Read the distinct ids of the user column; only ids whose spelling changes are joined to the rows."""
        if columns.user is None:
            return cls()
        raw = f"f.{quote_identifier(columns.user)}"
        if pa.types.is_integer(id_type(source.schema.field(columns.user).type)):
            return cls(f", {raw} AS person").among(connection, f"(SELECT {raw} AS person FROM {file} f)")
        written = fetch(connection, f"SELECT DISTINCT {raw} AS id FROM {file} f WHERE {raw} IS NOT NULL")["id"]
        written = written.cast(pa.string()).combine_chunks()
        spelled = normalized_ids(written, f"{source.name}, column {columns.user}")
        people = pc.unique(spelled).drop_null()
        found = cls(f", {raw} AS person", "", len(people), count_case_variants(people))
        changed = pc.fill_null(pc.not_equal(written, spelled), True)
        if not pc.any(changed).as_py():
            return found
        connection.register("arrow_ids", pa.table({"written": written, "id": spelled}).filter(changed))
        connection.sql(f"CREATE TEMP TABLE {_CHANGED} AS SELECT * FROM arrow_ids")
        spelling = f", CASE WHEN c.written IS NULL THEN {raw} ELSE c.id END AS person"
        return replace(found, column=spelling, join=f" LEFT JOIN {_CHANGED} c ON c.written = {raw}")

    def among(self, connection: Any, rows: str) -> EnginePeople:
        """Return a copy with the people counted in the given rows."""
        if not self.column:
            return self
        text = f"SELECT count(*) FROM (SELECT DISTINCT person FROM {rows} WHERE person IS NOT NULL)"
        return replace(self, count=fetch(connection, f"{text} t")[0][0].as_py())
