"""Handle longitudes as angles: the smallest arc around them, one side of the date line, shapes that cross it.

Positions are written within ±180°. Shapes are kept in one piece instead: their longitudes may exceed 180°, and they are cut at
the date line when they are written (RFC 7946, 3.1.9).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Labels

HALF, FULL = 180.0, 360.0
MOST_LATITUDE = 89.0
"""Nearer to a pole, outlines in degrees are wrong: longitudes change by whole degrees from one meter to the next."""
AROUND_POLE = 60.0
"""Data that span more than half of the globe and lie beyond this latitude surround a pole."""


@dataclass(frozen=True)
class Box:
    """The smallest box around points, in degrees; `east` is never below `west`, and above 180 where it crosses the date line."""

    west: float
    south: float
    east: float
    north: float

    @classmethod
    def of(cls, lon: Floats, lat: Floats) -> Box:
        """Return the box around points; an empty box around none."""
        return Reach.of(lon, lat).box

    @property
    def middle(self) -> tuple[float, float]:
        """Return the longitude, which may be above 180, and latitude of the middle."""
        return (self.west + self.east) / 2, (self.south + self.north) / 2

    def outline(self) -> tuple[Floats, Floats]:
        """Return longitudes and latitudes of points along the sides, which are not straight on a plane."""
        along = np.linspace(0.0, 1.0, 33)
        lons, lats = self.west + along * (self.east - self.west), self.south + along * (self.north - self.south)
        fixed = np.ones_like(along)
        return (
            np.concatenate([lons, lons, fixed * self.west, fixed * self.east]),
            np.concatenate([fixed * self.south, fixed * self.north, lats, lats]),
        )

    def check_poles(self) -> None:
        """Raise `InputError` where maps in degrees would be wrong."""
        far = max(abs(self.south), abs(self.north))
        same_side = self.south > AROUND_POLE or self.north < -AROUND_POLE
        if far > MOST_LATITUDE or (same_side and self.east - self.west > HALF):
            raise InputError(
                f"positions lie within {90 - MOST_LATITUDE:g}° of a pole or all around one, where no grid, average or outline in "
                "degrees is right. Leave them out with crowdveil filter --bbox."
            )


@dataclass(frozen=True)
class Reach:
    """The range of points, with longitudes counted from -180° and from 0°: partitions are merged without their points.

    An arc of less than half of the globe cannot cross both the date line and the meridian of Greenwich. So one of the two
    counts gives the smallest arc, and its ends are those of points, to the last digit.
    """

    west: float = np.inf
    south: float = np.inf
    east: float = -np.inf
    north: float = -np.inf
    low: float = np.inf
    """Least longitude counted from 0° to 360°."""
    high: float = -np.inf
    """Largest longitude counted from 0° to 360°."""

    @classmethod
    def of(cls, lon: Floats, lat: Floats) -> Reach:
        """Return the reach of points."""
        if len(lon) == 0:
            return cls()
        west, east = float(np.min(lon)), float(np.max(lon))
        if west < -HALF or east > HALF:
            return cls.of(wrapped(lon), lat)
        low, high = west, east
        if west < 0:
            turned = np.where(lon < 0, lon + FULL, lon)
            low, high = float(turned.min()), float(turned.max())
        return cls(west, float(np.min(lat)), east, float(np.max(lat)), low, high)

    @classmethod
    def merge(cls, parts: Iterable[Reach]) -> Reach:
        """Return the reach of all partitions."""
        every = [cls(), *parts]
        how = {"min": np.min, "max": np.max}
        return cls(
            **{name: float(how[merge]([getattr(part, name) for part in every])) for name, merge in JOINED.items()}
        )

    @property
    def box(self) -> Box:
        """Return the smallest box."""
        if not np.isfinite(self.west):
            return Box(0.0, 0.0, 0.0, 0.0)
        across = self.east - self.west > HALF and self.high - self.low < self.east - self.west
        west, east = (self.low, self.high) if across else (self.west, self.east)
        return Box(west, self.south, east, self.north)


JOINED = {"west": "min", "south": "min", "east": "max", "north": "max", "low": "min", "high": "max"}
"""How each number of a reach is merged over partitions, for engines that merge without Python."""


def wrapped(lon: Floats) -> Floats:
    """Return longitudes from -180° to below 180°; those already in this range stay the same, to the last digit."""
    lon = np.asarray(lon, np.float64)
    return np.where((lon >= -HALF) & (lon < HALF), lon, (lon + HALF) % FULL - HALF)


def rounded(lon: Floats, decimals: int) -> Floats:
    """Return longitudes rounded to `decimals`, within ±180°, so that each position has one longitude."""
    found: Floats = np.round(lon, decimals)
    return np.where(found >= HALF, found - FULL, found)


def near(lon: Floats, middle: float | Floats) -> Floats:
    """Return longitudes turned to at most half a circle from a middle; those already there stay the same."""
    turns = np.ceil((np.asarray(lon) - middle - HALF) / FULL)
    back = np.floor((np.asarray(lon) - middle + HALF) / FULL)
    return np.asarray(lon - FULL * np.where(turns > 0, turns, np.minimum(back, 0)), np.float64)


def turned(shapes: Labels, middle: float) -> Labels:
    """Return shapes in degrees turned to at most half a circle from a middle, each in one piece."""
    found = np.asarray(_near(shapes, middle), dtype=object)
    west, _, east, _ = shapely.bounds(found).reshape(-1, 4).T
    for i in np.flatnonzero(east - west > HALF):
        found[i] = _near(found[i], float(shapely.get_coordinates(found[i])[0, 0]))
        here = shapely.bounds(found[i])
        if here[2] - here[0] > HALF:
            raise InputError(
                "the outline of a tile goes around a pole or around the globe, and cannot be written in degrees. Leave out far "
                "points with crowdveil filter --bbox."
            )
    return found


def _near(shapes: Any, middle: float) -> Any:
    return shapely.transform(shapes, lambda xy: np.column_stack([near(xy[:, 0], middle), xy[:, 1]]))


def in_one_piece(shapes: Labels) -> Labels:
    """Return polygons and points in degrees, turned so that neighbors across the date line touch; join what was cut there.

    They stay the same where they do not cross the date line, or span the whole globe.
    """
    corners, of = shapely.get_coordinates(shapes, return_index=True)
    if not len(corners):
        return shapes
    box = Reach.of(corners[:, 0], corners[:, 1]).box
    if box.east <= HALF and np.abs(corners[:, 0]).max() <= HALF:
        return shapes
    middle = box.middle[0]
    found = np.array(_near(shapes, middle), dtype=object)
    # Parts on both sides of the date line now share a border along it.
    at_line = np.zeros(len(shapes), np.bool_)
    at_line[of[np.abs(np.abs(near(corners[:, 0], middle)) - HALF) < 1e-9]] = True
    for i in np.flatnonzero(at_line & (shapely.get_type_id(found) == 6)):
        found[i] = shapely.union_all(shapely.get_parts(found[i]))
    return found


def cut_at_date_line(shape: Any) -> Any:
    """Return a shape within ±180°, cut into several parts where it crosses the date line."""
    west, _, east, _ = shapely.bounds(shape)
    if not (west < -HALF or east > HALF):
        return shape
    parts = []
    for turn in range(int(np.floor((west + HALF) / FULL)), int(np.ceil((east - HALF) / FULL)) + 1):
        here = shapely.transform(shape, lambda xy, turn=turn: xy - [FULL * turn, 0.0])
        here = shapely.intersection(here, shapely.box(-HALF, -90, HALF, 90))
        # A border along the date line alone is no part of it.
        parts += [p for p in shapely.get_parts(here) if p.geom_type == "Point" or p.area > 0]
    if len(parts) == 1:
        return parts[0]
    return shapely.GeometryCollection(parts) if parts[0].geom_type == "Point" else shapely.MultiPolygon(parts)


def long_sides(shapes: Labels) -> Any:
    """Return whether each shape has a side over more than half of the globe: it was meant to cross the date line."""
    rings, shape = shapely.get_parts(shapely.boundary(shapes), return_index=True)
    corners, ring = shapely.get_coordinates(rings, return_index=True)
    same = ring[1:] == ring[:-1]
    found = np.zeros(len(shapes), np.bool_)
    found[shape[ring[1:][same & (np.abs(np.diff(corners[:, 0])) > HALF)]]] = True
    return found
