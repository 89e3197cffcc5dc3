"""The first page of a report: what a person needs who signs, and nothing that the release does not have."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import crowdveil
from crowdveil.io.written_release import file_hash
from crowdveil.report import first_page
from crowdveil.report.attack_table import attack_rows, percent
from crowdveil.report.html import public_report
from crowdveil.report.loss_summary import losses
from crowdveil.run.releases import open_release
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import write_trajectories
from crowdveil.synth.trips import write_trips


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases of flows, of noise and of trajectories of a small town."""
    folder = tmp_path_factory.mktemp("made")
    town = City.make(1, 25, 300)
    crowdveil.write_zones(town.zones, folder / "zones.geojson")
    write_trips(town, folder / "trips.parquet", 4000, 1, seed=1)
    write_trajectories(town, folder / "tracks.parquet", 60, 1, seed=1)
    zones = folder / "zones.geojson"
    crowdveil.anonymize(
        folder / "trips.parquet", folder / "flows", method="joint", zones=zones, k=5, step="6h", title="Trips in Nowhere <b>",
        purpose="teaching", recipient="students",
    )  # fmt: skip
    crowdveil.anonymize(folder / "trips.parquet", folder / "noise", method="laplace", zones=zones, step="1d", seed=7)
    crowdveil.anonymize(folder / "tracks.parquet", folder / "groups", method="microaggregation", k=3)
    return folder


def _sheet(page: Path) -> str:
    """Return the text of the first page."""
    text = page.read_text(encoding="utf-8")
    return unescape(re.sub(r"<[^>]+>", " ", text[text.index('<header id="summary">') : text.index("</header>")]))


def test_it_has_all_that_is_needed_for_a_decision(made: Path) -> None:
    sheet = _sheet(made / "flows" / "report.html")
    manifest = json.loads((made / "flows" / "manifest.json").read_text())
    for heading in ("What data", "What was done", "Adversary", "What is guaranteed", "What was lost", "Residual risk",
                    "What is not covered", "Decision", "Released by", "Date"):  # fmt: skip
        assert heading in sheet
    assert "Trips in Nowhere <b>" in sheet and "teaching" in sheet and "students" in sheet
    assert all(entry["statement"] in sheet and entry["outcome"] in sheet for entry in manifest["guarantees"])
    assert file_hash(made / "flows" / "manifest.json") in sheet and "at least 5 people" in sheet
    assert manifest["decision"] == {"title": "Trips in Nowhere <b>", "purpose": "teaching", "recipient": "students"}
    assert "<title>Trips in Nowhere &lt;b&gt;: report" in (made / "flows" / "report.html").read_text()


def test_the_title_is_that_of_the_data_and_never_its_file(made: Path) -> None:
    for release, title in (("groups", "60 trajectories"), ("noise", "Trips between 25 zones")):
        text = (made / release / "report.html").read_text()
        assert re.search(r"<h1>([^<]+)</h1>", text)[1].startswith(title)  # type: ignore[index]
        assert "tracks" not in _sheet(made / release / "report.html").replace("swapmob", "")


def test_no_file_of_a_release_names_the_source(made: Path) -> None:
    source = file_hash(made / "trips.parquet")
    for file in (made / "flows").iterdir():
        assert source.encode() not in file.read_bytes(), "a hash would confirm a guess of the data"


def test_the_losses_are_what_the_files_say(made: Path) -> None:
    manifest, written = open_release(made / "flows")
    size = {f["properties"]["area"]: len(f["properties"]["tiles"]) for f in written.features}
    rows = written.data.to_pylist()
    trips = sum(row["volume"] for row in rows)
    ends = sum(row["volume"] * (size[row["origin_area"]] + size[row["destination_area"]]) for row in rows)
    exact = sum(r["volume"] for r in rows if size[r["origin_area"]] == size[r["destination_area"]] == 1)
    shares = [loss.value for loss in losses(written, manifest)]
    assert shares[0] == f"{manifest.cost['suppressed_volume_percent']} %"
    assert shares[1] == f"{ends / 2 / trips:,.1f} zones" and shares[2] == f"{100 * exact / trips:.0f} %"


def test_it_says_how_time_was_cut(made: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"zones": made / "zones.geojson", "step": "1h", "k": 5, "attack": False}
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "adaptive": ("joint", {"time_partition": "adaptive", "hour_weight": 1}),
        "stable": ("joint", {"time_partition": "stable"}),
        "fixed": ("fixed", {"partition": tmp_path / "stable"}),
    }
    said = {}
    for name, (method, options) in ways.items():
        crowdveil.anonymize(made / "trips.parquet", tmp_path / name, method=method, **given, **options)
        said[name] = _sheet(tmp_path / name / "report.html")
    _, written = open_release(tmp_path / "adaptive")
    rows = written.data.to_pylist()
    hours = sum(r["volume"] * (r["until"] - r["t"]).total_seconds() / 3600 for r in rows) / sum(
        r["volume"] for r in rows
    )
    assert f"an interval of {hours:,.1f} hours" in said["adaptive"] and hours > 1
    assert "in several time steps together" in said["adaptive"]
    assert "Areas are the same in all time steps." in said["stable"] and "known as an interval" not in said["stable"]
    assert "merged into given areas, which were not made from these data" in said["fixed"]


def test_noise_has_no_exact_figure(made: Path) -> None:
    """Neither the number of people nor a risk in the original, which are exact, may be next to noise."""
    manifest, _ = open_release(made / "noise")
    assert manifest.input.data.people_about is None and manifest.risk
    assert all(trial.risk_percent_before is None for trial in manifest.risk)
    assert "random noise" in _sheet(made / "noise" / "report.html")


def test_chance_is_that_of_the_busiest_destination(made: Path) -> None:
    manifest, written = open_release(made / "flows")
    rows = {row.name: row for row in attack_rows(written, manifest)}
    most: dict[str, dict[str, int]] = {}
    for row in written.data.to_pylist():
        of_step = most.setdefault(str(row["t"]), {})
        of_step[row["destination_area"]] = of_step.get(row["destination_area"], 0) + row["volume"]
    trips = sum(sum(of_step.values()) for of_step in most.values())
    share = 100 * sum(max(of_step.values()) for of_step in most.values()) / trips
    assert rows["homogeneity-area"].chance == f"{share:.0f} %"
    assert rows["minimum-group-size"].reading.startswith("No published flow has fewer than 5 people")
    assert all(row.reading and row.knows for row in rows.values())
    trajectories = attack_rows(*reversed(open_release(made / "groups")))
    assert {row.chance for row in trajectories} == {f"{100 / 60:.0f} %", "–"}
    assert any("at most 1 in 3" in row.reading for row in trajectories)


def test_the_risk_in_the_original_is_counted_again(made: Path) -> None:
    """And given only where a percent is k trips or more."""
    manifest, _ = open_release(made / "flows")
    trial = next(t for t in manifest.risk or () if t.attack == "homogeneity-tile")
    flows = crowdveil.read_flows(made / "trips.parquet", zones=made / "zones.geojson", step="6h")
    ends: dict[tuple[int, int], set[int]] = {}
    for step, origin, destination in zip(flows.step, flows.origin, flows.destination, strict=True):
        ends.setdefault((int(step), int(origin)), set()).add(int(destination))
    known = sum(
        int(v) for s, o, v in zip(flows.step, flows.origin, flows.volume, strict=True) if len(ends[int(s), int(o)]) == 1
    )
    assert trial.risk_percent_before == round(100 * known / flows.total)
    few = pa.table({"origin": ["a"] * 20, "destination": ["b"] * 20})
    risk = crowdveil.anonymize(few, None, method="suppression", k=5).manifest["risk"]
    assert all(t["risk_percent_before"] is None for t in risk), "of 20 trips a percent is less than one trip"


def test_one_function_has_the_statement_on_other_releases(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, written = open_release(made / "flows")
    monkeypatch.setattr(first_page, "repeated_releases", lambda manifest: "Compared with 3 releases.")
    assert first_page.not_covered(manifest)[0] == "Compared with 3 releases."
    assert first_page.risks(manifest, []) == ["No attack applies to this release."]
    assert "<li>Compared with 3 releases.</li>" in public_report(written, manifest)


def test_a_release_of_a_ledger_does_not_say_that_it_was_compared_with_none(made: Path, tmp_path: Path) -> None:
    crowdveil.ledger_init(tmp_path / "ledger")
    where = {"zones": made / "zones.geojson", "step": "6h", "ledger": tmp_path / "ledger"}
    crowdveil.anonymize(made / "trips.parquet", tmp_path / "out", method="joint", k=5, **where)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "was not compared with any other one" not in page
    assert "Other releases of the same data outside its ledger" in page and "It is entry 1 of the ledger" in page
    assert "was not compared with any other one" in (made / "flows" / "report.html").read_text()


def test_percents_next_to_none_and_all_are_not_shown_as_these() -> None:
    assert [percent(value) for value in (0, 0.01, 0.5, 0.51)] == ["0 %", "below 1 %", "below 1 %", "1 %"]
    assert [percent(value) for value in (99.49, 99.5, 99.99, 100)] == ["99 %", "above 99 %", "above 99 %", "100 %"]


def test_the_same_people_in_another_order_give_the_same_page(made: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(made / "tracks.parquet")
    other = table.take(pa.array(np.random.default_rng(3).permutation(len(table))))
    crowdveil.anonymize(other, tmp_path / "out", method="microaggregation", k=3)
    pages = []
    for folder in (tmp_path / "out", made / "groups"):
        text = (folder / "report.html").read_text(encoding="utf-8")
        pages.append(text.replace(file_hash(folder / "manifest.json"), ""))
    assert pages[0] == pages[1]
