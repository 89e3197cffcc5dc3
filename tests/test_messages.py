"""What people get wrong first: each message says what was expected, what was given, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from bad_input import square, zones_json

from crowdveil.io.flows import read_flows

TRIPS = "origin,destination,time\na,b,2020-01-01 08:01\n"
POINTS = "o_lon,o_lat,d_lon,d_lat\n{0}\n{0}\n"
METHOD = ("anonymize", "joint")

MESSAGES: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "wide matrix": (
        "wide.csv",
        "zone,a,b,c\na,1,2,3\nb,4,5,6\nc,7,8,9\n",
        METHOD,
        "Expected one row for each pair of zones, got a wide matrix with a column for each destination. Write it as rows "
        "with the columns origin, destination and volume.",
    ),
    "spreadsheet": (
        "book.xlsx",
        "PK",
        METHOD,
        "Expected a CSV or Parquet file, got a spreadsheet. Save it as CSV.",
    ),
    "rows outside the zones": (
        "places.csv",
        POINTS.format("9,9,9,9"),
        (*METHOD, "--zones", "zones.geojson"),
        "Check the coordinate system of the zones and the order of longitude and latitude",
    ),
    "swapped columns and zones": (
        "places.csv",
        POINTS.format("48.5,2.5,48.5,2.5"),
        (*METHOD, "--zones", "zones.geojson"),
        "Expected longitudes in column o_lon and latitudes in column o_lat, got places far from the zones. Exchange",
    ),
    "swapped columns and a grid": (
        "places.csv",
        POINTS.format("40.7,-74,40.8,-74"),
        (*METHOD, "--zones", "grid:1km"),
        "got places where nobody lives. Exchange the two columns",
    ),
    "latitude beyond the pole": (
        "places.csv",
        POINTS.format("40.7,-122,40.8,-122"),
        (*METHOD, "--zones", "grid:1km"),
        "no row has usable coordinates. Expected degrees, without a decimal comma (exchange the columns if longitude and",
    ),
    "points of trajectories": (
        "points.csv",
        "lat,lon,timestamp,trajectory_id\n-74,40.7,2020-01-01 08:01,1\n-74,40.7,2020-01-01 08:02,1\n",
        ("anonymize", "microaggregation"),
        "got places where nobody lives. Exchange the two columns",
    ),
    "another notation of times": (
        "trips.csv",
        TRIPS,
        (*METHOD, "--time-format", "YYYY-MM-DD HH:mm"),
        "Expected signs of strptime such as %d/%m/%Y %H:%M, or one of seconds, milliseconds, microseconds, nanoseconds, excel, "
        "got YYYY-MM-DD HH:mm. Write %Y for the year",
    ),
    "method misspelled": ("trips.csv", TRIPS, ("anonymize", "jiont"), "Did you mean joint?"),
    "a second file": (
        "trips.csv",
        TRIPS,
        (*METHOD, "zones.geojson"),
        "Expected one input, got also trips.csv. Name zones with --zones trips.csv.",
    ),
    "plot misspelled": ("trips.csv", TRIPS, ("plot", "flow"), "there is no plot flow. Did you mean flows?"),
    "length of a step": (
        "trips.csv",
        TRIPS,
        (*METHOD, "--step", "60"),
        "Expected a length with its unit, got 60. Write 60min for minutes or 60s for seconds.",
    ),
    "centroids without coordinates": (
        "trips.csv",
        TRIPS,
        (*METHOD, "--zones", "names.csv"),
        "Expected columns lon and lat of centroids, but it has id, place. Rename the columns.",
    ),
    "another spelling of ids": (
        "trips.csv",
        TRIPS.replace("a,b", "1.0,2.0"),
        (*METHOD, "--zones", "numbers.csv"),
        "ids differ from those of the zones only in spelling (01 and 1 where leading zeros were lost, or 193.0 and 193)",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_mistake_gets_a_message_that_ends_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., Any]
) -> None:
    file, content, before, wanted = MESSAGES[name]
    monkeypatch.chdir(tmp_path)
    Path(file).write_text(content, encoding="utf-8")
    Path("zones.geojson").write_text(zones_json(("all", square(2, 48, 1))), encoding="utf-8")
    Path("names.csv").write_text("id,place\na,here\nb,there\n", encoding="utf-8")
    Path("numbers.csv").write_text("id,lon,lat\n1,2,48\n2,2,48.1\n", encoding="utf-8")
    ran = command(*before, file, "-o", "out")
    assert ran.code == 2 and wanted in ran.sentence and not Path("out").exists()


def test_ids_in_categories_of_polars_are_ids() -> None:
    ids = pl.Series(["a", "b", "a"])
    for kind in (pl.Categorical, pl.Enum(["a", "b"])):
        flows = read_flows(pl.DataFrame({"origin": ids.cast(kind), "destination": ids.reverse().cast(kind)}))
        assert flows.zones.ids.tolist() == ["a", "b"] and flows.total == 3
