"""Comparisons and sweeps as jobs: the tables of Python, the words of the command line, and requests that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

import crowdveil
from crowdveil.cli import remote_jobs
from crowdveil.comparison import tables
from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.errors import CrowdveilError
from crowdveil.io.archive import pack
from crowdveil.progress import no_progress
from crowdveil.server.kinds import KINDS
from crowdveil.server.kinds.base import JobRequest, Task

ZONES = "abcd"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with trips between four zones."""
    monkeypatch.chdir(tmp_path)
    rows = (f"2024-03-04T0{7 + i % 3}:10:00,{ZONES[i % 4]},{ZONES[i * i % 3]},{i % 97}\n" for i in range(300))
    (tmp_path / "trips.csv").write_text("time,origin,destination,user\n" + "".join(rows))
    return tmp_path


def performed(verb: str, name: str, out: Path, **values: Any) -> JobRequest:
    """Run a job in this process, after the checks of its request."""
    kind, files = KINDS[verb], {"data": "trips.csv"}
    kind.checked(name, values, files)
    out.mkdir()
    return kind.run(Task(name, values, files, out, no_progress, lambda stage: None))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables alone: plots take seconds, and have tests of their own."""
    monkeypatch.setattr(tables, "_plots", lambda found: {})


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("k", [5, [3, 5]])
def test_a_comparison_is_that_of_python(here: Path, k: Any) -> None:
    methods = ["suppression", "suppression:include_empty=false"]
    ran = performed("compare", "flows", here / "out", methods=methods, k=k, sample=2)
    found = crowdveil.compare("trips.csv", methods, k=k, sample=2)
    written = pyarrow.csv.read_csv(here / "out" / "summary.csv")
    columns = [name for name in found.table.column_names if name not in ("seconds", "remark")]
    assert written.select(columns).to_pydict() == found.table.select(columns).to_pydict()
    assert ran.lines[-2:] == [found.caption(), CONFIDENTIAL]


@pytest.mark.slow
def test_the_result_has_tables_and_plots(here: Path) -> None:
    performed("compare", "flows", here / "out", methods=["suppression"], k=5)
    assert {"summary.csv", "compare.csv", "ratios.png"} <= {path.name for path in (here / "out").iterdir()}


@pytest.mark.usefixtures("undrawn")
def test_a_sweep_is_that_of_python(here: Path) -> None:
    ran = performed("sweep", "suppression", here / "out", k=[3, 5], vary={"include_empty": ["false"]})
    found = crowdveil.sweep("suppression", "trips.csv", k=[3, 5], vary={"include_empty": ["false"]})
    written = pyarrow.csv.read_csv(here / "out" / "sweep.csv")
    columns = [name for name in found.table.column_names if name not in ("seconds", "include_empty")]
    assert written.select(columns).to_pydict() == found.table.select(columns).to_pydict()
    assert found.recommendation() in ran.lines and ran.lines[-1] == CONFIDENTIAL


class InProcess:
    """A server that runs jobs in this process, from what a command sends."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.job, self.sent = folder, dict[str, Any](), dict[str, Any]()

    def start(self, room: str, name: str, parameters: Any, files: Any, progress: Any) -> dict[str, Any]:
        kind = next(kind for kind in KINDS.values() if kind.collection == room)
        self.sent = sent = json.loads(json.dumps(parameters))
        named = {field: str(path) for field, path in files.items()}
        kind.checked(name, sent, named)
        (self.folder / "made").mkdir()
        ran = kind.run(Task(name, sent, named, self.folder / "made", no_progress, lambda stage: None))
        self.job = {"id": "0", "summary": {"notes": ran.notes, "lines": ran.lines}}
        return self.job

    def follow(self, job: str, progress: Any, stage: Any) -> dict[str, Any]:
        return self.job

    def fetch(self, job: dict[str, Any], result: Path, progress: Any) -> None:
        pack(self.folder / "made", result)


ALIKE = {
    "compare": ["compare", "trips.csv", "--methods", "suppression,suppression:include_empty=false", "-k", "3,5", "--sample", "2"],
    "varied": ["compare", "trips.csv", "--methods", "suppression", "--vary", "include_empty=true,false", "--measures", "S,E"],
    "sweep": ["sweep", "suppression:include_empty=false", "trips.csv", "--k", "3,5", "--step", "1d"],
}  # fmt: skip


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("case", ALIKE)
def test_the_command_on_a_server_is_that_of_here(
    case: str, here: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = InProcess(here)
    monkeypatch.setattr(remote_jobs, "remote", lambda url: server)
    line = ALIKE[case]
    ran, sent = command(*line, "-o", "local"), command(*line, "-o", "fetched", "--server", "https://x.example")
    assert (ran.code, sent.code) == (0, 0), sent.err
    assert sent.err == ran.err and "change the number with --sample" in ran.err
    assert server.sent.get("method_parameters") == ({"include_empty": "false"} if case == "sweep" else None)
    name = f"{'sweep' if case == 'sweep' else 'summary'}.csv"
    made, fetched = (pyarrow.csv.read_csv(here / folder / name) for folder in ("local", "fetched"))
    assert made.drop_columns("seconds").equals(fetched.drop_columns("seconds"))
    words = [[text for text in run.out.split() if not text[0].isdigit()] for run in (ran, sent)]
    assert words[0] == [text.replace("fetched", "local") for text in words[1]]


REFUSED = {
    "methods for other data": ("compare", "flows", {"methods": ["swapmob"]}, "wanted methods for flows"),
    "both kinds": ("compare", "flows", {"methods": ["joint", "swapmob"]}, "compare them in two runs"),
    "no method": ("compare", "flows", {"methods": ["nothing"]}, "nothing"),
    "k of one": ("compare", "flows", {"k": [5, 1]}, "at least 2"),
    "no k": ("compare", "flows", {"k": []}, "1 to 50"),
    "a misspelled measure": ("compare", "flows", {"measures": ["rmsee"]}, "rmsee"),
    "a parameter of none": ("compare", "flows", {"methods": ["joint"], "vary": {"radius": [1]}}, "radius"),
    "a path": ("compare", "flows", {"zones": "/etc/passwd"}, "upload the file"),
    "k is no parameter": ("sweep", "joint", {"method_parameters": {"k": 3}}, "k is swept"),
    "a method without it": ("sweep", "joint", {"method_parameters": {"radius": 3}}, "radius"),
    "no budget": ("sweep", "suppression", {"suppress": ["5%"]}, "has no budget"),
    "k is varied": ("sweep", "joint", {"vary": {"k": [3]}}, "other than k"),
    "a number of trips": ("sweep", "microaggregation", {"suppress_trips": [3]}, "no such parameter"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_means_nothing_is_refused_before_a_file_is_read(case: str) -> None:
    verb, name, values, words = REFUSED[case]
    with pytest.raises(CrowdveilError, match=words):
        KINDS[verb].checked(name, values, {"data": "missing.csv"})


@pytest.mark.parametrize(
    "line",
    [
        ["sweep", "suppression", "trips.csv", "--k", "x"],
        ["sweep", "suppression", "trips.csv", "--k", ""],
        ["sweep", "joint", "trips.csv", "--suppress-trips", "a"],
        ["sweep", "microaggregation", "trips.csv", "--k", "x"],
        ["compare", "trips.csv", "--methods", "suppression", "--measures", "nothing"],
        ["compare", "trips.csv", "--methods", "suppression", "--sample", "0"],
    ],
)
def test_the_sentence_on_a_server_is_that_of_here(
    line: list[str], here: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_jobs, "remote", lambda url: InProcess(here))
    local, remote = command(*line), command(*line, "--server", "https://x.example")
    assert (remote.code, remote.sentence) == (local.code, local.sentence) and local.code == 2


def test_a_server_compares_one_input(here: Path, command: Any) -> None:
    for more in (["trips.csv"], ["--grids", "1km,2km"]):
        ran = command("compare", "trips.csv", *more, "--methods", "suppression", "--server", "https://x.example")
        assert ran.code == 2 and "a server compares one input" in ran.sentence
    ran = command("sweep", "joint", "trips.csv", "--detach")
    assert ran.code == 2 and "name it with --server" in ran.sentence


def test_every_name_has_a_schema() -> None:
    for verb in ("compare", "sweep"):
        kind = KINDS[verb]
        assert all(kind.find(name) == name and "k" in kind.schema(name)["properties"] for name in kind.names())
        with pytest.raises(CrowdveilError):
            kind.find("nothing")
