"""The same command here and on a server: the same bytes, the same words, the same errors."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from serving import Running, cabs, ended, post, put

import crowdveil
from conftest import Ran
from crowdveil.server.client import Remote

pytestmark = pytest.mark.slow

Command = Callable[..., Ran]


@pytest.fixture(scope="session")
def there(tmp_path_factory: pytest.TempPathFactory, running: Running) -> Path:
    """Data of one city: trips, zones and trajectories."""
    folder = tmp_path_factory.mktemp("city")
    (folder / "more" / "files").mkdir(parents=True)
    (folder / "more" / "files" / "of its owner.txt").write_text("no release")
    (folder / "cabs.csv").write_text(cabs(20))
    (folder / "trips.csv").write_text(
        "time,origin,destination,user\n"
        + "".join(
            f"2024-03-04T0{7 + i % 3}:1{i % 6}:00,{'abcd'[i % 4]},{'abcd'[i * i % 3]},{i % 97}\n" for i in range(600)
        )
    )
    squares = [
        {"type": "Feature", "properties": {"id": name}, "geometry": {"type": "Polygon", "coordinates": [[
            [x, 0], [x + 0.01, 0], [x + 0.01, 0.01], [x, 0.01], [x, 0]]]}}
        for name, x in zip("abcd", (0.0, 0.01, 0.02, 0.03), strict=True)
    ]  # fmt: skip
    (folder / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": squares}))
    return folder


@pytest.fixture
def on_server(running: Running, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A token in the environment, as a user sets it."""
    monkeypatch.setenv("CROWDVEIL_TOKEN", running.tokens["anna"])
    return running


def contents(folder: Path) -> dict[str, object]:
    """The files of a release; all that may differ is when it was made, and the hash of the manifest that says so."""
    found: dict[str, object] = {p.name: p.read_bytes() for p in folder.iterdir()}
    manifest = (folder / "manifest.json").read_text()
    report = (folder / "report.html").read_text().replace(hashlib.sha256(manifest.encode()).hexdigest(), "")
    return found | {"manifest.json": re.sub('"created": "[^"]*"', "", manifest), "report.html": report}


CASES = {
    "trajectories": ("swapmob", "cabs.csv", {"seed": 5}, ()),
    "flows": ("joint", "trips.csv", {"seed": 5, "k": 3, "suppress": "20%"}, ("zones",)),
}


@pytest.mark.parametrize(("case", "form"), [("trajectories", "csv"), ("flows", "parquet")])
def test_the_same_bytes_by_every_door(
    case: str, form: str, there: Path, tmp_path: Path, on_server: Running, command: Command
) -> None:
    method, data, values, maps = CASES[case]
    zones = {name: str(there / f"{name}.geojson") for name in maps}
    crowdveil.anonymize(there / data, tmp_path / "python", method=method, format=form, **values, **zones)  # type: ignore[arg-type]
    options = [w for n, v in {**values, **zones}.items() for w in (f"--{n}", str(v))]
    line = ["anonymize", method, there / data, "--format", form, *options]
    here = command(*line, "-o", tmp_path / "here")
    remote = command(*line, "-o", tmp_path / "remote", "--server", on_server.url)
    assert (here.code, remote.code) == (0, 0), remote.err
    assert remote.out == here.out.replace(str(tmp_path / "here"), str(tmp_path / "remote")) and remote.err == here.err
    with on_server.client() as anna:
        files = {"data": (data, (there / data).read_bytes())}
        files |= {n: (Path(p).name, Path(p).read_bytes()) for n, p in zones.items()}
        job = put(anna, f"/methods/{method}/jobs", files, {**values, "format": form})
        assert ended(anna, job)["state"] == "done"
        zipfile.ZipFile(io.BytesIO(anna.get(f"/jobs/{job}/result").content)).extractall(tmp_path / "http")
    wanted = contents(tmp_path / "python")
    assert "report.html" in wanted
    assert wanted == contents(tmp_path / "here") == contents(tmp_path / "remote") == contents(tmp_path / "http")


@pytest.fixture(scope="session")
def releases(there: Path) -> Path:
    """A release of trips, one of trajectories with its pairing, and a plain table that others published."""
    zones = str(there / "zones.geojson")
    crowdveil.anonymize(there / "trips.csv", there / "flows", method="joint", zones=zones, k=3)
    crowdveil.anonymize(
        there / "cabs.csv",
        there / "tracks",
        method="microaggregation",
        k=3,
        time_weight=0.5,
        pairing=there / "kept.csv",
    )
    first, *rest = (there / "cabs.csv").read_text().splitlines(keepends=True)
    (there / "theirs.csv").write_text(first + "".join(line for line in rest if int(line.split(",")[3]) % 3))
    return there


def same_there(command: Command, url: str, line: list[object], here: Path, remote: Path) -> None:
    """A command writes the same files here and there, and says the same."""
    ran, sent = command(*line, "-o", here), command(*line, "-o", remote, "--server", url)
    assert (ran.code, sent.code) == (0, 0), (line, ran.err, sent.err)
    assert sent.out == ran.out.replace(str(here), str(remote)) and sent.err == ran.err, line
    made, fetched = (
        {p.name: p.read_bytes() for p in f.iterdir()} if f.is_dir() else f.read_bytes() for f in (here, remote)
    )
    assert made == fetched, line


COMMANDS = [
    (["filter", "cabs.csv", "--max-speed", "40", "--min-locations", "2"], ".csv"),
    (["measure", "trips.csv", "flows", "--zones", "zones.geojson"], ".csv"),
    (["measure", "cabs.csv", "tracks", "--pairing", "kept.csv", "-m", "rmse:distance=dtw,RL"], ".json"),
    (["analyze", "profiles", "flows", "--zones", "zones.geojson"], ".json"),
    (["analyze", "reconstruct", "flows", "--zones", "zones.geojson", "--over", "day"], ".csv"),
    (["analyze", "quadtree-heatmap", "cabs.csv", "--min-k", "3"], ".geojson"),
    (["attack", "home-work", "cabs.csv", "--release", "tracks", "--pairing", "kept.csv", "--tile-m", "500"], ".csv"),
    (["attack", "homogeneity", "flows"], ".json"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "ending"), COMMANDS)
def test_every_command_there_as_here(
    line: list[str], ending: str, releases: Path, tmp_path: Path, on_server: Running, command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(releases)
    same_there(command, on_server.url, [*line], tmp_path / f"here{ending}", tmp_path / f"remote{ending}")


def test_run_files_json_and_pictures_there_as_here(
    releases: Path, tmp_path: Path, on_server: Running, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(releases)
    at = ["--server", on_server.url]
    for line in (
        ["measure", "trips.csv", "flows", "--zones", "zones.geojson", "--json"],
        ["attack", "location", "cabs.csv", "--tile-m", "500", "--json"],
        ["attack", "location", "cabs.csv", "--tile-m", "500"],
        ["measure", "cabs.csv", "tracks", "-m", "TrajectoriesRemoved"],
    ):
        ran, sent = command(*line), command(*line, *at)
        assert (sent.code, sent.out, sent.err) == (ran.code, ran.out, ran.err) and ran.code == 0
    (tmp_path / "measures.json").write_text(json.dumps(MEASURES))
    same_there(
        command, on_server.url, ["measure", "-f", tmp_path / "measures.json"], tmp_path / "a.json", tmp_path / "b.json"
    )
    run = {"method": "QuadTreeHeatMap", "input_file": "cabs.csv", "output_folder": str(tmp_path / "map"),
           "main_output_file": "map.json", "params": {"min_k": 3}}  # fmt: skip
    (tmp_path / "map.json").write_text(json.dumps(run))
    assert command("analyze", "-f", tmp_path / "map.json").code == 0
    made = (tmp_path / "map" / "map.json").read_bytes()
    assert command("analyze", "-f", tmp_path / "map.json", "--overwrite", *at).code == 0
    assert (tmp_path / "map" / "map.json").read_bytes() == made
    line = ["measure", "cabs.csv", "theirs.csv", "-m", "rmse", "--paired-by-id", "--plot", str(tmp_path / "m.png")]
    drawn = command(*line, "--json", *at)
    assert drawn.code == 0 and "rmse" in json.loads(drawn.out)["measures"]
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")


MEASURES: dict[str, object] = {
    "original_dataset": "cabs.csv",
    "anonymized_dataset": "theirs.csv",
    "paired_by_id": True,
    "measures": [
        {"name": "TrajectoriesRemoved", "params": {}},
        {
            "name": "Rsme",
            "params": {"trajectory_distance": {"name": "Martinez2021", "params": {"p_lambda": 0.0054}}},
        },
        {"name": "ScikitMeasures", "params": {"sort": True, "tesselation_meters": 250}},
    ],
}
"""A file of measures as mdl-anonymizer has it."""


def test_private_files_are_not_made_on_a_server(
    there: Path, tmp_path: Path, on_server: Running, command: Command
) -> None:
    line = ["anonymize", "swapmob", there / "cabs.csv", "-o", tmp_path / "out", "--server", on_server.url]
    ran = command(*line, "--pairing", tmp_path / "kept.csv")
    assert ran.code == 2 and "this option is for runs on this machine" in ran.sentence
    with on_server.client() as anna:
        answer = post(anna, "/methods/swapmob/jobs", {"data": ("a.csv", cabs())}, {"pairing": "x.csv"})
        assert answer.status_code == 422 and answer.json()["error"]["message"].startswith("pairing: there is no such")
    assert list(tmp_path.iterdir()) == []
    assert command(*line, "--no-report", "--no-attack").code == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["risk"] is None
    assert "report" not in manifest["files"] and not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    "line",
    [
        ["anonymize", "microaggregation", "{there}/cabs.csv", "--k", "1", "-o", "{out}"],
        ["anonymize", "joint", "{there}/trips.csv", "--zones", "{there}/trips.csv", "-o", "{out}"],
        ["anonymize", "joint", "{there}/nothing.csv", "-o", "{out}"],
        ["anonymize", "swapmob", "{there}/cabs.csv", "-o", "{there}"],
        ["filter", "{there}/cabs.csv", "--max-speed", "0", "-o", "{out}.csv"],
        ["filter", "{there}/cabs.csv", "--max-speed", "9", "-o", "{out}.exe"],
        ["measure", "{there}/cabs.csv", "{there}"],
        ["measure", "{there}/cabs.csv", "{there}/cabs.csv", "-m", "nothing"],
        ["measure", "{there}/cabs.csv", "{there}/cabs.csv", "-m", "E"],
        ["analyze", "quadtree-heatmap", "{there}/cabs.csv", "--min-k", "100", "-o", "{out}.html"],
        ["attack", "location", "{there}/cabs.csv", "--pairing", "{there}/cabs.csv"],
        ["attack", "homogeneity", "{there}"],
    ],
)
def test_the_sentence_is_the_command_lines(
    line: list[str], there: Path, tmp_path: Path, on_server: Running, command: Command
) -> None:
    filled = [word.format(there=there, out=tmp_path / "out") for word in line]
    here = command(*filled)
    remote = command(*filled, "--server", on_server.url)
    assert (remote.code, remote.sentence) == (here.code, here.sentence) and here.code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_data_is_not_sent(there: Path, tmp_path: Path, on_server: Running, command: Command) -> None:
    ran = command("anonymize", "joint", there, "-o", tmp_path / "out", "--server", on_server.url)
    assert ran.code == 2 and "Expected one file for a server, got a folder" in ran.sentence


def test_detached_and_fetched_later(there: Path, tmp_path: Path, on_server: Running, command: Command) -> None:
    at = ["--server", on_server.url]
    left = command("anonymize", "swapmob", there / "cabs.csv", "-o", tmp_path / "x", "--detach", *at)
    job = left.out.strip()
    assert left.code == 0 and len(job) == 32 and not (tmp_path / "x").exists()
    assert "crowdveil server jobs" in left.err
    got = command("server", "jobs", job, "-o", tmp_path / "out", *at)
    assert got.code == 0 and got.out.startswith(f"{tmp_path / 'out'}: verified and written"), got.err
    assert command("verify", tmp_path / "out").code == 0
    assert command("server", "jobs", job, *at).out.startswith(f"{job}: done (anonymize swapmob)")
    assert command("server", "jobs", job, "--cancel", *at).out == f"{job}: expired\n"
    assert command("server", "jobs", job, "-o", tmp_path / "again", *at).sentence.endswith(
        "is expired; there is no result."
    )
    assert command("server", "jobs", "0" * 32, *at).sentence == "crowdveil: there is no such job."
    assert command("server", "jobs", "../jobs", *at).sentence.startswith("crowdveil: task: Expected the id of a job")


def test_the_folder_of_a_release_is_sent_as_a_partition(
    releases: Path, tmp_path: Path, on_server: Running, command: Command
) -> None:
    line = ["anonymize", "fixed", releases / "trips.csv", "--zones", releases / "zones.geojson", "--no-report", "--no-attack",
            "--partition", releases / "flows", "-k", "3", "--format", "csv"]  # fmt: skip
    for more in (["-o", tmp_path / "here"], ["-o", tmp_path / "there", "--server", on_server.url]):
        ran = command(*line, *more)
        assert ran.code == 0, ran.err
    assert (tmp_path / "here" / "flows.csv").read_bytes() == (tmp_path / "there" / "flows.csv").read_bytes()


def test_a_fetched_folder_replaces_only_one_of_its_kind(
    there: Path, tmp_path: Path, on_server: Running, command: Command
) -> None:
    at = ["--server", on_server.url]
    line = ["analyze", "quadtree-heatmap", there / "cabs.csv", "--min-k", "3", "-o", tmp_path / "x", "--detach", *at]
    fetch = ["server", "jobs", command(*line).out.strip(), *at, "-o"]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "own.txt").write_text("mine")
    assert "so it is not replaced" in command(*fetch, tmp_path / "notes", "--overwrite").sentence
    assert (tmp_path / "notes" / "own.txt").read_text() == "mine"
    assert command(*fetch, tmp_path / "map").code == 0 and (tmp_path / "map" / "heatmap.html").is_file()
    assert command(*fetch, tmp_path / "map").code == 2
    assert command(*fetch, tmp_path / "map", "--overwrite").code == 0


def test_the_documents_commands(
    there: Path, tmp_path: Path, on_server: Running, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROWDVEIL_SERVER", on_server.url)
    run = {"method": "SwapMob", "input_file": str(there / "cabs.csv"), "output_folder": "out", "params": {}}
    (tmp_path / "run.json").write_text(json.dumps(run))
    answer = json.loads(command("anonymize-api", "-f", "run.json").out)
    assert answer["status"] == "OK"
    with on_server.client() as anna:
        assert ended(anna, answer["task_id"])["state"] == "done"
    got = command("get-task", "-t", answer["task_id"])
    assert got.code == 0 and Path("input_dataset_anonymized.csv").read_text().startswith("lat,lon")
    assert json.loads(command("get-task", "-t", "0" * 32).out)["status"] == "NOT_AVAILABLE"
    run = {
        "original_dataset": str(there / "cabs.csv"),
        "methods": [{"min_locations": 5}],
        "output_filename": "long.csv",
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert json.loads(command("filter-api", "-f", "run.json").out)["status"] == "OK"
    run = {"method": "Nothing", "input_file": str(there / "cabs.csv")}
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert "there is no analysis Nothing" in command("analysis-api", "-f", "run.json").sentence
    run = {
        "original_dataset": str(there / "cabs.csv"),
        "anonymized_dataset": str(there / "cabs.csv"),
        "measures": [{"name": "x"}],
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert "there is no measure x" in command("measures-api", "-f", "run.json").sentence


def test_a_token_that_is_not_known(
    there: Path, tmp_path: Path, running: Running, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["anonymize", "swapmob", there / "cabs.csv", "-o", tmp_path / "out", "--server", running.url]
    monkeypatch.setenv("CROWDVEIL_TOKEN", "cv_guess")
    assert "unknown or revoked" in command(*line).sentence
    monkeypatch.delenv("CROWDVEIL_TOKEN")
    assert "Expected a token" in command(*line).sentence


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://127.0.0.1:9", "The server does not answer"),
        ("http://crowdveil.example.org", "data must not be sent over http://"),
        ("ftp://x", "Expected an address such as"),
        ("nonsense", "Expected an address such as"),
    ],
)
def test_servers_that_cannot_be_used(url: str, sentence: str, there: Path, tmp_path: Path, command: Command) -> None:
    ran = command("anonymize", "swapmob", there / "cabs.csv", "-o", tmp_path / "out", "--server", url)
    assert ran.code == 2 and sentence in ran.sentence


def test_a_token_is_not_shown_by_accident() -> None:
    assert "secret" not in repr(Remote("http://127.0.0.1:1", "secret"))


def test_detach_needs_a_server(there: Path, tmp_path: Path, command: Command) -> None:
    assert (
        "Name one with --server"
        in command("anonymize", "swapmob", there / "cabs.csv", "-o", tmp_path / "o", "--detach").sentence
    )
