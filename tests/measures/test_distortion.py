"""What a release of trajectories lost, by a plain twin; and figures that are published only of groups."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from towns import people

from crowdveil.measures.rounding import DEFAULT_K, group_quantiles, round_down_to_groups, two_digits
from crowdveil.measures.trajectory import distortion
from crowdveil.measures.trajectory.distortion import displacements, measure_distortion
from crowdveil.model.arrays import take_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories


def _shifted(data: Trajectories, meters: float) -> TrajectoryRelease:
    """Publish every point a little further north."""
    lat = data.lat + meters / 111_195
    return TrajectoryRelease(data.lon, lat, data.t, data.offsets, source=np.arange(len(data)))


def test_moved_points_are_as_far_as_they_were_moved() -> None:
    data = people(np.random.default_rng(1))
    assert displacements(data, _shifted(data, 0)).max() < 1e-6
    assert displacements(data, _shifted(data, 800)) == pytest.approx(800, rel=0.01)


@given(st.integers(0, 2**31))
def test_the_position_at_a_time_is_that_on_the_line(seed: int) -> None:
    """The plain twin: numpy's interpolation, trajectory by trajectory."""
    rng = np.random.default_rng(seed)
    data = people(rng)
    source = rng.integers(0, len(data), 5)
    t = np.sort(rng.integers(data.t.min() - 50, data.t.max() + 50, 20))
    offsets = np.array([0, 3, 4, 9, 15, 20])
    t = np.concatenate([np.sort(t[a:b]) for a, b in pairwise(offsets)])
    lon, lat = rng.choice(data.lon, 20), rng.choice(data.lat, 20)
    found = displacements(data, TrajectoryRelease(lon, lat, t, offsets, source=source))
    x, y = data.xy
    px, py = data.projection.to_plane(lon, lat)
    for i, of in enumerate(source):
        own = slice(data.offsets[of], data.offsets[of + 1])
        # Of points at one time the last is meant; numpy's interpolation takes any.
        _, last = np.unique(data.t[own][::-1], return_index=True)
        kept = np.arange(data.offsets[of], data.offsets[of + 1])[::-1][last]
        if len(kept) < data.offsets[of + 1] - data.offsets[of]:
            continue
        here = slice(offsets[i], offsets[i + 1])
        wanted = np.hypot(
            px[here] - np.interp(t[here], data.t[own], x[own]), py[here] - np.interp(t[here], data.t[own], y[own])
        )
        assert found[here] == pytest.approx(wanted, abs=1e-6)


def test_figures_are_given_only_of_groups() -> None:
    data = people(np.random.default_rng(2))
    n = len(np.unique(data.person))
    given_, hidden = (measure_distortion(data, _shifted(data, 500), k) for k in (1, n))
    assert given_ is not None and hidden is not None
    assert given_["moved_m"]["middle"] == pytest.approx(500, abs=10) and given_["length_km"]["original"]["middle"] > 0
    assert set(hidden["length_km"]["original"].values()) == {None}, "the median has half of the people on each side"
    assert measure_distortion(data, replace(_shifted(data, 1), source=None), 2) is None


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=40), st.integers(1, 8))
def test_a_quantile_has_k_people_on_either_side(rows: list[tuple[int, int]], k: int) -> None:
    values, person = np.array([float(v) for v, _ in rows]), np.array([p for _, p in rows])
    for name, share in (("low", 0.1), ("middle", 0.5), ("high", 0.9)):
        value = sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]
        below, above = {p for v, p in rows if v <= value}, {p for v, p in rows if v >= value}
        found = group_quantiles(values, person, k)[name]
        assert found == (two_digits(value) if min(len(below), len(above)) >= k else None)


def test_a_rounded_number_of_people_never_shows_a_small_group() -> None:
    """The attacker knows how many people are published, none or at least k, and the rounded total: brute force."""
    for k in (2, 3, 5, 7, 10, 13):
        rounded = {n: round_down_to_groups(n, k) for n in range(k, 1300)}
        for total in (*range(k, 260), *range(970, 1130)):
            assert rounded[total] <= total
            fits = [n for n, r in rounded.items() if r == rounded[total]]
            for published in (0, *range(max(k, total - 40), total + 1)):
                suppressed = [n - published for n in fits if n >= published]
                assert not (min(suppressed) >= 1 and max(suppressed) < k), (k, total, published)


def test_two_digits() -> None:
    assert [two_digits(v) for v in (0.0, 0.0123, 1.26, 99.6, 123.0, 98_765.0)] == [0, 0.012, 1.3, 100, 120, 99_000]
    assert round_down_to_groups(10_003, None) == 10_000 and round_down_to_groups(57, None) == 50 and DEFAULT_K == 10


def test_figures_are_the_same_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    data = people(np.random.default_rng(4))
    release = _shifted(data, 300)
    whole, moved = measure_distortion(data, release, 2), displacements(data, release)
    for points in (1, 7, 50):
        monkeypatch.setattr(distortion, "CHUNK", points)
        assert measure_distortion(data, release, 2) == whole
        assert np.array_equal(displacements(data, release), moved)


@given(st.lists(st.sampled_from([[0], [1], [0, 1], [0, 0, 1], [0, 2], [0, 3], [0, 4]]), min_size=1, max_size=20))
def test_equal_trajectories_have_the_figures_of_each_alone(listed: list[list[int]]) -> None:
    """Some follow equal ones, some are equal to the end of those before them, and some differ in one column."""
    data = people(np.random.default_rng(7))
    at, offsets = np.concatenate([np.array(path) for path in listed]), np.cumsum([0, *map(len, listed)])
    source, points = (
        np.arange(len(listed)) % len(data),
        np.array([(0, 0, 0), (1, 1, 60), (2, 1, 60), (1, 2, 60), (1, 1, 90)]),
    )
    lon, lat, t = points[at].T
    release = TrajectoryRelease(2 + lon / 100, 48 + lat / 100, data.t[0] + t, offsets, source=source)
    together = distortion._published_figures(data, release, source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distortion, "CHUNK", 1)
        alone = distortion._published_figures(data, release, source)
    for found, wanted in ((together.walks, alone.walks), (together[1:], alone[1:])):
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_positions_of_input_points_are_those_of_their_degrees() -> None:
    data = people(np.random.default_rng(6))
    source = np.arange(len(data))[::-1]
    point, offsets = take_slices(data.offsets, source)
    columns = data.lon[point], data.lat[point], data.t[point]
    release = TrajectoryRelease(*columns, offsets, source=source, point=point)
    found = measure_distortion(data, release, 2)
    assert found == measure_distortion(data, replace(release, point=None), 2)
    assert found != measure_distortion(data, replace(release, point=np.roll(point, 5)), 2)
