"""What every reader on a cluster needs where it is started: what data may be, its columns, and how its times were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.distributed.rows import INSTANTS, WALLS
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import CSV_SUFFIXES, Source
from crowdveil.io.times import say_zone


def readable(data: Any) -> Any:
    """What Spark can read: a path, or a data frame of its own; anything else is refused."""
    if isinstance(data, str | Path):
        if str(data).lower().endswith(".omx"):
            raise InputError(f"{data}: Spark cannot read OMX files; write the flows as Parquet, or run without Spark.")
        return data
    if not hasattr(data, "createOrReplaceGlobalTempView"):
        raise InputError(
            f"wanted a path or a data frame of Spark, but got {type(data).__name__}; give one, or run without Spark."
        )
    return data


def source_of(engine: SparkEngine, data: Any, frame: Frame) -> Source:
    """What messages call the data, and its columns; those of a CSV are text."""
    named = isinstance(data, str | Path)
    stem = Path(str(data).rstrip("/")) if named else Path("table")
    stem = stem.with_suffix("") if stem.suffix in (".gz", ".bz2", ".zst") else stem
    csv = named and stem.suffix.lower() in CSV_SUFFIXES
    return Source(str(data) if named else "the table", engine.schema(frame), delimiter="," if csv else None)


def quoted(name: str) -> str:
    """A column's name for a query."""
    if "`" in name:
        raise ParameterError("a column has a backtick in its name, which Spark cannot read; rename it.")
    return f"`{name}`"


def settle_zone(said: dict[str, int], source: Source, column: str | None, tz: str, notes: ReadNotes) -> None:
    """Tell how times without a zone were read; stop where only some have one."""
    if {INSTANTS, WALLS} <= set(said):
        raise InputError(
            f"{source.name}, column {column}: some times have a zone and some have none; write all of them in one form."
        )
    if WALLS in said:
        say_zone(notes, column, tz)
