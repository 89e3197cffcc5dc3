"""Rows of points on executors: from chunks of the input to trajectory, person, position and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.io.person_ids import id_type
from crowdveil.io.source import Source
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.times import odd_times
from crowdveil.io.trajectory_points import (
    PointColumns,
    count_first_reasons,
    find_unusable_points,
    read_points,
    rows_without_ids,
    with_normalized_ids,
)
from crowdveil.io.values import one_array
from crowdveil.model.canonical import point_hashes
from crowdveil.model.time_axis import Clock
from crowdveil.run.spark.trip_rows import BAD, INSTANTS, SKIPPED, TWICE, WALLS, filled_batch, without_missing

KEY = tuple(f"crowdveil_hash_{i}" for i in range(4))
"""Columns with the hashes of a point: their sums are the key of a trajectory, which determines its number."""


@dataclass(frozen=True)
class PointReader:
    """Reads points with the columns trajectory, person (those that exist), lon, lat, t, lost, `KEY` and note.

    A point that is lost makes its trajectory unusable. A note has nothing else but its count, in n.
    """

    source: Source
    columns: PointColumns
    tz: str
    form: TimeForm

    @property
    def ids(self) -> list[str]:
        """Return the columns that identify a trajectory."""
        named = {"trajectory": self.columns.trajectory, "person": self.columns.user}
        return [name for name, column in named.items() if column is not None]

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the points."""
        ids = [
            (name, id_type(self.source.schema.field(column).type))
            for name, column in zip(self.ids, self.columns.ids, strict=True)
        ]
        whole = pa.int64()
        more = [("lon", pa.float64()), ("lat", pa.float64()), ("t", whole), ("lost", pa.bool_()), ("n", whole)]
        return pa.schema([*ids, *more, *((name, whole) for name in KEY), ("note", pa.string())])

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the points of chunks, and notes."""
        for batch in chunks:
            read = without_missing(self.source, batch.select(self.columns.used))
            read = with_normalized_ids(read, self.source, self.columns)
            missing = rows_without_ids(self.columns, read)
            notes = {BAD + reason: n for reason, n in count_first_reasons(missing).items()}
            if missing:
                kept = pa.array(~np.logical_or.reduce(list(missing.values())))
                batch, read = batch.filter(kept), read.filter(kept)
            if read.num_rows:
                points, more = self._read(read, batch)
                yield points
                notes |= more
            if notes:
                yield filled_batch(self.schema, len(notes), {"note": list(notes), "n": list(notes.values())})

    def _read(self, read: pa.RecordBatch, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, int]]:
        lon, lat, times = read_points(self.source, self.columns, read, self.form)
        bad = find_unusable_points(self.columns, lon, lat, times, self.form)
        lost = np.logical_or.reduce([np.zeros(read.num_rows, np.bool_), *bad.values()])
        t = times.values if times.instants else Clock(self.tz).to_utc(times.values)
        made: dict[str, Any] = {
            "lon": np.where(lost, 0.0, lon[0]), "lat": np.where(lost, 0.0, lat[0]), "t": np.where(lost, 0, t), "lost": lost,
        }  # fmt: skip
        made |= zip(KEY, point_hashes(made["lon"], made["lat"], made["t"]), strict=True)
        for name, column in zip(self.ids, self.columns.ids, strict=True):
            made[name] = one_array(read[column])
        said = {INSTANTS if times.instants else WALLS: 1} if not times.bad.all() else {}
        odd = zip((SKIPPED, TWICE), odd_times(times, Clock(self.tz)), strict=True)
        said |= {note: n for note, n in odd if n}
        return filled_batch(self.schema, read.num_rows, made), said | {
            BAD + reason: n for reason, n in count_first_reasons(bad).items()
        }
