"""Commands end soon after a signal, also while compiled code computes, and leave nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from examples import slow_param

from crowdveil.cli import stopping
from crowdveil.interrupts import interrupted

BUSY = """
import sys, tempfile
from pathlib import Path
from crowdveil.cli import main as cli, stopping
from crowdveil.io.atomic import new_folder, scratch_folder
import numba

stopping.GRACE_S = 0.05

@numba.njit(nogil=True)  # as all kernels are
def endless(start):
    # Stands for a method that is in one kernel for minutes: Python cannot act on a signal meanwhile.
    value = start
    while value >= 0:
        value = (value * 5 + 1) % 1000003
    return value

def busy():
    endless.compile("(int64,)")
    out, scratch = Path(sys.argv[1]), sys.argv[2]
    tempfile.tempdir = scratch
    with scratch_folder() as folder, new_folder(out, overwrite=True, mark_file="m") as half:
        (half / "m").write_text("half")
        (Path(folder) / "spilled").write_text("rows")
        print("half way", flush=True)
        endless(1)

cli.cli.main = lambda **_: busy()
cli.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, slow_param(signal.SIGTERM)])
def test_a_command_in_compiled_code_ends_and_leaves_nothing(number: int, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "m").write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, str(tmp_path / "out"), str(tmp_path / "scratch")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "half way\n", process.communicate()[1]
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()  # it would go on for ever where the signal does not end it
    assert (process.returncode, err) == (128 + number, "crowdveil: Stopped; nothing was written.\n")
    assert (tmp_path / "out" / "m").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "scratch"]
    assert list((tmp_path / "scratch").iterdir()) == []


def _ended_by(watch: stopping.Watch, *numbers: int) -> list[tuple[int, str]]:
    """What a watch ends the process with that hears of signals."""
    ended: list[tuple[int, str]] = []
    reading, writing = os.pipe()
    os.write(writing, bytes(numbers))
    os.close(writing)
    watch.wait(reading, lambda code, sentence: ended.append((code, sentence)))
    os.close(reading)
    return ended


def test_a_command_that_ends_by_itself_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "GRACE_S", 0.0)
    before = signal.getsignal(signal.SIGTERM)
    with stopping.prompt_stop() as watch:
        other = stopping.Watch()
        assert _ended_by(other, signal.SIGTERM) == [], "another has the signal"
        signal.signal(signal.SIGTERM, other.terminated)
        assert _ended_by(other, signal.SIGCHLD) == []
        assert _ended_by(other, signal.SIGTERM) == [(143, stopping.SENTENCE)]
        assert _ended_by(other, signal.SIGINT) == [(130, stopping.SENTENCE)]
        other.ended.set()
        assert _ended_by(other, signal.SIGINT) == []
        assert watch.code == 130
    signal.signal(signal.SIGTERM, before)
    assert not any(thread.name == "crowdveil-stop" for thread in threading.enumerate())
    assert signal.set_wakeup_fd(-1) == -1


def test_an_interrupt_that_compiled_code_turns_into_an_error_is_still_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from crowdveil.cli import main

    def broken(**_: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise SystemError("returned a result with an exception set") from interrupt

    monkeypatch.setattr(main.cli, "main", broken)
    with pytest.raises(SystemExit) as stopped:
        main.main()
    assert stopped.value.code == 130 and capsys.readouterr().err == "crowdveil: Stopped; nothing was written.\n"
    assert not interrupted(ValueError("of another cause"))


ENDING = """
import atexit, os, sys, threading
from crowdveil.cli import main as cli

class Kept:
    def __del__(self, write=os.write):
        write(1, b"freed ")

kept = Kept()
atexit.register(print, "registered")
cli.main = lambda: print("done")
{more}
cli.run()
"""
IN_THE_USUAL_WAY = ["done", "registered", "freed"]


@pytest.mark.parametrize(
    ("more", "printed"),
    [
        ("", ["done", "registered"]),
        ("sys.setprofile(lambda *_: None)", IN_THE_USUAL_WAY),
        ("sys.settrace(lambda *_: None)", IN_THE_USUAL_WAY),
        ("sys.modules['pyspark'] = sys", IN_THE_USUAL_WAY),
        ("threading.Thread(target=threading.main_thread().join).start()", IN_THE_USUAL_WAY),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", ["done", "registered"]),
    ],
)
def test_a_command_that_worked_ends_without_freeing_objects(more: str, printed: list[str]) -> None:
    code = ENDING.format(more=more)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ended.stdout.split(), ended.stderr) == (printed, "")


def test_a_profile_of_a_command_is_written() -> None:
    command = [sys.executable, "-m", "cProfile", "-m", "crowdveil", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("crowdveil ") and "function calls" in shown


def test_an_error_keeps_its_exit_code_where_commands_end_quickly() -> None:
    ended = subprocess.run([sys.executable, "-m", "crowdveil", "anonymize", "joint"], capture_output=True, text=True)
    assert ended.returncode == 2 and "Missing argument" in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_output_to_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "crowdveil", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == (
        "crowdveil: What is printed cannot be written: its disk is full; free space, or send it elsewhere.\n"
    )
