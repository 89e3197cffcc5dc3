"""Each checker goes red on a release that breaks its promise, and on nothing else."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.guarantees import (
    GUARANTEES,
    DisjointFlows,
    FlowKAnonymity,
    GeneralisationLimit,
    LocationsOnTileCentres,
    WellFormedFlows,
    WellFormedTrajectories,
    guarantee_from_manifest,
)
from crowdveil.guarantees.flows import _Tiles
from crowdveil.io.release import WrittenRelease

AREAS = {"a": ["a"], "b": ["b"], "ab": ["a", "b"], "c": ["c"]}


def _flows(rows: list[tuple[Any, ...]], withheld: list[int | None] = [0], **extra: Any) -> WrittenRelease:  # noqa: B006
    columns = {
        "t": pa.array([r[0] for r in rows], pa.timestamp("ms", tz="UTC")),
        "origin_area": [r[1] for r in rows],
        "destination_area": [r[2] for r in rows],
        "volume": pa.array([r[3] for r in rows], pa.int64()),
        "people": pa.array([r[4] for r in rows], pa.int64()),
        "state": [r[5] if len(r) > 5 else "published" for r in rows],
        **extra,
    }
    steps = pa.table({"withheld": pa.array(withheld, pa.int64())})
    features = [
        {"properties": {"area": name, "tiles": tiles, "lon": 2.0 + i, "lat": 48.0}}
        for i, (name, tiles) in enumerate(AREAS.items())
    ]
    return WrittenRelease(Path("out"), pa.table(columns), steps, features)


GOOD = [(0, "a", "b", 12, 10), (0, "b", "a", 30, 11), (3600, "ab", "c", 10, 10)]


@pytest.mark.parametrize("promise", [FlowKAnonymity(k=10, counts="people"), DisjointFlows(), WellFormedFlows()])
def test_a_good_release_passes(promise: Any) -> None:
    assert promise.check(_flows(GOOD)).holds


def test_k_looks_at_people_and_not_at_volume() -> None:
    promise = FlowKAnonymity(k=10, counts="people")
    finding = promise.check(_flows([*GOOD, (0, "c", "c", 500, 9)]))
    assert not finding.holds and "1 below k" in finding.detail


@pytest.mark.parametrize(("withheld", "holds"), [([0, None, 10], True), ([9], False), ([0, 1], False)])
def test_k_looks_at_withheld_totals(withheld: list[int | None], holds: bool) -> None:
    assert FlowKAnonymity(k=10, counts="people").check(_flows(GOOD, withheld)).holds is holds


def test_k_needs_the_column_that_it_counts() -> None:
    with pytest.raises(InputError, match="no column trips"):
        FlowKAnonymity(k=10, counts="trips").check(_flows(GOOD))


@pytest.mark.parametrize(
    "row",
    [(0, "a", "b", 12, 10), (0, "ab", "b", 12, 10), (0, "a", "ab", 12, 10)],
    ids=["the same pair", "an origin that holds it", "a destination that holds it"],
)
def test_pairs_of_tiles_may_not_stand_twice_in_a_step(row: tuple[Any, ...]) -> None:
    finding = DisjointFlows().check(_flows([*GOOD, row]))
    assert not finding.holds
    assert DisjointFlows().check(_flows([*GOOD, (7200, *row[1:])])).holds, "another step is another matter"


def test_flows_to_several_tiles_are_limited_and_others_are_not() -> None:
    rows = [(0, "ab", "c", 10, 10), (0, "a", "ab", 10, 10)]
    assert GeneralisationLimit(tiles=3).check(_flows(rows)).holds
    finding = GeneralisationLimit(tiles=2.5).check(_flows(rows))
    assert not finding.holds and "1 are larger" in finding.detail


@settings(max_examples=200)
@given(
    rows=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=8),
    tiles=st.lists(st.sets(st.sampled_from("uvwxyz"), min_size=1), min_size=4, max_size=4),
)
def test_both_ways_to_find_a_pair_twice_agree_with_sets(rows: list[tuple[str, str]], tiles: list[set[str]]) -> None:
    """By plain sets of pairs; with rows held against each other, and with all pairs written out."""
    of = dict(zip("abcd", tiles, strict=True))
    pairs = [pair for o, d in rows for pair in itertools.product(of[o], of[d])]
    written = _flows([(0, o, d, 12, 10) for o, d in rows])
    features = [{"properties": {"area": n, "tiles": sorted(t)}} for n, t in of.items()]
    written = WrittenRelease(written.folder, written.data, written.steps_table, features)
    for most in (_Tiles.MOST_AREAS, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_Tiles, "MOST_AREAS", most)
            assert DisjointFlows().check(written).holds == (len(pairs) == len(set(pairs)))


def test_without_times_all_rows_are_one_step() -> None:
    rows = [(None, *GOOD[0][1:]), (None, *GOOD[0][1:])]
    assert not DisjointFlows().check(_flows(rows)).holds


@pytest.mark.parametrize(
    ("rows", "extra", "fault"),
    [
        ([(0, "nowhere", "b", 12, 10)], {}, "not in the list"),
        ([(0, "a", "b", 0, 10)], {}, "below 1"),
        ([(0, "a", "b", 12, 10, "guessed")], {}, "unknown"),
        ([(0, "a", None, 12, 10)], {}, "missing"),
        ([(0, "a", "b", 12, 10)], {"user_id": ["ann"]}, "columns"),
        ([(0, "a", "b", 12, 10)], {"trips": [12]}, "two columns"),
    ],
)
def test_ill_formed_flows(rows: list[tuple[Any, ...]], extra: dict[str, Any], fault: str) -> None:
    finding = WellFormedFlows().check(_flows(rows, **extra))
    assert not finding.holds and fault in finding.detail


def _points(**columns: Any) -> WrittenRelease:
    table = {
        "lat": [48.0, 48.0, 48.0],
        "lon": [2.0, 3.0, 2.0],
        "timestamp": pa.array([0, 60_000, 0], pa.timestamp("ms", tz="UTC")),
        "trajectory_id": [1, 1, 2],
        **columns,
    }
    features = [{"properties": {"area": n, "tiles": [n], "lon": x, "lat": 48.0}} for n, x in (("a", 2.0), ("b", 3.0))]
    return WrittenRelease(Path("out"), pa.table({k: v for k, v in table.items() if v is not None}), None, features)


@pytest.mark.parametrize("promise", [LocationsOnTileCentres(), WellFormedTrajectories()])
def test_good_trajectories_pass(promise: Any) -> None:
    assert promise.check(_points()).holds
    assert promise.check(_points(user_id=[2, 2, 1])).holds


def test_a_position_off_the_centres() -> None:
    assert not LocationsOnTileCentres().check(_points(lon=[2.0, 3.000001, 2.0])).holds


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"trajectory_id": [7, 7, 8]}, "numbered"),
        ({"trajectory_id": [2, 2, 1]}, "numbered"),
        ({"trajectory_id": [1, 2, 1]}, "numbered"),
        ({"timestamp": pa.array([60_000, 0, 0], pa.timestamp("ms", tz="UTC"))}, "times fall"),
        ({"lat": [48.0, 98.0, 48.0]}, "globe"),
        ({"lat": [48.0, None, 48.0]}, "missing"),
        ({"name": ["x", "y", "z"]}, "columns"),
        ({"lat": None}, "columns"),
        ({"user_id": [1, 2, 1]}, "two people"),
        ({"user_id": [55, 55, 1]}, "people are not numbered"),
    ],
)
def test_ill_formed_trajectories(columns: dict[str, Any], fault: str) -> None:
    finding = WellFormedTrajectories().check(_points(**columns))
    assert not finding.holds and fault in finding.detail


def test_promises_survive_the_manifest() -> None:
    for promise in (FlowKAnonymity(k=7, counts="trips"), DisjointFlows(), LocationsOnTileCentres()):
        entry = json.loads(json.dumps({"name": promise.name, "parameters": promise.model_dump()}))
        assert guarantee_from_manifest(entry) == promise


@pytest.mark.parametrize(
    "entry", [{"name": "no-such", "parameters": {}}, {"name": "flow-k-anonymity", "parameters": {"k": 0}}]
)
def test_a_manifest_with_an_unknown_promise_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="cannot check"):
        guarantee_from_manifest(entry)


def test_names_are_unique_and_statements_are_sentences() -> None:
    assert len({g.name for g in GUARANTEES}) == len(GUARANTEES)
    for promise in (FlowKAnonymity(k=7, counts="trips"), DisjointFlows(), WellFormedFlows(), LocationsOnTileCentres()):
        assert promise.statement().endswith(".")
