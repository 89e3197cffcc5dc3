"""Flows in boxes of a given partition, or between fixed areas, published where k people are behind them."""

from __future__ import annotations

import numpy as np

from crowdveil.errors import InputError
from crowdveil.kernels.od.release_rows import Rows, assign_rows
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints, Mask, frozen
from crowdveil.model.flows import Flows
from crowdveil.model.partition import BoxPartition
from crowdveil.model.release import FlowRelease
from crowdveil.solve.od.small_flows import Left, Reporting, count_groups
from crowdveil.solve.od.step_solver import finish_release, published_rows


def release_fixed_boxes(
    data: Flows,
    partition: BoxPartition,
    step_class: Ints,
    k: int,
    reporting: Reporting,
    publishable: Mask | None = None,
) -> FlowRelease:
    """Publish the boxes that reach k in each time step, by its class; suppress all other flows, or aggregate them if wanted.

    `publishable` says which boxes may be published, all by default.
    """
    areas, boxes = partition.areas, len(partition)
    first, last = (frozen(a, np.int64) for a in partition.boxes_of(step_class))
    rows = Rows(first, last, partition.origin, partition.destination)
    tiles_of_areas = areas.offsets, areas.tiles, len(data.zones)
    box, twice = assign_rows(data.offsets, data.origin, data.destination, rows, *tiles_of_areas)
    if twice:
        raise InputError("partition", "its boxes overlap. Give one whose boxes are disjoint.")
    inside = np.flatnonzero(box >= 0)
    keys, group = np.unique(data.step[inside] * max(boxes, 1) + box[inside], return_inverse=True)
    volume, crowd = count_groups(data, inside, group, len(keys))
    keep = crowd >= k if publishable is None else (crowd >= k) & publishable[keys % max(boxes, 1)]
    step, of_box = np.divmod(keys[keep], max(boxes, 1))
    bounds = np.arange(data.steps + 1)
    columns = partition.origin[of_box], partition.destination[of_box], volume[keep], crowd[keep]
    release = published_rows(data, areas, np.searchsorted(step, bounds), *columns)
    left = _left(partition, first, last, step, of_box) if reporting.wanted else Left(0 * bounds, _NONE, _NONE)
    return finish_release(data, release, left, k, reporting)


_NONE = np.zeros(0, np.int64)


def _left(partition: BoxPartition, first: Ints, last: Ints, step: Ints, of_box: Ints) -> Left:
    """Return the boxes of each time step that are not published."""
    left = []
    for number, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        published = of_box[np.searchsorted(step, number) : np.searchsorted(step, number + 1)]
        left.append(np.setdiff1d(np.arange(low, high), published))
    box = np.concatenate([_NONE, *left])
    offsets = np.cumsum([0, *map(len, left)])
    return Left(offsets, partition.origin[box].astype(np.int64), partition.destination[box].astype(np.int64))


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
