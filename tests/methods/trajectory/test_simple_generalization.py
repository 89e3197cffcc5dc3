from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from crowdveil.engine.progress import no_progress
from crowdveil.errors import ParameterError
from crowdveil.methods.trajectory.simple_generalization import SimpleGeneralizationParams, run
from crowdveil.model.canonical import numbered
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones
from crowdveil.run import pipeline
from crowdveil.testing import trajectories


def _release(data: Trajectories, **parameters: Any) -> TrajectoryRelease:
    return run(data, SimpleGeneralizationParams(**parameters), np.random.default_rng(5), no_progress)


def _published(release: TrajectoryRelease, i: int) -> list[tuple[float, float, int]]:
    rows = slice(release.offsets[i], release.offsets[i + 1])
    return list(zip(release.lon[rows].tolist(), release.lat[rows].tolist(), release.t[rows].tolist(), strict=True))


@settings(deadline=None)
@given(data=trajectories(), size=st.sampled_from([100.0, 500.0, 2000.0]))
def test_every_point_moves_to_a_center_within_half_a_diagonal(data: Trajectories, size: float) -> None:
    release = _release(data, tile_size_m=size)
    assert len(release) == len(data) and release.points == data.points
    geod = Geod(ellps="WGS84")
    for i, source in enumerate(release.source.tolist()):
        rows = slice(data.offsets[source], data.offsets[source + 1])
        here = slice(release.offsets[i], release.offsets[i + 1])
        assert release.t[here].tolist() == data.t[rows].tolist()
        _, _, meters = geod.inv(data.lon[rows], data.lat[rows], release.lon[here], release.lat[here])
        assert np.all(meters <= size * np.sqrt(2) / 2 * 1.005 + 0.2)


@settings(deadline=None)
@given(data=trajectories())
def test_one_a_visit_is_the_plain_twin(data: Trajectories) -> None:
    """Runs of equal places are one point at their mean time, by plain loops over the "all" release."""
    everything, one = _release(data), _release(data, overlapping_strategy="one")
    assert one.source.tolist() == everything.source.tolist()
    for i in range(len(everything)):
        expected: list[tuple[float, float, list[int]]] = []
        for lon, lat, t in _published(everything, i):
            if expected and expected[-1][:2] == (lon, lat):
                expected[-1][2].append(t)
            else:
                expected.append((lon, lat, [t]))
        assert _published(one, i) == [(lon, lat, sum(ts) // len(ts)) for lon, lat, ts in expected]


def _line(n: int) -> Trajectories:
    """A walk to the east, 1/1000 of a degree a minute, with two people and three trajectories."""
    lon = np.tile(np.arange(n) / 1000, 3)
    return Trajectories(
        lon, np.full(3 * n, 0.5), np.tile(np.arange(n) * 60, 3), np.arange(4) * n, np.array([7, 8, 9]),
        np.array([0, 1, 1]), np.array(["ann", "bob"], dtype=object),
    )  # fmt: skip


def test_tiles_of_a_file_and_what_lies_outside() -> None:
    squares = np.array([shapely.box(0, 0, 0.01, 1), shapely.box(0.01, 0, 0.02, 1)], dtype=object)
    tiles = Zones(np.array(["west", "east"], dtype=object), np.array([0.005, 0.015]), np.array([0.5, 0.5]), squares)
    release = _release(replace(_line(31), zones=tiles), overlapping_strategy="one")
    for i in range(3):
        points = _published(release, i)
        assert [p[0] for p in points] == [0.005, 0.015]
        # Points 0 to 10 lie in the west (the border belongs to the first tile), 11 to 20 in the east, the rest nowhere.
        assert [p[2] for p in points] == [sum(range(11)) * 60 // 11, sum(range(11, 21)) * 60 // 10]
    assert release.areas.names.tolist() == ["west", "east"]


def test_trajectories_outside_all_tiles_are_left_out() -> None:
    far = Zones(np.array(["far"], dtype=object), np.array([5.0]), np.array([5.0]), np.array([shapely.box(4, 4, 6, 6)]))
    assert len(_release(replace(_line(3), zones=far))) == 0


def test_people_are_not_linked_unless_asked() -> None:
    assert _release(_line(3)).person is None
    linked = numbered(_release(_line(3), link_users=True))
    of_source = dict(zip(linked.source.tolist(), linked.person.tolist(), strict=True))
    assert of_source[1] == of_source[2] != of_source[0]
    assert sorted(set(of_source.values())) == [1, 2]


def test_the_order_of_the_file_is_not_kept() -> None:
    n = 50
    many = Trajectories(
        np.arange(n) / 1000, np.zeros(n), np.zeros(n), np.arange(n + 1), np.arange(n), np.arange(n),
        np.arange(n).astype(object),
    )  # fmt: skip
    order = numbered(_release(many)).source.tolist()
    assert sorted(order) == list(range(n)) and order != list(range(n))


def test_only_occupied_tiles_are_made_so_that_wide_data_is_no_obstacle(tmp_path: Path) -> None:
    """Three people in San Francisco, Berlin and Beijing: a dense grid of 500 m would have hundreds of millions of tiles."""
    west, lat = np.array([-122.4, 13.4, 116.4]), np.array([37.8, 52.5, 39.9])
    lon = np.concatenate([west, west + 0.02, west])
    t, person = np.repeat([0, 60, 120], 3), np.array(["ann", "bob", "cem"], dtype=object)
    order = np.arange(9).reshape(3, 3).T.ravel()
    wide = Trajectories(
        lon[order], np.tile(lat, 3)[order], t[order], np.arange(0, 10, 3), np.arange(3), np.arange(3), person
    )
    release = _release(wide)
    assert release.points == 9 and len(release.areas) == 6
    geod = Geod(ellps="WGS84")
    _, _, meters = geod.inv(wide.lon, wide.lat, release.lon, release.lat)
    # Squares are of equal area everywhere, but not of equal sides far from the middle of the data.
    assert np.all(meters <= 2000)
    options = {"attack": False, "report": False}
    result = pipeline.run(pipeline.Request("simple-generalization", wide, tmp_path / "out", options=options))
    assert {g["outcome"] for g in result.manifest["guarantees"]} == {"holds"}
    protected = pipeline.run(
        pipeline.Request("protected-generalization", wide, tmp_path / "protected", {"k": 2}, options=options)
    )
    assert len(protected.release) == 0  # nobody was where another was


def test_tiles_too_small_to_be_numbered_are_refused_in_one_sentence() -> None:
    with pytest.raises(
        ParameterError, match=r"^a grid of 0.01 m over these points has .* tiles.*. Choose larger tiles.*\.$"
    ):
        _release(_far(), tile_size_m=0.01)


def _far() -> Trajectories:
    """Return one trajectory of two points, 100 degrees apart."""
    return Trajectories(
        np.array([0.0, 100.0]), np.array([0.0, 40.0]), np.array([0, 9]), np.array([0, 2]), np.arange(1), np.arange(1),
        np.array(["ann"], dtype=object),
    )  # fmt: skip
