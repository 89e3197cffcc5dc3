"""Source records: which rows of two inputs are the same trip, and in which published row each lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import crowdveil
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.ledger.content import SourceRecords
from crowdveil.ledger.examination import Covered, align
from crowdveil.ledger.records import Inputs, read_records
from crowdveil.model.flows import Flows
from crowdveil.reading import FlowReading, read

KEY = b"k" * 32


def trips(n: int = 200, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "origin": [f"z{i}" for i in rng.integers(0, 4, n)],
            "destination": [f"z{i}" for i in rng.integers(0, 4, n)],
            "time": pa.array(rng.integers(0, 3 * 86400, n) * 1_000_000, pa.timestamp("us")),
            "user_id": rng.integers(0, 30, n),
        }
    )


def records_of(data: Any, known: dict[str, str] | None = None, **options: Any) -> Inputs:
    reading = FlowReading.checked(options)
    flows = read(Flows, data, reading, ReadNotes())
    return read_records(data, reading, flows, known, KEY)


def test_inputs_that_overlap_share_the_records_in_common() -> None:
    table = trips()
    whole = records_of(table).records
    part = records_of(table.slice(50, 80)).records
    assert len(np.intersect1d(whole.source, part.source)) == len(part.source)
    assert int(whole.volume.sum()) == 200 and int(part.volume.sum()) == 80
    other = records_of(trips(seed=2)).records
    assert len(np.intersect1d(whole.source, other.source)) == 0


def test_a_trip_of_a_step_without_flows_is_in_no_flow() -> None:
    """Its weight is below half a trip; the step before has flows."""
    hours = pa.array([0] * 10 + [3600], pa.timestamp("s"))
    table = pa.table({"origin": ["a"] * 11, "destination": ["b"] * 11, "time": hours, "w": [1.0] * 10 + [0.3]})
    assert records_of(table, step="1h", weight="w").records.volume.sum() == 10


def test_records_depend_on_content_alone() -> None:
    table = trips()
    first = records_of(table)
    shuffled = records_of(table.take(np.random.default_rng(0).permutation(200)))
    for options in ({"step": "1d"}, {"step": "all"}, {"tz": "America/New_York"}):
        again = records_of(table, **options)
        assert np.array_equal(again.records.source, first.records.source), options
    assert np.array_equal(shuffled.records.source, first.records.source)
    text = table.set_column(3, "user_id", pa.array([f"{u}.0" for u in table["user_id"].to_pylist()]))
    assert np.array_equal(records_of(text).records.source, first.records.source)


def test_hashes_are_keyed() -> None:
    reading = FlowReading.checked({})
    flows = read(Flows, trips(), reading, ReadNotes())
    first, second = (read_records(trips(), reading, flows, None, key).records for key in (KEY, b"x" * 32))
    assert len(np.intersect1d(first.source, second.source)) == 0
    assert first.person is not None and second.person is not None
    assert len(np.intersect1d(first.person, second.person)) == 0


@pytest.mark.parametrize("first_day", ["2024-03-08", "2024-10-30"])
@pytest.mark.parametrize("fold", ["1d", "1w", "2w"])
def test_every_record_lies_in_its_folded_flow(fold: str, first_day: str) -> None:
    """Clocks of New York change within the weeks."""
    rng = np.random.default_rng(2)
    begin = np.datetime64(first_day, "us")
    times = pa.array(begin + rng.integers(0, 24 * 86400, 600).astype("timedelta64[s]"), pa.timestamp("us"))
    table = trips(600).set_column(2, "time", times)
    reading = FlowReading.checked({"step": "6h", "tz": "America/New_York", "fold": fold})
    flows = read(Flows, table, reading, ReadNotes())
    found = read_records(table, reading, flows, None, KEY)
    records, times = found.records, found.times
    assert np.array_equal(np.bincount(records.cell, records.volume, len(flows.origin)), flows.volume)
    people = set(zip(records.cell.tolist(), np.asarray(records.person).tolist(), strict=True))
    assert np.array_equal(np.bincount([c for c, _ in people], minlength=len(flows.origin)), flows.people)
    assert np.array_equal(records.source, records_of(table, tz="America/New_York").records.source)
    assert times is not None and len(times.start) == len(records.source) and found.fold == fold
    period = times.period
    assert period[0] < begin.astype(np.int64) // 1_000_000 + 86400 and period[1] - period[0] > 23 * 86400
    with pytest.raises(ParameterError, match="got matrices or flows in memory"):
        read_records(flows, reading, flows, None, KEY)


@pytest.mark.parametrize("step", ["1h", "1d", "all"])
def test_every_record_lies_in_its_flow(step: str) -> None:
    table = trips()
    reading = FlowReading.checked({"step": step, "tz": "America/New_York"})
    flows = read(Flows, table, reading, ReadNotes())
    records = read_records(table, reading, flows, None, KEY).records
    assert np.array_equal(np.bincount(records.cell, records.volume, len(flows.origin)), flows.volume)
    people = {(c, p) for c, p in zip(records.cell.tolist(), np.asarray(records.person).tolist(), strict=True)}
    assert np.array_equal(np.bincount([c for c, _ in people], minlength=len(flows.origin)), flows.people)


def test_flows_with_volumes_are_records_too() -> None:
    table = pa.table({"origin": ["a", "a", "b"], "destination": ["b", "c", "c"], "volume": [5, 3, 9]})
    found = records_of(table)
    assert found.kind == "flows" and sorted(found.records.volume.tolist()) == [3, 5, 9]
    flows = crowdveil.read_flows(table)
    in_memory = read_records(flows, FlowReading.checked({}), flows, None, KEY)
    assert np.array_equal(in_memory.records.source, found.records.source)


def test_counts_of_people_without_their_ids_are_refused() -> None:
    table = pa.table({"origin": ["a"], "destination": ["b"], "volume": [15], "people": [12]})
    with pytest.raises(InputError, match="people of several flows may be the same"):
        records_of(table)


def test_inputs_with_other_columns_are_refused() -> None:
    known = records_of(trips()).columns
    assert list(known) == ["origin", "destination", "time", "user"]
    with pytest.raises(InputError, match="columns that identify the records"):
        records_of(trips().drop_columns(["user_id"]), known)
    renamed = trips().rename_columns(["origin", "destination", "time", "who"])
    with pytest.raises(InputError, match="columns that identify the records"):
        records_of(renamed, known, user="who")
    with pytest.raises(InputError, match="data without people"):
        records_of(trips(), {"origin": "origin", "destination": "destination", "time": "time"})


def covered(name: str, **columns: list[int]) -> Covered:
    source, volume, row = (np.array(columns[c]) for c in ("source", "volume", "row"))
    records = SourceRecords(source.astype(np.uint64), None, volume.astype(np.int64), row.astype(np.int64))
    return Covered(name, records, 10)


def test_trips_in_common_are_one_record() -> None:
    first = covered("first", source=[1, 2, 3], volume=[1, 10, 1], row=[0, 1, 1])
    second = covered("second", source=[2, 3, 9], volume=[13, 1, 1], row=[0, -1, 2])
    records, (one, two) = align([first, second])
    rows = sorted(zip(records.volume.tolist(), one.row.tolist(), two.row.tolist(), strict=True))
    assert rows == [(1, -1, 2), (1, 0, -1), (1, 1, -1), (3, -1, 0), (10, 1, 0)]
