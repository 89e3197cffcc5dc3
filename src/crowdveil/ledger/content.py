"""Identify source records by keyed hashes of their content, so that inputs that overlap share the records in common.

A record is identified by the columns of its origin, destination, time and person, as far as the data have them; not by its
position, and not by the zones or the time steps of a release. Equal rows are one record with the number of them as volume.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crowdveil.errors import InputError
from crowdveil.io.od_columns import OdColumns
from crowdveil.io.person_ids import IdRules
from crowdveil.io.source import Source
from crowdveil.io.times import Clock
from crowdveil.io.values import encode_ids, read_floats
from crowdveil.model.arrays import Floats, Ints, group_sums

Hashes = npt.NDArray[np.uint64]
COORDINATES = ("origin_lon", "origin_lat", "destination_lon", "destination_lat")
_DECIMALS = 7
"""Decimals of degrees that identify a location: about a centimeter."""


class SourceRecords(NamedTuple):
    """Distinct source records, rising by their hash.

    Attributes
    ----------
    source
        The keyed hash of the content.
    person
        The keyed hash of the person; None where people are not known.
    volume
        Trips (or locations) of the record.
    cell
        The flow or the sector that it lies in; of records of a release the published row, -1 where it is suppressed without a
        published total.
    """

    source: Hashes
    person: Hashes | None
    volume: Ints
    cell: Ints

    def only(self, keep: Any) -> SourceRecords:
        """Return some of the records."""
        person = None if self.person is None else self.person[keep]
        return SourceRecords(self.source[keep], person, self.volume[keep], self.cell[keep])


def distinct_records(source: Hashes, person: Hashes | None, volume: Ints | None, cell: Ints) -> SourceRecords:
    """Return records sorted by their hash, equal ones added up."""
    hashes, first, number = np.unique(source, return_index=True, return_inverse=True)
    added = group_sums(number, 1 if volume is None else volume, len(hashes))
    return SourceRecords(hashes, None if person is None else person[first], added, cell[first])


def hash_texts(texts: Any, key: bytes, use: bytes) -> Hashes:
    """Return the keyed hash of each text; `use` separates those of people from those of zones."""
    digests = [hashlib.blake2b(str(text).encode(), digest_size=8, key=key, person=use).digest() for text in texts]
    return np.frombuffer(b"".join(digests), np.uint64)


def hash_rows(words: list[Hashes], key: bytes) -> Hashes:
    """Return the keyed hash of each row of some columns of 64 bits."""
    content = np.column_stack(words).tobytes()
    width = 8 * len(words)
    view = memoryview(content)
    hashed = hashlib.blake2b
    digests = [
        hashed(view[low : low + width], digest_size=8, key=key, person=b"record").digest()
        for low in range(0, len(content), width)
    ]
    return np.frombuffer(b"".join(digests), np.uint64)


def hash_ids(column: Any, key: bytes, use: bytes, what: str) -> Hashes:
    """Return the keyed hash of each id of a column; each distinct id is hashed once."""
    number, labels, _ = encode_ids(column, what)
    hashes = hash_texts(labels, key, use)
    return hashes[number] if len(labels) else np.zeros(len(number), np.uint64)


def degrees(values: Floats) -> Hashes:
    """Return degrees as words that are equal for equal locations."""
    rounded: Floats = np.round(values, _DECIMALS) + 0.0  # no negative zero
    return rounded.view(np.uint64)


def identifying_columns(found: OdColumns) -> dict[str, str]:
    """Return the columns that identify a record, by role."""
    ends = ("origin", "destination") if found.by_id else COORDINATES
    columns = {role: getattr(found, role) for role in (*ends, "time", "user")}
    return {role: name for role, name in columns.items() if name is not None}


def columns_in(source: Source, found: OdColumns, known: Mapping[str, str] | None) -> dict[str, str]:
    """Return the identifying columns of an input: those of the ledger's first entry, under this input's names.

    Raise where the input has others: its records could not be compared with those of the ledger.
    """
    own = identifying_columns(found)
    if known is None:
        return own
    columns = {role: own.get(role, name) for role, name in known.items()}
    lacking = [role for role, name in columns.items() if name not in source.columns]
    if lacking or ("user" in own and "user" not in columns) or ("time" in columns and found.time is None):
        raise InputError(
            source.name,
            f"the ledger identifies records by {_listed(known)}, but this input has {_listed(own)}, so that they cannot be "
            "compared; give the input with the same columns, or make a ledger for this source.",
        )
    return columns


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(role.replace("_", " ") for role in columns)


@dataclass(frozen=True)
class RowContent:
    """Hashes the rows of an input while it is read (`OdReader.content`).

    Attributes
    ----------
    columns
        The identifying columns, by role.
    """

    columns: Mapping[str, str]
    key: bytes
    tz: str
    ids: IdRules = field(default_factory=IdRules)

    def __call__(self, rows: Any, prepared: Any, instants: bool | None) -> dict[str, Hashes]:
        """Return the columns `source` and `person_hash` of usable rows; `prepared` has their local times."""
        words = {role: self._word(role, name, rows, prepared, instants) for role, name in self.columns.items()}
        found = {"source": hash_rows(list(words.values()), self.key)}
        return found | ({"person_hash": words["user"]} if "user" in words else {})

    def _word(self, role: str, name: str, rows: Any, prepared: Any, instants: bool | None) -> Hashes:
        if role == "time":
            wall = prepared["wall"].to_numpy()
            # Times without a zone are the same whatever zone a run assumes for them.
            return (Clock(self.tz).to_utc(wall) if instants else wall).astype(np.int64).view(np.uint64)
        if role == "user":
            return hash_ids(self.ids.apply(rows[name], name), self.key, b"user", name)
        if role in COORDINATES:
            return degrees(read_floats(rows[name], name)[0])
        return hash_ids(rows[name], self.key, b"zone", name)
