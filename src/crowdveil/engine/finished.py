"""Keep the arrays of finished partitions in a folder, so that an interrupted run can resume."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from crowdveil.errors import GuaranteeViolatedError, OutputError, counted

Arrays = tuple[npt.NDArray[Any], ...]
"""Result of a partition."""

KEY_FILE = "key.json"
_PARTIAL = ".partial"
_BROKEN = (OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, zipfile.BadZipFile)
"""Errors of reading a truncated or changed batch."""


class StoppedEarlyError(KeyboardInterrupt):
    """Interrupt of a run whose finished time steps are kept; its text has their number and how to resume."""


class KeptPartitions(Protocol):
    """Finished partitions that are kept for another run, with the entropy of the run that began them."""

    entropy: int | None

    def describe(self) -> str | None:
        """Describe how many are kept and where; None if nothing is."""
        ...

    def remove(self) -> None:
        """Remove them."""
        ...


@contextmanager
def keep_until_done(kept: KeptPartitions) -> Iterator[None]:
    """Keep partitions that finish in the block; remove them on success, or if a guarantee is violated."""
    try:
        yield
    except KeyboardInterrupt:
        if (kept_text := kept.describe()) is None:
            raise
        raise StoppedEarlyError(f"{kept_text}; run the same command again to resume from them.") from None
    except GuaranteeViolatedError:
        kept.remove()  # the cause may be in the kept partitions
        raise
    kept.remove()


class FinishedPartitions:
    """Finished partitions in a folder, in batches, with the key of their run.

    Parameters
    ----------
    folder
        Created with mode 0700 by the first `load`: its content is not verified and confidential.
    key
        All that the results depend on, by kind ("parameters", "data"), as plain JSON values.
    entropy
        Entropy of random choices if no seed was given. It is kept in the key file (mode 0600) and removed with it; the
        entropy of an earlier run in the folder takes precedence.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any], entropy: int | None = None) -> None:
        self.folder, self.entropy = Path(folder).absolute(), entropy
        self._found = 0
        self._saved: dict[str, int] = {}
        self.total = 0
        """Partitions of the last `load`."""
        self._key: dict[str, Any] = json.loads(json.dumps(dict(key)))
        self._rounds = 0
        self._counts = self._known_counts()

    @property
    def kept(self) -> int:
        """Number of kept partitions, of those of the last `load`."""
        # An interrupt may come right after a file was renamed, so files are counted, not saves.
        return self._found + sum(n for name, n in self._saved.items() if (self.folder / name).exists())

    @property
    def used(self) -> bool:
        """Whether `load` was called."""
        return self._rounds > 0

    def load(self, count: int) -> dict[int, Arrays]:
        """Return the kept ones of `count` partitions by number; broken batches are skipped.

        Each call is a round of its own, so that a method may map several tasks in sequence.
        """
        known = self._counts[self._rounds : self._rounds + 1]
        if known not in ([], [count]):
            raise _of_another_run(self.folder, ["number of time steps"])
        self._counts += [] if known else [count]
        self._rounds += 1
        with _write_errors(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._new_file(KEY_FILE) as file:
            file.write(json.dumps(self._content(), indent=2).encode())
        kept: dict[int, Arrays] = {}
        for path in self.folder.glob(f"{self._rounds}-*.npz"):
            with suppress(*_BROKEN):
                kept.update(_unpack(path))
        self._found, self._saved, self.total = len(kept), {}, count
        return kept

    def _content(self) -> dict[str, Any]:
        drawn = {} if self.entropy is None else {"entropy": self.entropy}
        return {"key": self._key, "partitions": self._counts, **drawn}

    def save(self, batch: Mapping[int, Arrays]) -> None:
        """Save a batch of the partitions of the last `load`."""
        # Named after a partition in it: a run does each partition once, so names are unique.
        name = f"{self._rounds}-{min(batch)}.npz"
        self._saved[name] = len(batch)
        with self._new_file(name) as file:
            contents, joined = _pack(batch)
            np.savez(file, contents=np.frombuffer(contents, np.uint8), joined=np.frombuffer(joined, np.uint8))

    def describe(self) -> str | None:
        """Describe how many are kept and where; None before the first `load`."""
        return f"{self.kept:,} of {counted(self.total, 'time step')} are kept in {self.folder}" if self.used else None

    def remove(self) -> None:
        """Remove the kept files, and the folder if it holds no others."""
        with suppress(OSError):
            for path in self.folder.iterdir():
                if path.name == KEY_FILE or path.suffix in (".npz", _PARTIAL):
                    path.unlink(missing_ok=True)
            self.folder.rmdir()

    def _known_counts(self) -> list[int]:
        """Return the numbers of partitions in the key file; raise unless the folder is new, empty, or of the same run."""
        with _write_errors(self.folder):
            if not self.folder.exists():
                return []
            if not self.folder.is_dir():
                raise OutputError(self.folder, "wanted a folder to resume from, but this is a file; name a folder.")
            names = [path.name for path in self.folder.iterdir() if path.suffix != _PARTIAL]
            if not names:
                return []
            try:
                content = json.loads((self.folder / KEY_FILE).read_text(encoding="utf-8"))
                key, counts = dict(content["key"]), [int(n) for n in content["partitions"]]
                entropy = content.get("entropy")
            except (FileNotFoundError, ValueError, TypeError, LookupError):
                raise OutputError(
                    self.folder, "the folder holds no finished time steps; name another to resume from."
                ) from None
        check_key(self.folder, key, self._key)
        if (entropy is None) != (self.entropy is None):
            raise _of_another_run(self.folder, ["seed"])
        self.entropy = entropy
        return counts

    @contextmanager
    def _new_file(self, name: str) -> Iterator[IO[bytes]]:
        """Yield a file that is written atomically."""
        temporary = self.folder / f"{name}-{os.getpid()}{_PARTIAL}"
        with _write_errors(self.folder):
            temporary.touch(mode=0o600)
            with temporary.open("wb") as file:
                yield file
            temporary.replace(self.folder / name)


def check_key(folder: Path | str, kept: Mapping[str, Any], key: Mapping[str, Any]) -> None:
    """Raise if the kept partitions belong to a run with another key."""
    differ = [kind for kind in {**key, **kept} if kept.get(kind) != key.get(kind)]
    if differ:
        raise _of_another_run(folder, differ)


def _of_another_run(folder: Path | str, differ: list[str]) -> OutputError:
    listed = " and ".join(filter(None, [", ".join(differ[:-1]), differ[-1]]))
    return OutputError(
        folder,
        f"the time steps kept there are of another run (other {listed}); delete the folder, or name another to "
        "resume from.",
    )


def _pack(batch: Mapping[int, Arrays]) -> tuple[bytes, bytes]:
    """Return a list of the arrays, and their concatenated bytes: one entry each would take longer than most tasks."""
    contents = [[i, [[_plain(a).str, a.shape] for a in arrays]] for i, arrays in batch.items()]
    return json.dumps(contents).encode(), b"".join(a.tobytes() for arrays in batch.values() for a in arrays)


def _plain(array: npt.NDArray[Any]) -> np.dtype[Any]:
    if array.dtype.hasobject or array.dtype.names:
        raise TypeError(f"partitions are kept as plain arrays, not of {array.dtype}")
    return array.dtype


def _unpack(path: Path) -> dict[int, Arrays]:
    # Opened here, since numpy does not close a broken archive.
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        contents, joined = json.loads(file["contents"].tobytes()), file["joined"].tobytes()
    found, at = {}, 0
    for partition, listed in contents:
        arrays = []
        for kind, shape in listed:
            dtype, size = np.dtype(kind), int(np.prod(shape, dtype=np.int64))
            # A copy is writable and aligned.
            arrays.append(np.frombuffer(joined, dtype, size, at).reshape(shape).copy())
            at += size * dtype.itemsize
        found[int(partition)] = tuple(arrays)
    return found


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError while keeping partitions into an OutputError of one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(folder, f"time steps cannot be kept there ({reason}); name another to resume from.") from None
