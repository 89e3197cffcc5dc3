"""The model of trips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crowdveil.errors import InputError
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones

ZONES = Zones.from_ids(["a", "b"])


def trips(**changed: Any) -> Trips:
    columns: dict[str, Any] = {
        "origin": [0, 1, 1], "destination": [1, 0, 1], "t": [3, 2, 1], "person": [0, 0, 1], "weight": [1.0, 0.0, 2.5], **changed,
    }  # fmt: skip
    return Trips(ZONES, **{k: None if v is None else np.array(v) for k, v in columns.items()})


def test_trips_are_taken_as_they_are() -> None:
    assert len(trips()) == 3
    assert trips().origin.dtype == np.int32
    bare = trips(t=None, person=None, weight=None)
    assert bare.t is None
    assert len(trips(origin=[], destination=[], t=[], person=[], weight=[])) == 0
    with pytest.raises(ValueError, match="read-only"):
        trips().origin[0] = 1


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [("origin", [0, 1, 2], "not one of the 2 zones"), ("destination", [0, -1, 0], "not one of the 2 zones"),
     ("destination", [0, 1], "column destination has 2 rows instead of 3"), ("t", [1], "column t has 1 rows instead of 3"),
     ("weight", [1.0, -0.5, 1.0], "weights must be finite"), ("weight", [1.0, np.nan, 1.0], "weights must be finite"),
     ("weight", [1.0, np.inf, 1.0], "weights must be finite")],
)  # fmt: skip
def test_what_is_no_trip_is_refused(column: str, values: list[Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        trips(**{column: values})
