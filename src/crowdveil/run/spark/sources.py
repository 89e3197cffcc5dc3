"""Input on a cluster: what data may be, its columns, and how its times are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from crowdveil.engine.spark import Frame, SparkEngine, SparkTable
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.omx import is_omx
from crowdveil.io.source import CSV_SUFFIXES, Source, refuse_wide
from crowdveil.io.time_forms import TimeForm, learned_form
from crowdveil.io.times import note_assumed_zone, note_clock_changes
from crowdveil.reading import Reading
from crowdveil.run.spark.trip_rows import (
    INSTANTS,
    SKIPPED,
    TWICE,
    WALLS,
    ChunkReader,
    without_missing,
)

FORM_ROWS = 20_000
"""Rows that the form of times is learned from."""


def readable(data: Any) -> Any:
    """Return data that Spark can read, a path, a table or a data frame of its session; raise on anything else."""
    if isinstance(data, SparkTable):
        return data
    if isinstance(data, str | Path):
        if is_omx(data):
            raise InputError(data, "Spark cannot read OMX files. Write the flows as Parquet, or run without Spark.")
        return data
    if not hasattr(data, "createOrReplaceGlobalTempView"):
        raise InputError(
            f"Expected a path or a data frame of Spark, got {type(data).__name__}. Give one, or run without Spark."
        )
    return data


def source_of(engine: SparkEngine, data: Any, frame: Frame) -> Source:
    """Return the name of the data for messages, and its columns; those of a CSV are text."""
    if isinstance(data, SparkTable):
        refuse_wide(data.name, len(frame.columns))
        return Source(data.name, engine.schema(frame), delimiter=None)
    named = isinstance(data, str | Path)
    stem = Path(str(data).rstrip("/")) if named else Path("table")
    stem = stem.with_suffix("") if stem.suffix in (".gz", ".bz2", ".zst") else stem
    csv = named and stem.suffix.lower() in CSV_SUFFIXES
    refuse_wide(str(data) if named else "the table", len(frame.columns))
    return Source(str(data) if named else "the table", engine.schema(frame), delimiter="," if csv else None)


def quoted(name: str) -> str:
    """Quote a column's name for a query."""
    if "`" in name:
        raise ParameterError("a column has a backtick in its name, which Spark cannot read. Rename it.")
    return f"`{name}`"


def settle_zone(said: dict[str, int], source: Source, column: str | None, tz: str, notes: ReadNotes) -> None:
    """Note how times without a zone were read; raise where only some have one."""
    if {INSTANTS, WALLS} <= set(said):
        raise InputError(
            f"{source.name}, column {column}: some times have a zone and some have none. Write all of them in one form."
        )
    if WALLS in said:
        note_assumed_zone(notes, column, tz)


def settle_clock(said: dict[str, int], column: str | None, tz: str, notes: ReadNotes) -> None:
    """Note how many local times a clock skipped, and how many it showed twice."""
    note_clock_changes(notes, column, tz, said.get(SKIPPED, 0), said.get(TWICE, 0))


def learn_time_form(
    engine: SparkEngine, frame: Frame, source: Source, column: str | None, reading: Reading
) -> TimeForm:
    """Learn the unit of times that are numbers from the first rows."""
    form = TimeForm(reading.time_format)
    if column is None:
        return form
    head = engine.gather(frame.select(quoted(column)).limit(FORM_ROWS)).combine_chunks().to_batches()
    chunks = [without_missing(source, batch)[column] for batch in head]
    return learned_form(chunks, form, f"{source.name}, column {column}")


def map_chunks(
    engine: SparkEngine, frame: Frame, schema: pa.Schema, function: Callable[..., list[Any]], *arguments: Any
) -> Frame:
    """Return the columns that a function makes of each chunk of rows, which is its last argument."""
    return engine.map_rows(frame, ChunkReader(partial(function, *arguments), schema), schema)


def count_people(engine: SparkEngine, people: Frame) -> tuple[int, int]:
    """Count people in a frame with the columns person and lower, and those that differ only in case from another."""
    found = engine.gather(
        engine.sql(
            "SELECT sum(n) AS people, sum(CASE WHEN n > 1 THEN n ELSE 0 END) AS alike FROM (SELECT lower, "
            "count(DISTINCT person) AS n FROM {people} WHERE person IS NOT NULL GROUP BY lower)",
            people=people,
        )
    )
    return int(found["people"][0].as_py() or 0), int(found["alike"][0].as_py() or 0)
