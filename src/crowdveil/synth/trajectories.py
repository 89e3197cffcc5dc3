"""Make trajectories of vehicles in a synthetic city, as a GPS receiver would record them.

Each follows a trip of `synth.trips` along a grid of streets about 125 m apart: from a door in the origin tile, in up to six
straight legs, to a door in the destination tile; slow in the center, faster outside; a point every 30 to 60 seconds, off the
street by the noise of the receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from crowdveil.engine.progress import Progress
from crowdveil.kernels.city import drive
from crowdveil.model.arrays import Floats, Indices, Ints
from crowdveil.model.trajectories import Trajectories
from crowdveil.synth.city import City, require_between
from crowdveil.synth.trips import TripRows, stream_tables, trip_chunks

CHUNK = 20_000
"""Trajectories made at a time: about half a million points."""
MAX_TRAJECTORIES = 10**10
STREET_M = 125.0
MIN_S = 60
JITTER_S = 4
NOISE_M = (5.0, 10.0)
"""Range of the standard deviation of receivers."""
DOOR_M = 45.0
"""Distance of doors from the edge of a tile, where it is wide enough, so that noise does not move them out of it."""

SCHEMA = pa.schema(
    [
        ("lat", pa.float64()),
        ("lon", pa.float64()),
        ("timestamp", pa.timestamp("us")),
        ("trajectory_id", pa.int64()),
        ("user_id", pa.int64()),
    ]
)


class TrajectoryRows(NamedTuple):
    """One chunk of trajectories: points (lon, lat, t) with offsets, and the person of each trajectory."""

    lon: Floats
    lat: Floats
    t: Ints
    offsets: Ints
    person: Ints


def trajectory_chunk(city: City, rng: np.random.Generator, trips: TripRows) -> TrajectoryRows:
    """Return a trajectory for each trip."""
    corner_x, corner_y = _corners(city, rng, trips.origin, trips.destination)
    pace = rng.uniform(0.9, 1.1, len(trips.person))
    plan = (corner_x, corner_y, pace, street_m(city), city.reach_m / 2)
    nowhere = np.zeros(len(pace) + 1, np.int64), np.zeros(0, np.int64)
    seconds = np.maximum(np.rint(drive(*plan, *nowhere)[0]), MIN_S).astype(np.int64)
    offsets, elapsed = _moments(rng, seconds)
    _, x, y = drive(*plan, offsets, elapsed)
    points = np.diff(offsets)
    noise_m = np.repeat(rng.uniform(*NOISE_M, len(pace)), points)
    x += noise_m * rng.standard_normal(len(x))
    y += noise_m * rng.standard_normal(len(y))
    lon, lat = city.zones.projection.to_globe(x, y)
    # Six decimals are a tenth of a meter, the precision of receivers.
    return TrajectoryRows(
        lon.round(6), lat.round(6), np.repeat(trips.departure, points) + elapsed, offsets, trips.person
    )


def trajectory_chunks(
    city: City, trajectories: int, *, days: int, start: str, seed: int, chunk: int = CHUNK
) -> Iterator[TrajectoryRows]:
    """Yield chunks of at most `chunk` trajectories that make `trajectories` in all."""
    trips = trip_chunks(city, trajectories, days=days, start=start, seed=seed, purpose=2, chunk=chunk)
    for rng, rows in trips:
        yield trajectory_chunk(city, rng, rows)


def write_trajectories(
    city: City,
    path: str | Path,
    trajectories: int,
    days: int = 7,
    start: str = "2026-03-02",
    *,
    seed: int,
    progress: Progress | None = None,
) -> None:
    """Stream trajectories to a Parquet file with columns lat, lon, timestamp (UTC), trajectory_id, user_id.

    Parameters
    ----------
    city
        The city.
    path
        The file; replaced if there is one.
    trajectories
        Their exact number; each has about 10 to 25 points in a city of the default size.
    days, start
        The period: a number of days and its first date.
    seed
        The same seed, city and version give the same bytes.
    progress
        Called with (trajectories written, trajectories).
    """
    require_between("trajectories", trajectories, 0, MAX_TRAJECTORIES)
    chunks = trajectory_chunks(city, trajectories, days=days, start=start, seed=seed)
    stream_trajectories(path, chunks, trajectories, progress)


def in_memory(chunks: Iterator[TrajectoryRows]) -> Trajectories:
    """Return all chunks with ids from 0."""
    rows = list(chunks)
    if not rows:
        no_points, none = np.zeros(0), np.zeros(0, np.int64)
        return Trajectories(no_points, no_points, none, np.zeros(1, np.int64), none, none, none)
    lon, lat, t, _, user = (np.concatenate(column) for column in zip(*rows, strict=True))
    offsets = _offsets(np.concatenate([np.diff(chunk.offsets) for chunk in rows]))
    people_ids, person = np.unique(user, return_inverse=True)
    return Trajectories(lon, lat, t, offsets, np.arange(len(offsets) - 1), person, people_ids)


def stream_trajectories(
    path: str | Path, chunks: Iterator[TrajectoryRows], total: int, progress: Progress | None
) -> None:
    """Write chunks one after the other, with ids from 0."""
    stream_tables(path, SCHEMA, _trajectory_tables(chunks, total, progress), ["trajectory_id", "user_id"])


def street_m(city: City) -> float:
    """Return the meters between parallel streets: about 125 m, and a whole number of streets to a tile."""
    return city.grid.size_m / max(1, round(city.grid.size_m / STREET_M))


def _trajectory_tables(chunks: Iterator[TrajectoryRows], total: int, progress: Progress | None) -> Iterator[Any]:
    done = 0
    for rows in chunks:
        points = np.diff(rows.offsets)
        numbers = np.arange(done, done + len(points), dtype=np.int64)
        when = pa.array(rows.t * 1_000_000, pa.timestamp("us"))
        ids = (np.repeat(numbers, points), np.repeat(rows.person, points))
        yield pa.Table.from_arrays([rows.lat, rows.lon, when, *ids], schema=SCHEMA)
        done += len(points)
        if progress is not None:
            progress(done, total)


def _moments(rng: np.random.Generator, seconds: Ints) -> tuple[Ints, Ints]:
    """Return offsets and moments (whole seconds since the start) of trajectories that take `seconds`.

    The first moment is 0 and the last is the arrival. Between them steps are at least 24 s, so that a jitter of 4 s on
    either side leaves them in order.
    """
    steps = np.maximum(1, np.rint(seconds / rng.integers(30, 61, len(seconds)))).astype(np.int64)
    offsets = _offsets(steps + 1)
    number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], steps + 1)
    elapsed = np.rint(number * np.repeat(seconds / steps, steps + 1)).astype(np.int64)
    jitter = rng.integers(-JITTER_S, JITTER_S + 1, len(elapsed))
    jitter[offsets[:-1]] = 0
    jitter[offsets[1:] - 1] = 0
    return offsets, elapsed + jitter


def _corners(city: City, rng: np.random.Generator, origin: Indices, destination: Indices) -> tuple[Floats, Floats]:
    """Return seven corners for each trajectory: its doors, and five turns where streets cross (some at the same crossing).

    A vehicle moves along one axis, called first, then along the other, and so on in turn. It starts on a street of the
    first axis and ends on one of the other; each turn between lies a random part of the distance ahead, at a crossing.
    Positions are meters from the corner of the grid until the last line.
    """
    grid, street, n = city.grid, street_m(city), len(origin)
    x_first = rng.random(n) < 0.5
    (first_from, other_from), (first_to, other_to) = (
        (np.where(x_first, column, row), np.where(x_first, row, column))
        for row, column in (np.divmod(tiles, grid.columns) for tiles in (origin, destination))
    )
    start_first, start_other = _door(city, rng, first_from), _street(city, rng, other_from)
    end_first, end_other = _street(city, rng, first_to), _door(city, rng, other_to)
    ahead = np.sort(rng.random((2, 2, n)), axis=1)
    # A third of the trajectories turn once, a third three times, a third five times.
    turns = rng.integers(0, 3, n)
    ahead[0, 0, turns < 1] = 1.0
    ahead[0, 1, turns < 2] = 1.0
    first1, first2 = (_crossing(start_first + f * (end_first - start_first), street) for f in ahead[0])
    other1, other2 = (_crossing(start_other + f * (end_other - start_other), street) for f in ahead[1])
    along = np.stack([start_first, first1, first1, first2, first2, end_first, end_first], axis=1)
    across = np.stack([start_other, start_other, other1, other1, other2, other2, end_other], axis=1)
    x, y = np.where(x_first[:, None], (along, across), (across, along))
    return grid.x0 + x, grid.y0 + y


def _door(city: City, rng: np.random.Generator, line: Indices) -> Floats:
    """Return a position anywhere in the row or column `line` of tiles, away from its edges."""
    size = city.grid.size_m
    edge = min(DOOR_M, size / 4)
    return np.asarray(line * size + rng.uniform(edge, size - edge, len(line)), np.float64)


def _street(city: City, rng: np.random.Generator, line: Indices) -> Floats:
    """Return the position of a street in the row or column `line` of tiles."""
    size, street = city.grid.size_m, street_m(city)
    return np.asarray(line * size + (rng.integers(0, round(size / street), len(line)) + 0.5) * street, np.float64)


def _crossing(position: Floats, street: float) -> Floats:
    """Return the street nearest to a position."""
    return np.asarray((np.floor(position / street) + 0.5) * street, np.float64)


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
