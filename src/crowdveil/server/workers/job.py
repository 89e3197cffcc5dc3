"""Run one job in a sandboxed process: read its inputs, write to the run's folder, and report progress there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crowdveil.io.archive import pack, unpack
from crowdveil.server.queue.files import sync_file
from crowdveil.server.workers.inspect_upload import check_rows
from crowdveil.server.workers.sandboxed import write_object
from crowdveil.verbs.base import Outcome
from crowdveil.verbs.table import VERBS

REPORT_EVERY_S = 0.2
SUMMARY, PROGRESS = "summary.json", "progress.json"
_TYPES = {
    ".zip": "application/zip",
    ".json": "application/json",
    ".csv": "text/csv",
    ".png": "image/png",
    ".html": "text/html",
    ".geojson": "application/geo+json",
}


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job in the folder of its inputs, and describe its result.

    The request has its kind, name, parameters, files and limits, and the folders of its inputs, its run and its ledger.
    """
    os.chdir(job["inputs"])
    kind, run = VERBS[job["kind"]], Path(job["run"])
    progress, stage = _reporters(run / PROGRESS)
    files = _opened(job["files"], job["limits"])
    ledger = None if job["ledger"] is None else Path(job["ledger"])
    # The ledger names a release by its folder; that of a job has the id of the job.
    out = run / ("out" if ledger is None else run.parent.name)
    out.mkdir()
    values = job["parameters"] if ledger is None else job["parameters"] | {"ledger": str(ledger)}
    outcome = kind.run(kind.task(job["name"], values, files, out, progress=progress, stage=stage))
    stage("packing")
    return _packed(out, run, outcome, "release.zip" if kind.packed else f"{job['name']}.zip", packed=kind.packed)


def _opened(uploads: dict[str, str], limits: dict[str, Any]) -> dict[str, str]:
    """Check the files against the limits, and unpack zip files of releases into folders."""
    files = dict(uploads)
    for field, name in uploads.items():
        if name.lower().endswith(".zip"):
            folder = f"{field}-unpacked" if Path(field).exists() else field
            if not Path(folder).exists():  # an earlier run may have unpacked it
                unpack(Path(name), Path(folder + ".part"), limits.get("upload_bytes", 1 << 40), name)
                Path(folder + ".part").rename(folder)
            files[field] = folder
    for path in Path().rglob("*"):
        check_rows(path, limits)
    return files


def _packed(out: Path, run: Path, outcome: Outcome, archive: str, *, packed: bool) -> dict[str, Any]:
    files = sorted(p for p in out.iterdir() if p.is_file())
    if packed or len(files) != 1:
        result = run / archive
        pack(out, result)
    else:
        result = run / files[0].name
        shutil.move(files[0], result)  # the first version of Landlock lets nothing be renamed into another folder
    shutil.rmtree(out)
    summary = {"notes": outcome.notes.sentences(), "lines": outcome.lines}
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


def _reporters(file: Path) -> tuple[Callable[[int, int], None], Callable[[str], None]]:
    """Return functions that write progress, at intervals, and the stage to a file."""
    last, current = [0.0], ["starting"]

    def progress(done: int, total: int) -> None:
        now = time.monotonic()
        if now - last[0] >= REPORT_EVERY_S or done >= total:
            last[0] = now
            write_object(file, {"stage": current[0], "done": int(done), "total": int(total)})

    def stage(name: str) -> None:
        current[0] = name
        write_object(file, {"stage": name, "done": 0, "total": 0})

    return progress, stage
