"""Each checker goes red on a release that breaks its guarantee, and on nothing else."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from written_flows import AREAS, written

from crowdveil.errors import InputError
from crowdveil.guarantees import (
    GUARANTEES,
    BoundedVolumes,
    CombinationKAnonymity,
    DifferentialPrivacy,
    DisjointFlows,
    DisjointSectors,
    EveryLocationCounted,
    FlowKAnonymity,
    GeneralizationLimit,
    KDeltaAnonymity,
    LocationsOnTileCenters,
    MaxArea,
    MinTiles,
    NoOwnPoints,
    OriginalPoints,
    PeriodBudget,
    SectorKAnonymity,
    SegmentKAnonymity,
    SharedTilePairs,
    SumsOfParent,
    SuppressedSegments,
    SuppressedTrajectories,
    SuppressionBudget,
    SwappedTrajectories,
    TrajectoryKAnonymity,
    TrueVolumes,
    WellFormedFlows,
    WellFormedSectors,
    WellFormedTrajectories,
    guarantee_from_manifest,
)
from crowdveil.io.written_release import WrittenRelease

GOOD = [(0, "a", "b", 12, 10), (0, "b", "a", 30, 11), (3600, "ab", "c", 10, 10)]
EVERY = (
    FlowKAnonymity(k=7, k_unit="trips"), DisjointFlows(), SuppressionBudget(suppress=0.1, k=7),
    PeriodBudget(suppress=0.1, k=7, period="day"),
    GeneralizationLimit(tiles=9), MinTiles(tiles=2), MaxArea(km2=1.5),
    SumsOfParent(parent="hours", sha256="0" * 64), WellFormedFlows(), TrueVolumes(), BoundedVolumes(),
    LocationsOnTileCenters(), WellFormedTrajectories(),
    DifferentialPrivacy(epsilon=0.5, trips=2), TrajectoryKAnonymity(k=3, k_unit="people"),
    SegmentKAnonymity(k=3, k_unit="people"), SuppressedTrajectories(suppress=0.02, k=3, k_unit="people"),
    SuppressedSegments(suppress=0.02, k=3, k_unit="people", segment_s=300),
    CombinationKAnonymity(k=3, knowledge=2, interval_s=None, k_unit="people"), OriginalPoints(),
    SwappedTrajectories(swaps=1, k_unit="people"), NoOwnPoints(k_unit="people"),
    SharedTilePairs(min_group_size=2, tile_size_m=500, lon0=2.3, lat0=48.9, k_unit="trajectories"),
    KDeltaAnonymity(k=3, delta_m=500, k_unit="people"),
    SectorKAnonymity(k=5, k_unit="people"), DisjointSectors(), EveryLocationCounted(k=5), WellFormedSectors(),
)  # fmt: skip


@pytest.mark.parametrize("guarantee", [FlowKAnonymity(k=10, k_unit="people"), DisjointFlows(), WellFormedFlows()])
def test_a_good_release_passes(guarantee: Any) -> None:
    assert guarantee.check(written(GOOD)).holds


def test_k_is_compared_with_people_and_not_with_volume() -> None:
    guarantee = FlowKAnonymity(k=10, k_unit="people")
    finding = guarantee.check(written([*GOOD, (0, "c", "c", 500, 9)]))
    assert finding.violated and "1 below k" in finding.detail


@pytest.mark.parametrize(("suppressed", "holds"), [([0, None, 10], True), ([9], False), ([0, 1], False)])
def test_k_is_compared_with_suppressed_totals(suppressed: list[int | None], holds: bool) -> None:
    steps = [(3600 * i, 0, n) for i, n in enumerate(suppressed)]
    assert FlowKAnonymity(k=10, k_unit="people").check(written(GOOD, steps)).holds is holds


def test_a_missing_group_size_is_below_k() -> None:
    found = FlowKAnonymity(k=10, k_unit="people").check(written([*GOOD, (0, "c", "c", 500, None)]))
    assert found.violated and found.counts["small"] == 1


def test_k_needs_the_column_that_it_counts() -> None:
    with pytest.raises(InputError, match="no column trips"):
        FlowKAnonymity(k=10, k_unit="trips").check(written(GOOD))


@pytest.mark.parametrize(
    "row",
    [(0, "a", "b", 12, 10), (0, "ab", "b", 12, 10), (0, "a", "ab", 12, 10)],
    ids=["the same pair", "an origin that holds it", "a destination that holds it"],
)
def test_pairs_of_tiles_may_not_stand_twice_in_a_step(row: tuple[Any, ...]) -> None:
    finding = DisjointFlows().check(written([*GOOD, row]))
    assert finding.violated
    assert DisjointFlows().check(written([*GOOD, (7200, *row[1:])])).holds, "another step is another matter"


@settings(max_examples=tries(200))
@given(
    rows=st.lists(st.tuples(st.sampled_from([0, 3600]), *[st.sampled_from("abcd")] * 2), max_size=8),
    tiles=st.lists(st.sets(st.sampled_from("uvwxyz"), min_size=1), min_size=4, max_size=4),
)
def test_a_pair_twice_is_found_as_by_sets(rows: list[tuple[int, str, str]], tiles: list[set[str]]) -> None:
    of = dict(zip("abcd", tiles, strict=True))
    pairs = [(t, *pair) for t, o, d in rows for pair in itertools.product(of[o], of[d])]
    release = written([(*row, 12, 10) for row in rows], areas={name: sorted(t) for name, t in of.items()})
    assert DisjointFlows().check(release).holds == (len(pairs) == len(set(pairs)))


def test_the_same_moment_in_other_words_is_the_same_step() -> None:
    times = ["2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00+00:00"]
    release = written([(0, "a", "b", 12, 10), (0, "ab", "b", 12, 10)])
    release = replace(release, data=release.data.set_column(0, "t", pa.array(times)))
    assert DisjointFlows().check(release).violated


def test_an_area_that_is_not_listed_may_hold_any_pair() -> None:
    assert DisjointFlows().check(written([(0, "a", "nowhere", 12, 10)])).violated


def test_without_times_all_rows_are_one_step() -> None:
    rows = [(None, *GOOD[0][1:]), (None, *GOOD[0][1:])]
    assert DisjointFlows().check(written(rows)).violated


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
def test_ill_formedwritten(rows: list[tuple[Any, ...]], extra: dict[str, Any], fault: str) -> None:
    finding = WellFormedFlows().check(written(rows, **extra))
    assert finding.violated and fault in finding.detail


@pytest.mark.parametrize(
    ("areas", "fault"), [({**AREAS, "ab": []}, "no tiles"), ({**AREAS, "ab": ["a", "b", "a"]}, "a tile twice")]
)
def test_ill_formed_areas(areas: dict[str, list[str]], fault: str) -> None:
    finding = WellFormedFlows().check(written(GOOD, areas=areas))
    assert finding.violated and fault in finding.detail


def test_readable_names_that_repeat_or_are_long() -> None:
    for names in (["Astoria", "Astoria"], ["x" * 61, "Soho"]):
        release = written(GOOD)
        for feature, name in zip(release.features, names, strict=False):
            feature["properties"] = feature["properties"] | {"name": name}
        assert "readable names" in WellFormedFlows().check(release).detail


def test_two_areas_of_one_name() -> None:
    release = written(GOOD)
    release.features.append(release.features[0])
    assert "two areas have one id" in WellFormedFlows().check(release).detail


@pytest.mark.parametrize(
    ("budget", "suppressed", "holds"),
    [
        ({"suppress": 0.1}, 10, True),
        ({"suppress": 0.1}, 11, False),
        ({"suppress": 0.0}, 0, True),
        ({"suppress": 0.0}, 1, False),
        ({"suppress": "11trips"}, 11, True),
        ({"suppress": "11trips"}, 12, False),
        ({"suppress": 1}, 500, True),
    ],
)
def test_suppressed_totals_keep_the_budget(budget: dict[str, Any], suppressed: int, holds: bool) -> None:
    """Ninety trips are published; what the table of steps says of that does not matter."""
    release = written([(0, "a", "b", 90, 10), (3600, "a", "b", 10, 10)], [(0, 900, suppressed), (3600, 10, 0)])
    finding = SuppressionBudget(**budget, k=10).check(release)
    assert finding.holds is holds and finding.violated is not holds and "not given" not in finding.detail


@pytest.mark.parametrize(
    ("k_unit", "published", "people", "open_steps"),
    [("trips", 81, 81, 0), ("trips", 80, 80, 1), ("trips", 81, 40, 1), ("people", 81, 81, 1)],
    ids=["k - 1 are few enough", "k - 1 may be too many", "trips have weights", "people make many trips"],
)
def test_totals_that_are_not_given(k_unit: str, published: int, people: int, open_steps: int) -> None:
    rows = [(0, "a", "b", published, people), (3600, "a", "b", 30, 30)]
    finding = SuppressionBudget(suppress=0.1, k=10).check(written(rows, [(0, 1, None), (3600, 1, 0)], k_unit=k_unit))
    assert finding.counts["open"] == open_steps and ("not given in 1 time step" in finding.detail) == bool(open_steps)
    assert finding.outcome == ("not checked" if open_steps else "holds"), "one open step is not shown to hold"


def test_a_budget_without_given_totals_is_not_checked() -> None:
    finding = SuppressionBudget(suppress=0.1, k=10).check(written([(0, "a", "b", 12, 10)], [(0, 12, None)]))
    assert finding.outcome == "not checked"


def _points(**columns: Any) -> WrittenRelease:
    table = {
        "lat": [48.0, 48.0, 48.0],
        "lon": [2.0, 3.0, 2.0],
        "timestamp": pa.array([0, 60_000, 0], pa.timestamp("ms", tz="UTC")),
        "published_id": [1, 1, 2],
        **columns,
    }
    features = [{"properties": {"area": n, "tiles": [n], "lon": x, "lat": 48.0}} for n, x in (("a", 2.0), ("b", 3.0))]
    return WrittenRelease(Path("out"), pa.table({k: v for k, v in table.items() if v is not None}), None, features)


@pytest.mark.parametrize("guarantee", [LocationsOnTileCenters(), WellFormedTrajectories()])
def test_good_trajectories_pass(guarantee: Any) -> None:
    assert guarantee.check(_points()).holds
    assert guarantee.check(_points(user_id=[2, 2, 1])).holds


def test_a_position_off_the_centers() -> None:
    assert LocationsOnTileCenters().check(_points(lon=[2.0, 3.000001, 2.0])).violated


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"published_id": [7, 7, 8]}, "numbered"),
        ({"published_id": [2, 2, 1]}, "numbered"),
        ({"published_id": [1, 2, 1]}, "numbered"),
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
    assert finding.violated and fault in finding.detail


@pytest.mark.parametrize(("trips", "kept"), [(1, "one trip of each is kept"), (2, "2 trips of each are kept")])
def test_a_limit_of_trips_is_stated_in_words(trips: int, kept: str) -> None:
    assert kept in DifferentialPrivacy(epsilon=1, trips=trips, unit="person").statement()


@pytest.mark.parametrize(
    ("k_unit", "people", "suppressed", "fault"),
    [
        ("trips", 12, None, ""),
        ("people", 12, None, "group size"),
        ("trips", 11, None, "group size"),
        ("trips", 12, 3, "suppressed"),
    ],
)
def test_no_exact_figure_is_published_with_noise(k_unit: str, people: int, suppressed: int | None, fault: str) -> None:
    release = written([(0, "a", "b", 12, people)], [(0, 12, suppressed)], k_unit=k_unit)
    finding = DifferentialPrivacy(epsilon=1, trips=1).check(release)
    assert finding.outcome == ("violated" if fault else "not checked") and fault in finding.detail


def test_guarantees_survive_the_manifest() -> None:
    for guarantee in EVERY:
        parameters = json.loads(json.dumps(guarantee.model_dump()))
        assert guarantee_from_manifest(guarantee.name, parameters) == guarantee


@pytest.mark.parametrize(("name", "parameters"), [("no-such", {}), ("flow-k-anonymity", {"k": 0})])
def test_a_manifest_with_an_unknown_guarantee_is_refused(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="cannot check"):
        guarantee_from_manifest(name, parameters)


def test_names_are_unique_and_statements_are_sentences() -> None:
    assert len({g.name for g in GUARANTEES}) == len(GUARANTEES)
    assert {type(guarantee) for guarantee in EVERY} == set(GUARANTEES)
    for guarantee in EVERY:
        assert guarantee.statement().endswith(".")


@pytest.mark.parametrize(
    ("ring", "broken"),
    [
        ([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]], 0),
        ([[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]], 1),
        ([[179.5, 0], [180.5, 0], [180.5, 1], [179.5, 1], [179.5, 0]], 1),
    ],
)
def test_outlines_that_cross_themselves_or_leave_the_globe_are_found(ring: list[list[float]], broken: int) -> None:
    from dataclasses import replace

    from crowdveil.guarantees.base import broken_outlines

    geometry = {"type": "Polygon", "coordinates": [ring]}
    assert broken_outlines([{"geometry": geometry}, {"geometry": None}, {}]) == broken
    assert broken_outlines([{"geometry": {"type": "Polygon"}}]) == 1
    good = _points()
    features = [{**f, "geometry": geometry} for f in good.features]
    finding = WellFormedTrajectories().check(replace(good, features=features))
    assert finding.holds == (broken == 0)
