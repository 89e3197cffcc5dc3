"""Which published trajectory came of which: a table that is kept in the house, since ids are new in a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, counted
from crowdveil.io.atomic import new_file
from crowdveil.io.source import open_source
from crowdveil.io.tables import check_ending, write_table
from crowdveil.io.values import codes
from crowdveil.model.arrays import Ints, Labels

PUBLISHED, ORIGINAL = "published_id", "trajectory_id"


def write_pairing(source: Ints, ids: Labels, path: str | Path, *, overwrite: bool = False) -> None:
    """Write which trajectory of the input, by its id there, each published one (1, 2, …) comes from: .csv or .parquet.

    Whoever has it undoes the new ids: it never leaves the house.
    """
    check_ending(Path(path))
    with new_file(Path(path), overwrite=overwrite) as file:
        original = pa.array(ids.tolist()) if len(ids) else pa.array([], pa.string())
        table = pa.table({PUBLISHED: np.arange(1, len(source) + 1), ORIGINAL: original.take(pa.array(source))})
        write_table(table, file)


def read_pairing(pairing: Any, ids: Labels, published: int) -> Ints:
    """The trajectory of the input that each of so many published ones comes from, by its place in `ids`.

    `pairing` is a file or a table with the columns `published_id` and `trajectory_id`, one row for each published trajectory.
    """
    opened = open_source(pairing)
    missing = [name for name in (PUBLISHED, ORIGINAL) if name not in opened.columns]
    if missing:
        raise InputError(
            f"{opened.name}: a pairing has the columns {PUBLISHED} and {ORIGINAL}, but {missing[0]} is not there."
        )
    table = opened.read([PUBLISHED, ORIGINAL], as_is=True)
    number = _numbers(table[PUBLISHED], opened.name)
    if len(number) != published or not np.array_equal(np.sort(number), np.arange(1, published + 1)):
        raise InputError(
            f"{opened.name}: wanted each published trajectory from 1 to {published:,} once, but it has "
            f"{counted(len(number), 'row')} with others; give the pairing that was kept with this release."
        )
    place = {str(name): i for i, name in enumerate(ids.tolist())}
    code, labels, empty = codes(table[ORIGINAL], f"{opened.name}, column {ORIGINAL}")
    known = np.array([place.get(str(label), -1) for label in labels.tolist()], np.int64)
    source = np.full(published, -1, np.int64)
    if len(labels):
        source[number - 1] = known[code]
    if empty is not None:
        source[number[empty] - 1] = -1
    strange = int((source < 0).sum())
    if strange:
        raise InputError(
            f"{opened.name}: {counted(strange, 'row')} {'names' if strange == 1 else 'name'} a trajectory that is not in the "
            "input; give the pairing that was kept with this release, and the input that it was made from."
        )
    return source


def _numbers(column: Any, name: str) -> Ints:
    try:
        numbers: Ints = pa.chunked_array(column).cast(pa.int64()).to_numpy().astype(np.int64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, TypeError):
        raise InputError(f"{name}: wanted whole numbers in the column {PUBLISHED}, but it has other values.") from None
    return numbers
