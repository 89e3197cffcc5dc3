"""Zones of OD data: given by the user, or a tessellation that covers its coordinates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.cropping import EVERYTHING, Crop
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import ENDS, OdColumns
from crowdveil.io.od_rows import read_coordinates
from crowdveil.io.source import Source
from crowdveil.io.zones import is_voronoi, read_zones
from crowdveil.model.arrays import Floats
from crowdveil.model.globe import Reach
from crowdveil.model.tessellation import (
    grid_over,
    grid_zones,
    h3_cells,
    h3_zones,
    public_box,
)
from crowdveil.model.zones import Zones

MAX_RESOLUTION = 15
"""The finest resolution of H3."""
NO_COORDINATES = (
    "no row has usable coordinates. Expected degrees, without a decimal comma (exchange the columns if longitude and latitude "
    "are swapped)."
)


@dataclass(frozen=True)
class Tiling:
    """Tiles that are made from coordinates: squares of a side in meters, or H3 cells of a resolution."""

    size_m: float | None = None
    h3: int | None = None

    @classmethod
    def of(cls, zones: Any, option: str = "zones") -> Tiling | None:
        """Return the tiling of grid:500m or h3:8; None for zones of another kind. `option` is named in messages."""
        kind, _, value = zones.partition(":") if isinstance(zones, str) else ("", "", "")
        if kind == "grid":
            return cls(size_m=parse_meters(value, option))
        if kind == "h3":
            if not (value.isdecimal() and int(value) <= MAX_RESOLUTION):
                raise ParameterError(
                    Option(option), f"Expected an H3 resolution from 0 to {MAX_RESOLUTION}, such as h3:8."
                )
            return cls(h3=int(value))
        return None


def by_coordinates(zones: Any) -> bool | None:
    """Return whether zones are found by coordinates and not by ids; None if no zones were chosen."""
    if zones is None:
        return None
    return Tiling.of(zones) is not None or is_voronoi(zones)


def zones_for(
    source: Source, columns: OdColumns, zones: Any, zone_id: str | None, notes: ReadNotes, crop: Crop = EVERYTHING
) -> Zones | None:
    """Return the given zones or a new tessellation; None if the ids in the data are the zones."""
    tiling = Tiling.of(zones)
    if tiling is None:
        return given_zones(columns, zones, zone_id, notes)
    if tiling.size_m is not None and crop.box is not None:
        return grid_zones(grid_over(crop.box, tiling.size_m))
    found = [find_cover(batch, columns, source.name, tiling.h3, crop) for batch in source.batches(columns.used)]
    return zones_covering(found, tiling, source.name)


def given_zones(columns: OdColumns, zones: Any, zone_id: str | None, notes: ReadNotes) -> Zones | None:
    """Return the zones of a file; None if no file is given."""
    return None if zones is None else read_zones(zones, zone_id=zone_id, numbered=not columns.by_id, notes=notes)


@dataclass(frozen=True)
class PointCover:
    """Extent of coordinates, or their H3 cells, from which zones are made."""

    reach: Reach
    cells: frozenset[str] = frozenset()


def find_cover(batch: Any, columns: OdColumns, name: str, h3: int | None, crop: Crop = EVERYTHING) -> PointCover:
    """Return the cover of the usable origins and destinations of a chunk, inside the box of `crop`."""
    reach = []
    cells: set[str] = set()
    for lon, lat in usable_coordinates(batch, columns, name):
        inside = ~crop.outside(lon, lat)
        lon, lat = lon[inside], lat[inside]
        reach.append(Reach.of(lon, lat))
        cells.update(() if h3 is None else h3_cells(lon, lat, h3))
    return PointCover(Reach.merge(reach), frozenset(cells))


def zones_covering(found: Sequence[PointCover], tiling: Tiling, name: str) -> Zones:
    """Return square tiles or H3 cells that cover all coordinates."""
    reach = Reach.merge(p.reach for p in found)
    if not np.isfinite(reach.west):
        raise InputError(name, NO_COORDINATES)
    if tiling.size_m is not None:
        return grid_zones(grid_over(public_box(reach.box, tiling.size_m), tiling.size_m))
    return h3_zones(sorted(frozenset().union(*(p.cells for p in found))))


def parse_meters(length: str, option: str) -> float:
    """Return the meters of "200m", "0.5km" or "200"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(m|km)?\s*", length)
    value = float(match[1]) * (1000 if match[2] == "km" else 1) if match else 0.0
    if not value > 0:
        raise ParameterError(Option(option), "Expected the side of a tile, above zero, such as grid:500m or grid:1km.")
    return value


def usable_coordinates(batch: Any, columns: OdColumns, name: str) -> Iterator[tuple[Floats, Floats]]:
    """Yield usable origins, then usable destinations."""
    for end in ENDS:
        bad = np.zeros(batch.num_rows, bool)

        def problem(_reason: str, rows: Any, bad: Any = bad) -> None:
            if rows is not None:
                bad |= rows

        lon, lat = read_coordinates(batch, columns.coordinates(end), name, problem)
        yield lon[~bad], lat[~bad]
