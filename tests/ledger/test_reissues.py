"""Re-issues after corrections and erasure requests: what a reader of both releases learns, and values that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, ParameterError
from crowdveil.ledger.entries import entries
from crowdveil.ledger.store import Ledger

K = 5


def write(path: Path, people: list[int], zones: str = "ns", times: list[int] | None = None) -> Path:
    """Write a trip for each person, all from one zone to the other."""
    seconds = np.array(times if times is not None else [60 * i for i in people])
    columns = {
        "origin": [zones[0]] * len(people), "destination": [zones[1]] * len(people),
        "time": pa.array(seconds * 1_000_000, pa.timestamp("us")), "user_id": people,
    }  # fmt: skip
    pq.write_table(pa.table(columns), path)
    return path


def release(data: Path, out: Path, ledger: Path, **options: Any) -> Any:
    given = {"k": K, "step": "1d", "tz": "UTC", "attack": False, "report": False, "ledger": ledger}
    return crowdveil.anonymize(data, out, method="suppression", **given | options)


def volumes(folder: Path) -> dict[Any, int]:
    rows = pq.read_table(folder / "flows.parquet").to_pylist()
    return {(row["t"], row["origin_area"], row["destination_area"]): row["volume"] for row in rows}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return crowdveil.ledger_init(tmp_path / "ledger")


@pytest.mark.parametrize("people", [list(range(1, 23)), list(range(2, 20))], ids=["removed and added", "removed"])
def test_a_row_in_which_few_people_changed_is_refused_or_kept(tmp_path: Path, ledger: Path, people: list[int]) -> None:
    release(write(tmp_path / "a.parquet", list(range(20))), tmp_path / "first", ledger)
    corrected = write(tmp_path / "b.parquet", people)
    with pytest.raises(GuaranteeViolatedError) as refused:
        release(corrected, tmp_path / "second", ledger)
    assert "entry 1 (first)" in str(refused.value) and not (tmp_path / "second").exists()
    if 22 in people or 21 in people:
        assert "same areas and time" in str(refused.value) and "keep_unchanged" in str(refused.value)
        assert "but differ in" in "\n".join(crowdveil.ledger_explain(ledger))
    kept = release(corrected, tmp_path / "second", ledger, keep_unchanged=True)
    # Who subtracts one from the other gets nothing.
    assert volumes(tmp_path / "first") == volumes(tmp_path / "second")
    assert any("1 row with fewer than k changed people kept" in line for line in kept.lines())
    assert not any(finding.violated for _, finding in crowdveil.verify(tmp_path / "second", corrected))
    # The ledger knows whose trips the kept value counts: a release of the corrected data in hours reveals the two who left.
    assert len(entries(Ledger(ledger))) == 2


def test_the_last_hour_of_a_day_of_25_hours_is_compared(tmp_path: Path, ledger: Path) -> None:
    """One of twenty people leaves, and three come: the day has no other trips than the hour."""
    late, paris = [1_792_971_000] * 22, {"tz": "Europe/Paris"}  # 25 October 2026, 23:30
    release(
        write(tmp_path / "a.parquet", list(range(20)), times=late[:20]), tmp_path / "hours", ledger, step="1h", **paris
    )
    corrected = write(tmp_path / "b.parquet", list(range(1, 23)), times=late)
    with pytest.raises(GuaranteeViolatedError, match="same areas and time"):
        release(corrected, tmp_path / "days", ledger, **paris)


def test_a_row_in_which_enough_people_changed_is_new(tmp_path: Path, ledger: Path) -> None:
    release(write(tmp_path / "a.parquet", list(range(20))), tmp_path / "first", ledger)
    corrected = write(tmp_path / "b.parquet", list(range(3, 26)))
    new = release(corrected, tmp_path / "second", ledger, keep_unchanged=True)
    assert list(volumes(tmp_path / "second").values()) == [23] and not any("kept" in line for line in new.lines())


def test_kept_rows_count_the_earlier_people_in_later_audits(tmp_path: Path, ledger: Path) -> None:
    """Two of twenty people leave, and the row keeps its value; the other eighteen alone cannot be published then."""
    release(write(tmp_path / "a.parquet", list(range(20))), tmp_path / "first", ledger)
    corrected = write(tmp_path / "b.parquet", list(range(2, 20)))
    release(corrected, tmp_path / "second", ledger, keep_unchanged=True)
    crowdveil.ledger_retire(ledger, 1, "replaced by the second")
    with pytest.raises(GuaranteeViolatedError, match="leaves 2 people"):
        release(corrected, tmp_path / "third", ledger)


def test_random_corrections(tmp_path: Path) -> None:
    """Rows that differ visibly in 1 to k - 1 people are refused, from a plain comparison of the data."""
    rng, seen = np.random.default_rng(3), set()
    for case in range(tries(24)):
        folder = tmp_path / str(case)
        folder.mkdir()
        ledger = crowdveil.ledger_init(folder / "ledger")
        before = list(range(int(rng.integers(8, 14))))
        after = before[int(rng.integers(0, 4)) :] + list(range(50, 50 + int(rng.integers(0, 8))))
        release(write(folder / "a.parquet", before), folder / "first", ledger)
        changed = len(set(before) ^ set(after))
        harmless = changed == 0 or changed >= K or len(before) == len(after) or len(after) < K
        removed, added = set(before) - set(after), set(after) - set(before)
        if changed and not (removed and added):
            harmless = len(removed | added) >= K or len(after) < K
        data = write(folder / "b.parquet", after)
        try:
            release(data, folder / "second", ledger)
            passed = True
        except GuaranteeViolatedError:
            passed = False
        assert passed == harmless, (before, after)
        seen.add(passed)
        release(data, folder / "kept", ledger, keep_unchanged=True)
    assert seen == {True, False}


def test_other_time_steps_are_other_rows(tmp_path: Path, ledger: Path) -> None:
    """The first hour and the whole day begin at the same time, and are no re-issue of each other."""
    data = write(tmp_path / "a.parquet", list(range(40)), times=[*range(20), *range(7200, 7220)])
    release(data, tmp_path / "hours", ledger, step="1h")
    assert release(data, tmp_path / "day", ledger).manifest["ledger"]["tier"] == 0


def test_what_cannot_be_kept(tmp_path: Path) -> None:
    data = write(tmp_path / "a.parquet", list(range(20)))
    with pytest.raises(ParameterError, match="Name a ledger"):
        crowdveil.anonymize(data, tmp_path / "out", method="suppression", keep_unchanged=True)
