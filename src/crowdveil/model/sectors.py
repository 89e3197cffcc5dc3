"""A map cut into sectors, each with the locations of at least k people: a quadtree over cells of metres on the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Indices, Ints, check_lengths, frozen
from crowdveil.model.projection import LocalProjection
from crowdveil.model.trajectories import TrajectoryCounts, Trajectories

MIDDLE_DECIMALS = 1
"""Of the degrees of a frame's middle. The middle of the box around all points would tell where the outermost people were."""


@dataclass(frozen=True)
class Frame:
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
    def around(cls, projection: LocalProjection, x: Floats, y: Floats, cell_m: float) -> Frame:
        """The least square around the middle of a plane that holds all points on it."""
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise InputError(
                "no map can hold points all around the globe; leave out far ones with crowdveil filter --bbox."
            )
        frame = cls(projection, cell_m, 0)
        least, most = (min(x.min(), y.min()), max(x.max(), y.max())) if len(x) else (0.0, 0.0)
        while not frame.border(0) <= least <= most < frame.border(1 << frame.depth):
            frame = cls(projection, cell_m, frame.depth + 1)
        return frame

    def border(self, line: Ints | int) -> Floats:
        """Metres from the middle to the line west or south of a column or row."""
        return np.asarray((line - (1 << self.depth) / 2) * self.cell_m, np.float64)

    def cells(self, metres: Floats) -> Indices:
        """The column or row of each place; one on a line belongs to the cell east or north of it."""
        line = np.floor(metres / self.cell_m + (1 << self.depth) / 2).astype(np.int64)
        # The quotient is rounded, the line that it is held against is not.
        line -= metres < self.border(line)
        line += metres >= self.border(line + 1)
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
    withheld, withheld_people
        How many locations are in no sector, and how many people they are of.
    """

    frame: Frame
    column: Ints
    row: Ints
    columns: Ints
    rows: Ints
    locations: Ints
    people: Ints
    counts: TrajectoryCounts
    withheld: int = 0
    withheld_people: int = 0

    def __post_init__(self) -> None:
        names = ("column", "row", "columns", "rows", "locations", "people")
        for name in names:
            object.__setattr__(self, name, frozen(getattr(self, name), np.int64))
        check_lengths("sectors", len(self.column), **{name: getattr(self, name) for name in names})

    def __len__(self) -> int:
        return len(self.column)

    @property
    def bounds(self) -> Floats:
        """West, south, east and north of each, in metres from the middle of the plane."""
        west, south = self.frame.border(self.column), self.frame.border(self.row)
        east, north = self.frame.border(self.column + self.columns), self.frame.border(self.row + self.rows)
        return np.column_stack([west, south, east, north])

    @property
    def area_km2(self) -> Floats:
        """Square kilometres on the ground."""
        return np.asarray(self.columns * self.rows * (self.frame.cell_m / 1000) ** 2, np.float64)

    @property
    def density(self) -> Floats:
        """Locations a square kilometre."""
        return self.locations / self.area_km2


def rough_plane(data: Trajectories) -> LocalProjection:
    """The plane around a middle that is told roughly."""
    middle = data.projection
    return LocalProjection(round(middle.lon0, MIDDLE_DECIMALS), round(middle.lat0, MIDDLE_DECIMALS))


def k_anonymous_sectors(
    data: Trajectories,
    k: int,
    cell_m: float,
    split_above: int,
    *,
    merge: bool = True,
    halve: bool = True,
    withhold: float = 0.0,
) -> Sectors:
    """Sectors with the locations of at least k people each; the data must have as many.

    A sector with more than `split_above` locations is cut in four, down to cells of `cell_m`. With `merge`, quarters with fewer than
    k people are put together with a neighbour. If one is left without, it is withheld where it has at most a share `withhold` of the
    locations, and otherwise the sector stays whole. With `halve`, long sectors are cut in two where both halves hold k people, or
    one can be withheld.
    """
    from crowdveil.kernels.quadtree import k_anonymous_sectors as cut

    plane = rough_plane(data)
    metres = plane.to_plane(data.lon, data.lat)
    frame = Frame.around(plane, *metres, cell_m)
    x, y = (frame.cells(along) for along in metres)
    person = np.repeat(data.person, np.diff(data.offsets)).astype(np.int32)
    found, withheld_people = cut(x, y, person, data.people, frame.depth, k, split_above, merge, halve, withhold)
    first, last, column, row, wide, high, people = found[np.lexsort((found[:, 2], found[:, 3]))].T
    withheld = data.points - int((last - first).sum())
    return Sectors(
        frame, column, row, 1 << wide, 1 << high, last - first, people, data.counts, withheld, withheld_people
    )
