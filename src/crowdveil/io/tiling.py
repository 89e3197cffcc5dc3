"""The zones of OD data: given by the user, or made to cover the coordinates in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_rows import OdColumns, read_place
from crowdveil.io.source import Source
from crowdveil.io.zones import read_voronoi, read_zones
from crowdveil.model.arrays import Floats
from crowdveil.model.globe import Reach
from crowdveil.model.tessellation import grid_over, grid_zones, h3_cells, h3_zones
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
    if grid is not None or h3 is not None:
        found = [places_in(batch, columns, source.name, h3) for batch in source.batches(columns.used)]
        return zones_around(found, grid, h3, source.name)
    return given_zones(zones, zone_id, voronoi, notes)


def given_zones(zones: Any, zone_id: str | None, voronoi: Any, notes: ReadNotes) -> Zones | None:
    """The zones of a file; None where none was given."""
    if zones is not None:
        return read_zones(zones, zone_id=zone_id, notes=notes)
    return None if voronoi is None else read_voronoi(voronoi, zone_id=zone_id, notes=notes)


@dataclass(frozen=True)
class Places:
    """What zones around places are made from: how far they go, or their cells of H3."""

    reach: Reach
    cells: frozenset[str] = frozenset()


def places_in(batch: Any, columns: OdColumns, name: str, h3: int | None) -> Places:
    """The usable origins and destinations of a piece."""
    reach = []
    cells: set[str] = set()
    for lon, lat in _places(batch, columns, name):
        reach.append(Reach.of(lon, lat))
        cells.update(() if h3 is None else h3_cells(lon, lat, h3))
    return Places(Reach.joined(reach), frozenset(cells))


def zones_around(found: Sequence[Places], grid: str | float | None, h3: int | None, name: str) -> Zones:
    """Squares or cells of H3 that cover all places."""
    reach = Reach.joined(p.reach for p in found)
    if not np.isfinite(reach.west):
        raise InputError(name, "no row has usable coordinates; wanted degrees, without a decimal comma.")
    if grid is not None:
        return grid_zones(grid_over(reach.box, meters(grid)))
    return h3_zones(sorted(frozenset().union(*(p.cells for p in found))))


def meters(length: str | float) -> float:
    """Meters of "200m", "0.5km" or a number."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(m|km)?\s*", str(length))
    value = float(match[1]) * (1000 if match[2] == "km" else 1) if match else 0.0
    if not value > 0:
        raise ParameterError(Option("grid"), "wanted the side of a tile, above zero, such as 500m or 1km.")
    return value


def _places(batch: Any, columns: OdColumns, name: str) -> Iterator[tuple[Floats, Floats]]:
    """Usable origins, and usable destinations."""
    for place in ("origin", "destination"):
        bad = np.zeros(batch.num_rows, bool)

        def problem(_reason: str, rows: Any, bad: Any = bad) -> None:
            if rows is not None:
                bad |= rows

        lon, lat = read_place(batch, columns.coordinates(place), name, problem)
        yield lon[~bad], lat[~bad]
