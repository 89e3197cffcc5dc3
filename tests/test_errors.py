from __future__ import annotations

import pytest

from crowdveil.errors import counted, rows_named, rows_that


@pytest.mark.parametrize(
    ("rows", "total", "text"),
    [
        ([2], 1, "1 row (row 2)"),
        ([2, 7, 9], 3, "3 rows (rows 2, 7 and 9)"),
        ([1, 2, 3, 4, 5], 2500, "2,500 rows (first: 1, 2, 3, 4, 5)"),
        ([], 4, "4 rows"),
    ],
)
def test_rows_are_named(rows: list[int], total: int, text: str) -> None:
    assert rows_named(rows, total) == text


def test_verbs_agree_with_numbers() -> None:
    assert rows_that([2], 1, "have no time in column t") == "1 row (row 2) has no time in column t"
    assert rows_that([2, 3], 2, "are below zero") == "2 rows (rows 2 and 3) are below zero"
    assert rows_that([4], 1, "name no zone") == "1 row (row 4) names no zone"


def test_counted() -> None:
    assert counted(1, "row") == "1 row" and counted(2, "trajectory", "trajectories") == "2 trajectories"
