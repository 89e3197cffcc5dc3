"""The commands of analyses, from the folder of a release to files and pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import shapely

import crowdveil
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import ABOUT
from crowdveil.registry import ANALYSES, all_analyses, find_analysis

SIDE = 4


def _zones(size: float, side: int, property_of: Any = lambda i: {}) -> str:
    """A square of squares (degrees) as GeoJSON."""
    boxes = [shapely.box(2 + size * (i % side), 48 + size * (i // side), 2 + size * (i % side + 1), 48 + size * (i // side + 1))
             for i in range(side * side)]  # fmt: skip
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "properties": {"id": f"t{i}", **property_of(i)},
                    "geometry": json.loads(shapely.to_geojson(b)),
                }
                for i, b in enumerate(boxes)
            ],
        }
    )


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight days of trips from the west to the east in the morning and back in the evening, and releases of them."""
    folder, rng = tmp_path_factory.mktemp("city"), np.random.default_rng(1)
    (folder / "zones.geojson").write_text(_zones(0.01, SIDE, lambda i: {"population": 100 if i % SIDE == 0 else 10}))
    (folder / "quarters.geojson").write_text(_zones(0.02, SIDE // 2))
    rows = []
    for hour in range(24 * 8):
        way = {8: (0, 1), 17: (1, 0)}.get(hour % 24)
        if way is not None:
            n = 150
            ends = [rng.integers(0, SIDE, n) * SIDE + rng.integers(0, 2, n) + 2 * half for half in way]
            rows += [(f"t{o}", f"t{d}", 1_767_571_200 + 3600 * hour) for o, d in zip(*ends, strict=True)]
    origin, destination, time = zip(*rows, strict=True)
    trips = pa.table({"origin": origin, "destination": destination, "time": pa.array(time, pa.timestamp("s"))})
    pq.write_table(trips, folder / "trips.parquet")
    for name, method in (("out", "mondrian"), ("noisy", "laplace"), ("bare", "suppression")):
        k = {} if method == "laplace" else {"k": 5}
        zones = {} if name == "bare" else {"zones": folder / "zones.geojson"}
        crowdveil.anonymize(folder / "trips.parquet", folder / name, method=method, tz="Europe/Paris", **zones, **k)
    return folder


def _published(folder: Path) -> int:
    return int(np.sum(pq.read_table(folder / "flows.parquet")["volume"].to_numpy()))


def test_reconstruct_writes_what_the_ending_says(command: Any, city: Path, tmp_path: Path) -> None:
    ran = command("analyze", "reconstruct", city / "out", "-o", tmp_path / "a.parquet")
    assert ran.code == 0 and "16 zones" in ran.out and "not counts" in ran.out and ran.err == ""
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["t", "origin", "destination", "volume", "lower", "upper"]
    assert table["t"].type.tz == "Europe/Paris"
    assert sum(table["volume"].to_pylist()) == pytest.approx(_published(city / "out"))
    assert "not counts" in json.loads(table.schema.metadata[ABOUT])["meaning"]
    assert command("analyze", "reconstruct", city / "out", "-o", tmp_path / "a.csv").code == 0
    assert command("analyze", "reconstruct", city / "out", "-o", tmp_path / "a.json").code == 0
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert rows[0]["t"].startswith("2026-01-05T08:00:00+01:00") and '"' not in (tmp_path / "a.csv").read_text()
    for other in (pacsv.read_csv(tmp_path / "a.csv").to_pylist(), rows):
        assert [(r["origin"], r["volume"]) for r in other] == [(r["origin"], r["volume"]) for r in table.to_pylist()]
    assert "2026-01-05T08:00:00+01:00" in (tmp_path / "a.csv").read_text()


def test_on_quarters_with_outlines_or_without_nothing_is_lost(command: Any, city: Path, tmp_path: Path) -> None:
    quarters = ("--to-zones", city / "quarters.geojson", "--over", "all")
    tiles = command(
        "analyze", "reconstruct", city / "out", *quarters, "--zones", city / "zones.geojson", "-o", tmp_path / "t.csv"
    )
    areas = command("analyze", "reconstruct", city / "out", *quarters, "-o", tmp_path / "a.csv")
    assert tiles.code == areas.code == 0
    a, t = (pacsv.read_csv(tmp_path / f"{name}.csv").to_pylist() for name in "at")
    assert sum(r["volume"] for r in t) == pytest.approx(_published(city / "out"))
    # Tiles are of one size, so that even over tiles is even over the surface.
    assert [r["volume"] for r in a] == pytest.approx([r["volume"] for r in t], rel=1e-3)
    assert [(r["lower"], r["upper"]) for r in a] == [(r["lower"], r["upper"]) for r in t]


def test_weights_come_from_a_column_or_a_table(command: Any, city: Path, tmp_path: Path) -> None:
    zones = ("--zones", city / "zones.geojson", "--over", "all")
    one = command("analyze", "reconstruct", city / "out", *zones, "--weight", "population", "-o", tmp_path / "one.csv")
    lines = [f"t{i},{100 if i % SIDE == 0 else 10},1" for i in range(16)]
    (tmp_path / "people.csv").write_text("id,people,other\n" + "\n".join(lines) + "\n")
    two = command(
        "analyze", "reconstruct", city / "out", *zones, "--weight", tmp_path / "people.csv", "--weight-column", "people",
        "-o", tmp_path / "two.csv",
    )  # fmt: skip
    assert one.code == two.code == 0 and (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    west = sum(
        r["volume"]
        for r in pacsv.read_csv(tmp_path / "one.csv").to_pylist()
        if r["origin"] in ("t0", "t4", "t8", "t12")
    )
    even = crowdveil.reconstruct(city / "out", over="all").table().to_pylist()
    assert west > 1.2 * sum(r["volume"] for r in even if r["origin"] in ("t0", "t4", "t8", "t12"))


def test_profiles_are_compared_with_the_original_only_if_it_is_given(command: Any, city: Path, tmp_path: Path) -> None:
    alone = command("analyze", "profiles", city / "out", "-o", tmp_path / "alone.csv")
    assert alone.code == 0 and "exact and confidential" not in alone.out and "correlation" not in alone.out
    assert "original" not in (tmp_path / "alone.csv").read_text()
    given = ("--original", city / "trips.parquet", "--zones", city / "zones.geojson")
    ran = command(
        "analyze", "profiles", city / "out", *given, "-o", tmp_path / "both.json", "--plot", tmp_path / "p.png"
    )
    assert ran.code == 0 and "exact and confidential" in ran.out and "median correlation" in ran.out
    content = json.loads((tmp_path / "both.json").read_text())
    assert "do not publish" in content["meaning"]
    first = content["rows"][:168]
    both = np.array([(row["volume"], row["original"]) for row in first if row["volume"] is not None])
    assert {row["hours_compared"] for row in first} == {len(both)} and 2 < len(both) < 168
    assert first[0]["correlation"] == pytest.approx(np.corrcoef(both.T)[0, 1])
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_cells_of_points_are_given_again_as_such(city: Path, tmp_path: Path) -> None:
    lines = [f"t{i},{2.005 + 0.01 * (i % SIDE)},{48.005 + 0.01 * (i // SIDE)}" for i in range(SIDE * SIDE)]
    (tmp_path / "antennas.csv").write_text("id,lon,lat\n" + "\n".join(lines) + "\n")
    trips = pq.read_table(city / "trips.parquet")
    place = {f"t{i}": line.split(",")[1:] for i, line in enumerate(lines)}
    columns = {f"{end}_{c}": [float(place[t][j]) for t in trips[end].to_pylist()]
               for end in ("origin", "destination") for j, c in enumerate(("lon", "lat"))}  # fmt: skip
    pq.write_table(pa.table({**columns, "time": trips["time"]}), tmp_path / "points.parquet")
    points = {"zones": f"voronoi:{tmp_path / 'antennas.csv'}"}
    crowdveil.anonymize(tmp_path / "points.parquet", tmp_path / "cells", method="suppression", k=5, **points)
    found = crowdveil.profiles(tmp_path / "cells", original=tmp_path / "points.parquet", **points)
    assert found.zones.kind == "voronoi" and found.original is not None
    whole = crowdveil.reconstruct(tmp_path / "cells", to_zones=city / "quarters.geojson", over="all", **points)
    assert whole.tally().volume == pytest.approx(
        _published(tmp_path / "cells"), rel=0.3
    )  # cells reach beyond the quarters


def test_the_column_of_ids_is_that_of_the_release(city: Path, tmp_path: Path) -> None:
    (tmp_path / "zones.geojson").write_text(_zones(0.01, SIDE, lambda i: {"id": f"other{i}", "code": f"t{i}"}))
    zones = tmp_path / "zones.geojson"
    crowdveil.anonymize(
        city / "trips.parquet", tmp_path / "out", method="suppression", zones=zones, zone_id="code", k=5
    )
    found = crowdveil.reconstruct(tmp_path / "out", zones=zones, to_zones=city / "quarters.geojson", over="all")
    assert found.tally().volume == pytest.approx(_published(tmp_path / "out"))


def test_steps_far_apart_are_still_hours(city: Path, tmp_path: Path) -> None:
    trips = pq.read_table(city / "trips.parquet")
    at_eight = trips.filter(pc.equal(pc.hour(trips["time"]), 8))
    pq.write_table(at_eight, tmp_path / "eight.parquet")
    crowdveil.anonymize(tmp_path / "eight.parquet", tmp_path / "eight", method="suppression", k=5)
    found = crowdveil.profiles(tmp_path / "eight")
    assert found.slots.slot_s == 3600 and found.slots.name(int(np.nanargmax(found.volume[0]))).endswith("08:00")


def test_an_original_in_memory_needs_no_files(city: Path) -> None:
    flows = crowdveil.read_flows(city / "trips.parquet", zones=city / "zones.geojson", tz="Europe/Paris")
    found = crowdveil.profiles(city / "out", original=flows)
    read = crowdveil.profiles(city / "out", original=city / "trips.parquet", zones=city / "zones.geojson")
    assert found.correlation.tolist() == read.correlation.tolist()


@pytest.mark.slow
def test_land_use_and_topics_draw_maps(command: Any, city: Path, tmp_path: Path) -> None:
    zones = ("--zones", city / "zones.geojson")
    ran = command(
        "analyze", "land-use", city / "out", *zones, "--original", city / "trips.parquet", "--most-clusters", 3, "-o",
        tmp_path / "l.csv", "--plot", tmp_path / "l.png",
    )  # fmt: skip
    assert ran.code == 0 and "agreement (adjusted Rand index) 1.00" in ran.out
    groups = {r["zone"]: r["cluster"] for r in pacsv.read_csv(tmp_path / "l.csv").to_pylist()}
    assert len({groups[f"t{i}"] for i in range(16) if i % SIDE < 2}) == 1 and len(set(groups.values())) == 2
    ran = command(
        "analyze",
        "topics",
        city / "out",
        *zones,
        "--topics",
        2,
        "-o",
        tmp_path / "t.json",
        "--plot",
        tmp_path / "t.png",
    )
    assert ran.code == 0 and "2 topics of 14 hours of the week" in ran.out
    assert {row["what"] for row in json.loads((tmp_path / "t.json").read_text())["rows"]} == {"hours", "flows"}
    ran = command(
        "analyze",
        "reconstruct",
        city / "out",
        *zones,
        "--to-zones",
        "h3:8",
        "--over",
        "all",
        "--plot",
        tmp_path / "r.png",
    )
    assert ran.code == 0 and all((tmp_path / f"{name}.png").stat().st_size > 10_000 for name in "ltr")


def test_noise_is_reported(city: Path) -> None:
    notes = ReadNotes()
    found = crowdveil.reconstruct(city / "noisy", notes=notes)
    assert found.tally().volume == pytest.approx(_published(city / "noisy"))
    assert any("has noise in it" in said for said in notes.messages)


def test_the_release_alone_is_enough(city: Path, tmp_path: Path) -> None:
    """Nothing but the folder is there, and nothing is reported that is not in it."""
    import shutil

    shutil.copytree(city / "out", tmp_path / "elsewhere")
    found = crowdveil.profiles(tmp_path / "elsewhere")
    with_zones = crowdveil.profiles(city / "out", zones=city / "zones.geojson")
    names = [[f.name(i) for i in range(len(f))] for f in (found, with_zones)]
    assert sorted(names[0]) == sorted(names[1]) and found.original is None and found.slots.tz == "Europe/Paris"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["analyze", "reconstruct", "{out}", "-o", "a.xlsx"], "ends in .csv or .parquet"),
        (["analyze", "reconstruct", "{out}", "--plot", "a.pdf"], "ends in .png"),
        (["analyze", "reconstruct", "{city}"], "no manifest.json"),
        (["analyze", "reconstruct", "{out}", "--min-volume", "-1"], "--min-volume: "),
        (["analyze", "reconstruct", "{out}", "--to-zones", "{city}/nowhere.geojson"], "no such file"),
        (["analyze", "reconstruct", "{out}", "--to-zones", "grid:0m"], "side of a tile"),
        (["analyze", "reconstruct", "{out}", "--zones", "{city}/quarters.geojson"], "not the file"),
        (
            ["analyze", "reconstruct", "{out}", "--zones", "{city}/zones.geojson", "--weight", "height"],
            "no column height",
        ),
        (["analyze", "reconstruct", "{out}", "--weight", "population"], "no file population"),
        (["analyze", "reconstruct", "{bare}", "--to-zones", "h3:8"], "no outlines"),
        (["analyze", "reconstruct", "{bare}", "--plot", "map.png"], "a map needs the positions of the zones"),
        (["analyze", "reconstruct", "{bare}", "--weight", "area"], "surface of tiles"),
        (
            ["analyze", "profiles", "{out}", "--original", "{city}/trips.parquet"],
            "made with a file of zones. Give it with --zones",
        ),
        (["analyze", "profiles", "{out}", "--select", "t99"], "names none"),
        (["analyze", "land-use", "{out}", "--least-trips", "100000"], "Lower --least-trips"),
        (["analyze", "topics", "{out}", "--topics", "1"], "topics"),
        (["analyze", "topics", "{bare}", "--plot", "map.png"], "a map needs the positions of the zones"),
    ],
)
def test_what_is_wrong_is_reported_in_one_sentence_and_nothing_is_written(
    command: Any, city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"city": city, "out": city / "out", "bare": city / "bare"}
    ran = command(*(a.format(**places) for a in args), *([] if "-o" in args else ["-o", tmp_path / "x.csv"]))
    assert ran.code == 2 and said in ran.err and ran.out == ""
    lines = [
        line for line in ran.err.splitlines() if not line.startswith(("note:", "Usage:", "Try", " ", "\n")) and line
    ]
    assert len(lines) == 1
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_replaced_only_if_asked(command: Any, city: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mine")
    assert "the file exists" in command("analyze", "profiles", city / "out", "-o", tmp_path / "a.csv").sentence
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert command("analyze", "profiles", city / "out", "-o", tmp_path / "a.csv", "--overwrite").code == 0


def test_trajectories_are_refused(command: Any, tmp_path: Path) -> None:
    points = "lat,lon,timestamp,trajectory_id\n48,2,2026-03-02T08:00:00Z,1\n48.1,2.1,2026-03-02T08:10:00Z,1\n"
    (tmp_path / "points.csv").write_text(points)
    crowdveil.anonymize(tmp_path / "points.csv", tmp_path / "moved", method="simple-generalization")
    assert "trajectories" in command("analyze", "profiles", tmp_path / "moved").sentence


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_is_documented_and_has_a_command_and_a_function(command: Any, name: str) -> None:
    analysis = all_analyses()[name]
    assert analysis.name == name and "References" in analysis.doc and analysis.summary.endswith(".")
    shown = command("analyze", name, "--help")
    assert shown.code == 0 and "Examples:" in shown.out and ("--original" in shown.out) == analysis.compares
    assert callable(getattr(crowdveil, name.replace("-", "_")))
    assert all(field.description for field in analysis.params.model_fields.values())


def test_an_unknown_analysis_is_reported() -> None:
    with pytest.raises(crowdveil.CrowdveilError, match="Known are reconstruct"):
        find_analysis("heat")
