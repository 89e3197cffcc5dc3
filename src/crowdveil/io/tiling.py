"""Zones of OD data: given by the user, a tessellation that covers its coordinates, or the cells of its stations.

Positions of stations are public infrastructure; those of GPS points are not. So an id is a station only if nearly all rows of
the data repeat the position of their id, to about a meter. Where positions vary from row to row, they were measured on the way:
a mean or median of them would publish something of single trips, and the ids stay without a position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.columns import find_columns
from crowdveil.io.cropping import EVERYTHING, Crop
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import ENDS, OdColumns
from crowdveil.io.od_rows import read_coordinates
from crowdveil.io.source import Source
from crowdveil.io.values import ids_of, natural_key, read_floats
from crowdveil.io.zones import is_voronoi, read_zones
from crowdveil.model.arrays import Floats, Labels
from crowdveil.model.globe import Reach
from crowdveil.model.tessellation import (
    H3_RESOLUTIONS,
    grid_over,
    grid_zones,
    h3_cells,
    h3_zones,
    public_box,
    voronoi_zones,
)
from crowdveil.model.zones import Zones

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
            if not (value.isdecimal() and int(value) in H3_RESOLUTIONS):
                raise ParameterError(
                    Option(option), f"Expected an H3 resolution from 0 to {H3_RESOLUTIONS[-1]}, such as h3:8."
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


ALIKE = 0.9
"""Least share of rows at the most frequent position of their id."""
DECIMALS = 5
"""Decimals of compared positions, about a meter: a station may be written with more or fewer digits."""
REPEATED = 5
"""Least rows of a station, on average."""
REACH = 4.0
"""Largest radius of a cell, in median distances between neighboring stations: people walk to a station, and maps are readable."""
MAX_POSITIONS = 1_000_000
"""Distinct ids and positions beyond which they are no stations."""
STATION_ROLES = ("origin_lon", "origin_lat", "destination_lon", "destination_lat")


def station_zones(source: Source, columns: OdColumns, named: dict[str, str | None], notes: ReadNotes) -> Zones | None:
    """Return the Voronoi cells of the stations in the data; None if ids have no coordinates, or not one position each."""
    places = station_columns(source, columns, named)
    if places is None:
        return None
    return zones_of_positions(_count_positions(source, columns, places), columns, notes)


def station_columns(source: Source, columns: OdColumns, named: Mapping[str, str | None]) -> dict[str, str] | None:
    """Return the columns of coordinates by role; None where zones are not named by ids, or ids have no coordinates."""
    if not columns.by_id:
        return None
    found = find_columns(source, {role: named.get(role) for role in STATION_ROLES}, ReadNotes())
    places = {role: column for role, column in found.items() if column is not None}
    return places if len(places) == len(STATION_ROLES) else None


def zones_of_positions(found: pa.Table | None, columns: OdColumns, notes: ReadNotes) -> Zones | None:
    """Return the zones of stations from the rows of each id and position, with a note; None if they are no stations."""
    zones = None if found is None else _stations(found)
    if zones is None:
        notes.add(
            Text(
                "the ids of origins and destinations have no fixed positions, so their positions are not used; give {zones}, "
                "also as voronoi:FILE, grid:500m or h3:8."
            )
        )
        return None
    notes.add(
        Text(
            "each id in columns {origins} and {destinations} has one position: they are stations, and their Voronoi cells "
            "are the zones. Outlines show which stations the data has; choose other zones with {zones}, also as "
            "voronoi:FILE, grid:500m or h3:8.",
            origins=columns.origin,
            destinations=columns.destination,
        )
    )
    return zones


def _count_positions(source: Source, columns: OdColumns, places: dict[str, str]) -> pa.Table | None:
    """Return the rows of each id and position; None if there are too many for stations."""
    counts: pa.Table | None = None
    ids = [getattr(columns, end) for end in ENDS]
    for batch in source.batches([*ids, *places.values()], ids):
        parts = [positions(batch, columns, places, source.name), *([] if counts is None else [counts])]
        counts = _summed(pa.concat_tables(parts))
        if len(counts) > MAX_POSITIONS:
            return None
    return counts


def positions(chunk: pa.RecordBatch, columns: OdColumns, places: Mapping[str, str], name: str) -> pa.Table:
    """Return the ids and positions in a chunk of rows of the data `name`, and the rows of each."""
    parts = []
    for end in ENDS:
        lon, lat = (read_floats(chunk[places[f"{end}_{axis}"]], name)[0] for axis in ("lon", "lat"))
        # Adding 0 turns -0 into 0.
        lon, lat = (np.round(values, DECIMALS) + 0.0 for values in (lon, lat))
        ids = ids_of(chunk[getattr(columns, end)], name).cast(pa.string())
        part = pa.table({"id": ids, "lon": lon, "lat": lat, "n": np.ones(len(lon), np.int64)})
        usable = np.isfinite(lon) & np.isfinite(lat) & (np.abs(lon) <= 180) & (np.abs(lat) <= 90)
        parts.append(part.filter(pa.array(usable)).drop_null())
    return _summed(pa.concat_tables(parts))


def _summed(rows: pa.Table) -> pa.Table:
    """Return one row for each id and position."""
    summed = rows.group_by(["id", "lon", "lat"]).aggregate([("n", "sum")])
    return summed.rename_columns(["id", "lon", "lat", "n"])


def _stations(counts: pa.Table) -> Zones | None:
    """Return the zones of stations from the rows of each id and position; None if they are no stations."""
    if not len(counts):
        return None
    # The most frequent position of an id; the westernmost of equally frequent ones, so that the order of rows decides nothing.
    table = counts.sort_by([("id", "ascending"), ("n", "descending"), ("lon", "ascending"), ("lat", "ascending")])
    most = [(column, "first") for column in ("lon", "lat", "n")]
    found = table.group_by("id", use_threads=False).aggregate([*most, ("n", "sum")])
    lon, lat, n, all_n = (found[c].to_numpy() for c in ("lon_first", "lat_first", "n_first", "n_sum"))
    names = found["id"].to_pylist()
    # Ids that occur only once do not show that their positions are fixed.
    if len(names) < 2 or all_n.sum() < REPEATED * len(names) or n.sum() < ALIKE * all_n.sum():
        return None
    order = sorted(range(len(names)), key=lambda i: natural_key(names[i]))
    return _cells(np.array(names, dtype=object)[order], lon[order], lat[order])


def _cells(names: Labels, lon: Floats, lat: Floats) -> Zones | None:
    """Return the Voronoi cells of stations. Ids with one position share a cell, such as those of a station that got a new id."""
    places, cell = np.unique(np.column_stack([lon, lat]), axis=0, return_inverse=True)
    if len(places) < 2:
        return None
    cells = voronoi_zones(np.arange(len(places)).astype(object), places[:, 0], places[:, 1], REACH)
    return Zones(names, lon, lat, polygons=cells.outlines(cell.reshape(-1).astype(np.int32)), kind="voronoi")
