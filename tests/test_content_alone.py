"""A release is a function of the content of the data and of the seed: order of rows and names of anything change no byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from examples import ALL

from crowdveil.io.written_release import REPORT_FILE
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import all_methods
from crowdveil.run import pipeline

METHODS = all_methods()
FLOWS = [name for name, method in METHODS.items() if method.takes is Flows]
TRACKS = [name for name, method in METHODS.items() if method.takes is Trajectories]
ON_GRIDS = {"uniform"}
WITH_REPORT = {"joint", "microaggregation"}
"""Methods whose attacks and reports are compared too; attacks and reports are the same code for all methods."""
MORE: dict[str, tuple[dict[str, Any], ...]] = {
    "microaggregation": (
        {"distance": "graph"},
        {"aggregation": "closest-trajectory"},
        {"suppress": "20%", "improve": 2},
        {"time_weight": "mobidatalab"},
    ),
    "time-partitioned-microaggregation": ({"interval_s": 60, "suppress": "20%"},),
    "frechet-microaggregation": ({"suppress": "20%"},),
    "log-cost-generalization": ({"reconstruction": "random", "suppress": "20%"}, {"count_trajectories": True}),
    "protected-generalization": ({"strategy": "centroid", "knowledge": 1},),
    "swap-locations-2012": ({"permutation": "circle", "k": 3},),
    "simple-generalization": ({"link_users": True}, {"overlapping_strategy": "one", "link_users": True}),
}
"""Parameters that lead to code that the defaults do not."""
CASES = [(name, more) for name in TRACKS for more in ({}, *MORE.get(name, ()))]
SEED = 5
Renamed = Callable[[int], str]

RENAMES: tuple[tuple[Renamed, Renamed, str], ...] = (
    (lambda i: f"t{i:04}", lambda i: f"p{i:03}", "data.csv"),
    (lambda i: f"t{9000 - i}", lambda i: f"p{900 - i}", "zz.csv"),
    (lambda i: str(i * 7919 % 10_007), lambda i: f"{i * 31 % 997} x", "a b.csv"),
)
"""New names of trajectories, of people and of the file: rising, falling, and mixed up."""
VARIANTS = range(len(RENAMES)) if ALL else (0, 2)


def _points() -> dict[str, Any]:
    """Few places and times, so that there are ties everywhere: equal trajectories of one person and of several, points of one
    time, trajectories of one point.
    """
    rng = np.random.default_rng(2)
    rows = []
    paths = [rng.integers(0, 4, (rng.integers(1, 7), 2)) for _ in range(14)]
    times = [np.sort(rng.integers(0, 5, len(path))) * 30 for path in paths]
    for track in range(60):
        which = int(rng.integers(len(paths)))
        later, near = 1200 * int(rng.integers(2)), track * 1e-6 * int(rng.integers(2))
        rows += [
            (48 + y * 0.001 + near, 2 + x * 0.0015, 1_700_000_000 + later + t, track, track % 17)
            for (x, y), t in zip(paths[which].tolist(), times[which].tolist(), strict=True)
        ]
    return dict(zip(("lat", "lon", "timestamp", "track", "user"), zip(*rows, strict=True), strict=True))


def _write_points(folder: Path, points: dict[str, Any], variant: int) -> Path:
    track, person, name = RENAMES[variant]
    table = pa.table(
        {n: list(points[n]) for n in ("lat", "lon", "timestamp")}
        | {"trajectory_id": [track(i) for i in points["track"]], "user_id": [person(i) for i in points["user"]]}
    )
    return _write(folder, table, variant, name)


def _write(folder: Path, table: pa.Table, variant: int, name: str) -> Path:
    order = np.random.default_rng(variant).permutation(len(table)) if variant else np.arange(len(table))
    pacsv.write_csv(table.take(pa.array(order)), folder / name)
    return folder / name


def _bytes(folder: Path) -> dict[str, bytes]:
    """The files of a release; the time of the run is masked, and the hash that the report names the manifest by."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = json.loads(found["manifest.json"])
    if REPORT_FILE in found:
        digest = hashlib.sha256(found["manifest.json"]).hexdigest().encode()
        found[REPORT_FILE] = found[REPORT_FILE].replace(digest, b"").replace(manifest["created"][:10].encode(), b"")
    manifest["created"] = ""
    return found | {"manifest.json": json.dumps(manifest, indent=1).encode()}


def _small_k(method: Method) -> dict[str, Any]:
    return {"k": 2} if "k" in method.params.model_fields else {}


def _releases(
    folder: Path, name: str, more: dict[str, Any], files: Iterator[Path], *, bare: bool = False, **reading: Any
) -> list[Any]:
    made = []
    for i, file in enumerate(files):
        out = folder / f"out{i}"
        parameters = {**_small_k(METHODS[name]), **more}
        whole = name in WITH_REPORT and not more and not bare
        options = {"seed": SEED, "format": "csv", "attack": whole, "report": whole}
        pipeline.run(pipeline.Request(name, file, out, parameters, reading, options=options))
        made.append(_bytes(out))
    return made


@pytest.mark.parametrize(("name", "more"), CASES, ids=[f"{n}-{'-'.join(map(str, m.values()))}" for n, m in CASES])
def test_order_and_names_change_no_byte_of_trajectories(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    points = _points()
    files = (_write_points(tmp_path, points, variant) for variant in VARIANTS)
    first, *others = _releases(tmp_path, name, more, files)
    assert first["trajectories.csv"].count(b"\n") > 5
    for other in others:
        assert first == other


def _trips() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    n, side = 900, 4
    o, d = (rng.integers(0, side, (n, 2)) // rng.integers(1, 3, (n, 1)) for _ in range(2))
    return {
        "o": o, "d": d, "user": rng.integers(0, 60, n), "time": 1_700_000_000 + 3600 * rng.integers(0, 2, n),
    }  # fmt: skip


def _write_trips(folder: Path, variant: int) -> Path:
    trips, (_, person, name) = _trips(), RENAMES[variant]
    table = pa.table(
        {
            "origin": [f"z{x}{y}" for x, y in trips["o"].tolist()],
            "destination": [f"z{x}{y}" for x, y in trips["d"].tolist()],
            "time": trips["time"],
            "user": [person(i) for i in trips["user"].tolist()],
        }
        | {f"{end}_{axis}": start + 0.01 * trips[end[0]][:, i]
           for end in ("origin", "destination") for i, (axis, start) in enumerate((("lon", 2.0), ("lat", 48.0)))}
    )  # fmt: skip
    return _write(folder, table, variant, name)


def _write_zones(folder: Path, variant: int) -> Path:
    def square(x: float, y: float) -> list[list[float]]:
        return [[x, y], [x + 0.01, y], [x + 0.01, y + 0.01], [x, y + 0.01], [x, y]]

    features = [
        {"type": "Feature", "properties": {"id": f"z{i}{j}"},
         "geometry": {"type": "Polygon", "coordinates": [square(2 + i / 100, 48 + j / 100)]}}
        for i in range(4) for j in range(4)
    ]  # fmt: skip
    order = np.random.default_rng(variant).permutation(16) if variant else np.arange(16)
    path = folder / f"zones{variant}.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [features[i] for i in order]}))
    return path


def _columns(snap_to_grid: bool) -> dict[str, Any]:
    places = {end: f"{end}_lon,{end}_lat" for end in ("origin", "destination")}
    named: dict[str, Any] = places if snap_to_grid else {"origin": "origin", "destination": "destination"}
    return {**named, "time": "time", "user": "user"}


def _partition(name: str, folder: Path) -> dict[str, Any]:
    """Return the groups of zones that the method with given areas needs."""
    if name != "fixed":
        return {}
    groups = folder / "groups.csv"
    groups.write_text("zone,group\n" + "".join(f"z{i}{j},g{i // 2}\n" for i in range(4) for j in range(4)))
    return {"partition": str(groups)}


@pytest.mark.parametrize(
    ("name", "asked"), [*((name, {}) for name in FLOWS), ("joint", {"time_partition": "adaptive", "hour_weight": 1})]
)
def test_order_and_names_change_no_byte_of_flows(name: str, asked: dict[str, Any], tmp_path: Path) -> None:
    snap_to_grid, zones = name in ON_GRIDS, _write_zones(tmp_path, 0)
    files = (_write_trips(tmp_path, variant) for variant in VARIANTS)
    where: dict[str, Any] = {"zones": "grid:1km"} if snap_to_grid else {"zones": zones, "zone_id": "id"}
    where |= _partition(name, tmp_path)
    first, *others = _releases(tmp_path, name, asked, files, **_columns(snap_to_grid), **where)
    assert first["flows.csv"].count(b"\n") > 2
    for other in others:
        assert first == other


@pytest.mark.parametrize("name", [name for name in FLOWS if name not in ON_GRIDS])
def test_the_order_of_zones_changes_no_row(name: str, tmp_path: Path) -> None:
    """The manifest has the hash of the file of zones, which is public, and so the one of another order."""
    made = []
    for variant in range(2):
        reading = {**_columns(False), "zones": _write_zones(tmp_path, variant), "zone_id": "id"}
        reading |= _partition(name, tmp_path)
        (tmp_path / str(variant)).mkdir()
        made += _releases(tmp_path / str(variant), name, {}, iter([_write_trips(tmp_path, 0)]), **reading)
    for file in ("flows.csv", "steps.csv", "areas.geojson"):
        assert made[0][file] == made[1][file], file
    hashes = [json.loads(files["manifest.json"])["input"]["options"]["zones"] for files in made]
    assert [list(entry) for entry in hashes] == [["sha256"], ["sha256"]] and hashes[0] != hashes[1]


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["microaggregation", "simple-generalization", "swapmob", "swap-locations"])
def test_order_and_names_change_no_byte_of_real_rides(name: str, realdata: Path, tmp_path: Path) -> None:
    table = pacsv.read_csv(realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv")
    codes = {n: np.unique(table[n].to_numpy(), return_inverse=True)[1].tolist() for n in ("trajectory_id", "user_id")}
    files = []
    for variant, (track, person, file) in enumerate(RENAMES[:2]):
        named = table.set_column(
            table.column_names.index("trajectory_id"), "trajectory_id", [[track(i) for i in codes["trajectory_id"]]]
        )
        named = named.set_column(
            table.column_names.index("user_id"), "user_id", [[person(i) for i in codes["user_id"]]]
        )
        files.append(_write(tmp_path, named, variant, file))
    first, other = _releases(tmp_path, name, {}, iter(files), bare=True)
    assert first == other


def test_a_model_is_put_in_order_too(tmp_path: Path) -> None:
    from crowdveil.io.trajectories import read_trajectories

    models = [read_trajectories(_write_points(tmp_path, _points(), variant)) for variant in (0, 1)]
    assert models[0].ids.tolist() != models[1].ids.tolist()
    made = []
    for i, model in enumerate(models):
        pipeline.run(pipeline.Request("microaggregation", model, tmp_path / str(i), {"k": 2}, options={"seed": SEED}))
        made.append(_bytes(tmp_path / str(i)))
    assert made[0] == made[1]


def test_other_names_of_columns_are_no_other_content(tmp_path: Path) -> None:
    manifest = pipeline.run(
        pipeline.Request(
            "microaggregation",
            _write_points(tmp_path, _points(), 0),
            tmp_path / "out",
            {"k": 2},
            options={"seed": SEED},
        )
    ).manifest
    assert {*manifest["input"]["data"]} == {"kind", "people_about"}
    assert "data.csv" not in json.dumps(manifest)


def test_the_release_of_a_regular_grid_does_not_depend_on_noise_in_its_zones(tmp_path: Path) -> None:
    """Centroids differ in their last digits between versions of a library, and by 0.2 m between files."""
    rng = np.random.default_rng(3)
    (tmp_path / "trips.csv").write_text(
        "origin,destination\n" + "".join(f"{a},{b}\n" for a, b in np.minimum(rng.poisson(20, (3000, 2)), 63))
    )
    tables = set()
    for shift in range(6):
        rows = ["zone_id,lon,lat"]
        for i in range(64):
            east, north = rng.uniform(-0.14, 0.14, 2) * (shift > 0)
            rows.append(f"{i},{2 + (500 * (i % 8) + east) / 74_000:.9f},{48 + (500 * (i // 8) + north) / 111_000:.9f}")
        (tmp_path / "zones.csv").write_text("\n".join(rows))
        reading, options = {"zones": tmp_path / "zones.csv"}, {"report": False}
        out = tmp_path / str(shift)
        pipeline.run(pipeline.Request("joint", tmp_path / "trips.csv", out, {"k": 10}, reading, options))
        tables.add((out / "flows.csv").read_bytes() + (out / "crosswalk.csv").read_bytes())
    assert len(tables) == 1
