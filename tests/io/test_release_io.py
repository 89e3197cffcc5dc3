"""A release read back from its files: numbered areas and times that repeat are what plain ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic import grid_frame

from crowdveil.errors import InputError
from crowdveil.guarantees import DisjointFlows, WellFormedFlows
from crowdveil.io import release_writer
from crowdveil.io.release_reader import load_flow_release_alone
from crowdveil.io.written_release import NO_TIME, WrittenRelease, read_release
from crowdveil.model.areas import Areas
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.zones import Zones

AREAS = ["a", "b", "NA", "c d"]
rows_of_release = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 3600, 7200, None]),
        st.sampled_from([*AREAS, "nowhere", None]),
        st.sampled_from(AREAS),
    ),
    max_size=40,
)


def _written(folder: Path, rows: list[tuple[Any, ...]], row_group_size: int) -> WrittenRelease:
    columns = {
        "t": pa.array([None if r[0] is None else 1000 * r[0] for r in rows], pa.timestamp("ms", tz="UTC")),
        "origin_area": pa.array([r[1] for r in rows], pa.string()),
        "destination_area": pa.array([r[2] for r in rows], pa.string()),
        "volume": pa.array(range(1, len(rows) + 1), pa.int64()),
        "trips": pa.array(range(1, len(rows) + 1), pa.int64()),
        "state": pa.array(["published"] * len(rows), pa.string()),
    }
    pq.write_table(pa.table(columns), folder / "flows.parquet", row_group_size=row_group_size)
    whole, times = pa.array([], pa.int64()), pa.array([], pa.timestamp("ms"))
    pq.write_table(pa.table({"t": times, "published": whole, "suppressed": whole}), folder / "steps.parquet")
    features = [{"type": "Feature", "properties": {"area": name, "tiles": [name]}} for name in AREAS]
    (folder / "areas.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return read_release(folder, {"data": "flows.parquet", "steps": "steps.parquet", "areas": "areas.geojson"})


@settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows_of_release, repeat=st.sampled_from([1, 9]), row_group_size=st.integers(1, 20))
def test_columns_are_what_was_written(
    rows: list[tuple[Any, ...]], repeat: int, row_group_size: int, tmp_path: Path
) -> None:
    """In pieces that each number their own areas; with times one by one, or many in a row."""
    rows = [row for row in rows for _ in range(repeat)]
    release = _written(tmp_path, rows, row_group_size)
    for i, column in ((1, "origin_area"), (2, "destination_area")):
        wanted = [AREAS.index(row[i]) if row[i] in AREAS else -1 for row in rows]
        assert release.area_numbers(column).tolist() == wanted
    times, place = release.row_steps()
    assert times.tolist() == sorted({NO_TIME if row[0] is None else row[0] for row in rows})
    assert times[place].tolist() == [NO_TIME if row[0] is None else row[0] for row in rows]
    assert release.column("volume").tolist() == list(range(1, len(rows) + 1))
    assert release.row_steps()[1] is place, "made once"


def test_columns_with_names_like_nested_ones_are_read_apart(tmp_path: Path) -> None:
    table = pa.table({"a.b": [1], "a": [2], "a.b.c": [3]}, metadata={"note": "kept"})
    pq.write_table(table, tmp_path / "flows.parquet")
    assert read_release(tmp_path, {"data": "flows.parquet"}).data.equals(table, check_metadata=True)


@pytest.mark.parametrize("name", [None, "nowhere"])
def test_an_area_that_is_missing_is_no_area(name: str | None, tmp_path: Path) -> None:
    release = _written(tmp_path, [(0, "a", "b"), (0, name, "c d")], 10)
    assert DisjointFlows().check(release).violated
    assert WellFormedFlows().check(release).violated


@pytest.mark.parametrize(("most", "drawn"), [(10**6, 3), (9, 1)])
def test_areas_are_drawn_unless_they_are_too_many(most: int, drawn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = grid_frame(np.array([2.0, 2.02]), np.array([48.0, 48.02]), 1000.0)
    zones = grid_zones(grid, np.arange(3, dtype=np.int32), np.zeros(3, np.int32))
    areas = Areas(
        zones, np.array(["one", "two", "all"], dtype=object), np.array([0, 1, 3, 6]), np.array([0, 1, 2, 0, 1, 2])
    )
    monkeypatch.setattr(release_writer, "MAX_VERTICES", most)
    features = list(release_writer.area_features(areas, np.ones(3, np.bool_)))
    assert sum(outline is not None for _, outline in features) == drawn
    assert features[0][1] is not None  # a tile has its own outline, whatever becomes of the others
    assert [len(properties["tiles"]) for properties, _ in features] == [1, 2, 3]


@pytest.mark.parametrize("column", ["t", "origin_area", "destination_area", "volume", "trips", "state", "suppressed"])
def test_a_column_that_is_missing_is_reported(column: str, tmp_path: Path) -> None:
    """In a release of another sender, whatever its manifest says."""
    written = _written(tmp_path, [(0, "a", "b")], 10)
    steps = pa.table({"t": written.data["t"], "suppressed": pa.array([0], pa.int64())})
    data = written.data
    if column == "suppressed":
        steps = steps.drop_columns([column])
    else:
        data = data.drop_columns([column])
    zones = Zones(np.array(AREAS, dtype=object), np.arange(4.0), np.zeros(4), kind="centroids")
    with pytest.raises(InputError, match=f"has no column {column}, which its manifest lists"):
        load_flow_release_alone(WrittenRelease(tmp_path, data, steps, written.features), zones, 3600, "UTC")


def _again(table: pa.Table, name: str) -> pa.Table:
    return table.append_column(name, table[name])


def _as_text(table: pa.Table, name: str) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))


@pytest.mark.parametrize("change", [_again, _as_text])
@pytest.mark.parametrize(("file", "column"), [("flows", "volume"), ("steps", "suppressed"), ("steps", "published")])
def test_tables_of_another_form_are_reported(change: Any, file: str, column: str, tmp_path: Path) -> None:
    tables = {"flows": _written(tmp_path, [(0, "a", "b")], 1).data}
    tables["steps"] = pa.table({"t": tables["flows"]["t"], "published": [1], "suppressed": [0]})
    for name, table in tables.items():
        pq.write_table(change(table, column) if name == file else table, tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="the release lacks a file, or one is broken"):
        read_release(tmp_path, {"data": "flows.parquet", "steps": "steps.parquet"})


@pytest.mark.parametrize("column", ["t", "published", "suppressed"])
def test_a_table_of_steps_that_lacks_a_column_is_reported(column: str, tmp_path: Path) -> None:
    flows = _written(tmp_path, [(0, "a", "b")], 1).data
    steps = pa.table({"t": flows["t"], "published": [1], "suppressed": [0]}).drop_columns([column])
    for name, table in (("flows", flows), ("steps", steps)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match=f"the table of time steps has no column {column}"):
        read_release(tmp_path, {"data": "flows.parquet", "steps": "steps.parquet"})
