"""Define a map of sectors: rectangles of square cells, in meters on the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Indices, Ints, check_lengths, freeze_columns
from crowdveil.model.globe import Box
from crowdveil.model.projection import LocalProjection
from crowdveil.model.trajectories import TrajectoryUnit

HALF_GLOBE_M = 9_000_000
"""Meters on an equal-area plane from its middle to a point a quarter of the globe away: no map is larger."""

MARGIN = 1.001
"""Factor of a frame's size: sides of a box bulge a little between the points along them."""


@dataclass(frozen=True)
class SectorFrame:
    """A square of 2^depth cells a side around the middle of a plane.

    Attributes
    ----------
    projection
        The plane; it keeps areas.
    cell_m
        Side of a cell.
    depth
        Number of times that the square can be halved.
    """

    projection: LocalProjection
    cell_m: float
    depth: int

    @classmethod
    def around(cls, box: Box, cell_m: float) -> SectorFrame:
        """Return the smallest square around the middle of a public box that contains it."""
        projection = LocalProjection.around_box(box)
        x, y = (along * MARGIN for along in projection.to_plane(*box.outline()))
        if not np.all(np.maximum(np.abs(x), np.abs(y)) < HALF_GLOBE_M):
            raise InputError(
                "no map can hold points all around the globe. Leave out far ones with crowdveil filter --bbox."
            )
        frame = cls(projection, cell_m, 0)
        low, high = min(x.min(), y.min()), max(x.max(), y.max())
        while not frame.border(0) <= low <= high < frame.border(1 << frame.depth):
            frame = cls(projection, cell_m, frame.depth + 1)
        return frame

    def border(self, line: Ints | int) -> Floats:
        """Return the meters from the middle to the line west or south of a column or row."""
        return np.asarray((line - (1 << self.depth) / 2) * self.cell_m, np.float64)

    def cells(self, meters: Floats) -> Indices:
        """Return the column or row of each point; one on a line belongs to the cell east or north of it."""
        line = np.floor(meters / self.cell_m + (1 << self.depth) / 2).astype(np.int64)
        # The quotient is rounded; the line that it is compared with is not.
        line -= meters < self.border(line)
        line += meters >= self.border(line + 1)
        return line.astype(np.int32)


@dataclass(frozen=True, eq=False)
class Sectors:
    """Rectangles of cells without overlap that contain locations, from south to north and from west to east.

    Attributes
    ----------
    column, row
        The first cell of each.
    columns, rows
        Width and height in cells.
    locations, people
        Number of locations and of people in each.
    k_unit
        The unit of `people`: people, or trajectories where people are not known.
    suppressed, suppressed_people
        Number of locations in no sector, and of their people.
    """

    frame: SectorFrame
    column: Ints
    row: Ints
    columns: Ints
    rows: Ints
    locations: Ints
    people: Ints
    k_unit: TrajectoryUnit
    suppressed: int = 0
    suppressed_people: int = 0

    def __post_init__(self) -> None:
        freeze_columns(self)
        names = ("column", "row", "columns", "rows", "locations", "people")
        check_lengths("sectors", len(self.column), **{name: getattr(self, name) for name in names})

    def __len__(self) -> int:
        return len(self.column)

    @property
    def bounds(self) -> Floats:
        """Return west, south, east and north of each, in meters from the middle of the plane."""
        west, south = self.frame.border(self.column), self.frame.border(self.row)
        east, north = self.frame.border(self.column + self.columns), self.frame.border(self.row + self.rows)
        return np.column_stack([west, south, east, north])

    @property
    def area_km2(self) -> Floats:
        """Return square kilometers on the ground."""
        return np.asarray(self.columns * self.rows * (self.frame.cell_m / 1000) ** 2, np.float64)

    @property
    def density(self) -> Floats:
        """Return locations per square kilometer."""
        return self.locations / self.area_km2
