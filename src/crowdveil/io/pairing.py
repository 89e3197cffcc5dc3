"""Which original trajectory each published one comes from, kept in a private file for measuring.

The file undoes the new ids of a release. It is written outside the release's folder, for its owner's eyes alone (mode 0600), and
nothing in the release tells of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import CrowdveilError, InputError, Option, OutputError, counted
from crowdveil.io.atomic import new_file, write_errors
from crowdveil.io.source import open_source
from crowdveil.io.tables import check_ending, write_table
from crowdveil.io.values import ids_of
from crowdveil.io.written import MANIFEST_FILE
from crowdveil.model.arrays import Ints, Labels
from crowdveil.model.trajectories import Trajectories

PUBLISHED, TRAJECTORY, USER = "published_id", "trajectory_id", "user_id"
"""The columns; that of users only where ids of trajectories start anew for each of them."""

Keep = Callable[[Trajectories, Ints | None], None]


@contextmanager
def kept_pairing(file: Path | None, release: Path, *, overwrite: bool) -> Iterator[Keep]:
    """Gives a function to call with the original and the source of each published trajectory; the file is in place when all that
    is done inside went well, and is not there otherwise. Without a file nothing is kept.

    Nothing but an earlier pairing is replaced, and that only with `overwrite`.
    """
    if file is None:
        yield lambda original, source: None
        return
    _check_place(file, release, overwrite)
    with new_file(file, overwrite=overwrite) as temporary:
        yield lambda original, source: write_pairing(temporary, original, source)
        if not temporary.exists():
            raise OutputError(file, "there was nothing to write.")


def _check_place(file: Path, release: Path, overwrite: bool) -> None:
    check_ending(file, option="pairing")
    place = file.resolve()
    if place.is_relative_to(release.resolve()) or (place.parent / MANIFEST_FILE).exists():
        raise OutputError(
            file,
            f"it says whose each published trajectory is, so it must not lie in the folder of a release; "
            f"name another place with {Option('pairing')}.",
        )
    if file.exists() and not overwrite:
        raise OutputError(
            file, f"the file exists; name another with {Option('pairing')}, or replace it with {Option('overwrite')}."
        )
    if file.exists() and not _is_pairing(file):
        raise OutputError(
            file, f"the file holds no pairing, so it is not replaced; name another with {Option('pairing')}."
        )


def _is_pairing(file: Path) -> bool:
    try:
        return {PUBLISHED, TRAJECTORY} <= set(open_source(file).columns)
    except CrowdveilError:
        return False


def write_pairing(file: Path, original: Trajectories, source: Ints | None) -> None:
    """Write the original id of each published trajectory, which are numbered 1, 2, …"""
    if source is None:
        raise InputError(
            Option("pairing"),
            f"this method does not tell which trajectory came of which; leave {Option('pairing')} out.",
        )
    columns: dict[str, Any] = {PUBLISHED: np.arange(1, len(source) + 1), TRAJECTORY: _column(original.ids[source])}
    if not _unique(original):
        columns[USER] = _column(original.people_ids[original.person[source]])
    with write_errors(file):
        # Made before anything is in it, so that at no time anybody else can read it.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        write_table(pa.table(columns), file, as_input=True)
        file.chmod(0o600)


def _column(labels: Labels) -> Any:
    return pa.array(labels.tolist(), pa.string() if labels.dtype == object else pa.int64())


def _unique(data: Trajectories) -> bool:
    return len(set(data.ids.tolist())) == len(data)


def _keys(data: Trajectories) -> list[tuple[str, ...]]:
    """The id of each trajectory; with that of its person, where the former is not enough."""
    ids = [str(name) for name in data.ids.tolist()]
    if _unique(data):
        return [(name,) for name in ids]
    return list(zip(ids, (str(who) for who in data.people_ids[data.person].tolist()), strict=True))


def pairing_by_ids(original: Trajectories, published: Trajectories) -> Ints | None:
    """The original of each published trajectory by equal ids; None where a published id is not an original's."""
    place = {key: i for i, key in enumerate(_keys(original))}
    found = [place.get(key, -1) for key in _keys(published)]
    return None if -1 in found else np.array(found, np.int64)


def read_pairing(pairing: Any, original: Trajectories, published: list[str]) -> Ints:
    """The original of each published trajectory, whose ids are `published`, from a kept file or a table."""
    source = open_source(pairing)
    file = source.name
    missing = [name for name in (PUBLISHED, TRAJECTORY) if name not in source.columns]
    keys = _keys(original)
    needs_user = bool(keys) and len(keys[0]) == 2
    if missing or (needs_user and USER not in source.columns):
        raise InputError(
            file,
            f"wanted a pairing, but it has no column {(missing or [USER])[0]}; "
            f"give the file that was kept with {Option('pairing')}.",
        )
    names = [PUBLISHED, TRAJECTORY, *([USER] if needs_user else [])]
    table = source.read(names, as_is=True)
    columns = [_texts(table[name], f"{file}, column {name}") for name in names]
    new, old = columns[0], list(zip(*columns[1:], strict=True))
    again = len(new) - len(set(new))
    if again:
        raise InputError(
            file,
            f"{_trajectories(again)} {'is' if again == 1 else 'are'} there more than once as published; "
            "give the pairing that was kept with the release.",
        )
    place = {key: i for i, key in enumerate(keys)}
    of_new = dict(zip(new, (place.get(key, -1) for key in old), strict=True))
    _must_fit(file, "the release", len(of_new.keys() - set(published)))
    _must_fit(file, "the original", sum(i < 0 for i in of_new.values()))
    lost = sum(name not in of_new for name in published)
    if lost:
        raise InputError(
            file,
            f"{_trajectories(lost)} of the release {'is' if lost == 1 else 'are'} not in it; "
            "give the pairing that was kept with the release.",
        )
    return np.array([of_new[name] for name in published], np.int64)


def _texts(column: Any, what: str) -> list[str]:
    return [str(value) for value in ids_of(column, what).to_pylist()]


def _must_fit(file: str, what: str, strange: int) -> None:
    if strange:
        raise InputError(
            file,
            f"{_trajectories(strange)} in it {'is' if strange == 1 else 'are'} not in {what}; "
            "give the pairing that was kept with the release.",
        )


def _trajectories(n: int) -> str:
    return counted(n, "trajectory", "trajectories")
