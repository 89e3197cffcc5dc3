"""Pairing: the original trajectory of each published one, in a confidential file for measuring.

The file reverses the new ids of a release. It is written outside the release's folder with mode 0600, and nothing in the
release refers to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import CrowdveilError, InputError, Option, OutputError, Text, counted
from crowdveil.io.atomic import new_file, write_errors
from crowdveil.io.source import open_source
from crowdveil.io.tables import check_ending, write_table
from crowdveil.io.values import ids_of
from crowdveil.io.written_release import MANIFEST_FILE
from crowdveil.model.arrays import Ints, Labels
from crowdveil.model.trajectories import Trajectories

PUBLISHED, TRAJECTORY, USER = "published_id", "trajectory_id", "user_id"
"""The columns; users only if ids of trajectories are not unique without them."""

PairingWriter = Callable[[Trajectories, Ints | None], None]


@contextmanager
def open_pairing(file: Path | None, release: Path, *, overwrite: bool) -> Iterator[PairingWriter]:
    """Yield a function that takes the original and the source of each published trajectory and writes the pairing.

    The file exists only if the block succeeds. Without a file nothing is written. Only an earlier pairing is replaced,
    and only with `overwrite`.
    """
    if file is None:
        yield lambda original, source: None
        return
    _check_path(file, release, overwrite)
    with new_file(file, overwrite=overwrite) as temporary:
        yield lambda original, source: write_pairing(temporary, original, source)
        if not temporary.exists():
            raise OutputError(file, "there was nothing to write.")


def _check_path(file: Path, release: Path, overwrite: bool) -> None:
    check_ending(file, option="pairing")
    path = file.resolve()
    if path.is_relative_to(release.resolve()) or (path.parent / MANIFEST_FILE).exists():
        raise OutputError(
            file,
            Text(
                "a pairing is confidential and must not be in the folder of a release. Name another path with {pairing}."
            ),
        )
    if file.exists() and not overwrite:
        raise OutputError(file, Text("the file exists. Name another with {pairing}, or replace it with {overwrite}."))
    if file.exists() and not _is_pairing(file):
        raise OutputError(file, Text("the file holds no pairing, so it is not replaced. Name another with {pairing}."))


def _is_pairing(file: Path) -> bool:
    try:
        return {PUBLISHED, TRAJECTORY} <= set(open_source(file).columns)
    except CrowdveilError:
        return False


def write_pairing(file: Path, original: Trajectories, source: Ints | None) -> None:
    """Write the original id of each published trajectory; these are numbered 1, 2, …"""
    if source is None:
        raise InputError(
            Option("pairing"),
            Text("this method has no pairing of published and original trajectories. Omit {pairing}."),
        )
    columns: dict[str, Any] = {PUBLISHED: np.arange(1, len(source) + 1), TRAJECTORY: _column(original.ids[source])}
    if not _unique(original):
        columns[USER] = _column(original.people_ids[original.person[source]])
    with write_errors(file):
        # Created empty with mode 0600, so that no other user can read it at any time.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        write_table(pa.table(columns), file, as_input=True)
        file.chmod(0o600)


def _column(labels: Labels) -> Any:
    return pa.array(labels.tolist(), pa.string() if labels.dtype == object else pa.int64())


def _unique(data: Trajectories) -> bool:
    return len(set(data.ids.tolist())) == len(data)


def _keys(data: Trajectories) -> list[tuple[str, ...]]:
    """Return the id of each trajectory, with that of its person if ids alone are not unique."""
    ids = [str(name) for name in data.ids.tolist()]
    if _unique(data):
        return [(name,) for name in ids]
    return list(zip(ids, (str(person) for person in data.people_ids[data.person].tolist()), strict=True))


def pairing_by_ids(original: Trajectories, published: Trajectories) -> Ints:
    """Return the original of each published trajectory by equal ids; raise if a published id is unknown."""
    index = {key: i for i, key in enumerate(_keys(original))}
    found = [index.get(key, -1) for key in _keys(published)]
    unknown = sum(i < 0 for i in found)
    if unknown:
        raise InputError(
            Option("paired_by_id"),
            Text(
                "{ids} not in the original. Expected all of them; give the {pairing} instead, or neither.",
                ids=counted(unknown, "published id is", "published ids are"),
            ),
        )
    return np.array(found, np.int64)


def read_pairing(pairing: Any, original: Trajectories, published: list[str]) -> Ints:
    """Return the original of each trajectory of `published` ids, from a pairing file or a table."""
    source = open_source(pairing)
    file = source.name
    missing = [name for name in (PUBLISHED, TRAJECTORY) if name not in source.columns]
    keys = _keys(original)
    needs_user = bool(keys) and len(keys[0]) == 2
    if missing or (needs_user and USER not in source.columns):
        raise InputError(
            file,
            Text(
                "Expected a pairing, but it has no column {column}; give the file that was written with {pairing}.",
                column=(missing or [USER])[0],
            ),
        )
    names = [PUBLISHED, TRAJECTORY, *([USER] if needs_user else [])]
    table = source.read(names, as_is=True)
    columns = [_texts(table[name], f"{Path(file).name}, column {name}") for name in names]
    new, old = columns[0], list(zip(*columns[1:], strict=True))
    _refuse(file, len(new) - len(set(new)), "listed more than once as published")
    index = {key: i for i, key in enumerate(keys)}
    of_new = dict(zip(new, (index.get(key, -1) for key in old), strict=True))
    _refuse(file, len(of_new.keys() - set(published)), "not in the release")
    _refuse(file, sum(i < 0 for i in of_new.values()), "not in the original")
    _refuse(file, sum(name not in of_new for name in published), "in the release, but not in this file")
    return np.array([of_new[name] for name in published], np.int64)


def _texts(column: Any, what: str) -> list[str]:
    return [str(value) for value in ids_of(column, what).to_pylist()]


def _refuse(file: str, n: int, why: str) -> None:
    if n:
        raise InputError(
            file,
            f"{counted(n, 'trajectory', 'trajectories')} {'is' if n == 1 else 'are'} {why}; "
            "give the pairing that was written with the release.",
        )
