"""Trips and flows on Spark: rows get their time step, Spark groups them to partitions, and executors solve these."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.progress import Progress
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import EmptyInputError, InputError, Text, parts_of, text_of
from crowdveil.io.flows import check_coordinates, resolve_step_seconds
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import ENDS, NAMED, OdColumns, by_role, find_od_columns, refuse_unread_volumes
from crowdveil.io.od_rows import zones_named
from crowdveil.io.source import Source
from crowdveil.io.tiling import (
    MAX_POSITIONS,
    PointCover,
    Tiling,
    by_coordinates,
    find_cover,
    given_zones,
    positions,
    station_columns,
    zones_covering,
    zones_of_positions,
)
from crowdveil.io.times import TimeForm, learned_form, read_seconds, refuse_spread
from crowdveil.io.values import encode_ids
from crowdveil.model.arrays import Sent
from crowdveil.model.flows import Flows
from crowdveil.model.globe import Reach
from crowdveil.model.time_axis import TimeAxis, shortest_step
from crowdveil.model.zones import Zones
from crowdveil.reading import FlowReading, read
from crowdveil.run.flow_partitions import (
    NOTHING_USABLE,
    PARTITION_ROWS,
    FlowPartition,
    PartitionedFlows,
    SolvedPartition,
    frame_of,
    with_frame,
)
from crowdveil.run.spark.sources import (
    COUNTED,
    INSTANT,
    SKIPPED,
    TIME_NOTES,
    TWICE,
    add_time_notes,
    first_rows,
    open_data,
    quoted,
    time_notes,
    with_missing,
)
from crowdveil.run.stages import RunSpec

PARTITIONS_A_SLOT = 4
"""Fewest partitions for each task that runs at a time, so that all are busy."""
START, PARTITION = "crowdveil_start", "crowdveil_partition"
ROW_STEPS = [(START, pa.int64()), *TIME_NOTES]
"""Columns that `StepReader` adds: the start of the time step (null where the time cannot be read), and how the time was read."""
RESULT = pa.schema([("summary", pa.string()), ("areas", pa.binary()), ("steps", pa.binary())])


@dataclass(frozen=True)
class StepReader(Sent):
    """Replaces the time of each row by the start of its time step; sent to executors.

    Attributes
    ----------
    schema
        Columns of the result.
    time, steps, form
        The column of times, the time steps, and how times are written.
    text
        Whether all columns are text, as those of a CSV, in which some words are missing values.
    """

    schema: pa.Schema
    time: str | None
    steps: TimeAxis | None
    form: TimeForm
    text: bool

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of chunks."""
        for chunk in chunks:
            rows = with_missing(chunk) if self.text else chunk
            columns = {name: rows[name] for name in rows.schema.names} | self._steps(rows)
            yield pa.record_batch([columns[name] for name in self.schema.names], schema=self.schema)

    def _steps(self, rows: pa.RecordBatch) -> dict[str, Any]:
        if self.steps is None or self.time is None:
            none = np.zeros(rows.num_rows, np.bool_)
            return {START: pa.array(none.astype(np.int64)), **dict.fromkeys((INSTANT, SKIPPED, TWICE), none)}
        times = read_seconds(rows[self.time], f"column {self.time}", self.form)
        wall = np.where(times.bad, 0, times.values)
        number = self.steps.number_at(wall) if times.instants else self.steps.number(wall)
        return {START: pa.array(self.steps.starts(number), mask=times.bad)} | time_notes(times, self.steps.tz)


@dataclass(frozen=True)
class ChunkReader:
    """Makes one text of each chunk of rows with a function; sent to executors."""

    function: Callable[[pa.RecordBatch], Any]
    text: bool

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each chunk, in JSON."""
        for chunk in chunks:
            found = self.function(with_missing(chunk) if self.text else chunk)
            yield pa.record_batch({"found": [json.dumps(found)]})


@dataclass(frozen=True)
class PartitionRunner(Sent):
    """Reads the rows of a partition as flows, and solves them; sent to executors.

    Attributes
    ----------
    function
        Solves a partition.
    frame
        Flows without rows, with the parts that all partitions share.
    reading
        Input options of the rows, which name all of their columns.
    members
        Whether the person ids of each flow are kept.
    """

    function: FlowPartition
    frame: Flows
    reading: FlowReading
    members: bool

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the results as one row of `RESULT`."""
        number, notes, frame = rows[PARTITION][0].as_py(), ReadNotes(), self.frame
        table = rows.drop_columns([PARTITION, *(name for name, _ in ROW_STEPS)])
        if frame.step_s is not None:
            table = table.append_column(self.reading.time, rows[START].cast(pa.timestamp("s", tz="UTC")))
        areas = steps = b""
        try:
            flows = read(Flows, table, self.reading, notes, person_ids=self.members)
        except EmptyInputError as error:  # all volumes are 0, or all rows were dropped
            summary: dict[str, Any] = {"lost": error.units}
        else:
            solved = self.function(with_frame(flows, frame), number)
            summary, areas, steps = solved.summary, as_bytes(solved.areas), as_bytes(solved.steps)
        summary |= {
            "texts": [parts_of(text) for text in notes.texts],
            "numbers": notes.numbers,
            "dropped": notes.dropped,
        }
        return pa.table([[json.dumps(summary)], [areas], [steps]], schema=RESULT)


def as_bytes(table: pa.Table) -> bytes:
    """Return a table as the bytes of an Arrow stream."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, table.schema) as stream:
        stream.write_table(table)
    content: bytes = buffer.getvalue().to_pybytes()
    return content


class SparkFlows(PartitionedFlows):
    """Runs partitions on the executors of a cluster; only counts, areas and the rows of a report come to the driver."""

    def __init__(self, spec: RunSpec, engine: SparkEngine) -> None:
        super().__init__(spec)
        self.engine = engine

    def read(self, notes: ReadNotes, progress: Progress) -> Flows:
        """Find columns, zones and time steps; return flows without rows."""
        spec, engine, self.notes = self.spec, self.engine, notes
        reading = spec.reading
        if not isinstance(reading, FlowReading):
            raise TypeError("flows are read with the input options of flows")
        data, source, is_text = open_data(engine, spec.data)
        named = by_role({role: getattr(reading, role) for role in NAMED}, source)
        columns = find_od_columns(source, named, by_coordinates(reading.zones), notes)
        first = first_rows(engine, data, source, is_text)
        form = TimeForm(reading.time_format)
        if columns.time is not None:
            form = learned_form([first[columns.time]], form, f"{source.name}, column {columns.time}")
        if not reading.each_row_is_a_trip:
            refuse_unread_volumes(first, columns, named, form, source.name)
        zones = self._zones(data, source, columns, named, notes, is_text)
        if not columns.by_id:
            check_coordinates(first, columns, source.name, reading.zones, zones, notes)
        seconds = resolve_step_seconds(reading.step, columns, notes)
        own_steps = reading.step is None and columns.is_flows and columns.time is not None
        steps = TimeAxis(1 if own_steps else seconds, reading.tz) if seconds else None
        self.columns = columns
        self._place_rows(data, source, columns, steps, form, is_text, progress)
        step_s = None if steps is None else steps.step_s
        if own_steps:
            step_s = shortest_step(self.starts, reading.tz)
        self.frame = frame_of(zones, reading, columns, step_s)
        return self.frame

    def _zones(
        self, data: Frame, source: Source, columns: OdColumns, named: dict[str, Any], notes: ReadNotes, is_text: bool
    ) -> Zones:  # fmt: skip
        """Return the zones that are given; or tiles, stations or ids that executors find in the rows."""
        reading = self.spec.reading

        def found(function: Callable[[pa.RecordBatch], Any], needed: list[str]) -> list[Any]:
            rows = data.select(*map(quoted, dict.fromkeys(needed)))
            schema = pa.schema([("found", pa.string())])
            texts = self.engine.gather(self.engine.map_rows(rows, ChunkReader(function, is_text), schema))
            return [json.loads(text) for text in texts["found"].to_pylist()]

        tiling = Tiling.of(reading.zones)
        if tiling is not None:
            covers = found(partial(cover_of, columns, source.name, tiling.h3), columns.used)
            return zones_covering([PointCover(Reach(*r), frozenset(c)) for r, c in covers], tiling, source.name)
        given = given_zones(columns, reading.zones, reading.zone_id, notes)
        if given is not None:
            return given
        if not columns.by_id:
            raise InputError(Text("coordinates need zones. Give {zones}, such as grid:500m."))
        places = station_columns(source, columns, named)
        if places is not None:
            needed = [*columns.zone_ids, *places.values()]
            lists = found(partial(positions_of, columns, places, source.name), needed)
            rows = pa.Table.from_pylist([row for of_chunk in lists for row in of_chunk])
            counts = rows.group_by(["id", "lon", "lat"]).aggregate([("n", "sum")]).rename_columns({"n_sum": "n"})
            zones = zones_of_positions(counts if len(counts) <= MAX_POSITIONS else None, columns, notes)
            if zones is not None:
                return zones
        names = found(partial(names_of, columns), [*columns.zone_ids])
        return zones_named(sorted({name for of_chunk in names for name in of_chunk}))

    def _place_rows(
        self, data: Frame, source: Source, columns: OdColumns, steps: TimeAxis | None, form: TimeForm, is_text: bool,
        progress: Progress,
    ) -> None:  # fmt: skip
        """Give each row its time step, keep the rows on the executors' disks, and count those of each step."""
        chosen = data.select(*map(quoted, dict.fromkeys(columns.used)))
        own = [field for field in self.engine.schema(chosen) if field.name != columns.time]
        schema = pa.schema([*own, *ROW_STEPS])
        reader = StepReader(schema, columns.time, steps, form, is_text)
        self.rows = self.enter_context(self.engine.kept(self.engine.map_rows(chosen, reader, schema)))
        counts = self.engine.gather(
            self.engine.sql(
                f"SELECT {START} AS start, {COUNTED} FROM {{rows}} GROUP BY {START}, {INSTANT}", rows=self.rows
            ),
            progress,
        )
        what = f"{source.name}, column {columns.time}"
        if steps is not None:
            add_time_notes(counts.to_pylist(), columns.time, steps.tz, what, self.notes)
        known = counts.filter(counts["start"].is_valid()).sort_by("start")
        self.starts, self.sizes = (known[name].to_numpy() for name in ("start", "n"))
        if not len(known):
            raise InputError(what, Text("no time can be read. Name their form with {time_format}."))
        refuse_spread(int(self.starts[0]), int(self.starts[-1]), form, what)

    def check_k(self) -> None:
        """Raise if the data lacks what the method needs; people are counted in the partitions."""
        self.spec.method.check_data(self.frame, self.spec.params)

    def solve_partitions(self, function: FlowPartition, progress: Progress) -> list[SolvedPartition]:
        """Group the rows in Spark, and solve each group on an executor."""
        engine = self.engine
        even = int(self.sizes.sum()) // (PARTITIONS_A_SLOT * engine.slots)
        numbers = self.partition_numbers(self.sizes, max(1, min(PARTITION_ROWS, even)))
        bins = engine.table(pa.table({"start": self.starts, "number": numbers}))
        # Rows without a usable time are in the first partition, whose reader counts or refuses them.
        rows = engine.sql(
            f"SELECT r.*, coalesce(b.number, 0) AS {PARTITION} FROM {{rows}} r LEFT JOIN {{bins}} b ON r.{START} = b.start",
            rows=self.rows,
            bins=bins,
        )
        reading = FlowReading.checked(
            {"zones": self.frame.zones, "tz": self.frame.tz, "each_row_is_a_trip": True, "step": self._step(),
             "drop_invalid": self.spec.reading.drop_invalid, **self._names()}
        )  # fmt: skip
        runner = PartitionRunner(function, self.frame, reading, self.spec.method.needs_person_ids)
        count = int(numbers.max()) + 1
        table = engine.gather(engine.map_groups(rows, PARTITION, runner, RESULT, count), progress)
        return self._settle(table)

    def _names(self) -> dict[str, str]:
        """Return the columns of the data as input options."""
        names = {role: column for role in NAMED if (column := getattr(self.columns, role)) is not None}
        if self.frame.step_s is None:
            names.pop("time", None)
        if not self.columns.by_id:
            names |= {end: ",".join(self.columns.coordinates(end)) for end in ENDS}
        return names

    def _step(self) -> str:
        return "all" if self.frame.step_s is None else f"{self.frame.step_s}s"

    def _settle(self, table: pa.Table) -> list[SolvedPartition]:
        """Merge the notes of all partitions; return those that have flows."""
        solved, lost = [], 0
        for row in sorted(table.to_pylist(), key=lambda row: json.loads(row["summary"]).get("file", "")):
            summary = json.loads(row["summary"])
            for parts in summary["texts"]:
                self.notes.add(text_of(parts))
            for text, n in summary["numbers"].items():
                self.notes.number(text, self.notes.numbers.get(text, 0) + n)
            for reason, n in summary["dropped"].items():
                self.notes.drop(reason, n)
            if "lost" in summary:
                lost += summary["lost"]
                continue
            tables = (pa.ipc.open_stream(row[name]).read_all() for name in ("areas", "steps"))
            solved.append(SolvedPartition(summary, *tables))
        if not solved:
            raise InputError(NOTHING_USABLE)
        self.lost_units = lost
        self.notes.rows = int(self.sizes.sum()) if self.notes.dropped else 0
        return solved


def cover_of(columns: OdColumns, name: str, h3: int | None, rows: pa.RecordBatch) -> tuple[list[float], list[str]]:
    """Return the reach of the coordinates in some rows, and their H3 cells."""
    found = find_cover(rows, columns, name, h3)
    return [getattr(found.reach, field) for field in found.reach.__dataclass_fields__], sorted(found.cells)


def positions_of(
    columns: OdColumns, places: dict[str, str], name: str, rows: pa.RecordBatch
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the ids of stations in some rows with their positions, and the rows of each."""
    found: list[dict[str, Any]] = positions(rows, columns, places, name).to_pylist()
    return found


def names_of(columns: OdColumns, rows: pa.RecordBatch) -> list[str]:
    """Return the ids of zones in some rows."""
    return sorted({str(name) for column in columns.zone_ids for name in encode_ids(rows[column])[1]})
