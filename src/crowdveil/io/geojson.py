"""Features out: shapes with their properties as GeoJSON, one a line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.io.atomic import new_file
from crowdveil.model.tessellation import outlines
from crowdveil.model.zones import Zones

COORDINATE_DECIMALS = 6
"""Decimals of degrees in what is written: a tenth of a metre."""


def write_features(features: Iterable[tuple[dict[str, Any], Any]], path: Path) -> None:
    """Write pairs of properties and shape (None for no shape)."""
    import shapely

    with path.open("w", encoding="utf-8") as file:
        file.write('{"type": "FeatureCollection", "features": [')
        for i, (properties, shape) in enumerate(features):
            geometry = None if shape is None else json.loads(shapely.to_geojson(_rounded(shape)))
            feature = {"type": "Feature", "properties": properties, "geometry": geometry}
            file.write((",\n" if i else "\n") + json.dumps(feature, ensure_ascii=False))
        file.write("\n]}\n")


def _rounded(shape: Any) -> Any:
    import shapely

    return shapely.transform(shape, lambda xy: np.round(xy, COORDINATE_DECIMALS))


def write_zones(zones: Zones, path: str | Path, *, overwrite: bool = False) -> None:
    """Write zones as GeoJSON with the property zone_id."""
    shapes = outlines(zones, np.arange(len(zones), dtype=np.int32))
    with new_file(Path(path), overwrite=overwrite) as file:
        write_features((({"zone_id": name}, shape) for name, shape in zip(zones.ids, shapes, strict=True)), file)
