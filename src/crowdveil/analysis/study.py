"""The input of every analysis: a release, the target zones, and the share of each area in each zone.

Nothing comes from the original data unless the original is given. It then is a release whose areas have one tile each, and goes
through the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from pydantic import Field

from crowdveil.errors import InputError, Option, Text, counted
from crowdveil.io.geojson import read_outlines
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_reader import load_flow_release, load_flow_release_alone
from crowdveil.io.tiling import Tiling
from crowdveil.io.written_release import WrittenRelease
from crowdveil.io.zones import read_tile_labels, read_tile_values, read_zones
from crowdveil.methods.base import RowSemantics
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Labels
from crowdveil.model.flows import Flows
from crowdveil.model.globe import Box, wrapped
from crowdveil.model.projection import centroids
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, FlowRelease
from crowdveil.model.tessellation import grid_over, grid_zones, h3_cover, h3_zones
from crowdveil.model.zones import Zones
from crowdveil.params import Column, Params
from crowdveil.solve.od.overlaps import Shares, in_own_tiles, in_zones, overlaps, tile_trips

AREA, RELEASE = "area", "release"
"""Weights by name: the surface of tiles, and their trips in the release."""


class StudyReading(Params):
    """Input options of analyses of a release."""

    zones: Any = Field(None, json_schema_extra={"metavar": "FILE"})
    """File of the zones of the release, for their outlines: a release has only those of its areas."""
    zone_id: Column = None
    """Column of the ids of these zones. Default: that of the release."""
    to_zones: Any = Field(None, json_schema_extra={"metavar": "ZONES"})
    """Target zones: a file, such as GeoJSON, GeoPackage or GeoParquet of polygons; or grid:500m or h3:8, over the whole map.
    Default: the release's own tiles."""
    to_zone_id: Column = None
    """Column of the ids of the target zones."""
    weight: Any = None
    """Share of an area's volume that each of its tiles gets: by area (surface), a column of the zones such as population, a table
    of tiles, or release (trips of tiles in the release). Default: equal shares."""
    weight_column: Column = None
    """Column of the weights in a table with several."""
    reference: Column = None
    """For land-use: column of the target zones, or of the zones, with the known class of each zone, to compare groups with."""


@dataclass(frozen=True, eq=False)
class StudySide:
    """Flows of a release, or of the original as a release, and the shares of their areas in the zones.

    Attributes
    ----------
    release
        The flows.
    shares
        Shares of the origin areas.
    reached
        Shares of the destination areas; None if equal.
    """

    release: FlowRelease
    shares: Shares
    reached: Shares | None = None

    @property
    def shares_reached(self) -> Shares:
        """Shares of the destination areas."""
        return self.shares if self.reached is None else self.reached


@dataclass(frozen=True, eq=False)
class Study:
    """A release on target zones.

    Attributes
    ----------
    zones
        The target zones.
    released
        The release.
    original
        The original flows; None if not given.
    reference
        The known class of each target zone, None where it has none; None if not given.
    """

    zones: Zones
    released: StudySide
    original: StudySide | None = None
    reference: Labels | None = None

    @property
    def sides(self) -> list[StudySide]:
        """The release, and the original if given."""
        return [self.released] if self.original is None else [self.released, self.original]


@dataclass(frozen=True, eq=False)
class OpenedRelease:
    """A release as the model, and the files it was read from, if any."""

    release: FlowRelease
    rows: RowSemantics = "exact"
    written: WrittenRelease | None = None

    @cached_property
    def outlines(self) -> Labels:
        """Outlines of its areas; None where unknown."""
        if self.written is None:
            return np.full(len(self.release.areas), None, dtype=object)
        return read_outlines(self.written.features)


def open_for_study(
    written: WrittenRelease,
    manifest: Manifest,
    rows: RowSemantics,
    reading: StudyReading,
    original: Flows | None,
    notes: ReadNotes,
) -> OpenedRelease:
    """Return a written release over the zones of the original, of a file, or of its own files."""
    if original is not None:
        return OpenedRelease(load_flow_release(written, original), rows, written)
    if reading.zones is not None:
        zones = read_zones(reading.zones, zone_id=reading.zone_id, notes=notes)
    else:
        of_cells = str(manifest.input.options.get("zones", {}).get("name")).startswith("h3:")
        zones = h3_zones(written.tile_names) if of_cells else _own_tiles(written)
    return OpenedRelease(
        load_flow_release_alone(written, zones, manifest.step_seconds, manifest.time_zone), rows, written
    )


def _own_tiles(written: WrittenRelease) -> Zones:
    """Return the tiles of a release; with outlines only if each tile is also an area."""
    names, tiles = written.tile_names, [(feature["properties"]["tiles"], feature) for feature in written.features]
    alone = {of_area[0]: feature for of_area, feature in tiles if len(of_area) == 1}
    outlines = read_outlines([alone[name] for name in names]) if len(alone) == len(names) else np.zeros(0, dtype=object)
    if not len(outlines) or np.any(shapely.is_missing(outlines)):
        return Zones.from_ids(names)
    ids = np.array(names, dtype=object)
    if np.all(np.isin(shapely.get_type_id(outlines), (3, 6))):
        return Zones(ids, *centroids(outlines), outlines, "polygons")
    points = shapely.centroid(outlines)
    return Zones(ids, wrapped(shapely.get_x(points)), shapely.get_y(points), kind="centroids")


def build_study(release: OpenedRelease, reading: StudyReading, original: Flows | None, notes: ReadNotes) -> Study:
    """Compute the shares of areas in the target zones."""
    if release.rows == "noisy":
        notes.add("the release has noise in it: estimates and bounds are of the noisy volumes, not of trips.")
    areas, targets = release.release.areas, _targets(release, reading, notes)
    tiles = None if targets is None else _tiles_in(areas, targets)
    if _named(reading, RELEASE):
        side = _by_release(release, targets, tiles)
    else:
        shares, without = _shares(release, targets, tiles, _weight(areas, reading, notes))
        side = StudySide(release.release, shares)
        if without:
            notes.add(f"{counted(without, 'area')} have no weight in any tile, so all their tiles count equally.")
    if targets is not None and tiles is None and reading.weight is None:
        notes.add(
            Text(
                "the release has no outlines of its tiles, so areas are spread evenly over their surface. Give its zones "
                "with {zones} to spread them over tiles."
            )
        )
    compared = None if original is None else _side_of_original(original, tiles)
    zones = areas.zones if targets is None else targets
    return Study(zones, side, compared, _reference(zones, reading, notes))


def _reference(zones: Zones, reading: StudyReading, notes: ReadNotes) -> Labels | None:
    """Return the known class of each target zone."""
    if reading.reference is None:
        return None
    source, zone_id = (
        (reading.zones, reading.zone_id) if reading.to_zones is None else (reading.to_zones, reading.to_zone_id)
    )
    if source is None or Tiling.of(source) is not None:
        raise InputError(
            Option("reference"),
            Text("Expected a file of zones with this column, got none. Give it with {zones} or {to_zones}."),
        )
    return read_tile_labels(source, reading.reference, zones, zone_id=zone_id, notes=notes)


def _by_release(release: OpenedRelease, targets: Zones | None, tiles: Shares | None) -> StudySide:
    """Spread areas by the trips of their tiles over all time steps, as origins and as destinations."""
    flows = release.release
    ends = []
    for area in (flows.origin, flows.destination):
        trips = tile_trips(flows.areas, np.bincount(area, flows.volume, len(flows.areas)))
        ends.append(_shares(release, targets, tiles, trips)[0])
    return StudySide(flows, *ends)


def _targets(release: OpenedRelease, reading: StudyReading, notes: ReadNotes) -> Zones | None:
    """Return the target zones; None for the release's own tiles."""
    if reading.to_zones is None:
        return None
    tiling = Tiling.of(reading.to_zones, "to_zones")
    if tiling is None:
        return read_zones(reading.to_zones, zone_id=reading.to_zone_id, numbered=True, notes=notes)
    shapes = _shapes(release)
    if tiling.size_m is None:
        return h3_zones(h3_cover(shapes, tiling.h3 or 0))
    west, south, east, north = shapely.total_bounds(shapes).tolist()
    return grid_zones(grid_over(Box(west, south, east, north), tiling.size_m))


def _shapes(release: OpenedRelease) -> Labels:
    """Return outlines of the tiles, or of the areas if those of the tiles are unknown."""
    areas = release.release.areas
    if areas.zones.located:
        return areas.zones.outlines(np.unique(areas.tiles))
    outlines = release.outlines[[shape is not None for shape in release.outlines]]
    if not len(outlines):
        raise InputError(Text("the release has no outlines. Give its zones with {zones}."))
    return outlines


def _tiles_in(areas: Areas, targets: Zones) -> Shares | None:
    """Return the shares of tiles in zones; None if their outlines are unknown."""
    if not areas.zones.located:
        return None
    return overlaps(areas.zones.outlines(np.arange(len(areas.zones), dtype=np.int32)), targets)


def _shares(
    release: OpenedRelease, targets: Zones | None, tiles: Shares | None, weight: Floats | None
) -> tuple[Shares, int]:
    """Return the shares of areas in zones, and the number of areas without weight."""
    areas = release.release.areas
    if targets is None:
        return in_own_tiles(areas, weight)
    if tiles is not None:
        return in_zones(areas, tiles, weight)
    if weight is not None:
        raise InputError(
            Option("weight"),
            Text("weights of tiles need their outlines, which the release lacks. Give them with {zones}."),
        )
    return overlaps(release.outlines, targets), 0


def _named(reading: StudyReading, weight: str) -> bool:
    """Return whether the weight is the given name; a table cannot be compared with a name."""
    return isinstance(reading.weight, str) and reading.weight == weight


def _weight(areas: Areas, reading: StudyReading, notes: ReadNotes) -> Floats | None:
    """Return the weight of each tile; None for equal weights."""
    if reading.weight is None:
        return None
    tiles, used = areas.zones, np.unique(areas.tiles)
    if _named(reading, AREA):
        if not tiles.located and reading.to_zones is not None:
            return None  # areas are spread evenly over their surface
        if not np.all(np.isfinite(tiles.area_m2)):
            raise InputError(
                Option("weight"), Text("the surface of tiles needs their outlines. Give them with {zones}.")
            )
        return tiles.area_m2
    if not isinstance(reading.weight, str | Path) or Path(reading.weight).exists():
        weight = read_tile_values(reading.weight, reading.weight_column, tiles, notes=notes)
    elif reading.zones is not None:
        weight = read_tile_values(reading.zones, str(reading.weight), tiles, zone_id=reading.zone_id, notes=notes)
    else:
        raise InputError(
            Option("weight"),
            Text(
                "there is no file {weight}, and no such column of {zones}. Give a file, a column, area, or release.",
                weight=reading.weight,
            ),
        )
    missing = int(np.isnan(weight[used]).sum())
    if missing:
        raise InputError(Option("weight"), f"Expected one for every tile of the release, but {counted(missing, 'tile')} of "
                         f"{len(used):,} {'has' if missing == 1 else 'have'} none. Add them.")  # fmt: skip
    return weight


def _side_of_original(flows: Flows, of_tiles: Shares | None) -> StudySide:
    areas = Areas.of_tiles(flows.zones, np.arange(len(flows.zones), dtype=np.int32))
    state = np.full(len(flows), PUBLISHED, np.uint8)
    as_release = FlowRelease(
        areas, flows.t, flows.offsets, flows.origin, flows.destination, flows.volume, flows.people, state,
        np.full(flows.steps, NOT_GIVEN), flows.k_unit, flows.step_s, flows.tz,
    )  # fmt: skip
    return StudySide(as_release, in_own_tiles(areas)[0] if of_tiles is None else of_tiles)
