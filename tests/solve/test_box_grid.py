"""The public grid of boxes: outwards, on lines that follow from the published box alone, and as coarse as asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.errors import ParameterError
from crowdveil.guarantees import TruthfulBoxes
from crowdveil.io.release_writer import trajectory_table
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.box_bounds import BoxBounds
from crowdveil.model.release import TrajectoryRelease
from crowdveil.registry import find_method
from crowdveil.solve.trajectory.aggregation import GroupTrajectories
from crowdveil.solve.trajectory.box_grid import BoxGrid

GRIDS = st.tuples(st.sampled_from([1.0, 10.0, 37.5, 1000.0, 100_000.0]), st.sampled_from([1, 10, 3600]))


@st.composite
def boxes(draw: st.DrawFn) -> BoxBounds:
    """Some boxes of five decimals anywhere on the globe, also across the date line."""
    n = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    west, south = rng.uniform(-180, 180, n), rng.uniform(-89, 88, n)
    east, north = west + rng.uniform(0, 5, n), south + rng.uniform(0, 1, n)
    east = np.where(east >= 180, east - 360, east)
    begin = rng.integers(-(10**9), 10**9, n)
    return BoxBounds(*(np.round(c, 5) for c in (west, east, south, north)), begin, begin + rng.integers(0, 10**4, n))


def _on_grid(box: BoxBounds, grid: BoxGrid) -> BoxBounds:
    made = GroupTrajectories(*box.centers(5), np.array([0, len(box.t_min)]), box)
    found = grid.round_outwards(made).boxes
    assert found is not None
    return found


def _written(box: BoxBounds) -> WrittenRelease:
    release = TrajectoryRelease(*box.centers(5), np.array([0, len(box.t_min)]), boxes=box)
    return WrittenRelease(Path("out"), trajectory_table(release, "parquet"), None, [])


@given(boxes(), GRIDS)
@examples(200)
def test_boxes_grow_by_less_than_a_cell_and_lie_on_the_grid(box: BoxBounds, sizes: tuple[float, int]) -> None:
    grid = BoxGrid(*sizes)
    found = _on_grid(box, grid)
    for lon in (box.lon_min, box.lon_max):
        for lat in (box.lat_min, box.lat_max):
            inside = found.contains(np.where(lon >= 180, lon - 360, lon), lat, box.t_min)
            assert inside.all() and found.contains(lon, lat, box.t_max).all()
    # A cell has at least the meters that were asked for, and little more but near the poles.
    cell = (sizes[0] + 1.2) / 111_195
    shrinks = np.cos(np.radians(np.minimum(np.ceil(np.maximum(np.abs(found.lat_min), np.abs(found.lat_max))), 89)))
    assert (box.lat_min - found.lat_min < cell).all() and (found.lat_max - box.lat_max < cell).all()
    assert (found.width - box.width < 2 * (cell / shrinks + 1e-5)).all()
    assert ((found.t_max - found.t_min) - (box.t_max - box.t_min) < 2 * sizes[1]).all()
    assert all(np.array_equal(a, b) for a, b in zip(_on_grid(found, grid), found, strict=True))
    assert TruthfulBoxes(grid_m=sizes[0], grid_s=sizes[1]).check(_written(found)).outcome == "not checked"


@pytest.mark.parametrize("side", ["lon_min", "lon_max", "lat_min", "lat_max", "t_min", "t_max"])
def test_the_checker_finds_a_bound_between_the_lines(side: str) -> None:
    box = _on_grid(
        BoxBounds(*(np.array([c]) for c in (2.3, 2.4, 48.8, 48.9)), np.array([100]), np.array([200])), BoxGrid(10.0, 10)
    )
    goal = TruthfulBoxes(grid_m=10.0, grid_s=10)
    assert goal.check(_written(box)).outcome == "not checked"
    by = 1 if side.startswith("t_") else 1e-5
    moved = box._replace(**{side: np.round(getattr(box, side) + by, 5)})
    found = goal.check(_written(moved._replace(**{side: moved._asdict()[side].astype(getattr(box, side).dtype)})))
    assert found.violated and found.detail == "1 box checked; 1 have a bound that is not on the grid."
    assert "public grid of 10 m and 10 s" in goal.statement()
    # Releases of versions without a grid state none.
    assert TruthfulBoxes().check(_written(moved)).outcome == "not checked" and "grid" not in TruthfulBoxes().statement()


def test_a_grid_without_boxes_is_refused() -> None:
    for name, kind in (("microaggregation", "aggregation"), ("log-cost-generalization", "reconstruction")):
        with pytest.raises(ParameterError, match=f"{kind}.*box.*box.grid.m"):
            find_method(name).params.checked({"k": 3, "box_grid_m": 100})
        assert find_method(name).params.checked({"k": 3, kind: "box", "box_grid_m": 100}).box_grid.meters == 100
