"""SID and AID against their definition, on releases that change nothing, everything, or a known part."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import ParameterError
from crowdveil.experiments.movers import make_movers
from crowdveil.experiments.network import street_grid
from crowdveil.measures.base import MeasureRequest, scores
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.range_queries import RangeQueryParams, answers, draw_queries, mean_distortion
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import rows
from crowdveil.registry import find_measure
from crowdveil.testing import trajectories

NAMES = ("sid", "aid")
FEW = RangeQueryParams(queries=400, radius_m=2000)


@pytest.fixture(scope="module")
def movers() -> Trajectories:
    return make_movers(street_grid(2, side=20), 150, seed=5)


def released(data: Trajectories, keep: Any = slice(None), north: float = 0.0, later: int = 0) -> TrajectoryRelease:
    kept = np.zeros(len(data), np.bool_)
    kept[keep] = True
    left = data.where(kept)
    return TrajectoryRelease(left.lon, left.lat + north, left.t + later, left.offsets)


def value(name: str, compared: TrajectoryComparison, params: RangeQueryParams = FEW) -> np.ndarray:
    found = find_measure(name).of(compared, params)
    assert found.shape == (1, len(params.windows))
    return found[0]


def test_a_release_that_changes_nothing_has_no_distortion(movers: Trajectories) -> None:
    compared = TrajectoryComparison(movers, released(movers))
    for name in NAMES:
        np.testing.assert_array_equal(np.nan_to_num(value(name, compared)), 0)


def test_a_release_far_away_or_empty_has_a_distortion_of_one(movers: Trajectories) -> None:
    for gone in (released(movers, north=1.0), released(movers, later=10**6), released(movers, keep=[])):
        compared = TrajectoryComparison(movers, gone)
        assert (value("sid", compared)[1:] > 0.1).all()


def test_half_of_every_group_is_half_of_the_answers(movers: Trajectories) -> None:
    twice = released(movers, keep=np.arange(150))
    doubled = TrajectoryRelease(
        *(np.tile(c, 2) for c in (twice.lon, twice.lat, twice.t)),
        np.concatenate([twice.offsets, twice.offsets[-1] + twice.offsets[1:]]),
    )
    compared = TrajectoryComparison(movers, doubled)
    for name in NAMES:
        # A query that finds nobody on either side has no distortion, any other has one half.
        both = zip(*answers(compared, FEW), strict=True)
        found = [np.mean(a[NAMES.index(name)] > 0) for a, _ in both]
        np.testing.assert_allclose(value(name, compared)[1], 0.5 * found[1])


@settings(max_examples=tries(30))
@given(trajectories(), st.sampled_from(["data", "box"]), st.integers(0, 3))
def test_means_are_those_of_the_definition(data: Trajectories, centers: Any, seed: int) -> None:
    params = RangeQueryParams(queries=12, radius_m=3000, windows_s="0,400,900", centers=centers, seed=seed)
    compared = TrajectoryComparison(data, released(data, keep=slice(0, None, 2), north=0.003, later=20))
    for name in NAMES:
        for w, found in enumerate(value(name, compared, params)):
            each = []
            for q in range(12):
                counts = [side[name.startswith("aid")][q] for side in (a[w] for a in answers(compared, params))]
                if max(counts) > 0:
                    each.append(Fraction(int(abs(counts[0] - counts[1])), int(max(counts))))
                else:
                    each.append(Fraction(0))
            assert found == pytest.approx(float(sum(each) / len(each)))


def test_queries_are_as_asked(movers: Trajectories) -> None:
    compared = TrajectoryComparison(movers, released(movers, later=-5))
    x, y, t = compared.paths.x, compared.paths.y, compared.paths.t
    assert t.min() == 0, "the release begins earlier, and windows begin with the original"
    params = RangeQueryParams(queries=20_000, radius_m=7, windows_s="0,300,12")
    for w, window in enumerate(params.windows):
        queries = draw_queries(compared, params, w)
        assert set(queries.radius) == set(range(8))
        assert (queries.begin <= queries.end).all()
        assert queries.begin.min() == 0 and queries.end.max() == window
        assert set(zip(queries.x, queries.y, strict=True)) <= set(zip(x, y, strict=True))
        assert (queries.begin == np.floor(queries.begin)).all()
        assert queries.begin.mean() == pytest.approx(window / 3, rel=0.05)
        assert queries.end.mean() == pytest.approx(window * 2 / 3, rel=0.05)
    box = draw_queries(compared, params.model_copy(update={"centers": "box"}), 0)
    for column, of in ((box.x, x), (box.y, y)):
        assert of.min() <= column.min() and column.max() <= of.max()
        assert column.mean() == pytest.approx((of.min() + of.max()) / 2, abs=0.02 * np.ptp(of))
        assert np.ptp(column) > 0.99 * np.ptp(of)


def test_a_seed_asks_the_same_queries_and_another_asks_others(movers: Trajectories) -> None:
    release = released(movers, keep=slice(0, 100))
    found = [
        value("sid", TrajectoryComparison(movers, release), FEW.model_copy(update={"seed": seed})) for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0][1:] != found[2][1:]).all()


def test_both_share_the_answers(movers: Trajectories, monkeypatch: pytest.MonkeyPatch) -> None:
    from crowdveil.solve.trajectory.path_tree import PathTree

    asked = []
    counts = PathTree.counts
    monkeypatch.setattr(PathTree, "counts", lambda self, queries: (asked.append(1), counts(self, queries))[1])  # type: ignore[func-returns-value]
    compared = TrajectoryComparison(movers, released(movers, keep=slice(0, 100)))
    for name in NAMES:
        value(name, compared)
    assert len(asked) == 2 * len(FEW.windows)
    other = compared.with_release(released(movers, keep=slice(0, 50)))
    found = [value(name, other) for name in NAMES]
    assert len(asked) == 3 * len(FEW.windows), "the original is not asked again"
    alone = TrajectoryComparison(movers, other.release)
    np.testing.assert_array_equal(found, [value(name, alone) for name in NAMES])


def test_scores_have_a_column_a_window(movers: Trajectories) -> None:
    compared = TrajectoryComparison(movers, released(movers, keep=slice(0, 100)))
    found = scores(MeasureRequest.of(find_measure("sid"), {"queries": 50, "windows_s": "60,10000"}), compared)
    assert found.measure.parts == ("0 to 60 s", "0 to 10,000 s") and found.measure.name == "sid"
    assert found.by_step.shape == (1, 2)
    np.testing.assert_array_equal(found.mean, found.pooled)
    usual = find_measure("sid")
    assert usual.parts == ("0 to 0 s", "0 to 300 s", "0 to 600 s", "0 to 1,800 s", "0 to 3,600 s")
    assert usual.with_parts_of(None) is usual and usual.with_parts_of(RangeQueryParams()) is usual


def test_an_original_without_trajectories_has_no_value() -> None:
    nowhere, none = np.zeros(0), np.zeros(0, np.int64)
    empty = Trajectories(nowhere, nowhere, none, np.zeros(1, np.int64), none, none, none)
    compared = TrajectoryComparison(empty, TrajectoryRelease(nowhere, nowhere, none, np.zeros(1, np.int64)))
    assert np.isnan(value("sid", compared)).all()


def test_mean_distortion_by_hand() -> None:
    a, b = np.array([0, 4, 2, 0]), np.array([0, 3, 2, 5])
    assert mean_distortion(a, b) == pytest.approx((0 + 1 / 4 + 0 + 1) / 4)
    assert mean_distortion(a[:1], b[:1]) == 0


def test_parameters_are_rows_and_windows_take_many_forms() -> None:
    listed = {row.name: row for row in rows(RangeQueryParams)}
    assert list(listed) == ["queries", "radius_m", "windows_s", "centers", "seed"]
    assert listed["windows_s"].kind == "text" and listed["windows_s"].default == "0,300,600,1800,3600"
    assert listed["windows_s"].unit == "seconds" and listed["centers"].choices == ("data", "box")
    for form in ("0, 300", [0, 300], (0, 300), "00,300"):
        assert RangeQueryParams.checked({"windows_s": form}).windows == (0, 300)
    assert RangeQueryParams.checked({"windows_s": 60}).windows == (60,)


@pytest.mark.parametrize("wrong", ["", "a", "1,,2", "-5", "1.5", [], [1, 1], "5,05", "99999999999", None, True, "٣"])
def test_windows_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="windows_s: Expected different whole seconds"):
        RangeQueryParams.checked({"windows_s": wrong})


@pytest.mark.parametrize(
    "wrong", [{"queries": 0}, {"radius_m": -1}, {"centers": "sea"}, {"seed": -1}, {"radius_m": 1.5}]
)
def test_other_impossible_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        RangeQueryParams.checked(wrong)
