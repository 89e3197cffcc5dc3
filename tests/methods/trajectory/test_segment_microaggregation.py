"""Segments of k people each, without links; and what an adversary can link by continuity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.attacks.continuity import continuity_lines, measured_continuity
from crowdveil.engine.progress import no_progress
from crowdveil.errors import GuaranteeViolatedError, InputError, ParameterError
from crowdveil.guarantees import SegmentKAnonymity, SuppressedSegments
from crowdveil.io.written_release import WrittenRelease
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.methods.trajectory import segment_microaggregation
from crowdveil.methods.trajectory.segment_microaggregation import SegmentMicroaggregationParams, cut_at_multiples, run
from crowdveil.model.release import TrajectoryRelease, has_segments
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import find_measure
from crowdveil.run import pipeline, releases
from crowdveil.solve.trajectory.aggregation import AGGREGATIONS, aggregate, find_aggregation
from crowdveil.solve.trajectory.distances import make_distance
from crowdveil.testing import trajectories

TABLES_ONLY = {"attack": False, "report": False}


def _release(data: Trajectories, **parameters: Any) -> TrajectoryRelease:
    return run(data, SegmentMicroaggregationParams(**parameters), np.random.default_rng(5), no_progress)


def _classes(release: TrajectoryRelease) -> dict[bytes, list[int]]:
    """Return the sources of each set of equal segments."""
    points, found = np.column_stack([release.lon, release.lat, release.t]), dict[bytes, list[int]]()
    for i, source in enumerate(np.asarray(release.source).tolist()):
        found.setdefault(points[release.offsets[i] : release.offsets[i + 1]].tobytes(), []).append(source)
    return found


@settings(max_examples=tries(40), deadline=None)
@given(
    data=trajectories(max_trajectories=10, max_points=5),
    k=st.integers(2, 3),
    length=st.sampled_from([60, 300]),
    improve=st.sampled_from([0, 2]),
)
def test_every_segment_is_that_of_k_people(data: Trajectories, k: int, length: int, improve: int) -> None:
    release = _release(data, k=k, segment_s=length, improve=improve)
    assert len(release) == (len(cut_at_multiples(data, length)[1]) if data.people >= k else 0)
    assert all(len({int(data.person[i]) for i in sources}) >= k for sources in _classes(release).values())
    assert release.person is None


@settings(max_examples=tries(20), deadline=None)
@given(data=trajectories(max_trajectories=10, max_points=5))
def test_segments_of_one_trajectory_count_once(data: Trajectories) -> None:
    release = _release(data, k=2, segment_s=60, count_trajectories=True)
    assert all(len(set(sources)) >= 2 for sources in _classes(release).values())


def _walks(n: int, apart: float) -> Trajectories:
    """Return walks to the east for nine minutes, two segments each, so many degrees from one another to the north."""
    t = np.tile(np.arange(0, 541, 60), n)
    lon, lat = 0.0001 * t / 6, np.repeat(np.arange(n) * apart, 10)
    people = np.array([f"p{i}" for i in range(n)], dtype=object)
    return Trajectories(lon, lat, t, np.arange(0, 10 * n + 1, 10), np.arange(n), np.arange(n), people)


def test_an_adversary_follows_those_who_are_far_from_others() -> None:
    """Groups of two are 10 km from the next, so that each segment is followed by that of the same two people."""
    pairs = _walks(120, 0.1)
    lat = np.repeat(np.arange(120) // 2 * 0.1 + np.arange(120) % 2 * 1e-4, 10)
    release = _release(Trajectories(pairs.lon, lat, pairs.t, pairs.offsets, *[np.arange(120)] * 3), k=2)
    assert release.facts["continuity"] == {"links_percent": 100, "trajectories_percent": 100}
    assert continuity_lines(release.facts) == [
        "linked by continuity   100 % of segments to the next; all segments of 100 % of trajectories"
    ]
    assert _release(_walks(10, 0.1), k=2).facts["continuity"] == {"links_percent": None, "trajectories_percent": None}


def test_wrong_links_are_not_counted() -> None:
    """All cross to the other side at the border of segments, where a person of the other side goes on."""
    data = _walks(120, 0.1)
    segments, whole = cut_at_multiples(data, 300)
    lat = segments.lat.copy()
    for i in range(1, 240, 2):
        here = slice(segments.offsets[i], segments.offsets[i + 1])
        lat[here] = 11.9 - lat[here]
    release = TrajectoryRelease(segments.lon, lat, segments.t, segments.offsets, source=np.arange(240))
    assert measured_continuity(segments, whole, release) == {"links_percent": 0, "trajectories_percent": 0}


def test_a_run_states_what_is_guaranteed_and_measures_what_it_can(tmp_path: Path) -> None:
    data = _walks(60, 0.0005)
    request = pipeline.Request("segment-microaggregation", data, tmp_path / "out", {"k": 3}, options=TABLES_ONLY)
    result = pipeline.run(request)
    (entry,) = [g for g in result.manifest["guarantees"] if g["name"] == "segment-k-anonymity"]
    assert entry["outcome"] == "holds" and entry["with_original"]
    assert "segments of one trajectory have no common id" in entry["statement"]
    cost = result.manifest["cost"]
    assert cost["published_trajectories"] > 60 and cost["suppressed_trajectories_percent"] == 0
    assert any("60 of 60 (100.0 %), in " in line for line in result.cost)
    checked = dict((g.name, finding) for g, finding in releases.verify(tmp_path / "out"))
    assert checked["segment-k-anonymity"].outcome == "not checked"
    assert has_segments(result.release)
    compared = TrajectoryComparison(data, result.release)
    assert find_measure("trajectories-removed").of(compared).tolist() == [0]
    with pytest.raises(InputError, match=r"^release: it has several segments of one trajectory.*\.$"):
        find_measure("rmse").of(compared)


def test_a_group_of_one_person_is_a_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken method puts segments of one person into a group; files show enough copies, and the check counts people."""
    data = _walks(6, 0.0005)
    monkeypatch.setattr(segment_microaggregation, "owners", lambda data, count: np.arange(len(data)))
    whole = Trajectories(
        data.lon, data.lat, data.t, data.offsets, data.ids, np.array([0, 0, 1, 1, 2, 2]), data.people_ids[:3]
    )
    with pytest.raises(GuaranteeViolatedError, match="segment-k-anonymity"):
        pipeline.run(
            pipeline.Request("segment-microaggregation", whole, tmp_path / "out", {"k": 2}, options=TABLES_ONLY)
        )
    assert not (tmp_path / "out").exists()


def test_a_column_of_people_would_link_segments() -> None:
    table = pa.table(
        {
            "lat": [0.0, 0.0],
            "lon": [0.0, 0.0],
            "timestamp": pa.array([0, 0], pa.timestamp("s")),
            "published_id": [1, 2],
        }
    )
    guarantee, person = SegmentKAnonymity(k=2, k_unit="people"), np.arange(2)
    original = Trajectories(np.zeros(2), np.zeros(2), np.zeros(2), np.arange(3), person, person, person)
    written = WrittenRelease(Path("out"), table, None, [])
    assert guarantee.check(written).outcome == "not checked"
    assert guarantee.check_with_trajectories(written, original, person).holds
    assert guarantee.check_with_trajectories(written, original, np.zeros(2, np.int64)).violated
    linked = WrittenRelease(Path("out"), table.append_column("user_id", pa.array([1, 2])), None, [])
    assert guarantee.check_with_trajectories(linked, original, person).violated


@settings(max_examples=tries(40), deadline=None)
@given(data=trajectories(max_trajectories=10, max_points=5), percent=st.sampled_from([10, 40]))
def test_suppressed_segments_are_whole_groups_within_the_budget(data: Trajectories, percent: int) -> None:
    """What is left is published as without suppression, and what is missing is of k people."""
    whole, some = _release(data, k=2, segment_s=60), _release(data, k=2, segment_s=60, suppress=f"{percent}%")
    before, after = _classes(whole), _classes(some)
    assert all(sorted(before[content]) == sorted(sources) for content, sources in after.items()) or len(before) < len(
        whole
    )
    missing = len(whole) - len(some)
    assert missing * 100 <= percent * len(cut_at_multiples(data, 60)[1])
    absent = np.bincount(whole.source, minlength=len(data)) - np.bincount(some.source, minlength=len(data))
    people = set(data.person[np.flatnonzero(absent)].tolist())
    assert not missing or len(people) >= 2


def test_a_run_states_and_verifies_the_budget_of_segments(tmp_path: Path) -> None:
    """Two people far from all make wide groups, which are suppressed first."""
    data = _walks(22, 0.0005)
    lat = data.lat.copy()
    lat[200:210], lat[210:] = 0.5, 0.9
    far = Trajectories(data.lon, lat, data.t, data.offsets, data.ids, data.person, data.people_ids)
    parameters = {"k": 2, "suppress": "10%"}
    request = pipeline.Request("segment-microaggregation", far, tmp_path / "out", parameters, options=TABLES_ONLY)
    result = pipeline.run(request)
    (entry,) = [g for g in result.manifest["guarantees"] if g["name"] == "suppressed-segments"]
    assert entry["outcome"] == "holds" and entry["with_original"]
    assert entry["statement"] == (
        "At most 10 % of the segments of trajectories are suppressed: none, or those of at least 2 people."
    )
    missing = 2 - np.bincount(np.asarray(result.release.source), minlength=22)
    assert missing.sum() == 4 and np.count_nonzero(missing) >= 2
    checked = dict((g.name, finding) for g, finding in releases.verify(tmp_path / "out"))
    assert checked["suppressed-segments"].outcome == "not checked"


def test_a_missing_segment_of_one_person_is_a_violation() -> None:
    original, segments = _walks(6, 0.0005), 12
    budget = SuppressedSegments(suppress=0.5, k=2, k_unit="people", segment_s=300)

    def check(source: list[int]) -> Any:
        n = len(source)
        columns: dict[str, Any] = {"lat": [0.0] * n, "lon": [0.0] * n, "published_id": list(range(1, n + 1))}
        table = pa.table({**columns, "timestamp": pa.array([0] * n, pa.timestamp("s"))})
        return budget.check_with_trajectories(WrittenRelease(Path("out"), table, None, []), original, np.array(source))

    every = sorted([*range(6), *range(6)])
    assert check(every).holds and len(every) == segments
    assert check([0, 1, *every[4:]]).holds
    assert check(every[1:]).detail == "no more than allowed are suppressed; they are of fewer than 2."
    assert check(every[7:]).detail == "too many are suppressed."
    assert "number of trajectories in the files" in check([0, 0, 0, *every[2:]]).detail


@pytest.mark.parametrize("name", [a.name for a in AGGREGATIONS if a.original_points])
def test_original_points_would_link_segments(name: str) -> None:
    with pytest.raises(ParameterError, match=f"link the segments of a person, got '{name}'"):
        SegmentMicroaggregationParams.checked({"aggregation": name})


@given(data=trajectories(), name=st.sampled_from([a.name for a in AGGREGATIONS]))
def test_aggregations_that_publish_points_of_members_say_so(data: Trajectories, name: str) -> None:
    """All members in one group: a position to the last digit is a member's own, unless it is rounded."""
    data = replace(data, lon=data.lon + 1e-9 * np.arange(1, data.points + 1))
    distance = make_distance(data, "spatiotemporal", 0.0)
    made = aggregate(data, distance, np.arange(len(data)), np.array([0, len(data)]), name)
    own = np.isin(made.lon, data.lon)
    assert own.all() if name.startswith("closest") else not own.any()
    assert find_aggregation(name).original_points == bool(own.any())
