"""A folder of Parquet files is one table: the same flows as from one file, whatever the files hold, and the same refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdveil.errors import InputError
from crowdveil.io import od_grouping
from crowdveil.io.flows import open_rows, read_flows
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import open_source
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones
from crowdveil.reading import FRAME_OPTIONS, FlowReading

ZONES = Zones.from_ids(["a", "b", "c", "d"])


def trips(rows: int, seed: int = 5) -> pa.Table:
    rng = np.random.default_rng(seed)
    departure = 1_772_000_000 + rng.integers(0, 5 * 3600, rows)
    return pa.table(
        {
            "origin": rng.choice(list("abcd"), rows).tolist(),
            "destination": rng.choice(list("abcd"), rows).tolist(),
            "departure": pa.array(departure * 1000, pa.timestamp("ms")),
            "user_id": rng.integers(0, 40, rows),
        }
    )


def in_files(table: pa.Table, folder: Path, cuts: list[int]) -> Path:
    """Write consecutive slices of a table to files."""
    folder.mkdir()
    for i, (low, high) in enumerate(zip([0, *cuts], [*cuts, len(table)], strict=True)):
        pq.write_table(table.slice(low, high - low), folder / f"part-{i}.parquet", row_group_size=50)
    return folder


def assert_same(one: Flows, other: Flows) -> None:
    assert one.k_unit == other.k_unit
    assert one.distinct_people == other.distinct_people
    for name in ("t", "offsets", "origin", "destination", "volume", "people"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("cuts", [[100], [1, 2, 399], [130, 260]])
@pytest.mark.parametrize("zones", [ZONES, None], ids=["of given zones", "of zones in the data"])
def test_files_of_a_folder_give_the_flows_of_one_file(tmp_path: Path, cuts: list[int], zones: Zones | None) -> None:
    table = trips(400)
    pq.write_table(table, tmp_path / "one.parquet")
    folder = in_files(table, tmp_path / "many", cuts)
    (folder / "notes.txt").write_text("not a table")
    options = {"zones": zones, "tz": "Europe/Paris"}
    assert_same(read_flows(tmp_path / "one.parquet", **options), read_flows(folder, **options))


def test_rows_are_numbered_through_all_files(tmp_path: Path) -> None:
    table = trips(400)
    origin = table["origin"].to_pylist()
    for row in (99, 100, 350):
        origin[row] = "elsewhere"
    table = table.set_column(0, "origin", pa.array(origin))
    folder = in_files(table, tmp_path / "many", [100, 300])
    with pytest.raises(InputError, match=r"100, 101 and 351"):
        read_flows(folder, zones=ZONES)
    notes = ReadNotes()
    assert read_flows(folder, zones=ZONES, drop_invalid=True, notes=notes).total == 397
    assert notes.rows == 400


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    table = trips(400)
    back = pa.concat_tables([table.slice(300), table.slice(0, 300)])
    assert_same(
        read_flows(in_files(table, tmp_path / "a", [100]), zones=ZONES),
        read_flows(in_files(back, tmp_path / "b", [7, 201]), zones=ZONES),
    )


@pytest.mark.parametrize("at_once", [1, 60, 399])
def test_trips_grouped_file_by_file_give_the_same_flows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    folder = in_files(trips(400), tmp_path / "many", [130])
    whole = read_flows(folder, zones=ZONES, step="15min", members=True)
    monkeypatch.setattr(od_grouping, "MAX_ROWS", at_once)
    apart = read_flows(folder, zones=ZONES, step="15min", members=True)
    assert_same(whole, apart)
    # People are numbered in any order: what counts is who are the same.
    assert np.array_equal(whole.person_offsets, apart.person_offsets)
    assert [sorted(c) for c in classes_of(whole)] == [sorted(c) for c in classes_of(apart)]


def classes_of(flows: Flows) -> list[list[int]]:
    """Return the flows of each person, in the order of these lists."""
    assert flows.person_ids is not None and flows.person_offsets is not None
    row = np.repeat(np.arange(len(flows)), np.diff(flows.person_offsets))
    return sorted(row[flows.person_ids == person].tolist() for person in np.unique(flows.person_ids))


def test_unusable_rows_are_found_where_trips_are_grouped_file_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(od_grouping, "MAX_ROWS", 60)
    table = trips(400)
    people = table["user_id"].to_pylist()
    people[17] = None
    table = table.set_column(3, "user_id", pa.array(people, pa.int64()))
    folder = in_files(table, tmp_path / "many", [10])
    with pytest.raises(InputError, match=r"row 18\) has no user in column user_id"):
        read_flows(folder, zones=ZONES)
    assert read_flows(folder, zones=ZONES, drop_invalid=True).total == 399


@pytest.mark.parametrize("at_once", [60, 10**6])
def test_no_usable_row_is_one_sentence_however_trips_are_grouped(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(od_grouping, "MAX_ROWS", at_once)
    with pytest.raises(InputError, match="no row can be used"):
        read_flows(trips(400), zones=Zones.from_ids(["x"]), drop_invalid=True)


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    folder = in_files(trips(20), tmp_path / "many", [10])
    pq.write_table(trips(5).drop_columns(["user_id"]), folder / "part-9.parquet")
    with pytest.raises(InputError, match=r"part-0\.parquet and part-9\.parquet differ"):
        open_source(folder)


def test_an_empty_file_of_a_folder_is_refused(tmp_path: Path) -> None:
    folder = in_files(trips(20), tmp_path / "many", [10])
    pq.write_table(trips(5).slice(0, 0), folder / "part-9.parquet")
    with pytest.raises(InputError, match="no rows"):
        open_source(folder)


def test_a_folder_is_read_as_one_table(tmp_path: Path) -> None:
    table = trips(90)
    source = open_source(in_files(table, tmp_path / "many", [30, 31]))
    assert source.read() == table
    assert pa.Table.from_batches(source.batches(["user_id"])) == table.select(["user_id"])


@pytest.mark.parametrize("at_once", [60, 10**6])
@pytest.mark.parametrize("zones", [ZONES, None], ids=["of given zones", "of zones in the data"])
def test_staged_time_steps_are_those_of_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zones: Zones | None, at_once: int
) -> None:
    monkeypatch.setattr(od_grouping, "MAX_ROWS", at_once)
    folder = in_files(trips(400), tmp_path / "many", [130])
    options = FlowReading(zones=zones, step="1h", tz="Europe/Paris")
    given = {name: getattr(options, name) for name in FlowReading.model_fields if name not in FRAME_OPTIONS}
    whole = read_flows(folder, zones=zones, step="1h", tz="Europe/Paris", members=True)
    (tmp_path / "staged").mkdir()
    rows = open_rows(folder, notes=ReadNotes(), **given).stage(tmp_path / "staged")
    assert np.array_equal(rows.starts, whole.t) and rows.sizes.sum() == 400
    for which in (np.arange(len(whole.t)) % 2 == 0, np.arange(len(whole.t)) == 1):
        some = whole.at_steps(np.flatnonzero(which))
        read = rows.flows(which, members=True)
        assert_same(some, read)
        assert np.array_equal(some.person_offsets, read.person_offsets)
        assert [sorted(c) for c in classes_of(some)] == [sorted(c) for c in classes_of(read)]
