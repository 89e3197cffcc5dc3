"""Write sectors of a heat map as GeoJSON, and read them from the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from crowdveil.errors import InputError
from crowdveil.io.geojson import COORDINATE_DECIMALS, to_geojson_geometry
from crowdveil.model.arrays import Floats, Ints, Labels
from crowdveil.model.globe import near
from crowdveil.model.projection import LocalProjection
from crowdveil.model.sectors import Sectors

ABOUT = "crowdveil"
"""Member of the collection that describes method, parameters and guarantees."""
BOUNDS = ("west_m", "south_m", "east_m", "north_m")
NUMBERS = ("area_km2", "locations_per_km2", *BOUNDS)
VERTEX_DISTANCE_M = 1000.0
"""Distance of vertices: a side that is straight on the plane differs by less than 8 cm in degrees, up to 75° north."""
SHOWN = 0.98
"""Minimum share of locations shown on a map in each direction: a few distant ones would make all others tiny."""


@dataclass(frozen=True, eq=False)
class WrittenSectors:
    """Sectors as read from a file, unverified.

    Attributes
    ----------
    about
        Description in the file.
    properties
        Properties of each sector.
    sector, locations, people
        Number, locations, and people (or trajectories, see `counts`) of each.
    area_km2, locations_per_km2
        As written.
    bounds
        West, south, east and north of each in meters on the plane.
    polygons
        Outline of each in degrees.
    plane
        Projection of the plane.
    """

    about: dict[str, Any]
    properties: list[dict[str, Any]]
    sector: Ints
    locations: Ints
    people: Ints
    area_km2: Floats
    locations_per_km2: Floats
    bounds: Floats
    polygons: Labels
    plane: LocalProjection

    def __len__(self) -> int:
        return len(self.sector)

    @property
    def shown(self) -> Floats:
        """West, south, east and north (meters) of the map section with nearly all locations, with a margin."""
        west, south, east, north = self.bounds.T
        sides = []
        for low, high in ((west, east), (south, north)):
            order = np.argsort(low + high, kind="stable")
            share = np.cumsum(self.locations[order]) / max(self.locations.sum(), 1)
            first, last = order[np.searchsorted(share, (1 - SHOWN) / 2)], order[np.searchsorted(share, (1 + SHOWN) / 2)]
            sides.append(((low + high)[[first, last]] / 2, (low.min(), high.max())))
        reach = 0.55 * max(*(float(np.ptp(middle)) for middle, _ in sides), float(np.sqrt(self.area_km2.min())) * 2000)
        center = [middle.mean() for middle, _ in sides]
        lower = [max(c - reach, ends[0]) for c, (_, ends) in zip(center, sides, strict=True)]
        upper = [min(c + reach, ends[1]) for c, (_, ends) in zip(center, sides, strict=True)]
        return np.array([*lower, *upper])

    @property
    def counts(self) -> str:
        """What k counts: people or trajectories."""
        return str(self.about["k_unit"])

    @property
    def k(self) -> int:
        """Minimum group size of a sector."""
        return int(self.about["k"])

    @property
    def suppressed(self) -> int | None:
        """Suppressed locations, which are in no sector; None if not given."""
        suppressed = self.about["suppressed_locations"]
        return None if suppressed is None else int(suppressed)


def write_sectors(sectors: Sectors, about: dict[str, Any], path: Path) -> None:
    """Write sectors as polygons with properties, one per line. `about` describes the file; the plane is added to it."""
    plane = sectors.frame.projection
    described = {**about, "k_unit": sectors.k_unit, "plane": {"projection": "Lambert azimuthal equal-area", "datum": "WGS84",
            "longitude": plane.lon0, "latitude": plane.lat0, "unit": "m"}}  # fmt: skip
    # Bounds have all digits, so that every reader puts a location on a border into the same sector.
    sizes = ([float(f"{v:.12g}") for v in values.tolist()] for values in (sectors.area_km2, sectors.density))
    numbers = zip(*sizes, *sectors.bounds.T.tolist(), strict=True)
    counts = zip(sectors.locations.tolist(), sectors.people.tolist(), strict=True)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"type": "FeatureCollection",\n')
        file.write(f'"{ABOUT}": {json.dumps(described, ensure_ascii=False)},\n"features": [')
        for i, (outline, (locations, people), values) in enumerate(
            zip(sector_outlines(sectors), counts, numbers, strict=True)
        ):
            properties = {"sector": i + 1, "locations": locations, sectors.k_unit: people}
            properties |= dict(zip(NUMBERS, values, strict=True))
            feature = {"type": "Feature", "properties": properties, "geometry": outline}
            file.write((",\n" if i else "\n") + json.dumps(feature))
        file.write("\n]}\n")


def sector_outlines(sectors: Sectors) -> list[dict[str, Any]]:
    """Return the outline of each sector as a GeoJSON geometry."""
    return [_geometry(ring) for ring in _rings(sectors)]


def _geometry(ring: list[list[float]]) -> dict[str, Any]:
    """Return the polygon of a ring, split at the date line."""
    if all(-180 <= lon <= 180 for lon, _ in ring):
        return {"type": "Polygon", "coordinates": [ring]}
    return to_geojson_geometry(shapely.Polygon(ring))


def _rings(sectors: Sectors) -> list[list[list[float]]]:
    """Return the outline of each sector in degrees, counterclockwise from its south-west corner."""
    distance = sectors.frame.cell_m
    while distance > VERTEX_DISTANCE_M:
        distance /= 2
    while 2 * distance <= VERTEX_DISTANCE_M:
        distance *= 2
    west, south, east, north = sectors.bounds.T
    # Neighbors have vertices on common lines, so that there is no gap between them.
    steps = np.maximum(np.round(np.column_stack([east - west, north - south]) / distance), 1).astype(np.int64)
    rings: list[list[list[float]]] = [[] for _ in range(len(sectors))]
    for across, up in np.unique(steps, axis=0).tolist():
        alike = np.flatnonzero((steps == (across, up)).all(axis=1))
        x, y = np.arange(across) / across, np.arange(up) / up
        along = np.concatenate([x, np.ones(up), 1 - x, np.zeros(up + 1)])
        upward = np.concatenate([np.zeros(across), y, np.ones(across), 1 - y, np.zeros(1)])
        corners = [low[alike, None] + (high - low)[alike, None] * part
                   for low, high, part in ((west, east, along), (south, north, upward))]  # fmt: skip
        lon, lat = sectors.frame.projection.to_globe(*corners)
        if np.isfinite(lon).all():
            lon = near(lon, sectors.frame.projection.lon0)
        if not (np.isfinite(lon).all() and np.isfinite(lat).all()) or np.ptp(lon, axis=1).max() > 180:
            raise InputError(
                "a sector reaches around a pole or too far around the globe. Drop distant points with crowdveil filter --bbox."
            )
        for i, ring in zip(alike, np.round(np.stack([lon, lat], 2), COORDINATE_DECIMALS).tolist(), strict=True):
            rings[i] = ring
    return rings


def read_sectors(path: Path) -> WrittenSectors:
    """Read a file of sectors."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        about, features = content[ABOUT], content["features"]
        properties = [feature["properties"] for feature in features]
        counts, plane = about["k_unit"], about["plane"]
        whole = [np.array([p[name] for p in properties], np.int64) for name in ("sector", "locations", counts)]
        real = {name: np.array([p[name] for p in properties], np.float64) for name in NUMBERS}
        shapes = shapely.from_geojson(np.array([json.dumps(f["geometry"]) for f in features], dtype=object))
        return WrittenSectors(
            about, properties, whole[0], whole[1], whole[2], real["area_km2"], real["locations_per_km2"],
            np.column_stack([real[name] for name in BOUNDS]), np.asarray(shapes, dtype=object),
            LocalProjection(float(plane["longitude"]), float(plane["latitude"])),
        )  # fmt: skip
    except OSError:
        raise InputError(path, "there is no such file, or it cannot be read. Check its path.") from None
    except (KeyError, TypeError, ValueError, AttributeError, shapely.errors.GEOSException):
        raise InputError(path, "Expected a heat map written by crowdveil. Give such a file.") from None
