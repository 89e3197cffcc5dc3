"""Identify source records by keyed hashes of their content, so that inputs that overlap share the records in common.

A record is identified by the raw values of the columns of its origin, destination, time and person, as far as the first entry of
the ledger had them: not by its position, and not by the zones, time steps, columns, time zone or rules for ids of a run. Equal
rows are one record with the number of them as volume.
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
        Trips of the record.
    cell
        The flow that it lies in; of records of a release the published row, -1 where it is suppressed without a
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
    """Return records sorted by their hash, equal ones added up; raise where equal ones lie in different cells."""
    hashes, first, number = np.unique(source, return_index=True, return_inverse=True)
    if not np.array_equal(cell[first][number], cell):
        raise equal_records_apart()
    added = group_sums(number, 1 if volume is None else volume, len(hashes))
    return SourceRecords(hashes, None if person is None else person[first], added, cell[first])


def equal_records_apart() -> InputError:
    """Return the error about records that the columns of the ledger do not distinguish."""
    return InputError(
        Option("ledger"),
        "Expected equal records to lie in one flow, but another column puts some into different ones. Use the columns of the "
        "first release of the ledger, or make a ledger for this source.",
    )


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
    """Return the identifying columns of an input: those of the ledger's first entry, whatever columns the run itself uses.

    Raise where the input lacks one: its records could not be compared with those of the ledger.
    """
    own = identifying_columns(found)
    if known is None:
        return own
    if any(name not in source.columns for name in known.values()):
        raise InputError(
            source.name,
            f"Expected the columns that identify the records of the ledger ({', '.join(known.values())}), but some are missing. "
            "Give the input with them, or make a ledger for this source.",
        )
    if "user" in own and "user" not in known:
        raise InputError(
            source.name,
            f"Expected data without people, as in the first release of the ledger, got column {own['user']}. Leave it out, "
            "or make a ledger for this source.",
        )
    return dict(known)


@dataclass(frozen=True)
class RowContent:
    """Hashes the raw values of the rows of an input while it is read (`OdReader.content`).

    Attributes
    ----------
    columns
        The identifying columns, by role.
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
