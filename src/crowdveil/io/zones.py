"""Read zones from GeoJSON, GeoPackage, shapefile, GeoParquet, a CSV of centroids, a GeoDataFrame, or a table with WKB."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import shapely

from crowdveil.errors import InputError, Option, Text, counted, rows_named, rows_that
from crowdveil.io.columns import (
    USUAL,
    describe_columns,
    find_column,
    looks_like_trips,
    need_column,
    refuse_repeated_name,
)
from crowdveil.io.crs import WGS84, parse_crs
from crowdveil.io.gdal import read_with_gdal
from crowdveil.io.geojson import POLYGONS, read_geojson
from crowdveil.io.notes import ReadNotes
from crowdveil.io.person_ids import refuse_other_spelling
from crowdveil.io.source import Source, from_pandas, open_source
from crowdveil.io.values import comma_reason, decimal_commas, natural_key, read_floats
from crowdveil.model.arrays import Floats, Labels
from crowdveil.model.globe import in_one_piece, long_sides, wrapped
from crowdveil.model.projection import centroids
from crowdveil.model.tessellation import voronoi_zones
from crowdveil.model.zones import Zones

OVERLAP_ALLOWED = 0.01
"""Maximum overlap as a share of the smaller polygon: digitized borders never match exactly."""
VORONOI = "voronoi:"
_GEOMETRY = ("geometry", "geom", "wkb", "wkb_geometry", "the_geom")
_VECTOR_SUFFIXES = (".geojson", ".json", ".gpkg", ".shp", ".zip", ".fgb")


def read_zones(
    data: Any, *, zone_id: str | None = None, numbered: bool = False, notes: ReadNotes | None = None
) -> Zones:
    """Read zones: polygons or points with their ids. A location belongs to its nearest point.

    With "voronoi:FILE" they are the Voronoi cells of the points in a file. `zone_id` names the column of ids. The default is
    the first usual name with distinct values. `numbered` allows zones without such a column, numbered from 1 in the order of the
    file: nothing may be joined to them by id.
    """
    if isinstance(data, Zones):
        return data
    notes = notes if notes is not None else ReadNotes()
    if is_voronoi(data):
        return read_voronoi(data.removeprefix(VORONOI), zone_id=zone_id, notes=notes)
    if isinstance(data, str) and data.startswith(("grid:", "h3:")):
        raise InputError(Option("zones"), "tiles are made only for trips with coordinates. Give a file of zones.")
    table, shapes, name = read_shapes(data, notes)
    if shapes is None:
        return sort_by_id(_with_names(_from_centroids(table, name, zone_id, numbered, notes), table))
    ids = _ids(table, len(shapes), name, zone_id, numbered, notes)
    return sort_by_id(_with_names(_from_shapes(shapes, ids, name), table))


def is_voronoi(zones: Any) -> TypeGuard[str]:
    """Return whether zones are given as the Voronoi cells of the points in a file."""
    return isinstance(zones, str) and zones.startswith(VORONOI)


def with_files(values: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """Return options with the paths of uploaded files; zones of the value "voronoi:" are the cells of uploaded points."""
    cells = "zones" in files and values.get("zones") == VORONOI
    return {**values, **files, **({"zones": VORONOI + files["zones"]} if cells else {})}


def _with_names(zones: Zones, table: pa.Table) -> Zones:
    """Return zones with readable names and regions, from columns of text with a usual name that are not the ids."""
    found: dict[str, Labels | None] = {}
    for role in ("zone_name", "zone_region"):
        columns = (c for usual in USUAL[role] for c in table.column_names if c.lower() == usual)
        texts = (
            table[c] for c in columns if pa.types.is_string(table[c].type) or pa.types.is_large_string(table[c].type)
        )
        values = next((t.to_pylist() for t in texts if t.to_pylist() != zones.ids.tolist()), None)
        found[role] = None if values is None or not any(values) else np.array(values, dtype=object)
    names = found["zone_name"]
    if names is not None:
        names = np.array([name or zones.ids[i] for i, name in enumerate(names)], dtype=object)
    return replace(zones, names=names, regions=found["zone_region"])


def sort_by_id(zones: Zones) -> Zones:
    """Return zones sorted by id, numbers by size: a release must not depend on the order of the file."""
    order = np.array(sorted(range(len(zones)), key=lambda i: natural_key(str(zones.ids[i]))), np.int64)
    outlines, names, regions = (
        None if values is None else values[order] for values in (zones.polygons, zones.names, zones.regions)
    )
    return Zones(
        zones.ids[order], zones.lon[order], zones.lat[order], outlines, zones.kind, names=names, regions=regions
    )  # fmt: skip


def read_voronoi(data: Any, *, zone_id: str | None = None, notes: ReadNotes | None = None) -> Zones:
    """Read points (antennas, stations) and return their Voronoi cells as zones."""
    points = read_zones(data, zone_id=zone_id, numbered=True, notes=notes)
    return replace(voronoi_zones(points.ids, points.lon, points.lat), names=points.names, regions=points.regions)


def read_tile_values(
    data: Any,
    column: str | None,
    zones: Zones,
    *,
    zone_id: str | None = None,
    notes: ReadNotes | None = None,
    option: str = "weight",
) -> Floats:
    """Return a weight of each zone (population, floor area, jobs) from a table or a file of zones; NaN if it has none.

    Without `column`, the table must have one column besides the ids.
    """
    notes = notes if notes is not None else ReadNotes()
    table, _, name = read_shapes(data, notes)
    ids = _distinct_ids(table, name, zone_id, notes)
    if column is None:
        others = [c for c in table.column_names if table[c].cast(pa.string()).to_pylist() != ids]
        if len(others) != 1:
            raise InputError(
                name,
                Text(
                    "Expected one column of weights besides the ids, but there are {others}. Name it with {weight_column}.",
                    others=len(others),
                ),
            )
        column = others[0]
    _check_column(table, column, name, option)
    values, bad = read_floats(table[column], f"{name}, column {column}")
    _refuse_commas(table, column, name)
    off = values < 0
    refuse_rows(name, off if bad is None else off | bad, f"have no weight of zero or more in column {column}")
    index = np.array([zones.index_of(i) for i in ids], np.int64)
    refuse_other_spelling((name for name, i in zip(ids, index, strict=True) if i < 0), zones, name)
    found = np.full(len(zones), np.nan)
    found[index[index >= 0]] = values[index >= 0]
    return found


def read_tile_labels(
    data: Any, column: str, zones: Zones, *, zone_id: str | None = None, notes: ReadNotes | None = None
) -> Labels:
    """Return a text of each zone, such as its known land use, from a column of a table or file of zones; None if it has none."""
    notes = notes if notes is not None else ReadNotes()
    table, _, name = read_shapes(data, notes)
    _check_column(table, column, name, "reference")
    ids = _distinct_ids(table, name, zone_id, notes)
    found = np.full(len(zones), None, dtype=object)
    for own, value in zip(ids, table[column].cast(pa.string()).to_pylist(), strict=True):
        index = zones.index_of(own)
        if index >= 0 and value is not None and value.strip():
            found[index] = value.strip()
    return found


def _distinct_ids(table: pa.Table, name: str, zone_id: str | None, notes: ReadNotes) -> list[str]:
    """Return the ids in a table with a value of each tile; raise if one repeats."""
    ids = _ids(table, len(table), name, zone_id, False, notes)
    if len(set(ids)) < len(ids):
        raise InputError(name, "Expected one row per tile, but ids repeat. Give each id once.")
    return ids


def _check_column(table: pa.Table, column: str, name: str, option: str) -> None:
    """Raise unless a table has the column that an option names."""
    if column not in table.column_names:
        raise InputError(
            name,
            Text(
                "there is no column {column} for {option}. Name one of {columns}.",
                column=column,
                option=Option(option),
                columns=", ".join(table.column_names[:12]),
            ),
        )


def read_shapes(data: Any, notes: ReadNotes) -> tuple[pa.Table, Labels | None, str]:
    """Return attributes, shapes in degrees of WGS84 (None for a plain table), and the name for messages."""
    if hasattr(data, "geometry") and hasattr(data, "to_wkb"):
        frame = data if data.crs is None else data.to_crs(WGS84)
        plain = frame.drop(columns=frame.geometry.name)
        return (
            from_pandas(plain.reset_index() if plain.index.name is not None else plain),  # such as ids after set_index
            np.asarray(frame.geometry.array, dtype=object),
            "zones",
        )
    path = Path(data) if isinstance(data, str | Path) else None
    if path is not None and path.suffix.lower() in _VECTOR_SUFFIXES:
        return _read_vector_file(path, notes)
    source = open_source(data)
    geo = (source.schema.metadata or {}).get(b"geo")
    table = source.read()
    if geo is None:
        return _read_geometries(table, source.name, notes)
    try:
        about = json.loads(geo)
        column = about["primary_column"]
        shapes = shapely.from_wkb(table[column].to_numpy())
        crs = about["columns"][column].get("crs", WGS84)
    except (ValueError, LookupError, TypeError, AttributeError, shapely.GEOSException):
        raise InputError(source.name, "the file is broken or holds no zones. Expected GeoParquet with WKB.") from None
    return table.drop_columns([column]), _to_degrees(shapes, crs, source.name, notes), source.name


def _read_geometries(table: pa.Table, name: str, notes: ReadNotes) -> tuple[pa.Table, Labels | None, str]:
    """Return attributes, shapes and name of a table with WKB, as GeoArrow or in a column with a usual name."""
    found = [
        field
        for field in table.schema
        if (pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type))
        and ((field.metadata or {}).get(b"ARROW:extension:name") == b"geoarrow.wkb" or field.name.lower() in _GEOMETRY)
    ]
    if not found:
        return table, None, name
    about, column = (found[0].metadata or {}).get(b"ARROW:extension:metadata"), found[0].name
    try:
        shapes = shapely.from_wkb(table[column].to_numpy())
        crs = json.loads(about).get("crs") if about else None
    except (ValueError, TypeError, AttributeError, shapely.GEOSException):
        raise InputError(
            f"{name}, column {column}", "it holds no geometries. Expected outlines or points as WKB."
        ) from None
    return table.drop_columns([column]), _to_degrees(shapes, crs, name, notes), name


def _read_vector_file(path: Path, notes: ReadNotes) -> tuple[pa.Table, Labels, str]:
    """Read a file in the format of its suffix, never in one guessed from its content."""
    if not path.exists():
        raise InputError(path, "there is no such file. Check its path.")
    if path.stat().st_size == 0:
        raise InputError(path, "the file is empty. Expected zones.")
    ending = path.suffix.lower()
    try:
        if ending in (".geojson", ".json"):
            table, shapes, crs = read_geojson(path)
        else:
            table, shapes, crs = read_with_gdal(path, notes)
    except (
        ValueError, LookupError, TypeError, AttributeError, RecursionError, StopIteration, OSError, OverflowError,
        pa.ArrowException, shapely.errors.ShapelyError,
    ):  # fmt: skip
        raise InputError(
            path, "the file is broken or holds no zones. Expected GeoJSON, GeoPackage or shapefile."
        ) from None
    return table, _to_degrees(shapes, crs, str(path), notes), str(path)


def _to_degrees(shapes: Labels, crs: Any, name: str, notes: ReadNotes) -> Labels:
    from pyproj import CRS, Transformer
    from pyproj.exceptions import ProjError

    if crs is None:
        notes.add("the zones name no coordinate system: their coordinates are read as degrees (WGS84).")
        return shapes
    known = parse_crs(crs, name)
    try:
        transformer = Transformer.from_crs(known, WGS84, always_xy=True)
    except ProjError:
        raise InputError(name, "its coordinate system cannot be converted to degrees. Write it in EPSG:4326.") from None
    if transformer.source_crs is not None and transformer.source_crs.equals(CRS(WGS84), ignore_axis_order=True):
        return shapes
    return np.asarray(
        shapely.transform(shapes, lambda xy: np.column_stack(transformer.transform(xy[:, 0], xy[:, 1]))), dtype=object
    )


def _ids(table: pa.Table, rows: int, name: str, zone_id: str | None, numbered: bool, notes: ReadNotes) -> list[str]:
    if zone_id is not None:
        column = need_column(Source(name, table.schema, table=table), "zone_id", zone_id, notes)
        return _text_ids(table, column, name)
    by_lower = {c.lower(): c for c in reversed(table.column_names)}
    for usual in USUAL["zone_id"]:
        column = by_lower.get(usual, "")
        if not column or table[column].null_count == len(table):
            continue
        same = [c for c in table.column_names if c.lower() == usual]
        refuse_repeated_name(same, "zone_id", Source(name, table.schema))
        if table[column].null_count == 0 and len(table[column].unique()) == len(table):
            notes.add(
                Text("column {column} of the zones is taken as their id (name another with {zone_id}).", column=column)
            )
            return _text_ids(table, column, name)
        _refuse_invalid_ids(table[column], column, name)
    if not numbered and rows:
        columns = f"columns {', '.join(table.column_names[:12])}" if table.num_columns else "no columns"
        raise InputError(
            name, Text("Expected a column of zone ids, got {columns}. Name it with {zone_id}.", columns=columns)
        )
    notes.add("the zones have no column of ids: they are numbered from 1.")
    return [str(i + 1) for i in range(rows)]


def _refuse_invalid_ids(values: Any, column: str, name: str) -> None:
    """Raise if a column named as ids has missing or repeated ones: another column would be a guess."""
    if not column.lower().endswith("id"):
        return
    codes, rows = values.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False), len(values)
    first = np.zeros(rows, bool)
    first[np.unique(codes, return_index=True)[1]] = True
    remedy = Text("give each zone one, or name another column with {zone_id}")
    bad = ~first | values.is_null().to_numpy()
    refuse_rows(name, bad, f"have a missing or repeated id in column {column}", remedy)


def _text_ids(table: pa.Table, column: str, name: str) -> list[str]:
    values = table[column]
    if values.null_count:  # else nothing is converted, for which Arrow imports pandas
        refuse_rows(name, values.is_null(), f"have no id in column {column}", "give them one")
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy()
        if np.all(numbers == np.floor(numbers)):
            values = values.cast(pa.int64())
    ids: list[str] = values.cast(pa.string()).to_pylist()
    return ids


def _from_shapes(shapes: Labels, ids: list[str], name: str) -> Zones:
    if len(shapes) == 0:
        raise InputError(name, "the file holds no zones. Expected at least one.")
    refuse_rows(name, shapely.is_missing(shapes) | shapely.is_empty(shapes), "have no shape")
    kinds = shapely.get_type_id(shapes)
    if np.all(kinds == 0):
        x, y = shapely.get_x(shapes), shapely.get_y(shapes)
        _check_degrees(name, x, y)
        x = np.where(np.abs(x) > 180, wrapped(x), x)
        return Zones(np.array(ids, dtype=object), x, y, kind="centroids")
    refuse_rows(name, ~np.isin(kinds, POLYGONS), "have a shape that is no polygon")
    shapes = _without_empty_parts(shapes)
    bounds = shapely.bounds(shapes)
    _check_degrees(name, bounds[:, [0, 2]], bounds[:, [1, 3]])
    refuse_rows(
        name,
        long_sides(shapes),
        "have a side over more than 180° of longitude (cut them at the date line, as RFC 7946 asks)",
    )
    shapes = in_one_piece(shapes)
    refuse_rows(name, ~shapely.is_valid(shapes), "have an invalid polygon, which crosses itself")
    _refuse_overlaps(name, shapes)
    outline = np.empty(len(shapes), dtype=object)
    outline[:] = shapes
    return Zones(np.array(ids, dtype=object), *centroids(shapes), outline, "polygons")


def _without_empty_parts(shapes: Labels) -> Labels:
    """Return multipolygons without their empty parts, which crash GEOS."""
    parts, owner = shapely.get_parts(shapes, return_index=True)
    empty = shapely.is_empty(parts)
    shapes = np.array(shapes, dtype=object)
    for i in np.unique(owner[empty]):
        shapes[i] = shapely.MultiPolygon(parts[(owner == i) & ~empty].tolist())
    return shapes


def refuse_rows(name: str, bad: Any, what: str, remedy: str | Text = "fix or remove them") -> None:
    """Raise if rows are bad; `what` follows "rows that"."""
    rows = np.flatnonzero(bad) + 1
    if len(rows):
        raise InputError(name, Text("{rows}; {remedy}.", rows=rows_that(rows.tolist(), len(rows), what), remedy=remedy))


def _refuse_commas(table: pa.Table, column: str, name: str) -> None:
    """Raise if numbers have a decimal comma."""
    commas = decimal_commas(table[column])
    refuse_rows(name, () if commas is None else commas, comma_reason(column))


def _check_degrees(name: str, lon: Floats, lat: Floats) -> None:
    # Zones across the date line may have longitudes beyond it.
    if not (np.all(np.abs(lon) <= 360) and np.all(np.abs(lat) <= 90)):
        raise InputError(
            name, "the coordinates are not degrees of longitude and latitude. Name the coordinate system in the file."
        )


def _refuse_overlaps(name: str, shapes: Labels) -> None:
    first, second = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    first, second = first[first < second], second[first < second]
    common = shapely.area(shapely.intersection(shapes[first], shapes[second]))
    smaller = np.minimum(shapely.area(shapes[first]), shapely.area(shapes[second]))
    over = np.flatnonzero(common > OVERLAP_ALLOWED * smaller)
    if len(over):
        rows = np.unique(np.concatenate([first[over], second[over]])) + 1
        raise InputError(
            name,
            f"{counted(len(over), 'pair')} of zones overlap: {rows_named(rows.tolist(), len(rows))}. A location must be in one "
            "zone, so remove the overlaps.",
        )


def _from_centroids(table: pa.Table, name: str, zone_id: str | None, numbered: bool, notes: ReadNotes) -> Zones:
    source = Source(name, table.schema, table=table)
    if looks_like_trips(source):
        raise InputError(
            name,
            Text(
                "Expected zones, but it holds trips from an origin to a destination. Give a file of zones, or leave the "
                "zones out and give {zones} for trips with coordinates.",
                zones=Option("zones", "grid:500m"),
            ),
        )
    named = [find_column(source, role, None, notes) for role in ("lon", "lat")]
    columns = [column for column in named if column is not None]
    if len(columns) < 2:
        raise InputError(
            name, f"Expected columns lon and lat of centroids, but {describe_columns(source)}. Rename the columns."
        )
    (lon, bad_lon), (lat, bad_lat) = (read_floats(table[c], f"{name}, column {c}") for c in columns)
    for column, values, bad, bound in zip(columns, (lon, lat), (bad_lon, bad_lat), (180.0, 90.0), strict=True):
        _refuse_commas(table, column, name)
        off = np.abs(values) > bound
        refuse_rows(name, off if bad is None else off | bad, f"have no usable value in column {column}")
    return Zones(
        np.array(_ids(table, len(table), name, zone_id, numbered, notes), dtype=object), lon, lat, kind="centroids"
    )
