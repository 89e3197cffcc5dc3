from __future__ import annotations

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels.trajectory.displacements import subtract_positions

unhurried = settings(deadline=None, max_examples=tries(100))


@unhurried
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6).map(sorted), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(-2, 11), max_size=5)), max_size=5),
)
def test_positions_are_between_the_points_before_and_after(
    times: list[list[int]], wanted: list[tuple[int, list[int]]]
) -> None:
    """Also where the wanted times of a slice fall."""
    wanted = [(group % len(times), of) for group, of in wanted]
    offsets, ends = (np.cumsum([0, *map(len, rows)]) for rows in (times, [of for _, of in wanted]))
    t = np.array([at for of in times for at in of])
    x, y = (np.random.default_rng(seed).uniform(-9, 9, len(t)) for seed in (0, 1))
    source = np.array([group for group, _ in wanted], np.int64)
    moments = np.array([at for _, of in wanted for at in of], np.int64)
    east, north = np.full(len(moments), 5.0), np.full(len(moments), -3.0)
    subtract_positions(t, x, y, offsets, source, moments, ends, east, north)
    plain = []
    for group, of in wanted:
        rows = range(offsets[group], offsets[group + 1])
        for moment in of:
            before = max([i for i in rows if t[i] <= moment], default=rows[0])
            after = min(before + 1, rows[-1])
            at = min(max(moment, t[rows[0]]), t[rows[-1]])
            part = (at - t[before]) / max(t[after] - t[before], 1)
            plain.append(
                [5 - x[before] - part * (x[after] - x[before]), -3 - y[before] - part * (y[after] - y[before])]
            )
    assert np.column_stack([east, north]).tolist() == [pytest.approx(row) for row in plain]
