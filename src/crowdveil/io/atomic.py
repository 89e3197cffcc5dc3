"""Writing so that there is either all of it or nothing: to a temporary place beside the target, then moved."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crowdveil.errors import OutputError

MARK = ".crowdveil-partial"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def new_folder(target: Path, *, overwrite: bool, mark_file: str) -> Iterator[Path]:
    """A temporary folder that becomes `target` if all goes well, and is removed if anything goes wrong.

    A folder that is there already is replaced only if `overwrite` is set and it holds `mark_file`, so that nothing but
    an earlier release can be lost.
    """
    target = Path(target).absolute()
    check_target(target, overwrite=overwrite, mark_file=mark_file)
    _sweep(target)
    temporary = _beside(target)
    with write_errors(target), _parents(target):
        try:
            temporary.mkdir()
            yield temporary
            _move(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def check_target(target: Path, *, overwrite: bool, mark_file: str) -> None:
    """Raise unless a release can be put at `target`."""
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError(f"{target}: wanted a folder to write to, but this is a file; name another with -o.")
    if not any(target.iterdir()):
        return
    if not overwrite:
        raise OutputError(f"{target}: the folder exists; name another with -o, or replace it with --overwrite.")
    if not (target / mark_file).exists():
        raise OutputError(f"{target}: the folder holds no release, so it is not replaced; name another with -o.")


@contextmanager
def new_file(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A temporary file that becomes `target` if all goes well, and is removed if anything goes wrong."""
    target = Path(target).absolute()
    check_file(target, overwrite=overwrite)
    _sweep(target)
    temporary = _beside(target, target.suffix)
    with write_errors(target), _parents(target):
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def check_file(target: Path, *, overwrite: bool) -> None:
    """Raise unless a file can be put at `target`."""
    if target.is_dir():
        raise OutputError(f"{target}: wanted a file to write to, but this is a folder; name another with -o.")
    if target.exists() and not overwrite:
        raise OutputError(f"{target}: the file exists; name another with -o, or replace it with --overwrite.")


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
                f"{target}: the disk is full, so nothing was written; free some space and run again."
            ) from None
        reason = error.strerror or type(error).__name__
        raise OutputError(f"{target}: cannot be written ({reason}); name another place with -o.") from None


def _beside(target: Path, ending: str = "") -> Path:
    """A name next to the target that tells who writes there; on one file system, so that the move is atomic."""
    return target.with_name(f".{target.name}{MARK}-{socket.gethostname()}-{os.getpid()}{ending}")


def _sweep(target: Path) -> None:
    """Remove what earlier runs that were killed on this machine left beside the target."""
    prefix = f".{target.name}{MARK}-{socket.gethostname()}-"
    with suppress(OSError):
        for left in target.parent.glob(f"{glob.escape(prefix)}*"):
            number = left.name.removeprefix(prefix).split(".")[0]
            if number.isdecimal() and not _alive(int(number)):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process != os.getpid()


def _move(temporary: Path, target: Path) -> None:
    """Put the finished folder in place. Between the two moves of a replacement there is no release, never half of one."""
    if target.exists() and any(target.iterdir()):
        old = temporary.with_name(temporary.name + ".old")
        target.rename(old)
        try:
            temporary.rename(target)
        except BaseException:
            old.rename(target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    else:
        temporary.rename(target)
