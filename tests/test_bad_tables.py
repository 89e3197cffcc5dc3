"""Tables that are broken, too wide or of odd types: one sentence, exit code 2, nothing written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_input import (
    K2,
    ZONES,
    Command,
    anonymized,
    refused,
)
from examples import slow_param

from crowdveil.errors import InputError
from crowdveil.io import source
from crowdveil.io.flows import read_flows
from crowdveil.io.source import open_source
from crowdveil.io.trajectories import read_trajectories


def test_a_truncated_parquet_file_is_refused(here: Path, command: Command) -> None:
    columns = {"origin": ["Zurbano"] * 500, "destination": ["Ymirstad"] * 500, "user_id": list(range(500))}
    pq.write_table(pa.table(columns), here / "whole.parquet", compression="none")
    whole = (here / "whole.parquet").read_bytes()
    (here / "zones.geojson").write_text(ZONES)
    for length in (3, 100, len(whole) // 2, len(whole) - 1):
        (here / "trips.parquet").write_bytes(whole[:length])
        assert "broken" in refused(command, here, *anonymized("trips.parquet", "--zones", "zones.geojson", *K2))


def test_a_parquet_file_with_broken_pages_is_refused(here: Path, command: Command) -> None:
    points = {
        "lat": np.linspace(41.1, 41.2, 5000), "lon": np.linspace(2.1, 2.2, 5000), "timestamp": np.arange(5000),
        "trajectory_id": np.arange(5000) // 10,
    }  # fmt: skip
    trips = {"origin": [str(i) for i in range(5000)], "destination": [str(i) for i in range(5000)]}
    (here / "zones.csv").write_text("zone_id,lon,lat\n" + "".join(f"{i},2.1,41.1\n" for i in range(5000)))
    for name, columns, args in (("points", points, ()), ("trips", trips, ("--zones", "zones.csv"))):
        file = here / f"{name}.parquet"
        pq.write_table(pa.table(columns), file, compression="zstd", use_dictionary=False)
        content = bytearray(file.read_bytes())
        for at in range(200, len(content) - 3000, 7):
            content[at] ^= 0x5A
        file.write_bytes(content)
        assert "broken" in refused(command, here, *anonymized(file.name, *args))


def test_parquet_without_rows_is_refused(here: Path, command: Command) -> None:
    schema = pa.schema([("origin", pa.string()), ("destination", pa.string())])
    pq.write_table(schema.empty_table(), here / "trips.parquet")
    assert "no rows" in refused(command, here, *anonymized("trips.parquet"))


ODD_TYPES = {
    "list": pa.array([[1], [2], [3], [4]]),
    "struct": pa.array([{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}]),
    "null": pa.nulls(4),
    "bool": pa.array([True, False, True, False]),
    "bytes": pa.array([b"\xff\xfe", b"\xfe", b"\xfd", b"\xfc"]),
    "duration": pa.array([1, 2, 3, 4], pa.duration("s")),
    "time": pa.array([1, 2, 3, 4], pa.time32("s")),
    "map": pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
}


POINTS = {
    "lat": pa.array([41.1, 41.2, 41.3, 41.4]), "lon": pa.array([2.1, 2.2, 2.3, 2.4]), "timestamp": pa.array([1, 2, 3, 4]),
    "trajectory_id": pa.array([1, 1, 2, 2]), "user_id": pa.array([1, 1, 2, 2]),
}  # fmt: skip
TRIPS = {
    "origin": pa.array(["a", "a", "b", "b"]), "destination": pa.array(["b", "b", "a", "a"]),
    "departure": pa.array([1, 2, 3, 4], pa.timestamp("s")), "user_id": pa.array([1, 2, 3, 4]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD_TYPES)
def test_a_column_of_an_odd_type_is_read_or_named(kind: str) -> None:
    """Ids may be of any type that has a text; numbers and times may not."""
    as_ids = kind in ("bool", "duration", "time")
    for read, table, ids in (
        (read_trajectories, POINTS, ("trajectory_id", "user_id")),
        (read_flows, TRIPS, ("origin", "destination", "user_id")),
    ):
        for column in (*table, *(["volume"] if table is TRIPS else [])):
            data = pa.table({**table, column: ODD_TYPES[kind]})
            if as_ids and column in ids:
                assert len(read(data)) > 0
            else:
                with pytest.raises(InputError, match=column):
                    read(data)


def test_a_million_columns_are_refused_before_they_are_read(here: Path) -> None:
    """In a process of its own, whose memory is looked at."""
    (here / "points.csv").write_text(",".join(f"c{i}" for i in range(500_000)) + "\n" + "1," * 499_999 + "1\n")
    (here / "longer.csv").write_text(",".join(f"column {i}" for i in range(1_000_000)) + "\n")
    script = (
        "import resource, sys\n"
        "from crowdveil.errors import InputError\n"
        "from crowdveil.io.source import open_source\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        open_source(name)\n"
        "    except InputError as error:\n        print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    names = ["points.csv", "longer.csv"]
    ran = subprocess.run([sys.executable, "-c", script, *names], capture_output=True, text=True, check=True, cwd=here)
    wide, long, kilobytes = ran.stdout.splitlines()
    assert "10,000 columns" in wide and "first line" in long
    assert int(kilobytes) < 64 << 10


@pytest.mark.parametrize("limit", [200, slow_param(source.MAX_COLUMNS)])
def test_the_limit_of_columns_is_where_it_is_said_to_be(
    here: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(source, "MAX_COLUMNS", limit)
    table = pa.table({f"c{i}": pa.array([1], pa.int8()) for i in range(limit + 1)})
    pq.write_table(table, here / "wide.parquet")
    pq.write_table(table.drop_columns(["c0"]), here / "fits.parquet")
    (here / "fits.csv").write_text(",".join(table.column_names[1:]) + "\n" + "1," * (limit - 1) + "1\n")
    for data in (table, here / "wide.parquet", table.to_pandas()):
        with pytest.raises(InputError, match=f"{limit:,} columns"):
            open_source(data)
    assert len(open_source(here / "fits.parquet").columns) == len(open_source(here / "fits.csv").columns) == limit
