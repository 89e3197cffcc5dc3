"""Rows of trips or flows, piece by piece: zones as indices, times on the wall, and what is wrong with a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Option, ParameterError, rows_that
from crowdveil.io.columns import find_columns, listed
from crowdveil.io.notes import ReadNotes
from crowdveil.io.parallel import in_order
from crowdveil.io.person_ids import IdRules, PeopleSeen, distinct_alike
from crowdveil.io.source import Source
from crowdveil.io.time_forms import TimeForm, learned_form
from crowdveil.io.times import (
    Clock,
    far_reason,
    far_years,
    odd_times,
    read_seconds,
    run_lengths,
    say_clock,
    say_unit,
    say_zone,
)
from crowdveil.io.values import codes, comma_reason, decimal_commas, natural, read_floats
from crowdveil.io.weights import in_units, unusable
from crowdveil.io.zone_ids import refuse_other_spelling
from crowdveil.model.arrays import Floats, Indices, Ints, Labels, Mask
from crowdveil.model.tessellation import locate
from crowdveil.model.zones import Zones

PLACES = ("origin", "destination")
NO_TIME = "have no usable time in column"
ROLES = (
    "origin", "destination", "origin_lon", "origin_lat", "destination_lon", "destination_lat",
    "time", "user", "volume", "people", "weight",
)  # fmt: skip


@dataclass(frozen=True)
class OdColumns:
    """Which column of the input means what; None where there is none."""

    origin: str | None = None
    destination: str | None = None
    origin_lon: str | None = None
    origin_lat: str | None = None
    destination_lon: str | None = None
    destination_lat: str | None = None
    time: str | None = None
    user: str | None = None
    volume: str | None = None
    people: str | None = None
    weight: str | None = None

    @property
    def by_id(self) -> bool:
        """Whether places are zone ids, and not coordinates."""
        return self.origin is not None

    @property
    def is_flows(self) -> bool:
        """Whether a row is a flow with its volume, and not one trip."""
        return self.volume is not None

    def coordinates(self, place: str) -> tuple[str, str]:
        """The columns of longitude and latitude of the origin or the destination."""
        return getattr(self, f"{place}_lon"), getattr(self, f"{place}_lat")

    @property
    def used(self) -> list[str]:
        """All columns that are read."""
        return [c for c in (getattr(self, role) for role in ROLES) if c is not None]


def find_od_columns(source: Source, named: dict[str, str | None], by_place: bool, notes: ReadNotes) -> OdColumns:
    """Find the columns. `by_place`: the user asked for a tessellation, so coordinates are wanted, not ids."""
    strange = [name for name in named if name not in ROLES]
    if strange:
        raise ParameterError(Option(strange[0]), f"there is no such option; columns are named by {', '.join(ROLES)}.")
    roles = {role: named.get(role) for role in ROLES}
    by_place = by_place or (roles["origin"] is None and roles["origin_lon"] is not None)
    wanted = {r: n for r, n in roles.items() if not _skip(r, by_place)}
    found = OdColumns(**find_columns(source, wanted, notes))
    if by_place or found.origin is None or found.destination is None:
        found = OdColumns(**find_columns(source, {r: n for r, n in roles.items() if r not in PLACES}, notes))
        missing = [r for r in ROLES[2:6] if getattr(found, r) is None]
        if missing:
            asked = [Option(role) for role in (ROLES[2:6] if by_place else ROLES[:2])]
            wanted_text = "coordinates of origin and destination" if by_place else "columns origin and destination"
            raise InputError(
                source.name,
                f"wanted {wanted_text}, but {listed(source)}; name them with {', '.join(map(str, asked[:-1]))} and {asked[-1]}.",
            )
    if found.is_flows and found.weight is not None:
        raise InputError(
            source.name,
            f"wanted volumes or weights, but there are both (columns {found.volume} and {found.weight}); "
            f"weights are for trips, so leave out {Option('weight')}.",
        )
    return found


def _skip(role: str, by_place: bool) -> bool:
    return (role in PLACES) if by_place else role.endswith(("_lon", "_lat"))


@dataclass
class Problems:
    """What is wrong with rows, by reason: how many, and the first of them."""

    count: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[int]] = field(default_factory=dict)

    def add(self, reason: str, bad: Mask | None, start: int) -> None:
        """Count the rows of a piece that begins at row `start`."""
        if bad is not None and bad.any():
            rows = np.flatnonzero(bad)
            self.add_count(reason, len(rows), (rows[:5] + start + 1).tolist())

    def add_count(self, reason: str, n: int, rows: list[int]) -> None:
        """Count `n` rows whose first are `rows`, from 1."""
        self.count[reason] = self.count.get(reason, 0) + n
        self.first[reason] = (self.first.get(reason, []) + rows)[:5]

    def settle(self, name: str, drop_invalid: bool, notes: ReadNotes) -> None:
        """Stop with the first reason, or note what was left out."""
        for reason, n in self.count.items():
            if not drop_invalid:
                hint = (
                    f"name the form of the times with {Option('time_format')}, " if reason.startswith(NO_TIME) else ""
                )
                raise InputError(
                    name,
                    f"{rows_that(self.first[reason], n, reason)}; {hint}fix them, "
                    f"or leave them out with {Option('drop_invalid')}.",
                )
            notes.drop(reason, n)


class ZoneNames:
    """Zone ids to indices: of zones that are given, or of names as they come up; all of these may be known already."""

    def __init__(self, zones: Zones | None, *, came_up: bool = False) -> None:
        self.zones = zones
        self.came_up = came_up or zones is None
        self._seen: dict[str, int] = {}
        self._last: dict[str, tuple[Labels, Indices]] = {}
        self._lock = Lock()

    def indices(self, column: Any, what: str) -> tuple[Indices, Mask | None]:
        """The zone of each row, and the rows whose zone is not known."""
        code, labels, missing = codes(column, what)
        of_label = self._of_labels(labels, what)
        index = of_label.take(code) if len(labels) else np.full(len(code), -1, np.int32)
        if missing is None and of_label.min(initial=0) >= 0:
            return index, None
        bad = index < 0 if missing is None else (index < 0) | missing
        return index, bad if bad.any() else None

    def _of_labels(self, labels: Labels, what: str) -> Indices:
        # One piece after the other has the same names.
        known, of_label = self._last.get(what, (labels[:0], np.zeros(0, np.int32)))
        if not np.array_equal(known, labels):
            of_label = np.fromiter((self._index(str(x)) for x in labels), np.int32, len(labels))
            if self.zones is not None:
                refuse_other_spelling((str(x) for x in labels[of_label < 0]), self.zones, what)
            self._last[what] = labels, of_label
        return of_label

    def _index(self, name: str) -> int:
        if self.zones is not None:
            return self.zones.index_of(name)
        with self._lock:  # pieces are read side by side
            return self._seen.setdefault(name, len(self._seen))

    def finish(self) -> tuple[Zones, Indices | None]:
        """The zones, and where names came up on the way, the final index of each provisional one (names sorted)."""
        if self.zones is not None:
            return self.zones, None
        names = sorted(self._seen, key=natural)
        final = np.empty(len(names), np.int32)
        final[[self._seen[n] for n in names]] = np.arange(len(names))
        return Zones.from_ids(names), final


def zones_named(names: Sequence[str]) -> Zones:
    """Zones of which only the names are known, in order of these."""
    return Zones.from_ids(sorted(names, key=natural))


@dataclass(frozen=True)
class Piece:
    """A piece of the input, made ready: its usable rows, and what is to be said of the others.

    Attributes
    ----------
    instants
        Whether its times say which moment they mean; None where it has none that can be used.
    skipped, twice
        How many of its times no clock showed, and how many it showed twice.
    people
        Its people, each once; None where they are not known.
    """

    rows: pa.RecordBatch
    problems: Problems
    instants: bool | None
    skipped: int = 0
    twice: int = 0
    people: Any = None


@dataclass
class OdReader:
    """Turns an opened source into batches with the columns o, d, wall, person, volume, people (those that exist)."""

    source: Source
    columns: OdColumns
    names: ZoneNames
    tz: str
    form: TimeForm
    notes: ReadNotes
    ids: IdRules = field(default_factory=IdRules)
    problems: Problems = field(default_factory=Problems)
    instants: bool | None = None
    """Whether times say which moment they mean; None until some have been read."""
    odd_times: tuple[int, int] = (0, 0)
    """How many times no clock showed, and how many it showed twice."""
    people: PeopleSeen = field(default_factory=PeopleSeen)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The usable rows. What is wrong with the others is in `problems` when all batches have been read."""
        self.learn_form()
        jobs = (partial(self.prepare, start, batch) for start, batch in self._numbered())
        # Points are not looked up side by side: what projects them is not made for that.
        for piece in in_order(jobs) if self.columns.by_id else (job() for job in jobs):
            self._take_note(piece)
            yield piece.rows
        say_clock(self.notes, self.columns.time, self.tz, *self.odd_times)

    def learn_form(self) -> None:
        """Find out how times are written, before pieces are read side by side."""
        column = self.columns.time
        if column is not None and not self.form.learned:
            pieces = (batch[column] for batch in self.source.batches([column]))
            self.form = learned_form(pieces, self.form, f"{self.source.name}, column {column}")
            say_unit(self.notes, column, self.form.unit)

    def count_people(self) -> int:
        """The number of distinct people in all rows that were read; ids that look alike are noted."""
        found = self.people.ids
        self.ids.warn(distinct_alike(found), self.columns.user, self.notes)
        return len(found)

    def _numbered(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The pieces of the input, each with the number of rows before it."""
        start = 0
        ids = [c for c in (self.columns.origin, self.columns.destination) if c is not None and self.columns.by_id]
        for batch in self.source.batches(self.columns.used, ids):
            if batch.num_rows:
                yield start, batch
                start += batch.num_rows

    def _take_note(self, piece: Piece) -> None:
        """Keep what is to be said of a piece; pieces come in their order."""
        for reason, n in piece.problems.count.items():
            self.problems.add_count(reason, n, piece.problems.first[reason])
        self.odd_times = self.odd_times[0] + piece.skipped, self.odd_times[1] + piece.twice
        if piece.people is not None:
            self.people.add(piece.people)
        if piece.instants is None:
            return
        if self.instants not in (None, piece.instants):
            raise InputError(
                f"{self.source.name}, column {self.columns.time}: some times have a zone and some have none; write all "
                "of them in one form."
            )
        self.instants = piece.instants
        if not piece.instants:
            say_zone(self.notes, self.columns.time, self.tz)

    def prepare(self, start: int, batch: pa.RecordBatch) -> Piece:
        """A piece of the input that begins at row `start`, made ready."""
        columns: dict[str, Any] = {}
        problems, instants, odd_times = Problems(), None, (0, 0)
        bad: Mask = np.zeros(batch.num_rows, bool)

        def problem(reason: str, rows: Mask | None) -> None:
            nonlocal bad
            if rows is not None:
                problems.add(reason, rows & ~bad, start)
                bad = bad | rows

        for place, short in zip(PLACES, "od", strict=True):
            columns[short] = self._place(batch, place, problem)
        if self.columns.time is not None:
            columns["wall"], instants, odd_times = self._wall(batch[self.columns.time], problem)
        if self.columns.user is not None:
            person = self.ids.apply(batch[self.columns.user], f"{self.source.name}, column {self.columns.user}")
            problem(f"have no user in column {self.columns.user}", person.is_null().to_numpy(zero_copy_only=False))
            columns["person"] = person
        for role, weight in (("volume", False), ("people", False), ("weight", True)):
            column = getattr(self.columns, role)
            if column is not None:
                columns[role] = self._amount(batch[column], column, weight, problem)
        if "people" in columns and "volume" in columns:
            more = columns["people"] > columns["volume"]
            problem(f"have more people than trips (columns {self.columns.people} and {self.columns.volume})", more)
        table = pa.RecordBatch.from_pydict(columns)
        usable = table.filter(pa.array(~bad)) if bad.any() else table
        return Piece(usable, problems, instants, *odd_times, self._people(usable))

    def _people(self, rows: pa.RecordBatch) -> Any:
        """The people of usable rows, each once."""
        if self.columns.user is None:
            return None
        return pc.unique((rows.filter(pc.greater(rows["volume"], 0)) if self.columns.is_flows else rows)["person"])

    def _place(self, batch: pa.RecordBatch, place: str, problem: Any) -> Indices:
        if self.columns.by_id:
            column = getattr(self.columns, place)
            index, unknown = self.names.indices(batch[column], f"{self.source.name}, column {column}")
            reason = "name no zone" if self.names.came_up else "name a zone that is not among the zones"
            problem(f"{reason} in column {column}", unknown)
            return index
        zones = self.names.zones
        if zones is None:
            raise InputError(
                f"coordinates need zones; give {Option('zones')}, {Option('grid')}, {Option('h3')} or {Option('voronoi')}."
            )
        lon, lat = read_place(batch, self.columns.coordinates(place), self.source.name, problem)
        index = locate(zones, lon, lat)
        problem(f"have their {place} outside all zones", index < 0)
        return index

    def _wall(self, column: Any, problem: Any) -> tuple[Ints, bool | None, tuple[int, int]]:
        """Times on the wall, whether they say which moment they mean (None where none can be used), and how many are odd."""
        lengths = run_lengths(column)
        if lengths is not None:
            column = column.take(pa.array(np.cumsum(lengths) - lengths))
        times = read_seconds(column, f"{self.source.name}, column {self.columns.time}", self.form)
        clock = Clock(self.tz)
        wall = clock.to_wall(times.values if times.instants else clock.to_utc(times.values))
        far = far_years(times, self.form)
        for reason, bad in ((far_reason(self.columns.time), far), (f"{NO_TIME} {self.columns.time}", times.bad)):
            if bad is not None and bad.any():
                problem(reason, bad if lengths is None else np.repeat(bad, lengths))
        odd = odd_times(times, clock, lengths)
        return wall if lengths is None else np.repeat(wall, lengths), None if times.bad.all() else times.instants, odd

    def _amount(self, column: Any, name: str, fractions: bool, problem: Any) -> Floats | Any:
        if pa.types.is_integer(column.type) and column.null_count == 0 and not fractions and column.type != pa.uint64():
            whole: Ints = column.to_numpy().astype(np.int64, copy=False)
            if len(whole) == 0 or (whole.min() >= 0 and whole.max() <= 2**53):
                return whole
        values, missing = read_floats(column, f"{self.source.name}, column {name}")
        problem(comma_reason(name), None if missing is None else decimal_commas(column))
        problem(f"have no usable number in column {name}", missing)
        problem(f"are below zero in column {name}", values < 0)
        if fractions:
            for reason, rows in unusable(values).items():
                problem(f"{reason} in column {name}", rows)
            return in_units(values)
        problem(f"are not whole in column {name}", values != np.floor(values))
        problem(f"are too large in column {name}", values > 2**53)
        return np.where(np.abs(values) <= 2**53, values, 0).astype(np.int64)


def read_place(batch: Any, columns: tuple[str, str], name: str, problem: Any) -> tuple[Floats, Floats]:
    """Longitudes and latitudes of a piece, 0 where they are not usable, which `problem` is told."""
    result = []
    for column, bound in zip(columns, (180.0, 90.0), strict=True):
        values, missing = read_floats(batch[column], f"{name}, column {column}")
        problem(comma_reason(column), None if missing is None else decimal_commas(batch[column]))
        problem(f"have no usable value in column {column}", missing)
        off = np.abs(values) > bound
        problem(f"are no degrees on the globe in column {column}", off if off.any() else None)
        result.append(np.where(off, 0.0, values))
    return result[0], result[1]
