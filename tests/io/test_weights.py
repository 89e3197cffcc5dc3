"""Weights are summed exactly and rounded once, in any order of rows; all methods accept flows of 0 trips."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from given_boxes import with_boxes
from hypothesis import example, given
from hypothesis import strategies as st
from synthetic import grid_frame

import crowdveil
from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.guarantees import PeriodBudget, SuppressionBudget, TrueVolumes
from crowdveil.io.flows import read_flows, trips_to_flows
from crowdveil.io.release_writer import write_release
from crowdveil.io.written_release import read_release
from crowdveil.methods.base import Facts
from crowdveil.model.areas import Areas
from crowdveil.model.flows import WEIGHT_UNITS, Flows
from crowdveil.model.release import NOT_GIVEN
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones
from crowdveil.registry import all_methods
from crowdveil.run.flow_partitions import as_written
from crowdveil.run.verification import check, structural_guarantees
from crowdveil.solve.od.fixed_boxes import release_merged_flows
from crowdveil.solve.od.small_flows import Reporting
from crowdveil.solve.od.weights import rounded

IDS = [f"z{i}" for i in range(6)]


def _table(rows: list[tuple[int, int, str]]) -> pa.Table:
    origin, destination, weight = zip(*rows, strict=True)
    return pa.table({
        "origin": [IDS[o] for o in origin], "destination": [IDS[d] for d in destination], "w": list(weight),
        "user": [f"p{i}" for i in range(len(rows))],
    })  # fmt: skip


ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from(["0.01", "0.1", "0.3", "1.7", "12.345678", "0", "2"])),
    min_size=1, max_size=60,
)  # fmt: skip


@given(rows=ROWS, seed=st.integers(0, 99))
def test_sums_are_exact_and_rounded_once_in_any_order(rows: list[tuple[int, int, str]], seed: int) -> None:
    exact: dict[tuple[int, int], Decimal] = {}
    for o, d, w in rows:
        exact[o, d] = exact.get((o, d), Decimal(0)) + Decimal(w)
    exact = {pair: w for pair, w in sorted(exact.items()) if w > 0}
    shuffled = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
    if sum(exact.values()) < Decimal("0.5"):
        with pytest.raises(InputError, match=r"half a trip|volumes are zero"):
            read_flows(_table(rows), zones=Zones.from_ids(IDS), weight="w")
        return
    flows = read_flows(_table(rows), zones=Zones.from_ids(IDS), weight="w")
    again = read_flows(_table(shuffled), zones=Zones.from_ids(IDS), weight="w")
    assert flows.weight is not None and again.weight is not None
    assert list(zip(flows.origin.tolist(), flows.destination.tolist(), strict=True)) == list(exact)
    assert [Fraction(w, WEIGHT_UNITS) for w in flows.weight.tolist()] == [Fraction(w) for w in exact.values()]
    np.testing.assert_array_equal(flows.volume, again.volume)
    # The plain twin: what all flows up to one add up to, rounded half up, less the same before it.
    sums = np.cumsum([Fraction(w) for w in exact.values()])
    whole = [0, *((s + Fraction(1, 2)).__floor__() for s in sums)]
    assert flows.volume.tolist() == np.diff(whole).tolist()
    assert flows.exact_units == sum(Fraction(w) for w in exact.values()) * WEIGHT_UNITS


@example(units=[6 * 10**8] * 4, cuts=set())  # each rounded by itself, they would be off by 1.6 trips
@given(units=st.lists(st.integers(1, 5 * 10**9), min_size=1, max_size=50), cuts=st.sets(st.integers(1, 49), max_size=3))
def test_no_flow_and_no_run_of_flows_is_off_by_a_trip(units: list[int], cuts: set[int]) -> None:
    starts = np.array([0, *sorted(c for c in cuts if c < len(units))])
    ends = [*starts[1:].tolist(), len(units)]
    whole, rest = np.divmod(units, WEIGHT_UNITS)
    volume = rounded(whole, rest, np.array([*starts, len(units)]))
    for low, high in zip(starts.tolist(), ends, strict=True):
        for first in range(low, high):
            for last in range(first + 1, high + 1):
                off = abs(int(volume[first:last].sum()) - Fraction(sum(units[first:last]), WEIGHT_UNITS))
                assert off < 1 if first > low else off <= Fraction(1, 2)
    assert (volume >= 0).all()


def test_small_weights_keep_their_sum_and_the_loss_is_reported(tmp_path: Path) -> None:
    """The case of the report: weights of 0.01 turned 213 flows to 12, which were called all of them."""
    rng = np.random.default_rng(1)
    rows = [(int(o), int(d), "0.01") for o, d in rng.integers(0, 6, (1240, 2))]
    zones = Zones.from_ids(IDS)
    result = crowdveil.anonymize(
        _table(rows), tmp_path / "out", method="suppression", zones=zones, weight="w", user="user", k=10
    )
    cost = result.manifest["cost"]
    assert cost["published_volume"] == 12 and cost["suppressed_volume_percent"] == 0  # of so few trips, all or none
    assert cost["flows_rounded_to_0_percent"] == 50 and cost["rounding_loss_percent"] == 0
    assert any("12 of 12.4 (96.8 %)" in line for line in result.lines())
    assert any(
        "all volumes together differ from the weights by 0 %" in note for note in result.manifest["input"]["notes"]
    )
    assert all(finding.holds for _, finding in crowdveil.verify(tmp_path / "out", _table(rows), zones=zones))


@pytest.mark.parametrize(
    ("bad", "says"), [("1e10", "above 1,000,000,000"), ("1e-12", "below 0.000000001"), ("-1", "below zero")]
)
def test_weights_that_do_not_fit_are_refused(bad: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_flows(_table([(0, 1, "1"), (1, 2, bad)]), zones=Zones.from_ids(IDS), weight="w")


def test_sums_that_do_not_fit_and_weights_of_flows_are_refused() -> None:
    with pytest.raises(InputError, match="add up to more than"):
        read_flows(_table([(0, 1, "1e9")] * 10), zones=Zones.from_ids(IDS), weight="w")
    table = _table([(0, 1, "1")]).append_column("volume", pa.array([3]))
    with pytest.raises(InputError, match="volumes or weights"):
        read_flows(table, zones=Zones.from_ids(IDS), weight="w")


def test_trips_in_memory_are_weighted_alike() -> None:
    rows = [(0, 1, "0.3"), (0, 2, "0.3"), (1, 2, "0.3"), (0, 1, "2.25")]
    o, d, w = zip(*rows, strict=True)
    zones = Zones.from_ids(IDS)
    made = trips_to_flows(Trips(zones, np.array(o), np.array(d), weight=np.array(w, float)))
    read = read_flows(_table(rows).drop_columns("user"), zones=zones, weight="w")
    assert made.volume.tolist() == read.volume.tolist() == [3, 0, 0]
    assert made.weight is not None and read.weight is not None and made.weight.tolist() == read.weight.tolist()


@st.composite
def weighted_flows(draw: Any) -> Flows:
    """Flows with weights of parts of a trip, some of them rounded to 0 trips; no time step is."""
    data: Flows = draw(testing.flows(max_tiles=8))
    weights = st.one_of(st.just(1), st.sampled_from([4 * 10**8, 6 * 10**8, 15 * 10**8]), st.integers(1, 9 * 10**9))
    weight = np.array(draw(st.lists(weights, min_size=len(data), max_size=len(data))), np.int64)
    weight[data.offsets[:-1][np.diff(data.offsets) > 0]] += WEIGHT_UNITS
    return replace(data, volume=rounded(weight // WEIGHT_UNITS, weight % WEIGHT_UNITS, data.offsets), weight=weight)


def _on_grid(data: Flows) -> Flows:
    """The same flows between cells of a grid, for methods that take no other zones."""
    frame = grid_frame(np.array([2.0, 2.01]), np.array([48.0, 48.01]), 100.0)
    cells = np.arange(len(data.zones), dtype=np.int32)
    return replace(data, zones=grid_zones(frame, cells % 3, cells // 3))


@pytest.mark.parametrize("name", [n for n, m in all_methods().items() if m.takes is Flows and n != "laplace"])
@given(data=weighted_flows(), k=st.integers(2, 8), small=st.booleans())
def test_every_method_copes_with_flows_of_no_trips(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: Flows, k: int, small: bool
) -> None:
    method = all_methods()[name]
    if name == "uniform":
        data = _on_grid(data)
    if name == "fixed":
        data = with_boxes(data, 1)
    params = method.params.checked(
        {"k": k, "aggregate_small": small, **({"v_target": 5} if "v_target" in method.params.model_fields else {})}
    )
    try:
        release = method.run(data, params, np.random.default_rng(0), no_progress)
    except InputError:
        if not name.startswith("atg-"):
            raise
        return  # a budget that cannot be kept
    folder = tmp_path_factory.mktemp("out")
    release = release.with_rounded_people(k, least=False)
    written = read_release(folder, write_release(release, folder, "parquet", None))
    guarantees = (*method.guarantees(params, Facts.of(data)), *structural_guarantees(method, params))
    broken = [(p.name, f.detail) for p, f in check(written, guarantees, data) if f.violated]
    assert broken == []


def test_people_of_a_tile_without_a_whole_trip_are_counted_in_the_reported_row() -> None:
    """Two people go to the last tile but one, with weights that round to nothing: it has a crowd, and no row of its own."""
    zones = Zones(
        ids=np.array(IDS, object), lon=np.full(6, 2.0), lat=np.array([48.0, 48.0, 48.0, 48.01, 48.0, 48.01]),
        kind="centroids",
    )  # fmt: skip
    data = Flows(
        zones, np.array([1767225600]), np.array([0, 4]), np.zeros(4, np.int32), np.array([0, 3, 4, 5], np.int32),
        np.array([1, 0, 1, 0]), np.array([1, 2, 1, 1]), "people", step_s=3600,
        person_offsets=np.array([0, 1, 3, 4, 5]), person_ids=np.array([0, 0, 1, 0, 2]),
        weight=np.array([WEIGHT_UNITS + 1, 1, 6 * 10**8, 4 * 10**8]),
    )  # fmt: skip
    method = all_methods()["atg-soft"]
    params = method.params.checked({"k": 2, "aggregate_small": True, "v_target": 5})
    release = method.run(data, params, np.random.default_rng(0), no_progress)
    assert (release.volume.tolist(), release.people.tolist()) == ([2], [3])


@pytest.mark.parametrize("name", [n for n, m in all_methods().items() if m.takes is Flows and n != "laplace"])
@pytest.mark.parametrize("zero", [[0, 1, 3, 4], [5]])
def test_trips_of_a_flow_rounded_to_0_are_counted_for_no_other_origin(name: str, zero: list[int]) -> None:
    """Of five trips each from six zones to one, some weigh nothing: the crowd of a row is that of its own origins."""
    n = len(IDS)
    # On a line, so that neighbors are put together; each weighted flow alone has fewer trips than k.
    zones = Zones(np.array(IDS, dtype=object), 2 + np.arange(n) / 100, np.full(n, 48.0))
    weight = np.full(n, 6 * WEIGHT_UNITS)
    weight[zero] = 1
    data = Flows(
        zones, np.zeros(1, np.int64), np.array([0, n]), np.arange(n, dtype=np.int32), np.zeros(n, np.int32),
        weight // WEIGHT_UNITS, np.full(n, 5), weight=weight,
    )  # fmt: skip
    method = all_methods()[name]
    if name == "uniform":
        data = _on_grid(data)
    if name == "fixed":
        data = with_boxes(data, 1)
    for k in (5, 6, 10, 11, 15):
        for target in (1, 5, 10, 30):
            wanted = {"v_target": target} if "v_target" in method.params.model_fields else {}
            try:
                release: Any = method.run(
                    data, method.params.checked({"k": k, **wanted}), np.random.default_rng(0), no_progress
                )
            except InputError:
                if not name.startswith("atg-"):
                    raise
                continue  # a budget that cannot be kept
            areas = release.areas
            for area, trips in zip(release.origin.tolist(), release.people.tolist(), strict=True):
                assert k <= trips == 5 * (areas.offsets[area + 1] - areas.offsets[area])
            if not wanted:
                break


@given(
    tenths=st.lists(st.sampled_from([1, 4, 6, 17]), min_size=72, max_size=72),
    parts=st.lists(st.integers(0, 1), min_size=6, max_size=6),
)
def test_a_published_volume_is_the_sum_of_its_weights_whatever_the_areas(tenths: list[int], parts: list[int]) -> None:
    """The plain twin adds up fractions: an area of many origins is off by less than a trip, and a time step by half of one."""
    weight, offsets = np.array(tenths) * (WEIGHT_UNITS // 10), np.array([0, 36, 72])
    volume = rounded(weight // WEIGHT_UNITS, weight % WEIGHT_UNITS, offsets)
    o, d = (np.tile(x, 2).astype(np.int32) for x in np.divmod(np.arange(36), 6))
    data = Flows(Zones.from_ids(IDS), np.array([0, 3600]), offsets, o, d, volume, volume + 1, weight=weight)
    part = np.unique(parts[: len(data.zones)], return_inverse=True)[1].astype(np.int64)
    release = release_merged_flows(data, Areas.of_parts(data.zones, part), part, 1, Reporting())
    assert data.weight is not None
    exact: dict[tuple[int, int, int], Fraction] = {}
    for step, o, d, w in zip(data.step, part[data.origin], part[data.destination], data.weight.tolist(), strict=True):
        exact[step, o, d] = exact.get((step, o, d), Fraction(0)) + Fraction(w, WEIGHT_UNITS)
    origin, destination = (
        part[release.areas.tiles[release.areas.offsets[a]]] for a in (release.origin, release.destination)
    )
    published = dict(zip(zip(release.step, origin, destination, strict=True), release.volume.tolist(), strict=True))
    assert published.keys() <= exact.keys()
    for row, weight in exact.items():
        assert abs(published.get(row, 0) - weight) < 1
    for step in range(data.steps):
        weight = sum((w for row, w in exact.items() if row[0] == step), Fraction(0))
        assert abs(sum(v for row, v in published.items() if row[0] == step) - weight) <= Fraction(1, 2)


def test_origins_of_an_area_do_not_each_lose_a_part_of_a_trip() -> None:
    """Of 20 origins 0.4 trips each go to one zone: 8 trips, of which each flow alone is rounded to none."""
    n = 22
    zones = Zones(np.array([f"z{i}" for i in range(n)], dtype=object), np.arange(n) / 100, np.full(n, 48.0))
    weight = np.tile([4 * 10**8, 6 * 10**8], 20)
    volume = rounded(weight // WEIGHT_UNITS, weight % WEIGHT_UNITS, np.array([0, 40]))
    data = Flows(
        zones, np.zeros(1, np.int64), np.array([0, 40]), np.repeat(np.arange(20, dtype=np.int32), 2),
        np.tile(np.array([20, 21], np.int32), 20), volume, np.full(40, 5), weight=weight,
    )  # fmt: skip
    part = np.array([0] * 20 + [1, 2])
    release = release_merged_flows(data, Areas.of_parts(zones, part), part, 5, Reporting())
    assert volume.reshape(20, 2).sum(axis=0).tolist() == [0, 20]
    assert release.volume.tolist() == [8, 12]
    assert TrueVolumes().check_with_flows(as_written(release), data).holds
    wrong = replace(release, volume=np.array([10, 10]))
    assert TrueVolumes().check_with_flows(as_written(wrong), data).counts["volumes"] == 2
    # Flows that are rounded to 0 trips each are no loss to the budget of a method, which the files alone do not show.
    one = replace(release, offsets=np.array([0, 1]), origin=release.origin[1:], destination=release.destination[1:],
                  volume=release.volume[1:], people=release.people[1:], state=release.state[1:])  # fmt: skip
    one = one.with_suppressed(np.array([8]))
    for weighted, alone, outcome in ((True, "not checked", "holds"), (False, "violated", "violated")):
        budget = SuppressionBudget(suppress="0trips", k=5, weighted=weighted)
        assert budget.check(as_written(one)).outcome == alone
        assert budget.check_with_flows(as_written(one), data).outcome == outcome
    other = replace(one, origin=release.origin[:1], destination=release.destination[:1], volume=release.volume[:1])
    assert SuppressionBudget(suppress="11trips", k=5, weighted=True).check_with_flows(as_written(other), data).violated


def _two_to_each(weights: list[int], people: list[int]) -> Flows:
    """Flows of one time step in the order of their pairs: from each zone to the first two."""
    weight, offsets = np.array(weights), np.array([0, len(weights)])
    origin, destination = np.divmod(np.arange(len(weights), dtype=np.int32), 2)
    volume = rounded(weight // WEIGHT_UNITS, weight % WEIGHT_UNITS, offsets)
    zones = Zones(np.array(IDS, dtype=object), 2 + np.arange(len(IDS)) / 100, np.full(len(IDS), 48.0))
    return Flows(zones, np.zeros(1, np.int64), offsets, origin, destination, volume, np.array(people), weight=weight)


@pytest.mark.parametrize("name", ["joint", "atg-exact", "atg-coupled", "atg-dual"])
def test_rows_within_the_budget_are_not_lost_by_rounding(name: str) -> None:
    """Flows of almost no weight have all the trips, as they are rounded, and only they have k people."""
    half = WEIGHT_UNITS // 2
    data = _two_to_each([half - 1, 1] + [WEIGHT_UNITS - 1, 1] * 5, [1, 5] * 6)
    assert data.volume.tolist() == [0, 1] * 6
    method = all_methods()[name]
    params = method.params.checked({"k": 5, "suppress": 0})
    release: Any = method.run(data, params, np.random.default_rng(0), no_progress)
    assert release.volume.sum() == 6 and (release.people >= 5).all()
    written = as_written(release)
    assert TrueVolumes().check_with_flows(written, data).holds
    assert SuppressionBudget(suppress=0, k=5, weighted=True).check_with_flows(written, data).holds


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("name", ["joint", "atg-dual"])
def test_published_totals_keep_the_budget(name: str, seed: int) -> None:
    """The budget is kept by the published volumes as a share of the weights, not only by rounded flows."""
    rng, n, side = np.random.default_rng(seed), 400, 4
    ends, weight = rng.zipf(1.6, (n, 2)) % side**2, rng.integers(5, 40, n) / 10
    time = rng.integers(0, 6, n) * 3600
    ids = np.array([f"z{i}" for i in range(side**2)], dtype=object)
    zones = Zones(ids, 2 + np.arange(side**2) % side / 100, 48 + np.arange(side**2) // side / 100)
    table = pa.table({"origin": ids[ends[:, 0]], "destination": ids[ends[:, 1]], "weight": weight,
                      "time": pa.array(time * 1_000_000, pa.timestamp("us"))})  # fmt: skip
    options = {"k": 5, "step": "1h", "suppress": 0.1, "weight": "weight", "attack": False, "report": False}
    release = crowdveil.anonymize(table, method=name, zones=zones, **options).release
    for t in np.unique(time).tolist():
        total, published = weight[time == t].sum(), release.volume[release.t[release.step] == t].sum()
        assert total - published <= 0.1 * total + 1e-9


@pytest.mark.parametrize("budget", [SuppressionBudget, partial(PeriodBudget, period="all")])
def test_trips_of_a_row_rounded_to_0_are_not_suppressed_where_others_have_them(budget: Any) -> None:
    """Flows of 1, 0.4, 0.4 and 2 trips are rounded to 1, 0, 1 and 2, and their rows, in another order, to 1, 1, 0 and 2."""
    tenth = WEIGHT_UNITS // 10
    data = _two_to_each([10 * tenth, 4 * tenth, 4 * tenth, 20 * tenth], [5] * 4)
    assert data.volume.tolist() == [1, 0, 1, 2]
    areas = Areas.of_parts(data.zones, np.arange(len(IDS)))
    release = release_merged_flows(data, areas, np.arange(len(IDS)), 5, Reporting())
    budget = budget(suppress="0trips", k=5, weighted=True)
    assert budget.check_with_flows(as_written(release), data).holds
    # The same rows, but the other one of 0.4 trips is rounded up; then without both of them, which is a trip less.
    for volume, from_, to, outcome in (
        ([1, 1, 2], [0, 0, 2], [0, 2, 2], "holds"),
        ([1, 2], [0, 2], [0, 2], "violated"),
    ):
        some = replace(
            release, offsets=np.array([0, len(volume)]), origin=release.origin[from_], destination=release.destination[to],
            volume=np.array(volume), people=np.full(len(volume), 5), state=release.state[to],
        ).with_suppressed(np.array([4 - sum(volume)]))  # fmt: skip
        assert TrueVolumes().check_with_flows(as_written(some), data).holds
        assert budget.check_with_flows(as_written(some), data).outcome == outcome


@given(
    data=weighted_flows(), parts=st.lists(st.integers(0, 3), min_size=8, max_size=8), k=st.integers(2, 8),
    share=st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9]), total=st.booleans(),
)  # fmt: skip
def test_files_alone_never_contradict_the_original_on_the_budget(
    data: Flows, parts: list[int], k: int, share: float, total: bool
) -> None:
    """Rounding moves the sums of flows away from those of rows, by no more than the checker of the files allows for."""
    part = np.unique(parts[: len(data.zones)], return_inverse=True)[1].astype(np.int64)
    release = release_merged_flows(data, Areas.of_parts(data.zones, part), part, k, Reporting())
    if total:  # the totals of all time steps with rows are given, however small
        published, every = np.zeros(data.steps, np.int64), np.zeros(data.steps, np.int64)
        np.add.at(published, release.step, release.volume)
        np.add.at(every, data.step, data.volume)
        release = release.with_suppressed(np.where(published > 0, every - published, NOT_GIVEN))
    budget = SuppressionBudget(suppress=share, k=k, weighted=True)
    alone, exact = (
        budget.check(as_written(release)), budget.check_with_flows(as_written(release), data)
    )  # fmt: skip
    assert not (exact.holds and alone.violated)
    if (np.diff(release.offsets) > 0).all():  # files do not show a time step of which nothing is published
        assert not (exact.violated and alone.holds)


def test_noise_is_refused_for_weighted_trips(tmp_path: Path) -> None:
    table = _table([(0, 1, "5"), (1, 2, "7")])
    with pytest.raises(InputError, match="Leave out the weights"):
        crowdveil.anonymize(
            table, tmp_path / "out", method="laplace", zones=Zones.from_ids(IDS), weight="w", user="user"
        )
