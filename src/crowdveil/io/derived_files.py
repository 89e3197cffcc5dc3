"""Files that follow from the tables of a release of flows: crosswalk, flow maps, matrices.

Each follows from the written tables and areas alone, so it reveals nothing more, and a verification can make it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import OutputError
from crowdveil.io.omx import write_matrices
from crowdveil.io.tables import write_table
from crowdveil.io.times import iso_times
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Floats, Ints

CROSSWALK_FILE = "crosswalk.csv"
MAX_CELLS = 200_000_000
"""Most cells of matrices."""


def crosswalk(features: Sequence[dict[str, Any]]) -> pa.Table:
    """Return the areas of each tile: a row for each, level 1 the smallest area that the tile is in, then larger ones."""
    areas: dict[str, list[tuple[int, str, str]]] = {}
    for feature in features:
        about = feature["properties"]
        for tile in about["tiles"]:
            areas.setdefault(tile, []).append((len(about["tiles"]), about["area"], about.get("name") or about["area"]))
    rows = [
        {"tile": tile, "area": area, "area_name": name, "level": level}
        for tile in sorted(areas)
        for level, (_, area, name) in enumerate(sorted(areas[tile]), start=1)
    ]
    text = [(column, pa.string()) for column in ("tile", "area", "area_name")]
    return pa.Table.from_pylist(rows, pa.schema([*text, ("level", pa.int64())]))


def write_derived(written: WrittenRelease, exports: Sequence[str], tz: str, folder: Path) -> dict[str, str]:
    """Write the crosswalk and the `exports` into a folder; return their names by role."""
    files = write_crosswalk(written.features, folder)
    for export in exports:
        files |= _WRITERS[export](written, tz, folder)
    return files


def write_crosswalk(features: list[dict[str, Any]], folder: Path) -> dict[str, str]:
    """Write the crosswalk of areas, as they are listed in a release; return its name by role."""
    write_table(crosswalk(features), folder / CROSSWALK_FILE)
    return {"crosswalk": CROSSWALK_FILE}


def with_area_names(written: WrittenRelease) -> pa.Table:
    """Return the flows with the readable name of each area after its id, as in the list of areas."""
    table, (_, names) = written.data, _area_columns(written)
    text = pa.array(names, pa.string())
    for end in ("origin", "destination"):
        named = pa.DictionaryArray.from_arrays(pa.array(written.area_numbers(f"{end}_area"), pa.int32()), text)
        table = table.add_column(table.column_names.index(f"{end}_area") + 1, f"{end}_name", named)
    return table


def _flowmap(written: WrittenRelease, tz: str, folder: Path) -> dict[str, str]:
    """Write locations and flows for flowmap.gl, and one table for kepler.gl, as CSV."""
    about = [f["properties"] for f in written.features]
    if any("lon" not in a for a in about):
        raise OutputError(
            "a flow map needs the positions of the zones. Give zones with positions, or leave the export out."
        )
    ids, names = _area_columns(written)
    lat, lon = (np.array([a[c] for a in about], np.float64) for c in ("lat", "lon"))
    start, until, span = written.row_spans()
    when = {"time": pa.array(_texts(start, tz), pa.string()).take(pa.array(span))}
    if written.has_intervals:
        when["until"] = pa.array(_texts(until, tz), pa.string()).take(pa.array(span))
    origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
    area, count = pa.array(ids, pa.string()), pa.array(written.column("volume"))
    ends = {
        "origin": area.take(pa.array(origin)),
        "dest": area.take(pa.array(destination)),
        "count": count,
        **when,
    }
    places = {
        f"{end}_{axis}": values[at]
        for end, at in (("origin", origin), ("dest", destination))
        for axis, values in (("lat", lat), ("lng", lon))
    }
    tables = {
        "flowmap_locations": pa.table({"id": area, "name": pa.array(names, pa.string()), "lat": lat, "lon": lon}),
        "flowmap_flows": pa.table(ends),
        "kepler_flows": pa.table(ends | places),
    }
    for name, table in tables.items():
        write_table(table, folder / f"{name}.csv")
    return {name: f"{name}.csv" for name in tables}


def _omx(written: WrittenRelease, tz: str, folder: Path) -> dict[str, str]:
    """Write a matrix of areas for each time step or interval, suppressed cells as NaN, and a mask (1 where published, else 0)."""
    step, labels = _labels(written, tz)
    n = len(written.features)
    _check_cells(2 * n * n * len(labels), "an OMX file")
    origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
    volume = written.column("volume")

    def matrices() -> Iterator[tuple[str, Floats]]:
        for i, label in enumerate(labels):
            rows = np.flatnonzero(step == i)
            dense, mask = np.full((n, n), np.nan), np.zeros((n, n))
            dense[origin[rows], destination[rows]] = volume[rows]
            mask[origin[rows], destination[rows]] = 1
            yield label, dense
            yield f"published {label}", mask

    write_matrices(
        matrices(), dict(zip(("zone_id", "name"), _area_columns(written), strict=True)), folder / "flows.omx"
    )
    return {"omx": "flows.omx"}


_WRITERS: dict[str, Callable[[WrittenRelease, str, Path], dict[str, str]]] = {
    "flowmap": _flowmap,
    "omx": _omx,
}


def _labels(written: WrittenRelease, tz: str) -> tuple[Ints, list[str]]:
    """Return the time step or interval of each row, and the label of each: its start, and its end where rows have intervals."""
    start, until, span = written.row_spans()
    if not written.has_intervals:
        return span, _texts(start, tz)
    return span, [f"{a} to {b}" for a, b in zip(_texts(start, tz), _texts(until, tz), strict=True)]


def _texts(t: Ints, tz: str) -> list[str]:
    """Return times as text; the word all where rows have no times."""
    return ["all"] if len(t) and t[0] == NO_TIME else iso_times(t, tz).to_pylist()


def _area_columns(written: WrittenRelease) -> tuple[list[str], list[str]]:
    about = [f["properties"] for f in written.features]
    return [a["area"] for a in about], [a.get("name") or a["area"] for a in about]


def _check_cells(cells: int, what: str) -> None:
    if cells > MAX_CELLS:
        raise OutputError(f"{what} of this release would have more than {MAX_CELLS:,} cells. Leave it out.")
