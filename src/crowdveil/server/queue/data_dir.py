"""The data directory: a marker file says that a folder is ours, and which database belongs to it.

Without the marker a folder with other contents is refused, so that nothing of others is ever removed. The database holds the id
of the marker: where the two do not belong together (a lost or replaced database), nothing is started.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from crowdveil.errors import Option, OutputError, ParameterError
from crowdveil.server.queue.store import Store

MARKER = "crowdveil-data.json"
DATABASE = "jobs.sqlite"
FORMAT = 1
_ID = re.compile(r"[0-9a-f]{32}")
_IGNORED = ("lost+found",)


@dataclass(frozen=True)
class Marker:
    """The content of the marker file.

    Attributes
    ----------
    id
        Random; the database holds it too.
    created
        When the folder became a data directory.
    tokens
        Whether there ever were tokens: from then on the service does not run without them.
    """

    id: str
    created: str
    tokens: bool = False


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Make the folder where it is missing, and keep other processes from setting it up at the same time."""
    try:
        if not root.exists():
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise OutputError(root, f"the data directory cannot be used ({error.strerror}); name another.") from None
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read_marker(root: Path) -> Marker | None:
    """Read the marker; None where there is none."""
    try:
        content = json.loads((root / MARKER).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(root, f"the data directory cannot be read ({error.strerror}).") from None
    except ValueError:
        raise _broken(root) from None
    if not isinstance(content, dict) or not _ID.fullmatch(str(content.get("id"))):
        raise _broken(root)
    if content.get("format") != FORMAT:
        raise ParameterError(
            Option("data_dir"),
            f"{root} was made by a newer version of Crowdveil; install that version, or name another folder.",
        )
    return Marker(content["id"], str(content.get("created")), content.get("tokens") is not False)


def check_folder(root: Path, *, own_database: bool, accept_new_database: bool = False) -> Marker | None:
    """Return the marker of a folder that may be used; None where it is new.

    Raises where the folder has other contents, or its SQLite database (`own_database`) is lost. Changes nothing.
    """
    marker = read_marker(root)
    there = _names(root)
    if marker is not None:
        if own_database and DATABASE not in there and not accept_new_database:
            raise _lost(root, f"{DATABASE} is missing")
        return marker
    if there:
        raise ParameterError(
            Option("data_dir"),
            f"{root} is not empty, and it is no data directory of Crowdveil (it has no {MARKER}); name another folder.",
        )
    return None


def bind(root: Path, marker: Marker | None, store: Store, *, accept_new_database: bool = False) -> Marker:
    """Make the folder and the database belong together, and return the marker; raises where they belong to others."""
    known = store.data_id()
    if marker is None:
        if known is not None and not (root / DATABASE).exists() and not accept_new_database:
            raise ParameterError(
                Option("data_dir"),
                f"the database belongs to another data directory than {root}; name that one (all machines share "
                f"it), or start once with {Option('accept_new_database')}.",
            )
        # The database first: what breaks off in between is found by the next start.
        data_id = known or store.set_data_id(secrets.token_hex(16))
        marker = Marker(data_id, datetime.now(UTC).isoformat(timespec="seconds"))
        _write(root, marker)
        with suppress(OSError):
            root.chmod(0o700)
    elif known != marker.id:
        if not accept_new_database:
            raise _lost(root, "the database is new or of another data directory")
        store.set_data_id(marker.id, replace=True)
    return marker


def note_tokens(root: Path) -> None:
    """Record that there are tokens: from now on the service does not run without them."""
    marker = read_marker(root)
    if marker is not None and not marker.tokens:
        _write(root, replace(marker, tokens=True))


def is_new(root: Path) -> bool:
    """Return whether a folder has no contents yet."""
    return not _names(root)


def _names(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()} - set(_IGNORED) if root.exists() else set()


def _write(root: Path, marker: Marker) -> None:
    made = root / f".{MARKER}-{os.getpid()}"
    try:
        handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **asdict(marker)}, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        made.replace(root / MARKER)
    except OSError as error:
        made.unlink(missing_ok=True)
        raise OutputError(root, f"the data directory cannot be written ({error.strerror}).") from None


def _lost(root: Path, why: str) -> ParameterError:
    return ParameterError(
        Option("data_dir"),
        f"{why}, so the jobs in {root} are not known; restore the database from a backup, or start once with "
        f"{Option('accept_new_database')}, which moves files of unknown jobs to quarantine.",
    )


def _broken(root: Path) -> ParameterError:
    return ParameterError(Option("data_dir"), f"{root / MARKER} is broken; restore it from a backup.")
