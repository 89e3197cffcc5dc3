"""Read features from GeoJSON with Python's own JSON parser, which runs and opens nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.io.attributes import attribute_table
from crowdveil.io.crs import WGS84
from crowdveil.model.arrays import Labels

MAX_BYTES = 1 << 30
"""Size of a file; larger GeoJSON takes too much memory, and other formats are faster."""
MAX_POSITIONS = 100_000_000
Polygon = list[list[Any]]
"""Rings of positions."""


def read_geojson(path: Path) -> tuple[pa.Table, Labels, Any]:
    """Return properties, shapes and coordinate system (None if the file declares none).

    Raise ValueError for text that is no GeoJSON, and InputError for what needs its own message.
    """
    if path.stat().st_size > MAX_BYTES:
        raise InputError(
            path, f"wanted at most {MAX_BYTES >> 30} GiB of GeoJSON; write it as GeoParquet or GeoPackage."
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
                path, "links to a coordinate system are not followed; name it by its code, such as EPSG:4326."
            )
    raise ValueError("no coordinate system")


def _shapes(features: list[dict[str, Any]]) -> Labels:
    """Return points and polygons; other geometries become a line, which is refused as a zone later."""
    import shapely

    shapes = np.full(len(features), None, dtype=object)
    polygons: list[tuple[int, Polygon]] = []
    for i, feature in enumerate(features):
        match feature.get("geometry"):
            case None:
                pass
            case {"type": "Point", "coordinates": list(position)}:
                shapes[i] = shapely.Point(_positions([position])[0]) if position else shapely.Point()
            case {"type": "Polygon", "coordinates": list(rings)}:
                polygons.append((i, rings))
            case {"type": "MultiPolygon", "coordinates": list(parts)}:
                polygons += [(i, rings) for rings in parts]
                shapes[i] = shapely.MultiPolygon()
            case {"type": "MultiPoint" | "LineString" | "MultiLineString" | "GeometryCollection"}:
                shapes[i] = shapely.LineString([(0, 0), (1, 1)])
            case _:
                raise ValueError("no shape")
    _fill_polygons(shapes, polygons)
    return shapes


def _fill_polygons(shapes: Labels, polygons: list[tuple[int, Polygon]]) -> None:
    """Fill in polygons where there is nothing, and their union where there is an empty multipolygon."""
    import shapely

    rings = [(k, ring) for k, (_, polygon) in enumerate(polygons) for ring in polygon if ring]
    built = np.full(len(polygons), shapely.Polygon(), dtype=object)
    if rings:
        positions = _positions([position for _, ring in rings for position in ring])
        of_ring = np.repeat(np.arange(len(rings)), [len(ring) for _, ring in rings])
        closed = shapely.linearrings(positions, indices=of_ring)
        shapely.polygons(closed, indices=np.array([k for k, _ in rings]), out=built)
    of_feature: dict[int, list[Any]] = {}
    for (i, _), shape in zip(polygons, built, strict=True):
        of_feature.setdefault(i, []).append(shape)
    for i, parts in of_feature.items():
        shapes[i] = parts[0] if shapes[i] is None else shapely.MultiPolygon([p for p in parts if not p.is_empty])


def _positions(given: list[Any]) -> Any:
    """Return positions as an array of longitude and latitude; heights are dropped."""
    if len(given) > MAX_POSITIONS:
        raise ValueError("too many positions")
    positions = np.array([(position[0], position[1]) for position in given])
    if positions.ndim != 2 or positions.dtype.kind not in "iuf":
        raise ValueError("no numbers")
    return positions.astype(np.float64)
