"""Features in: GeoJSON by Python's own JSON, so that nothing in the file is taken for anything but features."""

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

BYTES_MOST = 1 << 30
"""Size of a file; beyond it other formats are faster, and this one takes too much memory."""
COORDINATES_MOST = 100_000_000
Polygon = list[list[Any]]
"""Rings of places."""


def read_geojson(path: Path) -> tuple[pa.Table, Labels, Any]:
    """Properties, shapes and the coordinate system (None where the file says that it has none).

    Raises what broken JSON raises, ValueError for JSON that is no GeoJSON, and InputError where there is more to say.
    """
    if path.stat().st_size > BYTES_MOST:
        raise InputError(
            path, f"wanted at most {BYTES_MOST >> 30} GiB of GeoJSON; write it as GeoParquet or GeoPackage."
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
            raise InputError(path, "its coordinate system is a link, which is not followed; name it as EPSG:4326 does.")
    raise ValueError("no coordinate system")


def _shapes(features: list[dict[str, Any]]) -> Labels:
    """Points and polygons; whatever else is a line, which nobody takes for a zone."""
    import shapely

    shapes = np.full(len(features), None, dtype=object)
    points: list[tuple[int, Any]] = []
    polygons: list[tuple[int, Polygon]] = []
    single: set[int] = set()
    for i, feature in enumerate(features):
        match feature.get("geometry"):
            case None:
                pass
            case {"type": "Point", "coordinates": list(place)}:
                points.append((i, place))
            case {"type": "Polygon", "coordinates": list(rings)}:
                single.add(i)
                polygons.append((i, rings))
            case {"type": "MultiPolygon", "coordinates": list(parts)}:
                polygons += [(i, rings) for rings in parts]
                shapes[i] = shapely.MultiPolygon()
            case {"type": "MultiPoint" | "LineString" | "MultiLineString" | "GeometryCollection"}:
                shapes[i] = shapely.LineString([(0, 0), (1, 1)])
            case _:
                raise ValueError("no shape")
    for i, place in points:
        shapes[i] = shapely.Point(_places([place])[0]) if place else shapely.Point()
    _fill_polygons(shapes, polygons, single)
    return shapes


def _fill_polygons(shapes: Labels, polygons: list[tuple[int, Polygon]], single: set[int]) -> None:
    import shapely

    rings = [(k, ring) for k, (_, polygon) in enumerate(polygons) for ring in polygon if ring]
    made = np.full(len(polygons), None, dtype=object)
    made[:] = shapely.Polygon()
    if rings:
        places = _places([place for _, ring in rings for place in ring])
        of_ring = np.repeat(np.arange(len(rings)), [len(ring) for _, ring in rings])
        closed = shapely.linearrings(places, indices=of_ring)
        shapely.polygons(closed, indices=np.array([k for k, _ in rings]), out=made)
    whole: dict[int, list[Any]] = {}
    for (i, _), shape in zip(polygons, made, strict=True):
        whole.setdefault(i, []).append(shape)
    for i, parts in whole.items():
        shapes[i] = parts[0] if i in single else shapely.MultiPolygon([p for p in parts if not p.is_empty])


def _places(given: list[Any]) -> Any:
    """Places as two numbers each; heights are left out."""
    if len(given) > COORDINATES_MOST:
        raise ValueError("too many places")
    flat = [(place[0], place[1]) for place in given]
    places = np.array(flat)
    if places.ndim != 2 or places.dtype.kind not in "iuf":
        raise ValueError("no numbers")
    return places.astype(np.float64)
