"""Range queries on paths against a plain twin in exact fractions: tangents, borders, moments, jumps, single points."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import engine
from crowdveil.errors import InputError
from crowdveil.solve.trajectory.distances import Paths
from crowdveil.solve.trajectory.path_tree import BLOCK, PathTree, RangeQueries
from crowdveil.testing import paths

Query = tuple[float, float, float, float, float]


def path(*points: tuple[float, float, float]) -> list[tuple[float, float, float]]:
    return list(points)


def as_paths(each: list[list[tuple[float, float, float]]]) -> Paths:
    x, y, t = (np.array([p[i] for points in each for p in points], np.float64) for i in range(3))
    return Paths(x, y, t, np.cumsum([0, *map(len, each)]))


def as_queries(each: list[Query]) -> RangeQueries:
    return RangeQueries(*(np.array([q[i] for q in each], np.float64) for i in range(5)))


def counted(data: Paths, queries: list[Query]) -> list[tuple[int, int]]:
    some, always = PathTree.of(data).counts(as_queries(queries))
    return list(zip(some.tolist(), always.tolist(), strict=True))


# The twin: squared distances as fractions, at the times at which they can be least or greatest.


def plain(data: Paths, query: Query) -> tuple[int, int]:
    cx, cy, radius, begin, end = map(Fraction, query)
    some = always = 0
    for i in range(len(data)):
        points = [tuple(map(Fraction, p)) for p in zip(*data.one(i), strict=True)]
        inside = [within(p, q, cx, cy, radius, begin, end) for p, q in pairwise(points)] or [
            within(points[0], points[0], cx, cy, radius, begin, end)
        ]
        some += any(sometime for sometime, _ in inside)
        always += points[0][2] <= begin and points[-1][2] >= end and all(every for _, every in inside)
    return some, always


def within(
    p: tuple[Fraction, ...], q: tuple[Fraction, ...], cx: Fraction, cy: Fraction, radius: Fraction, begin: Fraction,
    end: Fraction,
) -> tuple[bool, bool]:  # fmt: skip
    """Whether a leg is inside at some of its times in the interval, and at all of them."""
    low, high = max(begin, p[2]), min(end, q[2])
    if low > high:
        return False, True
    if p[2] == q[2]:
        square = [(x - cx) ** 2 + (y - cy) ** 2 for x, y, _ in (p, q)]
        return min(square) <= radius**2, max(square) <= radius**2

    def square_at(t: Fraction) -> Fraction:
        share = (t - p[2]) / (q[2] - p[2])
        return (p[0] + share * (q[0] - p[0]) - cx) ** 2 + (p[1] + share * (q[1] - p[1]) - cy) ** 2

    times = [low, high, *(low + (high - low) * Fraction(i, 4) for i in range(1, 4))]
    vx, vy = q[0] - p[0], q[1] - p[1]
    if vx or vy:  # the time at which it is nearest, if it has that time
        nearest = p[2] - (q[2] - p[2]) * ((p[0] - cx) * vx + (p[1] - cy) * vy) / (vx * vx + vy * vy)
        times += [nearest] if low <= nearest <= high else []
    squares = [square_at(t) for t in times]
    return min(squares) <= radius**2, max(squares) <= radius**2


@st.composite
def queries(draw: st.DrawFn) -> list[Query]:
    """Circles around whole and half places, with radii that touch some; intervals with such ends, some of them moments."""
    half = st.integers(-2, 14).map(lambda v: v / 2)
    each = st.tuples(half, half, st.sampled_from([0, 0.5, 1, 1.5, 2, 2.5, 5]), half, half)
    return [(x, y, r, min(a, b), max(a, b)) for x, y, r, a, b in draw(st.lists(each, max_size=6))]


@given(paths(max_paths=6, max_points=5), queries())
def test_counts_are_those_of_exact_fractions(data: Paths, asked: list[Query]) -> None:
    assert counted(data, asked) == [plain(data, query) for query in asked]


def scanned(data: Paths, queries: RangeQueries) -> tuple[list[int], list[int]]:
    """All legs looked at for each query, with numpy; ties aside, since it divides."""
    leg = np.flatnonzero(np.diff(np.repeat(np.arange(len(data)), np.diff(data.offsets))) == 0)
    of = (np.searchsorted(data.offsets, leg, side="right") - 1).tolist()
    x, y, t = data.x, data.y, data.t
    lasts = t[leg + 1] - t[leg]
    some, always = [], []
    for cx, cy, radius, begin, end in zip(*queries.part(slice(None)), strict=True):
        low, high = np.maximum(begin, t[leg]), np.minimum(end, t[leg + 1])
        dx, dy, vx, vy = x[leg] - cx, y[leg] - cy, x[leg + 1] - x[leg], y[leg + 1] - y[leg]
        nearest = t[leg] - lasts * (dx * vx + dy * vy) / (vx * vx + vy * vy)
        far = []
        for when in (np.clip(nearest, low, high), low, high):
            share = (when - t[leg]) / lasts
            far.append(np.hypot(dx + share * vx, dy + share * vy))
        there = low <= high
        some.append(len({of[i] for i in np.flatnonzero(there & (far[0] <= radius))}))
        lives = (t[data.offsets[:-1]] <= begin) & (t[data.offsets[1:] - 1] >= end)
        out = {of[i] for i in np.flatnonzero(there & (np.maximum(far[1], far[2]) > radius))}
        always.append(len(set(np.flatnonzero(lives).tolist()) - out))
    return some, always


@settings(max_examples=tries(10))
@given(st.integers(0, 2**32 - 1))
def test_a_tree_finds_what_a_scan_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 120, 80)
    x, y = (np.concatenate([np.cumsum(rng.uniform(-3, 3, n)) + rng.uniform(0, 60) for n in lengths]) for _ in "xy")
    t = np.concatenate([np.cumsum(rng.uniform(0.1, 4, n)) + rng.uniform(0, 40) for n in lengths])
    data = Paths(x, y, t, np.cumsum([0, *lengths]))
    tree = PathTree.of(data)
    ends = np.sort(rng.uniform(0, 250, (2, 60)), axis=0)
    ends[1, ::3] = ends[0, ::3] + rng.uniform(0, 4, 20)
    asked = RangeQueries(*rng.uniform(0, 60, (2, 60)), rng.uniform(0, 30, 60), *ends)
    found, wanted = tree.counts(asked), scanned(data, asked)
    np.testing.assert_array_equal(found, wanted)
    assert found[0].sum() > 100 < found[1].sum() * 20


LINE = path((0, 0, 0), (10, 0, 10))


@pytest.mark.parametrize(
    ("points", "query", "wanted"),
    [
        (LINE, (5, 3, 3, 0, 10), (1, 0)),  # touches the circle at one moment
        (LINE, (5, 3, 3, 5, 5), (1, 1)),  # and is asked about that moment
        (LINE, (5, 3, 3, 5.5, 10), (0, 0)),
        (LINE, (5, 3, 2.999, 0, 10), (0, 0)),
        (LINE, (2, 0, 1, 3, 10), (1, 0)),  # on the border when the interval begins
        (LINE, (2, 0, 1, 1, 3), (1, 1)),  # inside from the first moment of the interval to the last
        (LINE, (2, 0, 1, 1, 3.5), (1, 0)),
        (LINE, (2, 0, 1, 0.5, 3), (1, 0)),
        (LINE, (5, 0, 100, 0, 10), (1, 1)),
        (LINE, (5, 0, 100, 0, 11), (1, 0)),  # it is gone before the interval ends
        (LINE, (5, 0, 100, -1, 10), (1, 0)),  # it comes after the interval begins
        (LINE, (5, 0, 100, 10, 20), (1, 0)),
        (LINE, (5, 0, 100, 11, 20), (0, 0)),
        (LINE, (5, 0, 0, 0, 10), (1, 0)),  # a circle without extent, on the way
        (path((3, 4, 7)), (0, 0, 5, 7, 7), (1, 1)),  # one point is there for a moment
        (path((3, 4, 7)), (0, 0, 5, 0, 9), (1, 0)),
        (path((3, 4, 7)), (0, 0, 4.9, 7, 7), (0, 0)),
        (path((3, 4, 7)), (0, 0, 5, 7.5, 9), (0, 0)),
        (path((0, 0, 0), (0, 0, 5), (9, 0, 5), (9, 0, 9)), (9, 0, 1, 5, 5), (1, 0)),  # a jump: at both places at once
        (path((0, 0, 0), (0, 0, 5), (9, 0, 5), (9, 0, 9)), (9, 0, 1, 5.5, 9), (1, 1)),
        (path((0, 0, 0), (0, 0, 5), (9, 0, 5), (9, 0, 9)), (0, 0, 1, 0, 5), (1, 0)),
        (path((0, 0, 0), (0, 0, 5), (9, 0, 5), (9, 0, 9)), (4.5, 0, 1, 5, 5), (0, 0)),  # nowhere between
        (path((0, 0, 0), (4, 0, 2), (0, 0, 4)), (0, 0, 3, 0, 4), (1, 0)),  # it leaves and comes back
        (path((0, 0, 0), (4, 0, 2), (0, 0, 4)), (0, 0, 4, 0, 4), (1, 1)),
    ],
)
def test_examples(points: list[tuple[float, float, float]], query: Query, wanted: tuple[int, int]) -> None:
    assert counted(as_paths([points]), [query]) == [wanted] == [plain(as_paths([points]), query)]


def test_a_path_counts_once_however_often_it_passes() -> None:
    back_and_forth = [(10.0 * (i % 2), 0.0, float(i)) for i in range(300)]
    assert counted(as_paths([back_and_forth] * 3), [(5, 0, 1, 0, 299), (5, 0, 6, 0, 299)]) == [(3, 0), (3, 3)]


def test_no_paths_and_no_queries() -> None:
    nobody = as_paths([])
    assert counted(nobody, [(0, 0, 5, 0, 1)]) == [(0, 0)]
    assert counted(as_paths([LINE]), []) == []
    empty_one = Paths(np.array([1.0]), np.array([1.0]), np.array([3.0]), np.array([0, 0, 1, 1]))
    assert counted(empty_one, [(1, 1, 1, 0, 9), (1, 1, 0, 3, 3)]) == [(1, 0), (1, 1)]


def test_answers_do_not_depend_on_blocks_and_threads() -> None:
    rng = np.random.default_rng(1)
    data = as_paths([[(*p, float(j)) for j, p in enumerate(rng.integers(0, 50, (20, 2)).tolist())] for _ in range(60)])
    n = 200 * BLOCK + 5
    ends = np.sort(rng.integers(0, 20, (2, n)), axis=0).astype(np.float64)
    asked = RangeQueries(
        *rng.integers(0, 50, (2, n)).astype(np.float64), rng.integers(0, 9, n).astype(np.float64), *ends
    )
    found = []
    for threads in (1, 3):
        with engine.use(engine.LocalEngine(threads)):
            found.append(PathTree.of(data).counts(asked))
    np.testing.assert_array_equal(found[0], found[1])
    some, always = PathTree.of(data).counts(RangeQueries(*asked.part(slice(BLOCK, BLOCK + 9))))
    np.testing.assert_array_equal(found[0][0][BLOCK : BLOCK + 9], some)
    np.testing.assert_array_equal(found[0][1][BLOCK : BLOCK + 9], always)
    assert (found[0][1] <= found[0][0]).all() and found[0][1].sum() > 100


def test_a_place_without_meters_is_refused() -> None:
    with pytest.raises(InputError, match="opposite sides"):
        PathTree.of(as_paths([[(np.inf, 0, 0), (0, 0, 1)]]))
