"""Python, the command line and a job give the same files, for every verb that a server runs."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crowdveil
from conftest import Ran
from crowdveil.run.filters import filter_file, filters_of
from crowdveil.server.workers import job
from crowdveil.verbs.analyze import analyze
from crowdveil.verbs.table import VERBS

Python = Callable[[dict[str, Path], Path, dict[str, Any]], Any]
CASES: dict[str, tuple[str, dict[str, str], dict[str, Any], str, Python]] = {
    "anonymize": (
        "suppression", {"data": "trips.csv"}, {"k": 3, "zones": "zones.csv", "seed": 5, "report": False}, "",
        lambda files, out, values: crowdveil.anonymize(files["data"], out, method="suppression", **values),
    ),
    "measure": (
        "all", {"original": "trips.csv", "release": "flows"}, {"measures": "E,D", "zones": "zones.csv"}, ".csv",
        lambda files, out, values: crowdveil.measure(
            files["original"], files["release"], values["measures"].split(","), out, zones=values["zones"]
        ),
    ),
    "analyze": (
        "reconstruct", {"release": "flows"}, {"over": "day"}, ".csv",
        lambda files, out, values: analyze("reconstruct", files["release"], out, **values),
    ),
    "attack": (
        "homogeneity", {"data": "flows"}, {}, ".json",
        lambda files, out, values: crowdveil.attack("homogeneity", files["data"], output=out, **values),
    ),
    "filter": (
        "trajectories", {"data": "cabs.csv"}, {"filters": [{"min_locations": 3}]}, ".csv",
        lambda files, out, values: filter_file(files["data"], out, filters_of(values["filters"])),
    ),
}  # fmt: skip
"""By verb: what is run, files by role, parameters, the ending of the result, and the call in Python."""


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with trips, zones, trajectories, and a release of the trips."""
    folder = tmp_path_factory.mktemp("city")
    rows = [f"2024-03-04T0{7 + i % 3}:1{i % 6}:00,{'abcd'[i % 4]},{'abcd'[i * i % 3]},{i % 97}" for i in range(600)]
    (folder / "trips.csv").write_text("\n".join(["time,origin,destination,user", *rows, ""]))
    (folder / "zones.csv").write_text("zone_id,lon,lat\n" + "".join(f"{z},0.0{i},0.01\n" for i, z in enumerate("abcd")))
    points = [f"{48 + 0.001 * i},{2 + 0.001 * j},{60 * j},{i}" for i in range(9) for j in range(2 + i % 3)]
    (folder / "cabs.csv").write_text("\n".join(["lat,lon,timestamp,trajectory_id", *points, ""]))
    zones = folder / "zones.csv"
    crowdveil.anonymize(folder / "trips.csv", folder / "flows", method="suppression", zones=zones, k=3, report=False)
    return folder


def _bytes(place: Path) -> dict[str, Any]:
    """Return the content of a result; a manifest without the time at which it was made."""
    if not place.is_dir():
        return {"": place.read_bytes()}
    found: dict[str, Any] = {path.name: path.read_bytes() for path in place.iterdir()}
    if "manifest.json" in found:
        found["manifest.json"] = re.sub(b'"created": "[^"]*"', b"", found["manifest.json"])
    return found


def _as_job(verb: str, folder: Path, scratch: Path, ending: str) -> dict[str, Any]:
    """Run a case as the service does, and return the content of its result."""
    name, files, values, _, _ = CASES[verb]
    uploaded = {option: value for option, value in values.items() if option == "zones"} | files
    given = {option: value for option, value in values.items() if option != "zones"}
    if "measures" in given:
        given["measures"] = given["measures"].split(",")
    if ending:
        given["format"] = ending[1:]
    VERBS[verb].checked(name, given, uploaded)
    (scratch / "run").mkdir()
    asked = {"kind": verb, "name": name, "parameters": given, "limits": {}, "ledger": None}
    result = job.work(asked | {"files": uploaded, "inputs": str(folder), "run": str(scratch / "run")})
    made = scratch / "run" / result["name"]
    if not ending:
        zipfile.ZipFile(made).extractall(scratch / "unpacked")
        made = scratch / "unpacked"
    return _bytes(made)


def test_every_verb_of_a_server_has_a_case() -> None:
    assert CASES.keys() == VERBS.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", CASES)
def test_python_command_line_and_job_give_the_same(
    verb: str, city: Path, tmp_path: Path, command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(city)
    name, files, values, ending, python = CASES[verb]
    python({role: Path(file) for role, file in files.items()}, tmp_path / f"python{ending}", values)
    options = [word for option, value in values.items() if option != "filters" for word in _words(option, value)]
    options += [
        word for each in values.get("filters", []) for option, value in each.items() for word in _words(option, value)
    ]
    names = [name] if VERBS[verb].group else []
    ran = command(verb, *names, *files.values(), *options, "-o", tmp_path / f"command{ending}")
    assert ran.code == 0, ran.err
    expected = _bytes(tmp_path / f"python{ending}")
    assert expected and _bytes(tmp_path / f"command{ending}") == expected
    assert _as_job(verb, city, tmp_path, ending) == expected


def _words(option: str, value: Any) -> list[str]:
    """Return a parameter as words of a command line."""
    name = option.replace("_", "-")
    return [f"--no-{name}" if value is False else f"--{name}", *([] if isinstance(value, bool) else [str(value)])]
