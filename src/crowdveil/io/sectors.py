"""Sectors of a map as GeoJSON, and read back from nothing but the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.errors import InputError
from crowdveil.io.geojson import COORDINATE_DECIMALS, geometry_of
from crowdveil.model.arrays import Floats, Ints, Labels
from crowdveil.model.globe import near
from crowdveil.model.projection import LocalProjection
from crowdveil.model.sectors import Sectors

ABOUT = "crowdveil"
"""Member of the collection that says what was made of what, and what is guaranteed."""
BOUNDS = ("west_m", "south_m", "east_m", "north_m")
NUMBERS = ("area_km2", "locations_per_km2", *BOUNDS)
CORNERS_APART_M = 1000.0
"""A side that is straight on the plane is not in degrees: over this length the two are less than 8 cm apart up to 75° north."""


SHOWN = 0.98
"""Share of the locations that a picture shows at least in each direction: few far ones would make all others tiny."""


@dataclass(frozen=True, eq=False)
class WrittenSectors:
    """What a file says; nothing is checked but that it can be read.

    Attributes
    ----------
    about
        What the file says of itself.
    properties
        Those of each sector.
    sector, locations, crowd
        Number, locations, and people or trajectories of each.
    area_km2, locations_per_km2
        As written.
    bounds
        West, south, east and north of each in meters on the plane.
    polygons
        Outline of each in degrees.
    plane
        The plane.
    """

    about: dict[str, Any]
    properties: list[dict[str, Any]]
    sector: Ints
    locations: Ints
    crowd: Ints
    area_km2: Floats
    locations_per_km2: Floats
    bounds: Floats
    polygons: Labels
    plane: LocalProjection

    def __len__(self) -> int:
        return len(self.sector)

    @property
    def shown(self) -> Floats:
        """West, south, east and north of the part of the map where nearly all locations are, with some room around it."""
        west, south, east, north = self.bounds.T
        sides = []
        for low, high in ((west, east), (south, north)):
            order = np.argsort(low + high, kind="stable")
            share = np.cumsum(self.locations[order]) / max(self.locations.sum(), 1)
            first, last = order[np.searchsorted(share, (1 - SHOWN) / 2)], order[np.searchsorted(share, (1 + SHOWN) / 2)]
            sides.append(((low + high)[[first, last]] / 2, (low.min(), high.max())))
        room = 0.55 * max(*(float(np.ptp(middle)) for middle, _ in sides), float(np.sqrt(self.area_km2.min())) * 2000)
        center = [middle.mean() for middle, _ in sides]
        least, most = ([pick(c + sign * room, ends[i]) for c, (_, ends) in zip(center, sides, strict=True)]
                       for i, (sign, pick) in enumerate(((-1, max), (1, min))))  # fmt: skip
        return np.array([*least, *most])

    @property
    def counts(self) -> str:
        """What the crowd of a sector is: people or trajectories."""
        return str(self.about["k_counts"])

    @property
    def k(self) -> int:
        """Smallest crowd."""
        return int(self.about["k"])

    @property
    def suppressed(self) -> int | None:
        """Locations in no sector; None where it is not told."""
        told = self.about["suppressed_locations"]
        return None if told is None else int(told)


def write_sectors(sectors: Sectors, about: dict[str, Any], path: Path) -> None:
    """Write sectors as polygons with their numbers, one a line. `about` is what the file says of itself, beside the plane."""
    plane = sectors.frame.projection
    told = {**about, "k_counts": sectors.counts, "plane": {"projection": "Lambert azimuthal equal-area", "datum": "WGS84",
            "longitude": plane.lon0, "latitude": plane.lat0, "unit": "m"}}  # fmt: skip
    # Bounds to the last digit, so that what lies on a line is on the same side of it whoever looks; others as people read them.
    sizes = ([float(f"{v:.12g}") for v in values.tolist()] for values in (sectors.area_km2, sectors.density))
    numbers = zip(*sizes, *sectors.bounds.T.tolist(), strict=True)
    crowds = zip(sectors.locations.tolist(), sectors.people.tolist(), strict=True)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"type": "FeatureCollection",\n')
        file.write(f'"{ABOUT}": {json.dumps(told, ensure_ascii=False)},\n"features": [')
        for i, (ring, (locations, crowd), values) in enumerate(zip(_rings(sectors), crowds, numbers, strict=True)):
            properties = {"sector": i + 1, "locations": locations, sectors.counts: crowd}
            properties |= dict(zip(NUMBERS, values, strict=True))
            feature = {"type": "Feature", "properties": properties, "geometry": _geometry(ring)}
            file.write((",\n" if i else "\n") + json.dumps(feature))
        file.write("\n]}\n")


def _geometry(ring: list[list[float]]) -> dict[str, Any]:
    """The polygon of a ring, in parts where it crosses the date line."""
    import shapely

    if all(-180 <= lon <= 180 for lon, _ in ring):
        return {"type": "Polygon", "coordinates": [ring]}
    return geometry_of(shapely.Polygon(ring))


def _rings(sectors: Sectors) -> list[list[list[float]]]:
    """The outline of each sector in degrees, against the clock from its south-west corner."""
    apart = sectors.frame.cell_m
    while apart > CORNERS_APART_M:
        apart /= 2
    while 2 * apart <= CORNERS_APART_M:
        apart *= 2
    west, south, east, north = sectors.bounds.T
    # Neighbors have their corners on the same lines, so that no gap is left between them.
    steps = np.maximum(np.round(np.column_stack([east - west, north - south]) / apart), 1).astype(np.int64)
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
                "a sector reaches around a pole or too far around the globe; leave out far points with crowdveil filter --bbox."
            )
        for i, ring in zip(alike, np.round(np.stack([lon, lat], 2), COORDINATE_DECIMALS).tolist(), strict=True):
            rings[i] = ring
    return rings


def read_sectors(path: Path) -> WrittenSectors:
    """Read a file of sectors."""
    import shapely

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        about, features = content[ABOUT], content["features"]
        properties = [feature["properties"] for feature in features]
        counts, plane = about["k_counts"], about["plane"]
        whole = [np.array([p[name] for p in properties], np.int64) for name in ("sector", "locations", counts)]
        real = {name: np.array([p[name] for p in properties], np.float64) for name in NUMBERS}
        shapes = shapely.from_geojson(np.array([json.dumps(f["geometry"]) for f in features], dtype=object))
        return WrittenSectors(
            about, properties, whole[0], whole[1], whole[2], real["area_km2"], real["locations_per_km2"],
            np.column_stack([real[name] for name in BOUNDS]), np.asarray(shapes, dtype=object),
            LocalProjection(float(plane["longitude"]), float(plane["latitude"])),
        )  # fmt: skip
    except OSError:
        raise InputError(path, "there is no such file, or it cannot be read.") from None
    except (KeyError, TypeError, ValueError, AttributeError, shapely.errors.GEOSException):
        raise InputError(path, "wanted a heat map as crowdveil writes it, but this is something else.") from None
