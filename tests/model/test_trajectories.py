"""The model of trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from crowdveil.errors import InputError
from crowdveil.model.trajectories import Trajectories

GOOD: dict[str, Any] = {
    "lon": [2.0, 2.1, 2.2, 2.3], "lat": [41.0, 41.1, 41.2, 41.3], "t": [5, 5, 6, 1], "offsets": [0, 3, 4], "ids": ["x", "y"],
    "person": [1, 0], "people_ids": ["ann", "ben"],
}  # fmt: skip


def made(**changed: Any) -> Trajectories:
    return Trajectories(
        **{k: np.array(v, dtype=object if k in ("ids", "people_ids") else None) for k, v in {**GOOD, **changed}.items()}
    )


def test_columns_are_taken_as_they_are() -> None:
    data = made()
    assert (len(data), data.points, data.people, data.total_people) == (2, 4, 2, 2)
    assert data.trajectory.tolist() == [0, 0, 0, 1]
    x, y = data.xy
    for i in range(3):
        meters = Geod(ellps="WGS84").inv(data.lon[i], data.lat[i], data.lon[i + 1], data.lat[i + 1])[2]
        assert np.hypot(x[i + 1] - x[i], y[i + 1] - y[i]) == pytest.approx(meters, rel=0.001)
    for column in (data.lon, data.t, data.ids):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_no_trajectory_at_all_is_fine() -> None:
    nothing = made(lon=[], lat=[], t=[], offsets=[0], ids=[], person=np.zeros(0, np.int64), people_ids=[])
    assert (len(nothing), nothing.points, nothing.people) == (0, 0, 0)


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [("t", [5, 4, 6, 1], "in order of time"), ("lat", [41.0, 91.0, 41.0, 41.0], "not degrees of lat"),
     ("lon", [2.0, np.nan, 2.0, 2.0], "not degrees of lon"), ("lon", [2.0, np.inf, 2.0, -181.0], "2 values"),
     ("lat", [41.0], "column lat has 1 rows instead of 4"), ("offsets", [0, 3, 5], "offsets must rise"),
     ("offsets", [0, 4, 4], "every trajectory must have a point"), ("person", [0, 2], "not in the list of people"),
     ("person", [-1, 0], "not in the list of people"), ("ids", ["x"], "column ids has 1 rows instead of 2"),
     ("row", [1, 2], "column row has 2 rows instead of 4")],
)  # fmt: skip
def test_what_is_no_trajectory_is_refused(column: str, values: list[Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        made(**{column: values})


@settings(deadline=None, max_examples=tries(60))
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.booleans()), max_size=12))
def test_trajectories_are_left_out_with_people_who_have_none_left(parts: list[tuple[int, int, bool]]) -> None:
    lengths = [n for n, _, _ in parts]
    points = np.arange(sum(lengths), dtype=np.float64)
    keep = np.array([stays for _, _, stays in parts], bool)
    data = made(
        lon=points / 100, lat=points / 200, t=points.astype(np.int64),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        ids=[f"t{i}" for i in range(len(parts))], person=np.array([p for _, p, _ in parts], np.int64),
        people_ids=["p0", "p1", "p2", "p3"], row=points.astype(np.int64),
    )  # fmt: skip
    left = data.where(keep)

    def listed(model: Trajectories) -> list[Any]:
        assert model.row is not None
        cut = [slice(a, b) for a, b in zip(model.offsets[:-1], model.offsets[1:], strict=True)]
        return [
            (i, model.people_ids[p], *(c[s].tolist() for c in (model.lon, model.lat, model.t, model.row)))
            for i, p, s in zip(model.ids, model.person, cut, strict=True)
        ]

    assert listed(left) == [row for row, stays in zip(listed(data), keep, strict=True) if stays]
    assert left.people == len({p for _, p, stays in parts if stays})
