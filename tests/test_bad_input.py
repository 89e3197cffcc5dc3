"""Bad input through the front door: one sentence, exit code 2, no value of the data, nothing written."""

from __future__ import annotations

import csv
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from conftest import Ran
from crowdveil.errors import InputError
from crowdveil.io.source import open_source

Command = Callable[..., Ran]

POINTS = """lat,lon,timestamp,trajectory_id,user_id
37.75134,-122.39488,2008/06/08 07:00:01,tram-0451,anna-k7
37.75151,-122.39412,2008/06/08 07:01:04,tram-0451,anna-k7
37.76882,-122.41207,2008/06/08 07:00:31,tram-0452,bert-q2
37.76903,-122.41333,2008/06/08 07:02:17,tram-0452,bert-q2
"""
TRIPS = """origin,destination,departure,user_id
Zurbano,Ymirstad,2024-05-06 08:10:00,anna-k7
Zurbano,Ymirstad,2024-05-06 08:20:00,bert-q2
Zurbano,Ymirstad,2024-05-06 08:30:00,carl-x9
Ymirstad,Zurbano,2024-05-06 09:10:00,anna-k7
"""
FLOWS = """origin,destination,volume
Zurbano,Ymirstad,4711
Ymirstad,Zurbano,3141
"""
PLACES = """origin_lon,origin_lat,destination_lon,destination_lat
2.17340,41.38510,2.19011,41.40122
2.17341,41.38511,2.19012,41.40123
2.17342,41.38512,2.19013,41.40124
"""


def square(west: float, south: float, size: float = 0.01) -> list[list[float]]:
    east, north = west + size, south + size
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def zones_json(*zones: tuple[str, list[list[float]]]) -> str:
    features = [
        {"type": "Feature", "properties": {"zone_id": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for name, ring in zones
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


ZONES = zones_json(("Zurbano", square(2.17, 41.38)), ("Ymirstad", square(2.18, 41.38)))


def edited(text: str, row: int, column: int, value: str) -> str:
    """A CSV with one value changed; rows count from 1 below the header."""
    lines = text.splitlines()
    values = lines[row].split(",")
    values[column] = value
    lines[row] = ",".join(values)
    return "\n".join(lines) + "\n"


def values_in(file: Path) -> set[str]:
    """Values of a data file that a message must not hold."""
    try:
        text = file.read_bytes().decode("utf-8", errors="ignore")
    except IsADirectoryError:
        return set()
    if file.suffix in (".json", ".toml"):
        return set()
    body = text if file.suffix == ".geojson" else text.partition("\n")[2]
    found = {v.strip() for v in re.split(r'[,;\n"\[\]{}:]', body)}
    return {
        v
        for v in found
        if len(v) > 3 and v not in ("type", "Feature", "geometry", "zone_id", "coordinates", "node", "parent")
    }


def tree_of(folder: Path) -> dict[str, bytes | None]:
    """All that lies in a folder, hidden things too."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def refused(command: Command, folder: Path, *args: object, code: int = 2) -> str:
    """Run a command that must fail; returns its sentence."""
    before = tree_of(folder)
    ran = command(*args)
    sentence = ran.sentence
    assert ran.code == code, ran
    assert "Internal error" not in sentence
    assert tree_of(folder) == before, "something was written"
    for file in folder.iterdir():
        leaked = {v for v in values_in(file) if v in sentence}
        assert not leaked, f"{sentence} has the values {leaked}"
    return sentence


@dataclass(frozen=True)
class Bad:
    """A file that must be refused, the arguments that it is given with, and what the sentence must name."""

    name: str
    content: str | bytes
    args: tuple[str, ...]
    says: tuple[str, ...]

    def __repr__(self) -> str:
        return self.name


def anonymized(file: str, *more: str) -> tuple[str, ...]:
    method = "suppression" if file.startswith(("trips", "flows", "places")) else "simple-generalization"
    return ("anonymize", method, file, *more, "-o", "out")


K2 = ("--k", "2")
POINT_FILES = [
    Bad("empty file", "", anonymized("points.csv"), ("points.csv", "empty")),
    Bad("one byte", "\n", anonymized("points.csv"), ("points.csv",)),
    Bad("header only", "lat,lon,timestamp,trajectory_id,user_id\n", anonymized("points.csv"), ("header", "no rows")),
    Bad("header only, no newline", "lat,lon,timestamp,trajectory_id", anonymized("points.csv"), ("header", "no rows")),
    Bad("missing column", POINTS.replace("lat,", "north,"), anonymized("points.csv"), ("column lat", "--lat")),
    Bad("no ids", "lat,lon,timestamp\n1,2,2020-01-01\n", anonymized("points.csv"), ("trajectory_id or user_id",)),
    Bad("misspelt column", POINTS, anonymized("points.csv", "--user", "usr_id"), ("usr_id", "did you mean user_id?")),
    Bad("misspelt header", POINTS.replace("timestamp", "timestmp"), anonymized("points.csv"), ("timestmp",)),
    Bad("no header", POINTS.partition("\n")[2], anonymized("points.csv"), ("header",)),
    Bad("latitude missing", edited(POINTS, 2, 0, ""), anonymized("points.csv"), ("1 row (row 2)", "column lat")),
    Bad("latitude NaN", edited(POINTS, 2, 0, "NaN"), anonymized("points.csv"), ("1 row (row 2)", "column lat")),
    Bad("latitude inf", edited(edited(POINTS, 2, 0, "inf"), 3, 0, "-inf"), anonymized("points.csv"),
        ("2 rows (rows 2 and 3)", "column lat")),
    Bad("latitude huge", edited(POINTS, 4, 0, "1e999"), anonymized("points.csv"), ("1 row (row 4)", "column lat")),
    Bad("latitude text", edited(POINTS, 1, 0, "northish"), anonymized("points.csv"), ("1 row (row 1)", "column lat")),
    Bad("latitude off the globe", edited(POINTS, 3, 0, "91.377"), anonymized("points.csv"), ("row 3", "column lat")),
    Bad("longitude off the globe", edited(POINTS, 3, 1, "-180.017"), anonymized("points.csv"), ("row 3", "column lon")),
    Bad("lon and lat swapped", POINTS.replace("lat,lon", "lon,lat"), anonymized("points.csv"), ("look swapped",)),
    Bad("time text", edited(POINTS, 2, 2, "yesterday"), anonymized("points.csv"), ("row 2", "column timestamp")),
    Bad("time impossible", edited(POINTS, 2, 2, "2008/02/30 07:01"), anonymized("points.csv"), ("row 2", "timestamp")),
    Bad("time missing", edited(POINTS, 2, 2, ""), anonymized("points.csv"), ("row 2", "column timestamp")),
    Bad("zones mixed", edited(POINTS, 2, 2, "2008/06/08 07:01:04Z"), anonymized("points.csv"), ("timestamp", "zone")),
    Bad("time form unknown", edited(POINTS, 2, 2, "8 Jun 2008"), anonymized("points.csv"), ("row 2", "--time-format")),
    Bad("time day or month", re.sub(r"2008/06/08", "08/06/2008", POINTS), anonymized("points.csv"), ("--time-format",)),
    Bad("time before 1970", edited(POINTS, 2, 2, "1908/06/08 07:01"), anonymized("points.csv"), ("row 2", "--any-years")),
    Bad("time after 2100", edited(POINTS, 2, 2, "2606-06-08 07:01"), anonymized("points.csv"), ("row 2", "--any-years")),
    Bad("times far apart", edited(edited(POINTS, 2, 2, "1971-06-08 07:01"), 3, 2, "2099-06-08 07:01"), anonymized("points.csv"),
        ("100 years", "--any-years")),
    Bad("times of two units", re.sub(r"2008/06/08 07:(\d\d:\d\d)", lambda m: "1212908400" + "000" * (m[1] > "01"), POINTS),
        anonymized("points.csv"), ("column timestamp", "seconds", "milliseconds", "one unit")),
    Bad("user blank", edited(POINTS, 2, 4, "\u00a0"), anonymized("points.csv"), ("row 2", "column user_id")),
    Bad("decimal commas", POINTS.replace(",", ";").replace(".", ","), anonymized("points.csv"), ("4 rows", "decimal comma")),
    Bad("decimal commas between commas", POINTS.replace(".", ","), anonymized("points.csv"), ("7", "decimal comma", "semicolon")),
    Bad("rows with another delimiter", POINTS.replace(",", ";").replace(";", ",", 4), anonymized("points.csv"),
        ("row 1", "semicolons", "commas")),
    Bad("unknown delimiter", POINTS.replace(",", "^"), anonymized("points.csv"), ("one column", "semicolons")),
    Bad("column in two cases", POINTS.replace("user_id", "LAT"), anonymized("points.csv"), ("lat and LAT", "--lat")),
    Bad("too many columns", ",".join(f"c{i}" for i in range(10_001)) + "\n1\n", anonymized("points.csv"), ("10,000 columns",)),
    Bad("an endless first line", "x" * (5 << 20), anonymized("points.csv"), ("first line", "4 MB")),
    Bad("both rules of case", POINTS, anonymized("points.csv", "--user-ignore-case", "--user-case-sensitive"), ("exclude",)),
    Bad("id missing", edited(POINTS, 2, 3, ""), anonymized("points.csv"), ("row 2", "column trajectory_id")),
    Bad("user missing", edited(POINTS, 2, 4, ""), anonymized("points.csv"), ("row 2", "column user_id")),
    Bad("all ids missing", re.sub(r"tram-\d+", "", POINTS), anonymized("points.csv"), ("4 rows", "trajectory_id")),
    Bad("all users missing", re.sub(r"anna-k7|bert-q2", "", POINTS), anonymized("points.csv"), ("4 rows", "user_id")),
    Bad("Latin-1", POINTS.replace("anna", "ännå").encode("latin-1"), anonymized("points.csv"), ("not UTF-8",)),
    Bad("Latin-1 header", POINTS.replace("user_id", "usér").encode("latin-1"), anonymized("points.csv"), ("UTF-8",)),
    Bad("UTF-16", POINTS.encode("utf-16"), anonymized("points.csv"), ("not UTF-8",)),
    Bad("UTF-16 without mark", POINTS.encode("utf-16-le"), anonymized("points.csv"), ("not UTF-8",)),
    Bad("too few values", POINTS.replace(",bert-q2\n", "\n", 1), anonymized("points.csv"), ("row 3", "5 values", "4")),
    Bad("too many values", POINTS.replace("-k7\n", "-k7,9999\n", 1), anonymized("points.csv"), ("row 1", "6")),
    Bad("open quote", POINTS.replace(",bert", ',"bert', 1), anonymized("points.csv"), ("points.csv", "quote")),
    Bad("column twice", POINTS.replace("user_id", "lat"), anonymized("points.csv"), ("columns repeat in the header",)),
    Bad("garbage Parquet", b"PAR1 garbage of some length, no footer", anonymized("points.parquet"), ("broken",)),
    Bad("text named Parquet", POINTS, anonymized("points.parquet"), ("points.parquet", "broken")),
    Bad("binary named CSV", bytes(range(256)) * 20, anonymized("points.csv"), ("points.csv",)),
    Bad("broken gzip", b"\x1f\x8b\x08\x00garbage", anonymized("points.csv.gz"), ("broken",)),
    Bad("unknown ending", POINTS, anonymized("points.xls"), ("CSV or Parquet", ".csv")),
    Bad("unknown zone of time", POINTS, anonymized("points.csv", "--tz", "Mars/Olympus"), ("tz", "Mars/Olympus")),
    Bad("tile size zero", POINTS, anonymized("points.csv", "--tile-size-m", "0"), ("--tile-size-m: ",)),
    Bad("tile size text", POINTS, anonymized("points.csv", "--tile-size-m", "big"), ("--tile-size-m",)),
    Bad("tiles too many", POINTS, anonymized("points.csv", "--tile-size-m", "0.0001"), ("tiles", "larger")),
    Bad("seed below zero", POINTS, anonymized("points.csv", "--seed", "-1"), ("--seed",)),
    Bad("unknown option", POINTS, anonymized("points.csv", "--frobnicate", "1"), ("--frobnicate",)),
    Bad("unknown method", POINTS, ("anonymize", "magic", "points.csv", "-o", "out"), ("magic", "suppression")),
    Bad("unknown command", POINTS, ("anonymous", "points.csv"), ("anonymous",)),
    Bad("no output", POINTS, ("anonymize", "simple-generalization", "points.csv"), ("--output",)),
    Bad("output without ending", POINTS, ("filter", "points.csv", "--min-locations", "1", "-o", "out"), ("out: ", ".csv")),
    Bad("output of a new folder", POINTS, ("filter", "points.csv", "--min-locations", "1", "-o", "new/er/out.xls"), ("out.xls",)),
    Bad("no filter", POINTS, ("filter", "points.csv", "-o", "out.csv"), ("--min-locations", "--max-speed")),
    Bad("filter by text", POINTS, ("filter", "points.csv", "--max-speed", "fast", "-o", "out.csv"), ("--max-speed: ",)),
    Bad("filter by half a box", POINTS, ("filter", "points.csv", "--bbox", "1,2,3", "-o", "out.csv"), ("bbox",)),
    Bad("filter by no time", POINTS, ("filter", "points.csv", "--time-window", "a,b", "-o", "o.csv"), ("--time-window: ",)),
]  # fmt: skip
TRIP_FILES = [
    Bad("empty file", "", anonymized("trips.csv"), ("trips.csv", "empty")),
    Bad("header only", TRIPS.splitlines()[0], anonymized("trips.csv"), ("header", "no rows")),
    Bad("missing column", TRIPS.replace("origin", "start"), anonymized("trips.csv"), ("--origin",)),
    Bad("misspelt column", TRIPS, anonymized("trips.csv", "--origin", "orign"), ("orign", "did you mean origin?")),
    Bad("misspelt time", TRIPS, anonymized("trips.csv", "--time", "departur"), ("did you mean departure?",)),
    Bad("no header", TRIPS.partition("\n")[2], anonymized("trips.csv"), ("header",)),
    Bad("unknown zone", edited(TRIPS, 2, 0, "Atlantis"), anonymized("trips.csv", "--zones", "zones.geojson", *K2),
        ("1 row (row 2)", "column origin")),
    Bad("unknown destinations", edited(edited(TRIPS, 2, 1, "Atlantis"), 3, 1, "Xanadu"),
        anonymized("trips.csv", "--zones", "zones.geojson", *K2), ("2 rows (rows 2 and 3)", "column destination")),
    Bad("zone missing", edited(TRIPS, 2, 0, ""), anonymized("trips.csv", *K2), ("1 row (row 2)", "column origin")),
    Bad("all zones missing", TRIPS.replace("Zurbano", "").replace("Ymirstad", ""), anonymized("trips.csv", *K2),
        ("4 rows", "column origin")),
    Bad("time text", edited(TRIPS, 3, 2, "noonish"), anonymized("trips.csv", *K2), ("row 3", "column departure")),
    Bad("user missing", edited(TRIPS, 3, 3, ""), anonymized("trips.csv", *K2), ("row 3", "column user_id")),
    Bad("user blank", edited(TRIPS, 3, 3, "   "), anonymized("trips.csv", *K2), ("row 3", "column user_id")),
    Bad("time after 2100", edited(TRIPS, 3, 2, "2606-05-06"), anonymized("trips.csv", *K2), ("row 3", "--any-years")),
    Bad("time form unknown", edited(TRIPS, 3, 2, "6 May 2024"), anonymized("trips.csv", *K2), ("row 3", "--time-format")),
    Bad("times far apart", edited(edited(TRIPS, 2, 2, "1971-06-08 07:01"), 3, 2, "2099-06-08 07:01"),
        anonymized("trips.csv", *K2), ("100 years", "--any-years")),
    Bad("more people than trips", "origin,destination,volume,people\na,b,4711,4712\nb,a,3141,12\na,a,11,5111\n",
        anonymized("flows.csv", *K2), ("2 rows (rows 1 and 3)", "more people than trips")),
    Bad("k above the people", TRIPS, anonymized("trips.csv", "--k", "4"), ("k: ", "people in the data, 3,", "got 4")),
    Bad("k above the sum of people", "origin,destination,volume,people\na,b,4711,11\nb,a,3141,12\n",
        anonymized("flows.csv", "--k", "24"), ("k: ", "people in the data, at most 23,", "got 24")),
    Bad("decimal commas", edited(PLACES.replace(",", ";"), 0, 0, "origin_lon;origin_lat;destination_lon;destination_lat").replace(
        ".", ","), anonymized("places.csv", "--zones", "zones.geojson", *K2), ("3 rows", "decimal comma")),
    Bad("decimal commas and a grid", PLACES.replace(",", ";").replace(".", ","), anonymized("places.csv", "--grid", "1km", *K2),
        ("decimal comma",)),
    Bad("k 1", TRIPS, anonymized("trips.csv", "--k", "1"), ("k: ", "2")),
    Bad("k 0", TRIPS, anonymized("trips.csv", "--k", "0"), ("k: ", "2")),
    Bad("k -3", TRIPS, anonymized("trips.csv", "--k", "-3"), ("k: ", "2")),
    Bad("k text", TRIPS, anonymized("trips.csv", "--k", "abc"), ("--k",)),
    Bad("k fraction", TRIPS, anonymized("trips.csv", "--k", "2.5"), ("--k",)),
    Bad("k larger than the data", TRIPS, anonymized("trips.csv", "--k", "50"), ("k: ", "50", "smaller")),
    Bad("step 0h", TRIPS, anonymized("trips.csv", "--step", "0h", *K2), ("step", "15min")),
    Bad("step text", TRIPS, anonymized("trips.csv", "--step", "abc", *K2), ("step", "15min")),
    Bad("step of a million years", TRIPS, anonymized("trips.csv", "--step", "9" * 30 + "h", *K2), ("step",)),
    Bad("step without times", FLOWS, anonymized("flows.csv", "--step", "1h", *K2), ("--step", "--time")),
    Bad("time zone unknown", TRIPS, anonymized("trips.csv", "--tz", "Mars/Olympus", *K2), ("tz", "Mars/Olympus")),
    Bad("time zone a path", TRIPS, anonymized("trips.csv", "--tz", "../../etc/passwd", *K2), ("tz",)),
    Bad("time zone empty", TRIPS, anonymized("trips.csv", "--tz", "", *K2), ("tz",)),
    Bad("weight text", TRIPS.replace("user_id", "w"), anonymized("trips.csv", "--weight", "w", *K2), ("4 rows", "column w")),
    Bad("Latin-1", TRIPS.replace("anna", "ännå").encode("latin-1"), anonymized("trips.csv", *K2), ("not UTF-8",)),
    Bad("too few values", TRIPS.replace(",bert-q2\n", "\n"), anonymized("trips.csv", *K2), ("row 2", "4", "3")),
    Bad("grid with ids", TRIPS, anonymized("trips.csv", "--grid", "500m", *K2), ("coordinates", "--origin-lon")),
    Bad("two ways to make zones", PLACES, anonymized("places.csv", "--grid", "1km", "--h3", "8", *K2), ("--grid and --h3",)),
    Bad("grid text", PLACES, anonymized("places.csv", "--grid", "abc", *K2), ("grid", "500m")),
    Bad("grid 0", PLACES, anonymized("places.csv", "--grid", "0", *K2), ("grid", "500m")),
    Bad("grid -5m", PLACES, anonymized("places.csv", "--grid=-5m", *K2), ("grid", "500m")),
    Bad("grid of a millimeter", PLACES, anonymized("places.csv", "--grid", "0.001m", *K2), ("tiles", "larger")),
    Bad("h3 16", PLACES, anonymized("places.csv", "--h3", "16", *K2), ("h3", "15")),
    Bad("no zones for coordinates", PLACES, anonymized("places.csv", *K2), ("--zones", "--grid")),
    Bad("coordinate NaN", edited(PLACES, 2, 1, "nan"), anonymized("places.csv", "--grid", "1km", *K2),
        ("row 2", "column origin_lat")),
    Bad("coordinate off the globe", edited(PLACES, 2, 1, "95.125"), anonymized("places.csv", "--grid", "1km", *K2),
        ("row 2", "column origin_lat")),
    Bad("coordinate outside", edited(PLACES, 2, 2, "9.12345"), anonymized("places.csv", "--zones", "zones.geojson", *K2),
        ("destination", "outside")),
    Bad("volume below zero", edited(FLOWS, 2, 2, "-3141"), anonymized("flows.csv", *K2), ("row 2", "column volume", "zero")),
    Bad("volume a fraction", edited(FLOWS, 2, 2, "31.41"), anonymized("flows.csv", *K2), ("row 2", "column volume", "whole")),
    Bad("volume text", edited(FLOWS, 2, 2, "many"), anonymized("flows.csv", *K2), ("row 2", "column volume")),
    Bad("volume infinite", edited(FLOWS, 2, 2, "inf"), anonymized("flows.csv", *K2), ("row 2", "column volume")),
    Bad("volume huge", edited(FLOWS, 2, 2, "99999999999999999999"), anonymized("flows.csv", *K2), ("row 2", "volume")),
    Bad("volumes zero", re.sub(r"4711|3141", "0", FLOWS), anonymized("flows.csv", *K2), ("zero",)),
    Bad("garbage OMX", "no HDF5 at all", anonymized("flows.omx", *K2), ("flows.omx", "broken")),
    Bad("no such zones", TRIPS, anonymized("trips.csv", "--zones", "nowhere.geojson", *K2), ("nowhere.geojson", "no such")),
    Bad("no such zones in CSV", TRIPS, anonymized("trips.csv", "--zones", "nowhere.csv", *K2), ("nowhere.csv", "no such")),
]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", POINT_FILES + TRIP_FILES, ids=repr)
def test_a_bad_file_is_refused_in_one_sentence(case: Bad, here: Path, command: Command) -> None:
    content = case.content.encode() if isinstance(case.content, str) else case.content
    file = next((a for a in case.args if a.partition(".")[0] in ("points", "trips", "flows", "places")), None)
    (here / str(file)).write_bytes(content)
    if "zones.geojson" in case.args:
        (here / "zones.geojson").write_text(ZONES)
    sentence = refused(command, here, *case.args)
    for part in case.says:
        assert part in sentence


SHAPES = {
    "overlapping polygons": (
        zones_json(("Zurbano", square(2.17, 41.38)), ("Ymirstad", square(2.175, 41.38))),
        ("1 pair of zones overlap", "2 rows (rows 1 and 2)"),
    ),
    "bow-tie": (
        zones_json(("Zurbano", square(2.17, 41.38)), ("Ymirstad", [[2.18, 41.38], [2.19, 41.39], [2.19, 41.38],
                                                                  [2.18, 41.39], [2.18, 41.38]])),
        ("1 row (row 2)", "invalid"),
    ),
    "cut off": (ZONES[: len(ZONES) // 2], ("zones.geojson", "broken")),
    "no JSON": ("no JSON at all", ("zones.geojson", "broken")),
    "empty": ("", ("zones.geojson", "empty")),
    "no features": (zones_json(), ("zones.geojson", "no zones")),
    "JSON of another kind": ('{"a": 1}', ("zones.geojson",)),
    "null shape": (ZONES.replace('{"type": "Polygon", "coordinates": ' + json.dumps([square(2.18, 41.38)]) + "}", "null"),
                   ("1 row (row 2)", "no shape")),
    "lines": (ZONES.replace("Polygon", "MultiLineString"), ("2 rows (rows 1 and 2)", "no polygons")),
    "meters": (zones_json(("Zurbano", square(430000, 4580000, 100)), ("Ymirstad", square(430100, 4580000, 100))),
               ("no degrees",)),
    "ids twice": (zones_json(("Zurbano", square(2.17, 41.38)), ("Zurbano", square(2.18, 41.38))), ("1 row (row 2)", "--zone-id")),
}  # fmt: skip


CENTROIDS = "zone_id,lon,lat\nZurbano,2.17,41.38\nYmirstad,2.18,41.39\n"
TABLES = {
    "decimal commas": (CENTROIDS.replace(",", ";").replace(".", ","), ("2 rows (rows 1 and 2)", "decimal comma in column lon")),
    "quoted decimal commas": (CENTROIDS.replace("2.17", '"2,17"'), ("1 row (row 1)", "decimal comma in column lon")),
    "rows with another delimiter": (CENTROIDS.replace(",", ";").replace(";", ",", 2), ("row 1", "semicolons", "commas")),
    "unknown delimiter": (CENTROIDS.replace(",", "^"), ("one column", "semicolons")),
}  # fmt: skip


@pytest.mark.parametrize("option", ["--zones", "--voronoi"])
@pytest.mark.parametrize("name", TABLES)
def test_a_bad_table_of_zones_is_refused_with_its_cause(name: str, option: str, here: Path, command: Command) -> None:
    content, says = TABLES[name]
    (here / "zones.csv").write_text(content)
    (here / "places.csv").write_text(PLACES)
    sentence = refused(command, here, *anonymized("places.csv", option, "zones.csv", *K2))
    for part in says:
        assert part in sentence


AMOUNTS = {
    "volume": "origin;destination;volume\na;b;12,0\n",
    "people": "origin;destination;volume;people\na;b;12;3,0\n",
    "weight": "origin;destination;user;weight\na;b;u;1,5\n",
}


@pytest.mark.parametrize("column", AMOUNTS)
def test_decimal_commas_of_amounts_are_named(column: str, here: Path, command: Command) -> None:
    (here / "flows.csv").write_text(AMOUNTS[column])
    more = ("--weight", "weight") if column == "weight" else ()
    sentence = refused(command, here, *anonymized("flows.csv", *more, *K2))
    assert "1 row (row 1)" in sentence and f"decimal comma in column {column}" in sentence


@pytest.mark.parametrize("name", SHAPES)
def test_bad_zones_are_refused(name: str, here: Path, command: Command) -> None:
    content, says = SHAPES[name]
    (here / "zones.geojson").write_text(content)
    (here / "trips.csv").write_text(TRIPS)
    more = ("--zone-id", "zone_id") if name == "ids twice" else ()
    sentence = refused(command, here, *anonymized("trips.csv", "--zones", "zones.geojson", *more, *K2))
    for part in says:
        assert part in sentence


def test_an_unknown_column_of_zones_is_named(here: Path, command: Command) -> None:
    (here / "zones.geojson").write_text(ZONES)
    (here / "trips.csv").write_text(TRIPS)
    args = anonymized("trips.csv", "--zones", "zones.geojson", "--zone-id", "zoneid", *K2)
    assert "did you mean zone_id?" in refused(command, here, *args)


CENTROIDS = "zone_id,lon,lat\nZurbano,2.17511,41.38522\nYmirstad,2.18511,41.38522\nXativa,2.19511,41.38522\n"
TREES = {
    "cycle": ("node,parent\nZurbano,Bx-1\nYmirstad,Bx-1\nXativa,By-2\nBx-1,By-2\nBy-2,Bx-1\n", ("no tree", "circle")),
    "two parents": ("node,parent\nZurbano,Bx-1\nYmirstad,Bx-1\nZurbano,By-2\nXativa,By-2\nBx-1,Top-9\nBy-2,Top-9\n",
                    ("no tree", "second parent", "row 3")),
    "unit in two districts": ("zone,tract,district\nZurbano,Bx-1,Dist-1\nYmirstad,Bx-1,Dist-2\nXativa,By-2,Dist-2\n",
                              ("no tree", "column tract", "column district", "row 2")),
    "unknown tile": ("zone,tract\nZurbano,Bx-1\nYmirstad,Bx-1\nAtlantis,By-2\n", ("row 3",)),
    "tile lacking": ("zone,tract\nZurbano,Bx-1\nYmirstad,Bx-1\n", ("1 tile",)),
    "unit missing": ("zone,tract\nZurbano,Bx-1\nYmirstad,\nXativa,Bx-1\n", ("column tract", "row 2")),
    "one column": ("zone\nZurbano\nYmirstad\nXativa\n", ("column",)),
    "empty": ("", ("tree.csv", "empty")),
    "two roots": ("node,parent\nZurbano,Bx-1\nYmirstad,Bx-1\nXativa,By-2\nBx-1,\nBy-2,\n", ("no tree", "root")),
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
def test_a_hierarchy_that_is_no_tree_is_refused(name: str, here: Path, command: Command) -> None:
    content, says = TREES[name]
    (here / "zones.csv").write_text(CENTROIDS)
    (here / "tree.csv").write_text(content)
    sentence = refused(command, here, "hierarchy", "zones.csv", "--hierarchy", "tree.csv", "-o", "out.csv")
    for part in says:
        assert part in sentence


@pytest.mark.parametrize("kind", ["wards", "nowhere.csv", "h3"])
def test_a_hierarchy_of_no_known_kind_is_refused(kind: str, here: Path, command: Command) -> None:
    (here / "zones.csv").write_text(CENTROIDS)
    refused(command, here, "hierarchy", "zones.csv", "--hierarchy", kind, "-o", "out.csv")


def test_a_truncated_parquet_file_is_refused(here: Path, command: Command) -> None:
    columns = {"origin": ["Zurbano"] * 500, "destination": ["Ymirstad"] * 500, "user_id": list(range(500))}
    pq.write_table(pa.table(columns), here / "whole.parquet", compression="none")
    whole = (here / "whole.parquet").read_bytes()
    (here / "zones.geojson").write_text(ZONES)
    for length in (3, 100, len(whole) // 2, len(whole) - 1):
        (here / "trips.parquet").write_bytes(whole[:length])
        assert "broken" in refused(command, here, *anonymized("trips.parquet", "--zones", "zones.geojson", *K2))


def test_a_parquet_file_with_broken_pages_is_refused(here: Path, command: Command) -> None:
    points = {
        "lat": np.linspace(41.1, 41.2, 5000), "lon": np.linspace(2.1, 2.2, 5000), "timestamp": np.arange(5000),
        "trajectory_id": np.arange(5000) // 10,
    }  # fmt: skip
    trips = {"origin": [str(i) for i in range(5000)], "destination": [str(i) for i in range(5000)]}
    (here / "zones.csv").write_text("zone_id,lon,lat\n" + "".join(f"{i},2.1,41.1\n" for i in range(5000)))
    for name, columns, args in (("points", points, ()), ("trips", trips, ("--zones", "zones.csv"))):
        file = here / f"{name}.parquet"
        pq.write_table(pa.table(columns), file, compression="zstd", use_dictionary=False)
        content = bytearray(file.read_bytes())
        for at in range(200, len(content) - 3000, 7):
            content[at] ^= 0x5A
        file.write_bytes(content)
        assert "broken" in refused(command, here, *anonymized(file.name, *args))
    # The same rows by the reader that does not use the engine.
    assert "broken" in refused(command, here, *anonymized("trips.parquet"))


def test_parquet_without_rows_is_refused(here: Path, command: Command) -> None:
    schema = pa.schema([("origin", pa.string()), ("destination", pa.string())])
    pq.write_table(schema.empty_table(), here / "trips.parquet")
    assert "no rows" in refused(command, here, *anonymized("trips.parquet"))


ODD_TYPES = {
    "list": pa.array([[1], [2], [3], [4]]),
    "struct": pa.array([{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}]),
    "null": pa.nulls(4),
    "bool": pa.array([True, False, True, False]),
    "bytes": pa.array([b"\xff\xfe", b"\xfe", b"\xfd", b"\xfc"]),
    "duration": pa.array([1, 2, 3, 4], pa.duration("s")),
    "time": pa.array([1, 2, 3, 4], pa.time32("s")),
    "map": pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("kind", ODD_TYPES)
@pytest.mark.parametrize("column", ["lat", "lon", "timestamp", "trajectory_id", "user_id"])
def test_odd_types_of_points_never_are_our_fault(kind: str, column: str, here: Path, command: Command) -> None:
    points = {
        "lat": pa.array([41.1, 41.2, 41.3, 41.4]), "lon": pa.array([2.1, 2.2, 2.3, 2.4]),
        "timestamp": pa.array([1, 2, 3, 4]), "trajectory_id": pa.array([1, 1, 2, 2]), "user_id": pa.array([1, 1, 2, 2]),
    }  # fmt: skip
    pq.write_table(pa.table({**points, column: ODD_TYPES[kind]}), here / "points.parquet")
    ran = command(*anonymized("points.parquet"))
    if column in ("lat", "lon", "timestamp") or kind in ("list", "struct", "map", "null", "bytes"):
        assert ran.code == 2
        assert column in ran.sentence
        assert not (here / "out").exists()
    else:
        assert ran.code == 0, ran.err


@pytest.mark.parametrize("zones", [True, False])
@pytest.mark.parametrize("kind", ODD_TYPES)
@pytest.mark.parametrize("column", ["origin", "destination", "departure", "user_id", "volume"])
def test_odd_types_of_trips_never_are_our_fault(
    kind: str, column: str, zones: bool, here: Path, command: Command
) -> None:
    trips = {
        "origin": pa.array(["a", "a", "b", "b"]), "destination": pa.array(["b", "b", "a", "a"]),
        "departure": pa.array([1, 2, 3, 4], pa.timestamp("s")), "user_id": pa.array([1, 2, 3, 4]),
    }  # fmt: skip
    pq.write_table(pa.table({**trips, column: ODD_TYPES[kind]}), here / "trips.parquet")
    (here / "zones.csv").write_text("zone_id,lon,lat\na,2.1,41.1\nb,2.2,41.2\n")
    ran = command(*anonymized("trips.parquet", *(("--zones", "zones.csv") if zones else ()), *K2))
    if column in ("departure", "volume") or kind in ("list", "struct", "map", "null", "bytes"):
        assert ran.code == 2
        assert column in ran.sentence
    else:
        assert ran.code == 0 or (zones and column in ran.sentence), ran.err
    assert "Internal error" not in ran.err
    assert "broken" not in ran.err


# What looks odd and is fine.


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


def test_a_million_columns_are_refused_before_they_are_read(here: Path) -> None:
    """In a process of its own, whose memory is looked at. Only the Parquet file says how many columns it has."""
    (here / "points.csv").write_text(",".join(f"c{i}" for i in range(500_000)) + "\n" + "1," * 499_999 + "1\n")
    (here / "longer.csv").write_text(",".join(f"column {i}" for i in range(1_000_000)) + "\n")
    footer = b"\x15\x02\x19\xfc\xc1\x84\x3d" + bytes(100)
    (here / "points.parquet").write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    script = (
        "import resource, sys\n"
        "from crowdveil.errors import InputError\n"
        "from crowdveil.io.source import open_source\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        open_source(name)\n"
        "    except InputError as error:\n        print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    names = ["points.csv", "longer.csv", "points.parquet"]
    ran = subprocess.run([sys.executable, "-c", script, *names], capture_output=True, text=True, check=True, cwd=here)
    wide, long, parquet, kilobytes = ran.stdout.splitlines()
    assert "10,000 columns" in wide and "first line" in long and "10,000 columns" in parquet
    assert int(kilobytes) < 64 << 10


def test_the_limit_of_columns_is_where_it_is_said_to_be(here: Path) -> None:
    table = pa.table({f"c{i}": pa.array([1], pa.int8()) for i in range(10_001)})
    pq.write_table(table, here / "wide.parquet")
    pq.write_table(table.drop_columns(["c0"]), here / "fits.parquet")
    (here / "fits.csv").write_text(",".join(table.column_names[1:]) + "\n" + "1," * 9_999 + "1\n")
    for data in (table, here / "wide.parquet", table.to_pandas()):
        with pytest.raises(InputError, match="10,000 columns"):
            open_source(data)
    assert len(open_source(here / "fits.parquet").columns) == len(open_source(here / "fits.csv").columns) == 10_000


def released(command: Command, *args: object) -> tuple[dict[str, Any], pa.Table]:
    """Run a command that must succeed; returns the manifest and the table of the release in `out`."""
    ran = command(*args)
    assert ran.code == 0, ran.err
    manifest = json.loads(Path("out/manifest.json").read_text())
    file = Path("out") / manifest["files"]["data"]["name"]
    table = pacsv.read_csv(file) if file.suffix == ".csv" else pq.read_table(file)
    assert command("verify", "out").code == 0
    return manifest, table


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
    assert sum(dropped.values()) == 4, dropped
    assert {k: v for k, v in dropped.items() if "column lat" in k}
    assert {k: v for k, v in dropped.items() if "column trajectory_id" in k}
    assert {k: v for k, v in dropped.items() if "in a trajectory with such a row" in k and v == 1}
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
        "name a zone that is not among the zones in column origin": 1,
        "have no usable time in column departure": 1,
        "have no user in column user_id": 1,
    }
    # anna twice, bert, carl; anna alone went back
    assert table.select(["volume", "people"]).to_pylist() == [{"volume": 4, "people": 3}]


def test_dropping_all_is_refused(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(re.sub(r"37\.\d+", "north", POINTS))
    (here / "trips.csv").write_text(TRIPS.replace("Ymirstad", "Atlantis"))
    (here / "zones.geojson").write_text(ZONES)
    refused(command, here, *anonymized("points.csv", "--drop-invalid"))
    refused(command, here, *anonymized("trips.csv", "--zones", "zones.geojson", "--drop-invalid", *K2))
    (here / "points.csv").write_text(re.sub(r"tram-\d+", "", POINTS))
    refused(command, here, *anonymized("points.csv", "--drop-invalid"))


# Where to write.


def test_a_folder_that_exists_is_not_replaced(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    (here / "out").mkdir()
    (here / "out" / "diary.txt").write_text("mine")
    assert "exists" in refused(command, here, *anonymized("points.csv"))
    assert "no release" in refused(command, here, *anonymized("points.csv", "--overwrite"))


def test_a_release_is_replaced_only_when_asked(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    released(command, *anonymized("points.csv"))
    assert "--overwrite" in refused(command, here, *anonymized("points.csv"))
    (here / "points.csv").write_text(edited(POINTS, 1, 0, "north"))
    refused(command, here, *anonymized("points.csv", "--overwrite"))
    (here / "points.csv").write_text("\n".join(POINTS.splitlines()[:3]) + "\n")
    _, table = released(command, *anonymized("points.csv", "--overwrite"))
    assert len(table) == 2
    assert sorted(p.name for p in here.iterdir()) == ["out", "points.csv"]


def test_an_output_that_is_a_file_is_refused(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    (here / "trips.csv").write_text(TRIPS)
    (here / "out").write_text("mine")
    assert "file" in refused(command, here, *anonymized("points.csv", "--overwrite"))
    (here / "folder").mkdir()
    assert "folder" in refused(command, here, "flows", "trips.csv", "-o", "folder", "--overwrite")
    (here / "out.csv").write_text("mine")
    assert "exists" in refused(command, here, "flows", "trips.csv", "-o", "out.csv")


@pytest.mark.parametrize("target", ["/dev/null/out", "/proc/crowdveil/out", "points.csv/out"])
def test_a_place_that_cannot_be_written_is_refused(target: str, here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    sentence = refused(command, here, "anonymize", "simple-generalization", "points.csv", "-o", target)
    assert "cannot be written" in sentence
    assert target in sentence


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    (here / "closed").mkdir(mode=0o555)
    sentence = refused(command, here, "anonymize", "simple-generalization", "points.csv", "-o", "closed/out")
    assert "cannot be written (Permission denied)" in sentence


# Run files.

OURS = {"method": "simple-generalization", "input": "points.csv", "output": "out"}
MDL = {"method": "SimpleGeneralization", "input_file": "points.csv", "output_folder": "."}
RUN_FILES = {
    "no JSON": ("run.json", "{", ("run.json", "not valid JSON", "line 1")),
    "no TOML": ("run.toml", "a = ", ("run.toml", "not valid TOML")),
    "not UTF-8": ("run.json", '{"method": "é"}'.encode("latin-1"), ("run.json", "not valid")),
    "a list": ("run.json", "[1]", ("run.json",)),
    "empty": ("run.json", "", ("run.json",)),
    "unknown key": ("run.json", {**OURS, "metod": 1}, ("metod", "known are")),
    "unknown key of mdl": ("run.json", {**MDL, "outputs": 1}, ("outputs", "known are")),
    "unknown parameter": ("run.json", {**OURS, "parameters": {"tile": 1}}, ("tile", "tile_size_m")),
    "unknown parameter of mdl": ("run.json", {**MDL, "params": {"tile": 1}}, ("tile", "tile_size_m")),
    "unknown reading": ("run.json", {**OURS, "reading": {"lattitude": "a"}}, ("lattitude", "lat")),
    "parameters a list": ("run.json", {**OURS, "parameters": [1]}, ("parameters",)),
    "parameter of a wrong type": ("run.json", {**OURS, "parameters": {"tile_size_m": "big"}}, ("tile-size-m",)),
    "parameter infinite": ("run.json", '{"method": "simple-generalization", "input": "points.csv", "output": "out",'
                           ' "parameters": {"tile_size_m": Infinity}}', ("tile-size-m",)),
    "no method": ("run.json", {"input": "points.csv", "output": "out"}, ("method",)),
    "method a number": ("run.json", {**OURS, "method": 3}, ("method",)),
    "unknown method": ("run.json", {**OURS, "method": "magic"}, ("magic", "suppression")),
    "method of mdl to come": ("run.json", {**MDL, "method": "Nonsense"}, ("Nonsense",)),
    "no input": ("run.json", {"method": "suppression", "output": "out"}, ("input",)),
    "no output": ("run.json", {"method": "suppression", "input": "points.csv"}, ("output",)),
    "seed text": ("run.json", {**OURS, "seed": "x"}, ("seed",)),
    "seed true": ("run.json", {**OURS, "seed": True}, ("seed",)),
    "seed of mdl text": ("run.json", {**MDL, "params": {"seed": "x"}}, ("seed",)),
    "seed of mdl below zero": ("run.json", {**MDL, "params": {"seed": -4}}, ("seed",)),
    "format": ("run.json", {**OURS, "format": "xls"}, ("format", "parquet")),
    "overwrite text": ("run.json", {**OURS, "overwrite": "yes"}, ("overwrite",)),
    "main output elsewhere": ("run.json", {**MDL, "main_output_file": "../x.csv"}, ("main_output_file",)),
    "main output a number": ("run.json", {**MDL, "main_output_file": 5}, ("main_output_file",)),
    "params text": ("run.json", {**MDL, "params": "x"}, ("params",)),
    "zones a number": ("run.json", {**OURS, "reading": {"zones": 5}}, ("path",)),
    "column a number": ("run.json", {**OURS, "reading": {"lat": 5}}, ("lat",)),
}  # fmt: skip


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_bad_run_file_is_refused(name: str, here: Path, command: Command) -> None:
    file, content, says = RUN_FILES[name]
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    (here / file).write_bytes(text.encode() if isinstance(text, str) else text)
    (here / "points.csv").write_text(POINTS)
    sentence = refused(command, here, "anonymize", "-f", file)
    for part in says:
        assert part in sentence


def test_a_missing_run_file_is_refused(here: Path, command: Command) -> None:
    assert "no such run file" in refused(command, here, "anonymize", "-f", "nowhere.json")


FILTER_FILES = {
    "unknown key": {"input_filename": "points.csv", "metods": []},
    "no methods": {"input_filename": "points.csv"},
    "methods text": {"input_filename": "points.csv", "methods": "min_locations"},
    "methods of text": {"input_filename": "points.csv", "methods": ["min_locations"]},
    "unknown filter": {"input_filename": "points.csv", "methods": [{"min_location": 5}]},
    "filter value": {"input_filename": "points.csv", "methods": [{"min_locations": "many"}]},
    "filter value null": {"input_filename": "points.csv", "methods": [{"min_locations": None}]},
    "output a number": {"input_filename": "points.csv", "output_filename": 5, "methods": [{"min_locations": 1}]},
}


@pytest.mark.parametrize("name", FILTER_FILES)
def test_a_bad_run_file_of_filters_is_refused(name: str, here: Path, command: Command) -> None:
    (here / "run.json").write_text(json.dumps(FILTER_FILES[name]))
    (here / "points.csv").write_text(POINTS)
    refused(command, here, "filter", "-f", "run.json")


# The world outside: full disks, keys pressed, plugs pulled.


@pytest.mark.parametrize("file", ["points.csv", "nowhere.csv"])
def test_the_installed_command_does_the_same(
    file: str, here: Path, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    (here / "points.csv").write_text(edited(POINTS, 2, 0, "north"))
    process = spawn(*anonymized(file))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert file in Ran(2, out, err).sentence
    assert out == ""
    assert [p.name for p in here.iterdir()] == ["points.csv"]


def many_trips(rows: int) -> str:
    numbers = np.arange(rows)
    lines = [f"z{a},z{b},2024-05-06 08:00:00" for a, b in zip(numbers % 97, numbers % 89, strict=True)]
    return "origin,destination,departure\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "args",
    [
        ("anonymize", "suppression", "trips.csv", "--k", "2", "-o", "new/out"),
        ("anonymize", "suppression", "trips.csv", "--k", "2", "--format", "csv", "-o", "out"),
        ("flows", "trips.csv", "-o", "new/out.parquet"),
        ("flows", "trips.csv", "-o", "out.csv"),
        ("flows", "trips.csv", "-o", "out.omx"),
    ],
    ids=lambda args: f"{args[0]} {args[-1]}",
)
def test_a_full_disk_leaves_nothing(
    args: tuple[str, ...], here: Path, spawn: Callable[..., subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "trips.csv").write_text(many_trips(40_000))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # Python would leave truncated bytecode of the package

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    process = spawn(*args, preexec_fn=small_files)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2, err
    sentence = Ran(2, out, err).sentence
    assert "full" in sentence
    assert args[-1] in sentence
    assert [p.name for p in here.iterdir()] == ["trips.csv"]


HALF_WRITTEN = """
import time
from crowdveil.run import local
from crowdveil.cli.main import main
write = local.write_release
def slowly(release, folder, *more):
    files = write(release, folder, *more)
    print("half way", flush=True)
    time.sleep(60)
    return files
local.write_release = slowly
main()
"""
HALF_READ = """
import time
from crowdveil.cli.main import main
from crowdveil.io.od_rows import OdReader
batches = OdReader.batches
def endlessly(self):
    first = next(batches(self))
    yield first
    print("half way", flush=True)
    while True:
        time.sleep(0.01)
        yield first
OdReader.batches = endlessly
main()
"""
HALF_GROUPED = """
from crowdveil.cli.main import main
from crowdveil.io import duckdb_reader
def endless(*given):
    print("half way", flush=True)
    return "SELECT max(hash(range)) AS step, 'a' AS o, 'b' AS d, 1 AS trips, 0 AS bad FROM range(1000000000000)"
duckdb_reader.group_sql = endless
main()
"""


def stopped(here: Path, script: str, number: int, *args: str) -> tuple[int, str]:
    """Start a run, wait until it is half way, and send it a signal."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "half way\n", process.communicate()[1]
    if script == HALF_WRITTEN:
        assert any(p.name.startswith(".out") for p in here.iterdir()), (
            "the partial output is written next to the target"
        )
    if script == HALF_GROUPED:
        time.sleep(0.5)  # until the engine has begun
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_while_writing_leaves_nothing(number: int, here: Path) -> None:
    (here / "points.csv").write_text(POINTS)
    code, err = stopped(here, HALF_WRITTEN, number, *anonymized("points.csv"))
    assert code == 128 + number, err
    assert "Stopped" in Ran(code, "", err).sentence
    assert [p.name for p in here.iterdir()] == ["points.csv"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_while_reading_says_so(number: int, here: Path) -> None:
    (here / "trips.csv").write_text(TRIPS)
    code, err = stopped(here, HALF_READ, number, *anonymized("trips.csv"))
    assert code == 128 + number, err
    assert "Stopped" in Ran(code, "", err).sentence
    assert [p.name for p in here.iterdir()] == ["trips.csv"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_while_grouping_says_so(number: int, here: Path) -> None:
    columns = {"origin": ["Zurbano", "Ymirstad"], "destination": ["Ymirstad", "Zurbano"]}
    pq.write_table(pa.table(columns), here / "trips.parquet")
    (here / "zones.geojson").write_text(ZONES)
    code, err = stopped(here, HALF_GROUPED, number, *anonymized("trips.parquet", "--zones", "zones.geojson"))
    assert code == 128 + number, err
    assert "Stopped" in Ran(code, "", err).sentence
    assert sorted(p.name for p in here.iterdir()) == ["trips.parquet", "zones.geojson"]


def test_what_a_killed_run_leaves_is_swept_away_by_the_next(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    code, _ = stopped(here, HALF_WRITTEN, signal.SIGKILL, *anonymized("points.csv"))
    assert code == -signal.SIGKILL
    left = sorted(p.name for p in here.iterdir())
    assert "out" not in left
    assert len(left) == 2, "a hidden folder is left behind"
    released(command, *anonymized("points.csv"))
    assert sorted(p.name for p in here.iterdir()) == ["out", "points.csv"]
