"""Releases in the rows of an earlier one (`fixed` with `like`): what is left of a row is never a small group."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, InputError, ParameterError

K = 4


def _trips(path: Path, seed: int, *, days: int = 2, trips: int = 250, people: int | None = 60) -> Path:
    """Write random trips between six zones in a few hours of some days."""
    rng = np.random.default_rng(seed)
    hours = rng.integers(0, 5, trips) + 24 * rng.integers(0, days, trips)
    columns: dict[str, Any] = {
        "origin": rng.choice(list("abcdef"), trips, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]),
        "destination": rng.choice(list("abcdef"), trips, p=[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]),
        "time": pa.array((hours * 3600 + rng.integers(0, 3600, trips)) * 1_000_000, pa.timestamp("us")),
    }
    if people is not None:
        columns["user_id"] = rng.integers(0, people, trips)
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def zones(tmp_path: Path) -> Path:
    path = tmp_path / "zones.csv"
    path.write_text(
        "id,lon,lat\n" + "".join(f"{name},{2 + i / 100},{48 + i % 2 / 100}\n" for i, name in enumerate("abcdef"))
    )
    return path


def _release(method: str, data: Path, out: Path, zones: Path, **options: Any) -> Any:
    return crowdveil.anonymize(
        data, out, method=method, **{"k": K, "zones": zones, "tz": "UTC", "attack": False, "report": False} | options
    )


def _sets_left(data: Path, earlier: Path, later: Path) -> list[int]:
    """Subtract later rows from the earlier row that holds them, from the files alone; people from the trips."""
    trips = pq.read_table(data).to_pylist()
    for number, trip in enumerate(trips):
        trip["who"] = trip.get("user_id", number)

    def rows(folder: Path) -> list[tuple[Any, frozenset[str], frozenset[str], int]]:
        areas = {
            f["properties"]["area"]: frozenset(map(str, f["properties"]["tiles"]))
            for f in json.loads((folder / "areas.geojson").read_text())["features"]
        }
        table = pq.read_table(folder / "flows.parquet").to_pylist()
        length = 86400 if folder.name.startswith("day") else 3600
        found = []
        for row in table:
            start = row["t"].timestamp()
            end = row["until"].timestamp() if "until" in row else start + length
            found.append(((start, end), areas[row["origin_area"]], areas[row["destination_area"]], row["volume"]))
        return found

    def inside(trip: Any, row: Any) -> bool:
        at = trip["time"].replace(tzinfo=UTC).timestamp()
        return row[0][0] <= at < row[0][1] and trip["origin"] in row[1] and trip["destination"] in row[2]

    later_rows, left = rows(later), []
    for row in rows(earlier):
        held = [trip for trip in trips if inside(trip, row)]
        assert len(held) == row[3]
        parts = [
            r for r in later_rows if row[0][0] <= r[0][0] and r[0][1] <= row[0][1] and r[1] == row[1] and r[2] == row[2]
        ]
        rest = {trip["who"] for trip in held if not any(inside(trip, part) for part in parts)}
        if parts:
            left.append(len(rest))
    return left


@pytest.mark.parametrize("people", [60, None])
def test_shorter_steps_leave_no_small_rest(zones: Path, tmp_path: Path, people: int | None) -> None:
    refused = 0
    for seed in range(2):
        data = _trips(tmp_path / f"{seed}.parquet", seed, people=people)
        ledger, days = crowdveil.ledger_init(tmp_path / f"ledger{seed}"), tmp_path / f"day{seed}"
        _release("joint", data, days, zones, step="1d", ledger=ledger)
        like = _release("fixed", data, tmp_path / f"hours{seed}", zones, step="1h", like=days, ledger=ledger)
        assert like.manifest["ledger"]["tier"] <= 2 and like.manifest["ledger"]["entries_audited"] == 1
        assert len(like.release) > 0
        left = _sets_left(data, days, tmp_path / f"hours{seed}")
        assert left and all(rest == 0 or rest >= K for rest in left)
        plain = _release("suppression", data, tmp_path / f"plain{seed}", zones, step="1h")
        refused += not crowdveil.ledger_check(ledger, plain.folder, data, zones=zones).passed
    assert refused, "without like an adversary could subtract"


def test_another_k_is_accepted_at_tier_0(zones: Path, tmp_path: Path) -> None:
    data, ledger = _trips(tmp_path / "t.parquet", 7), crowdveil.ledger_init(tmp_path / "ledger")
    _release("joint", data, tmp_path / "hours", zones, step="1h", ledger=ledger)
    for k in (K + 3, K - 1):
        again = _release(
            "fixed", data, tmp_path / f"k{k}", zones, step="1h", like=tmp_path / "hours", ledger=ledger, k=k
        )
        assert again.manifest["ledger"]["tier"] == 0 and len(again.release) > 0
        assert set(map(tuple, _boxes(again.folder))) <= set(map(tuple, _boxes(tmp_path / "hours")))
    with pytest.raises(GuaranteeViolatedError):
        _release("joint", data, tmp_path / "other", zones, step="1h", ledger=ledger, k=K + 3)


def _boxes(folder: Path) -> list[list[Any]]:
    rows = pq.read_table(folder / "flows.parquet").to_pylist()
    return [[row["t"], row["origin_area"], row["destination_area"], row["volume"]] for row in rows]


def test_rows_with_intervals_are_taken(zones: Path, tmp_path: Path) -> None:
    data, ledger = _trips(tmp_path / "t.parquet", 5), crowdveil.ledger_init(tmp_path / "ledger")
    _release(
        "joint",
        data,
        tmp_path / "adaptive",
        zones,
        step="1h",
        time_partition="adaptive",
        hour_weight=0.05,
        ledger=ledger,
    )
    assert "until" in pq.read_schema(tmp_path / "adaptive" / "flows.parquet").names
    like = _release("fixed", data, tmp_path / "hours", zones, step="1h", like=tmp_path / "adaptive", ledger=ledger)
    assert like.manifest["ledger"]["entries_audited"] == 1 and len(like.release) > 0
    assert all(rest == 0 or rest >= K for rest in _sets_left(data, tmp_path / "adaptive", tmp_path / "hours"))


def test_what_cannot_be_like_is_refused(zones: Path, tmp_path: Path) -> None:
    data = _trips(tmp_path / "t.parquet", 1)
    _release("joint", data, tmp_path / "hours", zones, step="1h")
    for options, words in (
        ({"step": "1d", "like": tmp_path / "hours"}, "crowdveil derive"),
        ({"step": "2h", "like": tmp_path / "hours"}, "crowdveil derive"),
        ({"like": zones}, "wanted the folder"),
        ({"like": tmp_path / "hours", "partition": tmp_path / "hours"}, "leave out partition"),
        ({"like": tmp_path / "hours", "aggregate_small": True}, "Leave it out"),
    ):
        with pytest.raises((ParameterError, InputError), match=words):
            _release("fixed", data, tmp_path / "out", zones, **options)
        assert not (tmp_path / "out").exists()
