"""Adversaries against guarantees: those that a guarantee speaks of stop a run that breaks it, and no others do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from small_worlds import NOON, flow_release, published, walk, world

from crowdveil import testing
from crowdveil.attacks.base import Interval
from crowdveil.attacks.risk import RiskEstimate, _merge_visits, attack_release, merge_risk_estimates, require_withstood
from crowdveil.engine.progress import no_progress
from crowdveil.errors import GuaranteeViolatedError
from crowdveil.guarantees import (
    CombinationKAnonymity,
    Finding,
    FlowKAnonymity,
    Outcome,
    TrajectoryKAnonymity,
    TrueVolumes,
)
from crowdveil.methods.base import Facts
from crowdveil.methods.trajectory import microaggregation, protected_generalization
from crowdveil.model.trajectories import Trajectories
from crowdveil.run import pipeline
from crowdveil.run.pipeline import Request, run

THREE = TrajectoryKAnonymity(k=3, k_unit="people")
PAIRS = CombinationKAnonymity(k=2, knowledge=2, interval_s=None, k_unit="people")


def _stopped(trials: list[RiskEstimate]) -> set[str]:
    return {trial.attack for trial in trials if trial.stops}


def test_copies_of_three_people_hold() -> None:
    data = world([walk("ABC"), walk("ABD"), walk("ABE")])
    trials = attack_release(data, published([walk("ABC")] * 3, [2, 0, 1]), [THREE], "proven")
    assert [t.attack for t in trials] == ["location", "sequence", "time", "sequence"]
    assert not _stopped(trials) and {t.worst for t in trials} == {3} and {t.guarantee for t in trials} == {THREE.name}
    require_withstood(trials)


def test_copies_of_two_people_are_found_by_all_and_stop_the_run() -> None:
    """Three copies, two of them of one person: the files look right, and the crowd is two."""
    data = world([walk("ABC"), walk("ABD"), walk("ABE")], [0, 0, 1])
    release = published([walk("ABC")] * 3, [0, 1, 2])
    trials = attack_release(data, release, [THREE], "proven")
    assert _stopped(trials) == {"location", "sequence", "time"} and {t.worst for t in trials} == {2}
    with pytest.raises(GuaranteeViolatedError, match="a group of 2 instead of 3, so nothing was published"):
        require_withstood(trials)
    require_withstood(attack_release(data, release, [THREE], "argued"))
    counted = TrajectoryKAnonymity(k=3, k_unit="trajectories")
    require_withstood(attack_release(data, release, [counted], "proven"))


def test_a_missing_copy_is_found_with_published_points_alone() -> None:
    """What is known of the original does not lead to it, since the odd one lies elsewhere; its own points do."""
    data = world([walk("ABC")] * 4)
    trials = attack_release(data, published([walk("ABC")] * 3 + [walk("GH")], [0, 1, 2, 3]), [THREE], "proven")
    assert [t.stops for t in trials] == [False, False, False, True]


def test_without_a_guarantee_it_is_measured_and_reported() -> None:
    data = world([walk("ABC"), walk("DEF")])
    trials = attack_release(data, published([walk("ABC"), walk("DEF")], [0, 1]), [], "heuristic")
    assert [(t.before, t.after, t.guarantee, t.stops) for t in trials] == [(100, 100, None, False)] * 3
    assert trials[0].line() == "re-identified by location, 2 locations by 500 m  100 % (in the original 100 %)"
    assert trials[0].as_trial().plain() == {
        "attack": "location", "knowledge": "2 locations by 500 m", "risk_percent_before": 100, "risk_percent": 100,
        "guarantee": None,
    }  # fmt: skip


def test_pairs_of_visits_that_two_share_hold_and_one_alone_does_not() -> None:
    data = world([walk("ABC"), walk("ABC"), walk("ACB")])
    same = [NOON] * 3
    shared = [walk("AB", same[:2]), walk("AB", same[:2]), walk("A", same[:1])]
    assert not _stopped(attack_release(data, published(shared, [0, 1, 2]), [PAIRS], "proven"))
    alone = [walk("AB", same[:2]), walk("BA", same[:2]), walk("A", same[:1])]
    trials = attack_release(data, published(alone, [0, 1, 2]), [PAIRS], "proven")
    assert [t.stops for t in trials] == [False, True, False, True], "both have A and B, each in an order of its own"


def test_the_number_of_rows_of_a_visit_is_more_than_is_guaranteed() -> None:
    """With exact times published, one stays for three rows and one for two: who counts rows finds them, as the risk says."""
    known = CombinationKAnonymity(k=2, knowledge=2, interval_s=3600, k_unit="people")
    data = world([walk("AAB", [NOON, NOON + 1, NOON + 3600]), walk("AB", [NOON + 2, NOON + 3601])])
    release = published([walk("AAB", [NOON, NOON + 1, NOON + 3600]), walk("AB", [NOON + 2, NOON + 3601])], [0, 1])
    trials = attack_release(data, release, [known], "proven")
    assert not _stopped(trials) and [t.guarantee is None for t in trials] == [False, False, True, False]
    assert _merge_visits(release, known).offsets.tolist() == [0, 2, 4]


def test_a_visit_does_not_go_on_in_the_next_trajectory() -> None:
    release = published([walk("AB", [NOON] * 2), walk("BA", [NOON] * 2)], [0, 1])
    assert _merge_visits(release, PAIRS).offsets.tolist() == [0, 2, 4]


@pytest.mark.parametrize("method", [microaggregation.METHOD, protected_generalization.METHOD], ids=lambda m: m.name)
@settings(max_examples=tries(25), deadline=None)
@given(data=testing.trajectories(), seed=st.integers(0, 3))
def test_what_is_proved_holds_against_adversaries(method: Any, data: Trajectories, seed: int) -> None:
    if data.total_people < 2:
        return
    params = method.params.checked({"k": 2})
    release = method.run(data, params, np.random.default_rng(seed), no_progress)
    require_withstood(attack_release(data, release, method.guarantees(params, Facts.of(data)), method.status, seed))


def test_an_adversary_stops_a_run_whose_checker_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that takes trajectories for people puts three of two people together."""
    data = world([walk("ABC")] * 3 + [walk("FGH")] * 3, [0, 0, 1, 1, 2, 3])
    monkeypatch.setattr(TrajectoryKAnonymity, "check_with_people", lambda *_: Finding(Outcome.HOLDS))
    own = microaggregation.METHOD
    careless = lambda d, p, r, s: own.run(replace(d, person=np.arange(6), people_ids=d.ids), p, r, s)  # noqa: E731
    monkeypatch.setattr(pipeline, "find_method", lambda name: replace(own, run=careless))
    with pytest.raises(GuaranteeViolatedError, match="trajectory-k-anonymity fails against an adversary"):
        run(Request("microaggregation", data, tmp_path / "out", {"k": 3}))
    assert list(tmp_path.iterdir()) == []


def test_the_manifest_has_risks_in_whole_percents_and_no_more(tmp_path: Path) -> None:
    data = world([walk("ABC"), walk("ABD"), walk("ABE"), walk("FGH"), walk("FGC"), walk("FGB")])
    result = run(Request("microaggregation", data, tmp_path / "out", {"k": 3}))
    risk = result.manifest["risk"]
    assert [entry["attack"] for entry in risk] == ["location", "sequence", "time", "sequence"]
    for entry in risk:
        assert set(entry) == {"attack", "knowledge", "risk_percent_before", "risk_percent", "guarantee"}
        assert isinstance(entry["risk_percent"], int) and entry["risk_percent"] <= 33
        assert entry["guarantee"] == "trajectory-k-anonymity"
    assert [line for line in result.cost if line.startswith("re-identified by location, 2 locations by 500 m")]


def test_a_small_row_stops_a_run() -> None:
    crowd = FlowKAnonymity(k=10, k_unit="people")
    flows = flow_release([(0, "a", "b", 12, 10), (0, "c", "b", 12, 9)])
    trials = attack_release(None, flows, [crowd], "proven")  # type: ignore[arg-type]
    assert [(t.attack, t.stops, t.worst) for t in trials] == [
        ("homogeneity-area", False, None), ("homogeneity-tile", False, None), ("minimum-group-size", True, 9),
        ("singleton-margins", True, 9),
    ]  # fmt: skip
    require_withstood(attack_release(None, flow_release([(0, "a", "b", 12, 10)]), [crowd], "proven"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "trips", "percent"), [((69, 70, 61, 15, 28), (1207, 1153, 1117, 897, 1026), 4), ((1, 2), (4, 4), 38)]
)
def test_the_risk_of_partitions_is_that_of_the_whole_release(
    known: tuple[int, ...], trips: tuple[int, ...], percent: int
) -> None:
    """Shares of 4.5 and 37.5 percent: shares of partitions that are rounded first add up to another whole percent."""
    steps: list[list[tuple[Any, ...]]] = [
        [(60 * i, "a", "b", some, 1), (60 * i, "c", "a", 1, 1), (60 * i, "c", "b", every - some - 1, 1)]
        for i, (some, every) in enumerate(zip(known, trips, strict=True))
    ]
    crowd = [FlowKAnonymity(k=1, k_unit="people")]
    whole = attack_release(None, flow_release([row for rows in steps for row in rows]), crowd, "proven")  # type: ignore[arg-type]
    parts = [attack_release(None, flow_release(rows), crowd, "proven") for rows in steps]  # type: ignore[arg-type]
    assert merge_risk_estimates(parts) == whole
    assert [trial.after for trial in whole] == [percent, percent, 0, 0]


def test_rows_inside_others_stop_a_run_where_rows_say_all_that_is_in_them() -> None:
    crowd, flows = FlowKAnonymity(k=10, k_unit="people"), flow_release([(0, "ab", "c", 25, 15), (0, "a", "c", 20, 12)])
    assert not _stopped(attack_release(None, flows, [crowd], "proven"))  # type: ignore[arg-type]
    assert _stopped(attack_release(None, flows, [crowd, TrueVolumes()], "proven")) == {"differencing"}  # type: ignore[arg-type]


def test_an_interval_holds_its_mean_and_is_exact_only_if_it_is_known() -> None:
    """Wilson's: 5 of 10 give 0.2366 to 0.7634, 0 of 10 give 0 to 0.2775."""
    half = Interval.of_sample(np.array([0.0, 1.0] * 5))
    assert (round(half.low, 4), half.value, round(half.high, 4)) == (0.2366, 0.5, 0.7634) and not half.exact
    none = Interval.of_sample(np.zeros(10))
    assert (none.low, none.value, round(none.high, 4)) == (0.0, 0.0, 0.2775)
    assert Interval.known(0.3).exact
