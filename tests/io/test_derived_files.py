"""Files for other tools follow from the published tables, and a verification finds what does not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, OutputError, ParameterError
from crowdveil.io.derived_files import crosswalk
from crowdveil.io.written_release import file_hash
from crowdveil.run.releases import open_release
from crowdveil.synth.city import City
from crowdveil.synth.trips import write_trips


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with all further files."""
    folder = tmp_path_factory.mktemp("made")
    town = City.make(1, 16, 300)
    crowdveil.write_zones(town.zones, folder / "zones.geojson")
    write_trips(town, folder / "trips.parquet", 3000, 1, seed=1)
    crowdveil.anonymize(
        folder / "trips.parquet", folder / "out", method="joint", zones=folder / "zones.geojson", k=5, step="6h", export="all",
    )  # fmt: skip
    return folder


def test_every_file_is_in_the_manifest(made: Path) -> None:
    manifest = json.loads((made / "out" / "manifest.json").read_text())
    listed = {entry["name"] for entry in manifest["files"].values()}
    assert {p.name for p in (made / "out").iterdir()} == listed | {"manifest.json", "report.html"}
    assert not any(finding.violated for _, finding in crowdveil.verify(made / "out"))


def test_the_crosswalk_has_every_tile_of_every_area(made: Path) -> None:
    _, written = open_release(made / "out")
    rows = pacsv.read_csv(made / "out" / "crosswalk.csv").to_pylist()
    wanted = {(t, f["properties"]["area"]) for f in written.features for t in f["properties"]["tiles"]}
    assert {(r["tile"], r["area"]) for r in rows} == wanted and len(rows) == len(wanted)
    size = {f["properties"]["area"]: len(f["properties"]["tiles"]) for f in written.features}
    for tile in {r["tile"] for r in rows}:
        own = [r for r in rows if r["tile"] == tile]
        assert [r["level"] for r in own] == list(range(1, len(own) + 1))
        assert [size[r["area"]] for r in own] == sorted(size[r["area"]] for r in own)
    assert len(crosswalk([])) == 0


def test_matrices_have_the_published_volumes_and_nothing_for_suppressed_ones(made: Path) -> None:
    h5py = pytest.importorskip("h5py")
    rows = pq.read_table(made / "out" / "flows.parquet").to_pylist()
    volume = {(str(r["t"])[:13], r["origin_area"], r["destination_area"]): r["volume"] for r in rows}
    with h5py.File(made / "out" / "flows.omx") as file:
        ids = [i.decode() for i in file["lookup"]["zone_id"][:]]
        found = {}
        for name in (n for n in file["data"] if not n.startswith("published")):
            dense, mask = file["data"][name][:], file["data"][f"published {name}"][:]
            assert np.array_equal(mask == 1, np.isfinite(dense)) and not np.any(dense == 0)
            for o, d in zip(*np.nonzero(mask), strict=True):
                found[(name[:13].replace("T", " "), ids[o], ids[d])] = int(dense[o, d])
    assert found == volume


def test_flow_maps_have_places_and_counts(made: Path) -> None:
    locations = {r["id"]: r for r in pacsv.read_csv(made / "out" / "flowmap_locations.csv").to_pylist()}
    flows = pacsv.read_csv(made / "out" / "flowmap_flows.csv").to_pylist()
    kepler = pacsv.read_csv(made / "out" / "kepler_flows.csv").to_pylist()
    total = sum(pq.read_table(made / "out" / "flows.parquet")["volume"].to_pylist())
    assert sum(r["count"] for r in flows) == sum(r["count"] for r in kepler) == total
    assert all(
        (r["origin_lat"], r["dest_lng"]) == (locations[r["origin"]]["lat"], locations[r["dest"]]["lon"]) for r in kepler
    )


def _copy(made: Path, target: Path) -> Path:
    for file in (made / "out").iterdir():
        target.joinpath(file.name).write_bytes(file.read_bytes())
    return target


def test_a_file_that_is_not_listed_is_found(made: Path, tmp_path: Path) -> None:
    folder = _copy(made, tmp_path)
    (folder / "original.csv").write_text("person,place\n")
    with pytest.raises(GuaranteeViolatedError, match="holds 1 file that the manifest does not list"):
        crowdveil.verify(folder)


def test_a_forged_crosswalk_is_found(made: Path, tmp_path: Path) -> None:
    """With its new hash in the manifest, so that only its content shows it."""
    folder = _copy(made, tmp_path)
    file = folder / "crosswalk.csv"
    file.write_text(file.read_text() + "secret,secret,secret,1\n")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["crosswalk"]["sha256"] = file_hash(file)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(GuaranteeViolatedError, match="is not that of the areas"):
        crowdveil.verify(folder)


def test_the_format_is_that_of_the_input(tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("origin,destination\n" + "a,b\n" * 9)
    crowdveil.anonymize(tmp_path / "trips.csv", tmp_path / "out", method="suppression", k=5)
    assert (tmp_path / "out" / "flows.csv").exists()
    crowdveil.anonymize(tmp_path / "trips.csv", tmp_path / "other", method="suppression", k=5, format="parquet")
    assert (tmp_path / "other" / "flows.parquet").exists()


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    table = pa.table({"origin": ["a"] * 9, "destination": ["b"] * 9})
    with pytest.raises(OutputError, match="needs the positions"):
        crowdveil.anonymize(table, tmp_path / "out", method="suppression", k=5, export="flowmap")
    assert not (tmp_path / "out").exists()
    points = pa.table({"lat": [1.0, 1.0], "lon": [2.0, 2.0], "timestamp": [0, 9], "trajectory_id": [1, 1]})
    with pytest.raises(ParameterError, match="is for trajectories"):
        crowdveil.anonymize(points, tmp_path / "out", method="swapmob", export="omx")


def test_named_flows_are_the_flows_with_the_names_of_their_areas(made: Path, tmp_path: Path) -> None:
    """The user's levels name the areas; without the names the rows are those of the release, to the letter."""
    zones = crowdveil.read_zones(made / "zones.geojson")
    levels = tmp_path / "levels.csv"
    pairs = [f"{tile},district {i // 4},city\n" for i, tile in enumerate(zones.ids)]
    levels.write_text("tile,district,city\n" + "".join(pairs))
    result = crowdveil.anonymize(
        made / "trips.parquet", tmp_path / "out", method="joint", zones=made / "zones.geojson", hierarchy=levels, k=30, step="6h",
        attack=False, report=False,
    )  # fmt: skip
    plain, named = pq.read_table(tmp_path / "out" / "flows.parquet"), result.flows.arrow
    assert named.drop_columns(["origin_name", "destination_name"]).to_pylist() == plain.to_pylist()
    areas = json.loads((tmp_path / "out" / "areas.geojson").read_text())["features"]
    name = {f["properties"]["area"]: f["properties"]["name"] for f in areas}
    rows = named.to_pylist()
    assert all(r[f"{end}_name"] == name[str(r[f"{end}_area"])] for r in rows for end in ("origin", "destination"))
    merged = {f["properties"]["name"] for f in areas if f["properties"]["size"] > 1}
    assert merged and merged <= {"city", *(f"district {i}" for i in range(4))}
