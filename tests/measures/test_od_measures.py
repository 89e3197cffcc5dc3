"""Every measure of flows against its definition on dense matrices, and on examples worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_measures import dense, overlapping_releases, rebuilt, releases, rows_of, tiles
from scipy.spatial.distance import cosine, jensenshannon

from crowdveil.measures.base import Measure, MeasureRequest, scores
from crowdveil.measures.od.comparison import Baseline, OdComparison
from crowdveil.measures.od.generalization import CostParams
from crowdveil.measures.od.reconstruction import mark_m
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import MEASURES, all_measures, find_measure
from crowdveil.testing import flows

NAN = float("nan")


def _of_flows() -> list[Measure]:
    return [measure for measure in all_measures().values() if measure.takes is Flows]


def _value(name: str, compared: OdComparison) -> Any:
    return find_measure(name).of(compared)


def _by_definition(name: str, v: np.ndarray, w: np.ndarray, apart: np.ndarray) -> float:
    """A measure of two dense arrays, whose last two axes are origins and destinations."""
    p, q = v / v.sum(), w / w.sum() if w.any() else np.full_like(w, NAN)
    match name:
        case "reconstruction-error":
            return float(np.abs(v - w).sum() / v.sum())
        case "distribution-distance":
            return float(np.abs(p - q).sum())
        case "common-part":
            return float(2 * np.minimum(v, w).sum() / (v.sum() + w.sum()))
        case "cosine-distance":
            return float(cosine(v.ravel(), w.ravel())) if w.any() else NAN
        case "jensen-shannon":
            return float(jensenshannon(p.ravel(), q.ravel(), 2)) if w.any() else NAN
        case "origin-margin":
            return float(np.abs(v.sum(axis=-1) - w.sum(axis=-1)).sum() / v.sum())
        case "destination-margin":
            return float(np.abs(v.sum(axis=-2) - w.sum(axis=-2)).sum() / v.sum())
        case "trip-length":
            from scipy.stats import wasserstein_distance  # slow to import

            lengths = np.broadcast_to(apart, v.shape).ravel()
            return float(wasserstein_distance(lengths, lengths, p.ravel(), q.ravel())) / 1000 if w.any() else NAN
        case "suppressed":
            return float(1 - w.sum() / v.sum())
    raise AssertionError(name)


DENSE = (
    "reconstruction-error", "distribution-distance", "common-part", "cosine-distance", "jensen-shannon", "origin-margin",
    "destination-margin", "trip-length", "suppressed",
)  # fmt: skip


@pytest.mark.parametrize("overlap", [False, True])
@settings(max_examples=tries(150))
@given(draw=st.data())
def test_what_compares_matrices_is_the_dense_twin(overlap: bool, draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(overlapping_releases(data) if overlap and data.steps else releases(data))
    compared = OdComparison.between(data, release)
    x, y = data.zones.xy
    apart = np.hypot(x[:, None] - x, y[:, None] - y)
    v = np.stack([dense(data, step) for step in range(data.steps)])
    w = np.stack([rebuilt(data, release, step) for step in range(data.steps)])
    for name in DENSE:
        # Lengths are read off a ruler; whatever ends between two marks is at most one mark off.
        near = {"abs": mark_m(data) / 1000 if name == "trip-length" else 1e-7, "nan_ok": True}
        wanted = [_by_definition(name, v[step], w[step], apart) for step in range(data.steps)]
        assert _value(name, compared).tolist() == pytest.approx(wanted, **near), name
        pooled = _by_definition(name, v, w, apart)
        assert _value(name, compared.all_steps())[0] == pytest.approx(pooled, **near), name


@given(st.data())
def test_measures_of_rows_are_the_plain_twin(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    compared = OdComparison.between(data, release)
    for step in range(data.steps):
        _check_rows(compared, step, rows_of(data, release, step), dense(data, step).sum())
    _check_rows(compared.all_steps(), 0, range(len(release)), data.total)


def _check_rows(compared: OdComparison, group: int, rows: Any, total: float) -> None:
    release, tiles_of = compared.release, lambda area: len(tiles(compared.release, area))
    sizes = [(tiles_of(release.origin[i]), tiles_of(release.destination[i]), int(release.volume[i])) for i in rows]
    published = sum(v for _, _, v in sizes)

    def mean(values: Any) -> float:
        return sum(values) / published if published else NAN

    x, y = compared.original.zones.xy

    def met(area: int) -> int:
        own = tiles(release, area)
        across, along = ((axis[own].min(), axis[own].max()) for axis in (x, y))
        return sum(across[0] <= a <= across[1] and along[0] <= b <= along[1] for a, b in zip(x, y, strict=True))

    cost = sum((o + d) * v for o, d, v in sizes)
    lost = 2 * 0.01 * len(compared.original.zones) * (total - published)
    wanted = {
        "generalization": mean((o + d) * v for o, d, v in sizes),
        "generalization-cost": cost + lost,
        "generalization-boxes": mean(
            (met(release.origin[i]) + met(release.destination[i])) * int(release.volume[i]) for i in rows
        ),
        "origin-tiles": mean(o * v for o, _, v in sizes),
        "destination-tiles": mean(d * v for _, d, v in sizes),
        "areas": len({a for i in rows for a in (release.origin[i], release.destination[i])}),
        "flows": len(rows),
    }
    for name, value in wanted.items():
        assert _value(name, compared)[group] == pytest.approx(value, nan_ok=True), name
    cost_params = CostParams(delta=1)  # a suppressed trip counts as one from the whole map to the whole map
    everything = cost + 2 * len(compared.original.zones) * (total - published)
    assert find_measure("G_δ").of(compared, cost_params)[group] == pytest.approx(everything)


@given(st.data())
def test_bounds_hold(draw: st.DataObject) -> None:
    """Margins can err no more than cells, nothing more than all trips twice; E + D of equal totals agree."""
    data = draw.draw(flows())
    compared = OdComparison.between(data, draw.draw(releases(data)))
    for at in (compared, compared.all_steps()):
        error, distance = _value("reconstruction-error", at), _value("distribution-distance", at)
        assert np.all(error <= 2 + 1e-9) and not np.any(distance > 2 + 1e-9)
        for side in ("origin-margin", "destination-margin"):
            assert np.all(_value(side, at) <= error + 1e-9)
        # With nothing lost beyond the published share, what is common follows from the error.
        lost = (at.volume + at.published - error * at.volume) / (at.volume + at.published)
        assert _value("common-part", at).tolist() == pytest.approx(lost.tolist())
        whole = at.volume == at.published
        assert distance[whole].tolist() == pytest.approx(error[whole].tolist())


def _hand(zones: Any = None) -> tuple[Flows, FlowRelease]:
    """Three tiles in a row, 1 km apart: 6 trips a→b, 2 a→c, 1 c→a; released: a→{b, c} with 8 trips."""
    from crowdveil.model.areas import Areas
    from crowdveil.model.projection import LocalProjection
    from crowdveil.model.release import NOT_GIVEN, PUBLISHED
    from crowdveil.model.zones import Zones

    lon, lat = LocalProjection(2.0, 48.0).to_globe(np.array([-1000.0, 0.0, 1000.0]), np.zeros(3))
    zones = zones or Zones(np.array(["a", "b", "c"]), lon, lat, kind="centroids")
    origin, destination = np.array([0, 0, 2], np.int32), np.array([1, 2, 0], np.int32)
    data = Flows.from_rows(zones, np.zeros(3, np.int64), origin, destination, np.array([6, 2, 1], np.int64))
    areas = Areas(zones, np.array(["a", "bc"], dtype=object), np.array([0, 1, 3]), np.array([0, 1, 2], np.int32))
    eight = np.array([8])
    release = FlowRelease(
        areas, data.t, np.array([0, 1]), np.array([0], np.int32), np.array([1], np.int32), eight, eight,
        np.array([PUBLISHED], np.uint8), np.array([NOT_GIVEN]), "trips",
    )  # fmt: skip
    return data, release


def test_worked_out_by_hand() -> None:
    """The reconstruction is 4 trips a→b and 4 a→c; the trip c→a is lost. |U| = 3, V = 9, V⁺ = 8."""
    compared = OdComparison.between(*_hand())
    wanted = {
        "generalization": 3,
        "generalization-cost": 24 + 2 * 0.01 * 3,
        "generalization-boxes": 3,
        "mean-duration": NAN,
        "confidence-coverage": NAN,
        "confidence-width": NAN,
        "origin-area": NAN,
        "destination-area": NAN,
        "origin-tiles": 1,
        "destination-tiles": 2,
        "suppressed": 1 / 9,
        "reconstruction-error": (2 + 2 + 1) / 9,
        "distribution-distance": (6 / 9 - 4 / 8) + (4 / 8 - 2 / 9) + 1 / 9,
        "common-part": 2 * (4 + 2) / (9 + 8),
        "cosine-distance": 1 - (6 * 4 + 2 * 4) / (np.sqrt(36 + 4 + 1) * np.sqrt(16 + 16)),
        "jensen-shannon": np.sqrt(
            (6 / 9 * np.log2(6 / 9 / (7 / 12)) + 2 / 9 * np.log2(2 / 9 / (13 / 36)) + 1 / 9
             + 0.5 * np.log2(0.5 / (7 / 12)) + 0.5 * np.log2(0.5 / (13 / 36))) / 2
        ),
        "origin-margin": 1 / 9,
        "destination-margin": (2 + 2 + 1) / 9,
        # Of 9 trips 6 are 1 km and 3 are 2 km long; of the 8, half and half: 1/6 of them must grow by 1 km.
        "trip-length": 1 / 6,
        "areas": 2,
        "flows": 1,
    }  # fmt: skip
    for name, value in wanted.items():
        near = 0.01 if name == "trip-length" else 1e-9
        assert _value(name, compared).tolist() == pytest.approx([value], abs=near, nan_ok=True), name
    assert np.isnan(_value("generalization-by-duration", compared)).all(), "there are no times"
    assert _value("t-closeness", compared).tolist() == [[0, 0]], "one origin has all trips"
    tables = {"t-closeness", "generalization-by-duration"}
    assert set(wanted) | tables == {m.name for m in _of_flows()}


def test_boxes_meet_tiles_that_they_do_not_hold() -> None:
    from crowdveil.measures.od.generalization import tiles_met
    from crowdveil.model.areas import Areas
    from crowdveil.model.zones import Zones

    # Four squares in a row; the box around the middles of the first and the third meets the second, and not the fourth.
    corners = [shapely.box(2.0 + i / 100, 48.0, 2.01 + i / 100, 48.01) for i in range(4)]
    lon, lat = 2.005 + np.arange(4) / 100, np.full(4, 48.005)
    zones = Zones(np.array(list("abcd"), dtype=object), lon, lat, polygons=np.array(corners, dtype=object))
    areas = Areas(zones, np.array(["ac", "d"], dtype=object), np.array([0, 2, 3]), np.array([0, 2, 3], np.int32))
    assert tiles_met(areas).tolist() == [3, 1]


def test_areas_in_square_kilometers() -> None:
    from synthetic import grid_frame

    from crowdveil.model.tessellation import grid_zones

    frame = grid_frame(np.array([2.0, 2.04]), np.array([48.0, 48.0]), 1000.0)
    data, release = _hand(grid_zones(frame))
    compared = OdComparison.between(data, release)
    assert _value("origin-area", compared).tolist() == pytest.approx([1.0])
    assert _value("destination-area", compared).tolist() == pytest.approx([2.0])


def test_zones_without_a_position_have_no_lengths_and_no_areas() -> None:
    from crowdveil.model.zones import Zones

    compared = OdComparison.between(*_hand(Zones.from_ids(["a", "b", "c"])))
    for name in ("trip-length", "origin-area", "destination-area"):
        assert np.isnan(_value(name, compared)).all()
    assert _value("origin-tiles", compared).tolist() == [1]


def test_means_leave_out_steps_in_which_nothing_was_published() -> None:
    data, release = _hand()
    later = Flows.from_rows(
        data.zones, np.array([0, 0, 0, 3600]), *(np.append(c, c[-1]) for c in (data.origin, data.destination, data.volume))
    )  # fmt: skip
    compared = OdComparison.between(later, release)
    found = {measure.name: scores(MeasureRequest.of(measure), compared) for measure in _of_flows()}
    assert found["generalization"].by_step.tolist() == pytest.approx([3, NAN], nan_ok=True)
    assert found["generalization"].mean == 3 and found["generalization"].pooled == 3
    assert found["reconstruction-error"].by_step[1] == 1 and found["common-part"].by_step[1] == 0
    assert found["reconstruction-error"].mean == pytest.approx((5 / 9 + 1) / 2)
    assert found["reconstruction-error"].pooled == pytest.approx(6 / 10)


def test_every_measure_is_documented_and_found_by_name_and_symbol() -> None:
    symbols = [m.symbol for m in all_measures().values() if m.symbol]
    assert len(set(symbols)) == len(symbols) and not set(symbols) & set(MEASURES)
    for name, measure in all_measures().items():
        assert measure.name == name and measure.doc.endswith(".") and measure.takes in (Flows, Trajectories)
        assert not measure.symbol or find_measure(measure.symbol) is measure


def test_the_guide_names_every_measure() -> None:
    from pathlib import Path

    guide = (Path(__file__).parents[2] / "docs" / "measures.md").read_text()
    for name, measure in all_measures().items():
        assert f"`{name}`" in guide and measure.symbol in guide, name


@settings(max_examples=tries(20), deadline=None)
@given(draw=st.data())
def test_releases_of_one_original_share_its_baseline(draw: st.DataObject) -> None:
    original = draw.draw(flows())
    baseline = Baseline(original)
    for release in (draw.draw(releases(original)), draw.draw(releases(original))):
        alone, shared = OdComparison.between(original, release), OdComparison.between(original, release, baseline)
        for one, other in ((alone, shared), (alone.all_steps(), shared.all_steps())):
            for name in ("reconstruction-error", "distribution-distance", "jensen-shannon", "suppressed"):
                assert np.array_equal(_value(name, one), _value(name, other), equal_nan=True)
