"""A map cut into sectors: rectangles of square cells, in meters on the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Indices, Ints, check_lengths, frozen
from crowdveil.model.projection import LocalProjection
from crowdveil.model.trajectories import TrajectoryCounts

HALF_GLOBE_M = 9_000_000
"""Meters on an equal-area plane from its middle to a place a quarter of the globe away: no map goes further."""


@dataclass(frozen=True)
class SectorFrame:
    """A square of 2^depth cells a side around the middle of a plane. It tells how far points go to a factor of two, and no more.

    Attributes
    ----------
    projection
        The plane: areas in it are areas on the ground.
    cell_m
        Side of a cell.
    depth
        How often the square can be halved.
    """

    projection: LocalProjection
    cell_m: float
    depth: int

    @classmethod
    def around(cls, projection: LocalProjection, x: Floats, y: Floats, cell_m: float) -> SectorFrame:
        """The least square around the middle of a plane that holds all points on it."""
        if not np.all(np.maximum(np.abs(x), np.abs(y)) < HALF_GLOBE_M):
            raise InputError(
                "no map can hold points all around the globe; leave out far ones with crowdveil filter --bbox."
            )
        frame = cls(projection, cell_m, 0)
        least, most = (min(x.min(), y.min()), max(x.max(), y.max())) if len(x) else (0.0, 0.0)
        while not frame.border(0) <= least <= most < frame.border(1 << frame.depth):
            frame = cls(projection, cell_m, frame.depth + 1)
        return frame

    def border(self, line: Ints | int) -> Floats:
        """Meters from the middle to the line west or south of a column or row."""
        return np.asarray((line - (1 << self.depth) / 2) * self.cell_m, np.float64)

    def cells(self, meters: Floats) -> Indices:
        """The column or row of each place; one on a line belongs to the cell east or north of it."""
        line = np.floor(meters / self.cell_m + (1 << self.depth) / 2).astype(np.int64)
        # The quotient is rounded, the line that it is held against is not.
        line -= meters < self.border(line)
        line += meters >= self.border(line + 1)
        return line.astype(np.int32)


@dataclass(frozen=True, eq=False)
class Sectors:
    """Rectangles of cells without overlap that hold locations, from south to north and from west to east.

    Attributes
    ----------
    column, row
        The first cell of each.
    columns, rows
        How many cells it is wide and high.
    locations, people
        How many are in it.
    counts
        What `people` counts: people, or trajectories where people are not known.
    suppressed, suppressed_people
        How many locations are in no sector, and how many people they are of.
    """

    frame: SectorFrame
    column: Ints
    row: Ints
    columns: Ints
    rows: Ints
    locations: Ints
    people: Ints
    counts: TrajectoryCounts
    suppressed: int = 0
    suppressed_people: int = 0

    def __post_init__(self) -> None:
        names = ("column", "row", "columns", "rows", "locations", "people")
        for name in names:
            object.__setattr__(self, name, frozen(getattr(self, name), np.int64))
        check_lengths("sectors", len(self.column), **{name: getattr(self, name) for name in names})

    def __len__(self) -> int:
        return len(self.column)

    @property
    def bounds(self) -> Floats:
        """West, south, east and north of each, in meters from the middle of the plane."""
        west, south = self.frame.border(self.column), self.frame.border(self.row)
        east, north = self.frame.border(self.column + self.columns), self.frame.border(self.row + self.rows)
        return np.column_stack([west, south, east, north])

    @property
    def area_km2(self) -> Floats:
        """Square kilometers on the ground."""
        return np.asarray(self.columns * self.rows * (self.frame.cell_m / 1000) ** 2, np.float64)

    @property
    def density(self) -> Floats:
        """Locations a square kilometer."""
        return self.locations / self.area_km2
