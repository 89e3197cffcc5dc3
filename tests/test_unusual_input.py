"""Input that is unusual and right, and input of which unusable rows are left out."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from bad_input import (
    K2,
    POINTS,
    TRIPS,
    ZONES,
    Command,
    anonymized,
    edited,
    refused,
    released,
    square,
    zones_json,
)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_zone_ids_without_their_zeros_are_named_as_the_cause(ending: str, here: Path, command: Command) -> None:
    (here / "zones.geojson").write_text(zones_json(("0101", square(2.17, 41.38)), ("0102", square(2.18, 41.38))))
    table = pa.table({"origin": [101, 101, 102], "destination": [102, 102, 101], "user_id": ["u1", "u2", "u3"]})
    for column in (table["origin"], table["origin"].cast(pa.string())):
        table = table.set_column(0, "origin", column).set_column(1, "destination", column)
        if ending == "csv":
            pacsv.write_csv(table, here / "trips.csv")
        else:
            pq.write_table(table, here / "trips.parquet")
        for more in ((), ("--drop-invalid",)):  # leaving them out would leave out all
            sentence = refused(command, here, *anonymized(f"trips.{ending}", "--zones", "zones.geojson", *K2, *more))
            assert "column origin" in sentence and "leading zeros" in sentence


def test_unsorted_and_repeated_times_are_fine(here: Path, command: Command) -> None:
    header, *rows = POINTS.splitlines()
    shuffled = [rows[3], rows[1], rows[0], rows[2], rows[1]]
    (here / "points.csv").write_text("\n".join([header, *shuffled]) + "\n")
    _, table = released(command, *anonymized("points.csv"))
    assert len(table) == 5
    assert (
        sorted(table["timestamp"].cast(pa.int64()).to_pylist())
        == table.sort_by("timestamp")["timestamp"].cast(pa.int64()).to_pylist()
    )
    for number in (1, 2):
        t = table.filter(pa.array([i == number for i in table["published_id"].to_pylist()]))["timestamp"].to_pylist()
        assert t == sorted(t)


def test_trajectories_of_one_point_are_fine(here: Path, command: Command) -> None:
    (here / "points.csv").write_text("\n".join(POINTS.splitlines()[:4:2] + POINTS.splitlines()[3:4]) + "\n")
    _, table = released(command, *anonymized("points.csv"))
    assert sorted(table["published_id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("first", [10**30, 2**63 - 3, 0])
def test_huge_ids_in_csv_are_fine(first: int, here: Path, command: Command) -> None:
    text = (
        POINTS.replace("tram-0451", str(first)).replace("tram-0452", str(first + 1)).replace("anna-k7", str(first + 2))
    )
    (here / "points.csv").write_text(text)
    _, table = released(command, *anonymized("points.csv"))
    assert sorted(set(table["published_id"].to_pylist())) == [1, 2]


def test_huge_ids_in_parquet_are_fine(here: Path, command: Command) -> None:
    ids = pa.array([2**63 - 1, 2**63 - 1, 2**63 - 2, -(2**63)])
    for kind, column in (("int", ids), ("uint", pa.array([2**64 - 1, 2**64 - 1, 2**64 - 2, 0], pa.uint64()))):
        points = {"lat": [1.0, 1.1, 1.2, 1.3], "lon": [2.0, 2.1, 2.2, 2.3], "t": [1, 2, 3, 4]}
        pq.write_table(pa.table({**points, "trajectory_id": column, "user_id": column}), here / f"{kind}.parquet")
        _, table = released(
            command, "anonymize", "simple-generalization", f"{kind}.parquet", "-o", "out", "--overwrite"
        )
        assert sorted(set(table["published_id"].to_pylist())) == [1, 2, 3]


def test_huge_zone_ids_and_users_are_fine(here: Path, command: Command) -> None:
    big = 2**63 - 1
    columns = {
        "origin": [big] * 3,
        "destination": [big - 1] * 3,
        "user_id": pa.array([2**64 - 1, 2**64 - 2, 2**64 - 3], pa.uint64()),
    }
    pq.write_table(pa.table(columns), here / "trips.parquet")
    (here / "zones.csv").write_text(f"zone_id,lon,lat\n{big},2.1,41.1\n{big - 1},2.2,41.2\n")
    for zones in ((), ("--zones", "zones.csv")):
        _, table = released(command, *anonymized("trips.parquet", *zones, "--overwrite", "--k", "3"))
        assert table["origin_area"].to_pylist() == [str(big)]
        assert table["people"].to_pylist() == [3]


def test_drop_invalid_counts_and_keeps_the_rest_of_points(here: Path, command: Command) -> None:
    rows = [
        "1.0,2.0,2020-01-01 00:00:00,good,ann",
        "1.0,2.0,2020-01-01 00:00:01,good,ann",
        ",2.0,2020-01-01 00:00:00,torn,ben",
        "1.0,2.0,2020-01-01 00:00:01,torn,ben",
        "1.0,200.0,what,torn2,cat",
        "1.0,2.0,2020-01-01 00:00:09,,ann",
        "1.5,2.5,2020-01-01 00:00:02,fine,dan",
    ]
    (here / "points.csv").write_text("lat,lon,timestamp,trajectory_id,user_id\n" + "\n".join(rows) + "\n")
    manifest, table = released(command, *anonymized("points.csv", "--drop-invalid"))
    dropped = manifest["input"]["dropped"]
    # Exact numbers are shown to who runs it, and not published: they may be of a single person.
    assert set(dropped.values()) == {"fewer than 10"} and manifest["input"]["dropped_percent"] == 0
    assert {k: v for k, v in dropped.items() if "column lat" in k}
    assert {k: v for k, v in dropped.items() if "column trajectory_id" in k}
    assert {k: v for k, v in dropped.items() if "in a trajectory with such a row" in k}
    assert len(table) == 3
    assert len(set(table["published_id"].to_pylist())) == 2


def test_drop_invalid_filters_the_good_rows_exactly(here: Path, command: Command) -> None:
    rows = [
        "1.0,2.0,2020-01-01 00:00:00,good,NA",
        ",2.0,2020-01-01 00:00:00,torn,x",
        "1.0,2.0,2020-01-01 00:00:01,,y",
        '1.00,2.0,2020/01/01 00:00:01,good,"a, b"',
        "1.5,2.5,2020-01-01 00:00:02,fine,None",
        "1.5,2.5,2020-01-01 00:00:03,torn,z",
    ]
    (here / "points.csv").write_text("lat,lon,timestamp,trajectory_id,remark\n" + "\n".join(rows) + "\n")
    ran = command("filter", "points.csv", "--min-locations", "1", "--drop-invalid", "-o", "out.csv")
    assert ran.code == 0, ran.err
    written = Path("out.csv").read_text().splitlines()
    wanted = list(csv.reader([rows[0], rows[3], rows[4]]))
    assert list(csv.reader(written[1:])) == wanted
    assert "dropped 1 row that" in ran.err


def test_drop_invalid_counts_and_keeps_the_rest_of_trips(here: Path, command: Command) -> None:
    text = edited(edited(TRIPS + TRIPS.partition("\n")[2], 2, 0, "Atlantis"), 3, 2, "noonish")
    (here / "trips.csv").write_text(edited(text, 4, 3, ""))
    (here / "zones.geojson").write_text(ZONES)
    manifest, table = released(
        command, *anonymized("trips.csv", "--zones", "zones.geojson", "--drop-invalid", "--step", "all", *K2)
    )
    assert manifest["input"]["dropped"] == {
        "name a zone that is not among the zones in column origin": "fewer than 2",
        "have no usable time in column departure": "fewer than 2",
        "have no user in column user_id": "fewer than 2",
    }
    # anna twice, bert, carl; anna alone went back
    assert table.select(["volume", "people"]).to_pylist() == [{"volume": 4, "people": 2}]


def test_dropping_all_is_refused(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(re.sub(r"37\.\d+", "north", POINTS))
    (here / "trips.csv").write_text(TRIPS.replace("Ymirstad", "Atlantis"))
    (here / "zones.geojson").write_text(ZONES)
    refused(command, here, *anonymized("points.csv", "--drop-invalid"))
    refused(command, here, *anonymized("trips.csv", "--zones", "zones.geojson", "--drop-invalid", *K2))
    (here / "points.csv").write_text(re.sub(r"tram-\d+", "", POINTS))
    refused(command, here, *anonymized("points.csv", "--drop-invalid"))
