"""Stations of the data become zones where their positions are public; positions of GPS points never do."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely
from bad_input import square, zones_json

import crowdveil
from crowdveil.cli.console import show_notes
from crowdveil.errors import CrowdveilWarning, InputError
from crowdveil.io.flows import read_flows
from crowdveil.io.notes import ReadNotes

CITIBIKE = Path(__file__).parents[3] / "shared" / "data" / "citibike_jc" / "trips.parquet"


def _trips(n: int = 400, stations: int = 12, noise: float = 0.0, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(2, 2.1, stations), rng.uniform(48, 48.1, stations)
    ends = rng.integers(0, stations, (2, n))
    columns = {}
    for end, at in zip(("start", "end"), ends, strict=True):
        columns[f"{end}_station_id"] = at
        columns[f"{end}_lng"] = lon[at] + noise * rng.normal(size=n)
        columns[f"{end}_lat"] = lat[at] + noise * rng.normal(size=n)
    return pa.table(columns)


def test_stations_with_one_position_become_zones() -> None:
    notes = ReadNotes()
    flows = read_flows(_trips(), notes=notes)
    assert flows.zones.kind == "voronoi" and len(flows.zones) == 12
    assert any("they are stations" in text for text in notes.messages)
    assert flows.total == 400


def test_named_coordinates_of_ids_are_those_of_stations(tmp_path: Path) -> None:
    """To name the columns of coordinates says where the ids are; only zones that were chosen take the ids' place."""
    table = _trips()
    renamed = table.rename_columns([name.replace("_lng", "_x").replace("_lat", "_y") for name in table.column_names])
    named = {"origin": "start_x,start_y", "destination": "end_x, end_y"}
    assert not read_flows(renamed, notes=ReadNotes(), each_row_is_a_trip=True).zones.located
    flows = read_flows(renamed, notes=ReadNotes(), **named)
    assert flows.zones.kind == "voronoi" and len(flows.zones) == 12 and flows.total == 400
    assert read_flows(renamed, notes=ReadNotes(), zones="grid:1km", **named).zones.kind == "grid"
    (tmp_path / "all.geojson").write_text(zones_json(("all", square(1, 47, 2))))
    assert read_flows(renamed, notes=ReadNotes(), zones=tmp_path / "all.geojson", **named).zones.ids.tolist() == ["all"]
    only = renamed.drop_columns(["start_station_id", "end_station_id"])
    with pytest.raises(InputError, match="zones="):
        read_flows(only, notes=ReadNotes(), **named)


def test_a_station_far_from_all_others_makes_no_cell_large() -> None:
    """The map of a release shows its areas: cells that reach to a far station would leave the rest a few pixels."""
    table = _trips()
    far = {name: np.where(table["end_station_id"].to_numpy() == 3, place, table[name].to_numpy())
           for name, place in (("end_lng", 3.0), ("end_lat", 48.5))}  # fmt: skip
    for name, values in far.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    kept = table.filter(pa.array(table["start_station_id"].to_numpy() != 3))
    zones = read_flows(kept, notes=ReadNotes()).zones
    x, y = zones.xy
    spacing = np.median([np.sort(np.hypot(x - x[i], y - y[i]))[1] for i in range(len(zones))])
    assert zones.area_m2.max() <= np.pi * (4 * spacing) ** 2 * 1.01
    outlines = zones.outlines(np.arange(len(zones), dtype=np.int32))
    assert shapely.contains(outlines, shapely.points(zones.lon, zones.lat)).all()
    both = shapely.area(shapely.intersection(outlines[:, None], outlines[None, :]))
    np.fill_diagonal(both, 0)
    assert both.max() < 1e-9


def test_positions_of_gps_points_are_not_used() -> None:
    """The attacker reads a center of a zone: it must be that of no single trip."""
    notes, table = ReadNotes(), _trips(noise=1e-5)
    flows = read_flows(table, notes=notes)
    assert not flows.zones.located
    assert any("grid" in text and "h3" in text and "voronoi" in text for text in notes.messages)
    once = read_flows(_trips(8, 12), notes=ReadNotes())
    assert not once.zones.located, "of ids that occur once nothing shows that their positions are fixed"


def test_nothing_depends_on_the_order_of_rows() -> None:
    table = _trips(300)
    moved = table.set_column(
        1, "start_lng", pa.array(np.where(np.arange(300) < 3, 2.05, table["start_lng"].to_numpy()))
    )
    for data in (table, moved):
        other = data.take(pa.array(np.random.default_rng(5).permutation(len(data))))
        one, two = (read_flows(each, notes=ReadNotes()).zones for each in (data, other))
        assert one.ids.tolist() == two.ids.tolist() and np.array_equal(one.lon, two.lon)


def test_a_method_that_needs_positions_runs_without_an_option(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdveilWarning)
        crowdveil.anonymize(_trips(3000), tmp_path / "out", method="joint", k=5)
    assert not any(finding.violated for _, finding in crowdveil.verify(tmp_path / "out"))


@pytest.mark.realdata
@pytest.mark.skipif(not CITIBIKE.exists(), reason="the data of Citi Bike is not here")
def test_citi_bike_has_stations() -> None:
    notes = ReadNotes()
    flows = read_flows(CITIBIKE, notes=notes, step="1d", drop_invalid=True)
    assert flows.zones.kind == "voronoi" and len(flows.zones) > 50


def test_messages_name_what_to_do(tmp_path: Path) -> None:
    ids = pa.table({"origin": ["a"] * 9, "destination": ["b"] * 9})
    with pytest.raises(InputError, match="Give zones=, such as grid:500m for data with coordinates"):
        crowdveil.anonymize(ids, tmp_path / "out", method="joint", k=5)
    with pytest.raises(InputError, match=r"holds trips from an origin to a destination. Use a method for flows"):
        crowdveil.anonymize(ids, tmp_path / "out", method="microaggregation", k=5)
    points = pa.table({"lat": [1.0] * 9, "lon": [2.0] * 9, "timestamp": list(range(9)), "user_id": ["a"] * 9})
    with pytest.raises(InputError, match=r"holds points of trajectories. Use a method for trajectories"):
        crowdveil.anonymize(points, tmp_path / "out", method="joint", k=5)
    with pytest.raises(InputError, match="Expected zones, but it holds trips"):
        crowdveil.anonymize(ids, tmp_path / "out", method="joint", zones=ids, k=5)


def test_many_dropped_rows_are_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for bad, warned in ((1, False), (10, True)):
        notes = ReadNotes()
        table = pa.table({"origin": ["a"] * 90 + [None] * bad, "destination": ["b"] * (90 + bad)})
        read_flows(table, notes=notes, drop_invalid=True)
        show_notes(notes)
        shown = capsys.readouterr().err
        assert ("warning: 10 % of the rows were dropped" in shown) == warned and "note: dropped" in shown
        assert bool(notes.warnings()) == warned and notes.sentences()[0].startswith("10 %") == warned
    with pytest.warns(CrowdveilWarning, match="10 % of the rows were dropped"):
        crowdveil.anonymize(table, tmp_path / "out", method="suppression", k=5, drop_invalid=True)
    assert "10 % of the rows of the input were dropped" in (tmp_path / "out" / "report.html").read_text()
