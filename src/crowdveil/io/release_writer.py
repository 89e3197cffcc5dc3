"""Write a release to files: tables, areas and their outlines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import shapely

from crowdveil.io.geojson import COORDINATE_DECIMALS, GRID, POLYGONS, snap_to_grid, union_outline, write_features
from crowdveil.io.tables import write_chunked_table, write_table
from crowdveil.io.times import iso_times
from crowdveil.io.written_release import AREAS_FILE
from crowdveil.model.area_labels import area_labels
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints, Labels, Mask
from crowdveil.model.release import PUBLISHED, REPORTED, FlowRelease, Release, TrajectoryRelease

TableFormat = Literal["parquet", "csv"]


def write_release(
    release: Release, folder: Path, table_format: TableFormat, data_name: str | None = None
) -> dict[str, str]:
    """Write the files of a release into a folder and return their names by role."""
    if isinstance(release, FlowRelease):
        files = {"data": data_name or f"flows.{table_format}", "steps": f"steps.{table_format}"}
        write_chunked_table(flow_table(release, table_format), len(release), folder / files["data"])
        write_table(step_table(release, table_format), folder / files["steps"])
    else:
        files = {"data": data_name or f"trajectories.{table_format}"}
        write_chunked_table(partial(trajectory_table, release, table_format), release.points, folder / files["data"])
    areas = release.areas
    if areas is not None:
        files["areas"] = AREAS_FILE
        write_features(area_features(areas, drawn_areas(release, areas)), folder / AREAS_FILE)
    return files


def flow_table(release: FlowRelease, table_format: TableFormat) -> Callable[[slice], pa.Table]:
    """Return a function that makes the flow table of a slice of rows."""
    return release.chunks(_step_times(release, table_format))


def step_table(release: FlowRelease, table_format: TableFormat) -> pa.Table:
    """Return the table of time steps."""
    return release.step_table(_step_times(release, table_format))


def _step_times(release: FlowRelease, table_format: TableFormat) -> Callable[[Ints], Any] | None:
    """Return a function that writes times as text, for CSV; None for timestamps."""
    return partial(iso_times, tz=release.tz) if table_format == "csv" and release.step_s is not None else None


def trajectory_table(
    release: TrajectoryRelease, table_format: TableFormat, rows: slice = slice(None)
) -> pa.Table:  # fmt: skip
    """Return the table of some points, by default all, with new trajectory ids."""
    table = release.chunk(rows)
    if table_format == "csv":
        times = iso_times(release.t[rows], "UTC")
        table = table.set_column(table.column_names.index("timestamp"), "timestamp", times)
    return table


MAX_VERTICES = 8_000_000
"""Vertices of tiles up to which areas of several tiles get an outline: the union of more takes minutes and hundreds of
megabytes. Every area lists its tiles, so no information is lost."""


def area_features(areas: Areas, drawn: Mask) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield each area's properties and, if it is drawn, its outline."""
    used, index = np.unique(areas.tiles, return_inverse=True)
    shapes = snap_to_grid(areas.zones.outlines(used))
    joined = np.repeat(drawn & (np.diff(areas.offsets) > 1), np.diff(areas.offsets))
    if int(shapely.get_num_coordinates(shapes)[index[joined]].sum()) > MAX_VERTICES:
        drawn = np.zeros(len(areas), np.bool_)
    to_join, place = np.unique(index[joined], return_inverse=True)
    faces, position = TileFaces(shapes[to_join]), np.full(len(index), -1)
    position[joined] = place
    for i, properties in enumerate(area_properties(areas)):
        low, high = areas.offsets[i], areas.offsets[i + 1]
        yield (
            properties,
            shapes[index[low]] if high - low == 1 else faces.outline(position[low:high]) if drawn[i] else None,
        )


def area_properties(areas: Areas) -> Iterator[dict[str, Any]]:
    """Yield id, readable name, tiles, size and center of each area."""
    area_km2 = areas.area_m2 / 1e6
    lon, lat = areas.centers(COORDINATE_DECIMALS) if areas.zones.located else (None, None)
    labels = area_labels(areas)
    for i, name in enumerate(areas.names):
        tiles = areas.tiles[areas.offsets[i] : areas.offsets[i + 1]]
        yield {
            "area": name,
            "tiles": areas.zones.ids[tiles].tolist(),
            "size": len(tiles),
            "area_km2": round(float(area_km2[i]), 6) if np.isfinite(area_km2[i]) else None,
            **({} if lon is None or lat is None else {"lon": float(lon[i]), "lat": float(lat[i])}),
            "name": labels[i],
        }


def drawn_areas(release: Release, areas: Areas) -> Mask:
    """Return which areas get an outline: not those that are only destinations of aggregated small flows, which may be many."""
    drawn = np.ones(len(areas), np.bool_)
    if isinstance(release, FlowRelease):
        drawn[release.destination[release.state == REPORTED]] = False
        drawn[release.destination[release.state == PUBLISHED]] = True
        drawn[release.origin] = True
    return drawn


class TileFaces:
    """Outlines of sets of tiles.

    Parameters
    ----------
    shapes
        Outlines of tiles, on the grid of written decimals.
    """

    def __init__(self, shapes: Labels) -> None:
        self._shapes = shapes
        self._plain = bool(np.all(np.isin(shapely.get_type_id(shapes), POLYGONS)))

    @cached_property
    def _faces(self) -> tuple[Labels, list[Ints]]:
        """The faces between all borders, and those in each tile."""
        borders = shapely.union_all(shapely.boundary(self._shapes), grid_size=GRID)
        faces = shapely.get_parts(shapely.polygonize(shapely.get_parts(borders)))
        inside, tile = shapely.STRtree(self._shapes).query(shapely.point_on_surface(faces), predicate="within")
        inside = inside[np.argsort(tile, kind="stable")]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(tile, minlength=len(self._shapes)))])
        return faces, [inside[low:high] for low, high in pairwise(bounds.tolist())]

    def outline(self, tiles: Ints) -> Any:
        """Return the outline of tiles together, given by their positions, on the grid."""
        if self._plain:
            faces, of_tile = self._faces
            joined = np.unique(np.concatenate([of_tile[tile] for tile in tiles]))
            try:
                outline = shapely.coverage_union_all(faces[joined])
            except shapely.errors.GEOSException:
                outline = None
            # A tile may be smaller than the grid, so that it has no face.
            if outline is not None and outline.is_valid and not outline.is_empty:
                return outline
        return union_outline(self._shapes[tiles])
