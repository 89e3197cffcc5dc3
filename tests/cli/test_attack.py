"""`crowdveil attack` and `crowdveil.attack`: before and after, files, pairings, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from small_worlds import TOY, flow_release, published, walk, world

import crowdveil
from crowdveil.attacks.base import Risk
from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.tables import write_trajectories
from crowdveil.model.canonical import canonical
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import ATTACKS, EXPERIMENTS, find_attack


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    write_trajectories(world(TOY), tmp_path / "toy.csv")
    return tmp_path / "toy.csv"


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    """A release of thirty trips from a to b, and nine from b to a that are suppressed."""
    table = pa.table({"origin": ["a"] * 30 + ["b"] * 9, "destination": ["b"] * 30 + ["a"] * 9})
    crowdveil.anonymize(table, tmp_path / "flows", method="suppression", k=10)
    return tmp_path / "flows"


def _by_id(data: Trajectories, risk: Risk) -> dict[int, float]:
    """The risk of each trajectory by its id: risks come in the canonical order of trajectories."""
    assert risk.units == "trajectories"
    return dict(zip(canonical(data).ids.tolist(), risk.risk.tolist(), strict=True))


def test_a_table_for_people(command: Any, toy: Path) -> None:
    ran = command("attack", "location", toy)
    assert ran.code == 0 and ran.out.splitlines()[-1] == CONFIDENTIAL
    # Worst: 1/3, 1/2, 1/3, 1/3, 1/4, 1/4, 1/2. Random: BD leads to three people, AA to two and any other pair to four, so that
    # the means of their pairs are 0.264, 0.292, 0.264, 0.278, 0.25, 0.25 and 0.333.
    assert ran.out.splitlines()[1].split() == [
        "locations",
        "35.7",
        "%",
        "50.0",
        "%",
        "0.0",
        "%",
        "100.0",
        "%",
        "27.6",
        "%",
    ]
    assert "7 people: the risk of each is that of the most revealing background knowledge." in ran.out


def test_all_of_them_with_a_release_too(command: Any, toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command("anonymize", "microaggregation", toy, "--k", 3, "-o", out).code == 0
    ran = command("attack", "all", toy, "--release", out, "--tile-m", 20_000, "--json", "--no-such")
    assert ran.code == 2 and "No such option" in ran.sentence
    ran = command(
        "attack", "all", toy, "--release", out, "--tile-m", 20_000, "-o", tmp_path / "risks.csv", "--knowledge", 1
    )
    assert ran.code == 0 and ran.out.count(" → ") >= 8 * 5 and "--pairing" in ran.out
    table = pacsv.read_csv(tmp_path / "risks.csv")
    assert table.column_names == ["attack", "id", "risk_before", "risk_after"] and len(table) == 8 * 7
    found = json.loads(command("attack", "all", toy, "--release", out, "--json").out)
    assert found["k"] == 3 and found["units"] == "trajectories" and len(found["attacks"]) == 8
    assert found["attacks"]["location"]["before"]["exact"] and not found["attacks"]["location"]["after"]["paired"]


def test_flows_are_attacked_in_their_release(command: Any, flows: Path, tmp_path: Path) -> None:
    ran = command("attack", "all", flows)
    assert ran.code == 0 and "1 row checked, 0 with fewer than 10 trips." in ran.out and CONFIDENTIAL not in ran.out
    assert "one destination for all: reported, not guaranteed" in ran.out
    assert find_attack("destination-belief").title not in ran.out, "an experiment runs by its name alone"
    assert command("attack", "homogeneity", flows, "-o", tmp_path / "h.json").code == 0
    found = json.loads((tmp_path / "h.json").read_text())
    assert (
        found["k"] == 10
        and found["attacks"]["homogeneity"]["values"]["origins_with_destination_area_known_percent"] == 100
    )
    assert (
        command("attack", "minimum-group-size", flows, "--k", 31).out.splitlines()[0]
        == "smallest group: finds groups of fewer than 31"
    )


def test_every_attack_has_a_command(command: Any) -> None:
    listed = command("attack", "--help").out
    for name in (*ATTACKS, *EXPERIMENTS):
        assert name in listed and command("attack", name, "--help").code == 0
    assert find_attack("LocationSequenceAttack").name == "sequence"
    assert "there is no attack nonsense" in command("attack", "nonsense", "x").sentence


def test_a_pairing_says_who_is_found(toy: Path, tmp_path: Path) -> None:
    """Two of one walk are published under names of others: each one who matches is found, and never the one who is known."""
    data = world([walk("AB"), walk("CD"), walk("EF")])
    release = published([walk("AB"), walk("CD")], None)
    crossed = pa.table({"published_id": [2, 1], "trajectory_id": [0, 1]})
    blind = crowdveil.attack("location", data, release)["location"][1]
    assert blind is not None and _by_id(data, blind) == {0: 1, 1: 1, 2: 0} and not blind.paired
    known = crowdveil.attack("location", data, release, pairing=crossed)["location"][1]
    assert known is not None and _by_id(data, known) == {0: 0, 1: 0, 2: 0} and known.paired
    right = pa.table({"published_id": [1, 2], "trajectory_id": [0, 1]})
    known = crowdveil.attack("location", data, release, pairing=right)["location"][1]
    assert known is not None and _by_id(data, known) == {0: 1, 1: 1, 2: 0} and known.paired


def test_what_goes_wrong_is_reported(command: Any, toy: Path, flows: Path, tmp_path: Path) -> None:
    cases = [
        (("location", flows), "flows"),
        (("homogeneity", toy), "no manifest.json"),
        (("location", toy, "--release", flows), "it holds flows"),
        (("location", toy, "--pairing", toy), "Expected a release with the pairing"),
        (("location", toy, "--knowledge", 0), "knowledge"),
        (("frequency", toy, "--tolerance", 2), "tolerance"),
        (("location", toy, "-o", tmp_path / "x.txt"), "ends in"),
        (("all", flows, "--knowledge", 3), "there is no such parameter"),
    ]
    for arguments, reason in cases:
        ran = command("attack", *arguments)
        assert ran.code == 2 and reason in ran.sentence, arguments
    assert not (tmp_path / "x.txt").exists()


def test_units_are_what_the_release_links() -> None:
    data = world([walk("AB"), walk("CD"), walk("EF")], [0, 0, 1])
    assert crowdveil.attack("location", data)["location"][0].units == "people"
    ids = canonical(data).ids.tolist()
    release = published([walk("AB"), walk("CD")], [ids.index(0), ids.index(1)])
    before, after = crowdveil.attack("location", data, release)["location"]
    assert before.units == "trajectories" and after is not None
    assert after.paired and _by_id(data, after) == {0: 1, 1: 1, 2: 0}
    with pytest.raises(InputError, match="does not link"):
        crowdveil.attack("location", data, release, units="people")
    with pytest.raises(ParameterError, match="a single release"):
        crowdveil.attack("homogeneity", flow_release([]), release)


def test_samples_are_repeatable_and_said(toy: Path) -> None:
    first, again = (crowdveil.attack("all", toy, people=4, samples=100, knowledge=2, seed=5) for _ in range(2))
    assert first.as_json() == again.as_json() and first.table().equals(again.table())
    risk = first["location"][0]
    assert (
        len(risk.tried) == 4
        and risk.of == 7
        and not risk.mean.exact
        and risk.mean.low < risk.mean.value < risk.mean.high
    )
    assert "4 people of 7, drawn at random" in "\n".join(first.lines())


def test_a_risk_that_was_not_searched_to_the_end_is_a_bound(toy: Path) -> None:
    """Everybody is at A, B and C, in other numbers: more than one choice has to be looked at."""
    found = crowdveil.attack("sequence", world([walk("ABC"), walk("BCA"), walk("CAB")]), max_combinations=1)
    assert not found["sequence"][0].exact and "lower bound: not all background" in "\n".join(found.lines())
