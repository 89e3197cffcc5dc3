"""Numbers of points, against a dictionary of them."""

from __future__ import annotations

import numpy as np

from crowdveil.io.written_release import PointTable, number_points


def _points(rows: int, seed: int, last: int) -> PointTable:
    rng = np.random.default_rng(seed)
    lat, lon = (rng.choice([-1.0, -0.0, 0.0, 0.5], rows) for _ in range(2))
    return rng.integers(-20, last, rows), lat, lon


def _check(first: PointTable, second: PointTable) -> None:
    found = np.concatenate(number_points(first, second)).tolist()
    points = [point for side in (first, second) for point in zip(*(c.tolist() for c in side), strict=True)]
    numbers: dict[tuple[float, ...], int] = {}
    assert [numbers.setdefault(point, number) for point, number in zip(points, found, strict=True)] == found
    assert sorted(numbers.values()) == list(range(len(numbers)))


def test_equal_points_of_both_tables_have_one_number() -> None:
    _check(_points(150, 1, 40), _points(200, 2, 20))
    _check(_points(150, 1, 40), _points(200, 2, -19))


def test_a_table_without_points_is_numbered_too() -> None:
    for first, second in ((0, 3), (3, 0), (0, 0)):
        _check(_points(first, 1, 9), _points(second, 2, 9))
