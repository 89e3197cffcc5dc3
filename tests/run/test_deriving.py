"""Derived releases: sums of published rows, checked against their parent, and accepted by a ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crowdveil
from crowdveil.cli.main import cli
from crowdveil.errors import CrowdveilError, InputError, ParameterError
from crowdveil.model.zones import Zones


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    n = 4000
    table = pa.table(
        {
            "origin": [f"z{i}" for i in rng.integers(0, 4, n)],
            "destination": [f"z{i}" for i in rng.integers(0, 4, n)],
            "time": pa.array(rng.integers(0, 3 * 86400, n) * 1_000_000 + 1_600_000_000_000_000, pa.timestamp("us")),
            "user_id": rng.integers(0, 900, n),
        }
    )
    pq.write_table(table, tmp_path / "trips.parquet")
    return tmp_path / "trips.parquet"


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    path = tmp_path / "groups.csv"
    path.write_text("zone,group\nz0,north\nz1,north\nz2,south\nz3,south\n")
    return path


def hours(trips: Path, out: Path, **options: Any) -> Any:
    options = {"k": 3, "step": "6h", "tz": "Europe/Paris", "attack": False, "report": False} | options
    return crowdveil.anonymize(trips, out, method="suppression", **options)


def sums(table: pa.Table, keys: list[str]) -> dict[tuple[Any, ...], int]:
    rows = table.group_by(keys).aggregate([("volume", "sum")]).to_pylist()
    return {tuple(row[key] for key in keys): row["volume_sum"] for row in rows}


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_days_are_sums_of_hours(trips: Path, tmp_path: Path, table_format: str) -> None:
    hours(trips, tmp_path / "hours", format=table_format)
    result = crowdveil.derive(tmp_path / "hours", tmp_path / "days", step="1d")
    assert {entry["outcome"] for entry in result.manifest["guarantees"]} == {"holds"}
    assert "disjoint-flows" in [entry["name"] for entry in result.manifest["guarantees"]]
    assert result.manifest["parent"]["name"] == "hours"
    checked = {guarantee.name: finding for guarantee, finding in crowdveil.verify(tmp_path / "days")}
    assert all(finding.holds for finding in checked.values())
    if table_format == "parquet":
        parent, child = (pq.read_table(tmp_path / name / "flows.parquet") for name in ("hours", "days"))
        day = pa.array([str(t.date()) for t in parent["t"].to_pylist()])
        wanted = sums(parent.set_column(0, "t", day), ["t", "origin_area", "destination_area"])
        rows = child.to_pylist()
        found = {(str(r["t"].date()), r["origin_area"], r["destination_area"]): r["volume"] for r in rows}
        assert found == wanted and len(rows) > 10


def test_the_first_day_of_1970_is_a_day(trips: Path, tmp_path: Path) -> None:
    table = pq.read_table(trips)
    times = pa.array(table["time"].cast(pa.int64()).to_numpy() - 1_600_000_000_000_000)
    pq.write_table(table.set_column(2, "time", times.cast(pa.timestamp("us"))), trips)
    hours(trips, tmp_path / "hours", tz="UTC")
    result = crowdveil.derive(tmp_path / "hours", tmp_path / "days", step="1d", report=False)
    assert {entry["outcome"] for entry in result.manifest["guarantees"]} == {"holds"}
    days = {t.isoformat()[:10] for t in pq.read_table(tmp_path / "days" / "flows.parquet")["t"].to_pylist()}
    assert days == {"1970-01-01", "1970-01-02", "1970-01-03"}


def test_areas_are_added_up_to_zones(trips: Path, groups: Path, tmp_path: Path) -> None:
    hours(trips, tmp_path / "hours")
    parent = pq.read_table(tmp_path / "hours" / "flows.parquet")
    zones = crowdveil.derive(tmp_path / "hours", tmp_path / "zones", step="all", to_zones=groups)
    table = pq.read_table(tmp_path / "zones" / "flows.parquet")
    assert set(table["origin_area"].to_pylist()) == {"north", "south"}
    assert sum(table["volume"].to_pylist()) == sum(parent["volume"].to_pylist())
    assert {entry["outcome"] for entry in zones.manifest["guarantees"]} == {"holds"}
    assert all(finding.holds for _, finding in crowdveil.verify(zones.folder))


@pytest.mark.parametrize("forged", ["volume", "row"])
def test_verify_follows_the_lineage(trips: Path, tmp_path: Path, forged: str) -> None:
    hours(trips, tmp_path / "hours")
    crowdveil.derive(tmp_path / "hours", tmp_path / "days", step="1d", report=False)
    file, manifest = tmp_path / "days" / "flows.parquet", tmp_path / "days" / "manifest.json"
    table = pq.read_table(file)
    volume = table["volume"].to_numpy().copy()
    volume[3] += 1
    column = table.schema.get_field_index("volume")
    table = table.set_column(column, "volume", pa.array(volume)) if forged == "volume" else table.slice(1)
    pq.write_table(table, file)
    from crowdveil.io.written_release import file_hash

    content = json.loads(manifest.read_text())
    content["files"]["data"]["sha256"] = file_hash(file)
    manifest.write_text(json.dumps(content))
    found = {guarantee.name: finding for guarantee, finding in crowdveil.verify(tmp_path / "days")}
    assert found["sums-of-parent"].violated
    (tmp_path / "hours").rename(tmp_path / "elsewhere")
    found = {guarantee.name: finding for guarantee, finding in crowdveil.verify(tmp_path / "days")}
    assert found["sums-of-parent"].outcome.value == "not checked"
    del content["guarantees"][2]
    manifest.write_text(json.dumps(content))
    with pytest.raises(CrowdveilError, match="every derived release has"):
        crowdveil.verify(tmp_path / "days")


def test_a_ledger_accepts_what_is_derived(trips: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = crowdveil.ledger_init(tmp_path / "ledger")
    hours(trips, tmp_path / "hours", ledger=ledger)
    with pytest.raises(CrowdveilError, match="leaves"):
        hours(trips, tmp_path / "refused", step="1d", ledger=ledger)
    arguments = [
        "derive",
        str(tmp_path / "hours"),
        "--step",
        "1d",
        "-o",
        str(tmp_path / "days"),
        "--ledger",
        str(ledger),
    ]
    cli.main(arguments, standalone_mode=False)
    assert "ledger: passed at tier 0" in capsys.readouterr().out
    crowdveil.derive(tmp_path / "hours", tmp_path / "all", step="all")
    assert crowdveil.ledger_add(ledger, tmp_path / "all").entry == 3
    rows = crowdveil.ledger_list(ledger).to_arrow().to_pylist()
    assert [(row["derived_from"], row["tier"], row["passed"]) for row in rows] == [
        (None, 0, True),
        (1, 0, True),
        (1, 0, True),
    ]
    again = hours(trips, tmp_path / "again", ledger=ledger)
    assert again.manifest["ledger"]["entries_audited"] == 1, "what is derived gives nothing beyond its parent"


def test_what_cannot_be_derived(trips: Path, groups: Path, tmp_path: Path) -> None:
    hours(trips, tmp_path / "hours")
    with pytest.raises(ParameterError, match="nothing would change"):
        crowdveil.derive(tmp_path / "hours", tmp_path / "same")
    groups.write_text("zone,group\nz0,north\nz0,south\nz1,north\n")
    with pytest.raises(InputError, match="a zone is in more than one row"):
        crowdveil.derive(tmp_path / "hours", tmp_path / "out", to_zones=groups)
    groups.write_text("zone,group\nz0,north\n")
    ledger = crowdveil.ledger_init(tmp_path / "ledger")
    with pytest.raises(InputError, match="in the ledger, which lacks it"):
        crowdveil.derive(tmp_path / "hours", tmp_path / "out", step="1d", ledger=ledger)
    crowdveil.anonymize(
        trips,
        tmp_path / "noisy",
        method="laplace",
        zones=Zones.from_ids(["z0", "z1", "z2", "z3"]),
        epsilon=1,
        attack=False,
        report=False,
    )
    with pytest.raises(InputError, match="not k-anonymous"):
        crowdveil.derive(tmp_path / "noisy", tmp_path / "out", step="1d")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("step", ["1h", "10h"])
def test_steps_hold_whole_steps_of_the_parent(trips: Path, tmp_path: Path, step: str) -> None:
    """Shorter steps would have the volumes of longer ones."""
    hours(trips, tmp_path / "hours")
    with pytest.raises(ParameterError, match="time steps of 21,600 s"):
        crowdveil.derive(tmp_path / "hours", tmp_path / "shorter", step=step)
    assert not (tmp_path / "shorter").exists()
    crowdveil.derive(tmp_path / "hours", tmp_path / "days", step="1d")
    with pytest.raises(ParameterError, match="time steps of 86,400 s"):
        crowdveil.derive(tmp_path / "days", tmp_path / "shorter", step="12h")


@pytest.fixture
def zones(tmp_path: Path) -> Path:
    path = tmp_path / "zones.csv"
    path.write_text("id,lon,lat\n" + "".join(f"z{i},{2 + i / 100},{48 + i % 2 / 100}\n" for i in range(4)))
    return path


def test_rows_with_intervals_are_added_up(trips: Path, groups: Path, zones: Path, tmp_path: Path) -> None:
    """Rows that span several hours keep their interval, unless time steps hold them; the ledger accepts both."""
    ledger = crowdveil.ledger_init(tmp_path / "ledger")
    options = {"k": 8, "step": "1h", "tz": "Europe/Paris", "zones": zones, "attack": False, "report": False}
    adaptive = {"time_partition": "adaptive", "hour_weight": 0.05, "ledger": ledger}
    crowdveil.anonymize(trips, tmp_path / "parent", method="joint", **options, **adaptive)
    parent = pq.read_table(tmp_path / "parent" / "flows.parquet")
    assert "until" in parent.column_names
    with_zones = crowdveil.derive(tmp_path / "parent", tmp_path / "zones", to_zones=groups, ledger=ledger)
    days = crowdveil.derive(tmp_path / "parent", tmp_path / "days", step="1d", ledger=ledger)
    for derived in (with_zones, days):
        assert derived.manifest["ledger"]["tier"] == 0
        assert not any(finding.violated for _, finding in crowdveil.verify(derived.folder))
    child = pq.read_table(tmp_path / "zones" / "flows.parquet")
    area = {tile: group for group, tiles in (("north", "z0 z1"), ("south", "z2 z3")) for tile in tiles.split()}
    tiles = {
        f["properties"]["area"]: f["properties"]["tiles"]
        for f in json.loads((tmp_path / "parent" / "areas.geojson").read_text())["features"]
    }

    def group(name: str) -> str | None:
        found = {area[tile] for tile in tiles[name]}
        return found.pop() if len(found) == 1 else None

    wanted: dict[Any, int] = {}
    for row in parent.to_pylist():
        ends = group(row["origin_area"]), group(row["destination_area"])
        if None not in ends:
            key = row["t"], row["until"], *ends
            wanted[key] = wanted.get(key, 0) + row["volume"]
    rows = child.to_pylist()
    assert {(r["t"], r["until"], r["origin_area"], r["destination_area"]): r["volume"] for r in rows} == wanted
    per_day = pq.read_table(tmp_path / "days" / "flows.parquet")
    assert "until" not in per_day.column_names
    assert sum(per_day["volume"].to_pylist()) == sum(parent["volume"].to_pylist())


def test_a_derived_release_has_a_crosswalk(trips: Path, groups: Path, tmp_path: Path) -> None:
    hours(trips, tmp_path / "hours")
    crowdveil.derive(tmp_path / "hours", tmp_path / "zones", to_zones=groups)
    lines = (tmp_path / "zones" / "crosswalk.csv").read_text().splitlines()
    assert lines[0] == "tile,area,area_name,level" and "z0,north,north,1" in lines and len(lines) == 5
    assert not any(finding.violated for _, finding in crowdveil.verify(tmp_path / "zones"))
