"""Compare the trips that leave and reach each tile with those of the reconstruction."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, Indices, take_slices
from crowdveil.model.flows import Flows


def error(compared: OdComparison, end: Literal["origin", "destination"]) -> Floats:
    """Return Σ over tiles of |ṽ_i· − v_i·| / Σ v, or of |ṽ_·j − v_·j| / Σ v for destinations."""
    tile, area = getattr(compared.original, end), getattr(compared.release, end)
    by_step = compared.once(f"{end} margin", lambda: _differences(compared, tile, area))
    return ratio(compared.of_steps(by_step), compared.volume)


def _differences(compared: OdComparison, tile: Indices, area: Indices) -> Floats:
    """Return the differences of each time step, one after the other: no table of all tiles in all steps is made."""
    original, release = compared.original, compared.release
    sums = np.zeros(original.steps)
    for step in range(original.steps):
        flows = slice(original.offsets[step], original.offsets[step + 1])
        rows = compared.rows_of(step)
        margin = np.bincount(tile[flows], original.volume[flows].astype(np.float64), len(original.zones))
        level = (
            np.bincount(area[rows], compared.step_volume[rows].astype(np.float64), len(release.areas))
            / release.areas.size
        )
        used = np.flatnonzero(level)
        taken, offsets = take_slices(release.areas.offsets, used)
        spread = np.repeat(level[used], np.diff(offsets))
        sums[step] = np.abs(margin - np.bincount(release.areas.tiles[taken], spread, len(original.zones))).sum()
    return sums


MEASURES = (
    Measure(
        "origin-margin", "error of trips by origin", "", "lower", Flows, partial(error, end="origin"),
        "Sum over tiles of the difference between the trips that leave it in the original and in the reconstruction, in "
        "original trips.",
    ),
    Measure(
        "destination-margin", "error of trips by destination", "", "lower", Flows,
        partial(error, end="destination"),
        "Sum over tiles of the difference between the trips that reach it in the original and in the reconstruction, in "
        "original trips.",
    ),
)  # fmt: skip
