"""The folders of jobs and uploads. Names from requests are used only after `safe_name`.

incoming/ID/…                 an upload in progress
jobs/ID/inputs/…              the inputs of a job; removed when it ends
jobs/ID/run-LEASE/…           the output of one run of a job; the row of the job names the run that counts
"""

from __future__ import annotations

import os
import re
import shutil
import time
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

from crowdveil.errors import OutputError
from crowdveil.io.atomic import sync_folder
from crowdveil.server.queue.store import Store

_NAME = re.compile(r"\w[\w.+=, -]{0,79}")
"""A plain name, which may have letters of any language."""
ID = re.compile(r"[0-9a-f]{32}")
ORPHAN_S = 3600.0
"""Age at which the folder of an unknown job is removed: until then, the job may be being added."""
INCOMING_S = 86_400.0
"""Age at which an interrupted upload is removed. A form is received into unnamed files, so its folder is empty meanwhile."""


class Files:
    """The folders of jobs."""

    def __init__(self, root: Path, *, create: bool = True) -> None:
        self.root = root
        self.incoming, self.jobs = root / "incoming", root / "jobs"
        if not create:  # commands that only read change nothing
            return
        try:
            for folder in (root, self.jobs, self.incoming):  # `jobs` marks a data directory
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)  # an existing folder may be open to others
        except OSError as error:
            raise OutputError(root, f"the data directory cannot be used ({error.strerror}). Name another.") from None

    def job(self, job: str) -> Path:
        """Return the folder of a job."""
        return self.jobs / _checked(job, "id")

    def inputs(self, job: str) -> Path:
        """Return the folder of a job's inputs."""
        return self.job(job) / "inputs"

    def run(self, job: str, lease: str) -> Path:
        """Return the folder that one run of a job writes to."""
        return self.job(job) / f"run-{_checked(lease, 'lease')}"

    def receive(self, job: str) -> Path:
        """Make a folder for an upload in progress."""
        folder = self.incoming / _checked(job, "id")
        (folder / "inputs").mkdir(mode=0o700, parents=True)
        return folder

    def accept(self, job: str) -> None:
        """Move a complete upload to the folder of its job, atomically."""
        (self.incoming / job).rename(self.job(job))
        sync_folder(self.jobs)

    def discard(self, job: str) -> None:
        """Remove an upload that was not accepted."""
        shutil.rmtree(self.incoming / job, ignore_errors=True)

    def remove(self, job: str) -> None:
        """Remove all files of a job."""
        shutil.rmtree(self.job(job), ignore_errors=True)

    def keep_result(self, job: str, lease: str) -> None:
        """Remove all files of a job except those of its published run."""
        keep = self.run(job, lease)
        with suppress(FileNotFoundError):
            for path in self.job(job).iterdir():
                if path != keep:
                    shutil.rmtree(path, ignore_errors=True)

    def sweep(self, store: Store) -> None:
        """Remove files that no job needs. Queued and running jobs, and folders with other names than ids, are kept."""
        for upload in _with_ids(self.incoming):
            if _age(upload) > INCOMING_S:
                shutil.rmtree(upload, ignore_errors=True)
        for folder in _with_ids(self.jobs):
            job = store.get(folder.name)
            if job is None:
                if _age(folder) > ORPHAN_S:
                    shutil.rmtree(folder, ignore_errors=True)
            elif job.state in ("failed", "cancelled", "expired"):
                self.remove(job.id)
            elif job.state == "done" and job.result is not None:
                self.keep_result(job.id, job.result["lease"])


def safe_name(name: str, field: str, endings: tuple[str, ...], taken: tuple[str, ...] = ()) -> str | None:
    """Return a name for an uploaded file: its own if that is plain, otherwise one after its field.

    None if its ending is not allowed. No two files get the same name.
    """
    base = unicodedata.normalize("NFC", name.replace("\\", "/").rsplit("/", 1)[-1])
    ending = next((e for e in endings if base.lower().endswith(e)), None)
    if ending is None:
        return None
    used = {name.lower() for name in taken}
    own = [base] if _NAME.fullmatch(base) and ".." not in base else []
    return next(n for n in chain(own, (f"{field}{i}{ending}" for i in chain([""], count(2)))) if n.lower() not in used)


def _checked(name: str, what: str) -> str:
    """Return an id or a lease, or raise if it is not safe in a path."""
    if not ID.fullmatch(name):
        raise ValueError(f"no {what} of a job")
    return name


def _with_ids(folder: Path) -> list[Path]:
    """Return the contents of a folder that are named by an id."""
    return [path for path in folder.iterdir() if ID.fullmatch(path.name)]


def _age(folder: Path) -> float:
    """Return the seconds since the last write below a folder."""
    newest = 0.0
    with suppress(FileNotFoundError):
        for path in (folder, *folder.rglob("*")):
            newest = max(newest, path.stat().st_mtime)
    return time.time() - newest


def sync_file(path: Path) -> None:
    """Flush a file to disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    sync_folder(path.parent)


KEEP_S = 3600.0
"""Time after its last use at which an upload is removed."""
_OWNER = re.compile(r"[0-9A-Za-z_-]{1,64}")


class UploadFiles:
    """The folders of uploads."""

    def __init__(self, root: Path) -> None:
        self.root = root / "uploads"

    def keep(self, owner: str, upload: str, received: Path) -> None:
        """Turn a received folder into an upload of an owner."""
        folder = self._folder(owner, upload)
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(received)  # its use begins now, however long it took to send
        received.rename(folder)

    def get(self, owner: str, upload: str) -> Path | None:
        """Return the file of an upload, and note its use; None if the owner has no such upload, or it has expired."""
        if not ID.fullmatch(upload):
            return None
        folder = self._folder(owner, upload)
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime <= KEEP_S:
                os.utime(folder)
                return next(folder.iterdir(), None)
        return None

    def count(self, owner: str) -> int:
        """Return the number of uploads of an owner."""
        return len(list(self._folders(owner)))

    def remove(self, owner: str, upload: str) -> None:
        """Remove an upload; jobs keep their own link to its file."""
        shutil.rmtree(self._folder(owner, upload), ignore_errors=True)

    def expire(self) -> list[str]:
        """Remove uploads that were not used for a while, and return their ids."""
        expired = []
        for folder in self._folders("*"):
            with suppress(FileNotFoundError):
                if time.time() - folder.stat().st_mtime > KEEP_S:
                    self.remove(folder.parent.name, folder.name)
                    expired.append(folder.name)
        return expired

    def _folder(self, owner: str, upload: str) -> Path:
        if not _OWNER.fullmatch(owner) or not ID.fullmatch(upload):
            raise ValueError("no id of an upload")
        return self.root / owner / upload

    def _folders(self, owner: str) -> Iterator[Path]:
        return (path for path in self.root.glob(f"{owner}/*") if ID.fullmatch(path.name))


def share(file: Path, target: Path) -> None:
    """Link a file under another name, or copy it if the file system has no links.

    A confined process could change its input through the link, which affects only previews and jobs of the same owner.
    """
    try:
        os.link(file, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, target)
