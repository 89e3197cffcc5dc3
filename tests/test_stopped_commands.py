"""Commands on a full disk, interrupted or killed leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_input import (
    POINTS,
    TRIPS,
    ZONES,
    Command,
    anonymized,
    edited,
    released,
)
from examples import slow_param

from conftest import Ran


@pytest.mark.parametrize("file", ["points.csv", slow_param("nowhere.csv")])
def test_the_installed_command_does_the_same(
    file: str, here: Path, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    (here / "points.csv").write_text(edited(POINTS, 2, 0, "north"))
    process = spawn(*anonymized(file))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert file in Ran(2, out, err).sentence
    assert out == ""
    assert [p.name for p in here.iterdir()] == ["points.csv"]


def many_trips(rows: int) -> str:
    numbers = np.arange(rows)
    lines = [f"z{a},z{b},2024-05-06 08:00:00" for a, b in zip(numbers % 97, numbers % 89, strict=True)]
    return "origin,destination,departure\n" + "\n".join(lines) + "\n"


ON_A_FULL_DISK = [
    ("anonymize", "suppression", "trips.csv", "--k", "2", "-o", "new/out"),
    ("anonymize", "suppression", "trips.csv", "--k", "2", "--format", "csv", "-o", "out"),
    ("flows", "trips.csv", "-o", "new/out.parquet"),
    ("flows", "trips.csv", "-o", "out.csv"),
    ("flows", "trips.csv", "-o", "out.omx"),
]
FULL_DISK = """
import contextlib, io, json, os, resource, signal, sys
from crowdveil.cli.main import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main()
        except SystemExit as stop:
            code = stop.code
    print(json.dumps([code, out.getvalue(), err.getvalue(), sorted(os.listdir())]))
"""


def test_a_full_disk_leaves_nothing(here: Path) -> None:
    """One process runs all commands, since most of the time of a command is its start."""
    (here / "trips.csv").write_text(many_trips(40_000))
    process = subprocess.run(
        [sys.executable, "-c", FULL_DISK, json.dumps(ON_A_FULL_DISK)], capture_output=True, text=True, timeout=240,
        # Python would leave truncated bytecode of the package.
        env={**os.environ, "PYTHONWARNINGS": "error::RuntimeWarning", "PYTHONDONTWRITEBYTECODE": "1"}, check=True,
    )  # fmt: skip
    found = [json.loads(line) for line in process.stdout.splitlines()]
    assert process.stderr == "" and len(found) == len(ON_A_FULL_DISK)
    for arguments, (code, out, err, left) in zip(ON_A_FULL_DISK, found, strict=True):
        assert code == 2, err
        sentence = Ran(code, out, err).sentence
        assert "full" in sentence
        assert arguments[-1] in sentence
        assert left == ["trips.csv"], arguments


HALF_WRITTEN = """
import time
from crowdveil.run import local
from crowdveil.cli.main import main
write = local.write_release
def slowly(release, folder, *more):
    files = write(release, folder, *more)
    print("half way", flush=True)
    time.sleep(60)
    return files
local.write_release = slowly
main()
"""
HALF_READ = """
import time
from crowdveil.cli.main import main
from crowdveil.io.od_rows import OdReader
batches = OdReader.batches
def endlessly(self):
    first = next(batches(self))
    yield first
    print("half way", flush=True)
    while True:
        time.sleep(0.01)
        yield first
OdReader.batches = endlessly
main()
"""
HALF_GROUPED = """
from crowdveil.cli.main import main
from crowdveil.io import od_grouping
def endless(*given):
    print("half way", flush=True)
    return "SELECT max(hash(range)) AS step, 'a' AS o, 'b' AS d, 1 AS trips FROM range(1000000000000)"
od_grouping.group_sql = endless
main()
"""


def stopped(here: Path, script: str, number: int, *args: str) -> tuple[int, str]:
    """Start a run, wait until it is half way, and send it a signal."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "half way\n", process.communicate()[1]
    if script == HALF_WRITTEN:
        assert any(p.name.startswith(".out") for p in here.iterdir()), (
            "the partial output is written next to the target"
        )
    if script == HALF_GROUPED:
        time.sleep(0.5)  # until the engine has begun
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize("number", [slow_param(signal.SIGINT), signal.SIGTERM])
def test_a_run_that_is_stopped_while_writing_leaves_nothing(number: int, here: Path) -> None:
    (here / "points.csv").write_text(POINTS)
    code, err = stopped(here, HALF_WRITTEN, number, *anonymized("points.csv"))
    assert code == 128 + number, err
    assert "Stopped" in Ran(code, "", err).sentence
    assert [p.name for p in here.iterdir()] == ["points.csv"]


@pytest.mark.parametrize("number", [signal.SIGINT, slow_param(signal.SIGTERM)])
def test_a_run_that_is_stopped_while_reading_says_so(number: int, here: Path) -> None:
    (here / "trips.csv").write_text(TRIPS)
    code, err = stopped(here, HALF_READ, number, *anonymized("trips.csv"))
    assert code == 128 + number, err
    assert "Stopped" in Ran(code, "", err).sentence
    assert [p.name for p in here.iterdir()] == ["trips.csv"]


@pytest.mark.parametrize("number", [signal.SIGINT, slow_param(signal.SIGTERM)])
def test_a_run_that_is_stopped_while_grouping_says_so(number: int, here: Path) -> None:
    columns = {"origin": ["Zurbano", "Ymirstad"], "destination": ["Ymirstad", "Zurbano"]}
    pq.write_table(pa.table(columns), here / "trips.parquet")
    (here / "zones.geojson").write_text(ZONES)
    code, err = stopped(here, HALF_GROUPED, number, *anonymized("trips.parquet", "--zones", "zones.geojson"))
    assert code == 128 + number, err
    assert "Stopped" in Ran(code, "", err).sentence
    assert sorted(p.name for p in here.iterdir()) == ["trips.parquet", "zones.geojson"]


def test_what_a_killed_run_leaves_is_swept_away_by_the_next(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    code, _ = stopped(here, HALF_WRITTEN, signal.SIGKILL, *anonymized("points.csv"))
    assert code == -signal.SIGKILL
    left = sorted(p.name for p in here.iterdir())
    assert "out" not in left
    assert len(left) == 2, "a hidden folder is left behind"
    released(command, *anonymized("points.csv"))
    assert sorted(p.name for p in here.iterdir()) == ["out", "points.csv"]
