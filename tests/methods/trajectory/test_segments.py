"""Segments of trajectories beside a plain twin that goes over single points."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.methods.trajectory.segment_microaggregation import cut_at_multiples
from crowdveil.model.trajectories import Trajectories
from crowdveil.testing import trajectories

Point = tuple[float, float, int]


def _on_the_way(a: Point, b: Point, moment: int) -> Point:
    share = (moment - a[2]) / (b[2] - a[2])
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]), moment


def _plain(path: list[Point], length: int) -> list[list[Point]]:
    """Cut one trajectory, point by point: x and y in meters."""
    segments = [[path[0]]]
    for (ax, ay, at), (bx, by, bt) in pairwise(path):
        end, start = (at // length + 1) * length, bt // length * length
        if end <= start:
            segments[-1].append(_on_the_way((ax, ay, at), (bx, by, bt), end))
            segments.append([_on_the_way((ax, ay, at), (bx, by, bt), start)] if start < bt else [])
        segments[-1].append((bx, by, bt))
    return segments


@settings(max_examples=tries(80), deadline=None)
@given(data=trajectories(max_trajectories=5, max_points=6), length=st.sampled_from([7, 60, 300, 10**6]))
def test_segments_are_those_of_the_plain_twin(data: Trajectories, length: int) -> None:
    segments, whole = cut_at_multiples(data, length)
    (x, y), (sx, sy) = data.xy, data.projection.to_plane(segments.lon, segments.lat)
    wanted: list[tuple[int, list[Point]]] = []
    for i in range(len(data)):
        rows = slice(data.offsets[i], data.offsets[i + 1])
        path = list(zip(x[rows].tolist(), y[rows].tolist(), data.t[rows].tolist(), strict=True))
        wanted += [(i, segment) for segment in _plain(path, length)]
    assert whole.tolist() == [i for i, _ in wanted] and len(segments) == len(wanted)
    assert segments.person.tolist() == data.person[whole].tolist() and segments.k_unit == data.k_unit
    for number, (_, segment) in enumerate(wanted):
        rows = slice(segments.offsets[number], segments.offsets[number + 1])
        assert segments.t[rows].tolist() == [t for _, _, t in segment]
        np.testing.assert_allclose(sx[rows], [p[0] for p in segment], atol=1e-3)
        np.testing.assert_allclose(sy[rows], [p[1] for p in segment], atol=1e-3)
        assert segments.t[rows][-1] - segments.t[rows][0] <= length


def test_a_border_between_two_points_is_the_end_of_one_segment_and_the_beginning_of_the_next() -> None:
    """From 0 to 4 of a thousandth degree in 400 s, cut at 300 s; then a gap of two segments."""
    data = Trajectories(
        np.array([0.0, 0.004, 0.004]), np.zeros(3), np.array([100, 500, 1300]), np.array([0, 3]), *[np.arange(1)] * 3
    )
    segments, whole = cut_at_multiples(data, 300)
    assert whole.tolist() == [0, 0, 0]
    assert segments.t.tolist() == [100, 300, 300, 500, 600, 1200, 1300]
    assert segments.offsets.tolist() == [0, 2, 5, 7]
    np.testing.assert_allclose(segments.lon, [0, 0.002, 0.002, 0.004, 0.004, 0.004, 0.004], atol=1e-8)
