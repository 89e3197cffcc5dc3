"""A small cluster for tests on Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
