"""Areas of a derived release: those of its parent, or zones that hold whole areas of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option
from crowdveil.io.source import open_source
from crowdveil.model.arrays import Ints

Feature = tuple[dict[str, Any], Any]


def derived_areas(features: list[dict[str, Any]], zones: Any) -> tuple[Ints, list[Feature]]:
    """Return the derived area of each area, -1 where its tiles are not of one zone; and the derived areas, with outlines."""
    shapes = [_shape(feature) for feature in features]
    if zones is None:
        return np.arange(len(features)), list(zip([dict(f["properties"]) for f in features], shapes, strict=True))
    tiles = [feature["properties"]["tiles"] for feature in features]
    of_area = _by_table(zones, tiles)
    names = sorted({name for name in of_area if name is not None})
    if not names:
        raise InputError(Option("to_zones"), "no zone holds a whole area of the release. Give larger zones.")
    number = {name: i for i, name in enumerate(names)}
    area = np.array([-1 if name is None else number[name] for name in of_area], np.int64)
    return area, [_joined(name, np.flatnonzero(area == i).tolist(), features, shapes) for i, name in enumerate(names)]


def _shape(feature: dict[str, Any]) -> Any:
    import shapely

    return None if feature.get("geometry") is None else shapely.geometry.shape(feature["geometry"])


def _by_table(zones: Any, tiles: Iterable[list[str]]) -> list[str | None]:
    """Return the group of each area from a table of tiles and their groups; none where its tiles have several groups."""
    source = open_source(zones)
    table = source.read()
    if not {"zone", "group"} <= set(table.column_names):
        raise InputError(source.name, "Expected a table with the columns zone and group, a row for each tile.")
    pairs = zip(table["zone"].cast(pa.string()).to_pylist(), table["group"].cast(pa.string()).to_pylist(), strict=True)
    group = {zone: name for zone, name in pairs if zone is not None and name is not None}
    found = [{group.get(tile) for tile in of_area} for of_area in tiles]
    return [next(iter(names)) if len(names) == 1 else None for names in found]


def _joined(name: str, areas: list[int], features: list[dict[str, Any]], shapes: list[Any]) -> Feature:
    """Return an area that is the union of areas, which may share tiles."""
    import shapely

    tiles = sorted({tile for i in areas for tile in features[i]["properties"]["tiles"]})
    outlines = [shapes[i] for i in areas if shapes[i] is not None]
    outline = shapely.union_all(outlines, grid_size=1e-6) if outlines else None
    properties: dict[str, Any] = {"area": name, "tiles": tiles, "size": len(tiles), "area_km2": None}
    if outline is not None:
        center = outline.centroid
        properties |= {"lon": round(center.x, 6), "lat": round(center.y, 6)}
    return properties, outline
