"""The report of a release: what is in it, and above all what is not."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import re
import shutil
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import slow_param
from hypothesis import given
from hypothesis import strategies as st

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, InputError, OutputError, ParameterError
from crowdveil.io.geojson import read_outlines
from crowdveil.io.manifest import Trial
from crowdveil.io.written_release import WrittenRelease, file_hash
from crowdveil.model.time_axis import Clock
from crowdveil.report import flow_picture, html, questions, trajectory_picture
from crowdveil.report.shapes import PictureFrame, Rings
from crowdveil.run.releases import open_release
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import write_trajectories
from crowdveil.synth.trips import write_trips

ROOT = Path(__file__).parents[2]
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trips, trajectories and zones of a small town."""
    folder = tmp_path_factory.mktemp("city")
    town = City.make(1, 36, 300)
    crowdveil.write_zones(town.zones, folder / "zones.geojson")
    write_trips(town, folder / "trips.parquet", 4000, 1, seed=1)
    write_trajectories(town, folder / "tracks.parquet", 60, 1, seed=1)
    return folder


def _made(kind: str, city: Path, out: Path, **more: Any) -> Path:
    """A release of each kind that a report must be able to show."""
    ids = {
        "origin": ["a"] * 12 + ["<b>&amp;"] * 15,
        "destination": ["</script><script>alert(1)</script>"] * 12 + ["a"] * 15,
    }
    times = {"t": ["2026-01-01T00:00"] * 27}
    how: dict[str, tuple[str, Any, dict[str, Any]]] = {
        "map": ("joint", city / "trips.parquet", {"zones": city / "zones.geojson", "tz": "Europe/Paris", "k": 5}),
        "csv": (
            "suppression",
            city / "trips.parquet",
            {"zones": city / "zones.geojson", "k": 5, "format": "csv"},
        ),
        "one step": ("suppression", pa.table(ids | times), {"k": 5}),
        "no times": ("suppression", pa.table(ids), {"k": 5}),
        "nothing": ("suppression", pa.table(ids | times), {"k": 20}),
        "noise": ("laplace", city / "trips.parquet", {"zones": city / "zones.geojson", "step": "1d", "seed": 7}),
        "groups": ("microaggregation", city / "tracks.parquet", {"k": 3}),
        "tiles": ("simple-generalization", city / "tracks.parquet", {}),
        "swapped": ("swapmob", city / "tracks.parquet", {"max_distance_m": 5000, "max_time_s": 900, "seed": 7}),
    }
    method, data, options = how[kind]
    crowdveil.anonymize(data, out, method=method, **options, **more)
    return out


KINDS = ["map", "csv", "one step", "no times", "nothing", "noise", "groups", "tiles", "swapped"]


@pytest.fixture(scope="module")
def releases(city: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A release of each kind, made once."""
    folder = tmp_path_factory.mktemp("releases")
    return {kind: _made(kind, city, folder / kind.replace(" ", "-")) for kind in KINDS}


def _text(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def _data(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.S)
    assert found is not None
    return json.loads(found.group(1))


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_that_asks_nobody_for_anything(releases: dict[str, Path], kind: str) -> None:
    text = _text(releases[kind])
    assert len(text.encode()) < MOST_BYTES and text.startswith("<!doctype html>")
    assert [m for m in re.findall(r"""\b(?:src|href|action|srcset|data)\s*=\s*["']?([^"'\s>]+)""", text.split("<script>")[0])
            if not m.startswith("#")] == []  # fmt: skip
    assert set(re.findall(r"\w+://[^\s\"'<>`)]+", text)) <= {"http://www.w3.org/2000/svg"}, (
        "the name of SVG is no request"
    )
    assert "@import" not in text and not re.search(r"url\(", text)


@pytest.mark.parametrize("kind", KINDS)
def test_the_policy_lets_no_other_script_run(releases: dict[str, Path], kind: str) -> None:
    text = _text(releases[kind])
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert found is not None
    policy = found.group(1).replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert text.index("Content-Security-Policy") < text.index("<style>") < text.index("<script")
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        blocks = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.S)
        assert len(blocks) == 1
        digest = base64.b64encode(hashlib.sha256(blocks[0].encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert not re.search(r"<[^>]+\s(?:style|on\w+)=", text.split("<script")[0]), "the policy would forbid these"


@pytest.mark.parametrize("kind", KINDS)
def test_names_cannot_become_markup(releases: dict[str, Path], kind: str) -> None:
    text = _text(releases[kind])
    assert "<script>alert" not in text
    if kind == "one step":
        assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text


def test_names_on_the_map_cannot_become_markup(tmp_path: Path) -> None:
    """In the data of the script too, where they stand as they are."""
    evil = "</script><script>alert(1)</script><!--"
    square = [[0, 0], [0.01, 0], [0.01, 0.01], [0, 0.01], [0, 0]]
    shapes = [
        {"type": "Feature", "properties": {"id": name}, "geometry": {"type": "Polygon", "coordinates": [
            [[x + 0.01 * i, y] for x, y in square]]}} for i, name in enumerate((evil, "plain"))
    ]  # fmt: skip
    (tmp_path / "z.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": shapes}))
    trips = pa.table({"origin": [evil] * 9, "destination": ["plain"] * 9})
    crowdveil.anonymize(trips, tmp_path / "out", method="suppression", k=5, zones=tmp_path / "z.geojson", zone_id="id")
    text = _text(tmp_path / "out")
    assert "<script>alert" not in text and "<!--" not in text and text.count("</script>") == 2
    assert sorted(_data(text)["layers"][0]["areas"]) == [evil, "plain"], "and come out as they were"


def test_answers_are_what_the_files_say(releases: dict[str, Path]) -> None:
    """Counted again, row by row."""
    folder = releases["map"]
    manifest, written = open_release(folder)
    single, linked, inferred = questions.answers(written, manifest)
    rows = pq.read_table(folder / "flows.parquet").to_pylist()
    sizes = {f["properties"]["area"]: len(f["properties"]["tiles"]) for f in written.features}
    assert f"has {min(row['people'] for row in rows):,} people" in single.lines[0]
    near = sum(row["people"] < 10 for row in rows) / len(rows)
    assert "At least 5 are guaranteed" in single.lines[1] and f"{100 * near:.0f} % of the flows" in single.lines[1]
    groups: dict[Any, list[tuple[int, int]]] = {}
    for row in rows:
        groups.setdefault((row["t"], row["origin_area"]), []).append((row["volume"], sizes[row["destination_area"]]))
    trips = sum(row["volume"] for row in rows)
    area = sum(ends[0][0] for ends in groups.values() if len(ends) == 1) / trips
    tile = sum(ends[0][0] for ends in groups.values() if len(ends) == 1 and ends[0][1] == 1) / trips
    guessed = sum(max(volume for volume, _ in ends) for ends in groups.values()) / trips
    assert f"(homogeneity-area): {100 * area:.0f} % of the trips" in inferred.lines[1] and tile < area
    assert f"(homogeneity-tile): {100 * tile:.0f} % of the trips" in inferred.lines[2]
    assert f"correct for {100 * guessed:.0f} % of the trips" in inferred.lines[3]
    reached = sum(sizes[row["destination_area"]] * row["volume"] for row in rows) / trips
    assert f"has {reached:,.1f} tiles" in inferred.lines[4] and "no original id" in linked.lines[0]


def test_trajectories_and_noise_are_answered_too(releases: dict[str, Path]) -> None:
    for kind, says in (
        ("groups", "the smallest equivalence class has 3"), ("tiles", "the method is a heuristic"),
        ("swapped", "exact points of a person"), ("noise", "No group size is guaranteed"), ("nothing", "Nothing was published"),
    ):  # fmt: skip
        assert says in _text(releases[kind]), kind


def test_attacks_are_shown_where_the_manifest_has_any(releases: dict[str, Path]) -> None:
    manifest, written = open_release(releases["groups"])
    trial = Trial(attack="known places", knowledge="2 places", risk_percent_before=97, risk_percent=33, guarantee=None)
    text = html.public_report(written, manifest.model_copy(update={"risk": [trial]}))
    assert "known places" in text and ">97 %<" in text and ">33 %<" in text
    assert "Attacks on the original" not in html.public_report(written, manifest.model_copy(update={"risk": []}))


@pytest.mark.parametrize(("apart", "count"), [(3600, 150), (3600, 500), (900, 4000), (86400, 500), (7 * 86400, 201)])
def test_time_steps_have_names_and_are_few(apart: int, count: int) -> None:
    t, step = 1_772_409_600 + apart * np.arange(count), np.arange(count)
    labels, place, together = flow_picture._label_steps(t, step, "Europe/Paris")
    assert len(labels) <= flow_picture.MAX_STEPS and len(set(labels)) == len(labels)
    assert place.min() == 0 and place.max() == len(labels) - 1
    assert bool(together) == (count > flow_picture.MAX_STEPS)
    if together and apart < 86400:
        clock = Clock("Europe/Paris").to_wall(t)
        hours = [f"{flow_picture.DAYS[int((w // 86400 + 3) % 7)]} {int(w % 86400 // 3600):02d}:00" for w in clock]
        assert [labels[i] for i in place] == hours


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_release_gives_the_same_report(
    releases: dict[str, Path], city: Path, tmp_path: Path, kind: str
) -> None:
    before = _text(releases[kind])
    manifest = json.loads((releases[kind] / "manifest.json").read_text())
    assert "report" not in manifest["files"] and manifest["created"] not in before
    assert file_hash(releases[kind] / "manifest.json") in before
    assert not any(finding.violated for _, finding in crowdveil.verify(releases[kind]))
    crowdveil.write_report(releases[kind])
    assert _text(releases[kind]) == before
    again = _made(kind, city, tmp_path / "again")
    hashes = [file_hash(folder / "manifest.json") for folder in (releases[kind], again)]
    assert _text(again).replace(hashes[1], hashes[0]) == before
    assert json.loads((releases[kind] / "manifest.json").read_text()) == manifest
    assert not [p.name for p in releases[kind].iterdir() if p.name.startswith(".")]


def test_a_changed_report_is_found(releases: dict[str, Path], tmp_path: Path) -> None:
    copied = shutil.copytree(releases[KINDS[0]], tmp_path / "copied")
    text = _text(copied)
    (copied / "report.html").write_text(text.replace("What was lost", "What was won"), encoding="utf-8")
    with pytest.raises(GuaranteeViolatedError, match="Expected the report of these files"):
        crowdveil.verify(copied)
    crowdveil.write_report(copied)
    assert _text(copied) == text and crowdveil.verify(copied)


@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 3, st.integers(1, 9)), max_size=20),
    st.integers(4, 40),
    st.integers(1, 12),
)
def test_equal_rows_are_summed_and_the_largest_are_kept(
    rows: list[tuple[int, int, int, int]], areas: int, most: int
) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    step, origin, destination, volume = flow_picture._sum_equal(*columns, areas)
    sums: dict[tuple[int, ...], int] = {}
    for *key, amount in rows:
        sums[tuple(key)] = sums.get(tuple(key), 0) + amount
    found = zip(zip(step.tolist(), origin.tolist(), destination.tolist(), strict=True), volume.tolist(), strict=True)
    assert list(found) == sorted(sums.items())
    kept = sorted(sorted(range(len(volume)), key=lambda i: (-volume[i], i))[:most])
    assert flow_picture._largest(volume, most).tolist() == kept


def test_it_can_be_made_from_the_release_alone() -> None:
    """The only function that writes the report takes no original data."""
    assert list(inspect.signature(html.public_report).parameters) == ["written", "manifest"]
    hints = inspect.get_annotations(html.public_report, eval_str=True)
    assert hints["written"] is WrittenRelease


def test_the_map_has_the_published_flows_and_no_others(releases: dict[str, Path]) -> None:
    for kind in ("map", "csv", "noise"):
        folder = releases[kind]
        (layer,) = _data(_text(folder))["layers"]
        table = folder / ("flows.csv" if kind == "csv" else "flows.parquet")
        rows = (pa.csv.read_csv(table) if kind == "csv" else pq.read_table(table)).to_pylist()  # type: ignore[attr-defined]
        origin, destination = list(accumulate(layer["origin"])), list(accumulate(layer["destination"]))
        step = [s for s, n in enumerate(layer["rows"]) for _ in range(n)]
        known = json.loads((folder / "areas.geojson").read_text())["features"]
        ids = {f["properties"]["name"]: f["properties"]["area"] for f in known}
        names = [ids[name] for name in layer["areas"]]
        drawn = sorted(
            zip(
                step,
                (names[i] for i in origin),
                (names[i] for i in destination),
                layer["volume"],
                strict=True,
            )
        )
        times = {t: i for i, t in enumerate(sorted({str(row["t"]) for row in rows}))}
        listed_rows = sorted(
            (times[str(r["t"])], str(r["origin_area"]), str(r["destination_area"]), r["volume"]) for r in rows
        )
        # Steps that nothing was published of have a place between the others, and no row.
        listed = {s: i for i, s in enumerate(sorted(set(step)))}
        assert [(listed[s], *row) for s, *row in drawn] == listed_rows
        assert len(layer["steps"]) >= len(times) == len(listed)


def test_what_was_suppressed_leaves_no_trace(city: Path, tmp_path: Path) -> None:
    table = pa.table(
        {"t": ["2026-01-01T00:00"] * 14, "origin": ["a"] * 12 + ["onlyhere"] * 2, "destination": ["b"] * 14}
    )
    crowdveil.anonymize(table, tmp_path / "out", method="suppression", k=5)
    assert "onlyhere" not in _text(tmp_path / "out")


def test_no_original_point_or_id_of_a_trajectory_is_in_it(releases: dict[str, Path], city: Path) -> None:
    raw = pq.read_table(city / "tracks.parquet").to_pydict()
    for kind in ("groups", "tiles"):
        text = _text(releases[kind])
        (layer,) = _data(text)["layers"]
        released = pq.read_table(releases[kind] / "trajectories.parquet").to_pydict()
        frame = PictureFrame.around(np.array(released["lon"]), np.array(released["lat"]))
        x, y = frame.to_cells(np.array(released["lon"]), np.array(released["lat"]))
        assert list(accumulate(layer["x"])) == x.tolist() and list(accumulate(layer["y"])) == y.tolist()
        assert not any(f"{v:.6f}"[:9] in text for v in raw["lat"][:200])
        assert not any(f">{v}<" in text for v in set(map(str, raw["user_id"])) if not v.isdecimal())


def test_exact_costs_stay_in_the_house(city: Path, tmp_path: Path) -> None:
    result = crowdveil.anonymize(
        city / "trips.parquet", tmp_path / "out", method="joint", zones=city / "zones.geojson", k=5
    )
    exact = result.cost[0].split("  ")[-1].strip()
    public = _text(tmp_path / "out")
    assert exact not in public and "mean generalization error" not in public and "CONFIDENTIAL" not in public


def test_no_report_where_none_is_wanted_and_one_later(city: Path, tmp_path: Path) -> None:
    out = _made("map", city, tmp_path / "out", report=False)
    assert (
        not (out / "report.html").exists() and "report" not in json.loads((out / "manifest.json").read_text())["files"]
    )
    crowdveil.write_report(out)
    assert not any(finding.violated for _, finding in crowdveil.verify(out))
    (out / "report.html").write_text(_text(out) + " ")
    with pytest.raises(GuaranteeViolatedError, match=r"report\.html"):
        crowdveil.verify(out)
    crowdveil.write_report(out)
    assert not any(finding.violated for _, finding in crowdveil.verify(out))


@pytest.mark.parametrize(("step_s", "said"), [(3600, "equal hours of all weeks"), (86400, "every 2 time steps")])
def test_many_hours_or_days_are_added_up_as_what_they_are(step_s: int, said: str) -> None:
    """Also where the clock is put forward, and a day is shorter."""
    wall = np.arange(400) * step_s + 1_704_063_600
    t = np.where(wall >= 1_711_846_800, wall - 3600, wall)  # 31 March 2024, Paris
    _, _, how = flow_picture._label_steps(np.unique(t), np.zeros(1, np.int64), "Europe/Paris")
    assert said in how


def test_a_long_release_has_a_short_report(monkeypatch: pytest.MonkeyPatch, city: Path, tmp_path: Path) -> None:
    """Of more than a page holds, hours of the week are added up and the largest flows are shown; it says so."""
    monkeypatch.setattr(flow_picture, "MAX_STEPS", 6)
    monkeypatch.setattr(flow_picture, "MAX_FLOWS", 20)
    monkeypatch.setattr(flow_picture, "MAX_AREAS", 8)
    out = _made("map", city, tmp_path / "out")
    text = _text(out)
    (layer,) = _data(text)["layers"]
    assert len(layer["areas"]) <= 8 and len(layer["volume"]) <= 20
    assert layer["steps"][0].split()[0] in flow_picture.DAYS
    assert "equal hours of all weeks are summed" in text and "largest flows and 8 of" in text


@pytest.mark.parametrize(
    ("folders", "built", "name"), [(["src"], "report/page", "report"), (["page", "src"], "server/page", "app")]
)
def test_the_built_pages_are_not_stale(folders: list[str], built: str, name: str) -> None:
    """A change of the source must be built (make web); node is not needed to find out."""
    web, page = ROOT / "web", ROOT / "src" / "crowdveil" / built
    sources = [f"{folder}/{p.name}" for folder in folders for p in sorted((web / folder).iterdir())]
    digest = hashlib.sha256()
    for source in ["build.mjs", "package-lock.json", *sources]:
        digest.update(f"{source}\n".encode() + (web / source).read_bytes())
    for file in (f"{name}.js", f"{name}.css"):
        assert (page / file).read_text().startswith(f"/* built by make web from {digest.hexdigest()} */"), file


@given(st.lists(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=3), min_size=1, max_size=12))
def test_equal_trajectories_are_found(drawn: list[list[tuple[int, int, int]]]) -> None:
    points = np.array([point for track in drawn for point in track])
    offsets = np.cumsum([0, *(len(track) for track in drawn)])
    shown = trajectory_picture.TrajectoryPicture(points[:, 0] / 3, points[:, 1] / 3, points[:, 2], offsets)
    assert trajectory_picture.equivalence_class_sizes(shown).tolist() == [drawn.count(track) for track in drawn]


@given(st.data())
def test_values_of_tiles_as_the_words_say(draw: st.DataObject) -> None:
    """Every trip of an area is spread evenly over its tiles; an area is painted with what is seen of it under smaller ones."""
    sets = draw.draw(st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=5))
    ends = st.integers(0, len(sets) - 1)
    rows = draw.draw(st.lists(st.tuples(ends, ends, st.integers(1, 9)), min_size=1, max_size=8))
    nan = np.full(len(sets), np.nan)
    o, d, v = np.array(rows).T
    shown = flow_picture.FlowPicture(
        [str(i) for i in range(len(sets))], nan, nan, nan, np.cumsum([0, *map(len, sets)]),
        np.array([t for s in sets for t in sorted(s)]), Rings.of([]), [], np.zeros(len(rows), np.int64), o, d, v,
    )  # fmt: skip
    over, trips = shown.by_tile(shown.trips)
    for tile in range(len(over)):
        shares = [
            (volume / len(sets[end]), len(sets[end])) for *both, volume in rows for end in both if tile in sets[end]
        ]
        assert trips[tile] == pytest.approx(sum(share for share, _ in shares))
        if shares:
            assert over[tile] == pytest.approx(sum(s * n for s, n in shares) / sum(s for s, _ in shares))
    seen = shown.by_face(trips)
    top = {t: min((len(s), -i) for i, s in enumerate(sets) if t in s)[1] for s in sets for t in s}
    for i, tiles in enumerate(sets):
        visible = [trips[t] for t in tiles if -top[t] == i] or [trips[t] for t in tiles]
        assert seen[i] == pytest.approx(np.mean(visible))


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3, st.integers(1, 9)), max_size=20))
def test_rows_are_added_up(rows: list[tuple[int, int, int, int]]) -> None:
    sums: dict[tuple[int, ...], int] = {}
    for *key, volume in rows:
        sums[tuple(key)] = sums.get(tuple(key), 0) + volume
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    found = flow_picture._sum_equal(*columns, 4)  # type: ignore[call-arg]
    assert list(zip(*(c.tolist() for c in found), strict=True)) == [(*key, sums[key]) for key in sorted(sums)]


def test_outlines_keep_their_shape_on_the_grid() -> None:
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 0.5], [1, 1], [0, 1], [0, 0]]]}
    speck = {"type": "Polygon", "coordinates": [[[0, 0], [1e-9, 0], [1e-9, 1e-9], [0, 0]]]}
    point = {"type": "Point", "coordinates": [0, 0]}
    rings = Rings.of(read_outlines([{"geometry": geometry} for geometry in (square, None, speck, point)]))
    with pytest.raises(InputError, match="outline of an area is broken"):
        read_outlines([{"geometry": {"type": "Polygon", "coordinates": [[[0, 0], "x"]]}}])
    frame = PictureFrame.around(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 100)
    paths = rings.snapped(frame).paths()
    assert paths[0] == "M0 100l100 0l0 -100l-100 0z" and paths[1:] == ["", "", ""]


def test_doors_refuse_what_they_cannot_draw(releases: dict[str, Path], tmp_path: Path) -> None:
    for kind, release, says in (
        ("heatmap", "map", "trajectories"), ("flows", "groups", "flows"), ("flows", "one step", "positions"),
        ("coarsening", "nothing", "nothing"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            crowdveil.plot(kind, releases[release], tmp_path / "p-confidential.png")
    with pytest.raises(ParameterError, match="no area"):
        crowdveil.plot("profiles", releases["map"], tmp_path / "p.png", zone=["nowhere"])
    with pytest.raises(ParameterError, match="Expected one of"):
        crowdveil.plot("pie", releases["map"], tmp_path / "p.png")
    with pytest.raises(OutputError, match=r"\.svg"):
        crowdveil.plot("flows", releases["map"], tmp_path / "p.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "release", "ending"),
    [
        ("flows", "map", "svg"),
        ("coarsening", "map", "png"),
        ("profiles", "map", "svg"),
        ("heatmap", "groups", "png"),
        slow_param("flows", "map", "png"),
        slow_param("coarsening", "map", "svg"),
        slow_param("profiles", "map", "png"),
        slow_param("heatmap", "groups", "svg"),
    ],
)
def test_every_plot_is_drawn(releases: dict[str, Path], tmp_path: Path, kind: str, release: str, ending: str) -> None:
    pytest.importorskip("matplotlib")
    crowdveil.plot(kind, releases[release], tmp_path / f"p.{ending}")
    begins = b"\x89PNG" if ending == "png" else b"<?xml"
    assert (tmp_path / f"p.{ending}").read_bytes().startswith(begins)


def test_from_the_command_line(command: Any, city: Path, tmp_path: Path) -> None:
    zones, trips, out = city / "zones.geojson", city / "trips.parquet", tmp_path / "out"
    assert command("anonymize", "joint", trips, "--zones", zones, "--k", 5, "-o", out, "--no-report").code == 0
    assert not (out / "report.html").exists()
    assert command("report", out).out.endswith("report.html: written\n") and (out / "report.html").exists()
    assert command("plot", "flows", out, "-o", tmp_path / "p.svg").code == 0
    assert command("verify", out).code == 0


def test_in_a_run_file(city: Path, tmp_path: Path) -> None:
    from run_files import read_run_file

    run = tmp_path / "run.toml"
    run.write_text(
        f'method = "suppression"\ninput = "{city / "trips.parquet"}"\noutput = "{tmp_path / "out"}"\nreport = false\n'
    )
    request = read_run_file(run)
    assert request.options == {"report": False}
    run.write_text(run.read_text().replace("report = false", 'report = "p.html"'))
    with pytest.raises(ParameterError, match="report: Expected true or false"):
        read_run_file(run)
