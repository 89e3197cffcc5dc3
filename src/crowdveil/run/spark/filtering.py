"""Leaving out trajectories that lie on a cluster: each part of them goes through the filters of one machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.spark import SparkEngine
from crowdveil.errors import ParameterError
from crowdveil.filters import Filter, Filtered, check_filters, filter_trajectories
from crowdveil.io.notes import ReadNotes
from crowdveil.io.values import codes, one_array
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import TrajectoryReading
from crowdveil.run.spark.point_rows import ORDER, PointReader
from crowdveil.run.spark.points import in_order, look_at, read_spark_points
from crowdveil.run.spark.rows import without_missing
from crowdveil.run.spark.running import FILE_ROWS, write_part_files
from crowdveil.run.spark.sources import quoted
from crowdveil.run.spark.staging import check_target, new_folder
from crowdveil.run.spark.trajectories import TrackReader

PART_POINTS = 500_000
"""Points that are filtered together, about so many."""
FIRST_FILE = "part-00000.parquet"
_OWN = "crowdveil_"


@dataclass(frozen=True)
class FilterPart:
    """From the points of some whole trajectories to the ids of those that stay, and a line that tells how many went."""

    filters: tuple[Filter, ...]
    tz: str
    ids: tuple[str, ...]
    reader: TrackReader

    def schema(self, points: pa.Schema) -> pa.Schema:
        """The columns of what comes of a part."""
        return pa.schema([*(points.field(name) for name in self.ids), ("told", pa.string())])

    def __call__(self, part: pa.Table) -> pa.Table:
        """Ids of what stays, and a line."""
        schema, number = self.schema(part.schema), _numbered(part, self.ids)
        lost = np.zeros(int(number.max(initial=-1)) + 1, np.bool_)
        lost[number[one_array(part["lost"]).to_numpy(zero_copy_only=False)]] = True
        whole, number = part.filter(pa.array(~lost[number])), number[~lost[number]]
        keyed = whole.append_column("number", pa.array(number)).append_column("owner", pa.array(number))
        before = self.reader(keyed)
        after, removed = filter_trajectories(before, self.filters, self.tz)
        first = np.unique(number, return_index=True)[1][np.searchsorted(before.ids, after.ids)]
        told = {
            "removed": [n for _, n in removed],
            "trajectories": [len(before), len(after)],
            "points": [before.points, after.points],
        }
        stay = whole.select(self.ids).take(pa.array(first)).append_column("told", pa.nulls(len(first), pa.string()))
        line = pa.table([pa.nulls(1, schema.field(n).type) for n in self.ids] + [[json.dumps(told)]], schema=schema)
        return pa.concat_tables([stay.cast(schema), line])


@dataclass(frozen=True)
class IdReader:
    """Pieces of the input with the ids of each row beside all columns of it."""

    reader: PointReader

    def schema(self, rows: pa.Schema) -> pa.Schema:
        """The columns of the rows, and the ids."""
        return pa.schema([*rows, *((_OWN + name, self.reader.schema.field(name).type) for name in self.reader.ids)])

    def __call__(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of pieces."""
        for batch in pieces:
            read = without_missing(self.reader.source, batch.select(self.reader.columns.ids))
            ids = self.reader.ids_in(read)
            yield pa.RecordBatch.from_arrays([*batch.columns, *ids], schema=self.schema(batch.schema))


def filter_there(
    engine: SparkEngine,
    data: Any,
    output: str,
    filters: Sequence[Filter],
    reading: TrajectoryReading,
    *,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
) -> Filtered:
    """Filter trajectories on the cluster to a folder of Parquet files, with every column of the rest, in their order."""
    check_filters(filters)
    target = output.rstrip("/")
    if not target.endswith((".parquet", ".pq")):
        raise ParameterError(output, "Spark writes a folder of Parquet files; give a name that ends in .parquet.")
    check_target(engine.files, target, overwrite=overwrite, mark=FIRST_FILE)
    notes = notes if notes is not None else ReadNotes()
    points = read_spark_points(engine, data, reading, notes)
    ids = tuple(points.reader.ids)
    with engine.kept(points.rows), new_folder(engine.files, target, overwrite=overwrite, mark=FIRST_FILE) as aside:
        with engine.kept(points.tracks):
            points = look_at(engine, points, reading, notes, progress)
        parts = max(engine.slots, -(-points.points // PART_POINTS))
        function = FilterPart(tuple(filters), reading.tz, ids, TrackReader(points.frame))
        keyed = engine.sql(
            f"SELECT *, pmod(xxhash64({', '.join(ids)}), {parts}) AS part FROM {{rows}} WHERE note IS NULL",
            rows=points.rows,
        )
        filtered = engine.map_groups(keyed, "part", function, function.schema(points.reader.schema), parts)
        with engine.kept(filtered):
            lines = engine.gather(filtered.where("told IS NOT NULL").select("told"), progress)["told"].to_pylist()
            stay = filtered.where("told IS NULL").select(*ids)
            found = _together([json.loads(line) for line in lines], filters)
            frame = engine.read(data)
            rows, _ = in_order(engine, data, frame, [quoted(name) for name in frame.columns], points.reader.source)
            reader = IdReader(points.reader)
            beside = engine.map_rows(rows, reader, reader.schema(engine.schema(rows)))
            same = " AND ".join(f"r.{_OWN}{name} = s.{name}" for name in ids)
            rest = engine.sql(f"SELECT r.* FROM {{rows}} r LEFT SEMI JOIN {{stay}} s ON {same}", rows=beside, stay=stay)
            # Times keep all of their digits: this is no release.
            engine.session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            files = max(1, -(-found.points[1] // FILE_ROWS))
            placed = rest.repartitionByRange(files, *ORDER).sortWithinPartitions(*ORDER)
            write_part_files(engine, placed.select(*[quoted(name) for name in frame.columns]), aside, progress)
    return found


def _numbered(part: pa.Table, ids: tuple[str, ...]) -> Any:
    """A number from 0 for each trajectory, at each of its points."""
    number = codes(part[ids[0]])[0].astype(np.int64)
    for name in ids[1:]:
        more = codes(part[name])[0].astype(np.int64)
        number = number * (int(more.max(initial=0)) + 1) + more
    return np.unique(number, return_inverse=True)[1]


def _together(told: Sequence[dict[str, Any]], filters: Sequence[Filter]) -> Filtered:
    """What came of all parts."""
    removed = [sum(part["removed"][i] for part in told) for i in range(len(filters))]
    (were, are), (points_were, points_are) = (
        [sum(part[what][i] for part in told) for i in (0, 1)] for what in ("trajectories", "points")
    )
    return Filtered(list(zip(filters, removed, strict=True)), (were, are), (points_were, points_are))
