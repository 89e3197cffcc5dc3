"""Make trips of the people of a synthetic city, from a thousand to a hundred million.

Each trip draws a person (heavy-tailed: a few make very many), a day, and an hour with a purpose: to work and back on weekdays,
errands around home and work, other hours on weekends. Trips are made in chunks of a million with a generator each, so that
memory is bounded, and the same seed gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from crowdveil.engine.progress import Progress
from crowdveil.errors import Option, OutputError, ParameterError
from crowdveil.kernels.city import trip_ends
from crowdveil.model.arrays import Floats, Indices, Ints, Labels, Mask
from crowdveil.synth.city import City, generators, require_between

ZoneIds = Literal["name", "index"]

CHUNK = 1_000_000
MAX_TRIPS = 10**12
MAX_DAYS = 3660
DAY_S = 86_400
DAY_WEIGHTS = (1.0, 1.0, 1.0, 1.0, 1.08, 0.82, 0.66)
"""Trips of a day, Monday to Sunday."""
LOOKUP = 1 << 16
SCATTER = 2_654_435_761
"""A prime above `MAX_PEOPLE`, so that multiplying by it permutes the people."""


class TripRows(NamedTuple):
    """One chunk of trips: person, departure (seconds since 1970, local time), origin and destination tile."""

    person: Ints
    departure: Ints
    origin: Indices
    destination: Indices


@dataclass(frozen=True, eq=False)
class Calendar:
    """The days of trips, and their probabilities.

    Attributes
    ----------
    first_s
        The first midnight, seconds since 1970.
    running
        Running share of the days' trips.
    weekend
        Whether each day is a Saturday or Sunday.
    """

    first_s: int
    running: Floats
    weekend: Mask

    @classmethod
    def make(cls, days: int, start: str) -> Calendar:
        """Return `days` days from the date `start`, written as in 2026-03-02."""
        require_between("days", days, 1, MAX_DAYS)
        try:
            first = date.fromisoformat(start)
        except ValueError:
            raise ParameterError(Option("start"), f"Expected a date such as 2026-03-02, got {start!r}.") from None
        weekday = (first.weekday() + np.arange(days)) % 7
        running = np.cumsum(np.asarray(DAY_WEIGHTS)[weekday])
        return cls((first - date(1970, 1, 1)).days * DAY_S, running / running[-1], weekday >= 5)


def trip_chunk(city: City, rng: np.random.Generator, n: int, calendar: Calendar, lookup: Labels) -> TripRows:
    """Return `n` trips. `lookup` is `purpose_lookup()`."""
    person = _draw_people(rng, n, city.people)
    day = np.searchsorted(calendar.running[:-1], rng.random(n), side="right")
    slot = lookup[calendar.weekend[day].view(np.uint8), rng.integers(0, LOOKUP, n, dtype=np.uint16)]
    purpose, hour = np.divmod(slot, np.uint8(24))
    second = rng.integers(0, 3600, n, dtype=np.uint16)
    departure = np.asarray(calendar.first_s + day * DAY_S + hour * np.int64(3600) + second, np.int64)
    ends = trip_ends(person, purpose, rng.random(n), city.home, city.work, city.errands.tables)
    return TripRows(person, departure, *ends)


def trip_chunks(
    city: City, trips: int, *, days: int, start: str, seed: int, purpose: int = 1, chunk: int = CHUNK
) -> Iterator[tuple[np.random.Generator, TripRows]]:
    """Yield chunks of at most `chunk` trips that make `trips` in all, each with its own generator for further draws."""
    calendar, lookup = Calendar.make(days, start), purpose_lookup()
    for i, rng in enumerate(generators(seed, purpose, -(-trips // chunk))):
        yield rng, trip_chunk(city, rng, min(chunk, trips - i * chunk), calendar, lookup)


def write_trips(
    city: City,
    path: str | Path,
    trips: int,
    days: int = 7,
    start: str = "2026-03-02",
    *,
    seed: int,
    zone_ids: ZoneIds = "name",
    progress: Progress | None = None,
) -> None:
    """Stream trips to a Parquet file with columns user_id, departure (local time), origin, destination.

    Parameters
    ----------
    city
        The city.
    path
        The file; replaced if there is one.
    trips
        The exact number of rows.
    days, start
        The period: a number of days and its first date.
    seed
        The same seed, city and version give the same bytes.
    zone_ids
        "name" writes the ids of the tiles, as text; "index" their positions in the list of tiles, as int32.
    progress
        Called with (trips written, trips).
    """
    require_between("trips", trips, 0, MAX_TRIPS)
    if zone_ids not in ("name", "index"):
        raise ParameterError(Option("zone_ids"), f"Expected name or index, got {zone_ids!r}.")
    named = zone_ids == "name"
    names = pa.array(city.zones.ids.tolist(), pa.string()) if named else None
    zone_type = pa.dictionary(pa.int32(), pa.string()) if named else pa.int32()
    schema = pa.schema(
        [
            ("user_id", pa.int64()),
            ("departure", pa.timestamp("us")),
            ("origin", zone_type),
            ("destination", zone_type),
        ]
    )
    tables = _trip_tables(trip_chunks(city, trips, days=days, start=start, seed=seed), schema, names, trips, progress)
    stream_tables(path, schema, tables, dictionary=["origin", "destination"])


def _trip_tables(
    chunks: Iterator[tuple[np.random.Generator, TripRows]],
    schema: Any,
    names: Any,
    total: int,
    progress: Progress | None,
) -> Iterator[Any]:
    """Yield chunks as Arrow tables; `names` are the tiles' ids, or None to write their positions."""

    def zones(tiles: Indices) -> Any:
        return pa.array(tiles) if names is None else pa.DictionaryArray.from_arrays(pa.array(tiles), names)

    done = 0
    for _, rows in chunks:
        departure = pa.array(rows.departure * 1_000_000, pa.timestamp("us"))
        columns = [pa.array(rows.person), departure, zones(rows.origin), zones(rows.destination)]
        yield pa.Table.from_arrays(columns, schema=schema)
        done += len(rows.person)
        if progress is not None:
            progress(done, total)


def stream_tables(path: str | Path, schema: Any, tables: Iterator[Any], dictionary: list[str]) -> None:
    """Write tables one after the other, as CSV or Parquet by the ending; the file gets its name when it is complete."""
    path = Path(path)
    if not path.parent.is_dir():
        raise OutputError(path, "its folder does not exist. Make it first.")
    write = _stream_csv if path.suffix.lower() == ".csv" else _stream_parquet
    partial = path.with_name(path.name + ".partial")
    try:
        write(partial, schema, tables, dictionary)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _stream_parquet(path: Path, schema: Any, tables: Iterator[Any], dictionary: list[str]) -> None:
    with pq.ParquetWriter(path, schema, compression="snappy", use_dictionary=dictionary) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=max(1, table.num_rows))


def _stream_csv(path: Path, schema: Any, tables: Iterator[Any], _dictionary: list[str]) -> None:
    plain = pa.schema([(field.name, _plain_type(field.type)) for field in schema])
    with pacsv.CSVWriter(path, plain) as writer:
        for table in tables:
            writer.write_table(table.cast(plain))


def _plain_type(kind: Any) -> Any:
    """Return the type of a column in a CSV file: names themselves, and times in whole seconds."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.timestamp("s", kind.tz) if pa.types.is_timestamp(kind) else kind


def purpose_lookup() -> Labels:
    """Return 65,536 equally likely pairs of purpose and hour, as purpose × 24 + hour, for weekdays (0) and weekends (1)."""
    chance = (np.arange(LOOKUP) + 0.5) / LOOKUP
    rows = []
    for weights in (_weekday(), _weekend()):
        running = np.cumsum(weights.ravel())
        rows.append(np.searchsorted(running / running[-1], chance).astype(np.uint8))
    return np.stack(rows)


def _weekday() -> Floats:
    """Return the weight of every purpose (rows) in every hour (columns) of a weekday."""
    return np.stack(
        [
            _bump(8.3, 1.0, 24),
            _bump(17.8, 1.3, 22),
            _bump(10.5, 2.0, 7) + _bump(18.7, 1.8, 12) + 0.04,
            _bump(12.0, 2.0, 6) + _bump(20.5, 1.9, 14) + 0.04,
            _bump(12.4, 0.7, 5) + _bump(17.3, 1.2, 3),
            _bump(13.4, 0.7, 5) + _bump(9.0, 1.0, 2),
        ]
    )


def _weekend() -> Floats:
    """Return the weights for Saturdays and Sundays: late, mostly errands, more of them at night."""
    return np.stack(
        [
            _bump(9.5, 1.8, 4),
            _bump(18.0, 2.2, 4),
            _bump(11.5, 2.0, 20) + _bump(16.0, 3.0, 22) + 0.1,
            _bump(13.0, 2.0, 16) + _bump(19.0, 3.0, 24) + 0.2,
            _bump(13.0, 1.0, 1),
            _bump(14.0, 1.0, 1),
        ]
    )


def _bump(peak: float, width: float, share: float) -> Floats:
    """Return `share` spread over the hours around a peak."""
    bell = np.exp(-(((np.arange(24) + 0.5 - peak) / width) ** 2) / 2)
    return np.asarray(share * bell / bell.sum(), np.float64)


def _draw_people(rng: np.random.Generator, n: int, people: int) -> Ints:
    """Return the person of each trip, with a Pareto tail that ends at about 18 times the mean.

    Rank r has weight (r + people / 20,000)^(−1/3). It is drawn by the inverse of its running sum, which needs no table; ranks
    are then scattered over the people, so that a person's number is independent of their number of trips.
    """
    shift = people / 20_000
    low, high = shift ** (2 / 3), (people + shift) ** (2 / 3)
    rank = ((low + rng.random(n) * (high - low)) ** 1.5 - shift).astype(np.int64)
    np.clip(rank, 0, people - 1, out=rank)
    return np.asarray(rank * SCATTER % people, np.int64)
