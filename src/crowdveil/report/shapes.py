"""Outlines for maps: vertices on a grid of whole numbers, coarse enough to limit their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from crowdveil.model.arrays import Floats, Ints, Labels, Mask, take_slices
from crowdveil.model.globe import Box, near

FINEST = 8192
"""Cells of the finest grid along the longer side of the map."""
MAX_VERTICES = 120_000
"""Vertices of all outlines in a page; the grid is made coarser until there are no more."""
METERS_PER_DEGREE = 111_195.0


@dataclass(frozen=True, eq=False)
class PictureFrame:
    """A section of the map: x to the right, y down, whole numbers from 0 to `width` and `height`."""

    west: float
    north: float
    unit: float
    squeeze: float
    width: int
    height: int

    @classmethod
    def around(cls, lon: Floats, lat: Floats, cells: int = FINEST) -> PictureFrame:
        """Return the frame around points; degrees of longitude are scaled as at its middle latitude."""
        box = Box.of(lon, lat)
        west, east, south, north = box.west, box.east, box.south, box.north
        squeeze = max(float(np.cos(np.radians((south + north) / 2))), 0.05)
        across, down = (east - west) * squeeze, north - south
        unit = max(across, down, 1e-4) / cells
        return cls(west, north, unit, squeeze, max(round(across / unit), 1), max(round(down / unit), 1))

    def to_cells(self, lon: Floats, lat: Floats) -> tuple[Ints, Ints]:
        """Return the x and y of points, contiguous across the date line."""
        middle = self.west + self.width * self.unit / self.squeeze / 2
        x, y = (near(lon, middle) - self.west) * self.squeeze / self.unit, (self.north - lat) / self.unit
        return np.rint(x).astype(np.int64), np.rint(y).astype(np.int64)

    @property
    def meters(self) -> float:
        """Meters per unit."""
        return self.unit * METERS_PER_DEGREE

    def as_json(self) -> dict[str, Any]:
        """Return the frame as data for the page; with its place, so that maps of two releases can be linked."""
        place = {name: round(getattr(self, name), 12) for name in ("west", "north", "unit", "squeeze")}
        return {"width": self.width, "height": self.height, "meters": round(self.meters, 6), **place}


@dataclass(frozen=True, eq=False)
class Rings:
    """Closed lines; those of area i are rings[first[i]:first[i + 1]], and ring j is lon, lat[start[j]:start[j + 1]]."""

    lon: Floats
    lat: Floats
    start: Ints
    first: Ints

    @classmethod
    def of(cls, shapes: Labels | Sequence[Any]) -> Rings:
        """Return the rings of shapes; only polygons have rings."""
        parts, area = shapely.get_parts(np.asarray(shapes, dtype=object), return_index=True)
        rings, part = shapely.get_rings(parts, return_index=True)
        corners, ring = shapely.get_coordinates(rings, return_index=True)
        start = np.searchsorted(ring, np.arange(len(rings) + 1))
        return cls(corners[:, 0], corners[:, 1], start, np.searchsorted(area[part], np.arange(len(shapes) + 1)))

    @property
    def drawn(self) -> Mask:
        """Which areas have an outline."""
        return np.diff(self.first) > 0

    def take(self, areas: Ints) -> Rings:
        """Return the rings of some areas, in their order."""
        rings, first = take_slices(self.first, areas)
        corners, start = take_slices(self.start, rings)
        return Rings(self.lon[corners], self.lat[corners], start, first)

    def snapped(self, frame: PictureFrame, coarser: int = 1) -> SnappedRings:
        """Snap vertices to the grid of a frame, or to one `coarser` times as coarse; drop rings that vanish."""
        x, y = (np.rint(c / coarser).astype(np.int64) * coarser for c in frame.to_cells(self.lon, self.lat))
        ring = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        new = np.ones(len(x), np.bool_)
        new[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1]) | (ring[1:] != ring[:-1])
        # A vertex on a straight line is redundant.
        x, y, ring = x[new], y[new], ring[new]
        bent = np.ones(len(x), np.bool_)
        same = (ring[2:] == ring[1:-1]) & (ring[1:-1] == ring[:-2])
        turn = (x[1:-1] - x[:-2]) * (y[2:] - y[1:-1]) - (y[1:-1] - y[:-2]) * (x[2:] - x[1:-1])
        bent[1:-1] = ~same | (turn != 0)
        x, y, ring = x[bent], y[bent], ring[bent]
        size = np.bincount(ring, minlength=len(self.start) - 1)
        kept = size >= 4
        keep = kept[ring]
        of_area = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        rings = np.bincount(of_area[kept], minlength=len(self.first) - 1)
        return SnappedRings(x[keep], y[keep], size[kept], rings)

    def fitted(self, frame: PictureFrame, most: int = MAX_VERTICES) -> SnappedRings:
        """Snap vertices to the finest grid with at most `most` vertices."""
        coarser = 1
        while True:
            snapped = self.snapped(frame, coarser)
            if len(snapped.x) <= most or coarser >= FINEST // 64:
                return snapped
            coarser *= 2


@dataclass(frozen=True, eq=False)
class SnappedRings:
    """Vertices of all rings in sequence, the number of vertices per ring, and of rings per area."""

    x: Ints
    y: Ints
    corners: Ints
    rings: Ints

    def paths(self) -> list[str]:
        """Return the SVG path of each area; empty if it has vanished."""
        paths = []
        ends = np.cumsum(self.corners)
        ring, x, y = 0, self.x.tolist(), self.y.tolist()
        for count in self.rings.tolist():
            parts = []
            for j in range(ring, ring + count):
                low, high = int(ends[j] - self.corners[j]), int(ends[j])
                steps = "".join(f"l{x[i] - x[i - 1]} {y[i] - y[i - 1]}" for i in range(low + 1, high - 1))
                parts.append(f"M{x[low]} {y[low]}{steps}z")
            ring += count
            paths.append("".join(parts))
        return paths
