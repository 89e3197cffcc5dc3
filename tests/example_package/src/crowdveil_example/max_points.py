"""A filter: leave out trajectories with more points than a number."""

from __future__ import annotations

import numpy as np

from crowdveil.errors import Option, ParameterError
from crowdveil.model.arrays import Mask
from crowdveil.model.trajectories import Trajectories
from crowdveil.run.filters import FilterKind


def keeps(data: Trajectories, values: tuple[str, ...], tz: str) -> Mask:
    """Return whether each trajectory has at most so many points."""
    if len(values) != 1 or not values[0].isdigit():
        raise ParameterError(Option("max_points"), "Expected a whole number of points.")
    return np.diff(data.offsets) <= int(values[0])


FILTER = FilterKind("max_points", keeps, "Leave out trajectories with more points than this.", "N")
