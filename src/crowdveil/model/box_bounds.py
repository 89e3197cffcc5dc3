"""Define the bounds of published boxes in space and time, in degrees and seconds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdveil.model.arrays import Floats, Ints, Mask, check_coordinates, check_lengths, frozen
from crowdveil.model.globe import FULL, rounded
from crowdveil.model.projection import EARTH_RADIUS_M, LocalProjection

BOX_COLUMNS = ("lon_min", "lon_max", "lat_min", "lat_max", "timestamp_min", "timestamp_max")
"""Columns of a table of boxes, in the order of `BoxBounds`."""


class BoxBounds(NamedTuple):
    """Least and greatest longitude, latitude (degrees) and time (seconds) of each box; both belong to it.

    `lon_min` is above `lon_max` where a box crosses the date line.
    """

    lon_min: Floats
    lon_max: Floats
    lat_min: Floats
    lat_max: Floats
    t_min: Ints
    t_max: Ints

    def rows(self, which: Ints | slice) -> BoxBounds:
        """Return some of the boxes."""
        west, east, south, north = (column[which] for column in self[:4])
        return BoxBounds(west, east, south, north, self.t_min[which], self.t_max[which])

    def frozen(self, n: int) -> BoxBounds:
        """Return the same boxes as read-only arrays; raise unless there are n of them, on the globe."""
        west, east, south, north = (frozen(column, np.float64) for column in self[:4])
        held = BoxBounds(west, east, south, north, frozen(self.t_min, np.int64), frozen(self.t_max, np.int64))
        check_lengths("release", n, **held._asdict())
        check_coordinates("release", held.lon_min, held.lat_min)
        check_coordinates("release", held.lon_max, held.lat_max)
        return held

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table of boxes, by name; times as timestamps."""
        import pyarrow as pa

        times = (pa.array(seconds * 1000, pa.timestamp("ms", tz="UTC")) for seconds in (self.t_min, self.t_max))
        return dict(zip(BOX_COLUMNS, (*self[:4], *times), strict=True))

    def shapes(self) -> Any:
        """Return each box as a shapely geometry in one piece: longitudes are above 180 behind the date line."""
        import shapely

        return shapely.box(self.lon_min, self.lat_min, self.lon_min + self.width, self.lat_max)

    @property
    def width(self) -> Floats:
        """Return the degrees of longitude that each box spans."""
        return np.where(self.lon_max < self.lon_min, FULL, 0.0) + self.lon_max - self.lon_min

    def contains(self, lon: Floats, lat: Floats, t: Ints) -> Mask:
        """Return whether each box contains the point of the same row."""
        east, west = lon <= self.lon_max, lon >= self.lon_min
        inside: Mask = np.where(self.lon_max < self.lon_min, east | west, east & west)
        inside &= (lat >= self.lat_min) & (lat <= self.lat_max)
        return inside & (t >= self.t_min) & (t <= self.t_max)

    @property
    def area_km2(self) -> Floats:
        """Return the area of each box on a round earth."""
        south, north = np.sin(np.radians(self.lat_min)), np.sin(np.radians(self.lat_max))
        found: Floats = (EARTH_RADIUS_M / 1000) ** 2 * np.radians(self.width) * (north - south)
        return found

    def sides(self, projection: LocalProjection) -> tuple[Floats, Floats, Floats, Floats]:
        """Return least and greatest x and y of each box in planar meters, by its corners and the middles of its sides."""
        west, east = self.lon_min, self.lon_min + self.width
        middle, between = (west + east) / 2, (self.lat_min + self.lat_max) / 2
        corners = [(lon, lat) for lon in (west, middle, east) for lat in (self.lat_min, between, self.lat_max)]
        x, y = zip(*(projection.to_plane(lon, lat) for lon, lat in corners), strict=True)
        return np.min(x, axis=0), np.max(x, axis=0), np.min(y, axis=0), np.max(y, axis=0)

    def centers(self, decimals: int) -> tuple[Floats, Floats, Ints]:
        """Return longitude, latitude and time of the center of each box, in rounded degrees and whole seconds."""
        lon = rounded(self.lon_min + self.width / 2, decimals)
        lat = np.round((self.lat_min + self.lat_max) / 2, decimals)
        return lon, lat, self.t_min + (self.t_max - self.t_min) // 2
