"""What every reader on a cluster needs where it is started: what data may be, its columns, and how its times were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.headers import refuse_wide
from crowdveil.io.notes import ReadNotes
from crowdveil.io.person_ids import IdRules
from crowdveil.io.source import CSV_SUFFIXES, Source
from crowdveil.io.time_forms import DateOrder, TimeForm, date_order, is_text, learned_form
from crowdveil.io.times import say_clock, say_unit, say_zone
from crowdveil.io.values import one_array
from crowdveil.reading import Reading
from crowdveil.run.spark.rows import INSTANTS, SKIPPED, TWICE, WALLS, DateOrderReader, without_missing

FORM_ROWS = 20_000
"""Rows that are looked at to learn how times are written."""


def readable(data: Any) -> Any:
    """What Spark can read: a path, or a data frame of its own; anything else is refused."""
    if isinstance(data, str | Path):
        if str(data).lower().endswith(".omx"):
            raise InputError(data, "Spark cannot read OMX files; write the flows as Parquet, or run without Spark.")
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
    refuse_wide(str(data) if named else "the table", len(frame.columns))
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


def settle_clock(said: dict[str, int], column: str | None, tz: str, notes: ReadNotes) -> None:
    """Tell how many local times no clock showed, and how many it showed twice."""
    say_clock(notes, column, tz, said.get(SKIPPED, 0), said.get(TWICE, 0))


def id_rules(reading: Reading) -> IdRules:
    """What makes two ids one person's."""
    return IdRules(reading.user_case_sensitive, reading.user_ignore_case)


def form_there(
    engine: SparkEngine, frame: Frame, source: Source, column: str | None, reading: Reading, notes: ReadNotes
) -> TimeForm:
    """How times are written, from the first rows; from all of them where these leave open whether the day comes first."""
    form = TimeForm(reading.time_format, reading.any_years)
    if column is None:
        return form
    what, times = f"{source.name}, column {column}", frame.select(quoted(column))
    if form.given is None and is_text(source.schema.field(column).type):
        head = engine.gather(times.limit(FORM_ROWS)).combine_chunks().to_batches()
        pieces = [without_missing(source, batch)[column] for batch in head]
        order = DateOrder()
        for piece in pieces:
            order = order.joined(date_order(one_array(piece).drop_null()))
        if not order.settled:
            reader = DateOrderReader(source, column)
            shown = engine.gather(engine.map_rows(times, reader, reader.schema).distinct()).to_pylist()
            for row in shown:
                order = order.joined(DateOrder(**row))
        if order.seen:
            return TimeForm(None, form.any_years, learned=True, day_first=order.day_first(what))
        form = learned_form(pieces, form, what)
    elif form.given is None:
        head = engine.gather(times.limit(FORM_ROWS))
        form = learned_form([head[column]], form, what)
    say_unit(notes, column, form.unit)
    return form


def count_people(engine: SparkEngine, people: Frame) -> tuple[int, int]:
    """How many people a frame with the columns person and lower has, and how many differ only in case from another one."""
    found = engine.gather(
        engine.sql(
            "SELECT sum(n) AS people, sum(CASE WHEN n > 1 THEN n ELSE 0 END) AS alike FROM (SELECT lower, "
            "count(DISTINCT person) AS n FROM {people} WHERE person IS NOT NULL GROUP BY lower)",
            people=people,
        )
    )
    return int(found["people"][0].as_py() or 0), int(found["alike"][0].as_py() or 0)
