"""Points on a cluster: rows to trajectory, person, place and time where they lie, and the little that is known of them here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.distributed.sources import (
    BAD,
    INSTANTS,
    WALLS,
    quoted,
    readable,
    settle_zone,
    source_of,
    without_missing,
)
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import Source
from crowdveil.io.times import Clock
from crowdveil.io.trajectories import (
    BESIDE,
    PointColumns,
    bad_rows,
    find_point_columns,
    first_of,
    no_ids,
    no_value,
    none_usable,
    readers,
    say_pairs,
    unusable,
    without_ids,
)
from crowdveil.io.values import ids_of
from crowdveil.io.zones import read_zones
from crowdveil.model.trajectories import Extent, Trajectories
from crowdveil.progress import Progress
from crowdveil.reading import TrajectoryReading

FILE, BLOCK, AT = ORDER = ("crowdveil_file", "crowdveil_block", "crowdveil_at")
"""Columns that say where a row stands in the input: points of one second keep that order, and trajectories are numbered by it."""

_COUNTED = f"monotonically_increasing_id() AS {AT}"


@dataclass(frozen=True)
class PointReader:
    """Pieces of the input as points with the columns trajectory, person (those that exist), lon, lat, t, lost, `ORDER`, and note.

    A point that is lost takes its trajectory with it. Where there is a note, there is nothing else but how often it is to be
    said, in n.
    """

    source: Source
    columns: PointColumns
    tz: str
    time_format: str | None
    files: tuple[str, ...]

    @property
    def ids(self) -> list[str]:
        """Columns of the points that say which trajectory they are of."""
        named = {"trajectory": self.columns.trajectory, "person": self.columns.user}
        return [name for name, column in named.items() if column is not None]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the points."""
        ids = [
            (name, _no_ids(self.source.schema.field(column).type).type)
            for name, column in zip(self.ids, self.columns.ids, strict=True)
        ]
        whole = pa.int64()
        more = [("lon", pa.float64()), ("lat", pa.float64()), ("t", whole), ("lost", pa.bool_()), ("n", whole)]
        return pa.schema([*ids, *more, *((name, whole) for name in ORDER), ("note", pa.string())])

    def __call__(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The points of pieces, and what is to be noted of each."""
        for batch in pieces:
            read = without_missing(self.source, batch.select(self.columns.used))
            missing = without_ids(self.source, self.columns, read)
            notes = {BAD + column: n for column, n in first_of(missing).items()}
            if missing:
                kept = pa.array(~np.logical_or.reduce(list(missing.values())))
                batch, read = batch.filter(kept), read.filter(kept)
            if read.num_rows:
                points, more = self._read(read, batch)
                yield points
                notes |= more
            if notes:
                yield self._made(len(notes), {"note": list(notes), "n": list(notes.values())})

    def _read(self, read: pa.RecordBatch, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, int]]:
        lon, lat, times = (column() for column in readers(self.source, self.columns, read, self.time_format))
        bad = unusable(self.columns, lon, lat, times)
        lost = np.logical_or.reduce([np.zeros(read.num_rows, np.bool_), *bad.values()])
        t = times.values if times.instants else Clock(self.tz).to_utc(times.values)
        made: dict[str, Any] = {
            "lon": np.where(lost, 0.0, lon[0]), "lat": np.where(lost, 0.0, lat[0]), "t": np.where(lost, 0, t), "lost": lost,
            FILE: pc.fill_null(pc.index_in(batch[FILE], pa.array(self.files, pa.string())), 0),
            BLOCK: batch[BLOCK], AT: batch[AT],
        }  # fmt: skip
        for name, column in zip(self.ids, self.columns.ids, strict=True):
            made[name] = self.ids_in(read[column], column)
        said = {INSTANTS if times.instants else WALLS: 1}
        return self._made(read.num_rows, made), said | {BAD + column: n for column, n in first_of(bad).items()}

    def ids_in(self, values: Any, column: str) -> Any:
        """Ids of a piece of a column."""
        what = f"{self.source.name}, column {column}"
        found, wanted = ids_of(values, what), _no_ids(values.type).type
        if found.type != wanted and pa.types.is_floating(values.type):
            raise InputError(f"{what}: wanted ids, but some are fractions; give text or whole numbers.")
        return found.cast(wanted)

    def _made(self, n: int, made: dict[str, Any]) -> pa.RecordBatch:
        columns = [_column(made[f.name], f.type) if f.name in made else pa.nulls(n, f.type) for f in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class PointsThere:
    """Points that lie on the cluster, and the little that is known of them here.

    Attributes
    ----------
    rows
        The frame of points, and of notes.
    tracks
        A frame with a row for each trajectory: its ids, `ORDER` of its first row, points, first time and sum of times, box, how
        many points are lost.
    reader
        How they were read.
    trajectories, people, points
        How many are usable.
    frame
        Trajectories without one: zones, what k counts, and the extent of all.
    """

    rows: Frame
    tracks: Frame
    reader: PointReader
    frame: Trajectories
    trajectories: int = 0
    people: int = 0
    points: int = 0


def read_points_there(engine: SparkEngine, data: Any, reading: TrajectoryReading, notes: ReadNotes) -> PointsThere:
    """Read points on the cluster. The frames are not kept: keep them with `engine.kept` around all that is done with them."""
    frame = engine.read(readable(data))
    source = source_of(engine, data, frame)
    columns = find_point_columns(
        source, reading.lat, reading.lon, reading.time, reading.trajectory, reading.user, notes
    )
    zones = None if reading.zones is None else read_zones(reading.zones, zone_id=reading.zone_id, notes=notes)
    rows, files = in_order(engine, data, frame, [quoted(column) for column in columns.used], source)
    reader = PointReader(source, columns, reading.tz, reading.time_format, files)
    points = engine.map_rows(rows, reader, reader.schema)
    ids, first = ", ".join(reader.ids), f"min(struct({', '.join(ORDER)}))"
    sums = (
        "count(*) AS points, count_if(lost) AS lost, sum(t) AS total, min(t) AS t, min(lon) AS west, min(lat) AS south, "
        "max(lon) AS east, max(lat) AS north"
    )
    tracks = engine.sql(
        f"SELECT *, {', '.join(f'first.{name}' for name in ORDER)} FROM (SELECT {ids}, {first} AS first, {sums} FROM {{points}} "
        f"WHERE note IS NULL GROUP BY {ids})",
        points=points,
    ).drop("first")
    none, nobody = np.zeros(0), np.zeros(0, object)
    nothing = np.zeros(0, np.int64)
    empty = Trajectories(
        none, none, nothing, np.zeros(1, np.int64), nobody, nothing, nobody, columns.counts, zones=zones
    )
    return PointsThere(points, tracks, reader, empty)


def in_order(
    engine: SparkEngine, data: Any, frame: Frame, columns: list[str], source: Source
) -> tuple[Frame, tuple[str, ...]]:
    """The columns of a frame with where each row stands in the input; and the files of it, in their order.

    A file of Parquet numbers its rows. Of a CSV a task reads a block from its first byte on. Rows of a data frame have the
    order of its partitions.
    """
    if not isinstance(data, str | Path):
        return frame.selectExpr(*columns, f"'' AS {FILE}", f"0L AS {BLOCK}", _COUNTED), ()
    placed = [f"_metadata.file_path AS {FILE}", f"0L AS {BLOCK}", f"_metadata.row_index AS {AT}"]
    if source.delimiter is not None:
        placed[1:] = [f"_metadata.file_block_start AS {BLOCK}", _COUNTED]
    files: list[str] = []
    if engine.files.is_folder(str(data)):
        found = engine.gather(frame.selectExpr("_metadata.file_path AS file").distinct())
        files = sorted(found["file"].to_pylist())
    return frame.selectExpr(*columns, *placed), tuple(files)


def look_at(
    engine: SparkEngine, points: PointsThere, reading: TrajectoryReading, notes: ReadNotes, progress: Progress
) -> PointsThere:
    """The same with what is known, once the rows have been read; bad rows are told or refused, and then left out."""
    reader, columns = points.reader, points.reader.columns
    told = engine.gather(
        engine.sql("SELECT note, sum(n) AS n FROM {rows} WHERE note IS NOT NULL GROUP BY note", rows=points.rows),
        progress,
    )
    said = dict(zip(told["note"].to_pylist(), told["n"].to_pylist(), strict=True))
    people = "person" if len(reader.ids) == 2 else reader.ids[0]
    sides = "min(west) AS west, min(south) AS south, max(east) AS east, max(north) AS north, min(t) AS start"
    of_kind = engine.gather(
        engine.sql(
            f"SELECT lost > 0 AS gone, count(*) AS tracks, count(DISTINCT {people}) AS people, sum(points) AS points, "
            f"sum(lost) AS lost, {sides} FROM {{tracks}} GROUP BY lost > 0",
            tracks=points.tracks,
        )
    ).to_pylist()
    kept = next((found for found in of_kind if not found["gone"]), None)
    gone = next((found for found in of_kind if found["gone"]), None)
    bad = {column: said[BAD + column] for column in (*columns.ids, columns.lat, columns.lon, columns.time)
           if BAD + column in said}  # fmt: skip
    if bad and not reading.drop_invalid:
        column = next(iter(bad))
        raise bad_rows(reader.source, column, [], bad[column])
    for column, n in bad.items():
        notes.drop(no_value(column), n)
    settle_zone(said, reader.source, columns.time, reading.tz, notes)
    if not of_kind:
        raise (
            no_ids(reader.source, columns)
            if bad
            else InputError(f"{reader.source.name}: the file has columns but no rows; wanted at least one.")
        )
    if gone is not None:
        notes.drop(BESIDE, gone["points"] - gone["lost"])
    if kept is None:
        raise none_usable(reader.source, of_kind[0]["tracks"])
    if len(reader.ids) == 2:
        found = engine.gather(engine.sql("SELECT count(DISTINCT trajectory) AS n FROM {tracks}", tracks=points.tracks))
        if found["n"][0].as_py() < sum(kind["tracks"] for kind in of_kind):
            say_pairs(notes)
    extent = Extent(kept["west"], kept["south"], kept["east"], kept["north"], kept["start"])
    return replace(
        points, frame=replace(points.frame, within=extent), trajectories=kept["tracks"], people=kept["people"],
        points=kept["points"],
    )  # fmt: skip


def _no_ids(kind: Any) -> Any:
    """No ids, of the kind that those of a column are read as."""
    return ids_of(pa.array([], kind), "the ids")


def _column(values: Any, kind: Any) -> Any:
    return pa.array(values, kind) if isinstance(values, np.ndarray | list) else values.cast(kind)
