"""Synthetic data in memory, what `crowdveil.synth` writes to files; and files of a small city."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from crowdveil.io.geojson import write_zones
from crowdveil.model.arrays import Floats
from crowdveil.model.globe import Box
from crowdveil.model.projection import LocalProjection
from crowdveil.model.tessellation import grid_over
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Grid
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import in_memory, trajectory_chunks
from crowdveil.synth.trips import trip_chunks, write_trips

START = "2026-03-02"


def grid_around(lon: float, lat: float, size_m: float, columns: int, rows: int) -> Grid:
    """Return the grid of this many squares around a point."""
    projection = LocalProjection.around_box(Box(lon, lat, lon, lat))
    x, y = (float(values[0]) for values in projection.to_plane(np.array([lon]), np.array([lat])))
    return Grid(projection, x - columns * size_m / 2, y - rows * size_m / 2, float(size_m), columns, rows)


@cache
def usual_city(seed: int) -> City:
    """Return a city of the usual size, made once in a process: 2,500 tiles and 100,000 people take a third of a second."""
    return City.make(seed)


def make_trajectories(city: City, trajectories: int, *, days: int = 7, seed: int) -> Trajectories:
    """Return the rows of `write_trajectories`, with ids from 0."""
    return in_memory(trajectory_chunks(city, trajectories, days=days, start=START, seed=seed))


def make_trips(city: City, trips: int, *, days: int = 7, start: str = START, seed: int) -> Trips:
    """Return the rows of `write_trips`, with local time as UTC."""
    chunks = [rows for _, rows in trip_chunks(city, trips, days=days, start=start, seed=seed)]
    if not chunks:
        no_tiles, no_rows = np.zeros(0, np.int32), np.zeros(0, np.int64)
        return Trips(city.zones, no_tiles, no_tiles, no_rows, no_rows)
    person, departure, origin, destination = (np.concatenate(column) for column in zip(*chunks, strict=True))
    return Trips(city.zones, origin, destination, departure, person)


def grid_frame(lon: Floats, lat: Floats, size_m: float) -> Grid:
    """Return the grid of squares of `size_m` meters on the ground that covers all points."""
    return grid_over(Box.of(lon, lat), size_m)


def write_city(folder: Path, tiles: int, people: int, trips: int, days: int) -> Path:
    """Write the trips and zones of a small city, `trips.parquet` and `zones.geojson`, and return the folder."""
    city = City.make(seed=3, tiles=tiles, people=people)
    write_trips(city, folder / "trips.parquet", trips, days, seed=3)
    write_zones(city.zones, folder / "zones.geojson")
    return folder
