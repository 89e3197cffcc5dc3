"""Runs on Spark with a ledger: the same records and the same verdicts as on one machine, and nothing of a refused release."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, InputError, ParameterError
from crowdveil.io.written_release import read_release
from crowdveil.ledger.entries import entries
from crowdveil.ledger.store import Ledger

pyspark = pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]
DAY = 86_400


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return crowdveil.ledger_init(tmp_path / "ledger")


def trips_table(days: int = 1) -> pa.Table:
    """On each day twenty people travel in the first hour, three of others in the second; some trips stand twice."""
    seconds = [*range(20), *(3600 + i for i in range(3)), *range(100, 115), 0, 1]
    ends = ["n"] * 23 + ["s"] * 15 + ["n"] * 2
    people = [*range(38), 0, 1]
    return pa.table(
        {
            "origin": ends * days,
            "destination": ["s" if end == "n" else "n" for end in ends] * days,
            "time": pa.array(np.add.outer(np.arange(days) * DAY, seconds).ravel() * 1_000_000, pa.timestamp("us")),
            "user_id": pa.array([f"person {i}" for i in people] * days),
        }
    )


def release(trips: Path, out: Path, step: str, **more: Any) -> Any:
    options = {"k": 10, "step": step, "tz": "UTC", "attack": False, "report": False} | more
    return crowdveil.anonymize(str(trips), str(out), method="suppression", **options)


def rows_of_records(ledger: Path, number: int) -> dict[int, Any]:
    """What the ledger says of each record of an entry: person, volume, and time and areas of its row."""
    entry = entries(Ledger(ledger))[number - 1]
    folder = Ledger(ledger).entry_folder(number)
    written = read_release(folder, entry.roles)
    table = written.data.select(["t", "origin_area", "destination_area"]).to_pylist()
    records = pq.read_table(folder / "records.parquet").to_pylist()
    return {
        r["source"]: (r["person"], r["volume"], str(table[r["row"]]) if 0 <= r["row"] < len(table) else r["row"])
        for r in records
    }


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_records_and_their_rows_are_those_of_one_machine(form: str, spark: Any, ledger: Path, tmp_path: Path) -> None:
    """Files of a cluster are not in order of time: the ledger still has the row that each record lies in."""
    trips, write = tmp_path / f"trips.{form}", {"parquet": pq.write_table, "csv": pcsv.write_csv}[form]
    write(trips_table(days=9), trips)
    release(trips, tmp_path / "here", "1h", ledger=ledger, format="parquet")
    there = release(trips, tmp_path / "there", "1h", ledger=ledger, spark=spark)
    assert there.manifest["ledger"] == {"entry": 2, "entries_audited": 1, "tier": 0, "k": 10, "k_unit": "people"}
    one, other = (rows_of_records(ledger, number) for number in (1, 2))
    assert one == other and len(one) == 9 * 38 and {v for _, v, _ in one.values()} == {1, 2}
    first, second = entries(Ledger(ledger))
    assert first.inputs == second.inputs and first.columns == second.columns and second.state == "published"
    assert crowdveil.ledger_verify(ledger)
    # A release that is derived from the one of the cluster is a union of its rows.
    derived = crowdveil.derive(tmp_path / "there", tmp_path / "days", step="1d", ledger=ledger)
    assert derived.manifest["ledger"]["tier"] == 0
    rows = pq.read_table(tmp_path / "days" / "flows.parquet")["volume"].to_numpy()
    held = pq.read_table(Ledger(ledger).entry_folder(3) / "records.parquet")
    inside = held["row"].to_numpy() >= 0
    counted = np.bincount(held["row"].to_numpy()[inside], held["volume"].to_numpy()[inside], len(rows))
    assert counted.tolist() == rows.tolist()


def test_a_refused_release_is_not_published(spark: Any, ledger: Path, tmp_path: Path) -> None:
    pq.write_table(trips_table(), tmp_path / "trips.parquet")
    release(tmp_path / "trips.parquet", tmp_path / "hours", "1h", ledger=ledger, spark=spark)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(GuaranteeViolatedError) as refused:
        release(tmp_path / "trips.parquet", tmp_path / "day", "1d", ledger=ledger, spark=spark)
    for word in ("day", "entry 1 (hours)", "volume 25", "volume 22", "leaves 3 people", "fewer than 10"):
        assert word in str(refused.value), word
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert [(entry.name, entry.state) for entry in entries(Ledger(ledger))] == [("hours", "published")]
    assert crowdveil.ledger_verify(ledger)[0].startswith("3 lines, 1 entry")


def test_data_frames_and_flows_of_a_cluster(spark: Any, ledger: Path, tmp_path: Path) -> None:
    """Without a file the hash of the input is that of its records; flows are records with a volume."""
    frame = spark.createDataFrame(
        [
            ("n", "s", "1970-01-01 00:00:00", 20),
            ("n", "s", "1970-01-01 01:00:00", 3),
            ("s", "n", "1970-01-01 00:00:00", 15),
        ],
        "origin string, destination string, time string, volume long",
    )
    options = {"k": 10, "tz": "UTC", "attack": False, "report": False, "ledger": ledger, "spark": spark}
    crowdveil.anonymize(frame, str(tmp_path / "hours"), method="suppression", step="1h", **options)
    (entry,) = entries(Ledger(ledger))
    assert entry.kind == "flows" and [len(digest) for digest in entry.inputs] == [64]
    with pytest.raises(GuaranteeViolatedError, match="leaves 3 trips"):
        crowdveil.anonymize(frame, str(tmp_path / "day"), method="suppression", step="1d", **options)


def test_what_a_ledger_on_spark_refuses(spark: Any, ledger: Path, tmp_path: Path) -> None:
    pq.write_table(trips_table(), tmp_path / "trips.parquet")
    trips, out = tmp_path / "trips.parquet", tmp_path / "out"
    for option in ("keep_unchanged",):
        with pytest.raises(ParameterError, match="run it on one machine"):
            release(trips, out, "1h", ledger=ledger, spark=spark, **{option: True})
    out.mkdir()
    (out / "manifest.json").touch()
    inside = crowdveil.ledger_init(out / "ledger")
    for target in (str(out), f"file://{out}"):
        with pytest.raises(InputError, match="must not be in the release"):
            release(trips, target, "1h", ledger=inside, spark=spark, overwrite=True)
