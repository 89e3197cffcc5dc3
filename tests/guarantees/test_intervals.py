"""Checkers of rows with intervals of time, against plain twins, and an attacker who subtracts what overlaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, PeriodBudget, TrueVolumes, WellFormedFlows
from crowdveil.guarantees.base import Outcome
from crowdveil.io.flows import trips_to_flows
from crowdveil.io.release_reader import load_flow_release
from crowdveil.io.release_writer import write_release
from crowdveil.io.written_release import WrittenRelease, read_release
from crowdveil.methods.base import Facts
from crowdveil.methods.od.joint import METHOD, JointParams
from crowdveil.model.flows import WEIGHT_UNITS, Flows
from crowdveil.model.trips import Trips
from crowdveil.solve.od.weights import rounded

HOUR = 3600
TILES = ("a", "b", "c")


def _written(rows: list[tuple[int, int, set[int], set[int], int]], window: tuple[int, int] = (0, 24)) -> WrittenRelease:
    """Return a release in memory: rows of first and last hour, tiles of origin and destination, and volume."""
    sets = sorted({tuple(sorted(side)) for row in rows for side in row[2:4]})
    names = ["".join(TILES[t] for t in side) for side in sets]
    features = [
        {"properties": {"area": name, "tiles": [TILES[t] for t in side]}, "geometry": None}
        for name, side in zip(names, sets, strict=True)
    ]
    stamp = pa.timestamp("s", tz="UTC")
    volume = [row[4] for row in rows]
    data = pa.table(
        {
            "t": pa.array([HOUR * row[0] for row in rows], stamp),
            "until": pa.array([HOUR * row[1] for row in rows], stamp),
            "origin_area": [names[sets.index(tuple(sorted(row[2])))] for row in rows],
            "destination_area": [names[sets.index(tuple(sorted(row[3])))] for row in rows],
            "volume": pa.array(volume, pa.int64()),
            "trips": pa.array(volume, pa.int64()),
            "state": ["published"] * len(rows),
        }
    )
    steps = pa.table(
        {
            "t": pa.array([HOUR * window[0]], stamp), "until": pa.array([HOUR * window[1]], stamp),
            "published": [sum(volume)], "suppressed": pa.array([None], pa.int64()),
        }
    )  # fmt: skip
    return WrittenRelease(Path("memory"), data, steps, features)


SIDES = st.sets(st.integers(0, 2), min_size=1)
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 4), SIDES, SIDES, st.integers(1, 9)).map(
        lambda r: (r[0], r[0] + r[1], r[2], r[3], r[4])
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@examples(100)
@given(rows=ROWS)
def test_disjoint_in_three_dimensions(rows: Any) -> None:
    """The checker finds an overlap exactly where a cell of origin, destination and hour is in two rows."""
    cells = [(o, d, h) for low, high, a, b, _ in rows for o in a for d in b for h in range(low, high)]
    finding = DisjointFlows().check(_written(rows))
    assert finding.violated == (len(set(cells)) < len(cells))


@examples(100)
@given(rows=ROWS, seed=st.integers(0, 99))
def test_an_attacker_who_subtracts(rows: Any, seed: int) -> None:
    """Where rows overlap in time, a difference of a row and those inside it may be of a few trips; the checker finds all such."""
    rng = np.random.default_rng(seed)
    trips = [tuple(rng.integers(0, n) for n in (3, 3, 10)) for _ in range(30)]
    volumes = [sum(1 for o, d, h in trips if o in a and d in b and low <= h < high) for low, high, a, b, _ in rows]
    written = _written([(*row[:4], max(v, 1)) for row, v in zip(rows, volumes, strict=True)])
    gained = []
    for i, (low, high, a, b, _) in enumerate(rows):
        for j, (low2, high2, a2, b2, _) in enumerate(rows):
            inside = a2 <= a and b2 <= b and low <= low2 and high2 <= high
            if i != j and inside and volumes[i] > volumes[j]:
                gained.append(volumes[i] - volumes[j])
    if gained:
        assert DisjointFlows().check(written).violated


@examples(60)
@given(
    rows=ROWS,
    trips=st.lists(st.tuples(*(st.integers(0, n) for n in (2, 2, 9, 4))), min_size=1, max_size=40),
    off=st.booleans(),
)
def test_true_volumes(rows: Any, trips: Any, off: bool) -> None:
    """Rows have the trips and people of the original in their cells; one more is found."""
    o, d, h, who = (np.array(c) for c in zip(*trips, strict=True))
    zones = testing.Zones(np.array(TILES, object), np.arange(3) / 10, np.zeros(3), kind="centroids")
    flows = trips_to_flows(Trips(zones, o, d, t=HOUR * h, person=who), step="1h", members=True)
    kept: list[Any] = []
    for low, high, a, b, _ in rows:
        inside = [w for x, y, t, w in trips if x in a and y in b and low <= t < high]
        cells = {(x, y, t) for x in a for y in b for t in range(low, high)}
        if inside and not any(cells & seen for *_, seen in kept):
            kept.append((low, high, a, b, len(inside), len(set(inside)), cells))
    if not kept:
        return
    written = _written([row[:5] for row in kept])
    people = [row[5] for row in kept]
    people[0] += off
    data = written.data.drop_columns("trips").append_column("people", pa.array(people, pa.int64()))
    finding = TrueVolumes().check_with_flows(replace(written, data=data), flows)
    assert finding.violated == off
    volume = [row[4] for row in kept]
    volume[-1] += 1
    place = data.column_names.index("volume")
    wrong = data.set_column(place, "volume", pa.array(volume, pa.int64()))
    assert TrueVolumes().check_with_flows(replace(written, data=wrong), flows).violated


@pytest.mark.parametrize(
    ("rows", "window", "fault"),
    [
        ([(3, 3, {0}, {1}, 5)], (0, 24), "empty_interval"),
        ([(3, 30, {0}, {1}, 5)], (0, 24), "outside_windows"),
        ([(1, 2, {0}, {1}, 5)], (2, 24), "outside_windows"),
    ],
)
def test_intervals_that_are_not_in_order(rows: Any, window: Any, fault: str) -> None:
    finding = WellFormedFlows().check(_written(rows, window))
    assert finding.violated and finding.counts[fault] == 1


def test_tables_must_agree_on_intervals() -> None:
    whole = _written([(1, 3, {0}, {1}, 5)])
    assert WellFormedFlows().check(whole).holds
    without = replace(whole, data=whole.data.drop_columns("until"))
    assert WellFormedFlows().check(without).counts["no_intervals"] == 1
    without = replace(whole, steps_table=whole.steps.drop_columns("until"))
    assert WellFormedFlows().check(without).counts["no_windows"] == 1


def _made(data: Flows, **asked: Any) -> tuple[Any, JointParams]:
    params = JointParams(time_partition="adaptive", **asked)
    return METHOD.run(data, params, np.random.default_rng(0), no_progress), params


@st.composite
def days_of_flows(draw: st.DrawFn) -> Flows:
    """Flows in the first hours of two days."""
    data = draw(testing.flows(max_steps=6))
    return replace(data, step_s=HOUR, t=HOUR * (np.arange(data.steps) + 20 * (np.arange(data.steps) > 2)), tz="UTC")


@examples(40)
@given(
    data=days_of_flows(), k=st.integers(2, 5), weight=st.sampled_from([0, 1]), small=st.booleans(),
    longest=st.sampled_from(["2h", "24h"]), csv=st.booleans(),
)  # fmt: skip
def test_what_is_written_holds_and_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, data: Flows, k: int, weight: int, small: bool, longest: str, csv: bool,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("intervals")
    asked = {"longest": longest, "hour_weight": weight, "aggregate_small": small}
    release, params = _made(data, k=k, **asked)
    files = write_release(release, folder, "csv" if csv else "parquet", None)
    written = read_release(folder, files)
    for guarantee in (*METHOD.guarantees(params, Facts.of(data)), TrueVolumes(), WellFormedFlows()):
        finding = guarantee.check_with_flows(written, data)
        assert finding.outcome is not Outcome.VIOLATED, finding.detail
        assert not guarantee.check(written).violated
    again = load_flow_release(written, data)
    assert (again.intervals is None) == (release.intervals is None)
    for name in ("origin", "destination", "volume", "people", "state"):
        assert np.array_equal(getattr(again, name), getattr(release, name))
    if release.intervals is not None and again.intervals is not None:
        assert np.array_equal(again.intervals.t, release.intervals.t)
        assert np.array_equal(again.intervals.until, release.intervals.until)


@pytest.mark.parametrize(
    ("suppressed", "interval_s", "outcome"),
    [(4, 2 * HOUR, Outcome.HOLDS), (5, 2 * HOUR, Outcome.NOT_CHECKED)],
)
def test_more_than_the_budget_may_be_of_intervals_that_do_not_count(
    suppressed: int, interval_s: int, outcome: Outcome
) -> None:
    """4 of 40 trips are within 10 %; one more may be of another interval of two hours, whose group size is below k."""
    made = _written([(0, 2, {0}, {1}, 36)])
    steps = made.steps.set_column(3, "suppressed", pa.array([suppressed], pa.int64()))
    written = WrittenRelease(made.folder, made.data, steps, made.features)
    budget = PeriodBudget(suppress=0.1, k=5, period="day", interval_s=interval_s)
    assert budget.check(written).outcome is outcome


def _busy(hours: int, people: int) -> Flows:
    zones = testing.Zones(np.array(["a", "b"], object), np.array([2.0, 2.1]), np.array([48.0, 48.0]), kind="centroids")
    rows = [(h, 0, 1, i) for h in range(hours) for i in range(people)]
    h, o, d, who = (np.array(c) for c in zip(*rows, strict=True))
    return trips_to_flows(Trips(zones, o, d, t=HOUR * h, person=who), step="1h", members=True)


def test_a_budget_that_is_not_kept_is_found(tmp_path: Path) -> None:
    """Rows are taken out of the files: with the original, the checker finds the days with too little published."""
    data = _busy(48, 4)
    release, params = _made(data, k=4, hour_weight=0)
    written = read_release(tmp_path, write_release(release, tmp_path, "parquet", None))
    (budget,) = (g for g in METHOD.guarantees(params, Facts.of(data)) if isinstance(g, PeriodBudget))
    assert budget.check_with_flows(written, data).holds
    finding = budget.check_with_flows(replace(written, data=written.data.slice(0, 0)), data)
    assert finding.violated and finding.counts["over"] == 2


def test_hours_below_k_are_published_together(tmp_path: Path) -> None:
    """Two people an hour, others each hour: no hour has k, a few hours together have."""
    zones = testing.Zones(np.array(["a", "b"], object), np.array([2.0, 2.1]), np.array([48.0, 48.0]), kind="centroids")
    hour = np.repeat(np.arange(24), 2)
    trips = Trips(zones, np.zeros(48, int), np.ones(48, int), t=HOUR * hour, person=np.arange(48))
    data = trips_to_flows(trips, step="1h", members=True)
    release, params = _made(data, k=4)
    written = read_release(tmp_path, write_release(release, tmp_path, "csv", None))
    assert release.intervals is not None and set(release.intervals.steps.tolist()) == {2}
    assert FlowKAnonymity(k=4, k_unit="people").check(written).holds
    assert all(g.check_with_flows(written, data).holds for g in METHOD.guarantees(params, Facts.of(data)))
    assert written.data.column_names[:2] == ["t", "until"] and written.steps.column_names[:2] == ["t", "until"]


def test_a_person_in_several_hours_counts_once() -> None:
    """The same two people each hour: no number of hours has k."""
    zones = testing.Zones(np.array(["a", "b"], object), np.array([2.0, 2.1]), np.array([48.0, 48.0]), kind="centroids")
    trips = Trips(
        zones, np.zeros(48, int), np.ones(48, int), t=HOUR * np.repeat(np.arange(24), 2), person=np.arange(48) % 2
    )
    release, _ = _made(trips_to_flows(trips, step="1h", members=True), k=4)
    assert len(release) == 0 and release.step_table().num_rows == 0


def _weighted(rows: list[tuple[int, int, int, int, int]], steps: int) -> Flows:
    """Return flows of hours whose trips weigh thousandths, rounded in each time step as they are read."""
    zones = testing.Zones(np.array(TILES, object), np.array([2.0, 2.1, 2.2]), np.full(3, 48.0), kind="centroids")
    h, o, d, who, weight = (np.array(c) for c in zip(*rows, strict=True))
    data = trips_to_flows(Trips(zones, o, d, t=HOUR * (h % steps), person=who), step="1h", members=True)
    units = np.zeros(len(data), np.int64)
    pair = {key: i for i, key in enumerate(zip(data.t[data.step].tolist(), data.origin, data.destination, strict=True))}
    for row in zip((HOUR * (h % steps)).tolist(), o, d, weight.tolist(), strict=True):
        units[pair[row[:3]]] += row[3] * WEIGHT_UNITS // 1000
    return replace(data, weight=units, volume=rounded(*np.divmod(units, WEIGHT_UNITS), data.offsets))


TRIP = st.tuples(st.integers(0, 47), st.integers(0, 2), st.integers(0, 2), st.integers(0, 6), st.integers(1, 1700))


@examples(60)
@given(
    rows=st.lists(TRIP, min_size=20, max_size=120), steps=st.sampled_from([6, 30, 48]),
    share=st.sampled_from([0.0, 0.1, 0.4]), small=st.booleans(),
)  # fmt: skip
def test_weights_are_rounded_over_each_window(
    tmp_path_factory: pytest.TempPathFactory, rows: Any, steps: int, share: float, small: bool
) -> None:
    """All guarantees hold on the written files, against the original as it is read; totals are those of a plain twin."""
    data, folder = _weighted(rows, steps), tmp_path_factory.mktemp("out")
    release, params = _made(
        data, k=3, hour_weight=1, suppress=f"{100 * share}%", aggregate_small=small,
    )  # fmt: skip
    written = read_release(folder, write_release(release, folder, "parquet", None))
    checks = (*METHOD.guarantees(params, Facts.of(data)), WellFormedFlows(), TrueVolumes())
    findings = {g.name: g.check_with_flows(written, data) for g in checks}
    assert all(finding.holds for finding in findings.values()), findings
    assert release.intervals is not None or len(release) == 0
    exact = np.zeros(len(release.t), object)
    assert release.intervals is not None
    for flow, step in enumerate(data.step.tolist()):
        inside = (release.intervals.window_start <= data.t[step]) & (data.t[step] < release.intervals.window_end)
        exact[inside] += int(data.weight[flow]) if data.weight is not None else 0
    published = np.add.reduceat(np.append(release.volume, 0), release.offsets[:-1]) * (np.diff(release.offsets) > 0)
    given_ = release.suppressed >= 0
    total = np.array([(units + WEIGHT_UNITS // 2) // WEIGHT_UNITS for units in exact], np.int64)
    assert np.all((published + release.suppressed)[given_] == total[given_]) and np.all(published <= total)


def test_a_budget_of_weights_that_is_not_kept_is_found(tmp_path: Path) -> None:
    data = _weighted([(h, i % 3, i // 3, i, 700 + 13 * h) for h in range(24) for i in range(7)], 24)
    release, params = _made(data, k=4, hour_weight=1)
    written = read_release(tmp_path, write_release(release, tmp_path, "parquet", None))
    (budget,) = (g for g in METHOD.guarantees(params, Facts.of(data)) if isinstance(g, PeriodBudget))
    assert len(release) > 1 and budget.check_with_flows(written, data).holds
    assert budget.check_with_flows(replace(written, data=written.data.slice(0, 0)), data).violated
