"""Make a synthetic city: tiles, their land use, and people with a home and a work tile.

Homes are dense around the center and in a few towns and sparse between them; jobs concentrate in the center and in some of the
towns. Both have heavy-tailed noise, as real tiles do. Work tiles and errands are drawn by gravity: the attraction of a tile
times exp(−distance / decay).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crowdveil.errors import Option, ParameterError
from crowdveil.kernels.city import GravityTables, gravity_draws, gravity_tables
from crowdveil.model.arrays import Floats, Indices, frozen
from crowdveil.model.projection import LocalProjection
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.zones import Grid, Zones

MAX_TILES = 1_000_000
MAX_PEOPLE = 1_000_000_000
MAX_BLOCKS = 2500
"""Most blocks of a gravity table; above it, neighboring tiles share a block (see `Gravity`)."""
TOWNS = 7
TOWNS_WITH_JOBS = 3


def require_between(name: str, value: float, low: float, high: float) -> None:
    """Raise unless a parameter lies in its range."""
    if not low <= value <= high:
        raise ParameterError(Option(name), f"Expected a number from {low:,} to {high:,}, got {value:,}.")


def generators(seed: int, purpose: int, count: int) -> Iterator[np.random.Generator]:
    """Yield one generator for each of `count` chunks; `purpose` separates trips, trajectories and cities of one seed."""
    if seed < 0:
        raise ParameterError(Option("seed"), f"Expected a number of at least 0, got {seed}.")
    for child in np.random.SeedSequence([seed, purpose]).spawn(count):
        yield np.random.default_rng(child)


@dataclass(frozen=True, eq=False)
class Gravity:
    """A table to draw destinations by attraction and distance, with one memory access per draw.

    The table is square, so above 2,500 tiles an entry is a square block of neighboring tiles: distances are between blocks,
    and the tile inside a block is drawn by attraction alone.
    """

    tables: GravityTables

    @classmethod
    def make(cls, zones: Zones, attraction: Floats, decay_m: float) -> Gravity:
        """Make the table for the tiles of a grid."""
        block = _blocks(zones)
        tile = np.argsort(block, kind="stable").astype(np.int32)
        first = np.concatenate([[0], np.cumsum(np.bincount(block))])
        # Blocks are numbered without gaps, so no slice below is empty.
        pull = np.add.reduceat(attraction[tile], first[:-1])
        before = np.repeat(np.cumsum(pull) - pull, np.diff(first))
        share = (np.cumsum(attraction[tile]) - before) / np.repeat(pull, np.diff(first))
        x, y = (np.add.reduceat(c[tile], first[:-1]) / np.diff(first) for c in zones.xy)
        near_m = _grid(zones).size_m * math.sqrt(len(zones) / len(pull)) / 2
        keep, alias = gravity_tables(x, y, pull, decay_m, near_m)
        return cls(GravityTables(block, first, tile, share, keep, alias))

    def draw(self, rng: np.random.Generator, origins: Indices) -> Indices:
        """Return a destination for a person at each of `origins`."""
        drawn: Indices = gravity_draws(origins, rng.random(len(origins)), self.tables)
        return drawn


@dataclass(frozen=True, eq=False)
class City:
    """A synthetic city.

    Attributes
    ----------
    zones
        Its tiles: squares of a grid, named as in "r12c7".
    homes, jobs
        The people who live and work in each tile, as shares that add up to 1.
    home, work
        The home and the work tile of each person.
    errands
        The gravity of other destinations.
    """

    zones: Zones
    homes: Floats
    jobs: Floats
    home: Indices
    work: Indices
    errands: Gravity

    @classmethod
    def make(
        cls,
        seed: int,
        tiles: int = 2500,
        people: int = 100_000,
        *,
        tile_m: float = 500.0,
        lon: float = 2.35,
        lat: float = 48.85,
        commute_m: float = 4000.0,
        errand_m: float = 1500.0,
    ) -> City:
        """Build a city.

        Parameters
        ----------
        seed
            The same seed and sizes give the same city.
        tiles, people
            Their numbers; both exact. The grid is square where `tiles` is, otherwise its last row is short.
        tile_m
            Side of a tile.
        lon, lat
            The middle of the city, degrees.
        commute_m, errand_m
            Distances over which the probability of a work or errand tile falls by e.
        """
        require_between("tiles", tiles, 1, MAX_TILES)
        require_between("people", people, 1, MAX_PEOPLE)
        for name, meters in (("tile_m", tile_m), ("commute_m", commute_m), ("errand_m", errand_m)):
            require_between(name, meters, 1.0, 1_000_000.0)
        (rng,) = generators(seed, 0, 1)
        zones = square_zones(tiles, tile_m, lon, lat)
        homes, jobs = _land_use(zones, rng)
        home = rng.choice(tiles, people, p=homes).astype(np.int32)
        work = Gravity.make(zones, jobs, commute_m).draw(rng, home)
        errands = Gravity.make(zones, (homes + jobs) / 2, errand_m)
        return cls(zones, homes, jobs, frozen(home, np.int32), frozen(work, np.int32), errands)

    @property
    def people(self) -> int:
        """Return the number of people."""
        return len(self.home)

    @property
    def grid(self) -> Grid:
        """Return the grid of the tiles."""
        return _grid(self.zones)

    @property
    def reach_m(self) -> float:
        """Return half the width of the city, meters."""
        return self.grid.columns * self.grid.size_m / 2


def square_zones(tiles: int, tile_m: float, lon: float, lat: float) -> Zones:
    """Return square tiles around a position, row by row from the south-west."""
    columns = math.isqrt(tiles - 1) + 1
    rows = -(-tiles // columns)
    grid = Grid(LocalProjection(lon, lat), -columns * tile_m / 2, -rows * tile_m / 2, tile_m, columns, rows)
    row, column = np.divmod(np.arange(tiles, dtype=np.int32), columns)
    return grid_zones(grid, column, row)


def _grid(zones: Zones) -> Grid:
    if zones.grid is None:
        raise ParameterError("a synthetic city needs zones that are a grid.")
    return zones.grid


def _blocks(zones: Zones) -> Indices:
    """Number square blocks of tiles, as small as `MAX_BLOCKS` allows."""
    grid, side = _grid(zones), 1
    while -(-grid.columns // side) * -(-grid.rows // side) > MAX_BLOCKS:
        side += 1
    row, column = np.divmod(np.arange(len(zones)), grid.columns)
    number = (row // side) * -(-grid.columns // side) + column // side
    return np.unique(number, return_inverse=True)[1].astype(np.int32)


def _land_use(zones: Zones, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the shares of homes and jobs in each tile."""
    x, y = zones.xy
    reach = max(float(np.abs(x).max()), _grid(zones).size_m)
    radius = np.hypot(x, y) / reach
    angle = rng.random(TOWNS) * 2 * np.pi
    away = rng.uniform(0.35, 0.85, TOWNS)
    far = np.hypot(
        x / reach - (away * np.cos(angle))[:, None],
        y / reach - (away * np.sin(angle))[:, None],
    )
    size = rng.uniform(0.15, 0.5, TOWNS)[:, None]
    homes = np.exp(-radius / 0.3) + (size * np.exp(-((far / 0.13) ** 2))).sum(axis=0) + 0.01
    offices = (size * np.exp(-((far / 0.07) ** 2)))[:TOWNS_WITH_JOBS].sum(axis=0)
    jobs = np.exp(-radius / 0.13) + 1.2 * offices + 0.008
    homes *= rng.lognormal(0.0, 0.55, len(zones))
    # A station, a hospital, a shopping center: a few tiles have a dozen times the jobs of their neighbors.
    jobs *= np.minimum(0.3 + rng.pareto(1.8, len(zones)), 9.0)
    return homes / homes.sum(), jobs / jobs.sum()
