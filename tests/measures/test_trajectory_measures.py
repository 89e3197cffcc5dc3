"""Measures of trajectories against their plain twins, by hand, and what must hold of them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plain_trajectory_measures as plain
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.comparison.requested_measures import named_measures
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, MissingExtraError, ParameterError
from crowdveil.measures.base import MeasureRequest
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.distances import _around
from crowdveil.measures.trajectory.mobility import PARTS
from crowdveil.measures.trajectory.propensity import PropensityParams, Sequences
from crowdveil.model.arrays import take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones
from crowdveil.registry import find_measure, find_measures, find_method
from crowdveil.report.measurement import measured
from crowdveil.solve.trajectory.distances import DISTANCES, Contemporaries, Paths, make_distance
from crowdveil.solve.trajectory.distances import nearest as search
from crowdveil.testing import trajectories

T0 = 1_212_908_400


def _release(data: Trajectories, kept: Any, moved: float = 0.0) -> TrajectoryRelease:
    """Some trajectories, in an order, a little to the east."""
    rows, offsets = take_slices(data.offsets, np.asarray(kept, np.int64))
    return TrajectoryRelease(data.lon[rows] + moved, data.lat[rows], data.t[rows], offsets, source=np.asarray(kept))


@st.composite
def comparisons(draw: st.DrawFn) -> TrajectoryComparison:
    """Some of the trajectories, in any order, some of them with the points of another one."""
    data = draw(trajectories(max_trajectories=6, max_points=4))
    kept = draw(st.permutations(range(len(data))))[: draw(st.integers(1, len(data)))]
    points = [draw(st.sampled_from([i, draw(st.integers(0, len(data) - 1))])) for i in kept]
    made = _release(data, points, draw(st.sampled_from([0.0, 0.001, 0.01])))
    return TrajectoryComparison(data, replace(made, source=np.array(kept)))


def _value(name: str, compared: TrajectoryComparison, **params: Any) -> Any:
    asked = MeasureRequest.of(find_measure(name), params)
    found = asked.measure.of(compared, asked.params)[0]
    return found if asked.measure.parts else float(found)


def _plain(paths: Paths) -> list[plain.Path]:
    return [list(zip(*(c.tolist() for c in paths.one(i)), strict=True)) for i in range(len(paths))]


@settings(max_examples=tries(60))
@given(comparisons(), st.sampled_from(["spatiotemporal", "dtw", "discrete-frechet"]), st.sampled_from([0.0, 0.5]))
def test_distances_to_originals_and_linkage_are_those_of_the_plain_twin(
    compared: TrajectoryComparison, name: str, weight: float
) -> None:
    originals, published, source = _plain(compared.paths), _plain(compared.published), compared.source.tolist()
    far, given_ = plain.distance(name, weight), {"distance": name, "time_weight": weight}
    wanted = plain.rmse([(originals[i], path) for i, path in zip(source, published, strict=True)], far)
    n = len(published)
    assert _value("rmse", compared, **given_) == pytest.approx(wanted)
    assert _value("rmse-document", compared, **given_) == pytest.approx(wanted / math.sqrt(n))
    most = max(far(a, b) for a in originals for b in originals)
    normal = _value("normalized-rmse", compared, **given_)
    assert normal == pytest.approx(wanted / most) if most > 0 else math.isnan(normal)
    linked = plain.linkage(originals, published, source, far)
    assert _value("record-linkage", compared, **given_) == pytest.approx(linked)
    assert _value("record-linkage", compared, window=100, **given_) == pytest.approx(linked)


@settings(max_examples=tries(60))
@given(comparisons(), st.integers(1, 100), st.sampled_from(["spatiotemporal", "dtw"]))
def test_a_window_searches_originals_as_far_from_the_center(
    compared: TrajectoryComparison, window: int, name: str
) -> None:
    from crowdveil.kernels.trajectory.aggregation import mean_path

    n, distance = len(compared.original), make_distance(compared.paths, name, 0.5)
    center = mean_path(np.arange(n), compared.paths.points)
    far = distance.between(center, np.arange(n)).tolist()
    own = make_distance(compared.published, name, 0.5).between(center, np.arange(len(compared.published))).tolist()
    total = 0.0
    for j, true in enumerate(compared.source.tolist()):
        near = plain.nearest_in(far, own[j], max(math.ceil(n * window / 100), 1))
        found = dict(zip(near, distance.between(compared.published.one(j), np.array(near)).tolist(), strict=True))
        group = [i for i, d in found.items() if d == min(found.values())]
        total += 1 / len(group) if true in group else 0
    linked = _value("record-linkage", compared, distance=name, time_weight=0.5, window=window)
    assert linked == pytest.approx(100 * total / n)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(-1, 7), st.integers(1, 8))
def test_windows_hold_the_nearest_numbers(numbers: list[int], value: int, size: int) -> None:
    rising, size = sorted(float(number) for number in numbers), min(size, len(numbers))
    begin = int(_around(np.array(rising), np.array([float(value)]), size)[0])
    assert list(range(begin, begin + size)) == plain.nearest_in(rising, value, size)


@settings(max_examples=tries(30))
@given(comparisons())
def test_over_the_graph_who_cannot_be_reached_is_not_linked(compared: TrajectoryComparison) -> None:
    graph = Contemporaries(compared.paths)
    total = 0.0
    for j, true in enumerate(compared.source.tolist()):
        found = graph.between(compared.published.one(j), np.arange(len(compared.original)))
        group = np.flatnonzero((found == found.min()) & np.isfinite(found))
        total += 1 / len(group) if true in group else 0
    assert _value("record-linkage", compared, distance="graph") == pytest.approx(100 * total / len(compared.original))


@settings(max_examples=tries(60))
@given(comparisons(), st.booleans(), st.sampled_from([300, 1000]))
def test_mobility_is_that_of_the_plain_twin(compared: TrajectoryComparison, people: bool, tile_m: int) -> None:
    data, release = compared.original, compared.release
    if people:
        compared = TrajectoryComparison(data, replace(release, person=data.person[compared.source] + 1))
    who = [data.person if people else np.arange(len(data)), data.person[compared.source] if people else None]
    walks, tiles = [], []
    for side, paths, whose in ((data, compared.paths, who[0]), (release, compared.published, who[1])):
        individual = np.repeat(np.arange(len(side)) if whose is None else whose, np.diff(side.offsets)).tolist()
        points = sorted(zip(individual, side.t.tolist(), range(side.points), strict=True))
        of_each: dict[int, list[Any]] = {}
        for i, t, e in points:
            of_each.setdefault(i, []).append((float(side.lon[e]), float(side.lat[e]), t))
        walks.append(list(of_each.values()))
        cells = [(math.floor(x / tile_m), math.floor(y / tile_m)) for x, y in zip(paths.x, paths.y, strict=True)]
        tiles.append(plain.visits(list(zip(individual, cells, strict=True))))
    of_tiles = {
        "visits-per-location": lambda counts: sum(counts.values()),
        "uncorrelated-location-entropy": plain.entropy,
        "random-location-entropy": lambda counts: math.log2(len(counts)),
    }
    for name, of_tile in of_tiles.items():
        values = [{tile: of_tile(counts) for tile, counts in side.items()} for side in tiles]
        moved = sum(abs(values[0].get(t, 0) - values[1].get(t, 0)) for t in values[0].keys() | values[1].keys())
        _same(_value(name, compared, tile_m=tile_m), *(list(v.values()) for v in values), moved / len(values[0]))
    from scipy.stats import wasserstein_distance  # slow to import

    lengths = [[plain.straight_line(walk) for walk in side] for side in walks]
    _same(_value("straight-line-distance", compared), *lengths, wasserstein_distance(*lengths))
    squares = [[plain.square_displacement(walk, 300) for walk in side] for side in walks]
    _same(_value("mean-square-displacement", compared, after_s=300), *squares, wasserstein_distance(*squares))


def _same(found: Any, original: list[float], released: list[float], moved: float) -> None:
    before, after = np.mean(original), np.mean(released)
    shares = ((after - before) / before, moved / before) if before > 0 else (math.nan, math.nan)
    assert found.tolist() == pytest.approx([before, after, *shares], rel=1e-6, abs=1e-9, nan_ok=True)


def _by_hand() -> TrajectoryComparison:
    """Two people on the equator, in kilometers; one of three trajectories is published, moved 1 km east."""
    km = 180 / math.pi / 6371.0088
    data = Trajectories(
        np.array([0, 3, 0, 1, 0]) * km, np.zeros(5), T0 + np.array([0, 1800, 0, 7200, 0]), np.array([0, 2, 4, 5]),
        np.array(["a", "b", "c"], dtype=object), np.array([0, 1, 1]), np.array(["ann", "bob"], dtype=object),
    )  # fmt: skip
    return TrajectoryComparison(data, _release(data, [0], km))


def test_a_small_example_by_hand() -> None:
    compared = _by_hand()
    near = {"rel": 1e-2}  # the plane and the round earth differ by half a percent here
    assert _value("rmse", compared, time_weight=0) == pytest.approx(1000, **near)
    assert _value("rmse-document", compared, time_weight=0) == pytest.approx(1000, **near)
    # From a to c: 0 and 3 km, of two pairs; from b to c 1 km; from a to b 0 and 2 km.
    assert _value("normalized-rmse", compared, time_weight=0) == pytest.approx(1 / math.sqrt(4.5), **near)
    # The published one is 1 km from a, (1, 3) km from b and (1, 4) km from c: a is found, one of three.
    assert _value("record-linkage", compared, time_weight=0) == pytest.approx(100 / 3)
    assert _value("trajectories-removed", compared) == pytest.approx(2 / 3)
    assert _value("locations-removed", compared) == pytest.approx(3 / 5)
    # Trajectories are individuals: 3, 1 and 0 km; the published one 3 km.
    assert _value("straight-line-distance", compared)[:3].tolist() == pytest.approx([4 / 3, 3, 5 / 4])
    # After an hour: a is 3 km away; b was seen again two hours later only, so that it is where it was.
    assert _value("mean-square-displacement", compared).tolist() == pytest.approx([3, 9, 2, 2])
    # Tiles of 500 m: three points of a, b and c at 0 km, one of b at 1 km, one of a at 3 km; published at 1 and 4 km.
    assert _value("visits-per-location", compared, tile_m=500).tolist() == pytest.approx([5 / 3, 1, -2 / 5, 5 / 5])
    three = math.log2(3)
    assert _value("random-location-entropy", compared, tile_m=500).tolist() == pytest.approx([three / 3, 0, -1, 1])
    assert _value("uncorrelated-location-entropy", compared, tile_m=500)[0] == pytest.approx(three / 3)


def test_shares_of_no_trajectories_are_undefined() -> None:
    compared = _by_hand()
    nothing = compared.original.where(np.zeros(len(compared.original), np.bool_))
    for name in ("trajectories-removed", "locations-removed", "rmse", "sid", "propensity-score"):
        assert np.isnan(_value(name, TrajectoryComparison(nothing, _release(nothing, [])))).all()


def test_people_are_individuals_where_they_are_published() -> None:
    compared = _by_hand()
    release = replace(compared.release, person=np.array([1]))
    found = _value("straight-line-distance", TrajectoryComparison(compared.original, release))
    # Bob's points in order of time: b's first, c's only, b's last; c comes second where times are equal.
    assert found[:2].tolist() == pytest.approx([(3 + 1) / 2, 3])


def test_people_on_one_side_alone_are_not_individuals() -> None:
    compared = _by_hand()
    unknown = replace(compared.original, person=np.arange(3), people_ids=np.arange(3), k_unit="trajectories")
    alone = TrajectoryComparison(unknown, replace(compared.release, person=np.array([1])))
    assert _value("straight-line-distance", alone)[0] == pytest.approx(4 / 3)
    assert "the original has no people" in alone.notes.messages[0]


def test_sequences_are_padded_at_the_left_and_say_each_tile_once_in_a_row() -> None:
    km = 180 / math.pi / 6371.0088
    data = Trajectories(
        np.array([0.3, 0.4, 2.7, 0.3, 1.4]) * km, np.zeros(5), T0 + np.array([0, 10, 700, 1300, 0]), np.array([0, 4, 5]),
        np.arange(2), np.arange(2), np.arange(2),
    )  # fmt: skip
    sequences = Sequences.of(TrajectoryComparison(data, _release(data, [1])), PropensityParams(tile_m=1000))
    rows = sequences.padded().toarray() * sequences.largest
    west = rows[0, 0]
    assert rows.tolist() == [[west, west + 3, west], [0, 0, west + 1], [0, 0, west + 1]]
    assert sequences.published.tolist() == [0, 0, 1] and sequences.equal().tolist() == [0, 1, 1]
    timed = Sequences.of(
        TrajectoryComparison(data, _release(data, [1])), PropensityParams(tile_m=1000, time_interval_s=600)
    )
    level = sequences.largest  # the second tile is one level later, the third two
    later = timed.padded().toarray()[0] * timed.largest
    assert later.tolist() == pytest.approx([west, west + 3 + level, west + 2 * level]) and timed.largest == 3 * level


@settings(max_examples=tries(8))
@given(trajectories(), st.sampled_from(["logistic", "boosting"]), st.sampled_from([None, 100]))
def test_equal_data_cannot_be_distinguished(data: Trajectories, model: str, interval: int | None) -> None:
    compared = TrajectoryComparison(data, _release(data, np.arange(len(data))[::-1]))
    assert _value("propensity-score", compared, model=model, time_interval_s=interval) == pytest.approx(0, abs=1e-6)


def test_a_distant_release_is_distinguished_and_better_by_boosting() -> None:
    rng = np.random.default_rng(3)
    lat = 48 + rng.random((120, 4)) / 20
    data = Trajectories(
        2 + rng.random(480) / 20, lat.ravel(), T0 + np.tile(np.arange(4) * 60, 120), np.arange(0, 481, 4), np.arange(120),
        np.arange(120), np.arange(120),
    )  # fmt: skip
    made = _release(data, np.arange(120))
    squeezed = TrajectoryComparison(data, replace(made, lat=48.02 + (made.lat - 48) / 10))
    weak, strong = (_value("propensity-score", squeezed, model=m) for m in ("logistic", "boosting"))
    assert weak < 0.1 < 0.5 < strong <= 1
    north = TrajectoryComparison(data, replace(made, lat=made.lat + 0.06))
    assert _value("propensity-score", north) > 0.7
    # Suppression alone: the model says how many are missing, and no more; balanced it says nothing.
    few = TrajectoryComparison(data, _release(data, np.arange(0, 120, 10)))
    share = 12 / 132
    assert _value("propensity-score", few) == pytest.approx(4 * (share - 0.5) ** 2, abs=0.03)
    assert _value("propensity-score", few, balanced=True) < 0.05
    assert _value("propensity-score", few, seed=1) != _value("propensity-score", few, seed=2)


def test_the_largest_distance_of_many_is_exact_or_said_not_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, 300)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = offsets[-1]
    t = np.concatenate([np.sort(rng.random(size)) * 3600 for size in lengths])
    data = Paths.on_plane(rng.normal(0, 1e4, n), rng.normal(0, 1e4, n), t, offsets)  # type: ignore[arg-type]
    monkeypatch.setattr(search, "MAX_EXACT", 10)
    for weight in (0.0, 0.1, 10.0):
        distance = make_distance(data, "spatiotemporal", weight)
        every = np.arange(len(data))
        assert search.largest(distance) == (max(distance.from_one(i, every).max() for i in every), True)
    warped = make_distance(data, "discrete-frechet")
    found, exact = search.largest(warped)
    most = max(warped.from_one(int(i), every).max() for i in every)
    assert not exact and 0.7 * most < found <= most


def test_a_bound_that_is_not_sure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_EXACT", 1)
    compared = _by_hand()
    _value("normalized-rmse", compared, distance="dtw")
    assert "is at least" in compared.notes.messages[0]
    compared = _by_hand()
    _value("normalized-rmse", compared, time_weight="mobidatalab")
    assert [said.split()[:2] for said in compared.notes.messages] == [["the", "weight"]]


@pytest.mark.usefixtures("few_queries")
def test_nothing_published() -> None:
    compared = _by_hand()
    found = measured(compared.original, _release(compared.original, []), named_measures(None, Trajectories))
    assert found["RL"].pooled == 0 and found["trajectories-removed"].pooled == 1
    for name in ("rmse", "normalized-rmse", "propensity-score"):
        assert math.isnan(found[name].pooled)
    assert found["visits-per-location"].pooled.tolist() == pytest.approx([5 / 3, *[math.nan] * 3], nan_ok=True)
    assert found.as_json()["measures"]["rmse"]["value"] is None
    assert sum(line.endswith("–") for line in found.lines()) == 4 + 5 * 3


def _one_flow() -> Flows:
    zero = np.zeros(1, np.int32)
    return Flows.from_rows(Zones.from_ids(["a"]), np.zeros(1, np.int64), zero, zero, np.array([30], np.int64))


@pytest.mark.usefixtures("few_queries")
def test_without_a_pairing_some_are_left_out_or_refused() -> None:
    compared = _by_hand()
    release = replace(compared.release, source=None)
    found = measured(compared.original, release, named_measures(None, Trajectories))
    assert set(found.left_out) == {"rmse", "rmse-document", "normalized-rmse", "record-linkage"}
    with pytest.raises(InputError, match="pairing="):
        measured(compared.original, release, named_measures(["rmse"], Trajectories))
    with pytest.raises(InputError, match="does not have"):
        measured(compared.original, replace(release, source=np.array([3])), named_measures(["rmse"], Trajectories))
    flows = find_method("suppression")
    made = flows.run(_one_flow(), flows.params.checked({}), np.random.default_rng(0), no_progress)
    with pytest.raises(InputError, match="must both be flows or both be trajectories"):
        measured(compared.original, made, [])


def test_names_aliases_and_parameters() -> None:
    assert [m.name for m in find_measures("TrajectoriesRemoved")] == ["trajectories-removed", "locations-removed"]
    assert len(find_measures("ScikitMeasures")) == 5 and find_measure("Rsme").name == "rmse"
    asked = named_measures(["ScikitMeasures:tile_m=100", "rmse", "RMSE:distance=dtw", "rmse"], Trajectories)
    assert [a.label for a in asked] == [
        "visits-per-location:tile_m=100", "straight-line-distance", "uncorrelated-location-entropy:tile_m=100",
        "random-location-entropy:tile_m=100", "mean-square-displacement", "rmse", "rmse:distance=dtw",
    ]  # fmt: skip
    for name, sentence in {
        "rmse:distance": "as in rmse:distance=dtw",
        "rmse:tile=3": "Known are distance, time_weight",
        "TrajectoriesRemoved:k=3": "it has none",
        "rmse:distance=x": "rmse: distance: Expected",
        "record-linkage:window=0": "Expected a number above 0",
        "record-linkage:window=5:distance=graph": "no window",
        "E": "Expected a measure of trajectories",
        "nothing": "no measure nothing",
    }.items():
        with pytest.raises(ParameterError, match=sentence):
            named_measures([name], Trajectories)
    with pytest.raises(ParameterError, match="at least one"):
        named_measures([], Trajectories)


def test_without_scikit_learn_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    data = _by_hand().original
    with pytest.raises(MissingExtraError, match=r"crowdveil\[analysis\]"):
        _value("propensity-score", TrajectoryComparison(data, _release(data, [0, 1], 0.01)))


@pytest.mark.slow
@pytest.mark.realdata
def test_invariants_on_cabs(realdata: Path) -> None:
    from crowdveil import read_trajectories

    data = read_trajectories(realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv")
    rng = np.random.default_rng(0)
    same = measured(data, _release(data, rng.permutation(len(data))), named_measures(None, Trajectories))
    assert same["rmse"].pooled == same["normalized-rmse"].pooled == same["trajectories-removed"].pooled == 0
    assert same["propensity-score"].pooled == pytest.approx(0, abs=1e-9)
    assert same["RL"].pooled == 100  # no two of them are equal
    for name in (m.name for m in find_measures("ScikitMeasures")):
        assert same[name].pooled[2:].tolist() == pytest.approx([0, 0], abs=1e-12), name
    method = find_method("microaggregation")
    release = method.run(data, method.params.checked({"k": 3}), rng, no_progress)
    assert isinstance(release, TrajectoryRelease)
    found = measured(data, release, named_measures(["rmse", "RL", "RL:window=20", "ScikitMeasures"], Trajectories))
    compared = TrajectoryComparison(data, release)
    # Exact: the same as with every distance, and no group of three can be linked more than once.
    distance = make_distance(compared.paths, "spatiotemporal", 11.6167)
    every, linked = np.arange(len(data)), 0.0
    for j, true in enumerate(compared.source.tolist()):
        far = distance.between(compared.published.one(j), every)
        linked += (far[true] == far.min()) / np.count_nonzero(far == far.min())
    assert found["RL"].pooled == pytest.approx(100 * linked / len(data)) and found["RL"].pooled < 34
    assert found["record-linkage:window=20"].pooled <= found["RL"].pooled + 5
    assert all(found[m.name].measure.parts == PARTS for m in find_measures("ScikitMeasures"))
    assert {kind.name for kind in DISTANCES} >= {"spatiotemporal", "graph", "dtw", "discrete-frechet"}
