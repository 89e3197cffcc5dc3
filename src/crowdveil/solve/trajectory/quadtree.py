"""Sectors that each have the locations of at least k people: a quadtree over the map."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels.trajectory.quadtree import k_anonymous_sectors as cut
from crowdveil.model.sectors import SectorFrame, Sectors
from crowdveil.model.tessellation import public_box
from crowdveil.model.trajectories import Trajectories


def k_anonymous_sectors(
    data: Trajectories,
    k: int,
    cell_m: float,
    split_above: int,
    *,
    merge: bool = True,
    halve: bool = True,
    suppress: float = 0.0,
) -> Sectors:
    """Cut the plane into sectors with the locations of at least k people each; the data must have as many.

    A sector with more than `split_above` locations is cut in four, down to cells of `cell_m`. With `merge`, quarters with fewer
    than k people are put together with a neighbor. If one is left without, it is suppressed where it has at most a share
    `suppress` of the locations, and otherwise the sector stays whole. With `halve`, long sectors are cut in two where both halves
    hold k people, or one can be suppressed.
    """
    frame = SectorFrame.around(public_box(data.extent, cell_m), cell_m)
    x, y = (frame.cells(along) for along in frame.projection.to_plane(data.lon, data.lat))
    person = np.repeat(data.person, np.diff(data.offsets)).astype(np.int32)
    found, suppressed_people = cut(x, y, person, data.people, frame.depth, k, split_above, merge, halve, suppress)
    first, last, column, row, wide, high, people = found[np.lexsort((found[:, 2], found[:, 3]))].T
    suppressed = data.points - int((last - first).sum())
    return Sectors(
        frame, column, row, 1 << wide, 1 << high, last - first, people, data.k_unit, suppressed, suppressed_people
    )
