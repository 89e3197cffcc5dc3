"""Source records of a run on Spark for its ledger: executors hash the rows, and the driver gets each distinct record once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.engine.spark import SparkEngine
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_grouping import flows_in_order
from crowdveil.io.od_rows import OdReader, ZoneNames
from crowdveil.ledger.content import RowContent, SourceRecords, columns_in, distinct_records, equal_records_apart
from crowdveil.ledger.entries import Kind
from crowdveil.ledger.records import Inputs, input_files, people_without_ids, times_of
from crowdveil.model.arrays import group_sums
from crowdveil.model.flows import Flows
from crowdveil.run.spark.sources import quoted, readable
from crowdveil.run.spark.spark_trips import SparkTrips
from crowdveil.run.spark.trip_rows import TripReader, record_batch, without_missing

RECORDS = pa.schema(
    [("source", pa.int64()), ("person", pa.int64()), ("step", pa.int64()), ("o", pa.int32()), ("d", pa.int32()),
     ("volume", pa.int64()), ("wall", pa.int64()), ("instants", pa.bool_())]
)  # fmt: skip
"""Hashes have 64 bits without a sign, which Spark does not have: they travel as the signed numbers of the same bits."""


@dataclass(frozen=True)
class RecordReader:
    """Hashes the usable rows of chunks of the input; sent to executors with the key of the ledger."""

    trips: TripReader
    content: RowContent

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the hashes of the rows of chunks, with the time step and the zones of each."""
        trips = self.trips
        names = ZoneNames(trips.zones, from_data=trips.came_up)
        reader = OdReader(trips.source, trips.columns, names, trips.tz, trips.form, ReadNotes(), content=self.content)
        for batch in chunks:
            if batch.num_rows:
                chunk = reader.prepare(0, without_missing(trips.source, batch))
                yield self._records(chunk.rows, bool(chunk.instants))

    def _records(self, rows: pa.RecordBatch, instants: bool) -> pa.RecordBatch:
        if self.trips.columns.is_flows:
            rows = rows.filter(pc.greater(rows["volume"], 0))
        none = np.zeros(rows.num_rows, np.int64)
        steps = self.trips.steps
        person = rows["person_hash"].to_numpy().view(np.int64) if "person_hash" in rows.schema.names else none
        step = none if steps is None else steps.number(rows["wall"].to_numpy())
        volume = rows["volume"] if self.trips.columns.is_flows else none + 1
        source = rows["source"].to_numpy().view(np.int64)
        wall = none if steps is None else rows["wall"]
        zoned = np.full(rows.num_rows, instants)
        return record_batch([source, person, step, rows["o"], rows["d"], volume, wall, zoned], RECORDS)


def read_spark_records(
    engine: SparkEngine, data: Any, trips: SparkTrips, known: dict[str, str] | None, key: bytes
) -> tuple[Inputs, Flows]:
    """Return the source records of trips on a cluster, and their flows; `known` are the identifying columns of the ledger.

    About 45 bytes for each distinct record reach the driver. Group sizes of the flows are trips: the audit counts people by
    the records.
    """
    reader = trips.reader
    if reader.columns.people is not None and reader.columns.user is None:
        raise people_without_ids(reader.source.name)
    columns = columns_in(reader.source, reader.columns, known)
    content = RowContent(columns, key)
    used = dict.fromkeys([*reader.columns.used, *columns.values()])
    rows = engine.read(readable(data)).select(*[quoted(name) for name in used])
    hashed = engine.map_rows(rows, RecordReader(reader, content), RECORDS)
    # Equal rows are one record, so that all but the volume is the same in them.
    same = ("person", "step", "o", "d", "wall", "instants")
    columns_of = ", ".join(f"min({name}) AS {name}" for name in same)
    apart = " OR ".join(f"min({name}) <> max({name})" for name in ("step", "o", "d"))
    text = f"SELECT source, {columns_of}, sum(volume) AS volume, {apart} AS apart FROM {{hashed}} GROUP BY source"
    table = engine.gather(engine.sql(text, hashed=hashed))
    if pc.any(table["apart"]).as_py():
        raise equal_records_apart()
    found = table.select(RECORDS.names).cast(RECORDS)
    flows, cell = _flows_of(found, trips)
    source, person, volume = (found[name].to_numpy() for name in ("source", "person", "volume"))
    people = person.view(np.uint64) if "user" in columns else None
    records = distinct_records(source.view(np.uint64), people, volume, cell)
    kind: Kind = "flows" if reader.columns.is_flows else "trips"
    times = None
    if reader.steps is not None and columns.get("time") == reader.columns.time:
        instants = bool(pc.any(found["instants"]).as_py())
        length = (flows.step_s or 1) if reader.columns.is_flows else 1
        times = times_of(found["wall"].to_numpy(), length, reader.tz if instants else None)
    return Inputs(kind, columns, records, _hashes(data, records), times), flows


def _flows_of(found: pa.Table, trips: SparkTrips) -> tuple[Flows, Any]:
    """Return the flows that records make, and the flow of each record."""
    columns = {name: found[name].to_numpy() for name in ("step", "o", "d", "volume")}
    zones = trips.reader.zones
    n = len(zones)
    numbers, step = np.unique(columns["step"], return_inverse=True)
    cells, cell = np.unique((step * n + columns["o"]) * n + columns["d"], return_inverse=True)
    volume = group_sums(cell, columns["volume"], len(cells))
    ends = (cells // n % n).astype(np.int32), (cells % n).astype(np.int32)
    offsets = np.searchsorted(cells // n // n, np.arange(len(numbers) + 1))
    flows = flows_in_order(zones, trips.reader.steps, numbers, offsets, (*ends, volume, volume), "trips")
    return replace(flows, step_s=trips.frame.step_s), cell


def _hashes(data: Any, records: SourceRecords) -> list[str]:
    """Return the SHA-256 of an input file that is on this machine; of other inputs, that of the hashes of all records."""
    if isinstance(data, str | Path) and Path(data).exists():
        return input_files(data)
    return [hashlib.sha256(np.stack([records.source, records.volume.view(np.uint64)]).tobytes()).hexdigest()]
