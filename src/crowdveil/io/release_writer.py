"""Write a release to files: tables, areas and their outlines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from crowdveil.io.geojson import COORDINATE_DECIMALS, snap_to_grid, union_outline, write_features
from crowdveil.io.parallel import run_parallel
from crowdveil.io.tables import write_chunked_table, write_table
from crowdveil.io.times import time_column
from crowdveil.io.written_release import AREAS_FILE
from crowdveil.model.arrays import Mask, slice_sums
from crowdveil.model.release import (
    NOT_GIVEN,
    PUBLISHED,
    REPORTED,
    STATES,
    Areas,
    FlowRelease,
    Release,
    TrajectoryRelease,
)
from crowdveil.model.tessellation import outlines

TableFormat = Literal["parquet", "csv"]


def write_release(
    release: Release, folder: Path, table_format: TableFormat, data_name: str | None = None
) -> dict[str, str]:
    """Write the files of a release into a folder and return their names by role."""
    jobs: list[Callable[[], None]] = []
    if isinstance(release, FlowRelease):
        files = {"data": data_name or f"flows.{table_format}", "steps": f"steps.{table_format}"}
        jobs.append(
            lambda: write_chunked_table(flow_table(release, table_format), len(release), folder / files["data"])
        )
        jobs.append(lambda: write_table(step_table(release, table_format), folder / files["steps"]))
    else:
        files = {"data": data_name or f"trajectories.{table_format}"}
        jobs.append(lambda: write_table(trajectory_table(release, table_format), folder / files["data"]))
    areas = release.areas
    if areas is not None:
        files["areas"] = AREAS_FILE
        jobs.append(lambda: write_features(area_features(areas, drawn_areas(release, areas)), folder / AREAS_FILE))
    run_parallel(*jobs)
    return files


def flow_table(release: FlowRelease, table_format: TableFormat) -> Callable[[slice], pa.Table]:
    """Return a function that makes the flow table of a slice of rows."""
    names, states = pa.array(release.areas.names, pa.string()), pa.array(STATES)
    times, step = _step_times(release, table_format), release.step.astype(np.int32)

    def chunk(rows: slice) -> pa.Table:
        return pa.table(
            {
                "t": times.take(pa.array(step[rows])),
                "origin_area": names.take(pa.array(release.origin[rows])),
                "destination_area": names.take(pa.array(release.destination[rows])),
                "volume": release.volume[rows],
                release.k_unit: release.people[rows],
                "state": states.take(pa.array(release.state[rows])),
            }
        )

    return chunk


def step_table(release: FlowRelease, table_format: TableFormat) -> pa.Table:
    """Return the table of time steps."""
    published = slice_sums(release.offsets, release.volume)
    # Listing a step with fewer than k travelers would reveal them: it is omitted like an empty one.
    listed = (published > 0) | (release.suppressed > 0)
    suppressed = pa.array(release.suppressed[listed], mask=release.suppressed[listed] == NOT_GIVEN)
    t = _step_times(release, table_format).filter(pa.array(listed))
    return pa.table({"t": t, "published": published[listed], "suppressed": suppressed})


def _step_times(release: FlowRelease, table_format: TableFormat) -> Any:
    if release.step_s is None:
        return pa.nulls(len(release.t), pa.timestamp("ms", tz="UTC"))
    return time_column(release.t, release.tz, as_text=table_format == "csv")


def trajectory_table(release: TrajectoryRelease, table_format: TableFormat) -> pa.Table:
    """Return the table of points, with new trajectory ids."""
    lengths = np.diff(release.offsets)
    columns: dict[str, Any] = {
        "lat": release.lat,
        "lon": release.lon,
        "timestamp": time_column(release.t, "UTC", as_text=table_format == "csv"),
        "published_id": np.repeat(np.arange(1, len(release) + 1), lengths),
    }
    if release.person is not None:
        columns["user_id"] = np.repeat(release.person, lengths)
    return pa.table(columns)


MAX_VERTICES = 8_000_000
"""Vertices of tiles up to which areas of several tiles get an outline: the union of more takes minutes and hundreds of
megabytes. Every area lists its tiles, so no information is lost."""


def area_features(areas: Areas, drawn: Mask) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield each area's properties and, if it is drawn, its outline."""
    import shapely

    used, index = np.unique(areas.tiles, return_inverse=True)
    shapes = snap_to_grid(outlines(areas.zones, used))[index]
    to_join = np.repeat(drawn & (np.diff(areas.offsets) > 1), np.diff(areas.offsets))
    if int(shapely.get_num_coordinates(shapes[to_join]).sum()) > MAX_VERTICES:
        drawn = np.zeros(len(areas), np.bool_)
    for i, properties in enumerate(area_properties(areas)):
        low, high = areas.offsets[i], areas.offsets[i + 1]
        outline = shapes[low] if high - low == 1 else union_outline(shapes[low:high]) if drawn[i] else None
        yield properties, outline


def area_properties(areas: Areas) -> Iterator[dict[str, Any]]:
    """Yield name, tiles, size and center of each area."""
    area_km2 = areas.area_m2 / 1e6
    lon, lat = areas.centers(COORDINATE_DECIMALS) if areas.zones.located else (None, None)
    for i, name in enumerate(areas.names):
        tiles = areas.tiles[areas.offsets[i] : areas.offsets[i + 1]]
        yield {
            "area": name,
            "tiles": areas.zones.ids[tiles].tolist(),
            "size": len(tiles),
            "area_km2": round(float(area_km2[i]), 6) if np.isfinite(area_km2[i]) else None,
            **({} if lon is None or lat is None else {"lon": float(lon[i]), "lat": float(lat[i])}),
        }


def drawn_areas(release: Release, areas: Areas) -> Mask:
    """Return which areas get an outline: not those that are only destinations of aggregated small flows, which may be many."""
    drawn = np.ones(len(areas), np.bool_)
    if isinstance(release, FlowRelease):
        drawn[release.destination[release.state == REPORTED]] = False
        drawn[release.destination[release.state == PUBLISHED]] = True
        drawn[release.origin] = True
    return drawn
