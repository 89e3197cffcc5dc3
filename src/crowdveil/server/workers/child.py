"""One run of a job, in a process of its own: it reads the job's inputs, writes to the run's folder, and reports to its
worker by a pipe. It knows nothing of the database, and publishes nothing.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdveil.errors import NO_MEMORY, TOO_DEEP, CrowdveilError, internal_error
from crowdveil.io.archive import pack, unpack
from crowdveil.kernels import cached
from crowdveil.server.kinds import KINDS
from crowdveil.server.kinds.base import JobRequest, Task
from crowdveil.server.queue.files import sync_file
from crowdveil.server.sentences import without_paths
from crowdveil.server.workers.process import bounds_of, check_rows, die_with_parent
from crowdveil.server.workers.sandbox.confine import close_inherited, confine

REPORT_EVERY_S = 0.2
SUMMARY = "summary.json"
TEMPORARY = "tmp"
"""The temporary folder of a run, in the run's folder: it goes with it, however the run ends."""
_TYPES = {
    ".zip": "application/zip",
    ".json": "application/json",
    ".csv": "text/csv",
    ".png": "image/png",
    ".html": "text/html",
    ".geojson": "application/geo+json",
}


@dataclass(frozen=True)
class Order:
    """The order of a child: its lease, the folders of its inputs, its run and its ledger, and the bytes that it may hold."""

    kind: str
    name: str
    parameters: dict[str, Any]
    files: dict[str, str]
    limits: dict[str, Any]
    lease: str
    inputs: str
    run: str
    memory: int | None
    ledger: str | None = None


@dataclass(frozen=True)
class Confinement:
    """What a child is confined to beyond its job's own limits.

    Attributes
    ----------
    memory
        Bytes that it may hold.
    tasks
        Tasks that its user may have.
    read
        Folders that it may read besides the installation: compiled kernels.
    """

    memory: int | None = None
    tasks: int | None = None
    read: tuple[Path, ...] = ()


def be_child(order: Order, pipe: int, parent: int, confinement: Confinement | None) -> None:
    """Run a job and leave. Called right after the fork; never returns. Without `confinement` it is not confined, for tests."""
    try:
        os.setsid()  # a group of its own, so that all of it can be ended at once
        die_with_parent(parent)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        # What libraries print may hold data, so it goes nowhere.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        gc.freeze()
        try:
            _enter(order, pipe, confinement)
        except OSError:
            sentence = "the server could not confine the job, so it was not run; ask the operator of the server."
            _say(pipe, _failure("no_sandbox", sentence))
        else:
            end = _outcome(order, pipe)
            _say(pipe, {"compiled": cached.missed()})
            _say(pipe, end)
    finally:
        os._exit(0)


def _enter(order: Order, pipe: int, confinement: Confinement | None) -> None:
    """Confine this process to its job, and stand in the folder of its inputs."""
    inputs, run = Path(order.inputs), Path(order.run)
    temporary = run / TEMPORARY
    temporary.mkdir(mode=0o700)
    close_inherited(pipe)
    if confinement is None:
        tempfile.tempdir = str(temporary)
    else:
        bounds = bounds_of(order.limits, confinement.memory, confinement.tasks)
        ledger = () if order.ledger is None else (Path(order.ledger),)
        confine((inputs, run, *ledger), temporary, bounds, read=confinement.read)
    os.chdir(inputs)


def _outcome(order: Order, pipe: int) -> dict[str, Any]:
    try:
        result = perform(order, *_reporters(pipe))
        return {"end": "done", "result": result | {"lease": order.lease}}
    except CrowdveilError as error:
        return _failure(error.code, error.text)
    except RecursionError:
        return _failure("bad_input", TOO_DEEP)
    except MemoryError:
        return _failure("no_memory", NO_MEMORY)
    except BaseException as error:
        return _failure("fault", internal_error(error))


def _failure(code: str, message: str) -> dict[str, Any]:
    return {"end": "failed", "code": code, "message": message}


def perform(order: Order, progress: Any, stage: Any) -> dict[str, Any]:
    """Run a job in the current folder, which holds its inputs; what the result is."""
    kind, run = KINDS[order.kind], Path(order.run)
    files = _opened(order)
    ledger = None if order.ledger is None else Path(order.ledger)
    # The ledger names a release by its folder; that of a job has the id of the job.
    out = run / ("out" if ledger is None else run.parent.name)
    out.mkdir()
    output = kind.run(Task(order.name, order.parameters, files, out, progress, stage, ledger))
    stage("packing")
    return _packed(out, run, output, "release.zip" if kind.packed else f"{order.name}.zip", packed=kind.packed)


def _opened(order: Order) -> dict[str, str]:
    """Files as a run takes them: within the limits, and a zip file of a release as a folder."""
    files = dict(order.files)
    for field, name in order.files.items():
        if name.lower().endswith(".zip"):
            folder = f"{field}-unpacked" if Path(field).exists() else field
            if not Path(folder).exists():  # an earlier run may have been here
                unpack(Path(name), Path(folder + ".part"), order.limits.get("upload_bytes", 1 << 40), name)
                Path(folder + ".part").rename(folder)
            files[field] = folder
    for path in Path().rglob("*"):
        check_rows(path, order.limits)
    return files


def _packed(out: Path, run: Path, output: JobRequest, archive: str, *, packed: bool) -> dict[str, Any]:
    made = sorted(p for p in out.iterdir() if p.is_file())
    if packed or len(made) != 1:
        result = run / archive
        pack(out, result)
        for path in made:
            path.unlink()
    else:
        result = run / made[0].name
        shutil.move(made[0], result)  # the first version of Landlock lets nothing be renamed into another folder
    out.rmdir()
    summary = {name: [without_paths(text) for text in texts] for name, texts in vars(output).items()}
    (run / SUMMARY).write_text(json.dumps(summary), encoding="utf-8")
    sync_file(run / SUMMARY)
    sync_file(result)
    with result.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "name": result.name,
        "bytes": result.stat().st_size,
        "sha256": digest,
        "media_type": _TYPES.get(result.suffix, "application/octet-stream"),
    }


def _reporters(pipe: int) -> tuple[Callable[[int, int], None], Callable[[str], None]]:
    """Return functions that report progress, now and then, and the stage."""
    last = [0.0]

    def progress(done: int, total: int) -> None:
        now = time.monotonic()
        if now - last[0] >= REPORT_EVERY_S or done >= total:
            last[0] = now
            _say(pipe, {"done": int(done), "total": int(total)})

    def stage(name: str) -> None:
        _say(pipe, {"stage": name, "done": 0, "total": 0})

    return progress, stage


def _say(pipe: int, what: dict[str, Any]) -> None:
    line = json.dumps(what).encode() + b"\n"
    while line:
        line = line[os.write(pipe, line) :]
