"""Group many trips with people in DuckDB in bounded memory: first into files by time step and origin, then file by file.

DuckDB spills a grouping to disk, but needs memory in proportion to its groups when it ends, and there are about as many groups of
people as trips. So beyond `MAX_ROWS` trips are first distributed over files, such that all trips of a time step and an
origin are in one of them; each is then grouped on its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from crowdveil.io.duckdb_engine import execute, fetch, is_pattern, quote_literal
from crowdveil.io.od_grouping import group_sql

MAX_ROWS = 16_000_000
"""Trips that are grouped at once, in about 1 GB; of more, files of about this number are made."""
FILE_ROWS = 20_000
"""Rows that are held for each file before they are written."""


@dataclass(frozen=True)
class RowGroups:
    """Groups of the rows of a source by time step, origin and destination.

    Attributes
    ----------
    connection
        The engine.
    step
        SQL of the time step of a row.
    columns
        The columns that `group_sql` counts.
    rows
        Number of rows of the source.
    working
        An empty folder that the engine may write to.
    """

    connection: Any
    step: str
    columns: Collection[str]
    rows: int
    working: Path

    def fetch(self, rows: str, select: Callable[[str], str] = lambda sql: sql) -> pa.Table:
        """Return the groups of `rows`; `select` makes the final query of that of the groups."""
        if "person" not in self.columns or self.rows <= MAX_ROWS or is_pattern(self.working):
            return fetch(self.connection, select(group_sql(self.step, rows, self.columns)))
        folder = self._distribute(rows)
        tables = []
        for file in sorted(folder.iterdir()):
            held = f"read_parquet({quote_literal(f'{file}/*.parquet')}, hive_partitioning = false)"
            tables.append(fetch(self.connection, select(group_sql("step", held, self.columns))))
            shutil.rmtree(file)
        return pa.concat_tables(tables)

    def _distribute(self, rows: str) -> Path:
        """Write rows to a folder of folders of files, all rows of a time step and an origin to the same one."""
        folder = self.working / "groups"
        shutil.rmtree(folder, ignore_errors=True)
        files = -(-self.rows // MAX_ROWS)
        number = f"(hash(step, o) % {files})::INTEGER AS number"
        inner = f"SELECT {self.step} AS step, o, d, person FROM {rows}"
        target = f"{quote_literal(str(folder))} (FORMAT parquet, PARTITION_BY (number), ROW_GROUP_SIZE {FILE_ROWS})"
        execute(self.connection, f"COPY (SELECT *, {number} FROM ({inner})) TO {target}")
        return folder
