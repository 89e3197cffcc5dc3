"""Identify source records by keyed hashes of their content, to find the records that several inputs share.

A record is identified by the raw values of origin, destination, time and person, in the columns of the ledger's first entry.
Its row number, and the zones, time steps, columns and time zone of a run do not matter. Equal rows are one record, and their
number is its volume.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Option
from crowdveil.io.od_columns import OdColumns
from crowdveil.io.person_ids import normalized_ids
from crowdveil.io.source import Source
from crowdveil.io.values import encode_ids, read_floats
from crowdveil.model.arrays import Floats, Ints, group_sums

Hashes = npt.NDArray[np.uint64]
COORDINATES = ("origin_lon", "origin_lat", "destination_lon", "destination_lat")
_DECIMALS = 7
"""Decimals of degrees of a location, about a centimeter."""


class SourceRecords(NamedTuple):
    """Distinct source records, rising by their hash.

    Attributes
    ----------
    source
        The keyed hash of the content.
    person
        The keyed hash of the person; None if people are unknown.
    volume
        Number of trips.
    cell
        The flow of the record; in a release its published row, or -1 if it is suppressed without a published total.
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
    """Return records sorted by their hash, with equal ones added up; raise if equal ones are in different cells."""
    hashes, first, number = np.unique(source, return_index=True, return_inverse=True)
    if not np.array_equal(cell[first][number], cell):
        raise equal_records_apart()
    added = group_sums(number, 1 if volume is None else volume, len(hashes))
    return SourceRecords(hashes, None if person is None else person[first], added, cell[first])


def equal_records_apart() -> InputError:
    """Return the error about different records with equal values in the ledger's columns."""
    return InputError(
        Option("ledger"),
        "Expected equal records in one flow, got some in different flows because of another column. Use the columns of the "
        "first release of the ledger, or create a ledger for this source.",
    )


def hash_texts(texts: Any, key: bytes, use: bytes) -> Hashes:
    """Return the keyed hash of each text; `use` makes hashes of people and zones differ."""
    digests = [hashlib.blake2b(str(text).encode(), digest_size=8, key=key, person=use).digest() for text in texts]
    return np.frombuffer(b"".join(digests), np.uint64)


def hash_rows(words: list[Hashes], key: bytes) -> Hashes:
    """Return the keyed hash of each row of 64-bit columns."""
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
    """Return degrees as 64-bit words that are equal for equal locations."""
    rounded: Floats = np.round(values, _DECIMALS) + 0.0  # no negative zero
    return rounded.view(np.uint64)


def identifying_columns(found: OdColumns) -> dict[str, str]:
    """Return the columns that identify a record, by role."""
    ends = ("origin", "destination") if found.by_id else COORDINATES
    columns = {role: getattr(found, role) for role in (*ends, "time", "user")}
    return {role: name for role, name in columns.items() if name is not None}


def columns_in(source: Source, found: OdColumns, known: Mapping[str, str] | None) -> dict[str, str]:
    """Return the identifying columns of an input: those of the ledger's first entry, whatever columns the run uses.

    Raise if the input lacks one, since its records cannot be compared with those of the ledger.
    """
    own = identifying_columns(found)
    if known is None:
        return own
    if any(name not in source.columns for name in known.values()):
        raise InputError(
            source.name,
            f"Expected the columns that identify the records of the ledger ({', '.join(known.values())}), got only some of "
            "them. Add the others, or create a ledger for this source.",
        )
    if "user" in own and "user" not in known:
        raise InputError(
            source.name,
            f"Expected data without people, as in the first release of the ledger, got column {own['user']}. Leave it out, "
            "or create a ledger for this source.",
        )
    return dict(known)


@dataclass(frozen=True)
class RowContent:
    """Hash the raw values of rows while an input is read (`OdReader.content`).

    Attributes
    ----------
    columns
        The identifying columns, by role.
    key
        The key of the ledger's hashes.
    """

    columns: Mapping[str, str]
    key: bytes

    def __call__(self, rows: Any) -> dict[str, Hashes]:
        """Return the columns `source` and `person_hash` of usable rows."""
        words = {role: self._word(role, rows[name], name) for role, name in self.columns.items()}
        found = {"source": hash_rows(list(words.values()), self.key)}
        return found | ({"person_hash": words["user"]} if "user" in words else {})

    def _word(self, role: str, column: Any, name: str) -> Hashes:
        if role == "user":
            # Ids that differ only in case may be one person: counting them as one is safe.
            text = normalized_ids(column, name).cast(pa.string())
            return hash_ids(pc.utf8_lower(text), self.key, b"user", name)
        if role in COORDINATES:
            return degrees(read_floats(column, name)[0])
        if pa.types.is_temporal(column.type):
            moments = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
            column = moments.cast(pa.string())
        return hash_ids(column, self.key, b"zone", name)
