"""Tables that are written come back as they were."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdveil.errors import OutputError
from crowdveil.io import tables
from crowdveil.io.flows import read_flows
from crowdveil.io.source import open_source
from crowdveil.io.tables import write_chunked_table, write_flows, write_table, write_trajectories
from crowdveil.io.times import iso_times
from crowdveil.io.trajectories import read_trajectories
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones

unhurried = settings(deadline=None, max_examples=tries(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
TRICKY = ["plain", 'a "quoted" word', "comma, here", "line\nbreak", "ünï", " spaces ", "semi;colon", "'"]


@unhurried
@given(
    st.lists(st.tuples(st.sampled_from(TRICKY), st.sampled_from(TRICKY), st.integers(-5, 5)), min_size=1, max_size=6)
)
def test_text_comes_back_from_csv_and_parquet(tmp_path: Path, rows: list[tuple[str, str, int]]) -> None:
    table = pa.table({"a b": [r[0] for r in rows], 'c"d,e': [r[1] for r in rows], "n": [r[2] for r in rows]})
    for name in ("t.csv", "t.parquet", "t.CSV"):
        write_table(table, tmp_path / name)
        back = open_source(tmp_path / name).read()
        assert back.column_names == table.column_names
        assert [[str(v) for v in row.values()] for row in back.to_pylist()] == [[str(v) for v in r] for r in rows]


@pytest.mark.parametrize("name", ["t", "t.xls", "t.csv.gz"])
def test_other_endings_are_refused_by_the_name_that_was_given(name: str, tmp_path: Path) -> None:
    flows = Flows.from_rows(
        Zones.from_ids(["a"]), np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones(1, np.int64)
    )
    with pytest.raises(OutputError, match=f"/{name}: Expected a name that ends in .csv or .parquet"):
        write_flows(flows, tmp_path / name)
    assert not list(tmp_path.iterdir())


@unhurried
@given(
    st.sampled_from(["UTC", "Europe/Paris", "America/St_Johns", "Asia/Kathmandu"]),
    st.lists(st.integers(1_600_000_000, 1_800_000_000)),
)
def test_times_are_written_as_isoformat_writes_them(zone: str, t: list[int]) -> None:
    wanted = [datetime.fromtimestamp(s, ZoneInfo(zone)).isoformat() for s in t]
    assert iso_times(np.array(t, np.int64), zone).to_pylist() == wanted


@pytest.mark.parametrize("name", ["f.csv", "f.parquet", "f.CSV"])
@pytest.mark.parametrize("people", [True, False])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_flows_come_back(name: str, people: bool, zone: str, tmp_path: Path) -> None:
    flows = Flows.from_rows(
        Zones.from_ids(["10", "9", "x"]), np.array([1710054000, 1710050400, 1710054000]), np.array([0, 1, 2], np.int32),
        np.array([1, 1, 0], np.int32), np.array([5, 6, 7]), np.array([2, 3, 4]) if people else None, step_s=3600, tz=zone,
    )  # fmt: skip
    write_flows(flows, tmp_path / name)
    back = read_flows(tmp_path / name, tz=zone)
    assert back.k_unit == flows.k_unit
    assert back.step_s == 3600
    assert back.t.tolist() == flows.t.tolist()

    def rows(model: Flows) -> set[tuple[object, ...]]:
        ids, step = model.zones.ids, model.step
        return set(zip(step, ids[model.origin], ids[model.destination], model.volume, model.people, strict=True))

    assert rows(back) == rows(flows)
    with pytest.raises(OutputError, match="exists"):
        write_flows(flows, tmp_path / name)


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
@pytest.mark.parametrize("counts", ["people", "trajectories"])
def test_trajectories_come_back(name: str, counts: str, tmp_path: Path) -> None:
    one_each = counts == "trajectories"
    model = Trajectories(
        np.array([-2.0, 2.1234567890123, 0.1 + 0.2]), np.array([-41.5, 41.0, 1e-9]), np.array([5, 5, -7]), np.array([0, 2, 3]),
        np.array(["a, b", "7"], dtype=object), np.array([0, 1 if one_each else 0]),
        np.array(["a, b", "7"] if one_each else ["ann"], dtype=object), counts,  # type: ignore[arg-type]
    )  # fmt: skip
    write_trajectories(model, tmp_path / name)
    # Points of one time come back by position, whichever way they were written; nothing else changes.
    turned = replace(model, lon=model.lon[[1, 0, 2]], lat=model.lat[[1, 0, 2]])
    write_trajectories(turned, tmp_path / f"turned-{name}")
    for file in (tmp_path / name, tmp_path / f"turned-{name}"):
        back = read_trajectories(file, time_format="%Y-%m-%dT%H:%M:%S%z")
        assert back.k_unit == counts
        for column in ("lon", "lat", "t", "offsets", "ids", "person", "people_ids"):
            assert getattr(back, column).tolist() == getattr(model, column).tolist(), column


@pytest.mark.parametrize("rows", [0, 1, 6, 7, 20])
def test_pieces_are_one_table(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Parquet each piece is a row group; the bytes are those of the table written whole."""
    monkeypatch.setattr(tables, "CHUNK_ROWS", 6)
    whole = pa.table(
        {"n": pa.array(range(rows), pa.int64()), "text": pa.array([TRICKY[i % 8] for i in range(rows)], pa.string())}
    )

    def piece(part: slice) -> pa.Table:
        return whole.slice(part.start, part.stop - part.start)

    for name in ("pieces.parquet", "pieces.csv"):
        write_chunked_table(piece, rows, tmp_path / name)
    pq.write_table(whole, tmp_path / "whole.parquet", compression="zstd", row_group_size=6)
    write_table(whole, tmp_path / "whole.csv")
    for kind in ("parquet", "csv"):
        assert (tmp_path / f"pieces.{kind}").read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()
