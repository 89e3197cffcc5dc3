"""Read points of interest: a table of points with coordinates, or of their numbers in each tile; with or without categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.io.columns import describe_columns, find_column
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import Source
from crowdveil.io.values import read_floats
from crowdveil.io.zone_ids import refuse_other_spelling
from crowdveil.io.zones import read_points, read_shapes, refuse_rows
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.points_of_interest import NO_CATEGORY, PointsOfInterest
from crowdveil.model.tessellation import locate
from crowdveil.model.zones import Zones

_MOST = 2**53


def read_points_of_interest(data: Any, zones: Zones, notes: ReadNotes | None = None) -> PointsOfInterest:
    """Read points of interest and assign them to the tiles that they are in.

    Each row with coordinates (or each point of a GeoJSON) is one point; the column `category` is optional. A table without
    coordinates has the id of a tile, optionally a category, and the number of points in the column `count` (else each row is
    one). Points outside of all tiles are left out with a note.
    """
    notes = notes if notes is not None else ReadNotes()
    quiet = ReadNotes()  # their columns are not those of the data
    table, shapes, name = read_shapes(data, notes)
    source = Source(name, table.schema, table=table)
    count = np.ones(len(table), np.int64)
    if shapes is not None or (find_column(source, "lon", None, quiet) and find_column(source, "lat", None, quiet)):
        tile = locate(zones, *read_points(table, shapes, name, quiet)).astype(np.int64)
        unit = "points of interest"
    else:
        tile, count = _tiles(source, table, zones, quiet), _counts(source, table, quiet)
        unit = "rows of points of interest"
    inside = tile >= 0
    if not inside.any():
        raise InputError(name, "no point of interest is in a tile. Give those of the same region as the data.")
    if not inside.all():
        notes.add(f"{int((~inside).sum()):,} of {len(inside):,} {unit} are in no tile and left out.")
    return PointsOfInterest(tile[inside], _categories(source, table, quiet)[inside], count[inside])


def _tiles(source: Source, table: pa.Table, zones: Zones, notes: ReadNotes) -> Ints:
    """Return the tile of each row, -1 where its id is not among the zones."""
    column = find_column(source, "zone_id", None, notes)
    if column is None:
        raise InputError(
            source.name,
            f"Expected columns lon and lat of points of interest, or a column zone_id of tiles, but {describe_columns(source)}.",
        )
    ids = [("" if value is None else value) for value in table[column].cast(pa.string()).to_pylist()]
    tile = np.array([zones.index_of(name) for name in ids], np.int64)
    refuse_other_spelling((name for name, i in zip(ids, tile, strict=True) if i < 0), zones, source.name)
    return tile


def _counts(source: Source, table: pa.Table, notes: ReadNotes) -> Ints:
    """Return the number of points of each row; 1 without a column of numbers."""
    column = find_column(source, "poi_count", None, notes)
    if column is None:
        return np.ones(len(table), np.int64)
    values: Floats
    values, bad = read_floats(table[column], f"{source.name}, column {column}")
    wrong = ~((values >= 0) & (values < _MOST) & (values == np.floor(values)))
    wrong = wrong if bad is None else wrong | bad
    refuse_rows(source.name, wrong, f"have no whole number from 0 in column {column}")
    return values.astype(np.int64)


def _categories(source: Source, table: pa.Table, notes: ReadNotes) -> Ints:
    """Return the number of the category of each row, in order of the categories' names."""
    column = find_column(source, "poi_category", None, notes)
    if column is None:
        return np.full(len(table), NO_CATEGORY, np.int64)
    names = [str(value).strip() if value is not None else "" for value in table[column].to_pylist()]
    number = {name: i for i, name in enumerate(sorted({*names} - {""}))}
    return np.array([number.get(name, NO_CATEGORY) for name in names], np.int64)
