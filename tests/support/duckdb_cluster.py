"""A stand-in for a cluster: DuckDB answers the queries, and functions of executors run here, on pickled copies."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from crowdveil.engine.progress import Progress, no_progress

CHUNK_ROWS = 500


class Frame:
    """A table with the few methods of a data frame of Spark that are used."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.table.column_names

    def createOrReplaceGlobalTempView(self, name: str) -> None:  # noqa: N802, as Spark names it
        """Not used here: data frames of Spark have it."""

    def limit(self, rows: int) -> Frame:
        """Return the first rows."""
        return Frame(self.table.slice(0, rows))

    def select(self, *names: str) -> Frame:
        """Return some columns."""
        return self.selectExpr(*names)

    def where(self, condition: str) -> Frame:
        """Return the rows that meet a condition."""
        return query(f"SELECT * FROM rows WHERE {condition}", rows=self)

    def selectExpr(self, *expressions: str) -> Frame:  # noqa: N802, as Spark names it
        """Return expressions of columns."""
        return query(f"SELECT {', '.join(expressions)} FROM rows", rows=self)


def query(text: str, **frames: Frame) -> Frame:
    """Answer a query over frames."""
    with duckdb.connect() as connection:
        for name, frame in frames.items():
            connection.register(name, frame.table)
        return Frame(connection.sql(text.replace("`", '"')).to_arrow_table())


class DuckdbCluster:
    """The operations of `crowdveil.engine.spark.SparkEngine`."""

    slots = 2

    def read(self, data: Any) -> Frame:
        """Read a file; a CSV has text in all columns."""
        if isinstance(data, Frame):
            return data
        if str(data).endswith(".csv"):
            names = pacsv.open_csv(data).schema.names
            as_text = pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
            return Frame(pacsv.read_csv(Path(data), convert_options=as_text))
        return Frame(pq.read_table(data))

    def gather(self, frame: Frame, progress: Progress = no_progress) -> pa.Table:
        """Return the rows."""
        return frame.table

    def schema(self, frame: Frame) -> pa.Schema:
        """Return the columns."""
        return frame.table.schema

    def table(self, table: pa.Table) -> Frame:
        """Return a small table."""
        return Frame(table)

    def sql(self, text: str, **frames: Frame) -> Frame:
        """Answer a query, in which frames appear as {name}."""
        return query(text.format(**{name: name for name in frames}), **frames)

    @contextmanager
    def kept(self, frame: Frame) -> Iterator[Frame]:
        """Keep rows."""
        yield frame

    def map_rows(self, frame: Frame, function: Any, schema: pa.Schema) -> Frame:
        """Map a function over chunks of rows."""
        batches = frame.table.combine_chunks().to_batches(max_chunksize=CHUNK_ROWS)
        sent = pickle.loads(pickle.dumps(function))
        return Frame(pa.Table.from_batches(list(sent(iter(batches))), schema))

    def map_groups(self, frame: Frame, key: str, function: Any, schema: pa.Schema, groups: int) -> Frame:
        """Map a function over the rows of each key."""
        sent, keys = pickle.loads(pickle.dumps(function)), frame.table[key].unique().to_pylist()
        found = [sent(frame.table.filter(pa.compute.equal(frame.table[key], value))) for value in keys]
        assert all(table.schema.equals(schema) for table in found)
        return Frame(pa.concat_tables(found))
