"""The heat map from trajectories to files: what is written, what is refused, and that nothing broken is put in place."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from examples import tries
from hypothesis import given, settings
from run_files import task

import crowdveil
from crowdveil import testing
from crowdveil.analysis.quadtree_heatmap import HeatMap, HeatMapParams, run
from crowdveil.errors import CrowdveilError, GuaranteeViolatedError, InputError, OutputError, ParameterError
from crowdveil.guarantees import guarantee_from_manifest
from crowdveil.guarantees.sectors import SectorGuarantee
from crowdveil.io.sectors import read_sectors
from crowdveil.model.trajectories import Trajectories
from crowdveil.verbs.run_file import load


def cabs(people: int = 40, points: int = 1500, far: bool = True, seed: int = 2, lat: float = 48.85) -> pa.Table:
    """Rides around a center, and one person far out."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, people, points)
    place = rng.normal(0, 0.02, (points, 2)) * rng.random((points, 1))
    if far:
        who[:2], place[:2] = people, (0.4, 0.35)
    return pa.table({
        "lon": 2.35 + place[:, 0], "lat": lat + place[:, 1], "timestamp": np.arange(points) + 1_767_225_600,
        "trajectory_id": who, "user_id": [f"secret-{w}" for w in who],
    })  # fmt: skip


@pytest.fixture(scope="module")
def found() -> HeatMap:
    return crowdveil.quadtree_heatmap(cabs())


def test_every_sector_holds_a_crowd_and_the_table_says_so(found: HeatMap) -> None:
    table = found.sectors.to_pydict()
    assert len(table["sector"]) == len(found) > 50 and min(table["people"]) >= 5
    assert sum(table["locations"]) == 1498 and found.suppressed is None and found.cut.suppressed == 2
    area = (np.array(table["east_m"]) - table["west_m"]) * (np.array(table["north_m"]) - table["south_m"]) / 1e6
    assert np.allclose(table["area_km2"], area) and np.allclose(table["locations_per_km2"], table["locations"] / area)
    assert min(table["area_km2"]) == pytest.approx(0.01)
    assert any("some, of fewer than 5 people" in line for line in found.lines())


def test_areas_are_those_on_the_ground(found: HeatMap, tmp_path: Path) -> None:
    from pyproj import Geod

    found.write(tmp_path / "map.geojson")
    globe = Geod(ellps="WGS84")
    for feature in json.loads((tmp_path / "map.geojson").read_text())["features"]:
        shape = shapely.from_geojson(json.dumps(feature["geometry"]))
        assert shape.is_valid and shape.exterior.is_ccw
        area, around = globe.geometry_area_perimeter(shape)
        assert abs(area / 1e6 - feature["properties"]["area_km2"]) < 1e-6 * 0.2 * around


def test_a_folder_gets_all_three_and_endings_one(found: HeatMap, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found.write(tmp_path / "map")
    assert sorted(p.name for p in (tmp_path / "map").iterdir()) == [
        "heatmap.geojson", "heatmap.html", "heatmap.png", "manifest.json",
    ]  # fmt: skip
    for name in ("geojson", "png", "html"):
        found.write(tmp_path / f"one.{name}")
        if name != "png":
            assert (tmp_path / f"one.{name}").read_bytes() == (tmp_path / "map" / f"heatmap.{name}").read_bytes()
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(OutputError, match="overwrite="):
        found.write(tmp_path / "map")
    with pytest.raises(OutputError, match="overwrite="):
        found.write(tmp_path / "one.html")
    found.write(tmp_path / "map", overwrite=True)
    found.write(tmp_path / "one.html", overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    for path in (tmp_path / "mine", tmp_path / "map.pdf"):
        with pytest.raises(OutputError):
            found.write(path, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["map", "mine", "one.geojson", "one.html", "one.png"]


def test_files_hold_no_id_and_the_page_asks_nobody(found: HeatMap, tmp_path: Path) -> None:
    for name in ("map.geojson", "map.html"):
        found.write(tmp_path / name)
        assert "secret" not in (tmp_path / name).read_text()
    page = (tmp_path / "map.html").read_text()
    assert not re.search(r"https?:|//[a-z]|@import|url\(|\bsrc=|<link", page) and "default-src 'none'" in page
    assert not re.search(r"\[\[[A-Z]", page) and page.count("</script>") == 2
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page, flags=re.S)[0])
    assert len(data["sectors"]) == len(found) and sum(s[4] for s in data["sectors"]) == 1498


def test_the_file_says_what_it_guarantees(found: HeatMap, tmp_path: Path) -> None:
    found.write(tmp_path / "map.geojson")
    written = read_sectors(tmp_path / "map.geojson")
    assert written.about["suppressed_locations"] is None and written.about["parameters"]["min_k"] == 5
    guarantees = [guarantee_from_manifest(entry["name"], entry["parameters"]) for entry in written.about["guarantees"]]
    for guarantee in guarantees:
        assert isinstance(guarantee, SectorGuarantee)
        assert not guarantee.check_sectors(written).violated and guarantee.check_sectors(written, found.data).holds


@pytest.mark.parametrize(
    ("change", "guarantee"),
    [
        ({"people": 4}, "sector-k-anonymity"),
        ({"people": 6}, "sector-k-anonymity"),
        ({"locations": 7}, "sector-k-anonymity"),
        ({"columns": 64, "rows": 64}, "sector-k-anonymity"),
        ({"suppressed_people": 5}, "every-location-counted"),
    ],
)
def test_nothing_broken_is_put_in_place(found: HeatMap, tmp_path: Path, change: dict[str, int], guarantee: str) -> None:
    wrong = {}
    for name, value in change.items():
        wrong[name] = value
        if name != "suppressed_people":
            values = np.array(getattr(found.cut, name))
            values[3] = value if values[3] != value else value + 1
            wrong[name] = values
    broken = replace(found, cut=replace(found.cut, **wrong))
    for name in ("map", "map.geojson", "map.html"):
        with pytest.raises(GuaranteeViolatedError, match=guarantee):
            broken.write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@given(testing.trajectories(max_trajectories=12))
@settings(max_examples=tries(40))
def test_any_trajectories(tmp_path_factory: pytest.TempPathFactory, data: Trajectories) -> None:
    params = HeatMapParams(min_k=2, min_sector_length_m=150, suppress=0.1)
    if len(np.unique(data.person)) < 2:
        with pytest.raises(InputError, match="Expected at most the"):
            run(data, params)
        return
    found, path = run(data, params), tmp_path_factory.mktemp("any") / "map.geojson"
    found.write(path)
    counts = read_sectors(path).counts
    assert counts == data.k_unit and min(found.sectors[counts].to_pylist()) >= 2


def test_the_same_data_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        crowdveil.quadtree_heatmap(cabs(), tmp_path / f"{name}.geojson")
        crowdveil.quadtree_heatmap(cabs(), tmp_path / f"{name}.html")
    for ending in ("geojson", "html"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_without_people_trajectories_count(command: Any, tmp_path: Path) -> None:
    import pyarrow.csv as pacsv

    pacsv.write_csv(cabs().drop(["user_id"]), tmp_path / "cabs.csv")
    ran = command("analyze", "quadtree-heatmap", tmp_path / "cabs.csv", "-o", tmp_path / "map.json")
    assert ran.code == 0 and "people are not known" in ran.err and "at least 5 trajectories" in ran.out
    written = read_sectors(tmp_path / "map.json")
    assert written.counts == "trajectories" and "people" not in written.properties[0]


@pytest.mark.parametrize("lat", [0.0, 70.0, -55.0])
def test_a_map_anywhere(lat: float, tmp_path: Path) -> None:
    # Large sectors on the outskirts have sides that are not straight in degrees.
    crowdveil.quadtree_heatmap(cabs(lat=lat, far=True), tmp_path / "map.geojson", suppress=0, min_k=3)
    crowdveil.quadtree_heatmap(cabs(lat=lat), tmp_path / "large.geojson", min_sector_length_m=3333.3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"min_k": 1}, "min_k"),
        ({"min_k": 2.5}, "min_k"),
        ({"min_k": 100}, "at most the people in the data, 41"),
        ({"split_n_locations": 4}, "split_n_locations: Expected at least min_k, 5"),
        ({"min_sector_length_m": 0}, "min_sector_length_m"),
        ({"min_sector_length_m": -100}, "min_sector_length_m"),
        ({"min_sector_length_m": float("nan")}, "min_sector_length_m"),
        ({"min_sector_length_m": float("inf")}, "min_sector_length_m"),
        ({"suppress": 0.7}, "suppress"),
        ({"merge_sectors": "perhaps"}, "merge_sectors"),
        ({"sides": 4}, "sides: there is no such parameter"),
        ({"original": "cabs.csv"}, "neither an original nor a plot"),
        ({"output": "map.pdf"}, "Expected a folder"),
    ],
)
def test_bad_parameters(options: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CrowdveilError, match=re.escape(says)):
        crowdveil.quadtree_heatmap(cabs(), **{"output": "map.geojson", **options})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (cabs().slice(0, 0), "no rows"),
        (cabs(people=1, far=False), "at most the people in the data, 1"),
        (cabs().set_column(0, "lon", pa.array([float("nan")] * 1500)), "lon"),
    ],
)
def test_bad_data(table: pa.Table, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        crowdveil.quadtree_heatmap(table, tmp_path / "map")
    assert list(tmp_path.iterdir()) == []


def test_people_without_a_trajectory_do_not_count() -> None:
    n = 9
    data = Trajectories(
        np.full(n, 2.0), np.full(n, 48.0), np.zeros(n, np.int64), np.arange(n + 1), np.arange(n), np.zeros(n, np.int64),
        np.arange(20),
    )  # fmt: skip
    with pytest.raises(InputError, match="in the data, 1"):
        run(data, HeatMapParams())


MDL = {
    "method": "QuadTreeHeatMap", "input_file": "cabs.csv", "output_folder": "out", "main_output_file": "map.json",
    "params": {"min_k": 6, "min_sector_length": 50, "merge_sectors": True, "split_n_locations": None},
}  # fmt: skip


def test_a_run_file_of_mdl_anonymizer_works_as_it_is(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    import pyarrow.csv as pacsv

    monkeypatch.chdir(tmp_path)
    pacsv.write_csv(cabs(), "cabs.csv")
    Path("run.json").write_text(json.dumps(MDL))
    assert command("analyze", "-f", "run.json").code == 0
    about = read_sectors(Path("out/map.json")).about["parameters"]
    assert (about["min_k"], about["min_sector_length_m"], about["split_n_locations"]) == (6, 50.0, None)
    assert "exists" in command("analyze", "-f", "run.json").sentence
    assert command("analyze", "-f", "run.json", "--overwrite").code == 0
    Path("run.json").write_text(
        json.dumps({k: v for k, v in MDL.items() if k in ("method", "input_file", "output_folder")})
    )
    assert command("analyze", "-f", "run.json").code == 0 and Path("out/cabs_quadtree-heatmap.geojson").is_file()


def test_run_files_of_ours_and_wrong_ones(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'method = "quadtree-heatmap"\ninput = "cabs.csv"\noutput = "map"\n[parameters]\nmin_k = 9\n[reading]\ntz = "UTC"\n'
    )
    wanted = task("analyze", load(path), path)
    assert (wanted.name, wanted.files, wanted.output) == ("quadtree-heatmap", {"data": "cabs.csv"}, "map")
    assert wanted.values == {"min_k": 9, "tz": "UTC"} and not wanted.overwrite
    for wrong in (
        {**MDL, "main_output_file": "../map.json"},
        {**MDL, "main_output_file": "map"},
        {**MDL, "params": [1]},
        {**MDL, "method": "Heat"},
        {**MDL, "method": "profiles"},
        {**MDL, "k": 3},
        {"method": "quadtree-heatmap", "input": "a", "overwrite": "yes"},
    ):
        with pytest.raises(ParameterError):
            task("analyze", wrong)


def test_analyze_holds_every_analysis(command: Any) -> None:
    shown = command("analyze", "--help")
    assert shown.code == 0 and all(name in shown.out for name in ("quadtree-heatmap", "reconstruct", "topics"))
    assert command("analyze").out == shown.out
    assert "--min-sector-length-m" in command("analyze", "QuadTreeHeatMap", "--help").out
    assert "Known are" in command("analyze", "heat", "x").sentence
    assert "got both" in command("analyze", "-f", "run.json", "topics", "out").sentence


@pytest.mark.realdata
def test_cabs_of_san_francisco(realdata: Path, tmp_path: Path) -> None:
    data = realdata / "sf_cabs" / "cabs_dataset_20080608.parquet"
    found = crowdveil.quadtree_heatmap(data, tmp_path / "map.geojson", min_k=10)
    assert len(found) > 3000 and found.suppressed is not None and found.suppressed < 0.001 * found.data.points
