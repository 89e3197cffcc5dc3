"""Measure how long the intervals of published trips are, and generalization by that length."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows

LENGTHS = ("up to 1 h", "up to 2 h", "up to 4 h", "up to 12 h", "up to 24 h", "longer")
_LONGEST = np.array([1.0, 2.0, 4.0, 12.0, 24.0])


def length_classes(hours: Floats) -> Ints:
    """Return the class of each length in `LENGTHS`."""
    classes: Ints = np.searchsorted(_LONGEST, hours).astype(np.int64)
    return classes


def mean_hours(compared: OdComparison) -> Floats:
    """Return the hours between start and end of the row of a published trip; NaN where the data have no times."""
    return ratio(compared.of_rows(compared.release.hours * compared.release.volume), compared.published)


def generalization_by_hours(compared: OdComparison) -> Floats:
    """Return Ḡ of the published trips by the length of their rows; NaN where there are none of a length."""
    release = compared.release
    if release.step_s is None:
        return np.full((compared.groups, len(LENGTHS)), np.nan)
    column = length_classes(release.hours)
    tiles = (compared.origin_size + compared.destination_size) * release.volume
    of_lengths = [
        ratio(
            compared.of_rows(np.where(column == i, tiles, 0)),
            compared.of_rows(np.where(column == i, release.volume, 0)),
        )
        for i in range(len(LENGTHS))
    ]
    return np.column_stack(of_lengths)


MEASURES = (
    Measure(
        "mean-duration", "mean length of intervals", "h", "lower", Flows, mean_hours,
        "Hours between start and end of a row, mean over published trips: the length of a time step, or more where rows have "
        "intervals of time (joint with adaptive intervals).",
    ),
    Measure(
        "generalization-by-duration", "mean generalization error by length of intervals", "tiles", "neither", Flows,
        generalization_by_hours,
        "Tiles of the origin and of the destination together, mean over the published trips whose rows have this length.",
        parts=LENGTHS,
    ),
)  # fmt: skip
