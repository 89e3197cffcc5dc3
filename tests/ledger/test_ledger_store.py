"""A ledger's folder: who can read it, what a kill leaves, and what tampering shows."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from examples import ALL

from crowdveil.errors import InputError, OutputError
from crowdveil.ledger.recording import verify_ledger
from crowdveil.ledger.store import LINES, Ledger, create_ledger

APPEND = """
import sys
from crowdveil.ledger.store import Ledger
ledger, times = Ledger(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
for i in range(times):
    with ledger.locked():
        ledger.append("refused", {"name": f"{sys.argv[3]}-{i}", "filler": "x" * 20000})
"""


def appending(folder: Path, times: int, name: str) -> subprocess.Popen[str]:
    """Start a process that appends lines, and wait until it is about to."""
    process = subprocess.Popen(
        [sys.executable, "-c", APPEND, str(folder), str(times), name], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_only_the_owner_can_read_a_ledger(tmp_path: Path) -> None:
    create_ledger(tmp_path / "ledger")
    for path in (tmp_path / "ledger", *(tmp_path / "ledger").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_an_existing_folder_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="new or empty"):
        create_ledger(tmp_path)
    with pytest.raises(InputError, match="crowdveil ledger init"):
        Ledger(tmp_path)


def test_a_killed_process_leaves_a_valid_ledger(tmp_path: Path) -> None:
    ledger = create_ledger(tmp_path / "ledger")
    waits = (0.0, 0.004, 0.011, 0.023) if ALL else (0.004, 0.011)
    for wait in waits:
        process = appending(ledger.folder, 10**6, "killed")
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        verify_ledger(ledger)
        with ledger.locked():
            ledger.append("refused", {"name": "after"})
    names = [line["name"] for line in ledger.lines()]
    assert names.count("after") == len(waits)


def test_half_a_line_is_no_line(tmp_path: Path) -> None:
    ledger = create_ledger(tmp_path / "ledger")
    with ledger.locked():
        ledger.append("refused", {"name": "whole"})
    with (ledger.folder / LINES).open("ab") as file:
        file.write(b'{"line": 2, "time": "20')
    (ledger.folder / "entries" / "7").mkdir()  # its line was never written
    assert len(ledger.lines()) == 1
    with ledger.locked():
        ledger.append("refused", {"name": "next"})
    assert [line["name"] for line in ledger.lines()] == ["whole", "next"]
    assert not any((ledger.folder / "entries").iterdir())


def test_two_processes_at_once_are_serialized(tmp_path: Path) -> None:
    ledger = create_ledger(tmp_path / "ledger")
    processes = [appending(ledger.folder, 15, name) for name in "ab"]
    assert [process.wait(60) for process in processes] == [0, 0]
    for process in processes:
        process.communicate()
    lines = ledger.lines()  # raises if the chain is broken
    assert sorted(line["name"] for line in lines) == sorted(f"{name}-{i}" for name in "ab" for i in range(15))


@pytest.mark.parametrize("change", ["edit", "remove", "swap", "add"])
def test_a_tampered_chain_is_seen(tmp_path: Path, change: str) -> None:
    ledger = create_ledger(tmp_path / "ledger")
    with ledger.locked():
        for i in range(4):
            ledger.append("refused", {"name": f"n{i}"})
    path = ledger.folder / LINES
    lines = path.read_text().splitlines()
    if change == "edit":
        lines[1] = json.dumps(json.loads(lines[1]) | {"name": "other"})
    elif change == "remove":
        del lines[1]
    elif change == "swap":
        lines[1], lines[2] = lines[2], lines[1]
    else:
        lines.append(json.dumps(json.loads(lines[3]) | {"line": 5}))
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="is damaged"):
        verify_ledger(ledger)


def test_lines_removed_at_the_end_show_by_the_last_hash(tmp_path: Path) -> None:
    ledger = create_ledger(tmp_path / "ledger")
    with ledger.locked():
        ledger.append("refused", {"name": "kept"})
        last = ledger.append("refused", {"name": "gone"})["hash"]
    assert verify_ledger(ledger, last)[1] == f"last hash: {last}"
    path = ledger.folder / LINES
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert verify_ledger(ledger)
    with pytest.raises(InputError, match="removed"):
        verify_ledger(ledger, last)
