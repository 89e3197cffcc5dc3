"""What tests on Spark share: a small cluster, and comparing published rows of both backends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import crowdveil

SOURCES = Path(crowdveil.__file__).parents[1]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A cluster of two executors in processes of their own."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.executorEnv.PYTHONPATH": str(SOURCES),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "America/New_York",  # the user's own affair
        "spark.sql.shuffle.partitions": "7",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,2048]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def plain(rows: pa.Table) -> pa.Table:
    """Rows in one order, with times as UTC: nothing but values is left."""
    times = {n: rows[n].cast(pa.timestamp("ms", tz="UTC")) for n in ("t", "until") if n in rows.column_names}
    columns = {**times, **{n: rows[n].cast(pa.string()) for n in ("origin_area", "destination_area", "state")}}
    columns |= {n: rows[n] for n in rows.column_names if n not in columns}
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two releases publish the same rows."""
    return set(one.column_names) == set(other.column_names) and plain(one).equals(plain(other))


def executors() -> list[int]:
    """Executors that were started from here."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])

    def mine(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and mine(parents[pid]))

    java = [pid for pid in parents if mine(pid)]
    return [pid for pid in java if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()]
