"""A replacement that is killed at any step leaves the old or the new folder whole at its place, and the rest is cleaned up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from crowdveil.errors import OutputError
from crowdveil.io import atomic

KILLED = """
import json, os, shutil, signal, sys
from pathlib import Path
from crowdveil.io import atomic

here, of_file = Path(sys.argv[1]), sys.argv[2] == "file"

def dies_at(n):
    # Every change of the file system passes one of these; the process dies before the n-th of them.
    count = [0]
    def counted(function):
        def call(*args, **kwargs):
            count[0] += 1
            if count[0] == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)
        return call
    for name in ("mkdir", "rename", "replace", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    Path.write_text = counted(Path.write_text)  # between the files of a folder too

def replace(target, text):
    if of_file:
        with atomic.new_file(target, overwrite=True) as file:
            file.write_text(text)
        return
    with atomic.new_folder(target, overwrite=True, mark_file="m") as folder:
        (folder / "m").write_text(text)
        (folder / "data").write_text(text)

def whole(target):
    if of_file:
        return target.read_text() if target.exists() else None
    texts = {(target / name).read_text() for name in ("m", "data")} if target.exists() else {None}
    return texts.pop() if len(texts) == 1 else "mixed"

def killed(folder, step, work):
    # Whether a process that does the work in the folder was killed before a step.
    child = os.fork()
    if child == 0:
        try:
            dies_at(step)
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0

def recovered(state, copy, lost):
    # What is found after recoveries that are killed too, each at another step, and one more; the target may get lost between.
    found, step, died = [], 0, True
    while died:
        step += 1
        shutil.copytree(state, copy)
        died = killed(copy, step, lambda: atomic.recover(copy / "out"))
        if lost and (copy / "out").exists():
            shutil.rmtree(copy / "out") if (copy / "out").is_dir() else (copy / "out").unlink()
        atomic.recover(copy / "out")
        found.append([whole(copy / "out"), sorted(p.name for p in copy.iterdir())])
        shutil.rmtree(copy)
    return found

found, n, died = [], 0, True
while died:
    n += 1
    folder = here / str(n)
    folder.mkdir()
    (folder / "foreign").write_text("x")
    replace(folder / "out", "old")
    died = killed(folder, n, lambda: replace(folder / "out", "new"))
    again = [recovered(folder, here / "copy", lost) for lost in (False, True)]
    at_once = whole(folder / "out")
    atomic.recover(folder / "out")
    found.append([died, at_once, whole(folder / "out"), sorted(p.name for p in folder.iterdir()), *again])
print(json.dumps(found))
"""


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_kill_at_any_step_leaves_the_old_or_the_new_one(what: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), what], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    *killed, last = json.loads(ran.stdout)
    assert len(killed) > (2 if what == "file" else 6) and last[:3] == [False, "new", "new"]
    for _, at_once, recovered, names, twice, lost in killed:
        assert recovered in ("old", "new") and names == ["foreign", "out"]
        assert twice == [[recovered, names]] * len(twice), "a recovery that is killed leaves it to the next one"
        assert {whole for whole, _ in lost} <= {"old", "new", None}, (
            "what is partly removed is never taken for a whole one"
        )
        if what == "file":
            assert at_once in ("old", "new"), "there is a whole one at every moment"
    ends = [recovered for _, _, recovered, *_ in killed]
    assert ends == sorted(ends, reverse=True), "the new one stays once it is there"
    assert {"old", "new"} == set(ends) or what == "file"


def test_a_folder_that_was_moved_aside_is_taken_back_before_anything_is_looked_at(tmp_path: Path) -> None:
    process = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    left = tmp_path / f".out{atomic.MARK}-{atomic.socket.gethostname()}-{int(process.stdout)}{atomic.OLD}"
    left.mkdir()
    (left / "m").write_text("old")
    with pytest.raises(OutputError, match="exists"):
        atomic.check_target(tmp_path / "out", overwrite=False, mark_file="m")
    assert (tmp_path / "out" / "m").read_text() == "old" and not left.exists()


def test_what_this_process_writes_is_not_taken_for_a_leftover(tmp_path: Path) -> None:
    with atomic.new_folder(tmp_path / "out", overwrite=False, mark_file="m") as folder:
        (folder / "m").write_text("new")
        atomic.recover(tmp_path / "out")
        assert (folder / "m").exists()
        atomic.remove_unfinished()  # what a process does that ends at once
        assert not folder.exists()
        folder.mkdir()
