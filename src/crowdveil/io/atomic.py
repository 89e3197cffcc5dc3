"""Write files and folders atomically: to a temporary path next to the target, then by a rename."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from crowdveil.errors import CrowdveilError, OutputError, Text

MARK = ".crowdveil-partial"
OLD = ".old"
"""Suffix of a complete folder while it is replaced in two renames; see `recover`."""
IS_FILE = Text("Expected a folder to write to, but this is a file. Name a folder with {output}.")
FOLDER_EXISTS = Text("the folder exists. Name another with {output}, or replace it with {overwrite}.")
NO_RELEASE = Text("the folder holds no release, so it is not replaced. Name another with {output}.")
"""Why a release is not written to a folder, here or on a cluster."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def new_folder(target: Path, *, overwrite: bool, mark_file: str) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` on success and is removed on failure.

    An existing folder is replaced only with `overwrite` and if it holds `mark_file`: only an earlier release can be lost.
    """
    target = Path(target).absolute()
    check_target(target, overwrite=overwrite, mark_file=mark_file)
    temporary = _temporary_path(target)
    with write_errors(target), _parents(target), _in_use(temporary):
        temporary.mkdir()
        try:
            yield temporary
        except CrowdveilError as error:  # of reading back
            raise error.about(target) if error.subject == temporary else error from None
        _move(temporary, target)


def check_target(target: Path, *, overwrite: bool, mark_file: str) -> None:
    """Raise unless a release can be written to `target`. Recover from a killed run first."""
    recover(target)
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError(target, IS_FILE)
    if not any(target.iterdir()):
        return
    if not overwrite:
        raise OutputError(target, FOLDER_EXISTS)
    if not (target / mark_file).exists():
        raise OutputError(target, NO_RELEASE)


@contextmanager
def new_file(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary file that becomes `target` on success and is removed on failure."""
    target = Path(target).absolute()
    check_file(target, overwrite=overwrite)
    recover(target)
    temporary = _temporary_path(target, target.suffix)
    with write_errors(target), _parents(target), _in_use(temporary):
        yield temporary
        temporary.replace(target)


@contextmanager
def new_files(*targets: str | Path | None, overwrite: bool) -> Iterator[list[Path | None]]:
    """Yield a temporary file for each target, as `new_file`; None for those that are None."""
    with ExitStack() as made:
        yield [None if t is None else made.enter_context(new_file(Path(t), overwrite=overwrite)) for t in targets]


def check_file(target: Path, *, overwrite: bool) -> None:
    """Raise unless a file can be written to `target`."""
    if target.is_dir():
        raise OutputError(target, Text("Expected a file to write to, but this is a folder. Name a file with {output}."))
    if target.exists() and not overwrite:
        raise OutputError(target, Text("the file exists. Name another with {output}, or replace it with {overwrite}."))


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Create the parent folders of the target, and remove the created ones on failure."""
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # another process may have written there
            for folder in missing:
                folder.rmdir()
        raise


@contextmanager
def write_errors(target: Path) -> Iterator[None]:
    """Turn an OSError while writing into an OutputError of one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise OutputError(
                target, "the disk is full, so nothing was written. Free some space and run again."
            ) from None
        reason = error.strerror or type(error).__name__
        raise OutputError(
            target, Text("cannot be written ({reason}). Name another path with {output}.", reason=reason)
        ) from None


_used: set[Path] = set()
"""Temporary folders and files of this process."""


@contextmanager
def _in_use(temporary: Path) -> Iterator[None]:
    """Register a temporary path, and remove it at the end; `recover` spares it and `remove_unfinished` removes it."""
    _used.add(temporary)
    try:
        yield
    finally:
        _used.discard(temporary)
        _remove(temporary)


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Create a folder for temporary files; remove it at the end, also by `remove_unfinished`."""
    with tempfile.TemporaryDirectory(prefix="crowdveil-") as folder, _in_use(Path(folder)):
        yield folder


def remove_unfinished() -> None:
    """Remove the temporary paths of this process, for a process that exits without leaving its contexts."""
    for path in sorted(_used):
        with suppress(OSError):
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a folder, a file, or a link without its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _temporary_path(target: Path, suffix: str = "") -> Path:
    """Return a path next to the target with host and process id; the same file system makes the rename atomic."""
    return target.with_name(f".{target.name}{MARK}-{socket.gethostname()}-{os.getpid()}{suffix}")


def recover(target: Path) -> None:
    """Clean up after runs that were killed on this machine; only paths with `MARK` in their name are touched.

    A complete folder that was renamed to make way returns to the target if that is missing. Unfinished and replaced
    folders and files are removed. Paths of other machines stay, since their runs may still be active.
    """
    target = Path(target).absolute()
    prefix = f".{target.name}{MARK}-{socket.gethostname()}-"
    with suppress(OSError):
        found = [path for path in target.parent.iterdir() if path.name.startswith(prefix)]
        left = [path for path in found if path not in _used and _is_of_dead_process(path.name.removeprefix(prefix))]
        for path in sorted(left):
            if path.name.endswith(OLD) and path.is_dir():
                if not target.exists():
                    path.rename(target)
                    continue
                path = path.rename(
                    path.with_name(path.name.removesuffix(OLD))
                )  # as in `_move`, since it will be incomplete
            _remove(path)


def _is_of_dead_process(suffix: str) -> bool:
    """Return whether the end of a name holds the id of a process that has ended."""
    number = suffix.split(".")[0]
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
    """Rename the finished folder to the target; a replaced folder ends up at `temporary`, to be removed.

    A replaced target is missing between two renames; `recover` restores it after a run that was killed there.
    """
    if not (target.exists() and any(target.iterdir())):
        temporary.rename(target)
    else:
        old = temporary.with_name(temporary.name + OLD)
        target.rename(old)
        try:
            temporary.rename(target)
        except BaseException:
            old.rename(target)
            raise
        old.rename(temporary)  # OLD marks a folder to restore, and this one is to be removed


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
