"""Three outcomes wherever a release is shown, and one definition of homogeneity."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from manifests import manifest_of
from small_worlds import flow_release
from written_flows import written

import crowdveil
from crowdveil.attacks.base import FlowAttackParams
from crowdveil.attacks.od import differencing, homogeneity
from crowdveil.attacks.od.homogeneity import KnownEnds
from crowdveil.attacks.od.published import Published
from crowdveil.errors import InputError
from crowdveil.guarantees import GUARANTEES
from crowdveil.io.written_release import WrittenRelease
from crowdveil.report.html import public_report
from crowdveil.report.questions import answers
from crowdveil.run.releases import open_release

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few flows, published with k and with noise."""
    folder = tmp_path_factory.mktemp("shown")
    rows = [
        "origin,destination,volume",
        *(f"{o},{d},{n}" for o, d, n in (("a", "b", 50), ("b", "c", 30), ("c", "a", 40), ("b", "b", 20))),
    ]
    (folder / "flows.csv").write_text("\n".join(rows) + "\n")
    (folder / "zones.csv").write_text("zone_id,lon,lat\na,2.0,48.0\nb,2.1,48.0\nc,2.2,48.1\n")
    for method, options in (("suppression", {"k": 10}), ("laplace", {})):
        crowdveil.anonymize(folder / "flows.csv", folder / method, method=method, zones=folder / "zones.csv", **options)
    return folder


def _outcomes(folder: Path) -> dict[str, str]:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == 6 and not any("holds" in guarantee for guarantee in manifest["guarantees"])
    return {guarantee["name"]: guarantee["outcome"] for guarantee in manifest["guarantees"]}


def test_noise_is_never_said_to_hold(made: Path, command: Any) -> None:
    assert _outcomes(made / "laplace") == {"differential-privacy": "not checked", "well-formed-flows": "holds"}
    page = (made / "laplace" / "report.html").read_text()
    assert (
        "1 guarantee can be checked from the files by anyone; 1 not checked" in page
        and "Not checked: differential-privacy" in page
    )
    assert not re.search(r"\d+ of \d+ guarantees", page)
    ran = command("verify", made / "laplace")
    assert (
        ran.code == 0
        and "1 guarantee can be checked from the files by anyone; 1 cannot be checked from the files alone." in ran.out
    )
    assert "not checked  differential-privacy" in ran.out and "holds        differential" not in ran.out


def test_what_holds_is_counted_as_such(made: Path) -> None:
    assert set(_outcomes(made / "suppression").values()) == {"holds"}
    page = (made / "suppression" / "report.html").read_text()
    assert (
        "3 guarantees can be checked from the files by anyone; 1 was checked by the publisher" in page
        and "Not checked" not in page
    )


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("violated", "Violated: true-volumes"),
        ("not checked", "3 guarantees can be checked from the files by anyone; 1 not checked"),
    ],
)
def test_a_report_shows_the_outcomes_of_the_manifest(made: Path, outcome: str, words: str) -> None:
    manifest, files = open_release(made / "suppression")
    changed = [
        entry.model_copy(update={"outcome": outcome}) if entry.name == "true-volumes" else entry
        for entry in manifest.guarantees
    ]
    assert words in public_report(files, manifest.model_copy(update={"guarantees": changed}))


def test_the_summary_of_a_run_says_how_much_was_checked(made: Path, tmp_path: Path) -> None:
    result = crowdveil.anonymize(
        made / "flows.csv", tmp_path / "out", method="laplace", zones=made / "zones.csv", report=False
    )
    assert "  checked  1 guarantee can be checked from the files by anyone; 1 not checked" in result.lines()


def test_a_release_of_the_earlier_format_is_refused_in_one_sentence(made: Path, tmp_path: Path, command: Any) -> None:
    manifest = json.loads((made / "suppression" / "manifest.json").read_text())
    for guarantee in manifest["guarantees"]:
        guarantee["holds"] = guarantee.pop("outcome") == "holds"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"format": 1}))
    with pytest.raises(
        InputError, match=r"its format is 1, and this version reads 6. Verify the release with the version"
    ):
        crowdveil.verify(tmp_path)
    ran = command("verify", tmp_path)
    assert ran.code == 2 and "format is 1" in ran.sentence


ROWS = [(0, "a", "b", 10, 10), (0, "c", "ab", 30, 10), (0, "ab", "a", 20, 10), (0, "ab", "c", 20, 10), (60, "a", "b", 10, 10),
        (60, "a", "c", 10, 10)]  # fmt: skip


def _said(release: WrittenRelease) -> list[str]:
    return next(answer.lines for answer in answers(release, manifest_of()) if answer.name == "Inference")


def test_the_report_and_the_attack_have_the_same_two_numbers() -> None:
    """40 of 100 trips go to one area, and 10 of them to one tile: two numbers with two names."""
    found = homogeneity.run(Published(flow_release(ROWS)), FlowAttackParams()).values
    assert (
        found["trips_with_destination_area_known_percent"] == 40
        and found["trips_with_destination_tile_known_percent"] == 10
    )
    lines = _said(written(ROWS))
    assert any(line.startswith("Destination area revealed (homogeneity-area): 40 % of the trips.") for line in lines)
    assert any(line.startswith("Destination tile revealed (homogeneity-tile): 10 % of the trips.") for line in lines)


def test_the_manifest_and_the_page_explain_both(made: Path) -> None:
    risk = {r["attack"]: r for r in json.loads((made / "suppression" / "manifest.json").read_text())["risk"]}
    page = (made / "suppression" / "report.html").read_text()
    for name, unit in (("homogeneity-area", "area"), ("homogeneity-tile", "tile")):
        assert risk[name]["risk_percent"] == 64 and f"destination {unit} known" in page
        assert f"({name}): 64 % of the trips" in page, "as in the table of attacks"


@settings(max_examples=tries(100))
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 3)] * 2, st.integers(1, 9)), max_size=12),
    sizes=st.lists(st.integers(1, 2), min_size=4, max_size=4),
)
def test_known_ends_are_what_sets_say(rows: list[tuple[int, int, int]], sizes: list[int]) -> None:
    present = sorted({g for g, _, _ in rows})
    group, end, volume = (np.array([r[i] for r in rows], np.int64) for i in range(3))
    group = np.searchsorted(present, group)
    known = KnownEnds.of(group, end, np.array(sizes), volume)
    for number, name in enumerate(present):
        ends = {d for g, d, _ in rows if g == name}
        assert known.area[number] == (len(ends) == 1)
        assert known.tile[number] == (len(ends) == 1 and sizes[next(iter(ends))] == 1)
        assert known.volume[number] == sum(v for g, _, v in rows if g == name)


def test_differencing_says_that_it_uses_one_release(command: Any) -> None:
    text = " ".join(command("attack", "differencing", "--help").out.split())
    assert "uses one release only" in text and "the attack `releases`" in text and "crowdveil ledger" in text
    for rows in ("exact", "overlapping"):
        said = differencing.run(Published(flow_release(ROWS), row_semantics=rows), FlowAttackParams()).explanation  # type: ignore[arg-type]
        assert "one release only" in said


@pytest.mark.parametrize("page", ["threat-model.md", "guarantees.md"])
def test_every_guarantee_is_on_the_pages(page: str) -> None:
    text = (DOCS / page).read_text()
    assert [kind.name for kind in GUARANTEES if f"`{kind.name}`" not in text] == []
