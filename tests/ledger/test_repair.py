"""Repair: rows are merged until the audit passes, and the result is still a verified release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import slow_param

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, ParameterError


@pytest.fixture(params=[True, False], ids=["people", "trips"])
def trips(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    rng = np.random.default_rng(5)
    n = 3000
    columns: dict[str, Any] = {
        "origin": [f"z{i}" for i in rng.zipf(1.6, n) % 8],
        "destination": [f"z{i}" for i in rng.zipf(1.6, n) % 8],
        "time": pa.array(rng.integers(0, 86400, n) * 1_000_000 + 1_600_041_600_000_000, pa.timestamp("us")),
    }
    if request.param:
        columns["user_id"] = rng.integers(0, 700, n)
    pq.write_table(pa.table(columns), tmp_path / "trips.parquet")
    (tmp_path / "zones.csv").write_text("zone_id,lon,lat\n" + "".join(f"z{i},{i % 3},{i // 3}\n" for i in range(8)))
    return tmp_path / "trips.parquet"


def released(trips: Path, name: str, step: str, ledger: Path, **more: Any) -> Any:
    options = {"k": 5, "zones": trips.parent / "zones.csv", "attack": False, "report": False, "ledger": ledger} | more
    return crowdveil.anonymize("joint", trips, trips.parent / name, step=step, **options)


@pytest.mark.parametrize(("step", "k"), [("1d", 5), slow_param("1d", 8)])
def test_a_repaired_release_passes(trips: Path, tmp_path: Path, step: str, k: int) -> None:
    ledger = crowdveil.ledger_init(tmp_path / "ledger")
    released(trips, "first", "4h", ledger)
    with pytest.raises(GuaranteeViolatedError, match="leaves"):
        released(trips, "refused", step, ledger, k=k)
    result = released(trips, "second", step, ledger, k=k, repair=True)
    assert {entry["outcome"] for entry in result.manifest["guarantees"]} == {"holds"}
    assert result.manifest["ledger"]["entries_audited"] == 1
    assert result.manifest["method"]["facts"]["repair"]["rows_merged"] > 0
    assert any(line.strip().startswith("repair: mean generalization") for line in result.lines())
    zones = {"zones": trips.parent / "zones.csv"}
    assert all(f.holds for _, f in crowdveil.verify(result.folder, trips, **zones))
    assert crowdveil.ledger_check(ledger, result.folder, trips, **zones).passed
    again = released(trips, "again", step, crowdveil.ledger_init(tmp_path / "empty"), k=k, repair=True)
    assert "repair" not in again.manifest["method"]["facts"], "nothing to repair"


def test_rows_with_intervals_are_repaired(trips: Path, tmp_path: Path) -> None:
    ledger = crowdveil.ledger_init(tmp_path / "ledger")
    released(trips, "first", "1d", ledger)
    adaptive = {"time_partition": "adaptive", "hour_weight": 0.02, "suppress": "20%"}
    with pytest.raises(GuaranteeViolatedError, match="leaves"):
        released(trips, "refused", "1h", ledger, **adaptive)
    result = released(trips, "second", "1h", ledger, repair=True, **adaptive)
    assert "until" in pq.read_schema(result.folder / "flows.parquet").names
    assert {entry["outcome"] for entry in result.manifest["guarantees"]} == {"holds"}
    zones = {"zones": trips.parent / "zones.csv"}
    assert crowdveil.ledger_check(ledger, result.folder, trips, **zones).passed


def test_a_repair_that_suppresses_too_much_publishes_nothing(trips: Path, tmp_path: Path) -> None:
    ledger = crowdveil.ledger_init(tmp_path / "ledger")
    released(trips, "first", "4h", ledger)
    with pytest.raises(GuaranteeViolatedError, match=r"repair= would leave \d+ % of the trips.*crowdveil derive"):
        released(trips, "second", "4h", ledger, k=8, repair=True)
    assert not (tmp_path / "second").exists()


def test_repair_is_for_an_audit(trips: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="name a ledger"):
        crowdveil.anonymize("joint", trips, tmp_path / "out", zones=tmp_path / "zones.csv", repair=True)
