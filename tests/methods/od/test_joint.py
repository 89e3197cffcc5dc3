from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import TILES, Plain, PlainDeviation, PlainExtent, PlainRectangles, on_hull, problems, with_trees
from plain_rivals import taxis
from synthetic import grid_around

from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, ParameterError
from crowdveil.experiments.profiles import make_profile
from crowdveil.io.flows import trips_to_flows
from crowdveil.methods.od.joint import JointParams, check_data, run
from crowdveil.model.flows import VISITED, CountedTiles, Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.release import REPORTED
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones
from crowdveil.solve.od.assignment import row_of_flows
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.dyadic_regions import DyadicRegions
from crowdveil.solve.od.region_space import RegionSpace


def _built(flows: Flows, k: int) -> BoxSpace:
    return BoxSpace.of(flows, 0, RegionSpace.trees(flows), k)


@st.composite
def scattered(draw: st.DrawFn) -> tuple[Flows, Trips]:
    """Trips between a few tiles somewhere in the plane."""
    n = draw(st.integers(1, 5))
    points = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=n, max_size=n))
    x, y = (np.array(c, float) / 100 for c in zip(*points, strict=True))
    zones = Zones(np.arange(n).astype(str), 2.0 + x, 48.0 + y, kind="centroids")
    rows = draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 9)), min_size=1, max_size=40)
    )
    o, d, who = (np.array(c) for c in zip(*rows, strict=True))
    trips = Trips(zones, o, d, person=who if draw(st.booleans()) else None)
    return trips_to_flows(trips, members=True), trips


@examples(200)
@given(problem=problems(), k=st.integers(2, 5))
def test_boxes_are_the_tightest_of_those_that_reach_k(problem: Any, k: int) -> None:
    flows, trips = problem
    plain = Plain(flows, trips, k)
    boxes = _built(flows, k)
    columns = (c.tolist() for c in (boxes.origin, boxes.destination, boxes.volume, boxes.crowd))
    found = {(a, b): (v, u) for a, b, v, u in zip(*columns, strict=True)}
    nodes = [(a, b) for a in range(len(flows.origin_tree)) for b in range(len(flows.destination_tree))]
    tightest = {plain.tightest(*n) for n in nodes if plain.publishable(*n)}
    assert found == {n: (len(plain.inside(*n)), len(set(plain.inside(*n)))) for n in tightest}
    assert len(boxes) == len(found)


@examples(150)
@given(problem=problems(), k=st.integers(2, 5), p=st.integers(0, 30), q=st.integers(0, 5))
def test_an_evaluation_is_the_best_of_all_partitions(problem: Any, k: int, p: int, q: int) -> None:
    flows, trips = problem
    everything = Plain(flows, trips, k).all()
    boxes = _built(flows, k)
    if not everything:
        assert len(boxes) == 0
        return
    got = boxes.solve_at(Fraction(p, q) if q else None)[:2]
    if q == 0:
        assert tuple(got[::-1]) == min((s, a) for a, s in everything)
    else:
        assert (q * got[0] + p * got[1], got[1]) == min((q * a + p * s, s) for a, s in everything)


@examples(200)
@given(problem=problems(), k=st.integers(2, 5), share=st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
def test_the_budget_is_kept_and_the_gap_is_within_its_bound(problem: Any, k: int, share: float) -> None:
    flows, trips = problem
    everything = Plain(flows, trips, k).all()
    release = run(flows, JointParams(k=k, suppress=f"{100 * share}%"), np.random.default_rng(0), no_progress)
    size = release.areas.size
    cost = int(((size[release.origin] + size[release.destination]) * release.volume).sum())
    suppressed = flows.total - int(release.volume.sum())
    if not everything:
        assert len(release) == 0
        return
    budget = int(share * flows.total + 1e-9)
    assert suppressed <= budget
    assert (cost, suppressed) in everything
    assert cost == min(a for a, s in everything if s <= budget)
    assert release.facts["certified_gap_percent_largest"] == 0


@examples(300)
@given(
    problem=problems(),
    k=st.integers(2, 4),
    share=st.sampled_from([0.0, 0.2, 0.6, 1.0]),
    tiles=st.integers(1, 3),
    inhabited=st.integers(0, 2),
    most=st.integers(1, 4),
)
def test_areas_as_large_as_wanted(problem: Any, k: int, share: float, tiles: int, inhabited: int, most: int) -> None:
    """Square kilometers are tiles here: each has one."""
    flows, trips = problem
    visited = {*trips.origin.tolist(), *trips.destination.tolist()}
    counting, least = (visited, inhabited) if inhabited else (set(range(TILES)), tiles)
    plain = PlainExtent(flows, trips, k, least, most, counting)
    flows = replace(flows, zones=_squares(), counted=CountedTiles(VISITED, flows.visited) if inhabited else None)
    params = JointParams(
        k=k,
        suppress=f"{100 * share}%",
        min_tiles=least,
        max_area_km2=most * 1.5,
    )
    everything, budget = plain.all(), int(share * flows.total + 1e-9)
    if len(counting) < least:
        return
    if not everything:
        assert len(run(flows, params, np.random.default_rng(0), no_progress)) == 0
        return
    if min(s for _, s in everything) > budget:
        with pytest.raises(InputError, match=f"fewer than {min(s for _, s in everything)} trips"):
            run(flows, params, np.random.default_rng(0), no_progress)
        return
    boxes = BoxSpace.of(flows, 0, RegionSpace.trees(flows, "generalization", params.extent), k)
    found = boxes.solve_for_budget(budget)
    assert (found.cost, found.suppressed) == min(
        (a, s) for a, s in everything if s <= budget and on_hull((a, s), everything)
    )
    assert boxes.cost_of(boxes.solve(budget)[0]) == min(a for a, s in everything if s <= budget)
    for report in (False, True):
        asked = params.model_copy(update={"aggregate_small": report})
        release = run(flows, asked, np.random.default_rng(0), no_progress)
        for row, area in enumerate(np.concatenate([release.origin, release.destination]).tolist()):
            held = set(release.areas.tiles[release.areas.offsets[area] : release.areas.offsets[area + 1]].tolist())
            assert len(held & counting) >= least
            assert len(held) <= most or release.state[row % len(release)] == REPORTED


def _squares() -> Zones:
    """Tiles of about 1.2 square kilometers each."""
    import shapely

    shapes = np.array([shapely.box(2 + 0.02 * i, 48, 2.0147 + 0.02 * i, 48.01) for i in range(TILES)])
    return Zones(np.arange(TILES).astype(str), 2 + 0.02 * np.arange(TILES), np.full(TILES, 48.0), shapes)


@pytest.mark.parametrize(("splits", "subject"), [("tree", "Ward trees"), ("dyadic", "dyadic splits")])
def test_zones_without_positions_are_refused(splits: Any, subject: str) -> None:
    one = np.zeros(1, np.int64)
    flows = trips_to_flows(Trips(Zones.from_ids(["a", "b"]), one, one + 1), members=True)
    with pytest.raises(InputError, match=f"^{subject} need the positions of the zones"):
        check_data(flows, JointParams(k=2, splits=splits))


def test_a_map_that_is_too_small_is_refused() -> None:
    one = np.ones(1, np.int64)
    flows = Flows.from_rows(Zones.from_ids(["a"]), 0 * one, (0 * one).astype(np.int32), np.zeros(1, np.int32), 20 * one)
    tree = Hierarchy.from_parents([-1], [0])
    with pytest.raises(InputError, match="whole map"):
        run(with_trees(flows, tree, tree), JointParams(min_tiles=2), np.random.default_rng(0), no_progress)


@examples(200)
@given(problem=problems(), k=st.integers(2, 5), p=st.integers(0, 30), q=st.integers(1, 5))
def test_reconstruction_weighs_cells(problem: Any, k: int, p: int, q: int) -> None:
    flows, trips = problem
    everything = PlainDeviation(flows, trips, k).all()
    boxes = BoxSpace.of(flows, 0, RegionSpace.trees(flows, "reconstruction"), k, "reconstruction")
    if not everything:
        assert len(boxes) == 0
        return
    a, s, _ = boxes.solve_at(Fraction(1000 * p, q))
    assert (q * a + 1000 * p * s, s) == min((q * x + 1000 * p * y, y) for x, y in everything)


@examples(200)
@given(problem=problems(), k=st.integers(2, 5), share=st.sampled_from([0.0, 0.1, 0.3, 0.8]))
def test_reconstruction_counts_suppressed_trips(problem: Any, k: int, share: float) -> None:
    """What is lost is the deviation of published cells and all of the suppressed ones."""
    flows, trips = problem
    everything, budget = PlainDeviation(flows, trips, k).all(), int(share * flows.total + 1e-9)
    if not everything:
        return
    boxes = BoxSpace.of(flows, 0, RegionSpace.trees(flows, "reconstruction"), k, "reconstruction")
    found = boxes.solve_for_budget(budget)
    lost = {(a + 1000 * s, s) for a, s in everything}
    best = min(a for a, s in lost if s <= budget)
    assert found.suppressed <= budget
    boxes.spend_slack(found, budget - found.suppressed)
    assert found.lower_bound(budget) <= best <= boxes.cost_of(found.choice) <= found.cost + 1000 * found.suppressed
    assert boxes.cost_of(boxes.solve(budget)[0]) <= 1.001 * best


@examples(100)
@given(problem=scattered(), k=st.integers(2, 5))
def test_reconstruction_over_rectangles(problem: Any, k: int) -> None:
    flows, trips = problem
    boxes = BoxSpace.of(flows, 0, RegionSpace.rectangles(flows, "reconstruction"), k, "reconstruction")
    regions = boxes.system.origins.regions
    made = list(zip(trips.origin.tolist(), trips.destination.tolist(), strict=True))
    for o, d, cost in zip(boxes.origin.tolist(), boxes.destination.tolist(), boxes.cost.tolist(), strict=True):
        cells = [made.count((i, j)) for i in regions.node_tiles(o).tolist() for j in regions.node_tiles(d).tolist()]
        exact = sum(abs(Fraction(v) - Fraction(sum(cells), len(cells))) for v in cells)
        assert cost == int(1000 * exact + Fraction(1, 2))


def test_a_person_with_many_trips_is_one_person() -> None:
    zones = Zones.from_ids(["a", "b"])
    tree = Hierarchy.from_parents([2, 2, -1], [0, 1, -1])
    # One person goes a→b and a→a five times each; another goes once.
    trips = Trips(zones, np.zeros(11, np.int32), np.array([1] * 5 + [0] * 5 + [1]), person=np.array([7] * 10 + [8]))
    flows = with_trees(trips_to_flows(trips, members=True), tree, tree)
    release = run(flows, JointParams(k=2, suppress=0), np.random.default_rng(0), no_progress)
    assert release.people.tolist() == [2] and release.volume.tolist() == [11]
    assert len(run(flows, JointParams(k=3), np.random.default_rng(0), no_progress)) == 0


def test_flows_with_people_but_without_person_ids_are_refused() -> None:
    zones = Zones.from_ids(["a"])
    one = np.ones(1, np.int64)
    flows = Flows.from_rows(zones, 0 * one, 0 * one, 0 * one, 20 * one, 15 * one)
    with pytest.raises(InputError, match="cannot be added up"):
        run(flows, JointParams(), np.random.default_rng(0), no_progress)


@pytest.mark.parametrize(
    ("text", "trips", "budget"),
    [
        ("10%", 200, 20),
        (0.1, 200, 20),
        ("12.5 %", 200, 25),
        (0, 9, 0),
        ("100%", 9, 9),
        (1.0, 9, 9),
        ("29%", 100, 29),
        (0.07, 10**15, 7 * 10**13),
    ],
)
def test_budgets(text: Any, trips: int, budget: int) -> None:
    assert JointParams(suppress=text).max_suppressed(trips) == budget


@pytest.mark.parametrize(
    "bad", ["110%", -1, 1, 1.5, "1", 10, "10", "ten", "nan", "", True, None, "-1trips", "1.5trips", f"{10**15}trips"]
)
def test_budgets_that_are_none(bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"a share of the trips such as 10% or 0\.1, or .* such as 500trips"):
        JointParams.checked({"suppress": bad})


def test_a_budget_is_a_number_of_trips() -> None:
    params = JointParams.checked({"suppress": "25 trips"})
    assert params.suppress == "25trips" and params.max_suppressed(200) == 25
    assert JointParams.checked(params.model_dump()) == params


@pytest.mark.parametrize("side_m", [20, 50, 200])
def test_areas_of_equal_tiles_are_those_of_their_number(side_m: int) -> None:
    """Tiles far below a hectare too have a cost: otherwise the whole map would be as good as any part of it."""
    square = grid_zones(grid_around(2.35, 48.85, side_m, 6, 6))
    origin, destination = np.random.default_rng(1).integers(0, len(square), (2, 1500))
    flows = trips_to_flows(Trips(square, origin, destination), members=True)
    by_number, by_area = (
        run(flows, JointParams(k=5, objective=objective), np.random.default_rng(0), no_progress)
        for objective in ("generalization", "area")
    )
    assert len(by_number) > 10
    assert by_number.volume.tolist() == by_area.volume.tolist()


def test_areas_need_outlines() -> None:
    zones = Zones.from_ids(["a"])
    one = np.ones(1, np.int64)
    flows = with_trees(
        Flows.from_rows(zones, 0 * one, 0 * one, 0 * one, 20 * one), *[Hierarchy.from_parents([-1], [0])] * 2
    )
    with pytest.raises(InputError, match="outlines"):
        run(flows, JointParams(objective="area"), np.random.default_rng(0), no_progress)


@pytest.mark.realdata
def test_taxis_by_hour_of_day(realdata: Any) -> None:
    """24 matrices of about 15,000 trips: the budget is kept in each, and the mean generalization is what it should be."""
    flows = taxis(realdata, "ward")
    release = run(flows, JointParams(k=10, suppress="10%"), np.random.default_rng(0), no_progress)
    size, means = release.areas.size, []
    for step in range(24):
        rows = slice(release.offsets[step], release.offsets[step + 1])
        volume = release.volume[rows]
        total = int(flows.volume[flows.offsets[step] : flows.offsets[step + 1]].sum())
        assert total - volume.sum() <= total // 10
        means.append(((size[release.origin[rows]] + size[release.destination[rows]]) * volume).sum() / volume.sum())
    assert np.mean(means) == pytest.approx(5.15, abs=0.05)


@examples(100)
@given(problem=scattered(), k=st.integers(2, 5), p=st.integers(0, 30), q=st.integers(0, 5))
def test_with_rectangles_too_an_evaluation_is_the_best_of_all(problem: Any, k: int, p: int, q: int) -> None:
    flows, trips = problem
    plain = PlainRectangles(flows.zones, trips, k)
    boxes = BoxSpace.of(flows, 0, RegionSpace.rectangles(flows), k)
    if len(set(plain.inside(plain.everything, plain.everything))) < k:
        assert len(boxes) == 0
        return
    got = boxes.solve_at(Fraction(p, q) if q else None)[:2]
    everything = plain.partitions(plain.everything, plain.everything)
    if q == 0:
        assert tuple(got[::-1]) == min((s, a) for a, s in everything)
    else:
        assert (q * got[0] + p * got[1], got[1]) == min((q * a + p * s, s) for a, s in everything)


@examples(60)
@given(problem=scattered(), k=st.integers(2, 4), p=st.integers(0, 30), block=st.sampled_from([1, 2, 4]))
def test_with_blocks_an_evaluation_is_the_best_of_what_is_left(problem: Any, k: int, p: int, block: int) -> None:
    """Small regions with one split, against all partitions of the same regions by plain sets."""
    flows, trips = problem
    system = RegionSpace.rectangles(flows).with_blocks(block)
    regions, plain = system.origins.regions, PlainRectangles(flows.zones, trips, k)
    assert isinstance(regions, DyadicRegions)
    sets = [frozenset(regions.node_tiles(i).tolist()) for i in range(len(regions))]
    for i, tiles in enumerate(sets):
        splits = range(regions.split_offsets[i], regions.split_offsets[i + 1])
        ways = {frozenset((sets[regions.first[s]], sets[regions.second[s]])) for s in splits}
        assert ways == plain.halves[tiles] if len(tiles) > block else len(ways) == min(len(plain.halves[tiles]), 1)
        assert ways <= plain.halves[tiles]
        plain.halves[tiles] = ways
    boxes = BoxSpace.of(flows, 0, system, k)
    if len(set(plain.inside(plain.everything, plain.everything))) < k:
        assert len(boxes) == 0
        return
    got = boxes.solve_at(Fraction(p))[:2]
    everything = plain.partitions(plain.everything, plain.everything)
    assert (got[0] + p * got[1], got[1]) == min((a + p * s, s) for a, s in everything)


def test_too_many_dyadic_boxes_fall_back_to_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: small regions get one split, rows stay those of their people, then the map is refused."""
    flows = make_profile("nyc", np.random.default_rng(2), 2)
    flows = flows.where(flows.origin % 4 == 0)
    system = RegionSpace.rectangles(flows)
    whole = BoxSpace.of(flows, 0, system, 10)
    params = {how: JointParams(k=10, splits="dyadic", time_partition=how) for how in ("steps", "stable")}
    words = 6 * len(whole) + 3 * len(whole.splits.kind) + len(whole.splits.link)
    monkeypatch.setattr("crowdveil.solve.od.box_building.MAX_WORDS", words)  # which leaves nothing for looking boxes up
    bounded = BoxSpace.of(flows, 0, system, 10)
    assert 0 < len(bounded) < len(whole)
    assert 6 * len(bounded) + 3 * len(bounded.splits.kind) + len(bounded.splits.link) < words
    alone = BoxSpace.of(flows.at_steps(np.array([0])), 0, system, 10)
    assert alone.cost.tolist() == bounded.cost.tolist()
    for asked in params.values():
        release = run(flows, asked, np.random.default_rng(0), no_progress)
        row = row_of_flows(flows, release)
        assert len(release) and release.people.min() >= 10
        held = row >= 0
        assert np.bincount(row[held], flows.volume[held], len(release)).tolist() == release.volume.tolist()
        assert flows.total - release.volume.sum() <= flows.total // 10
    monkeypatch.setattr("crowdveil.solve.od.box_building.MAX_WORDS", 100)
    with pytest.raises(InputError, match="splits"):
        BoxSpace.of(flows, 0, system, 10)


@examples(50)
@given(problem=scattered(), k=st.integers(2, 5))
def test_rectangles_hold_their_people(problem: Any, k: int) -> None:
    flows, trips = problem
    plain = PlainRectangles(flows.zones, trips, k)
    release = run(flows, JointParams(k=k, suppress=0.3, splits="dyadic"), np.random.default_rng(0), no_progress)
    offsets, tiles = release.areas.offsets, release.areas.tiles
    for o, d, v, u in zip(release.origin, release.destination, release.volume, release.people, strict=True):
        inside = plain.inside(
            frozenset(tiles[offsets[o] : offsets[o + 1]].tolist()),
            frozenset(tiles[offsets[d] : offsets[d + 1]].tolist()),
        )
        assert (len(inside), len(set(inside))) == (v, u)
    assert flows.total - release.volume.sum() <= int(0.3 * flows.total + 1e-9) or len(release) == 0


@pytest.mark.realdata
def test_the_search_between_corners_never_costs_more(realdata: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hour of the taxis: within the budget, not above what the multiplier found, and not below its bound."""
    monkeypatch.setattr("crowdveil.solve.od.boxes.SMALL_GAP_PERCENT", 0.0)
    flows = taxis(realdata)
    system, params = RegionSpace.trees(flows), JointParams(k=40)
    for step in range(flows.steps):
        boxes = BoxSpace.of(flows, step, system, 40)
        budget = params.max_suppressed(boxes.total)
        best = boxes.solve_for_budget(budget)
        boxes.spend_slack(best, budget - best.suppressed)
        before = boxes.cost_of(best.choice)
        choice = boxes.solve(budget).choice
        found = boxes.outcome(choice, left=False)
        assert best.lower_bound(budget) <= boxes.cost_of(choice) <= before
        assert boxes.total - int(found.volume.sum()) <= budget
