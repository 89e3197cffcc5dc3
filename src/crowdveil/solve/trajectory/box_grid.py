"""Public grid of the bounds of boxes: outward rounding, so that no bound is the exact coordinate or time of a member."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.box_bounds import BoxBounds
from crowdveil.model.globe import HALF, MOST_LATITUDE, rounded
from crowdveil.model.projection import EARTH_RADIUS_M
from crowdveil.solve.trajectory.aggregation import DECIMALS, GroupTrajectories

UNITS = 10**DECIMALS
"""Units of a degree in which steps of the grid are whole numbers."""
UNIT_M = EARTH_RADIUS_M * np.pi / 180 / UNITS
"""Meters of a unit along a meridian."""


class BoxGrid(NamedTuple):
    """Sides of the cells of a grid that does not depend on the data.

    Lines of latitude are multiples of the smallest number of units with at least `meters`, counted from the equator. Lines of
    longitude likewise, counted from Greenwich, with the units of the whole degree of latitude at which the box's farther side
    lies, rounded towards the pole. Times are multiples of `seconds` since 1970-01-01 UTC. The date line and the poles are lines.
    """

    meters: float
    seconds: int

    def round_outwards(self, made: GroupTrajectories) -> GroupTrajectories:
        """Return the same groups with bounds of boxes on the grid, none inside the given one, and their new centers."""
        if made.boxes is None:
            return made
        box = made.boxes
        up = _steps(self.meters, np.zeros(1))
        south, north = _down(box.lat_min, up, 90), -_down(-box.lat_max, up, 90)
        along = _steps(self.meters, np.maximum(np.abs(south), np.abs(north)))
        until = np.where(box.lon_max == -HALF, HALF, box.lon_max)  # a box that ends at the date line ends on a line
        west, east = _down(box.lon_min, along, HALF), -_down(-until, along, HALF)
        begin, end = box.t_min // self.seconds * self.seconds, -(-box.t_max // self.seconds) * self.seconds
        bounds = BoxBounds(west, rounded(east, DECIMALS), south, north, begin, end)
        lon, lat, t = bounds.centers(DECIMALS)
        return replace(made, lon=lon, lat=lat, t=t, boxes=bounds)


def _steps(meters: float, lat: Floats) -> Ints:
    """Return the units of longitude between two lines at each latitude."""
    degree = np.minimum(np.ceil(np.abs(lat)), MOST_LATITUDE)
    found: Ints = np.ceil(meters / (UNIT_M * np.cos(np.radians(degree)))).astype(np.int64)
    return found


def _down(degrees: Floats, step: Ints, most: float) -> Floats:
    """Return degrees of `DECIMALS` rounded down to a multiple of a step, or to the edge of the map."""
    units = np.round(degrees * UNITS).astype(np.int64)
    found: Floats = np.maximum(units // step * step, -int(most * UNITS)) / UNITS
    return found
