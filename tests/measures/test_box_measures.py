"""Measures of boxes against their definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.errors import InputError
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.range_queries import RangeQueryParams, answers, draw_queries
from crowdveil.model.box_bounds import BoxBounds
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import no_progress
from crowdveil.registry import find_measure, find_method
from crowdveil.synth.movers import make_movers
from crowdveil.synth.network import street_grid

FEW = RangeQueryParams(queries=150, radius_m=800, windows_s="0,600")


@pytest.fixture(scope="module")
def compared() -> TrajectoryComparison:
    movers = make_movers(street_grid(2, side=12), 40, seed=5)
    method = find_method("microaggregation")
    params = method.params.checked({"k": 3, "aggregation": "box", "suppress": 0.1})
    release = method.run(movers, params, np.random.default_rng(1), no_progress)
    assert isinstance(release, TrajectoryRelease)
    return TrajectoryComparison(movers, release)


def _boxes(compared: TrajectoryComparison) -> BoxBounds:
    assert compared.release.boxes is not None
    return compared.release.boxes


def test_areas_are_those_on_the_plane_and_durations_are_seconds(compared: TrajectoryComparison) -> None:
    boxes = _boxes(compared)
    west, east, south, north = boxes.sides(compared.original.projection)
    assert find_measure("box-area").of(compared)[0] == pytest.approx(
        float(((east - west) * (north - south)).mean()) / 1e6, rel=0.01
    )
    seconds = [b - a for a, b in zip(boxes.t_min.tolist(), boxes.t_max.tolist(), strict=True)]
    assert find_measure("box-duration").of(compared)[0] == pytest.approx(sum(seconds) / len(seconds))


def test_discernibility_is_the_mean_size_of_classes(compared: TrajectoryComparison) -> None:
    release, n = compared.release, len(compared.original)
    boxes = _boxes(compared)
    rows = [tuple(column[a:b].tobytes() for column in (release.lon, release.lat, release.t, *boxes))
            for a, b in zip(release.offsets[:-1], release.offsets[1:], strict=True)]  # fmt: skip
    published = sum(rows.count(row) for row in rows)
    expected = (published + (n - len(rows)) * n) / n
    assert len(rows) < n
    assert find_measure("discernibility").of(compared)[0] == pytest.approx(expected)


def test_possible_answers_are_those_of_every_box(compared: TrajectoryComparison) -> None:
    boxes, release, data = _boxes(compared), compared.release, compared.original
    west, east, south, north = boxes.sides(data.projection)
    begin, end = boxes.t_min - compared.start, boxes.t_max - compared.start
    original = answers(compared, FEW)[0]
    for window in range(2):
        queries, far = draw_queries(compared, FEW, window), []
        for x, y, radius, first, last in zip(*queries.part(slice(None)), strict=True):
            dx, dy = np.maximum(np.maximum(west - x, x - east), 0), np.maximum(np.maximum(south - y, y - north), 0)
            near, timely = np.hypot(dx, dy) <= radius, (begin <= last) & (end >= first)
            some = every = 0
            for a, b in zip(release.offsets[:-1], release.offsets[1:], strict=True):
                some += bool((near & timely)[a:b].any())
                spans = begin[a:b].min() <= first and end[a:b].max() >= last
                every += bool(spans and near[a:b][timely[a:b]].all() and timely[a:b].any())
            far.append((some, every))
        for kind, name in enumerate(("box-sid", "box-aid")):
            q, p = original[window][kind], np.array([answer[kind] for answer in far])
            expected = (np.abs(q - p) / np.maximum(np.maximum(q, p), 1)).mean()
            assert find_measure(name).of(compared, FEW)[0, window] == pytest.approx(expected)


def test_points_have_no_boxes_to_measure(compared: TrajectoryComparison) -> None:
    points = compared.with_release(replace(compared.release, boxes=None))
    for name in ("box-area", "box-duration", "box-sid", "box-aid"):
        with pytest.raises(InputError, match="points and no boxes"):
            find_measure(name).of(points)
    assert find_measure("discernibility").of(points)[0] > 0


def test_boxes_of_original_points_lose_nothing_in_a_moment() -> None:
    """A box around each point alone: possible answers at the moments of points are true."""
    n = 6
    lon, lat, t = np.arange(n) * 0.01, np.zeros(n), np.zeros(n, np.int64)
    people = np.array([f"p{i}" for i in range(n)], dtype=object)
    data = Trajectories(lon, lat, t, np.arange(n + 1), np.arange(n), np.arange(n), people)
    release = TrajectoryRelease(lon, lat, t, np.arange(n + 1), boxes=BoxBounds(lon, lon, lat, lat, t, t))
    params = RangeQueryParams(queries=100, radius_m=300, windows_s="0")
    assert find_measure("box-sid").of(TrajectoryComparison(data, release), params)[0, 0] == 0
