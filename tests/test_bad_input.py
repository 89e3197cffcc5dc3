"""Bad trips, flows and trajectories: one sentence, exit code 2, no value of the data, nothing written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bad_input import (
    FLOWS,
    K2,
    PLACES,
    POINTS,
    TRIPS,
    ZONES,
    Bad,
    Command,
    anonymized,
    edited,
    refused,
)

POINT_FILES = [
    Bad("empty file", "", anonymized("points.csv"), ("points.csv", "empty")),
    Bad("one byte", "\n", anonymized("points.csv"), ("points.csv",)),
    Bad("header only", "lat,lon,timestamp,trajectory_id,user_id\n", anonymized("points.csv"), ("header", "no rows")),
    Bad("header only, no newline", "lat,lon,timestamp,trajectory_id", anonymized("points.csv"), ("header", "no rows")),
    Bad("missing column", POINTS.replace("lat,", "north,"), anonymized("points.csv"), ("column lat", "--lat")),
    Bad("no ids", "lat,lon,timestamp\n1,2,2020-01-01\n", anonymized("points.csv"), ("trajectory_id or user_id",)),
    Bad("misspelt column", POINTS, anonymized("points.csv", "--user", "usr_id"), ("usr_id", "Did you mean user_id?")),
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
    Bad("time before 1970", edited(POINTS, 2, 2, "1908/06/08 07:01"), anonymized("points.csv"), ("row 2", "--time-format")),
    Bad("time after 2100", edited(POINTS, 2, 2, "2606-06-08 07:01"), anonymized("points.csv"), ("row 2", "--time-format")),
    Bad("times far apart", edited(edited(POINTS, 2, 2, "1971-06-08 07:01"), 3, 2, "2099-06-08 07:01"), anonymized("points.csv"),
        ("100 years", "--time-format")),
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
    Bad("unknown ending", POINTS, anonymized("points.dat"), ("CSV or Parquet", ".csv")),
    Bad("unknown zone of time", POINTS, anonymized("points.csv", "--tz", "Mars/Olympus"), ("tz", "Mars/Olympus")),
    Bad("tile size zero", POINTS, anonymized("points.csv", "--tile-size-m", "0"), ("--tile-size-m: ",)),
    Bad("tile size text", POINTS, anonymized("points.csv", "--tile-size-m", "big"), ("--tile-size-m",)),
    Bad("tiles too many", POINTS, anonymized("points.csv", "--tile-size-m", "0.0001"), ("tiles", "larger")),
    Bad("seed below zero", POINTS, anonymized("points.csv", "--seed", "-1"), ("--seed",)),
    Bad("unknown option", POINTS, anonymized("points.csv", "--frobnicate", "1"), ("--frobnicate",)),
    Bad("unknown method", POINTS, ("anonymize", "magic", "points.csv", "-o", "out"), ("magic", "suppression")),
    Bad("unknown command", POINTS, ("anonymous", "points.csv"), ("anonymous",)),
    Bad("no output", POINTS, ("anonymize", "simple-generalization", "points.csv"), ("-o",)),
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
    Bad("misspelt column", TRIPS, anonymized("trips.csv", "--origin", "orign"), ("orign", "Did you mean origin?")),
    Bad("misspelt time", TRIPS, anonymized("trips.csv", "--time", "departur"), ("Did you mean departure?",)),
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
    Bad("time after 2100", edited(TRIPS, 3, 2, "2606-05-06"), anonymized("trips.csv", *K2), ("row 3", "--time-format")),
    Bad("time form unknown", edited(TRIPS, 3, 2, "6 May 2024"), anonymized("trips.csv", *K2), ("row 3", "--time-format")),
    Bad("times far apart", edited(edited(TRIPS, 2, 2, "1971-06-08 07:01"), 3, 2, "2099-06-08 07:01"),
        anonymized("trips.csv", *K2), ("100 years", "--time-format")),
    Bad("more people than trips", "origin,destination,volume,people\na,b,4711,4712\nb,a,3141,12\na,a,11,5111\n",
        anonymized("flows.csv", *K2), ("2 rows (rows 1 and 3)", "more people than trips")),
    Bad("k above the people", TRIPS, anonymized("trips.csv", "--k", "4"), ("k: ", "people in the data, 3,", "got 4")),
    Bad("k above the sum of people", "origin,destination,volume,people\na,b,4711,11\nb,a,3141,12\n",
        anonymized("flows.csv", "--k", "24"), ("k: ", "people in the data, at most 23,", "got 24")),
    Bad("decimal commas", edited(PLACES.replace(",", ";"), 0, 0, "origin_lon;origin_lat;destination_lon;destination_lat").replace(
        ".", ","), anonymized("places.csv", "--zones", "zones.geojson", *K2), ("3 rows", "decimal comma")),
    Bad("decimal commas and a grid", PLACES.replace(",", ";").replace(".", ","),
        anonymized("places.csv", "--zones", "grid:1km", *K2), ("decimal comma",)),
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
    Bad("grid with ids", TRIPS, anonymized("trips.csv", "--zones", "grid:500m", *K2), ("coordinates", "--origin LON,LAT")),
    Bad("h3 without a resolution", PLACES, anonymized("places.csv", "--zones", "h3:x", *K2), ("--zones", "h3:8")),
    Bad("grid text", PLACES, anonymized("places.csv", "--zones", "grid:abc", *K2), ("grid", "500m")),
    Bad("grid 0", PLACES, anonymized("places.csv", "--zones", "grid:0", *K2), ("grid", "500m")),
    Bad("grid -5m", PLACES, anonymized("places.csv", "--zones", "grid:-5m", *K2), ("grid", "500m")),
    Bad("grid of a millimeter", PLACES, anonymized("places.csv", "--zones", "grid:0.001m", *K2), ("tiles", "larger")),
    Bad("h3 16", PLACES, anonymized("places.csv", "--zones", "h3:16", *K2), ("--zones", "15")),
    Bad("no zones for coordinates", PLACES, anonymized("places.csv", *K2), ("--zones", "grid:500m")),
    Bad("coordinate NaN", edited(PLACES, 2, 1, "nan"), anonymized("places.csv", "--zones", "grid:1km", *K2),
        ("row 2", "column origin_lat")),
    Bad("coordinate off the globe", edited(PLACES, 2, 1, "95.125"), anonymized("places.csv", "--zones", "grid:1km", *K2),
        ("row 2", "column origin_lat")),
    Bad("coordinate outside", edited(PLACES, 2, 2, "9.12345"), anonymized("places.csv", "--zones", "zones.geojson", *K2),
        ("destination", "outside")),
    Bad("volume below zero", edited(FLOWS, 2, 2, "-3141"), anonymized("flows.csv", *K2), ("row 2", "column volume", "zero")),
    Bad("people a fraction", "origin,destination,volume,people\na,b,5,2.5\n", anonymized("flows.csv", *K2),
        ("row 1", "column people", "whole")),
    Bad("volume text", edited(FLOWS, 2, 2, "many"), anonymized("flows.csv", *K2), ("row 2", "column volume")),
    Bad("volume infinite", edited(FLOWS, 2, 2, "inf"), anonymized("flows.csv", *K2), ("row 2", "column volume")),
    Bad("volume huge", edited(FLOWS, 2, 2, "99999999999999999999"), anonymized("flows.csv", *K2), ("row 2", "volume")),
    Bad("volumes zero", re.sub(r"4711|3141", "0", FLOWS), anonymized("flows.csv", *K2), ("zero",)),
    Bad("garbage OMX", "no HDF5 at all", anonymized("flows.omx", *K2), ("flows.omx", "broken")),
    Bad("no such zones", TRIPS, anonymized("trips.csv", "--zones", "nowhere.geojson", *K2), ("nowhere.geojson", "no such")),
    Bad("no such zones in CSV", TRIPS, anonymized("trips.csv", "--zones", "nowhere.csv", *K2), ("nowhere.csv", "no such")),
]  # fmt: skip


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
