"""Read the source records of an input, each with its flow in a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.cropping import parse_crop
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import NAMED, OdColumns, by_role, find_od_columns
from crowdveil.io.od_rows import OdReader, RowHashes, ZoneNames
from crowdveil.io.omx import is_omx, omx_file
from crowdveil.io.source import Source, open_source
from crowdveil.io.tiling import by_coordinates
from crowdveil.io.times import TimeForm
from crowdveil.io.written_release import file_hash
from crowdveil.ledger.content import (
    RowContent,
    SourceRecords,
    columns_in,
    distinct_records,
    hash_rows,
    hash_texts,
)
from crowdveil.ledger.entries import Kind, Times
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import Clock, TimeAxis, period_seconds
from crowdveil.model.trips import Trips
from crowdveil.reading import Reading


def reader_over(
    flows: Flows, data: Any, options: Mapping[str, Any], content: Callable[[Source, OdColumns], RowHashes]
) -> OdReader:
    """Return a reader of the rows of `data` over the zones of `flows`; `content` adds columns to the rows."""
    source = open_source(data)
    named = by_role({role: options.get(role) for role in NAMED}, source)
    found = find_od_columns(source, named, by_coordinates(options["zones"]), ReadNotes())
    crop = parse_crop(options["bbox"], options["time_window"], options["tz"])
    form = TimeForm(options["time_format"])
    names, made = ZoneNames(flows.zones), content(source, found)
    return OdReader(source, found, names, options["tz"], form, ReadNotes(), crop, content=made)


def flow_of_rows(flows: Flows, rows: pa.Table, fold: str | None) -> Ints:
    """Return the flow of each row, -1 if there is none; `fold` is the period by which the flows are folded."""
    n = len(flows.zones)
    step = np.zeros(len(rows), np.int64)
    if flows.step_s is not None:
        clock, wall = Clock(flows.tz), rows["wall"].to_numpy()
        if fold is not None and len(flows.t):
            t = TimeAxis(period_seconds(fold), flows.tz).folded(wall, clock.to_wall(flows.t))
        else:
            t = clock.to_utc(wall)
        step = np.searchsorted(flows.t, t, side="right") - 1
        step[clock.to_wall(t) - clock.to_wall(flows.t)[step] >= flows.step_s] = -1  # a step without flows
    pair = (step * n + rows["o"].to_numpy()) * n + rows["d"].to_numpy()
    known = (flows.step * n + flows.origin) * n + flows.destination
    place = np.minimum(np.searchsorted(known, pair), len(known) - 1)
    return np.where(known[place] == pair, place, -1)


CELLS = {"origin": "origin", "destination": "destination", "time": "time"}
"""Identifying columns of flows in memory, whose records are cells: origin, destination and time step."""


class Inputs(NamedTuple):
    """The records of an input.

    Attributes
    ----------
    kind, columns
        The kind of records, and the columns that identify them, by role.
    records
        The records; `cell` is the flow of each.
    files
        SHA-256 of the input file; none for data in memory.
    times
        The times of the records; None if the run does not read the times of the ledger.
    fold
        The period by which time is folded; None if it is not.
    """

    kind: Kind
    columns: dict[str, str]
    records: SourceRecords
    files: list[str]
    times: Times | None = None
    fold: str | None = None


def read_records(data: Any, reading: Reading, flows: Flows, known: Mapping[str, str] | None, key: bytes) -> Inputs:
    """Read the trips or flows behind `flows`, with their keyed hashes; `known` are the ledger's columns."""
    fold = getattr(reading, "fold", None)
    if isinstance(data, Flows) or is_omx(data):
        if fold is not None:
            raise ParameterError(
                Option("fold"),
                "Expected a table of trips or flows with a ledger, got matrices or flows in memory. Give a table.",
            )
        return _cells(flows, known, key, input_files(data))
    options = {
        name: getattr(reading, name) for name in type(reading).model_fields if name not in ("partition", "min_tiles_of")
    }
    if isinstance(data, Trips):
        data, options = _table_of(data), options | {"user": None}
    files = input_files(data)
    columns: dict[str, str] = {}

    def content(source: Source, found: OdColumns) -> RowContent:
        columns.update(columns_in(source, found, known))
        return RowContent(columns, key)

    reader = reader_over(flows, data, options, content)
    rows = pa.Table.from_batches(list(reader.batches()))
    if "part" in rows.column_names and pc.max(rows["part"]).as_py():
        raise InputError(reader.source.name, "Expected whole volumes for a ledger, got fractions. Round them.")
    cell = flow_of_rows(flows, rows, fold)
    found = cell >= 0
    person = rows["person_hash"].to_numpy() if "person_hash" in rows.column_names else None
    volume = rows["volume"].to_numpy()[found] if reader.columns.is_flows else None
    source = rows["source"].to_numpy()[found]
    records = distinct_records(source, None if person is None else person[found], volume, cell[found])
    if reader.columns.people is not None and person is None:
        raise people_without_ids(reader.source.name)
    if fold is not None and flows.weight is None:
        _check_complete(records, flows)
    times = None
    if columns.get("time") == reader.columns.time is not None and found.any():
        wall = rows["wall"].to_numpy()[found][np.unique(source, return_index=True)[1]]
        length = (flows.step_s or 1) if reader.columns.is_flows else 1
        times = times_of(wall, length, options["tz"] if reader.instants else None)
    return Inputs("flows" if reader.columns.is_flows else "trips", columns, records, files, times, fold)


def _check_complete(records: SourceRecords, flows: Flows) -> None:
    """Raise unless the records add up to the flows: the audit would overlook missing ones."""
    volume = np.bincount(records.cell, records.volume, len(flows)).astype(np.int64)
    if not np.array_equal(volume, flows.volume):
        raise InputError(
            Option("fold"), "some flows have no records, so they cannot be audited. Leave this out, or the ledger."
        )


def times_of(wall: Ints, length: int, tz: str | None) -> Times:
    """Return times from local ones; `tz` is the time zone if they were instants, else None."""
    return Times(wall if tz is None else Clock(tz).to_utc(wall), length, tz is not None)


def input_files(data: Any) -> list[str]:
    """Return the SHA-256 of an input file; none for data in memory."""
    return [file_hash(omx_file(data))] if isinstance(data, str | Path) else []


def people_without_ids(name: object) -> InputError:
    """Return the error about flows with numbers of people but no ids."""
    return InputError(
        name,
        Text(
            "Expected person ids, since people of several flows may be the same, got numbers of people. Give trips "
            "with a column of people ({user}), or flows without numbers of people."
        ),
    )


def _table_of(trips: Trips) -> pa.Table:
    """Return trips in memory as a table."""
    ids = pa.array(trips.zones.ids, pa.string())
    columns: dict[str, Any] = {
        "origin": ids.take(pa.array(trips.origin)),
        "destination": ids.take(pa.array(trips.destination)),
    }
    if trips.t is not None:
        columns["time"] = pa.array(trips.t * 1000, pa.timestamp("ms", tz="UTC"))
    if trips.person is not None:
        columns["user_id"] = trips.person
    return pa.table(columns)


def _cells(flows: Flows, known: Mapping[str, str] | None, key: bytes, files: list[str]) -> Inputs:
    """Return the cells of flows as records."""
    if flows.k_unit == "people":
        raise people_without_ids("flows")
    columns = {role: name for role, name in CELLS.items() if role != "time" or flows.step_s is not None}
    if known is not None and dict(known) != columns:
        raise InputError("flows", "the ledger identifies records by other columns. Create a ledger for this source.")
    names = hash_texts(flows.zones.ids, key, b"zone")
    words = [names[flows.origin], names[flows.destination]]
    if flows.step_s is not None:
        words.append(flows.t[flows.step].view(np.uint64))
    records = distinct_records(hash_rows(words, key), None, flows.volume, np.arange(len(flows.origin)))
    times = None if flows.step_s is None else Times(flows.t[flows.step], flows.step_s, True)
    return Inputs("flows", columns, records, files, times)
