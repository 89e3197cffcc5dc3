"""Sectors of k people: against a plain twin, by what must hold, and where frames and borders lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plain_quadtree import HeatMap, Point

from crowdveil.errors import InputError
from crowdveil.io.trajectories import read_trajectories
from crowdveil.kernels.trajectory.quadtree import k_anonymous_sectors as cut
from crowdveil.model.projection import LocalProjection
from crowdveil.model.sectors import SectorFrame
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.quadtree import k_anonymous_sectors

DEPTH = 4


@st.composite
def crowds(draw: st.DrawFn) -> list[Point]:
    """Points of a few people on 16 × 16 cells, crowded in some corners, so that all kinds of quarters come up."""
    corner = st.sampled_from((0, 1, 4, 8, 12, 14))
    near = st.tuples(corner, corner, st.integers(0, 3), st.integers(0, 3), st.integers(0, 7))
    drawn = draw(st.lists(near, min_size=1, max_size=60))
    points = [Point(min(x + dx, 15), min(y + dy, 15), who) for x, y, dx, dy, who in drawn]
    # All of one place, and repeated ones.
    return points * draw(st.integers(1, 2))


def _cut(points: list[Point], k: int, split: int, merge: bool, halve: bool, suppress: float) -> tuple[Any, int]:
    x, y, person = (np.array([p[i] for p in points], np.int32) for i in range(3))
    found, people = cut(x, y, person, 8, DEPTH, k, split, merge, halve, suppress)
    rows = [(c, r, 1 << w, 1 << h, last - first, who) for first, last, c, r, w, h, who in found.tolist()]
    # The arrays are left in the order of sectors.
    for first, last, c, r, w, h, who in found.tolist():
        assert np.all((x[first:last] - c) >> w == 0) and np.all((y[first:last] - r) >> h == 0)
        assert len(set(person[first:last].tolist())) == who
    return rows, people


@given(
    crowds(), st.integers(2, 5), st.integers(0, 6), st.booleans(), st.booleans(), st.sampled_from((0.0, 0.05, 0.2, 0.5))
)
@example([Point(0, 0, i) for i in range(3)] + [Point(15, 15, 3)], 3, 0, True, False, 0.5)
def test_sectors_are_those_of_the_plain_twin(
    points: list[Point], k: int, more: int, merge: bool, halve: bool, suppress: float
) -> None:
    if len({p.person for p in points}) < k:
        return
    twin = HeatMap(k, k + more, merge, halve, suppress)
    wanted = twin.sectors(points, (0, 0, 1 << DEPTH, 1 << DEPTH))
    found, suppressed = _cut(points, k, k + more, merge, halve, suppress)
    assert sorted(found) == sorted(tuple(s) for s in wanted)
    assert suppressed == len({p.person for p in twin.suppressed})


@given(crowds(), st.integers(2, 5), st.booleans(), st.booleans(), st.sampled_from((0.0, 0.1, 0.5)))
def test_sectors_hold_crowds_and_do_not_overlap(
    points: list[Point], k: int, merge: bool, halve: bool, suppress: float
) -> None:
    if len({p.person for p in points}) < k:
        return
    found, suppressed = _cut(points, k, k, merge, halve, suppress)
    painted, lost = np.full((16, 16), -1), []
    for i, (x, y, w, h, _, people) in enumerate(found):
        assert people >= k and np.all(painted[x : x + w, y : y + h] == -1)
        painted[x : x + w, y : y + h] = i
    inside: list[list[Point]] = [[] for _ in found]
    for p in points:
        (lost if painted[p.x, p.y] < 0 else inside[painted[p.x, p.y]]).append(p)
    for sector, there in zip(found, inside, strict=True):
        assert sector[4:] == (len(there), len({p.person for p in there}))
    assert suppressed == len({p.person for p in lost}) and (suppress > 0 or not lost)


def test_small_quarters_take_the_lesser_neighbor_that_makes_a_crowd() -> None:
    # Two people in the south-west; next to them three in the north-west and six in the south-east, four make a crowd.
    corners = {(0, 0): [0, 1], (0, 15): [1, 2, 3], (15, 0): [0, 1, 2, 3, 4, 5]}
    points = [Point(x, y, who) for (x, y), people in corners.items() for who in people]
    assert sorted(_cut(points, 4, 4, True, False, 0.0)[0]) == [(0, 0, 8, 16, 5, 4), (15, 0, 1, 1, 6, 6)]
    assert _cut(points, 4, 4, False, False, 0.0)[0] == [(0, 0, 16, 16, 11, 6)]
    # The lesser one has nobody new, so that it takes the other; the lesser one then is left alone, and all stays whole.
    corners[0, 15] = [0, 1, 0]
    points = [Point(x, y, who) for (x, y), people in corners.items() for who in people]
    assert _cut(points, 4, 4, True, False, 0.0)[0] == [(0, 0, 16, 16, 11, 6)]
    assert _cut(points, 4, 4, True, False, 0.3) == ([(0, 0, 16, 1, 8, 6)], 2)


def _points(lon: Any, lat: Any, person: Any) -> Trajectories:
    n = len(lon)
    return Trajectories(
        np.array(lon, float), np.array(lat, float), np.zeros(n, np.int64), np.arange(n + 1), np.arange(n), np.array(person),
        np.arange(max(person) + 1),
    )  # fmt: skip


def test_all_points_on_one_place_are_one_cell() -> None:
    found = k_anonymous_sectors(_points([2.35] * 9, [48.85] * 9, range(9)), 3, 100.0, 3)
    assert (len(found), found.locations[0], found.people[0], found.area_km2[0]) == (1, 9, 9, pytest.approx(0.01))
    assert found.frame.projection == LocalProjection(2.35, 48.85)


def test_the_frame_reveals_nothing_but_a_public_box() -> None:
    """The outermost people move inside cells of a tenth of a degree, and the frame stays."""
    frames = set()
    for shift in (0.0, 0.003, 0.009):
        data = _points([2.31, 2.39 + shift, 2.35], [48.83 + shift, 48.87, 48.85], range(3))
        frames.add(k_anonymous_sectors(data, 2, 100.0, 2).frame)
    assert len(frames) == 1


def test_points_on_a_line_belong_to_the_east_and_north() -> None:
    for cell in (100.0, 33.3, 0.1 + 0.2 + 1):
        frame = SectorFrame(LocalProjection(0, 0), cell, 10)
        lines = np.arange(1, 1024)
        on = frame.border(lines)
        assert np.array_equal(frame.cells(on), lines)
        assert np.array_equal(frame.cells(np.nextafter(on, -np.inf)), lines - 1)
        assert np.array_equal(frame.cells(np.nextafter(on, np.inf)), lines)


def test_points_all_around_the_globe_are_refused() -> None:
    with pytest.raises(InputError, match="all around the globe"):
        k_anonymous_sectors(_points([-180, 0, 180], [0, 1, 0], range(3)), 2, 100.0, 2)


@pytest.mark.realdata
@pytest.mark.parametrize(("halve", "suppress"), [pytest.param(False, 0.0, marks=pytest.mark.slow), (True, 0.01)])
def test_cabs_of_san_francisco(realdata: Path, halve: bool, suppress: float) -> None:
    data = read_trajectories(realdata / "sf_cabs" / "cabs_dataset_20080608_0800_1200.parquet")
    found = k_anonymous_sectors(data, 5, 100.0, 5, halve=halve, suppress=suppress)
    frame = found.frame
    x, y = (frame.cells(along) for along in frame.projection.to_plane(data.lon, data.lat))
    person = np.repeat(data.person, np.diff(data.offsets))
    points = [Point(*row) for row in zip(x.tolist(), y.tolist(), person.tolist(), strict=True)]
    twin = HeatMap(5, 5, True, halve, suppress)
    wanted = sorted(tuple(s) for s in twin.sectors(points, (0, 0, 1 << frame.depth, 1 << frame.depth)))
    columns = (found.column, found.row, found.columns, found.rows, found.locations, found.people)
    assert sorted(zip(*(c.tolist() for c in columns), strict=True)) == wanted
    assert found.suppressed == len(twin.suppressed) <= 0.001 * data.points
    assert found.suppressed_people == len({p.person for p in twin.suppressed})
