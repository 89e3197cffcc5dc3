from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.model.arrays import row_slices
from crowdveil.solve.trajectory import swapping
from crowdveil.solve.trajectory.swapping import build_grid

points = st.lists(st.tuples(st.integers(-900, 900), st.integers(-900, 900), st.integers(-500, 500)), max_size=25)


@given(points=points, meters=st.sampled_from([7.0, 100.0, 450.0]), seconds=st.integers(1, 200), few=st.booleans())
def test_points_that_are_near_are_in_neighboring_cells(
    points: list[tuple[int, int, int]], meters: float, seconds: int, few: bool
) -> None:
    x, y, t = (np.array([p[i] for p in points], np.int64) for i in range(3))
    with pytest.MonkeyPatch.context() as patch:
        if few:
            patch.setattr(swapping, "_MAX_CELLS", 5000)  # cells must be made larger then
        grid = build_grid(x.astype(float), y.astype(float), t, meters, seconds)
    assert sorted(grid.order.tolist()) == list(range(len(points)))
    cell_of = row_slices(grid.cell_offsets)
    slab_of = row_slices(grid.slab_offsets)
    assert np.all(grid.slab[slab_of[cell_of]] == t[grid.order] // seconds)
    for i, a in enumerate(grid.order):
        for j, b in enumerate(grid.order):
            if np.hypot(x[a] - x[b], y[a] - y[b]) > meters or abs(t[a] - t[b]) > seconds:
                continue
            assert abs(int(grid.slab[slab_of[cell_of[i]]] - grid.slab[slab_of[cell_of[j]]])) <= 1
            apart = int(grid.cell[cell_of[j]] - grid.cell[cell_of[i]])
            assert any(abs(apart - row * grid.columns) <= 1 for row in (-1, 0, 1))


def test_far_points_and_small_cells_need_no_larger_numbers() -> None:
    x = np.array([0.0, 3.0, 4e7])
    grid = build_grid(x, x, np.array([0, 1, 10**15]), 1e-6, 1)
    assert len(grid.cell) == 3 and grid.cell.min() > 0


def test_points_are_in_order_of_slab_and_cell_and_row() -> None:
    rng = np.random.default_rng(2)
    x, y, t = rng.integers(0, 900, 500).astype(float), rng.integers(0, 900, 500).astype(float), rng.integers(0, 99, 500)
    for meters in (200.0, 2.0):  # fewer cells than points, and more
        grid = build_grid(x, y, t, meters, 30)
        slab, number = t // 30, ((y - y.min()) // meters + 1) * grid.columns + (x - x.min()) // meters + 1
        assert grid.order.tolist() == np.lexsort((number, slab)).tolist()
        assert np.array_equal(grid.cell[row_slices(grid.cell_offsets)], number[grid.order])
