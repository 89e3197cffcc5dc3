"""A folder that keeps the arrays of finished partitions, so that a run can go on where it was cut short."""

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
"""What comes of a partition."""

KEY_FILE = "key.json"
_PARTIAL = ".partial"
_BROKEN = (OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, zipfile.BadZipFile)
"""What reading a batch can raise that was cut short or changed."""


class StoppedEarly(KeyboardInterrupt):
    """An interrupt of a run whose finished time steps are kept; its text says how many, and what to do."""


class Kept(Protocol):
    """Finished partitions that are kept for another run."""

    def told(self) -> str | None:
        """How many are kept and where; None where nothing is."""
        ...

    def remove(self) -> None:
        """Take them away."""
        ...


@contextmanager
def kept_until_done(kept: Kept) -> Iterator[None]:
    """Keep what is finished inside; removed when all went well, or a guarantee turned out broken."""
    try:
        yield
    except KeyboardInterrupt:
        if (told := kept.told()) is None:
            raise
        raise StoppedEarly(f"{told}; run the same command again to go on from them.") from None
    except GuaranteeViolatedError:
        kept.remove()  # whatever is wrong may lie in what was kept
        raise
    kept.remove()


class FinishedSteps:
    """Finished partitions in a folder, in batches, beside a key that says which run they belong to.

    Parameters
    ----------
    folder
        Made, for its owner alone, when partitions are first asked for: what it holds was not verified.
    key
        All that the results depend on, by kind ("parameters", "data"), as plain values that JSON can hold.
    entropy
        What random choices are drawn from, where no seed was given. It is kept with the key, in a file for its owner alone, and
        removed with it; where the folder has that of an earlier run, it is that one.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any], entropy: int | None = None) -> None:
        self.folder, self.entropy = Path(folder).absolute(), entropy
        self._found = 0
        self._saved: dict[str, int] = {}
        self.total = 0
        """Partitions last asked for."""
        self._key: dict[str, Any] = json.loads(json.dumps(dict(key)))
        self._rounds = 0
        self._counts = self._known_counts()

    @property
    def kept(self) -> int:
        """Partitions in the folder, of those last asked for."""
        # An interrupt may come right after a file got its name, so the files say what was saved, and no counter beside them.
        return self._found + sum(n for name, n in self._saved.items() if (self.folder / name).exists())

    @property
    def used(self) -> bool:
        """Whether any partitions were asked for."""
        return self._rounds > 0

    def load(self, count: int) -> dict[int, Arrays]:
        """The kept ones of `count` partitions, by number; batches that are broken are passed over.

        Each call is a round of its own, so that a method may hand over several kinds of work, one after the other.
        """
        known = self._counts[self._rounds : self._rounds + 1]
        if known not in ([], [count]):
            raise _of_another_run(self.folder, ["number of time steps"])
        self._counts += [] if known else [count]
        self._rounds += 1
        with _told(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._new_file(KEY_FILE) as file:
            file.write(json.dumps(self._content(), indent=2).encode())
        kept: dict[int, Arrays] = {}
        for path in self.folder.glob(f"{self._rounds}-*.npz"):
            with suppress(*_BROKEN):
                kept.update(_unpacked(path))
        self._found, self._saved, self.total = len(kept), {}, count
        return kept

    def _content(self) -> dict[str, Any]:
        drawn = {} if self.entropy is None else {"entropy": self.entropy}
        return {"key": self._key, "partitions": self._counts, **drawn}

    def save(self, batch: Mapping[int, Arrays]) -> None:
        """Put away a batch of the partitions last asked for."""
        # Named after a partition in it: a run does each partition once, so no two batches share a name.
        name = f"{self._rounds}-{min(batch)}.npz"
        self._saved[name] = len(batch)
        with self._new_file(name) as file:
            contents, joined = _packed(batch)
            np.savez(file, contents=np.frombuffer(contents, np.uint8), joined=np.frombuffer(joined, np.uint8))

    def told(self) -> str | None:
        """How many are kept and where; None where none were asked for."""
        return f"{self.kept:,} of {counted(self.total, 'time step')} are kept in {self.folder}" if self.used else None

    def remove(self) -> None:
        """Take the folder away; anything in it that is not ours stays, and the folder with it."""
        with suppress(OSError):
            for path in self.folder.iterdir():
                if path.name == KEY_FILE or path.suffix in (".npz", _PARTIAL):
                    path.unlink(missing_ok=True)
            self.folder.rmdir()

    def _known_counts(self) -> list[int]:
        """The numbers of partitions that the folder tells of; raises unless it is new, empty, or of the same run."""
        with _told(self.folder):
            if not self.folder.exists():
                return []
            if not self.folder.is_dir():
                raise OutputError(self.folder, "wanted a folder to resume from, but this is a file; name another.")
            names = [path.name for path in self.folder.iterdir() if path.suffix != _PARTIAL]
            if not names:
                return []
            try:
                content = json.loads((self.folder / KEY_FILE).read_text(encoding="utf-8"))
                key, counts = dict(content["key"]), [int(n) for n in content["partitions"]]
                entropy = content.get("entropy")
            except (FileNotFoundError, ValueError, TypeError, LookupError):
                raise OutputError(
                    self.folder, "the folder holds no finished time steps of ours; name another to resume from."
                ) from None
        check_key(self.folder, key, self._key)
        if (entropy is None) != (self.entropy is None):
            raise _of_another_run(self.folder, ["seed"])
        self.entropy = entropy
        return counts

    @contextmanager
    def _new_file(self, name: str) -> Iterator[IO[bytes]]:
        """A file that is there whole or not at all."""
        temporary = self.folder / f"{name}-{os.getpid()}{_PARTIAL}"
        with _told(self.folder):
            temporary.touch(mode=0o600)
            with temporary.open("wb") as file:
                yield file
            temporary.replace(self.folder / name)


def check_key(folder: Path | str, kept: Mapping[str, Any], key: Mapping[str, Any]) -> None:
    """Raise if what is kept in a folder belongs to a run with another key."""
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


def _packed(batch: Mapping[int, Arrays]) -> tuple[bytes, bytes]:
    """A list of the arrays, and all of them end to end: an entry for each would take longer than most tasks."""
    contents = [[i, [[_plain(a).str, a.shape] for a in arrays]] for i, arrays in batch.items()]
    return json.dumps(contents).encode(), b"".join(a.tobytes() for arrays in batch.values() for a in arrays)


def _plain(array: npt.NDArray[Any]) -> np.dtype[Any]:
    if array.dtype.hasobject or array.dtype.names:
        raise TypeError(f"partitions are kept as plain arrays, not of {array.dtype}")
    return array.dtype


def _unpacked(path: Path) -> dict[int, Arrays]:
    # Opened here, since numpy leaves a broken archive open.
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        contents, joined = json.loads(file["contents"].tobytes()), file["joined"].tobytes()
    found, at = {}, 0
    for partition, listed in contents:
        arrays = []
        for kind, shape in listed:
            dtype, size = np.dtype(kind), int(np.prod(shape, dtype=np.int64))
            # A copy, since an array of ours may be written to and begins where the processor likes it.
            arrays.append(np.frombuffer(joined, dtype, size, at).reshape(shape).copy())
            at += size * dtype.itemsize
        found[int(partition)] = tuple(arrays)
    return found


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Say in one sentence why finished time steps could not be kept."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(folder, f"time steps cannot be kept there ({reason}); name another to resume from.") from None
