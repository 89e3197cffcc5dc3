"""Flows between fixed areas, the same for all time steps, published where k people are behind them."""

from __future__ import annotations

import numpy as np

from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.solve.od.small_flows import Left, Reporting, count_groups
from crowdveil.solve.od.step_solver import finish_release, published_rows


def release_merged_flows(data: Flows, areas: Areas, part: Ints, k: int, reporting: Reporting) -> FlowRelease:
    """Publish the flows between areas, each tile in one of them, that reach k; aggregate the others if wanted.

    Parameters
    ----------
    areas
        The parts of the map.
    part
        The area of each tile.
    """
    n = len(areas)
    key = (data.step * n + part[data.origin]) * n + part[data.destination]
    keys, row = np.unique(key, return_inverse=True)
    volume, crowd = count_groups(data, np.arange(len(data)), row, len(keys))
    step, origin, destination = keys // max(n * n, 1), keys // max(n, 1) % max(n, 1), keys % max(n, 1)
    keep = crowd >= k
    bounds = np.arange(data.steps + 1)
    columns = origin[keep], destination[keep], volume[keep], crowd[keep]
    release = published_rows(data, areas, np.searchsorted(step[keep], bounds), *columns)
    left = Left(np.searchsorted(step[~keep], bounds), origin[~keep], destination[~keep])
    return finish_release(data, release, left, k, reporting)
