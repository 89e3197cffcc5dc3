"""Own range queries: answers by hand, and a distortion of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import crowdveil
from crowdveil.errors import InputError

ROWS = [("a", 2.0, 48.0, 0), ("a", 2.0, 48.0, 600), ("b", 2.0, 48.0, 300), ("b", 2.1, 48.0, 900), ("c", 3.0, 48.0, 0)]


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("trajectory_id", "lon", "lat", "timestamp"), map(list, columns), strict=True)))


def _queries(*rows: tuple[float, float, float, int, int]) -> pa.Table:
    return pa.table(
        dict(zip(("lon", "lat", "radius_m", "start", "end"), map(list, zip(*rows, strict=True)), strict=True))
    )


def test_answers_are_those_found_by_hand() -> None:
    queries = _queries(
        (2.0, 48.0, 100, 0, 600), (2.0, 48.0, 100, 300, 300), (3.0, 48.0, 50, 0, 0), (9.0, 9.0, 1, 0, 900)
    )
    published = _table([("x", 2.0, 48.0, 0), ("x", 2.0, 48.0, 600)])
    found = crowdveil.measure_queries(_table(ROWS), published, queries)
    assert found.sometime.tolist() == [2, 2, 1, 0] and found.sometime_published.tolist() == [1, 1, 0, 0]
    assert found.always.tolist() == [1, 2, 1, 0] and found.always_published.tolist() == [1, 1, 0, 0]
    assert found.sid == pytest.approx((0.5 + 0.5 + 1 + 0) / 4) and found.aid == pytest.approx((0 + 0.5 + 1 + 0) / 4)
    own = crowdveil.measure_queries(
        _table(ROWS), published, queries, distortion=lambda a, b: np.abs(a - b).astype(np.float64)
    )
    assert own.sid == pytest.approx(3 / 4)


def test_times_of_queries_are_in_the_zone_of_the_release(tmp_path: Path) -> None:
    """The first point is at 00:00 UTC, 09:00 in Tokyo, which the manifest of the release states."""
    rows = [
        (name, 2.0 + i / 1e4, 48.0, f"1970-01-01 09:0{minute}:00") for i, name in enumerate("abc") for minute in (0, 5)
    ]
    options = {"method": "microaggregation", "k": 3, "attack": False, "report": False}
    crowdveil.anonymize(_table(rows), tmp_path / "out", tz="Asia/Tokyo", **options)
    local = pa.table({"lon": [2.0], "lat": [48.0], "radius_m": [100.0],
                      "start": ["1970-01-01 09:00:00"], "end": ["1970-01-01 09:01:00"]})  # fmt: skip
    found = crowdveil.measure_queries(_table(rows), tmp_path / "out", local)
    assert found.sometime.tolist() == [3]
    assert crowdveil.measure_queries(_table(rows), tmp_path / "out", local, tz="UTC").sometime.tolist() == [3]
    read = crowdveil.read_trajectories(_table(rows), tz="Asia/Tokyo")
    assert crowdveil.measure_queries(read, tmp_path / "out", local).sometime.tolist() == [3]


def test_bad_queries_are_refused() -> None:
    for rows, match in (([(2.0, 48.0, -1, 0, 1)], "no usable circle"), ([(2.0, 48.0, 1, 9, 1)], "no usable circle")):
        with pytest.raises(InputError, match=match):
            crowdveil.measure_queries(_table(ROWS), _table(ROWS), _queries(*rows))
    with pytest.raises(InputError, match="radius_m is missing"):
        crowdveil.measure_queries(_table(ROWS), _table(ROWS), pa.table({"lon": [2.0], "lat": [48.0]}))


def test_the_command(tmp_path: Path, command: Any) -> None:
    original, queries, out = tmp_path / "cabs.csv", tmp_path / "q.csv", tmp_path / "answers.csv"
    _table(ROWS).to_pandas().to_csv(original, index=False)
    _queries((2.0, 48.0, 100, 0, 600)).to_pandas().to_csv(queries, index=False)
    ran = command("experiment", "queries", original, original, queries, "-o", out)
    assert ran.code == 0 and "SID 0.0000" in ran.out, ran.err
    assert out.read_text().splitlines()[1] == "1,2,2,1,1"
