"""Commands end soon after a signal, also while compiled code computes, and leave nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from examples import slow_param

BUSY = """
import sys, tempfile
from pathlib import Path
from crowdveil.cli import main as cli
from crowdveil.engine import apart
from crowdveil.io.atomic import new_folder, scratch_folder
import numba

@numba.njit(nogil=True)  # as all kernels are
def endless(start):
    # Stands for a method that is in one kernel for minutes.
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
        apart(lambda: endless(1))

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
    assert process.returncode in (-number, 128 + number), "ended by the signal, or before the kernel began"
    assert err == "crowdveil: Stopped; nothing was written.\n"
    assert (tmp_path / "out" / "m").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "scratch"]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_an_interrupt_that_compiled_code_turns_into_an_error_is_still_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from crowdveil.cli import main

    def broken(**_: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise SystemError("returned a result with an exception set") from interrupt

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(main.cli, "main", broken)
    with pytest.raises(SystemExit) as stopped:
        main.main()
    assert stopped.value.code == 130 and capsys.readouterr().err == "crowdveil: Stopped; nothing was written.\n"
    assert signal.getsignal(signal.SIGTERM) is before


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
    assert done.stderr == "crowdveil: Cannot write the output: the disk is full. Free space, or redirect the output.\n"
