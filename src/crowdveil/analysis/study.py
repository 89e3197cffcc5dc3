"""What every analysis reads: a release, the zones that somebody asks about, and how much of each area lies in each of them.

Nothing here comes from the original data, unless the original is given: then it stands beside the release, as flows of
areas of one tile each, and goes through the same steps.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from crowdveil.errors import InputError, Option, ParameterError, counted
from crowdveil.io.notes import ReadNotes
from crowdveil.io.read_back import flow_release_alone, flow_release_from
from crowdveil.io.steps import step_seconds
from crowdveil.io.tiling import meters
from crowdveil.io.times import Clock
from crowdveil.io.written import WrittenRelease
from crowdveil.io.zones import read_tile_values, read_voronoi, read_zones
from crowdveil.method import Rows
from crowdveil.model.arrays import Floats, Labels
from crowdveil.model.flows import Flows
from crowdveil.model.globe import Box, in_one_piece, wrapped
from crowdveil.model.projection import centroids
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, Areas, FlowRelease
from crowdveil.model.tessellation import grid_over, grid_zones, h3_cover, h3_zones, outlines
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.solve.od.overlaps import Shares, in_own_tiles, in_zones, overlaps, tile_trips

AREA, RELEASE = "area", "release"
"""Weights by a name: the size of tiles, and what the release itself tells of them."""


class StudyReading(Params):
    """How a release is read to be analyzed."""

    zones: Any = None
    """File of the zones that the release was made with, for their outlines: a release has those of its areas alone."""
    zone_id: str | None = None
    """Column of the ids of these zones; that of the release where not given."""
    voronoi: Any = None
    """File of the points whose Voronoi cells the release was made with, in place of --zones."""
    to_zones: Any = None
    """Ask about these zones: GeoJSON, GeoPackage, shapefile or GeoParquet of polygons. The release's own tiles without."""
    to_zone_id: str | None = None
    """Column of the ids of these."""
    to_grid: str | float | None = None
    """Ask about squares of this size over the whole map, such as 500m."""
    to_h3: int | None = Field(None, ge=0, le=15)
    """Ask about H3 cells of this resolution over the whole map."""
    weight: Any = None
    """How much of an area's volume each of its tiles gets: area (its size), a column of --zones such as population, a table of
    tiles, or release (what the rest of the release tells of them). All tiles the same without."""
    weight_column: str | None = None
    """Column of the weights, where they are in a table with several."""


@dataclass(frozen=True, eq=False)
class StudySide:
    """Flows between areas, and the shares of these areas in the zones: a release, or the original as if it were one.

    Attributes
    ----------
    release
        The flows.
    shares
        Of the areas that flows come from.
    reached
        Of the areas that flows go to; None where they are the same.
    """

    release: FlowRelease
    shares: Shares
    reached: Shares | None = None

    @property
    def shares_reached(self) -> Shares:
        """Shares of the areas that flows go to."""
        return self.shares if self.reached is None else self.reached


@dataclass(frozen=True, eq=False)
class Study:
    """A release and what is asked about it.

    Attributes
    ----------
    zones
        The zones that are asked about.
    released
        The release.
    original
        The flows that it was made from, None unless they were given.
    rows
        What a row of the release says.
    """

    zones: Zones
    released: StudySide
    original: StudySide | None = None
    rows: Rows = "exact"

    @property
    def sides(self) -> list[StudySide]:
        """The release, and the original where there is one."""
        return [self.released] if self.original is None else [self.released, self.original]


@dataclass(frozen=True, eq=False)
class Opened:
    """A release as the model, and where it was read from, if it was."""

    release: FlowRelease
    rows: Rows = "exact"
    written: WrittenRelease | None = None

    @cached_property
    def outlines(self) -> Labels:
        """The outlines of its areas, None where they are not known."""
        if self.written is None:
            return np.full(len(self.release.areas), None, dtype=object)
        return _outlines(self.written.features)


def opened(
    written: WrittenRelease,
    options: dict[str, Any],
    rows: Rows,
    reading: StudyReading,
    original: Flows | None,
    notes: ReadNotes,
) -> Opened:
    """A written release over the zones of the original, of a file, or of what its own files tell of its tiles.

    `options` are those of reading in its manifest.
    """
    if original is not None:
        return Opened(flow_release_from(written, original), rows, written)
    if reading.zones is not None:
        zones = read_zones(reading.zones, zone_id=reading.zone_id, notes=notes)
    elif reading.voronoi is not None:
        zones = read_voronoi(reading.voronoi, zone_id=reading.zone_id, notes=notes)
    else:
        zones = h3_zones(written.tile_names) if "h3" in options else _own_tiles(written)
    tz = options.get("tz") or _zone_of_times(written)
    return Opened(flow_release_alone(written, zones, _step_s(written, options, tz), tz), rows, written)


def _own_tiles(written: WrittenRelease) -> Zones:
    """The tiles of a release; with outlines only if each of them is an area by itself somewhere."""
    import shapely

    names, alone = written.tile_names, {f["properties"]["tiles"][0]: f for f in written.features
                                        if len(f["properties"]["tiles"]) == 1}  # fmt: skip
    known = _outlines([alone[name] for name in names]) if len(alone) == len(names) else np.zeros(0, dtype=object)
    if not len(known) or np.any(shapely.is_missing(known)):
        return Zones.from_ids(names)
    ids = np.array(names, dtype=object)
    if np.all(np.isin(shapely.get_type_id(known), (3, 6))):
        return Zones(ids, *centroids(known), known, "polygons")
    points = shapely.centroid(known)
    return Zones(ids, wrapped(shapely.get_x(points)), shapely.get_y(points), kind="centroids")


def _outlines(features: list[dict[str, Any]]) -> Labels:
    import shapely

    texts = [None if f.get("geometry") is None else json.dumps(f["geometry"]) for f in features]
    return in_one_piece(np.asarray(shapely.from_geojson(np.array(texts, dtype=object)), dtype=object))


def _zone_of_times(written: WrittenRelease) -> str:
    """The time zone that the steps of a release were cut in: Parquet keeps it."""
    return str(getattr(written.steps.schema.field("t").type, "tz", None) or "UTC")


def _step_s(written: WrittenRelease, options: dict[str, Any], tz: str) -> int | None:
    """Length of a time step: as the manifest says, or the longest that all listed steps fit."""
    if len(written.steps) == 0 or written.steps["t"].null_count == len(written.steps):
        return None
    if "step" in options:
        return step_seconds(options["step"])
    t, _ = written.listed_steps()
    apart = int(np.gcd.reduce(np.diff(Clock(tz).to_wall(t)))) if len(t) > 1 else 3600
    # Few steps may lie far apart by chance; without a word of the manifest a step is an hour, or less.
    return int(np.gcd(apart, 3600)) if apart % 86400 else apart


def study_of(release: Opened, reading: StudyReading, original: Flows | None, notes: ReadNotes) -> Study:
    """Put areas into the zones that are asked about."""
    if release.rows == "noisy":
        notes.say("the release has noise in it: estimates and bounds are of the noisy volumes, not of trips.")
    areas, targets = release.release.areas, _targets(release, reading, notes)
    tiles = None if targets is None else _tiles_in(areas, targets)
    if _named(reading, RELEASE):
        side = _by_release(release, targets, tiles)
    else:
        shares, without = _shares(release, targets, tiles, _weight(areas, reading, notes))
        side = StudySide(release.release, shares)
        if without:
            notes.say(f"{counted(without, 'area')} have no weight in any tile, so that all their tiles count the same.")
    if targets is not None and tiles is None and reading.weight is None:
        notes.say(
            "the release does not tell the outlines of its tiles, so that areas are spread evenly over their surface "
            f"(give the zones that it was made with by {Option('zones')}, and they are spread over tiles)."
        )
    beside = None if original is None else _side_of_original(original, tiles)
    return Study(areas.zones if targets is None else targets, side, beside, release.rows)


def _by_release(release: Opened, targets: Zones | None, tiles: Shares | None) -> StudySide:
    """Spread by the trips that tiles have over all time steps, where they start and where they end."""
    flows = release.release
    ends = []
    for area in (flows.origin, flows.destination):
        trips = tile_trips(flows.areas, np.bincount(area, flows.volume, len(flows.areas)))
        ends.append(_shares(release, targets, tiles, trips)[0])
    return StudySide(flows, *ends)


def _targets(release: Opened, reading: StudyReading, notes: ReadNotes) -> Zones | None:
    """The zones that are asked about; None for the release's own tiles."""
    named = [f"--{n.replace('_', '-')}" for n in ("to_zones", "to_grid", "to_h3") if getattr(reading, n) is not None]
    if len(named) > 1:
        raise ParameterError(f"{' and '.join(named)} were given, but flows go between zones of one kind; give one.")
    if reading.to_zones is not None:
        return read_zones(reading.to_zones, zone_id=reading.to_zone_id, notes=notes)
    if not named:
        return None
    import shapely

    shapes = _shapes(release)
    if reading.to_h3 is not None:
        return h3_zones(h3_cover(shapes, reading.to_h3))
    west, south, east, north = shapely.total_bounds(shapes).tolist()
    return grid_zones(grid_over(Box(west, south, east, north), meters(reading.to_grid or 0)))


def _shapes(release: Opened) -> Labels:
    """Outlines of the tiles, or of the areas where those of the tiles are not known."""
    areas = release.release.areas
    if areas.zones.located:
        return outlines(areas.zones, np.unique(areas.tiles))
    known = release.outlines[[shape is not None for shape in release.outlines]]
    if not len(known):
        raise InputError(f"the release has no outlines; give the zones that it was made with by {Option('zones')}.")
    return known


def _tiles_in(areas: Areas, targets: Zones) -> Shares | None:
    """Shares of tiles in zones, None where their outlines are not known."""
    if not areas.zones.located:
        return None
    return overlaps(outlines(areas.zones, np.arange(len(areas.zones), dtype=np.int32)), targets)


def _shares(
    release: Opened, targets: Zones | None, tiles: Shares | None, weight: Floats | None
) -> tuple[Shares, int]:  # fmt: skip
    """Shares of areas in zones, and how many areas have no weight."""
    areas = release.release.areas
    if targets is None:
        return in_own_tiles(areas, weight)
    if tiles is not None:
        return in_zones(areas, tiles, weight)
    if weight is not None:
        raise InputError(
            f"a weight of tiles needs their outlines, which are not in the release; give them by {Option('zones')}."
        )
    return overlaps(release.outlines, targets), 0


def _named(reading: StudyReading, weight: str) -> bool:
    """Whether the weight is that of a name; a table of weights can be compared with nothing."""
    return isinstance(reading.weight, str) and reading.weight == weight


def _weight(areas: Areas, reading: StudyReading, notes: ReadNotes) -> Floats | None:
    """The weight of each tile, None where all count the same."""
    if reading.weight is None:
        return None
    tiles, used = areas.zones, np.unique(areas.tiles)
    if _named(reading, AREA):
        if not tiles.located and (reading.to_zones, reading.to_grid, reading.to_h3) != (None, None, None):
            return None  # the surface of areas is spread as it is
        if not np.all(np.isfinite(tiles.area_m2)):
            raise InputError(
                Option("weight"), f"the size of tiles needs their outlines; give them by {Option('zones')}."
            )
        return tiles.area_m2
    if not isinstance(reading.weight, str | Path) or Path(reading.weight).exists():
        weight = read_tile_values(reading.weight, reading.weight_column, tiles, notes=notes)
    elif reading.zones is not None:
        weight = read_tile_values(reading.zones, str(reading.weight), tiles, zone_id=reading.zone_id, notes=notes)
    else:
        raise InputError(
            Option("weight"),
            f"there is no file {reading.weight}, and no {Option('zones')} with such a column; give one of them, area or release.",
        )
    missing = int(np.isnan(weight[used]).sum())
    if missing:
        raise InputError(Option("weight"), f"wanted one of every tile of the release, but {counted(missing, 'tile')} of "
                         f"{len(used):,} {'has' if missing == 1 else 'have'} none; add them.")  # fmt: skip
    return weight


def _side_of_original(flows: Flows, of_tiles: Shares | None) -> StudySide:
    areas = Areas.of_tiles(flows.zones, np.arange(len(flows.zones), dtype=np.int32))
    state = np.full(len(flows), PUBLISHED, np.uint8)
    as_release = FlowRelease(
        areas, flows.t, flows.offsets, flows.origin, flows.destination, flows.volume, flows.people, state,
        np.full(flows.steps, NOT_GIVEN), flows.counts, flows.step_s, flows.tz,
    )  # fmt: skip
    return StudySide(as_release, in_own_tiles(areas)[0] if of_tiles is None else of_tiles)
