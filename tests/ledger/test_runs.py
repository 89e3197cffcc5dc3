"""Runs with a ledger: what is refused, what is published, and what an adversary with two releases gets."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from serving import cabs

import crowdveil
from crowdveil.cli.main import cli
from crowdveil.errors import GuaranteeViolatedError, InputError, ParameterError
from crowdveil.io.manifest import FileEntry
from crowdveil.io.written_release import file_hash
from crowdveil.ledger.audit import Derivation
from crowdveil.ledger.entries import Period, entries
from crowdveil.ledger.examination import distinct
from crowdveil.ledger.store import Ledger
from crowdveil.ledger.wording import entry_lines
from crowdveil.model.zones import Zones
from crowdveil.run.pipeline import Request, run

ZONES = Zones.from_ids(["n", "s"])


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return crowdveil.ledger_init(tmp_path / "ledger")


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """Twenty people travel in the first hour, three of others in the second; k = 10 suppresses the second hour."""
    path = tmp_path / "trips.parquet"
    seconds = [*range(20), *(3600 + i for i in range(3)), *range(100, 115)]
    table = pa.table(
        {
            "origin": ["n"] * 23 + ["s"] * 15,
            "destination": ["s"] * 23 + ["n"] * 15,
            "time": pa.array(np.array(seconds) * 1_000_000, pa.timestamp("us")),
            "user_id": range(38),
        }
    )
    pq.write_table(table, path)
    return path


def release(trips: Path, out: Path, step: str, **more: Any) -> Any:
    return crowdveil.anonymize(
        trips, out, method="suppression", k=10, step=step, tz="UTC", attack=False, report=False, **more
    )


def smallest_difference(*folders: Path) -> int | None:
    """Subtract flows of two published folders: per pair of areas, the day minus its published hours."""
    totals = []
    for folder in folders:
        if not folder.exists():
            return None
        flows = pq.read_table(folder / "flows.parquet").group_by(["origin_area", "destination_area"])
        rows = flows.aggregate([("volume", "sum")]).to_pylist()
        totals.append({(r["origin_area"], r["destination_area"]): r["volume_sum"] for r in rows})
    found = [abs(totals[0][pair] - totals[1][pair]) for pair in totals[0].keys() & totals[1].keys()]
    return min([size for size in found if size], default=None)


@pytest.mark.parametrize("folded_first", [False, True])
@pytest.mark.parametrize("later", [3, 12])
def test_folded_releases_are_audited_against_others(
    ledger: Path, tmp_path: Path, later: int, folded_first: bool
) -> None:
    """Twenty people on a Monday at eight, and others a week later: too few of them follow from both releases."""
    seconds = [4 * 86400 + 8 * 3600 + (7 * 86400 if i >= 20 else 0) + i for i in range(20 + later)]
    table = pa.table(
        {
            "origin": ["n"] * len(seconds),
            "destination": ["s"] * len(seconds),
            "time": pa.array(np.array(seconds) * 1_000_000, pa.timestamp("us")),
            "user_id": range(len(seconds)),
        }
    )
    pq.write_table(table, tmp_path / "weeks.parquet")
    runs: list[tuple[str, dict[str, Any]]] = [("hours", {}), ("folded", {"fold": "1w"})]
    (first, options), (second, others) = runs[::-1] if folded_first else runs
    release(tmp_path / "weeks.parquet", tmp_path / first, "1h", ledger=ledger, **options)
    if later < 10:
        with pytest.raises(GuaranteeViolatedError, match=f"leaves {later} people") as refused:
            release(tmp_path / "weeks.parquet", tmp_path / second, "1h", ledger=ledger, **others)
        assert "corrected" not in str(refused.value) and not (tmp_path / second).exists()
    else:
        release(tmp_path / "weeks.parquet", tmp_path / second, "1h", ledger=ledger, **others)
        with pytest.raises(InputError, match="same folding of time"):
            crowdveil.attack("releases", tmp_path / first, tmp_path / second)
        assert crowdveil.ledger_check(ledger, tmp_path / "folded", tmp_path / "weeks.parquet").passed
    period = entries(Ledger(ledger))[0].period
    assert period is not None and period.common(Period(11 * 86400, 12 * 86400, instants=False))


@pytest.mark.parametrize("with_ledger", [False, True])
def test_an_adversary_subtracts_two_releases_unless_a_ledger_is_used(
    trips: Path, ledger: Path, tmp_path: Path, with_ledger: bool
) -> None:
    options = {"ledger": ledger} if with_ledger else {}
    release(trips, tmp_path / "hours", "1h", **options)
    if with_ledger:
        with pytest.raises(GuaranteeViolatedError) as refused:
            release(trips, tmp_path / "day", "1d", **options)
        assert refused.value.exit_code == 1
        for word in ("day", "entry 1 (hours)", "volume 23", "volume 20", "leaves 3 people", "fewer than 10"):
            assert word in str(refused.value), word
    else:
        release(trips, tmp_path / "day", "1d", **options)
    assert smallest_difference(tmp_path / "hours", tmp_path / "day") == (None if with_ledger else 3)


def test_a_refused_run_leaves_nothing(trips: Path, ledger: Path, tmp_path: Path) -> None:
    release(trips, tmp_path / "hours", "1h", ledger=ledger)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(GuaranteeViolatedError):
        release(trips, tmp_path / "day", "1d", ledger=ledger)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert [(entry.name, entry.state) for entry in entries(Ledger(ledger))] == [("hours", "published")]
    said = "\n".join(crowdveil.ledger_explain(ledger))
    assert "day: refused" in said and "leaves 3 people" in said
    assert "audited against entry 1\n" in said and "1 derivation, the smallest sets first:" in said
    assert crowdveil.ledger_verify(ledger)[0].startswith("3 lines, 1 entry")


def test_a_set_is_explained_once_although_several_overlaps_lie_in_it() -> None:
    one = Derivation("day", np.array([1, 2]), "hours", np.array([3]), 4, 10)
    same, other = one._replace(added=np.array([1, 2])), one._replace(subtracted=np.array([4]))
    assert distinct([one, same, other]) == [one, other]


def test_a_release_that_gives_nothing_new_passes(trips: Path, ledger: Path, tmp_path: Path) -> None:
    first = release(trips, tmp_path / "hours", "1h", ledger=ledger)
    again = release(trips, tmp_path / "again", "1h", ledger=ledger)
    assert first.manifest["ledger"] == {"entry": 1, "entries_audited": 0, "tier": 0, "k": 10, "k_unit": "people"}
    assert again.manifest["ledger"] == {"entry": 2, "entries_audited": 1, "tier": 0, "k": 10, "k_unit": "people"}
    assert json.loads((tmp_path / "again" / "manifest.json").read_text()) == again.manifest
    assert not any(finding.violated for _, finding in crowdveil.verify(tmp_path / "again"))
    assert any("passed at tier 0" in line for line in again.lines())


def test_inputs_that_overlap_are_audited(trips: Path, ledger: Path, tmp_path: Path) -> None:
    table = pq.read_table(trips)
    pq.write_table(table.slice(0, 22), tmp_path / "part.parquet")  # another export, which lacks one trip
    release(tmp_path / "part.parquet", tmp_path / "part", "1d", ledger=ledger)
    with pytest.raises(GuaranteeViolatedError, match="leaves 1 person"):
        release(trips, tmp_path / "whole", "1d", ledger=ledger)
    pq.write_table(table.slice(23), tmp_path / "rest.parquet")
    with pytest.raises(InputError, match="of the same period, got an input without most of them"):
        release(tmp_path / "rest.parquet", tmp_path / "rest", "1d", ledger=ledger)
    rest = release(tmp_path / "rest.parquet", tmp_path / "rest", "1d", ledger=ledger, independent=True)
    assert rest.manifest["ledger"]["entries_audited"] == 0, "no trip in common"
    assert rest.manifest["ledger"]["independent"] and entries(Ledger(ledger))[-1].independent
    assert "without a match in earlier entries are other trips" in "\n".join(crowdveil.ledger_explain(ledger, 2))


def test_zonings_are_compared_by_the_points_of_the_data(ledger: Path, tmp_path: Path) -> None:
    """Districts and a shifted grid cut each other: the trips decide what is in an overlap, not the polygons."""
    rng = np.random.default_rng(2)
    n = 300
    x, y = rng.uniform(2, 2.04, n), rng.uniform(48, 48.02, n)
    columns = {
        "origin_lon": x,
        "origin_lat": y,
        "destination_lon": np.full(n, 2.005),
        "destination_lat": np.full(n, 48.005),
    }
    pq.write_table(pa.table(columns | {"user_id": np.arange(n)}), tmp_path / "points.parquet")

    def zones(name: str, edges: list[float]) -> Path:
        features = [
            {
                "type": "Feature", "properties": {"id": f"{name}{i}"},
                "geometry": {"type": "Polygon", "coordinates": [[[a, 48], [b, 48], [b, 48.02], [a, 48.02], [a, 48]]]},
            }
            for i, (a, b) in enumerate(pairwise(edges))
        ]  # fmt: skip
        path = tmp_path / f"{name}.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        return path

    # The strip between the two borders holds the set that both releases give away.
    strips = {0.0206: 0, 0.03: 0}
    for place in strips:
        strips[place] = int(((x >= 2.02) & (x < 2 + place)).sum())
    assert 0 < strips[0.0206] < 10 <= strips[0.03]
    options = {"zone_id": "id", "k": 10, "attack": False, "report": False, "ledger": ledger}
    data = tmp_path / "points.parquet"
    crowdveil.anonymize(
        data, tmp_path / "one", method="suppression", zones=zones("district", [2, 2.02, 2.04]), **options
    )
    with pytest.raises(GuaranteeViolatedError, match=f"leaves {strips[0.0206]} "):
        crowdveil.anonymize(
            data, tmp_path / "near", method="suppression", zones=zones("near", [2, 2.0206, 2.04]), **options
        )
    far = crowdveil.anonymize(
        data, tmp_path / "far", method="suppression", zones=zones("far", [2, 2.03, 2.04]), **options
    )
    assert far.manifest["ledger"]["entries_audited"] == 1 and far.manifest["ledger"]["tier"] in (1, 2)


def test_a_correction_that_removes_few_people_is_refused(trips: Path, ledger: Path, tmp_path: Path) -> None:
    release(trips, tmp_path / "first", "1d", ledger=ledger)
    table = pq.read_table(trips)
    pq.write_table(table.slice(2), tmp_path / "erased.parquet")
    with pytest.raises(GuaranteeViolatedError, match="leaves 2 people"):
        release(tmp_path / "erased.parquet", tmp_path / "second", "1d", ledger=ledger)


def test_retired_and_withdrawn_entries_are_not_audited(
    trips: Path, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(trips, tmp_path / "hours", "1h", ledger=ledger)
    crowdveil.ledger_retire(ledger, 1, "never sent")
    with monkeypatch.context() as broken:
        broken.setattr("crowdveil.io.atomic._move", _fail)
        with pytest.raises(crowdveil.CrowdveilError):
            release(trips, tmp_path / "lost", "1h", ledger=ledger)
    release(trips, tmp_path / "day", "1d", ledger=ledger)
    states = [(row["entry"], row["state"]) for row in crowdveil.ledger_list(ledger).to_arrow().to_pylist()]
    assert states == [(1, "retired"), (2, "withdrawn"), (3, "published")]
    with pytest.raises(InputError, match="already retired"):
        crowdveil.ledger_retire(ledger, 1, "again")


def _fail(*_: Any) -> None:
    raise OSError("no rename")


def test_written_releases_are_checked_and_added(trips: Path, ledger: Path, tmp_path: Path) -> None:
    release(trips, tmp_path / "hours", "1h")
    release(trips, tmp_path / "day", "1d")
    added = crowdveil.ledger_add(ledger, tmp_path / "hours", trips)
    assert added.passed and added.entry == 1
    checked = crowdveil.ledger_check(ledger, tmp_path / "day", trips)
    assert not checked.passed and any("leaves 3 people" in line for line in checked.lines)
    with pytest.raises(GuaranteeViolatedError):
        crowdveil.ledger_add(ledger, tmp_path / "day", trips)
    assert crowdveil.ledger_add(ledger, tmp_path / "day", trips, published=True).entry == 2
    other = pq.read_table(trips).slice(1)
    with pytest.raises(InputError, match="made from other data"):
        crowdveil.ledger_add(ledger, tmp_path / "hours", other)


def test_a_changed_file_of_the_ledger_is_seen(trips: Path, ledger: Path, tmp_path: Path) -> None:
    release(trips, tmp_path / "hours", "1h", ledger=ledger)
    path = ledger / "entries" / "1" / "records.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    with pytest.raises(InputError, match="was changed"):
        crowdveil.ledger_verify(ledger)
    with pytest.raises(InputError, match="was changed"):
        release(trips, tmp_path / "day", "1d", ledger=ledger)


def test_two_runs_at_once_cannot_both_pass(trips: Path, ledger: Path, tmp_path: Path) -> None:
    steps = {"hours": "1h", "day": "1d"}

    def attempt(name: str) -> str:
        options = {"ledger": ledger, "attack": False, "report": False}
        try:
            run(Request("suppression", trips, tmp_path / name, {"k": 10}, {"step": steps[name]}, options))
        except GuaranteeViolatedError:
            return "refused"
        return "published"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(attempt, steps)) == ["published", "refused"]
    assert sum((tmp_path / name).exists() for name in steps) == 1
    assert len(entries(Ledger(ledger))) == 1


def test_what_cannot_be_audited_is_refused(trips: Path, ledger: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="overlap"):
        crowdveil.anonymize(trips, tmp_path / "glove", method="glove", ledger=ledger)
    with pytest.raises(InputError, match="adds noise"):
        crowdveil.anonymize(
            trips, tmp_path / "noisy", method="laplace", zones=ZONES, ledger=ledger, keep_unchanged=True
        )
    with pytest.raises(ParameterError, match="publishes trajectories"):
        crowdveil.anonymize(trips, tmp_path / "t", method="simple-generalization", ledger=ledger)
    release(trips, tmp_path / "old", "1h")
    inside = crowdveil.ledger_init(tmp_path / "old" / "ledger")
    with pytest.raises(InputError, match="must not be in the release"):
        release(trips, tmp_path / "old", "1h", ledger=inside, overwrite=True)
    with pytest.raises(InputError, match="there is no folder"):
        release(trips, tmp_path / "out", "1h", ledger=tmp_path / "none")


def test_epsilon_adds_up_over_releases(trips: Path, ledger: Path, tmp_path: Path) -> None:
    """Releases with noise are not subtracted from others; what they lose adds up, in the manifest, the report and the ledger."""
    sums = []
    for name, epsilon in (("first", 0.5), ("second", 1.25)):
        out = tmp_path / name
        crowdveil.anonymize(trips, out, method="laplace", zones=ZONES, ledger=ledger, epsilon=epsilon, step="all")
        sums.append(json.loads((out / "manifest.json").read_text())["ledger"]["epsilon_of_all_releases"])
        assert f"ε adds up to {sums[-1]:g}" in (out / "report.html").read_text()
    assert sums == [0.5, 1.75]
    release(trips, tmp_path / "exact", "all", ledger=ledger)
    audited = json.loads((tmp_path / "exact" / "manifest.json").read_text())["ledger"]
    assert audited["entries_audited"] == 0 and audited.get("epsilon_of_all_releases") is None
    crowdveil.anonymize(trips, tmp_path / "third", method="laplace", zones=ZONES, epsilon=2, step="all")
    assert "adds up to 3.75" in crowdveil.ledger_add(ledger, tmp_path / "third", trips, zones=ZONES).lines[0]
    crowdveil.ledger_retire(ledger, 1, "never sent")
    lines = entry_lines(Ledger(ledger))
    assert "epsilon = 0.5" in lines[0] and lines[-1].startswith("epsilon adds up to 3.25")
    with pytest.raises(GuaranteeViolatedError):  # the exact release is still audited
        release(trips, tmp_path / "other", "1h", ledger=ledger)


def test_the_commands(trips: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = str(tmp_path / "l"), str(tmp_path / "hours")
    for arguments, said in (
        (["ledger", "init", folder], "confidential"),
        (["ledger", "list", folder], "no entries"),
        (["anonymize", "suppression", str(trips), "--step", "1h", "-o", out, "--ledger", folder], "ledger: no earlier"),
        (["ledger", "check", folder, out, "--original", str(trips)], "passed at tier 0"),
        (["ledger", "add", folder, out, "--original", str(trips)], "entry 2"),
        (["ledger", "list", folder], "audited against 1, tier 0"),
        (["ledger", "explain", folder, "2"], "tier 0"),
        (["ledger", "verify", folder], "none changed or removed"),
        (["ledger", "retire", folder, "2", "--reason", "a second copy"], "retired"),
    ):
        cli.main(arguments, standalone_mode=False)
        assert said in capsys.readouterr().out, arguments
    with pytest.raises(InputError, match="none was refused"):
        cli.main(["ledger", "explain", folder], standalone_mode=False)


def test_the_report_states_the_audit(trips: Path, ledger: Path, tmp_path: Path) -> None:
    alone = crowdveil.anonymize(trips, method="suppression", k=10, attack=False).report().html
    assert "Not covered: repeated releases" in alone
    release(trips, tmp_path / "one", "1h", ledger=ledger)
    audited = release(trips, tmp_path / "two", "1h", ledger=ledger).report().html
    assert "audited against 1 earlier release (tier 0)" in audited and "Not covered" not in audited


def test_heat_maps_are_audited(ledger: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 400
    points = pa.table(
        {
            "lat": 48 + rng.normal(0, 0.01, n), "lon": 2 + rng.normal(0, 0.01, n), "timestamp": np.arange(n) * 60,
            "trajectory_id": np.arange(n) % 40, "user_id": np.arange(n) % 40,
        }
    )  # fmt: skip
    crowdveil.quadtree_heatmap(points, tmp_path / "fine", min_k=5, ledger=ledger)
    crowdveil.quadtree_heatmap(points, tmp_path / "coarse", min_k=8)
    assert json.loads((tmp_path / "fine" / "manifest.json").read_text())["ledger"]["entry"] == 1
    assert crowdveil.ledger_add(ledger, tmp_path / "fine", points).entry == 2
    with pytest.raises(GuaranteeViolatedError, match=r"Use the earlier map"):
        crowdveil.quadtree_heatmap(points, tmp_path / "refused", min_k=8, ledger=ledger)
    assert not (tmp_path / "refused").exists()
    assert [entry.state for entry in entries(Ledger(ledger))] == ["published", "published"]
    with pytest.raises(GuaranteeViolatedError, match="Expected a single heat map of the data"):
        crowdveil.ledger_check(ledger, tmp_path / "coarse", points)
    later = points.set_column(2, "timestamp", pa.array(np.arange(n) * 60 + 86400))
    crowdveil.quadtree_heatmap(later, tmp_path / "later", min_k=8, ledger=ledger)
    assert pq.read_metadata(ledger / "entries" / "1" / "records.parquet").num_rows == 0


def test_a_run_file_of_a_heat_map_names_a_ledger(ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "cabs.csv").write_text(cabs(people=40, points=8))
    run_file = tmp_path / "map.toml"
    where = f'input = "{tmp_path / "cabs.csv"}"\noutput = "{tmp_path / "map"}"\nledger = "{ledger}"\n'
    run_file.write_text(f'method = "quadtree-heatmap"\n{where}[parameters]\nmin_k = 5\n')
    cli.main(["analyze", "-f", str(run_file)], standalone_mode=False)
    assert [(entry.name, entry.kind) for entry in entries(Ledger(ledger))] == [("map", "locations")]


def test_a_release_in_part_files_is_added(trips: Path, ledger: Path, tmp_path: Path) -> None:
    """A cluster writes a table as a folder of part files; such a release is added afterwards."""
    made = release(trips, tmp_path / "hours", "1h")
    table = pq.read_table(made.folder / "flows.parquet")
    (made.folder / "flows.parquet").unlink()
    (made.folder / "flows").mkdir()
    parts = {}
    for i in range(len(table)):
        name = f"part-{i:05}.parquet"
        pq.write_table(table.slice(i, 1), made.folder / "flows" / name)
        parts[name] = file_hash(made.folder / "flows" / name)
    manifest = json.loads((made.folder / "manifest.json").read_text())
    manifest["files"]["data"] = FileEntry.of_parts("flows", parts).plain()
    (made.folder / "manifest.json").write_text(json.dumps(manifest))
    assert crowdveil.ledger_add(ledger, made.folder, trips).entry == 1
    assert (ledger / "entries" / "1" / "flows" / "part-00000.parquet").stat().st_mode & 0o077 == 0
    assert crowdveil.ledger_verify(ledger)
    with pytest.raises(GuaranteeViolatedError, match="leaves 3 people"):
        release(trips, tmp_path / "day", "1d", ledger=ledger)
