"""Faults of a written table of trajectories are found whatever rows are checked in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crowdveil.guarantees import LocationsOnTileCenters, WellFormedTrajectories, trajectories
from crowdveil.io.written_release import WrittenRelease

GOOD = {"lon": [1.0] * 6, "timestamp": [1, 2, 1, 2, 2, 9], "published_id": [1, 1, 2, 2, 2, 3]}


def _written(columns: dict[str, list[Any]], *, text: bool) -> WrittenRelease:
    times: Any = pa.array([1000 * t for t in columns["timestamp"]], pa.timestamp("ms", tz="UTC"))
    if text:
        times = pa.array([f"1970-01-01T00:00:0{t}Z" for t in columns["timestamp"]])
    table = {"lat": [0.0] * 6, **columns, "timestamp": times}
    return WrittenRelease(Path("out"), pa.table(table), None, [])


@pytest.mark.parametrize("rows", [1, 2, 3, 10])
@pytest.mark.parametrize("text", [False, True], ids=["timestamps", "text"])
@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        ("", {}),
        ("not_numbered", {"published_id": [1, 1, 2, 4, 4, 4]}),
        ("not_numbered", {"published_id": [2, 2, 2, 2, 3, 3]}),
        ("times_fall", {"timestamp": [1, 2, 1, 2, 1, 9]}),
        ("off_globe", {"lon": [1.0] * 5 + [181.0]}),
    ],
)
def test_faults_at_the_border_of_chunks_are_found(
    fault: str, changed: dict[str, list[Any]], text: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectories, "CHUNK_ROWS", rows)
    found = WellFormedTrajectories().check(_written(GOOD | changed, text=text))
    faults = {name for name, count in found.counts.items() if count and name != "points"}
    assert faults - {"times_fall"} == {fault} - {"", "times_fall"} and (fault != "times_fall" or "times_fall" in faults)
    assert found.holds == (not fault)


@pytest.mark.parametrize("rows", [1, 4, 10])
def test_positions_off_centers_are_counted_once(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectories, "CHUNK_ROWS", rows)
    table = _written(GOOD | {"lon": [1.0, 2.0, 1.0, 1.0, 2.0, 2.0]}, text=False).data
    centers = [{"properties": {"lon": 1.0, "lat": 0.0}}]
    found = LocationsOnTileCenters().check(WrittenRelease(Path("out"), table, None, centers))
    assert found.violated and found.counts == {"positions": 6, "strange": 3}
