"""`crowdveil verify`, with the original data and without it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, InputError, ParameterError
from crowdveil.io.written_release import file_hash

ZONES = "id,lon,lat\n1,2.0,48.0\n2,2.1,48.0\n3,2.2,48.1\n"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trips of two hours between three zones by a few people, and a release of them."""
    folder = tmp_path_factory.mktemp("once")
    groups = ((1, 2, 12, 8), (2, 3, 11, 8), (1, 1, 2, 8), (3, 1, 15, 9), (3, 2, 5, 9), (2, 2, 3, 11))
    lines = [f"{o},{d},2026-03-02T{h:02d}:10:00,u{i % 7}" for o, d, n, h in groups for i in range(n)]
    (folder / "trips.csv").write_text("origin,destination,time,user\n" + "\n".join(lines) + "\n")
    (folder / "zones.csv").write_text(ZONES)
    options = {"zones": folder / "zones.csv", "k": 4, "tz": "Europe/Paris", "format": "csv"}
    crowdveil.anonymize(folder / "trips.csv", folder / "out", method="suppression", **options)
    return folder


@pytest.fixture
def made(once: Path, tmp_path: Path) -> Path:
    """Return a copy of the data and its release, which a test may change."""
    return shutil.copytree(once, tmp_path, dirs_exist_ok=True)


def _again(made: Path) -> tuple[Any, ...]:
    return ("verify", made / "out", "--original", made / "trips.csv", "--zones", made / "zones.csv")


def _forge(made: Path, file: str, old: str, new: str) -> None:
    """Change a file of the release, and put its new hash into the manifest."""
    path = made / "out" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    (made / "out" / "report.html").unlink(missing_ok=True)
    manifest = json.loads((made / "out" / "manifest.json").read_text())
    for entry in manifest["files"].values():
        entry["sha256"] = file_hash(made / "out" / entry["name"])
    (made / "out" / "manifest.json").write_text(json.dumps(manifest))


def test_what_needs_the_original_is_not_said_to_hold(command: Any, made: Path) -> None:
    ran = command("verify", made / "out")
    assert (
        ran.code == 0
        and "3 guarantees can be checked from the files by anyone; 1 cannot be checked from the files alone." in ran.out
    )
    assert [line[:26] for line in ran.out.splitlines() if "true-volumes" in line] == ["not checked  true-volumes:"]
    findings = {f["name"]: f for f in json.loads(command("verify", made / "out", "--json").out)["findings"]}
    assert findings["true-volumes"]["outcome"] == "not checked" and findings["disjoint-flows"]["outcome"] == "holds"
    assert findings["disjoint-flows"]["counts"] == {"rows": 4, "crossed": 0, "unlisted": 0}


def test_with_the_original_everything_is_checked(command: Any, made: Path) -> None:
    ran = command(*_again(made))
    assert (
        ran.code == 0
        and "not checked" not in ran.out
        and "3 guarantees can be checked from the files by anyone; 1 was checked by the publisher" in ran.out
    )
    findings = {f["name"]: f for f in json.loads(command(*_again(made), "--json").out)["findings"]}
    assert findings["true-volumes"]["outcome"] == "holds" and findings["true-volumes"]["with_original"] is True
    assert findings["disjoint-flows"]["with_original"] is False


def test_a_run_and_its_files_count_the_same_guarantees(command: Any, made: Path) -> None:
    """The budget is checked with the original by the run, but anyone can check it where the files have all totals."""
    more = (*_again(made)[4:], "--k", 2, "--step", "all", "--no-attack", "--no-report")
    ran = command("anonymize", "joint", made / "trips.csv", *more, "-o", made / "budget")
    said = "4 guarantees can be checked from the files by anyone"
    assert f"{said}; 1 was checked by the publisher against the original" in ran.out
    assert f"{said}; 1 cannot be checked from the files alone." in command("verify", made / "budget").out
    assert ran.out.splitlines()[-1].startswith("  1.") and "zones: An origin" in ran.out.splitlines()[-1]


def test_a_run_ends_with_the_path_of_its_report(command: Any, made: Path) -> None:
    line = ("anonymize", "joint", made / "trips.csv", *_again(made)[4:], "--k", 2, "--step", "all", "--no-attack")
    ran = command(*line, "-o", made / "shown")
    assert ran.out.splitlines()[-1] == f"  open {made / 'shown' / 'report.html'}"


def test_the_manifest_says_what_was_checked_with_the_original(made: Path) -> None:
    guarantees = json.loads((made / "out" / "manifest.json").read_text())["guarantees"]
    assert {p["name"]: p["with_original"] for p in guarantees} == {
        "flow-k-anonymity": False, "disjoint-flows": False, "well-formed-flows": False, "true-volumes": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("flows.csv", ",1,2,12,4,", ",1,2,13,4,"), ("flows.csv", ",1,2,12,4,", ",1,2,12,8,"),
     ("flows.csv", "T09:00:00", "T08:00:00")],
    ids=["a volume", "a crowd", "a time step"],
)  # fmt: skip
def test_a_forged_row_is_found_with_the_original_only(command: Any, made: Path, file: str, old: str, new: str) -> None:
    _forge(made, file, old, new)
    assert command("verify", made / "out").code == 0
    ran = command(*_again(made))
    assert ran.code == 1 and "VIOLATED     true-volumes" in ran.out


def test_what_is_wrong_is_reported_in_one_sentence(command: Any, made: Path) -> None:
    out, trips, zones = made / "out", made / "trips.csv", made / "zones.csv"
    assert "made with a file of zones. Give it with --zones" in command("verify", out, "--original", trips).sentence
    assert "Add --original" in command("verify", out, "--zones", zones).sentence
    with pytest.raises(ParameterError, match="zones: Expected the original with this option"):
        crowdveil.verify(out, zones=zones)
    (made / "other.csv").write_text(trips.read_text() + "1,2,2026-03-02T08:15:00,u1\n")
    ran = command("verify", out, "--original", made / "other.csv", "--zones", zones)
    assert ran.code == 1 and "VIOLATED     true-volumes" in ran.out  # nothing of the file but its content is known
    (made / "shifted.csv").write_text(ZONES.replace("48.1", "48.2"))
    ran = command("verify", out, "--original", trips, "--zones", made / "shifted.csv")
    assert ran.code == 2 and "Give that file with --zones" in ran.sentence
    ran = command("verify", out, "--original", made / "gone.csv", "--zones", zones)
    assert ran.code == 2 and "gone.csv" in ran.sentence


def test_trajectories_are_held_against_their_original(command: Any, made: Path) -> None:
    points = "lat,lon,timestamp,trajectory_id\n48,2,2026-03-02T08:00:00Z,1\n48.1,2.1,2026-03-02T08:10:00Z,1\n"
    (made / "points.csv").write_text(points)
    assert command("anonymize", "simple-generalization", made / "points.csv", "-o", made / "moved").code == 0
    assert command("verify", made / "moved", "--original", made / "points.csv").code == 0
    with pytest.raises(ParameterError, match="origin: there is no such parameter"):
        crowdveil.verify(made / "moved", made / "points.csv", origin="a")


def test_swapped_points_are_looked_up_in_the_original(command: Any, made: Path) -> None:
    row = "48.00{},2,2026-03-02T08:{:02}:00Z,{},{}\n"
    walks = [(1, range(0, 10)), (2, range(9, -1, -1))]
    rows = [row.format(x, minute, name, name) for name, way in walks for minute, x in enumerate(way)]
    (made / "walks.csv").write_text("lat,lon,timestamp,trajectory_id,user_id\n" + "".join(rows))
    out, walks_file = made / "swapped", made / "walks.csv"
    assert command("anonymize", "swapmob", walks_file, "-o", out, "--max-time-s", 60).code == 0
    ran = command("verify", out)
    assert ran.code == 0 and ran.out.count("the original trajectories are needed") == 2
    ran = command("verify", out, "--original", walks_file)
    assert ran.code == 0 and "not checked" not in ran.out and "20 points checked, 0 of them not" in ran.out


def test_python_takes_flows_and_files(made: Path) -> None:
    flows = crowdveil.read_flows(made / "trips.csv", zones=made / "zones.csv", tz="Europe/Paris", members=True)
    for findings in (
        crowdveil.verify(made / "out", flows),
        crowdveil.verify(made / "out", made / "trips.csv", zones=made / "zones.csv"),
    ):
        assert all(f.holds for _, f in findings)
    assert [p.name for p, f in crowdveil.verify(made / "out") if not f.holds] == ["true-volumes"]
    with pytest.raises(ParameterError, match="no such parameter"):
        crowdveil.verify(made / "out", made / "trips.csv", zones=made / "zones.csv", zonnes=1)


def test_an_original_that_counts_otherwise_is_refused(made: Path) -> None:
    text = (made / "trips.csv").read_text()
    (made / "nameless.csv").write_text("\n".join(line.rpartition(",")[0] for line in text.splitlines()) + "\n")
    flows = crowdveil.read_flows(made / "nameless.csv", zones=made / "zones.csv", tz="Europe/Paris")
    with pytest.raises(InputError, match="counts trips, but the release counts people"):
        crowdveil.verify(made / "out", flows)


@pytest.mark.realdata
@pytest.mark.slow
def test_a_release_of_real_trips_is_true(command: Any, realdata: Path, tmp_path: Path) -> None:
    trips, zones = realdata / "nyc_taxi" / "green_2020-03_2020-12.parquet", realdata / "nyc_taxi" / "taxi_zones.geojson"
    options = ("--zones", zones, "--zone-id", "OBJECTID", "--tz", "America/New_York", "--step", "1d", "--drop-invalid")
    assert command("anonymize", "suppression", trips, *options, "-o", tmp_path / "out").code == 0
    ran = command("verify", tmp_path / "out", "--original", trips, "--zones", zones)
    assert ran.code == 0 and "0 volumes and 0 group sizes differ; 0 time steps" in ran.out


def _edited(made: Path, edit: Any) -> None:
    """Change the manifest of the release by hand."""
    path = made / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    edit(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("edit", "lacks"),
    [
        (lambda m: m["guarantees"].pop(0), "flow-k-anonymity"),
        (lambda m: m["guarantees"].pop(1), "disjoint-flows"),
        (lambda m: m["guarantees"].pop(2), "well-formed-flows"),
        (lambda m: m["guarantees"].pop(3), "true-volumes"),
        (lambda m: m["guarantees"].clear(), "flow-k-anonymity"),
        (lambda m: m["guarantees"][0]["parameters"].update(k=2), "flow-k-anonymity"),
        (lambda m: m["guarantees"][0]["parameters"].update(k_unit="trips"), "flow-k-anonymity"),
    ],
)
def test_a_guarantee_cannot_be_taken_out_of_the_manifest(command: Any, made: Path, edit: Any, lacks: str) -> None:
    _edited(made, edit)
    for arguments in (
        ("verify", made / "out"),
        _again(made),
        ("verify", made / "out", "--json"),
        ("report", made / "out"),
    ):
        ran = command(*arguments)
        assert ran.code == 1 and f"does not state the guarantee {lacks} that the method suppression gives" in ran.err
    for again in (crowdveil.verify, crowdveil.write_report):
        with pytest.raises(GuaranteeViolatedError, match=f"does not state the guarantee {lacks} "):
            again(made / "out")


def test_guarantees_of_a_method_that_is_not_known_are_not_taken_on_trust(command: Any, made: Path) -> None:
    _edited(made, lambda m: (m["method"].update(name="another"), m["guarantees"].pop(0)))
    ran = command("verify", made / "out")
    assert ran.code == 2 and "names the method another" in ran.err
