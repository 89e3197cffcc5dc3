"""Reconstruct volumes where rows overlap: a cell has the sum of the shares of its rows."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels.od.release_rows import sum_levels
from crowdveil.model.arrays import Floats, frozen
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.solve.od.assignment import check_same_zones, rows_of_steps


def summed(original: Flows, release: FlowRelease, level: Floats) -> tuple[Floats, Floats]:
    """Return the reconstruction in the cell of each original flow, and the sum of its squares over all cells of each time step.

    `level` is the share of each row in each of its cells. Where no two rows share a cell the result is `level` itself.
    """
    check_same_zones(original, release)
    areas, rows = release.areas, rows_of_steps(original, release)
    return sum_levels(
        original.offsets, original.origin, original.destination, rows.first, rows.last, release.origin[rows.row],
        release.destination[rows.row], frozen(level[rows.row], np.float64), areas.offsets, areas.tiles,
        len(original.zones),
    )  # fmt: skip
