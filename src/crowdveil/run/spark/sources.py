"""Input on a cluster: supported runs and data, columns, times, and first rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.spark import Frame, SparkEngine, SparkTable
from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.notes import ReadNotes
from crowdveil.io.omx import is_omx
from crowdveil.io.source import CSV_SUFFIXES, MISSING, Source, refuse_wide
from crowdveil.io.times import Seconds, mixed_zones, note_assumed_zone, note_clock_changes
from crowdveil.model.flows import VISITED
from crowdveil.model.time_axis import Clock
from crowdveil.run.stages import RunSpec

HEAD_ROWS = 20_000
"""Rows from which the form of times and the meaning of columns are learned."""
REFUSED: dict[str, str] = {
    "bbox": "trips are cropped on one machine; prepare them with crowdveil flows",
    "time_window": "trips are cropped on one machine; prepare them with crowdveil flows",
    "fold": "periods are added up on one machine; prepare the flows with crowdveil flows",
    "ledger": "an audit compares all trips with those of earlier releases; run it on one machine, or add the release afterwards",
    "pairing": "the original does not leave the cluster; leave it out",
}
"""Options that do not work on Spark, each with the reason and a remedy."""


def check_supported(spec: RunSpec) -> None:
    """Raise if a run cannot be done on a cluster, with the reason."""
    reason = spec.method.partitioning(spec.params)
    if reason is not None:
        raise ParameterError(
            Option("engine", "spark"), f"{spec.method.name} cannot be done in partitions, since {reason}."
        )
    if spec.options.format == "csv" or spec.data_name is not None:
        raise ParameterError(
            Text(
                "{engine} writes Parquet under its own names. Leave {format} and the name out.",
                engine=Option("engine", "spark"),
                format=Option("format", "csv"),
            )
        )
    for name, reason in REFUSED.items():
        given = (getattr(part, name, None) for part in (spec.reading, spec.options, spec.params))
        if any(value not in (None, False, 0) for value in given):
            raise ParameterError(Option(name), f"it is not available on Spark: {reason}.")
    if getattr(spec.reading, "min_tiles_of", None) == VISITED:
        raise ParameterError(
            Option("min_tiles_of", VISITED), "visited tiles depend on all trips. Run it on one machine."
        )


def open_data(engine: SparkEngine, data: Any) -> tuple[Frame, Source, bool]:
    """Return the rows of a path, a table or a data frame; name and columns; and whether these are text, as those of a CSV."""
    if isinstance(data, str | Path) and is_omx(data):
        raise InputError(data, "Spark cannot read OMX files. Write the flows as Parquet, or run without Spark.")
    if not isinstance(data, str | Path | SparkTable) and not hasattr(data, "createOrReplaceGlobalTempView"):
        raise InputError(
            f"Expected a path or a data frame of Spark, got {type(data).__name__}. Give one, or run without Spark."
        )
    frame = engine.read(data)
    name = data.name if isinstance(data, SparkTable) else str(data) if isinstance(data, str | Path) else "the table"
    refuse_wide(name, len(frame.columns))
    stem = Path(name.rstrip("/"))
    stem = stem.with_suffix("") if stem.suffix in (".gz", ".bz2", ".zst") else stem
    is_text = isinstance(data, str | Path) and stem.suffix.lower() in CSV_SUFFIXES
    return frame, Source(name, engine.schema(frame), delimiter="," if is_text else None), is_text


def first_rows(engine: SparkEngine, frame: Frame, source: Source, is_text: bool) -> pa.RecordBatch:
    """Return the first rows, with nulls where values are missing."""
    head = engine.gather(frame.limit(HEAD_ROWS)).combine_chunks().to_batches()
    if not head:
        raise InputError(source.name, "the file has columns but no rows. Expected at least one.")
    return with_missing(head[0]) if is_text else head[0]


def with_missing(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a CSV with nulls in place of the words for missing values."""
    columns = [
        pa.array([None if v in MISSING else v for v in column.to_pylist()], pa.string()) for column in rows.columns
    ]
    return pa.record_batch(columns, names=rows.schema.names)


INSTANT, SKIPPED, TWICE = (f"crowdveil_{name}" for name in ("instant", "skipped", "twice"))
TIME_NOTES = [(name, pa.bool_()) for name in (INSTANT, SKIPPED, TWICE)]
"""Columns that say whether a time names a zone, and whether a clock skipped it or showed it twice; null without a time."""
COUNTED = f"{INSTANT} AS instant, count(*) AS n, count_if({SKIPPED}) AS skipped, count_if({TWICE}) AS twice"
"""The counts of these columns in a query, grouped by `INSTANT`."""


def time_notes(times: Seconds, tz: str) -> dict[str, Any]:
    """Return the columns `TIME_NOTES` of rows with these times."""
    skipped, twice = np.zeros((2, len(times.values)), np.bool_)
    if not times.instants:
        skipped, twice = Clock(tz).odd_times(np.where(times.bad, 0, times.values))
    instant = pa.array(np.full(len(times.values), times.instants), mask=times.bad)
    return {INSTANT: instant, SKIPPED: skipped & ~times.bad, TWICE: twice & ~times.bad}


def add_time_notes(counts: list[dict[str, Any]], column: str | None, tz: str, what: str, notes: ReadNotes) -> None:
    """Note from counts of `TIME_NOTES` how times were read; raise where only some of them name a zone."""
    if {True, False} <= {row["instant"] for row in counts}:
        raise mixed_zones(what)
    if any(row["instant"] is False for row in counts):
        note_assumed_zone(notes, column, tz)
    note_clock_changes(notes, column, tz, *(sum(row[name] for row in counts) for name in ("skipped", "twice")))


def quoted(name: str) -> str:
    """Quote a column's name for a query."""
    if "`" in name:
        raise ParameterError("a column has a backtick in its name, which Spark cannot read. Rename it.")
    return f"`{name}`"
