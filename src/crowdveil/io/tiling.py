"""The zones of OD data: given by the user, or made to cover the coordinates in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from crowdveil.errors import InputError, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_rows import OdColumns, read_place
from crowdveil.io.source import Source
from crowdveil.io.zones import read_voronoi, read_zones
from crowdveil.model.arrays import Floats
from crowdveil.model.tessellation import grid_frame, grid_zones, h3_cells, h3_zones
from crowdveil.model.zones import Zones


def zones_for(
    source: Source,
    columns: OdColumns,
    zones: Any,
    zone_id: str | None,
    grid: str | float | None,
    h3: int | None,
    voronoi: Any,
    notes: ReadNotes,
) -> Zones | None:
    """The zones that the user gave or asked to be made; None where they are to be the ids that come up."""
    if zones is not None:
        return read_zones(zones, zone_id=zone_id, notes=notes)
    if voronoi is not None:
        return read_voronoi(voronoi, zone_id=zone_id, notes=notes)
    if grid is not None:
        return grid_zones(grid_frame(*_corners(source, columns), metres(grid)))
    if h3 is not None:
        return h3_zones(sorted(_cells(source, columns, h3)))
    return None


def metres(length: str | float) -> float:
    """Metres of "200m", "0.5km" or a number."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(m|km)?\s*", str(length))
    value = float(match[1]) * (1000 if match[2] == "km" else 1) if match else 0.0
    if not value > 0:
        raise ParameterError("grid: wanted the side of a tile, above zero, such as 500m or 1km.")
    return value


def _places(source: Source, columns: OdColumns) -> Iterator[tuple[Floats, Floats]]:
    """Usable origins and destinations, piece by piece."""
    for batch in source.batches(columns.used):
        for place in ("origin", "destination"):
            bad = np.zeros(batch.num_rows, bool)

            def problem(_reason: str, rows: Any, bad: Any = bad) -> None:
                if rows is not None:
                    bad |= rows

            lon, lat = read_place(batch, columns.coordinates(place), source.name, problem)
            yield lon[~bad], lat[~bad]


def _corners(source: Source, columns: OdColumns) -> tuple[Floats, Floats]:
    """Two opposite corners of the box around all places."""
    west = south = np.inf
    east = north = -np.inf
    for lon, lat in _places(source, columns):
        if len(lon):
            west, east = min(west, lon.min()), max(east, lon.max())
            south, north = min(south, lat.min()), max(north, lat.max())
    if not np.isfinite(west):
        raise InputError(f"{source.name}: no row has usable coordinates.")
    return np.array([west, east]), np.array([south, north])


def _cells(source: Source, columns: OdColumns, resolution: int) -> set[str]:
    cells: set[str] = set()
    for lon, lat in _places(source, columns):
        cells.update(h3_cells(lon, lat, resolution))
    if not cells:
        raise InputError(f"{source.name}: no row has usable coordinates.")
    return cells
