"""Releases held against the flows that they were made from: true ones pass, and each tampering is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from written_flows import honest, written

from crowdveil import testing
from crowdveil.guarantees import SuppressionBudget, TrueVolumes, overlaps
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.flows import Flows, trips_within
from crowdveil.model.zones import Zones

TILES = {"ab": ["a", "b"], "c": ["c"], "d": ["d"]}
ROWS: list[tuple[Any, ...]] = [(0, "ab", "c", 15, 3), (0, "c", "ab", 20, 4), (3600, "ab", "d", 9, 2)]
STEPS: list[tuple[Any, ...]] = [(0, 35, 5), (3600, 9, None)]


def _flows(k_unit: str = "people") -> Flows:
    """Two hours of flows between four tiles; person 0 makes both trips from a and from b to c."""
    flows = [
        (0, "a", "c", 5, [0, 1]), (0, "b", "c", 10, [0, 2]), (0, "c", "a", 20, [0, 1, 2, 3]), (0, "c", "d", 5, [5]),
        (3600, "b", "d", 9, [1, 7]), (3600, "d", "d", 1, [9]),
    ]  # fmt: skip
    t, o, d = (np.array([f[0] for f in flows]), *(np.array(["abcd".index(f[i]) for f in flows]) for i in (1, 2)))
    volume, crowd = np.array([f[3] for f in flows]), np.array([len(f[4]) for f in flows])
    made = Flows.from_rows(Zones.from_ids(list("abcd")), t, o, d, volume, crowd, step_s=3600)
    offsets = np.concatenate([[0], np.cumsum(crowd)])
    with_members = replace(made, person_offsets=offsets, person_ids=np.array([m for f in flows for m in f[4]]))
    return with_members if k_unit == "people" else Flows.from_rows(made.zones, t, o, d, volume, step_s=3600)


def _changed(rows: list[tuple[Any, ...]], at: tuple[int, int], value: Any) -> list[tuple[Any, ...]]:
    return [tuple(value if (i, j) == at else v for j, v in enumerate(row)) for i, row in enumerate(rows)]


def test_a_true_release_passes() -> None:
    finding = TrueVolumes().check_with_flows(written(ROWS, STEPS, TILES), _flows())
    assert finding.holds and finding.with_original, finding.detail
    assert TrueVolumes().check_with_flows(written(ROWS[::-1], STEPS[::-1], TILES), _flows()).holds, "in any order"


def test_without_the_original_it_is_not_checked() -> None:
    finding = TrueVolumes().check(written(ROWS, STEPS, TILES))
    assert finding.outcome == "not checked" and not finding.with_original and "files alone" in finding.detail


@pytest.mark.parametrize(
    ("rows", "steps", "fault"),
    [
        (_changed(ROWS, (0, 3), 16), STEPS, "1 volumes"),
        (_changed(ROWS, (0, 4), 4), STEPS, "1 group sizes"),  # 2 + 2, but one of them is the same person
        (_changed(ROWS, (0, 0), 3600), STEPS, "volumes"),
        (_changed(ROWS, (2, 2), "c"), STEPS, "1 volumes"),
        (_changed(ROWS, (2, 0), 7200), STEPS, "not in the original"),
        (_changed(ROWS, (2, 0), None), STEPS, "not in the original"),
        (ROWS, _changed(STEPS, (0, 2), 6), "1 time steps"),
        (ROWS, _changed(STEPS, (1, 2), 2), "1 time steps"),
        (ROWS, _changed(STEPS, (1, 1), 10), "1 time steps"),
        (ROWS, _changed(STEPS, (1, 0), 7200), "not in the original"),
        (ROWS, _changed(STEPS, (1, 0), 0), "listed twice"),
        (ROWS, STEPS[:1], "not listed"),
        (ROWS[:1] + ROWS[2:], STEPS, "1 time steps"),
        ([*ROWS, ROWS[0]], STEPS, "two rows"),
        (_changed(ROWS, (0, 1), "nowhere"), STEPS, "list of areas"),
    ],
)
def test_tampering_is_found(rows: list[tuple[Any, ...]], steps: list[tuple[Any, ...]], fault: str) -> None:
    finding = TrueVolumes().check_with_flows(written(rows, steps, TILES), _flows())
    assert finding.violated and fault in finding.detail, finding.detail


@pytest.mark.parametrize("tiles", [["a"], ["a", "b", "d", "x"], ["a", "x"]])
def test_an_area_with_other_tiles_is_found(tiles: list[str]) -> None:
    assert TrueVolumes().check_with_flows(written(ROWS, STEPS, {**TILES, "ab": tiles}), _flows()).violated


def test_unknown_group_sizes_are_not_checked() -> None:
    nameless = replace(_flows(), person_ids=None, person_offsets=None)
    rows = [*ROWS[:2], (3600, "d", "d", 1, 1)]
    steps = [STEPS[0], (3600, 1, 9)]
    finding = TrueVolumes().check_with_flows(written(rows, steps, TILES), nameless)
    assert finding.outcome == "not checked" and "group sizes of 2 rows were not checked" in finding.detail
    assert not TrueVolumes().check_with_flows(written(_changed(rows, (0, 4), 4), steps, TILES), nameless).violated
    assert TrueVolumes().check_with_flows(written(_changed(rows, (2, 4), 2), steps, TILES), nameless).violated


def test_trips_are_added_up() -> None:
    rows = [(t, o, d, v, v) for t, o, d, v, _ in ROWS]
    release = written(rows, STEPS, TILES, k_unit="trips")
    assert TrueVolumes().check_with_flows(release, _flows("trips")).holds
    wrong = written(_changed(rows, (1, 4), 19), STEPS, TILES, k_unit="trips")
    assert TrueVolumes().check_with_flows(wrong, _flows("trips")).violated


def test_data_without_times_is_one_step() -> None:
    flows = _flows("trips").where(np.arange(6) < 4)
    flows = replace(flows, t=flows.t[:1], offsets=flows.offsets[:2], step_s=None)
    rows = [(None, o, d, v, v) for _, o, d, v, _ in ROWS[:2]]
    assert TrueVolumes().check_with_flows(written(rows, [(None, 35, 5)], TILES, k_unit="trips"), flows).holds
    timed = written([(0, *r[1:]) for r in rows], [(0, 35, 5)], TILES, k_unit="trips")
    assert TrueVolumes().check_with_flows(timed, flows).violated


@settings(max_examples=tries(200))
@given(data=testing.flows(), cuts=st.lists(st.integers(1, 5)), k=st.integers(1, 12), draw=st.data())
def test_true_releases_pass_and_one_off_is_found(data: Flows, cuts: list[int], k: int, draw: st.DataObject) -> None:
    """With rows in any order, all steps at once or one by one, on maps or without."""
    release = honest(data, cuts, k)
    order = pa.array(draw.draw(st.permutations(range(len(release.data)))), pa.int64())
    release = replace(release, data=release.data.take(order))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps, "AT_ONCE", draw.draw(st.sampled_from([1, 1 << 21])))
        finding = TrueVolumes().check_with_flows(release, data)
        assert finding.holds, finding.detail
        if not len(release.data):
            return
        column = draw.draw(st.sampled_from(["volume", data.k_unit]))
        off = np.zeros(len(release.data), np.int64)
        off[draw.draw(st.integers(0, len(off) - 1))] = draw.draw(st.sampled_from([-1, 1]))
        wrong = _with_column(release, column, release.column(column) + off)
        finding = TrueVolumes().check_with_flows(wrong, data)
        assert finding.violated and f" 1 {'volumes' if column == 'volume' else 'group sizes'}" in finding.detail


def _with_column(release: WrittenRelease, column: str, values: Any) -> WrittenRelease:
    place = release.data.column_names.index(column)
    return replace(release, data=release.data.set_column(place, column, pa.array(values)))


@settings(max_examples=tries(150))
@given(data=testing.flows(), cuts=st.lists(st.integers(1, 5)), k=st.integers(1, 12), share=st.sampled_from([0, 0.3, 4]))
def test_the_budget_with_the_original_is_exact(data: Flows, cuts: list[int], k: int, share: float) -> None:
    release = honest(data, cuts, k)
    budget = {"suppress": "4trips"} if share > 1 else {"suppress": share}
    guarantee = SuppressionBudget(**budget, k=k)
    published = dict(zip(release.listed_steps()[0].tolist(), release.listed("published")[0].tolist(), strict=True))
    kept = True
    for step, t in enumerate(data.t.tolist()):
        here = slice(data.offsets[step], data.offsets[step + 1])
        volume, out = int(data.volume[here].sum()), published.get(t, 0)
        members = None if data.person_ids is None or data.person_offsets is None else set(
            data.person_ids[data.person_offsets[here.start] : data.person_offsets[here.stop]].tolist()
        )  # fmt: skip
        crowd = int(data.people[here].sum()) if members is None else len(members)
        most = int(share) if share > 1 else trips_within(share, volume)
        kept &= volume - out <= most or (out == 0 and crowd < k)
    finding = guarantee.check_with_flows(release, data)
    assert finding.holds == kept and finding.with_original
    alone = guarantee.check(release)
    assert not alone.violated or finding.violated, "what files alone refute is refuted with the original too"


def test_the_budget_finds_more_with_the_original() -> None:
    """The second hour suppresses 1 of 10 trips, by one person, and gives no total."""
    release = written(ROWS, STEPS, TILES)
    assert SuppressionBudget(suppress=0.15, k=2).check_with_flows(release, _flows()).holds
    assert SuppressionBudget(suppress=0.125, k=2).check_with_flows(release, _flows()).holds
    assert SuppressionBudget(suppress=0.1, k=2).check_with_flows(release, _flows()).violated
    nothing = written(ROWS[:2], STEPS[:1], TILES)
    assert SuppressionBudget(suppress=0.15, k=4).check_with_flows(nothing, _flows()).holds, "three people in all"
    assert SuppressionBudget(suppress=0.15, k=3).check_with_flows(nothing, _flows()).violated
    late = written(_changed(ROWS, (2, 0), 7200), STEPS, TILES)
    assert SuppressionBudget(suppress=1, k=3).check_with_flows(late, _flows()).violated


def test_a_step_below_k_is_counted_in_people_and_not_in_flows() -> None:
    """In the first hour five people make nine appearances; in the second, three people make three."""
    flows = _flows()
    nothing = written([], [], TILES)
    assert SuppressionBudget(suppress=0.1, k=6).check_with_flows(nothing, flows).holds
    finding = SuppressionBudget(suppress=0.1, k=5).check_with_flows(nothing, flows)
    assert finding.violated and (finding.counts["over"], finding.counts["below_k"]) == (1, 1)
    nameless = replace(flows, person_ids=None, person_offsets=None)
    assert SuppressionBudget(suppress=0.1, k=5).check_with_flows(nothing, nameless).holds, "four people are sure"
    assert SuppressionBudget(suppress=0.1, k=4).check_with_flows(nothing, nameless).violated


def test_a_person_in_two_flows_of_a_row_is_one_person_and_two_trips() -> None:
    """Everybody made each trip once, so that volumes and people of single flows are equal; those of a row are not."""
    zones = Zones.from_ids(["a", "b", "c"])
    both = np.array([0, 1], np.int32)
    ones = np.ones(2, np.int64)
    flows = Flows(
        zones, np.zeros(1, np.int64), np.array([0, 2]), both, np.array([2, 2], np.int32), ones, ones, "people", 3600,
        person_offsets=np.array([0, 1, 2]), person_ids=np.array([7, 7]),
    )  # fmt: skip
    finding = TrueVolumes().check_with_flows(written([(0, "ab", "c", 2, 1)]), flows)
    assert finding.holds, finding.detail
    assert TrueVolumes().check_with_flows(written([(0, "ab", "c", 1, 1)]), flows).violated
