"""A release on a cluster's file system: written to a temporary folder, and moved to its place as a whole."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from crowdveil.engine.hadoop import HadoopFiles
from crowdveil.errors import Option, OutputError
from crowdveil.io.atomic import MARK, OLD, is_of_dead_process
from crowdveil.io.written_release import MANIFEST_FILE


def check_target(files: HadoopFiles, target: str, *, overwrite: bool, mark: str = MANIFEST_FILE) -> None:
    """Raise unless a folder can be written to `target`; an earlier one is replaced only if it holds a file `mark`. What a killed
    run left is recovered first.
    """
    recover(files, target)
    if not files.exists(target):
        return
    if not files.is_folder(target):
        raise OutputError(
            target, f"Expected a folder to write to, but this is a file. Name another with {Option('output')}."
        )
    if not files.listed(target):
        return
    if not overwrite:
        raise OutputError(
            target,
            f"the folder exists. Name another with {Option('output')}, or replace it with {Option('overwrite')}.",
        )
    if not files.exists(f"{target}/{mark}"):
        raise OutputError(
            target, f"the folder holds nothing of ours, so it is not replaced. Name another with {Option('output')}."
        )


@contextmanager
def new_folder(files: HadoopFiles, target: str, *, overwrite: bool, mark: str = MANIFEST_FILE) -> Iterator[str]:
    """Make a temporary folder next to the target; on success it is moved there, otherwise it is removed."""
    check_target(files, target, overwrite=overwrite, mark=mark)
    aside = files.sibling(target, f".{files.name(target)}{MARK}-{socket.gethostname()}-{os.getpid()}")
    files.remove(aside)
    missing = _missing_above(files, target)
    _used.add(aside)
    try:
        files.make_folder(aside)
        yield aside
        _move(files, aside, target)
    except BaseException:
        files.remove(aside)
        for folder in missing:  # the lowest first; another's file in one of them keeps it
            if files.exists(folder) and not files.listed(folder):
                files.remove(folder)
        raise
    finally:
        _used.discard(aside)


def recover(files: HadoopFiles, target: str) -> None:
    """Recover what killed runs left next to the target, as `crowdveil.io.atomic.recover` does.

    Only folders of runs on this machine that have ended are touched.
    """
    above, prefix = files.sibling(target, "").rstrip("/"), f".{files.name(target)}{MARK}-{socket.gethostname()}-"
    if not above or not files.is_folder(above):
        return
    names = sorted(name for name, _, _ in files.listed(above) if name.startswith(prefix))
    for name in names:
        ending, left = name.removeprefix(prefix), files.sibling(target, name)
        if left in _used or not is_of_dead_process(ending):
            continue
        if ending.endswith(OLD) and not files.exists(target):
            files.move(left, target)
        else:
            files.remove(left)


_used: set[str] = set()
"""Folders that this process writes to."""


def _missing_above(files: HadoopFiles, target: str) -> list[str]:
    """Return the parent folders that do not exist yet, the lowest first."""
    missing, above = [], files.sibling(target, "").rstrip("/")
    while above and not files.exists(above):
        missing.append(above)
        above = files.sibling(above, "").rstrip("/")
    return missing


def _move(files: HadoopFiles, aside: str, target: str) -> None:
    """Move the finished folder to the target. Hadoop cannot exchange two names: between the two moves of a replacement there is
    no folder at the target, never half of one; of a run that is killed there, `recover` restores the earlier one. A store that
    copies in place of renaming (S3 without a table of its own) takes longer for that.
    """
    if not files.exists(target):
        files.move(aside, target)
        return
    old = f"{aside}{OLD}"
    files.move(target, old)
    try:
        files.move(aside, target)
    except BaseException:
        files.move(old, target)
        raise
    files.move(old, aside)  # a name with the ending stands for a whole folder, and this one is about to be removed
    files.remove(aside)
