"""Input that is easily misread, on Spark as on one machine: who is whom, how times are written, how many people there are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crowdveil
from crowdveil.errors import InputError

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]
PEOPLE = ["1", " 01", "1.0", "bob", "bob ", "Bob", "2", "3"]
"""Five people, or four where case does not matter."""


def both(spark: Any, tmp_path: Path, data: Path, method: str = "suppression", **options: Any) -> list[str]:
    """What is said of a run, the same on one machine and on Spark: notes, or the error without row numbers.

    Attacks on trajectories, which Spark leaves out and says so, are not made on either.
    """
    said: list[Any] = []
    for place, more in (("here", {}), ("there", {"spark": spark})):
        try:
            crowdveil.anonymize(str(data), tmp_path / place, method=method, overwrite=True, report=False, attack=False,
                                format="parquet", **more, **options)  # fmt: skip
            said.append(json.loads((tmp_path / place / "manifest.json").read_text())["input"]["notes"])
        except InputError as error:
            said.append([re.sub(r" \((rows?|first:?) [^)]*\)", "", str(error))])
    assert sorted(said[0]) == sorted(said[1])
    return sorted(said[0])


def test_points_are_read_alike(spark: Any, tmp_path: Path) -> None:
    n = len(PEOPLE)
    columns = {"lat": [1.0] * n, "lon": [1.0] * n, "time": [1212900033 + i for i in range(n)], "user_id": PEOPLE}
    pq.write_table(pa.table(columns), tmp_path / "points.parquet")
    notes = both(spark, tmp_path, tmp_path / "points.parquet", "simple-generalization")
    assert any("ids in column user_id that differ from another one only in case" in said for said in notes), notes
    far = {**columns, "time": ["2008-06-08"] * (n - 1) + ["1908-06-08"]}
    pq.write_table(pa.table(far), tmp_path / "points.parquet")
    assert "time_format=" in both(spark, tmp_path, tmp_path / "points.parquet", "simple-generalization")[0]
