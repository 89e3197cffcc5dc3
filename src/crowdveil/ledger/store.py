"""Store a ledger as a folder: append-only lines in a chain of hashes, and the rows and records of each release.

The folder is confidential: it has keyed hashes of source records, their key, and audits of releases. Lines are written and
synchronized one by one, so that a killed process always leaves a valid ledger. One process writes at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from crowdveil.errors import InputError, Option, OutputError, Text
from crowdveil.io.atomic import sync_folder, write_errors
from crowdveil.io.written_release import file_hash

MARKER, LINES, KEY, LOCK, ENTRIES = "ledger.json", "ledger.jsonl", "key", "lock", "entries"
FORMAT = 2
START = "0" * 64
"""The hash before the first line."""
_NOTICE = (
    "Confidential, do not publish. This folder holds keyed hashes of the source records of releases, the key of the hashes, "
    "copies of the releases, and audits. Only the owner of the data may read it."
)
Event = Literal["entry", "published", "withdrawn", "retired", "refused"]
Line = dict[str, Any]


def create_ledger(folder: Path) -> Ledger:
    """Create an empty ledger in a new folder that only its owner can read."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(folder, "Expected a new or empty folder for the ledger, got one with files. Name another.")
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        (folder / ENTRIES).mkdir(mode=0o700)
        _write(folder / KEY, secrets.token_hex(32).encode())
        for name in (LINES, LOCK):
            _write(folder / name, b"")
        marker = {"crowdveil": "ledger", "format": FORMAT, "notice": _NOTICE}
        _write(folder / MARKER, (json.dumps(marker, indent=2) + "\n").encode())
        sync_folder(folder)
    return Ledger(folder)


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, and synchronize it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def line_hash(line: Mapping[str, Any]) -> str:
    """Return the hash of all of a line, which includes the hash of the line before."""
    content = {name: value for name, value in line.items() if name != "hash"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def broken_line(lines: list[Line]) -> str | None:
    """Return the fault in a chain of lines; None if there is none."""
    before = START
    for number, line in enumerate(lines, 1):
        if line.get("line") != number or line.get("previous") != before:
            return f"lines before line {number} were removed or reordered"
        if line.get("hash") != line_hash(line):
            return f"line {number} was changed"
        before = line["hash"]
    return None


class Ledger:
    """An opened ledger. Reading needs no lock: lines are only appended.

    Attributes
    ----------
    folder
        Where it is.
    key
        The key of the hashes of source records.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        try:
            marker = json.loads((self.folder / MARKER).read_text(encoding="utf-8"))
            known = isinstance(marker, dict) and marker.get("crowdveil") == "ledger" and marker.get("format") == FORMAT
            self.key = bytes.fromhex((self.folder / KEY).read_text(encoding="ascii")) if known else b""
        except (OSError, ValueError):
            known = False
        if not known:
            raise InputError(
                folder,
                f"Expected a ledger, got another folder. Create one with crowdveil ledger init {self.folder.name}.",
            )
        self._locked = False

    def lines(self) -> list[Line]:
        """Return the lines; raise where one was changed or removed."""
        lines = self._parsed()
        wrong = broken_line(lines)
        if wrong is not None:
            raise InputError(self.folder, f"the ledger is damaged: {wrong}. Restore it from a backup.")
        return lines

    def _parsed(self) -> list[Line]:
        # A killed process leaves at most an unfinished last line, which was never acknowledged.
        texts = (self.folder / LINES).read_bytes().split(b"\n")[:-1]
        try:
            lines = [json.loads(text) for text in texts]
        except ValueError:
            lines = [None]
        if not all(isinstance(line, dict) for line in lines):
            raise InputError(self.folder, "the ledger is damaged: a line is broken. Restore it from a backup.")
        return lines

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the ledger for this process: other writers wait."""
        if self._locked:
            yield
            return
        with (self.folder / LOCK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._locked = True
            try:
                self._remove_unfinished()
                yield
            finally:
                self._locked = False

    def _remove_unfinished(self) -> None:
        """Remove the leftovers of a killed process: an unfinished line, and the folder of an entry without a line."""
        path = self.folder / LINES
        content = path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            with path.open("r+b") as file:
                file.truncate(end)
                os.fsync(file.fileno())
        named = {str(line["entry"]) for line in self.lines() if line["event"] == "entry"}
        for left in (self.folder / ENTRIES).iterdir():
            if left.name not in named:
                shutil.rmtree(left, ignore_errors=True)

    def append(self, event: Event, content: Mapping[str, Any]) -> Line:
        """Append a line and synchronize it; the caller holds the lock."""
        if not self._locked:
            raise RuntimeError("lock the ledger before appending a line")
        lines = self.lines()
        at = datetime.now(UTC).isoformat(timespec="seconds")
        line: Line = {"line": len(lines) + 1, "time": at, "event": event, **content}
        line["previous"] = lines[-1]["hash"] if lines else START
        line["hash"] = line_hash(line)
        with write_errors(self.folder), (self.folder / LINES).open("ab") as file:
            file.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return line

    def next_entry(self) -> int:
        """Return the number of the next entry."""
        return 1 + len([line for line in self.lines() if line["event"] == "entry"])

    def entry_folder(self, entry: int) -> Path:
        """Return the folder with the rows and records of an entry."""
        return self.folder / ENTRIES / str(entry)

    @contextmanager
    def new_entry_folder(self, entry: int) -> Iterator[Path]:
        """Yield a folder for the files of a new entry, and synchronize it."""
        folder = self.entry_folder(entry)
        with write_errors(self.folder):
            folder.mkdir(mode=0o700)
            yield folder
            for path in folder.rglob("*"):
                path.chmod(0o700 if path.is_dir() else 0o600)
                if path.is_file():
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
            sync_folder(folder)
            sync_folder(folder.parent)

    def check_files(self, entry: int, stored: Mapping[str, str]) -> None:
        """Raise if a stored file of an entry is missing or changed."""
        folder = self.entry_folder(entry)
        for name, sha256 in stored.items():
            path = folder / name
            if not path.is_file() or file_hash(path) != sha256:
                raise InputError(
                    self.folder, f"file {name} of entry {entry} was changed or removed. Restore it from a backup."
                )


def open_ledger(folder: Path | str) -> Ledger:
    """Open the ledger of a run; raise if there is none."""
    if not Path(folder).exists():
        raise InputError(
            Option("ledger"),
            Text(
                "there is no folder {folder}. Create a ledger with crowdveil ledger init {folder}.", folder=Path(folder)
            ),
        )
    return Ledger(folder)
