"""Writing so that there is either all of it or nothing: to a temporary place beside the target, then moved."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crowdveil.errors import Option, OutputError
from crowdveil.io.exchange import exchange

MARK = ".crowdveil-partial"
OLD = ".old"
"""Ending of the name that a whole folder has while another takes its place in two moves; see `recover`."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def new_folder(target: Path, *, overwrite: bool, mark_file: str) -> Iterator[Path]:
    """A temporary folder that becomes `target` if all goes well, and is removed if anything goes wrong.

    A folder that is there already is replaced only if `overwrite` is set and it holds `mark_file`, so that nothing but
    an earlier release can be lost.
    """
    target = Path(target).absolute()
    check_target(target, overwrite=overwrite, mark_file=mark_file)
    temporary = _beside(target)
    with write_errors(target), _parents(target), _in_use(temporary):
        try:
            temporary.mkdir()
            yield temporary
            _move(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def check_target(target: Path, *, overwrite: bool, mark_file: str) -> None:
    """Raise unless a release can be put at `target`. What a killed run left is put right first."""
    recover(target)
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError(
            target, f"wanted a folder to write to, but this is a file; name another with {Option('output')}."
        )
    if not any(target.iterdir()):
        return
    if not overwrite:
        raise OutputError(
            target,
            f"the folder exists; name another with {Option('output')}, or replace it with {Option('overwrite')}.",
        )
    if not (target / mark_file).exists():
        raise OutputError(
            target, f"the folder holds no release, so it is not replaced; name another with {Option('output')}."
        )


@contextmanager
def new_file(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A temporary file that becomes `target` if all goes well, and is removed if anything goes wrong."""
    target = Path(target).absolute()
    check_file(target, overwrite=overwrite)
    recover(target)
    temporary = _beside(target, target.suffix)
    with write_errors(target), _parents(target), _in_use(temporary):
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def check_file(target: Path, *, overwrite: bool) -> None:
    """Raise unless a file can be put at `target`."""
    if target.is_dir():
        raise OutputError(
            target, f"wanted a file to write to, but this is a folder; name another with {Option('output')}."
        )
    if target.exists() and not overwrite:
        raise OutputError(
            target, f"the file exists; name another with {Option('output')}, or replace it with {Option('overwrite')}."
        )


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Make the folders above the target, and take those that were made away again if anything goes wrong."""
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # somebody else may have put something there by now
            for folder in missing:
                folder.rmdir()
        raise


@contextmanager
def write_errors(target: Path) -> Iterator[None]:
    """Say in one sentence why something could not be written."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise OutputError(
                target, "the disk is full, so nothing was written; free some space and run again."
            ) from None
        reason = error.strerror or type(error).__name__
        raise OutputError(
            target, f"cannot be written ({reason}); name another place with {Option('output')}."
        ) from None


_used: set[Path] = set()
"""Temporary folders and files of this process."""


@contextmanager
def _in_use(temporary: Path) -> Iterator[None]:
    """Keep a temporary path from being taken for one that an earlier run left, and have it removed if the process is ended."""
    _used.add(temporary)
    try:
        yield
    finally:
        _used.discard(temporary)


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Make a folder for temporary files; it is removed at the end, also by `remove_unfinished`."""
    with tempfile.TemporaryDirectory(prefix="crowdveil-") as folder, _in_use(Path(folder)):
        yield folder


def remove_unfinished() -> None:
    """Remove the temporary folders and files of this process: for one that ends at once, without leaving its contexts."""
    for path in sorted(_used):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _beside(target: Path, ending: str = "") -> Path:
    """A name next to the target that tells who writes there; on one file system, so that the move is atomic."""
    return target.with_name(f".{target.name}{MARK}-{socket.gethostname()}-{os.getpid()}{ending}")


def recover(target: Path) -> None:
    """Put right what runs that were killed on this machine left: nothing is touched that has not our mark in its name.

    A folder that was moved aside for another one goes back to its place if that is empty. All else is removed: unfinished
    folders and files, and replaced ones. What runs on other machines left stays, since they may still be at work.
    """
    target = Path(target).absolute()
    prefix = f".{target.name}{MARK}-{socket.gethostname()}-"
    with suppress(OSError):
        left = [
            path
            for path in target.parent.glob(f"{glob.escape(prefix)}*")
            if path not in _used and of_dead(path.name.removeprefix(prefix))
        ]
        for path in sorted(left):
            if path.name.endswith(OLD) and path.is_dir():
                if not target.exists():
                    path.rename(target)
                    continue
                path = path.rename(path.with_name(path.name.removesuffix(OLD)))  # as in `_move`: it is whole no longer
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def of_dead(ending: str) -> bool:
    """Whether a name ends with the number of a process that is no more."""
    number = ending.split(".")[0]
    return number.isdecimal() and not _alive(int(number))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process != os.getpid()


def _move(temporary: Path, target: Path) -> None:
    """Put the finished folder in place; what it replaces is then at `temporary`, to be removed.

    Where the system can exchange two names, there is a whole folder at the target at every moment. Elsewhere there is none
    between two moves; a run that is killed there leaves a whole one under a name that `recover` knows.
    """
    if not (target.exists() and any(target.iterdir())):
        temporary.rename(target)
    elif not exchange(temporary, target):
        old = temporary.with_name(temporary.name + OLD)
        target.rename(old)
        try:
            temporary.rename(target)
        except BaseException:
            old.rename(target)
            raise
        old.rename(temporary)  # a name with the ending stands for a whole folder, and this one is about to be removed
