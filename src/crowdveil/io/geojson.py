"""Write features (shapes with properties) as GeoJSON, one per line, and read their shapes.

Every written polygon is valid. Rounding vertices one by one can make borders cross, so such shapes are first snapped to the
grid of the written decimals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from crowdveil.errors import InputError
from crowdveil.io.atomic import new_file
from crowdveil.model.arrays import Labels
from crowdveil.model.globe import cut_at_date_line, in_one_piece
from crowdveil.model.zones import Zones

COORDINATE_DECIMALS = 6
"""Decimals of written degrees: about 0.1 m."""
GRID = 10.0**-COORDINATE_DECIMALS


def write_features(features: Iterable[tuple[dict[str, Any], Any]], path: Path) -> None:
    """Write pairs of properties and shape (None for no shape) as a FeatureCollection."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"type": "FeatureCollection", "features": [')
        for i, (properties, shape) in enumerate(features):
            # The text of a geometry is written as it is: reading it to write it again takes longer than making it.
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
    polygons = np.isin(shapely.get_type_id(found), (3, 6))
    for i in np.flatnonzero(polygons & ~shapely.is_valid(found)):
        found[i] = _valid(found[i], shapes[i])
    return found


def union_outline(shapes: Labels) -> Any:
    """Return the union of shapes on the grid, itself on the grid."""
    # Shapes smaller than the grid, and points, stay as they are.
    return shapely.union_all(shapes, grid_size=GRID if np.all(np.isin(shapely.get_type_id(shapes), (3, 6))) else None)


def _rounded(shape: Any) -> Any:
    return shapely.transform(shape, lambda xy: np.round(xy, COORDINATE_DECIMALS))


def _valid(rounded: Any, shape: Any) -> Any:
    """Return the rounded shape if it is valid, else the nearest valid one on the grid."""
    if rounded.geom_type not in ("Polygon", "MultiPolygon") or rounded.is_valid:
        return rounded
    snapped = _rounded(shapely.set_precision(cut_at_date_line(shape), GRID))
    if not snapped.is_valid:
        parts = shapely.get_parts(shapely.make_valid(snapped))
        snapped = shapely.union_all([part for part in parts if part.geom_type in ("Polygon", "MultiPolygon")])
    # A shape smaller than the grid keeps all digits.
    return cut_at_date_line(shape) if snapped.is_empty else snapped


def write_zones(zones: Zones, path: str | Path, *, overwrite: bool = False) -> None:
    """Write zones as GeoJSON with the property zone_id."""
    shapes = zones.outlines(np.arange(len(zones), dtype=np.int32))
    with new_file(Path(path), overwrite=overwrite) as file:
        write_features((({"zone_id": name}, shape) for name, shape in zip(zones.ids, shapes, strict=True)), file)
