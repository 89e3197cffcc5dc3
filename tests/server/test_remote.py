"""The same command here and on a server: the same bytes, the same words, the same errors."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import crowdveil
from conftest import Ran
from crowdveil.remote import Remote
from serving import Running, cabs, ended, put

Command = Callable[..., Ran]


@pytest.fixture(scope="session")
def there(tmp_path_factory: pytest.TempPathFactory, running: Running) -> Path:
    """Data of one city: trips, zones and trajectories."""
    folder = tmp_path_factory.mktemp("city")
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
    """The token of somebody, as they would set it."""
    monkeypatch.setenv("CROWDVEIL_TOKEN", running.tokens["anna"])
    return running


def contents(folder: Path) -> dict[str, object]:
    """The files of a release; all that may differ is when it was made."""
    found: dict[str, object] = {p.name: p.read_bytes() for p in folder.iterdir()}
    manifest = json.loads((folder / "manifest.json").read_text())
    return found | {"manifest.json": {n: v for n, v in manifest.items() if n != "created"}}


CASES = {
    "trajectories": ("swapmob", "cabs.csv", {"seed": 5}, ()),
    "flows": ("joint", "trips.csv", {"seed": 5, "k": 3, "suppress": "20%"}, ("zones",)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_same_bytes_by_every_door(
    case: str, form: str, there: Path, tmp_path: Path, on_server: Running, command: Command
) -> None:
    method, data, values, maps = CASES[case]
    zones = {name: str(there / f"{name}.geojson") for name in maps}
    crowdveil.anonymize(method, there / data, tmp_path / "python", table_format=form, **values, **zones)  # type: ignore[arg-type]
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
    assert wanted == contents(tmp_path / "here") == contents(tmp_path / "remote") == contents(tmp_path / "http")


def test_filter_measure_and_analyses_there_as_here(
    there: Path, tmp_path: Path, on_server: Running, command: Command
) -> None:
    zones = ["--zones", there / "zones.geojson"]
    release = tmp_path / "out"
    assert command("anonymize", "joint", there / "trips.csv", *zones, "--k", "3", "-o", release).code == 0
    for name, line, ending in (
        ("filter", ["filter", there / "cabs.csv", "--max-speed", "40", "--min-locations", "2"], ".csv"),
        ("filter", ["filter", there / "cabs.csv", "--bbox", "-123,37,-122,38"], ".parquet"),
        ("measure", ["measure", there / "trips.csv", release, *zones], ".csv"),
        ("measure", ["measure", there / "trips.csv", release, *zones, "--measures", "E,D"], ".parquet"),
        ("profiles", ["profiles", release, *zones], ".json"),
        ("reconstruct", ["reconstruct", release, *zones, "--over", "day"], ".csv"),
    ):
        here, remote = tmp_path / f"here{ending}", tmp_path / f"remote{ending}"
        ran = command(*line, "-o", here, "--overwrite")
        sent = command(*line, "-o", remote, "--overwrite", "--server", on_server.url)
        assert (ran.code, sent.code) == (0, 0), (name, ran.err, sent.err)
        assert sent.out == ran.out.replace(str(here), str(remote)) and sent.err == ran.err, name
        assert here.read_bytes() == remote.read_bytes(), name
    ran = command("measure", there / "trips.csv", release, *zones, "--json")
    assert command("measure", there / "trips.csv", release, *zones, "--json", "--server", on_server.url).out == ran.out


@pytest.mark.parametrize(
    "line",
    [
        ["anonymize", "microaggregation", "{there}/cabs.csv", "--k", "1", "-o", "{out}"],
        ["anonymize", "microaggregation", "{there}/cabs.csv", "--k", "100", "-o", "{out}"],
        ["anonymize", "joint", "{there}/trips.csv", "-o", "{out}"],
        ["anonymize", "joint", "{there}/trips.csv", "--zones", "{there}/trips.csv", "-o", "{out}"],
        ["anonymize", "joint", "{there}/nothing.csv", "-o", "{out}"],
        ["anonymize", "swapmob", "{there}/trips.csv", "-o", "{out}"],
        ["anonymize", "swapmob", "{there}/cabs.csv", "-o", "{there}"],
        ["filter", "{there}/cabs.csv", "--max-speed", "0", "-o", "{out}.csv"],
        ["filter", "{there}/trips.csv", "--max-speed", "9", "-o", "{out}.csv"],
        ["filter", "{there}/cabs.csv", "--max-speed", "9", "-o", "{out}.exe"],
        ["measure", "{there}/cabs.csv", "{there}"],
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


def test_detached_and_fetched_later(there: Path, tmp_path: Path, on_server: Running, command: Command) -> None:
    at = ["--server", on_server.url]
    left = command("anonymize", "swapmob", there / "cabs.csv", "-o", tmp_path / "x", "--detach", *at)
    job = left.out.strip()
    assert left.code == 0 and len(job) == 32 and not (tmp_path / "x").exists()
    assert "crowdveil task" in left.err
    got = command("task", job, "-o", tmp_path / "out", *at)
    assert got.code == 0 and got.out.startswith(f"{tmp_path / 'out'}: verified and written"), got.err
    assert command("verify", tmp_path / "out").code == 0
    assert command("task", job, *at).out.startswith(f"{job}: done (anonymize swapmob)")
    assert command("task", job, "--cancel", *at).out == f"{job}: expired\n"
    assert command("task", job, "-o", tmp_path / "again", *at).sentence.endswith("is expired; there is no result.")
    assert command("task", "0" * 32, *at).sentence == "crowdveil: there is no such job."
    assert command("task", "../jobs", *at).sentence.startswith("crowdveil: task: wanted the id of a job")


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
    assert got.code == 0 and Path(f"{answer['task_id']}.csv").read_text().startswith("lat,lon")
    assert json.loads(command("get-task", "-t", "0" * 32).out)["status"] == "NOT_AVAILABLE"
    run = {"input_filename": str(there / "cabs.csv"), "methods": [{"min_locations": 5}]}
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
    assert "not known, or it was revoked" in command(*line).sentence
    monkeypatch.delenv("CROWDVEIL_TOKEN")
    assert "wanted a token" in command(*line).sentence


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://127.0.0.1:9", "the server does not answer"),
        ("http://crowdveil.example.org", "data must not be sent over http://"),
        ("ftp://x", "wanted an address such as"),
        ("nonsense", "wanted an address such as"),
    ],
)
def test_servers_that_cannot_be_used(url: str, sentence: str, there: Path, tmp_path: Path, command: Command) -> None:
    ran = command("anonymize", "swapmob", there / "cabs.csv", "-o", tmp_path / "out", "--server", url)
    assert ran.code == 2 and sentence in ran.sentence


def test_a_token_is_not_shown_by_accident() -> None:
    assert "secret" not in repr(Remote("http://127.0.0.1:1", "secret"))


def test_detach_needs_a_server(there: Path, tmp_path: Path, command: Command) -> None:
    assert (
        "name it with --server"
        in command("anonymize", "swapmob", there / "cabs.csv", "-o", tmp_path / "o", "--detach").sentence
    )
