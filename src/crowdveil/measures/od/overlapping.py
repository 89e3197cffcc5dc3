"""E and D of a release whose rows overlap: the reconstruction is the sum of what each row has in a cell.

Where no two rows share a cell these are E and D of `reconstruction`, which needs far less memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.measures.base import ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats


def error(compared: OdComparison) -> Floats:
    """E of each time step: Σ |ṽ − v| / Σ v over all cells."""
    apart = [
        abs(rebuilt - original).sum() for rebuilt, original in (_matrices(compared, step) for step in _steps(compared))
    ]
    return ratio(np.array(apart, np.float64), compared.volume)


def distance(compared: OdComparison) -> Floats:
    """D of each time step: Σ |ṽ / Σ ṽ − v / Σ v| over all cells; NaN where nothing is published."""
    distances = np.full(compared.original.steps, np.nan)
    for step in _steps(compared):
        rebuilt, original = _matrices(compared, step)
        if compared.published[step] > 0 and compared.volume[step] > 0:
            shares = rebuilt / compared.published[step] - original / compared.volume[step]
            distances[step] = abs(shares).sum()
    return distances


def _steps(compared: OdComparison) -> range:
    return range(compared.original.steps)


def _matrices(compared: OdComparison, step: int) -> tuple[Any, Any]:
    """The reconstruction and the original of a time step, tiles by tiles, as sparse matrices."""
    from scipy.sparse import csr_array

    original, release, areas = compared.original, compared.release, compared.release.areas
    tiles = len(original.zones)
    held = csr_array((np.ones(len(areas.tiles)), areas.tiles, areas.offsets), shape=(len(areas), tiles))
    rows = compared.rows_of(step)
    between = (release.origin[rows], release.destination[rows])
    level = csr_array((compared.level[rows], between), shape=(len(areas), len(areas)))
    flows = slice(original.offsets[step], original.offsets[step + 1])
    cells = (original.origin[flows], original.destination[flows])
    volume = csr_array((original.volume[flows].astype(np.float64), cells), shape=(tiles, tiles))
    return held.T @ (level @ held), volume
