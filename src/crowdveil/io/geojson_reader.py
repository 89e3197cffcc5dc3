"""Read features from GeoJSON with Python's own JSON parser, which runs and opens nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from crowdveil.errors import InputError
from crowdveil.io.crs import WGS84
from crowdveil.model.arrays import Labels

MAX_COLUMNS = 2000
MAX_BYTES = 1 << 30
"""Size of a file; larger GeoJSON takes too much memory, and other formats are faster."""


def read_geojson(path: Path) -> tuple[pa.Table, Labels, Any]:
    """Return properties, shapes and coordinate system (None if the file declares none).

    Raise ValueError for text that is no GeoJSON, and InputError for what needs its own message.
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
