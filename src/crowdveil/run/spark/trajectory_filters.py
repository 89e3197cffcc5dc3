"""Filter trajectories on a cluster: each partition with the filters that a single machine uses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.spark import SparkEngine
from crowdveil.errors import ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.trajectory_points import with_normalized_ids
from crowdveil.io.values import encode_ids, one_array
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import TrajectoryReading
from crowdveil.run.filters import Filter, FilterResult, check_filters, filter_trajectories
from crowdveil.run.spark.backend import FILE_ROWS
from crowdveil.run.spark.part_files import write_part_files
from crowdveil.run.spark.point_rows import ORDER, PointReader
from crowdveil.run.spark.sources import quoted
from crowdveil.run.spark.spark_points import in_order, read_spark_points, summarize_points
from crowdveil.run.spark.staging import check_target, new_folder
from crowdveil.run.spark.trajectory_partitions import TrajectoryPartitionReader
from crowdveil.run.spark.trip_rows import without_missing

PARTITION_POINTS = 500_000
"""Points that are filtered together, approximately."""
FIRST_FILE = "part-00000.parquet"
_OWN = "crowdveil_"


@dataclass(frozen=True)
class PartitionFilter:
    """Filters a partition of whole trajectories: returns the ids of those that stay, and a summary; sent to executors."""

    filters: tuple[Filter, ...]
    tz: str
    ids: tuple[str, ...]
    reader: TrajectoryPartitionReader

    def schema(self, points: pa.Schema) -> pa.Schema:
        """Return the columns of results."""
        return pa.schema([*(points.field(name) for name in self.ids), ("summary", pa.string())])

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return the ids of trajectories that stay, and the summary."""
        schema, number = self.schema(partition.schema), _numbered(partition, self.ids)
        lost = np.zeros(int(number.max(initial=-1)) + 1, np.bool_)
        lost[number[one_array(partition["lost"]).to_numpy(zero_copy_only=False)]] = True
        whole, number = partition.filter(pa.array(~lost[number])), number[~lost[number]]
        keyed = whole.append_column("number", pa.array(number)).append_column("owner", pa.array(number))
        before = self.reader(keyed)
        after, removed = filter_trajectories(before, self.filters, self.tz)
        first = np.unique(number, return_index=True)[1][np.searchsorted(before.ids, after.ids)]
        summary = {
            "removed": [n for _, n in removed],
            "trajectories": [len(before), len(after)],
            "points": [before.points, after.points],
        }
        stay = whole.select(self.ids).take(pa.array(first)).append_column("summary", pa.nulls(len(first), pa.string()))
        line = pa.table([pa.nulls(1, schema.field(n).type) for n in self.ids] + [[json.dumps(summary)]], schema=schema)
        return pa.concat_tables([stay.cast(schema), line])


@dataclass(frozen=True)
class IdReader:
    """Adds the ids of trajectory and person to all columns of the input."""

    reader: PointReader

    def schema(self, rows: pa.Schema) -> pa.Schema:
        """Return the columns of the rows, and the ids."""
        return pa.schema([*rows, *((_OWN + name, self.reader.schema.field(name).type) for name in self.reader.ids)])

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each chunk, with ids."""
        for batch in chunks:
            source, columns = self.reader.source, self.reader.columns
            read = without_missing(source, batch.select(columns.ids))
            read = with_normalized_ids(read, source, columns)
            ids = [one_array(read[column]) for column in columns.ids]
            yield pa.RecordBatch.from_arrays([*batch.columns, *ids], schema=self.schema(batch.schema))


def filter_on_spark(
    engine: SparkEngine,
    data: Any,
    output: str,
    filters: Sequence[Filter],
    reading: TrajectoryReading,
    *,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
) -> FilterResult:
    """Filter trajectories on the cluster to a folder of Parquet files, with all columns and in the order of the input."""
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
            points = summarize_points(engine, points, reading, notes, progress)
        partitions = max(engine.slots, -(-points.points // PARTITION_POINTS))
        function = PartitionFilter(tuple(filters), reading.tz, ids, TrajectoryPartitionReader(points.frame))
        keyed = engine.sql(
            f"SELECT *, pmod(xxhash64({', '.join(ids)}), {partitions}) AS partition_id FROM {{rows}} WHERE note IS NULL",
            rows=points.rows,
        )
        filtered = engine.map_groups(keyed, "partition_id", function, function.schema(points.reader.schema), partitions)
        with engine.kept(filtered):
            lines = engine.gather(filtered.where("summary IS NOT NULL").select("summary"), progress)[
                "summary"
            ].to_pylist()
            stay = filtered.where("summary IS NULL").select(*ids)
            found = _merged([json.loads(line) for line in lines], filters)
            frame = engine.read(data)
            rows, _ = in_order(engine, data, frame, [quoted(name) for name in frame.columns], points.reader.source)
            reader = IdReader(points.reader)
            with_ids = engine.map_rows(rows, reader, reader.schema(engine.schema(rows)))
            same = " AND ".join(f"r.{_OWN}{name} = s.{name}" for name in ids)
            rest = engine.sql(
                f"SELECT r.* FROM {{rows}} r LEFT SEMI JOIN {{stay}} s ON {same}", rows=with_ids, stay=stay
            )
            # Times keep all of their digits: this is no release.
            engine.session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            files = max(1, -(-found.points[1] // FILE_ROWS))
            placed = rest.repartitionByRange(files, *ORDER).sortWithinPartitions(*ORDER)
            write_part_files(engine, placed.select(*[quoted(name) for name in frame.columns]), aside, progress)
    return found


def _numbered(partition: pa.Table, ids: tuple[str, ...]) -> Any:
    """Return the number of the trajectory of each point, from 0."""
    number = encode_ids(partition[ids[0]])[0].astype(np.int64)
    for name in ids[1:]:
        more = encode_ids(partition[name])[0].astype(np.int64)
        number = number * (int(more.max(initial=0)) + 1) + more
    return np.unique(number, return_inverse=True)[1]


def _merged(summaries: Sequence[dict[str, Any]], filters: Sequence[Filter]) -> FilterResult:
    """Merge the summaries of all partitions."""
    removed = [sum(summary["removed"][i] for summary in summaries) for i in range(len(filters))]
    (were, are), (points_were, points_are) = (
        [sum(summary[what][i] for summary in summaries) for i in (0, 1)] for what in ("trajectories", "points")
    )
    return FilterResult(list(zip(filters, removed, strict=True)), (were, are), (points_were, points_are))
