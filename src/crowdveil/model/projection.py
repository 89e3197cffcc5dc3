"""Project a data set to planar meters: one equal-area projection, chosen once from its middle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import shapely

from crowdveil.model.arrays import Floats
from crowdveil.model.globe import Box, turned, wrapped

EARTH_RADIUS_M = 6_371_008.8
SIDE = 0.25
"""Degrees of a side that is taken as straight on the plane."""
WIDEST = 90.0
"""Degrees that one plane is used for: at its far side, shapes are drawn out into rings."""


@lru_cache(maxsize=32)
def _transformer(lon0: float, lat0: float) -> Any:
    from pyproj import Transformer

    planar = f"+proj=laea +lat_0={lat0} +lon_0={lon0} +datum=WGS84 +units=m +no_defs"
    return Transformer.from_crs("OGC:CRS84", planar, always_xy=True)


@dataclass(frozen=True)
class LocalProjection:
    """Lambert's equal-area projection around a point.

    Areas are exact everywhere; distances are within 0.1 % up to about 400 km from the middle, which is more than
    any city or region needs.
    """

    lon0: float
    """Longitude of the middle, degrees."""
    lat0: float
    """Latitude of the middle, degrees."""

    @classmethod
    def around(cls, lon: Floats, lat: Floats) -> LocalProjection:
        """Return the projection around the middle of the box of all points."""
        return cls.around_box(Box.of(lon, lat))

    @classmethod
    def around_box(cls, box: Box) -> LocalProjection:
        """Return the projection around the middle of a box."""
        box.check_poles()
        return cls.around_point(*box.middle, 4)

    @classmethod
    def around_point(cls, lon: float, lat: float, decimals: int) -> LocalProjection:
        """Return the projection around a point, its degrees rounded and its longitude within ±180."""
        # Rounded on the side of the date line that it was given on, so that all longitudes round alike.
        return cls(float(wrapped(np.array([round(lon, decimals)]))[0].round(decimals)), round(lat, decimals))

    def to_plane(self, lon: Floats, lat: Floats) -> tuple[Floats, Floats]:
        """Convert degrees to meters east and north of the middle."""
        return self._transform(lon, lat, "FORWARD")

    def to_globe(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Convert meters east and north of the middle to degrees."""
        return self._transform(x, y, "INVERSE")

    def _transform(self, x: Floats, y: Floats, direction: str) -> tuple[Floats, Floats]:
        """Transform points; one alone as numbers, since older numpy lets pyproj take an array of one for a number."""
        given = (x, y) if np.size(x) != 1 else (float(np.ravel(x)[0]), float(np.ravel(y)[0]))
        found = _transformer(self.lon0, self.lat0).transform(*given, direction=direction)
        first, second = (np.asarray(values, np.float64).reshape(np.shape(x)) for values in found)
        return first, second

    def polygons_to_globe(self, polygons: Any) -> Any:
        """Convert shapely polygons in meters to degrees, in one piece: longitudes are within 180 of the middle's."""
        degrees = shapely.transform(polygons, lambda xy: np.column_stack(self.to_globe(xy[:, 0], xy[:, 1])))
        return turned(degrees, self.lon0)

    def polygons_to_plane(self, polygons: Any) -> Any:
        """Convert shapely polygons in degrees to meters."""
        return shapely.transform(polygons, lambda xy: np.column_stack(self.to_plane(xy[:, 0], xy[:, 1])))


def centroids(polygons: Any) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of the centroids of polygons in degrees, which may go beyond 180 to stay in one piece.

    They are found in planar meters around all polygons: in degrees, what lies nearer to a pole would count for more than its
    area. Polygons over more than a quarter of the globe have a plane each.
    """
    west, south, east, north = shapely.total_bounds(polygons)
    if len(polygons) > 1 and max(east - west, north - south) > WIDEST:
        each = [centroids(polygons[i : i + 1]) for i in range(len(polygons))]
        return np.concatenate([lon for lon, _ in each]), np.concatenate([lat for _, lat in each])
    plane = LocalProjection.around_point((west + east) / 2, (south + north) / 2, 4)
    # Sides are straight in degrees, and not on the plane: long ones are given corners, so that a cut changes nothing.
    middle = shapely.centroid(plane.polygons_to_plane(shapely.segmentize(polygons, SIDE)))
    lon, lat = plane.to_globe(shapely.get_x(middle), shapely.get_y(middle))
    return wrapped(lon), lat


def great_circle_m(lon: Floats, lat: Floats, to_lon: Floats, to_lat: Floats) -> Floats:
    """Return the meters between points in degrees, along a great circle of a round earth (haversine)."""
    lon, lat, to_lon, to_lat = (np.radians(degrees) for degrees in (lon, lat, to_lon, to_lat))
    half = np.sin((to_lat - lat) / 2) ** 2 + np.cos(lat) * np.cos(to_lat) * np.sin((to_lon - lon) / 2) ** 2
    meters: Floats = 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.clip(half, 0, 1)))
    return meters
