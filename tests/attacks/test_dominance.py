"""The share of the largest person of a group, counted by hand, and where it is stated; and links of whole trajectories."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdveil
from crowdveil.attacks.base import FlowAttackParams
from crowdveil.attacks.continuity import continuity_lines, measured_continuity, with_continuity
from crowdveil.attacks.dominance import Groups, run
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.methods.trajectory.microaggregation import MicroaggregationParams
from crowdveil.methods.trajectory.microaggregation import run as microaggregate
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.testing import trajectories


@given(data=trajectories(max_trajectories=14), k=st.integers(2, 3))
def test_the_share_is_counted_as_by_hand(data: Trajectories, k: int) -> None:
    release = (
        microaggregate(data, MicroaggregationParams(k=min(k, data.people)), np.random.default_rng(0), no_progress)
        if data.people >= 2
        else None
    )
    if release is None or release.source is None:
        return
    rows = list(zip(release.lon.tolist(), release.lat.tolist(), release.t.tolist(), strict=True))
    people: dict[Any, list[int]] = {}
    for i, source in enumerate(release.source.tolist()):
        path = tuple(rows[release.offsets[i] : release.offsets[i + 1]])
        people.setdefault(path, []).append(int(data.person[source]))
    largest = sum(max(Counter(own).values()) for own in people.values())
    groups = Groups.of_classes(data, release)
    assert groups.totals == (largest, len(release.source)) and len(groups.records) == len(people)
    assert sorted(groups.people.tolist()) == sorted(len(set(own)) for own in people.values())
    found = run(groups, FlowAttackParams())
    assert found.values["largest_person_percent"] == round(100 * largest / len(release.source), 2)


@given(counts=st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=5), min_size=1, max_size=6))
def test_no_person_of_a_row_has_more_than_the_bound(counts: list[list[int]]) -> None:
    """Trips of each person of some rows; with the same trips and people, one person may have as many as the bound."""
    rows: Any = SimpleNamespace(
        volume=np.array([sum(own) for own in counts]), people=np.array([len(own) for own in counts])
    )
    groups = Groups.of_rows(rows)
    for own, bound in zip(counts, groups.largest.tolist(), strict=True):
        assert max(own) <= bound
        assert sum([bound, *[1] * (len(own) - 1)]) == sum(own)
    assert not groups.exact


def test_a_release_without_rows_has_no_largest_person() -> None:
    none = np.zeros(0, np.int64)
    found = run(Groups(none, none, none, False), FlowAttackParams())
    assert found.explanation == "0 groups checked." and found.values["largest_person_percent"] is None


def _rides(folder: Path) -> Path:
    """Three people; the first has four of the six rides of each hour, one after the other from place to place."""
    rng = np.random.default_rng(1)
    rows: dict[str, list[Any]] = {name: [] for name in ("lon", "lat", "timestamp", "trajectory_id", "user_id")}
    for hour in range(20):
        for ride, user in enumerate((0, 0, 0, 0, 1, 2)):
            for i in range(3):
                rows["lon"].append(2.30 + 0.02 * (hour % 5) + 0.001 * i + rng.uniform(0, 1e-4))
                rows["lat"].append(48.80 + 0.02 * (hour // 5) + rng.uniform(0, 1e-4))
                rows["timestamp"].append(1_700_006_400 + 3600 * hour + 60 * i + ride)
                rows["trajectory_id"].append(6 * hour + ride)
                rows["user_id"].append(f"u{user}")
    pc.write_csv(pa.table(rows), folder / "rides.csv")
    return folder / "rides.csv"


def test_it_is_stated_in_the_manifest_and_on_the_first_page(tmp_path: Path) -> None:
    rides = _rides(tmp_path)
    crowdveil.anonymize(
        rides, tmp_path / "out", method="microaggregation", k=3, pairing=tmp_path / "pairing.csv", seed=1
    )
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    (stated,) = (trial for trial in manifest["risk"] if trial["attack"] == "dominance")
    assert stated["risk_percent"] == 67 and stated["guarantee"] is None
    assert "67 % are of the person who has most of them" in (tmp_path / "out" / "report.html").read_text()
    found = crowdveil.attack("dominance", rides, tmp_path / "out", pairing=tmp_path / "pairing.csv")["dominance"]
    assert found.values["largest_person_percent"] == pytest.approx(66.67)
    assert found.values["by_chance_percent"] == pytest.approx(33.33)
    with pytest.raises(InputError, match="Expected the pairing"):
        crowdveil.attack("dominance", rides, tmp_path / "out")
    assert manifest["method"]["facts"]["continuity"]["links_percent"] is not None


def test_of_flows_it_is_bounded(tmp_path: Path) -> None:
    """Ten people make a trip each, and one of them ten more: 11 of 20 trips."""
    users = [*range(10), *([0] * 10)]
    trips = pa.table({"origin": ["a"] * 20, "destination": ["b"] * 20, "user": users, "time": [1_700_006_400] * 20})
    result = crowdveil.anonymize(trips, tmp_path / "out", method="suppression", k=10, step="1h", user="user")
    (stated,) = (trial for trial in result.manifest["risk"] if trial["attack"] == "dominance")
    assert stated["risk_percent"] == 55 and stated["knowledge"] == "the row of a trip"
    assert "one person made at most 55 %" in (tmp_path / "out" / "report.html").read_text()
    found = crowdveil.attack("dominance", tmp_path / "out")["dominance"]
    assert found.values["largest_person_percent"] == 55


def test_rows_without_people_have_no_bound(tmp_path: Path) -> None:
    trips = pa.table({"origin": ["a"] * 20, "destination": ["b"] * 20, "time": [1_700_006_400] * 20})
    result = crowdveil.anonymize(trips, tmp_path / "out", method="suppression", k=10, step="1h")
    assert "dominance" not in {trial["attack"] for trial in result.manifest["risk"]}
    with pytest.raises(InputError, match="numbers of people"):
        crowdveil.attack("dominance", tmp_path / "out")


@given(data=trajectories(max_trajectories=10), seed=st.integers(0, 2**32))
def test_links_do_not_depend_on_the_order_of_trajectories(data: Trajectories, seed: int) -> None:
    """Whole trajectories of a person are put in order of time."""
    release = (
        microaggregate(data, MicroaggregationParams(k=2), np.random.default_rng(0), no_progress)
        if data.people >= 2
        else None
    )
    if release is not None:
        made = with_continuity(data, release)
        several = data.k_unit == "people" and data.people < len(data)
        assert ("continuity" in made.facts) == several
        assert continuity_lines(made.facts) == []  # too few to publish a share


def test_trajectories_that_follow_one_another_are_linked() -> None:
    """Each of 60 people goes on where the last ride ended, far from all others; the rides are not in order."""
    n = 60
    start = 2.0 + 0.1 * np.repeat(np.arange(n), 2) + np.tile([0.0, 0.01], n)
    lon = np.stack([start, start + 0.01], axis=1).ravel()
    t = np.tile([0, 60, 60, 120], n)
    order = np.random.default_rng(3).permutation(2 * n)
    rows = (2 * order[:, None] + np.arange(2)).ravel()
    person = np.repeat(np.arange(n), 2)[order]
    data = Trajectories(
        lon[rows], np.full(4 * n, 48.8), t[rows], np.arange(0, 4 * n + 1, 2), order, person, np.arange(n)
    )
    release = TrajectoryRelease(data.lon, data.lat, data.t, data.offsets, source=np.arange(len(data)))
    assert measured_continuity(data, data.person, release) == {"links_percent": 100, "trajectories_percent": 100}
    made = with_continuity(data, release)
    assert made.facts["continuity"] == {"links_percent": 100, "people_percent": 100}
    (line,) = continuity_lines(made.facts)
    assert line == "linked by continuity   100 % of trajectories to the next; all trajectories of 100 % of people"
