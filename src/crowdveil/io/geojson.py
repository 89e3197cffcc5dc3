"""Read and write features (shapes with properties) as GeoJSON, one per line.

Python's own JSON parser reads it, which runs and opens nothing. Every written polygon is valid. Rounding vertices one by one can
make borders cross, so such shapes are first snapped to the grid of the written decimals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from crowdveil.errors import InputError
from crowdveil.io.atomic import new_file
from crowdveil.io.crs import WGS84
from crowdveil.model.arrays import Labels
from crowdveil.model.globe import cut_at_date_line, in_one_piece
from crowdveil.model.zones import Zones

MAX_COLUMNS = 2000
MAX_BYTES = 1 << 30
"""Size of a file; larger GeoJSON takes too much memory, and other formats are faster."""


def read_geojson(path: Path) -> tuple[pa.Table, Labels, Any]:
    """Return properties, shapes and coordinate system (None if the file declares none).

    Raise ValueError for text that is no GeoJSON, and InputError for errors with their own message.
    """
    if path.stat().st_size > MAX_BYTES:
        raise InputError(
            path, f"Expected at most {MAX_BYTES >> 30} GiB of GeoJSON. Write it as GeoParquet or GeoPackage."
        )
    content = json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_refuse)
    if not isinstance(content, dict):
        raise ValueError("no GeoJSON")
    features = _features(content)
    columns: dict[str, list[Any]] = {}
    for i, feature in enumerate(features):
        for name, value in _properties(feature).items():
            if name not in columns:
                columns[name] = [None] * len(features)
            columns[name][i] = value
    return attribute_table(len(features), columns), _shapes(features), _crs(content, path)


def _refuse(_name: str) -> Any:
    raise ValueError("no number of JSON")


def _features(content: dict[str, Any]) -> list[dict[str, Any]]:
    kind = content.get("type")
    if kind == "Feature":
        return [content]
    if kind == "FeatureCollection":
        features = content.get("features")
        if not isinstance(features, list) or not all(
            isinstance(f, dict) and f.get("type") == "Feature" for f in features
        ):
            raise ValueError("no features")
        return features
    if "coordinates" in content:
        return [{"geometry": content}]
    raise ValueError("no GeoJSON")


def _properties(feature: dict[str, Any]) -> dict[str, Any]:
    properties = feature.get("properties")
    if properties is not None and not isinstance(properties, dict):
        raise ValueError("no properties")
    own = feature.get("id")
    return ({"id": own} if isinstance(own, str) else {}) | (properties or {})


def _crs(content: dict[str, Any], path: Path) -> Any:
    if "crs" not in content:
        return WGS84
    match content["crs"]:
        case None:
            return None
        case {"type": "name", "properties": {"name": str(name)}}:
            return name
        case {"type": "link"}:
            raise InputError(
                path, "links to a coordinate system are not followed. Name it by its code, such as EPSG:4326."
            )
    raise ValueError("no coordinate system")


def _shapes(features: list[dict[str, Any]]) -> Labels:
    """Return the shapes of features without heights; None for a feature without one.

    `shape` closes rings that a file leaves open, which GEOS's own reader of GeoJSON refuses.
    """
    found = np.full(len(features), None, dtype=object)
    for i, feature in enumerate(features):
        if feature.get("geometry") is not None:
            found[i] = shapely.geometry.shape(feature["geometry"])
    return np.asarray(shapely.force_2d(found), dtype=object)


def attribute_table(rows: int, columns: dict[str, list[Any]]) -> pa.Table:
    """Return a table of columns; values of mixed types become text. Raise ValueError for too many columns."""
    if len(columns) > MAX_COLUMNS:
        raise ValueError("too many columns")
    if not columns:  # a plain table without columns has no row count
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))])
    return pa.table({name: _column(values) for name, values in columns.items()})


def _column(values: list[Any]) -> pa.Array:
    kinds = {type(v) for v in values if v is not None}
    plain: dict[frozenset[type], pa.DataType] = {
        frozenset({bool}): pa.bool_(),
        frozenset({int}): pa.int64(),
        frozenset({float}): pa.float64(),
        frozenset({int, float}): pa.float64(),
    }
    try:
        return pa.array(values, plain.get(frozenset(kinds), pa.string()))
    except (pa.ArrowException, OverflowError, TypeError, UnicodeError):
        return pa.array([_as_text(v) for v in values], pa.string())


def _as_text(value: Any) -> str | None:
    text = value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return None if text is None else text.encode("utf-8", "replace").decode()


COORDINATE_DECIMALS = 6
"""Decimals of written degrees: about 0.1 m."""
GRID = 10.0**-COORDINATE_DECIMALS
POLYGONS = (3, 6)
"""Types of shapes with an area, in shapely: polygons and multipolygons."""


def write_features(features: Iterable[tuple[dict[str, Any], Any]], path: Path) -> None:
    """Write pairs of properties and shape (None for no shape) as a FeatureCollection."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"type": "FeatureCollection", "features": [')
        for i, (properties, shape) in enumerate(features):
            # Parsing the text of a geometry to write it again would take longer than making it.
            geometry = "null" if shape is None else _geometry_text(shape)
            named = json.dumps(properties, ensure_ascii=False)
            file.write(f'{"," if i else ""}\n{{"type": "Feature", "properties": {named}, "geometry": {geometry}}}')
        file.write("\n]}\n")


def read_outlines(features: Sequence[dict[str, Any]]) -> Labels:
    """Return the shapes of the areas of a release, whole across the date line; None for an area without a shape."""
    texts = [None if f.get("geometry") is None else json.dumps(f["geometry"]) for f in features]
    try:
        shapes = shapely.from_geojson(np.array(texts, dtype=object))
    except (shapely.GEOSException, TypeError):
        raise InputError("The outline of an area is broken. Verify the release.") from None
    return in_one_piece(np.asarray(shapes, dtype=object))


def to_geojson_geometry(shape: Any) -> dict[str, Any]:
    """Return a shape as a GeoJSON geometry, within ±180° of longitude."""
    geometry: dict[str, Any] = json.loads(_geometry_text(shape))
    return geometry


def _geometry_text(shape: Any) -> str:
    text: str = shapely.to_geojson(_valid(_rounded(cut_at_date_line(shape)), shape))
    return text


def snap_to_grid(shapes: Labels) -> Labels:
    """Round shapes to the written decimals; snap those that would cross themselves as a whole."""
    found = np.array(_rounded(shapes), dtype=object)
    polygons = np.isin(shapely.get_type_id(found), POLYGONS)
    for i in np.flatnonzero(polygons & ~shapely.is_valid(found)):
        found[i] = _valid(found[i], shapes[i])
    return found


def union_outline(shapes: Labels) -> Any:
    """Return the union of shapes on the grid, itself on the grid."""
    # Shapes smaller than the grid, and points, stay as they are.
    polygons = np.all(np.isin(shapely.get_type_id(shapes), POLYGONS))
    return shapely.union_all(shapes, grid_size=GRID if polygons else None)


def _rounded(shape: Any) -> Any:
    return shapely.transform(shape, lambda xy: np.round(xy, COORDINATE_DECIMALS))


def _valid(rounded: Any, shape: Any) -> Any:
    """Return the rounded shape if it is valid, else the nearest valid one on the grid."""
    if shapely.get_type_id(rounded) not in POLYGONS or rounded.is_valid:
        return rounded
    snapped = _rounded(shapely.set_precision(cut_at_date_line(shape), GRID))
    if not snapped.is_valid:
        parts = shapely.get_parts(shapely.make_valid(snapped))
        snapped = shapely.union_all(parts[np.isin(shapely.get_type_id(parts), POLYGONS)])
    # A shape smaller than the grid keeps all digits.
    return cut_at_date_line(shape) if snapped.is_empty else snapped


def write_zones(zones: Zones, path: str | Path, *, overwrite: bool = False) -> None:
    """Write zones as GeoJSON with the property zone_id."""
    features = (({"zone_id": name}, shape) for name, shape in zip(zones.ids, zones.shapes(), strict=True))
    with new_file(Path(path), overwrite=overwrite) as file:
        write_features(features, file)
