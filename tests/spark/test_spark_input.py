"""Input that is easily misread, on Spark as on one machine: who is whom, how times are written, how many people there are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from spark_runs import same_rows

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


def trips(days: list[str], people: list[str] = PEOPLE) -> pa.Table:
    n = len(people) * len(days)
    return pa.table({"origin": ["a"] * n, "destination": ["b"] * n, "time": [d for d in days for _ in people],
                     "user_id": people * len(days)})  # fmt: skip


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


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_people_and_times_are_read_alike(form: str, spark: Any, tmp_path: Path) -> None:
    data = tmp_path / f"trips.{form}"
    table = trips(["05/06/2008 01:15 PM", "25/06/2008 02:15 PM", "30/03/2008 02:30 AM", "26/10/2008 02:30 AM"])
    pacsv.write_csv(table, data) if form == "csv" else pq.write_table(table, data)
    notes = both(spark, tmp_path, data, k=5, tz="Europe/Paris")
    assert same_rows(*(pq.read_table(tmp_path / place / "flows.parquet") for place in ("here", "there")))
    assert any("ids in column user_id that differ" in said for said in notes)
    assert any("times in column time that did not exist" in said for said in notes)
    assert any("times in column time that existed twice" in said for said in notes)
    published = pq.read_table(tmp_path / "there" / "flows.parquet")
    assert published["people"].to_pylist() == [5] * 4
    assert (
        "k: wanted at most the people in the data, 5, but got 6"
        in both(spark, tmp_path, data, k=6, tz="Europe/Paris")[0]
    )


@pytest.mark.parametrize(
    ("table", "says"),
    [(trips(["05/06/2008"]), "time_format="), (trips(["2606-06-08"]), "time_format="),
     (trips(["1971-06-08", "2090-06-08"]), "100 years"), (trips(["1212900000", "1212900000000"]), "one unit"),
     (trips(["2008-06-08"], ["u", "", " ", "v"]), "2 rows have no user in column user_id"),
     (pa.table({"origin": ["a"], "destination": ["b"], "volume": [3], "people": [4]}), "more people than trips"),
     (pa.table({"origin": ["a"], "destination": ["b"], "volume": [3], "people": [1]}), "people in the data, at most 1,")],
)  # fmt: skip
def test_what_would_be_misread_is_refused_there_too(table: pa.Table, says: str, spark: Any, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "trips.parquet")
    (sentence,) = both(spark, tmp_path, tmp_path / "trips.parquet", k=2)
    assert says in sentence


def test_points_are_read_alike(spark: Any, tmp_path: Path) -> None:
    n = len(PEOPLE)
    columns = {"lat": [1.0] * n, "lon": [1.0] * n, "time": [1212900033 + i for i in range(n)], "user_id": PEOPLE}
    pq.write_table(pa.table(columns), tmp_path / "points.parquet")
    notes = both(spark, tmp_path, tmp_path / "points.parquet", "simple-generalization")
    assert any("2 ids in column user_id differ" in said for said in notes)
    far = {**columns, "time": ["2008-06-08"] * (n - 1) + ["1908-06-08"]}
    pq.write_table(pa.table(far), tmp_path / "points.parquet")
    assert "time_format=" in both(spark, tmp_path, tmp_path / "points.parquet", "simple-generalization")[0]
