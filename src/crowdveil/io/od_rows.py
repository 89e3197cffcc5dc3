"""Read rows of trips or flows in chunks: zones as indices, local times, and problems of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Text
from crowdveil.io.cropping import Crop
from crowdveil.io.notes import Problems, ReadNotes
from crowdveil.io.od_columns import ENDS, OdColumns
from crowdveil.io.person_ids import normalized_ids, refuse_other_spelling
from crowdveil.io.source import Source
from crowdveil.io.times import (
    FAR_TIME,
    FIX_TIMES,
    Seconds,
    TimeForm,
    far_reason,
    far_years,
    learned_form,
    mixed_zones,
    note_assumed_zone,
    note_clock_changes,
    odd_times,
    read_seconds,
)
from crowdveil.io.values import (
    comma_reason,
    decimal_commas,
    encode_ids,
    find_unusable_weights,
    natural_key,
    read_floats,
    to_weight_units,
)
from crowdveil.model.arrays import Floats, Indices, Ints, Labels, Mask
from crowdveil.model.flows import WEIGHT_UNITS
from crowdveil.model.tessellation import locate
from crowdveil.model.time_axis import Clock
from crowdveil.model.zones import Zones

NO_TIME = "have no usable time in column"
OFF_GLOBE = "have degrees that are not on the globe in column"
OUTSIDE = "outside all zones"


class ZoneNames:
    """Zone ids as indices, of given zones or of ids as they appear in the data."""

    def __init__(self, zones: Zones | None, *, from_data: bool = False) -> None:
        self.zones = zones
        self.from_data = from_data or zones is None
        self._seen: dict[str, int] = {}

    def indices(self, column: Any, what: str) -> tuple[Indices, Mask | None]:
        """Return the zone index of each row, and the rows whose zone is unknown."""
        code, labels, missing = encode_ids(column, what)
        of_label = self._of_labels(labels, what)
        index = of_label.take(code) if len(labels) else np.full(len(code), -1, np.int32)
        if missing is None and of_label.min(initial=0) >= 0:
            return index, None
        bad = index < 0 if missing is None else (index < 0) | missing
        return index, bad if bad.any() else None

    def _of_labels(self, labels: Labels, what: str) -> Indices:
        of_label = np.fromiter((self._index(str(x)) for x in labels), np.int32, len(labels))
        if self.zones is not None:
            refuse_other_spelling((str(x) for x in labels[of_label < 0]), self.zones, what)
        return of_label

    def _index(self, name: str) -> int:
        if self.zones is not None:
            return self.zones.index_of(name)
        return self._seen.setdefault(name, len(self._seen))

    def finish(self) -> tuple[Zones, Indices | None]:
        """Return the zones; for ids from the data, also the final index of each provisional one (ids sorted)."""
        if self.zones is not None:
            return self.zones, None
        names = sorted(self._seen, key=natural_key)
        final = np.empty(len(names), np.int32)
        final[[self._seen[n] for n in names]] = np.arange(len(names))
        return Zones.from_ids(names), final


def zones_named(names: Sequence[str]) -> Zones:
    """Return zones without geometry, sorted by id."""
    return Zones.from_ids(sorted(names, key=natural_key))


@dataclass(frozen=True)
class OdChunk:
    """A prepared chunk of the input: its usable rows, and the problems of the others.

    Attributes
    ----------
    instants
        Whether its times are unambiguous instants; None if it has no usable time.
    skipped, twice
        Number of its local times that do not exist, and that exist twice.
    """

    rows: pa.RecordBatch
    problems: Problems
    instants: bool | None
    skipped: int = 0
    twice: int = 0


class RowHashes(Protocol):
    """Hash the rows of an input: `columns` are those that it needs, by role."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns, by role."""

    def __call__(self, rows: Any) -> Mapping[str, Any]:
        """Return new columns of usable rows of the input."""


@dataclass
class OdReader:
    """Reader of a source as batches with the columns o, d, wall, person, volume, people (those that exist).

    A copy made with `replace` starts from the first row.
    """

    source: Source
    columns: OdColumns
    names: ZoneNames
    tz: str
    form: TimeForm
    notes: ReadNotes
    crop: Crop = field(default_factory=Crop)
    content: RowHashes | None = None
    """Adds columns to the usable rows: their keyed hashes, for a ledger. Confidential."""
    problems: Problems = field(default_factory=Problems, init=False)
    instants: bool | None = field(default=None, init=False)
    """Whether times are unambiguous instants; None until some have been read."""
    odd_times: tuple[int, int] = field(default=(0, 0), init=False)
    """Number of local times that do not exist, and that exist twice."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the usable rows. `problems` is complete after the last batch."""
        self.learn_form()
        for start, batch in self._numbered():
            chunk = self.prepare(start, batch)
            self._add_chunk(chunk)
            yield chunk.rows
        note_clock_changes(self.notes, self.columns.time, self.tz, *self.odd_times)

    def learn_form(self) -> None:
        """Detect the form of times from all chunks."""
        column = self.columns.time
        if column is not None:
            chunks = (batch[column] for batch in self.source.batches([column]))
            self.form = learned_form(chunks, self.form, f"{self.source.name}, column {column}")

    def settle(self, drop_invalid: bool) -> None:
        """Raise if rows cannot be used, or count them as dropped."""
        self.problems.settle(self.source.name, drop_invalid, self.notes, self._remedy)

    def _remedy(self, reason: str) -> str | Text:
        if reason.startswith((NO_TIME, FAR_TIME)):
            return FIX_TIMES
        if reason.startswith(OFF_GLOBE):
            return "Exchange the columns if longitude and latitude are swapped, fix"
        if OUTSIDE in reason and self.problems.count[reason] == self.notes.rows:
            return "Check the coordinate system of the zones and the order of longitude and latitude, fix"
        return "Fix"

    def _numbered(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the chunks of the input, each with the number of rows before it."""
        start = 0
        more = () if self.content is None else self.content.columns.values()
        for batch in self.source.batches([*self.columns.used, *more], self.columns.zone_ids):
            if batch.num_rows:
                yield start, batch
                start += batch.num_rows
        self.notes.rows = start

    def _add_chunk(self, chunk: OdChunk) -> None:
        """Add problems, people and notes of a chunk; chunks come in input order."""
        for reason, n in chunk.problems.count.items():
            self.problems.add_count(reason, n, chunk.problems.first[reason])
        self.odd_times = self.odd_times[0] + chunk.skipped, self.odd_times[1] + chunk.twice
        if chunk.instants is None:
            return
        if self.instants not in (None, chunk.instants):
            raise mixed_zones(f"{self.source.name}, column {self.columns.time}")
        self.instants = chunk.instants
        if not chunk.instants:
            note_assumed_zone(self.notes, self.columns.time, self.tz)

    def prepare(self, start: int, batch: pa.RecordBatch) -> OdChunk:
        """Prepare a chunk of the input that begins at row `start`."""
        columns: dict[str, Any] = {}
        problems, instants, odd = Problems(), None, (0, 0)
        bad: Mask = np.zeros(batch.num_rows, bool)

        def problem(reason: str, rows: Mask | None) -> None:
            nonlocal bad
            if rows is not None:
                problems.add(reason, rows & ~bad, start)
                bad = bad | rows

        def crop(rows: Mask) -> None:
            # Rows that are left out on request are no problem, even if they cannot be used.
            nonlocal bad
            bad = bad | rows

        times, clock = self._times(batch), Clock(self.tz)
        if times is not None:
            columns["wall"] = clock.to_wall(times.values if times.instants else clock.to_utc(times.values))
            crop(self.crop.outside_times(columns["wall"]) & ~times.bad)
        for end, short in zip(ENDS, "od", strict=True):
            columns[short] = self._zone_indices(batch, end, problem, crop)
        if times is not None:
            problem(far_reason(self.columns.time), far_years(times, self.form))
            problem(f"{NO_TIME} {self.columns.time}", times.bad)
            instants, odd = None if times.bad.all() else times.instants, odd_times(times, clock)
        if self.columns.user is not None:
            person = normalized_ids(batch[self.columns.user], f"{self.source.name}, column {self.columns.user}")
            problem(f"have no user in column {self.columns.user}", person.is_null().to_numpy(zero_copy_only=False))
            columns["person"] = person
        columns |= self._amounts(batch, problem)
        if "people" in columns and "volume" in columns:
            more = columns["people"] > columns["volume"]
            problem(f"have more people than trips (columns {self.columns.people} and {self.columns.volume})", more)
        table = pa.RecordBatch.from_pydict(columns)
        usable = table.filter(pa.array(~bad)) if bad.any() else table
        if self.content is not None:
            rows = batch.filter(pa.array(~bad)) if bad.any() else batch
            for name, values in self.content(rows).items():
                usable = usable.append_column(name, pa.array(values))
        return OdChunk(usable, problems, instants, *odd)

    def _zone_indices(self, batch: pa.RecordBatch, end: str, problem: Any, crop: Any) -> Indices:
        if self.columns.by_id:
            column = getattr(self.columns, end)
            index, unknown = self.names.indices(batch[column], f"{self.source.name}, column {column}")
            reason = "name no zone" if self.names.from_data else "name a zone that is not among the zones"
            problem(f"{reason} in column {column}", unknown)
            crop(self._outside_zones(index))
            return index
        zones = self.names.zones
        if zones is None:
            raise InputError(Text("coordinates need zones. Give {zones}, such as grid:500m."))
        lon, lat = read_coordinates(batch, self.columns.coordinates(end), self.source.name, problem)
        if self.crop.box is not None:
            crop(self.crop.outside(lon, lat))
        index = locate(zones, lon, lat)
        problem(f"have their {end} {OUTSIDE}", index < 0)
        if zones.kind not in ("grid", "h3"):
            crop(self._outside_zones(index))
        return index

    def _outside_zones(self, index: Indices) -> Mask:
        """Return which rows have a zone whose center lies outside of the box."""
        zones = self.names.zones
        if self.crop.box is None:
            return np.zeros(len(index), np.bool_)
        if zones is None or not zones.located:
            raise InputError(Text("{bbox} needs zones with positions. Give {zones}, or coordinates of the trips."))
        outside: Mask = self.crop.outside(zones.lon, zones.lat)[index]
        return outside

    def _times(self, batch: pa.RecordBatch) -> Seconds | None:
        """Return the times of a chunk; None if the data has none."""
        column = self.columns.time
        if column is None:
            return None
        return read_seconds(batch[column], f"{self.source.name}, column {column}", self.form)

    def _amounts(self, batch: pa.RecordBatch, problem: Any) -> dict[str, Any]:
        """Return volumes, numbers of people and weights. The column part has the fractions of volumes."""
        columns, made = self.columns, {}
        if columns.volume is not None and pa.types.is_integer(batch[columns.volume].type):
            made["volume"] = self._whole_numbers(batch[columns.volume], columns.volume, problem)
        elif columns.volume is not None:
            values = self._numbers(batch[columns.volume], columns.volume, problem)
            made["volume"] = _without_large(values, columns.volume, problem)
            made["part"] = np.rint((values - np.floor(values)) * WEIGHT_UNITS).astype(np.int64)
        if columns.people is not None:
            made["people"] = self._whole_numbers(batch[columns.people], columns.people, problem)
        if columns.weight is not None:
            weights = self._numbers(batch[columns.weight], columns.weight, problem)
            for reason, rows in find_unusable_weights(weights).items():
                problem(f"have a weight {reason} in column {columns.weight}", rows)
            made["weight"] = to_weight_units(weights)
        return made

    def _numbers(self, column: Any, name: str, problem: Any) -> Floats:
        """Return numbers of at least 0."""
        values, missing = read_floats(column, f"{self.source.name}, column {name}")
        problem(comma_reason(name), None if missing is None else decimal_commas(column))
        problem(f"have no usable number in column {name}", missing)
        problem(f"have a number below zero in column {name}", values < 0)
        return values

    def _whole_numbers(self, column: Any, name: str, problem: Any) -> Ints:
        values = self._numbers(column, name, problem)
        problem(f"have a number that is not whole in column {name}", values != np.floor(values))
        return _without_large(values, name, problem)


def _without_large(values: Floats, name: str, problem: Any) -> Ints:
    """Return numbers without their fractions; those that are too large to be exact are a problem, and become 0."""
    problem(f"have too large a number in column {name}", values > 2**53)
    whole: Ints = np.where(np.abs(values) <= 2**53, values, 0).astype(np.int64)
    return whole


def read_coordinates(batch: Any, columns: tuple[str, str], name: str, problem: Any) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of a chunk, 0 where unusable; `problem` is called with the unusable rows."""
    result = []
    for column, bound in zip(columns, (180.0, 90.0), strict=True):
        values, missing = read_floats(batch[column], f"{name}, column {column}")
        problem(comma_reason(column), None if missing is None else decimal_commas(batch[column]))
        problem(f"have no usable value in column {column}", missing)
        off = np.abs(values) > bound
        problem(f"{OFF_GLOBE} {column}", off if off.any() else None)
        result.append(np.where(off, 0.0, values))
    return result[0], result[1]
