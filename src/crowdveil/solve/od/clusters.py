"""Clusters of flows, each published by the rectangles around its origins and around its destinations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from shapely import STRtree, box, points

from crowdveil import engine
from crowdveil.engine.progress import Progress
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Indices, Ints, slice_sums
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, REPORTED, FlowRelease
from crowdveil.model.zones import Zones
from crowdveil.solve.od.small_flows import Reporting, count_groups
from crowdveil.solve.od.step_solver import check_person_ids
from crowdveil.solve.od.weights import added_up, rounded_within_budget, weight_of_steps

SUPPRESSED = -1

Clusterer = Callable[[int], Ints]
"""From a time step the cluster of each of its flows, numbered from 0, or SUPPRESSED."""


class StepFlows(NamedTuple):
    """The flows of a time step: as points (see `places`), trips and crowd of each, and who made them; None if not known."""

    place: Floats
    volume: Ints
    crowd: Ints
    people: list[frozenset[int]] | None

    def crowd_of(self, flows: Ints) -> int:
        """Return how many people, or trips, are behind some flows."""
        if self.people is None:
            return int(self.crowd[flows].sum())
        return len(frozenset().union(*(self.people[flow] for flow in flows)))


def step_flows(data: Flows, step: int) -> StepFlows:
    """Return the flows of a time step."""
    rows = slice(data.offsets[step], data.offsets[step + 1])
    people = None
    if data.person_ids is not None and data.person_offsets is not None:
        bounds = data.person_offsets[rows.start : rows.stop + 1].tolist()
        people = [frozenset(data.person_ids[low:high].tolist()) for low, high in pairwise(bounds)]
    return StepFlows(places(data, step), data.volume[rows], data.people[rows], people)


def places(data: Flows, step: int) -> Floats:
    """Return flows of a time step as points, one row each: x and y of the origin, x and y of the destination, in meters."""
    x, y = data.zones.xy
    rows = slice(data.offsets[step], data.offsets[step + 1])
    origin, destination = data.origin[rows], data.destination[rows]
    return np.column_stack([x[origin], y[origin], x[destination], y[destination]])


def nearest_flows(place: Floats, chosen: Ints, most: int) -> list[Ints]:
    """Find the `most` nearest of each of the chosen flows, among these, by the sum of differences in all dimensions.

    Equally far flows come in their order.
    """
    points = place[chosen]
    tree, most = cKDTree(points), min(most, len(chosen) - 1)
    if most < 1:
        return [chosen[:0]] * len(chosen)
    farthest = tree.query(points, k=[most + 1], p=1)[0][:, 0]  # the flow itself is among them
    found = []
    for i, listed in enumerate(tree.query_ball_point(points, farthest * (1 + 1e-12), p=1, return_sorted=True)):
        near = np.array(listed)
        near = near[near != i]
        far = np.abs(points[near] - points[i]).sum(axis=1)
        found.append(chosen[near[np.argsort(far, kind="stable")[:most]]])
    return found


def number_clusters(clusters: Iterable[Ints], flows: int) -> Ints:
    """Return the cluster of each flow, numbered in order of their first flows, SUPPRESSED where it is in none."""
    label = np.full(flows, SUPPRESSED)
    for number, flows_inside in enumerate(sorted(clusters, key=min)):
        label[flows_inside] = number
    return label


def release_clusters(
    data: Flows, k: int, clusterer: Clusterer, reporting: Reporting, progress: Progress
) -> FlowRelease:
    """Cluster each time step that has a crowd of k, on the engine in use, and publish every cluster.

    A row is a cluster: its volume and crowd are those of its own flows, its areas are all tiles whose centroids lie in
    the rectangle around its origins, and in the one around its destinations. Areas of two rows may overlap.

    Small volumes, if they are to be reported, are those of the suppressed flows of one origin tile. Other rows do not show
    where these do not go, since areas overlap: with empty destinations included, the reported destination is the whole map.
    """
    check_person_ids(data)
    if len(data) == 0:
        return _release(data, _Rows.none(), np.zeros(0, np.int64))
    data.zones.need_location("clusters of flows")

    def solve(step: int) -> tuple[Ints]:
        if data.people_in_step(step) < k:
            return (np.full(int(data.offsets[step + 1] - data.offsets[step]), SUPPRESSED),)
        return (clusterer(step),)

    labels = [label for (label,) in engine.current().map(solve, data.steps, progress)]
    # Numbers go on from step to step.
    first = np.cumsum([0, *(int(label.max(initial=-1)) + 1 for label in labels)])
    label = np.concatenate([np.where(x < 0, SUPPRESSED, x + at) for x, at in zip(labels, first[:-1], strict=True)])
    rows = _published(data, label, int(first[-1]))
    if reporting.wanted:
        rows = rows.and_more(_reported(data, label, len(rows.step), k, reporting.include_empty))
    release = _release(data, rows, label)
    volume = data.trips_by_step - slice_sums(release.offsets, release.volume)
    release = release.with_suppressed(data.suppressed_totals(label < 0, volume, k, NOT_GIVEN))
    return release.without_empty_rows().without_unused_areas()


class _Rows(NamedTuple):
    """Rows that are numbered like the labels of their flows: time step, state, tiles of origin and destination."""

    step: Ints
    state: Ints
    origin: list[Indices]
    destination: list[Indices]

    @classmethod
    def none(cls) -> _Rows:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), [], [])

    def and_more(self, more: _Rows) -> _Rows:
        step, state = (np.concatenate(both) for both in ((self.step, more.step), (self.state, more.state)))
        return _Rows(step, state, self.origin + more.origin, self.destination + more.destination)


def _published(data: Flows, label: Ints, clusters: int) -> _Rows:
    """Make a row for each cluster."""
    inside = np.flatnonzero(label >= 0)
    step = np.zeros(clusters, np.int64)
    step[label[inside]] = data.step[inside]
    origin, destination = (
        _tiles_in(data.zones, _around(data.zones, side[inside], label[inside], clusters))
        for side in (data.origin, data.destination)
    )
    return _Rows(step, np.full(clusters, PUBLISHED), origin, destination)


def _reported(data: Flows, label: Ints, first: int, k: int, include_empty: bool) -> _Rows:
    """Make a row for each tile whose suppressed flows in a time step are made by k people together; these get labels from
    `first` on.
    """
    small = np.flatnonzero(label < 0)
    keys, group = np.unique(data.step[small] * len(data.zones) + data.origin[small], return_inverse=True)
    volume, crowd = count_groups(data, small, group, len(keys))
    kept = (crowd >= k) & (volume >= k)
    number = np.where(kept, first + np.cumsum(kept) - 1, SUPPRESSED)
    label[small] = number[group]
    step, tile = np.divmod(keys[kept], len(data.zones))
    everywhere = np.arange(len(data.zones), dtype=np.int32)
    # Flows are sorted by step, origin and destination: those of a row follow one another in `small`.
    visited = np.split(data.destination[small], np.searchsorted(group, np.arange(1, len(keys))))
    destination = [everywhere if include_empty else visited[i] for i in np.flatnonzero(kept)]
    return _Rows(step, np.full(len(step), REPORTED), [everywhere[t : t + 1] for t in tile], destination)


def _release(data: Flows, rows: _Rows, label: Ints) -> FlowRelease:
    """Make a release of rows with the volume and the crowd of their flows, in order of steps."""
    n, inside = len(rows.step), np.flatnonzero(label >= 0)
    trips, units = added_up(data, inside, label[inside], n)
    _, crowd = count_groups(data, inside, label[inside], n)
    order = np.argsort(rows.step, kind="stable")
    offsets = np.searchsorted(rows.step[order], np.arange(data.steps + 1))
    areas, number = Areas.of_sets(data.zones, rows.origin + rows.destination)
    chosen = np.zeros(n, np.int64)
    np.add.at(chosen, label[inside], data.volume[inside])
    volume = trips[order]
    if data.weight is not None:
        exact = weight_of_steps(data)
        volume = rounded_within_budget(volume, units[order], chosen[order], offsets, data.trips_by_step, exact)
    return FlowRelease(
        areas,
        data.t,
        offsets,
        number[:n][order].astype(np.int32),
        number[n:][order].astype(np.int32),
        volume,
        crowd[order],
        rows.state[order].astype(np.uint8),
        np.full(data.steps, NOT_GIVEN),
        data.k_unit,
        data.step_s,
        data.tz,
    )


def _around(zones: Zones, tile: Indices, group: Ints, groups: int) -> Floats:
    """Return the rectangle around the centroids of the tiles of each group: least and largest x, least and largest y."""
    rectangles = np.empty((groups, 4))
    for axis, values in enumerate(zones.xy):
        rectangles[:, 2 * axis], rectangles[:, 2 * axis + 1] = np.inf, -np.inf
        np.minimum.at(rectangles[:, 2 * axis], group, values[tile])
        np.maximum.at(rectangles[:, 2 * axis + 1], group, values[tile])
    return rectangles


def _tiles_in(zones: Zones, rectangles: Floats) -> list[Indices]:
    """Return the tiles whose centroids lie in each rectangle."""
    if len(rectangles) == 0:
        return []
    tree = STRtree(points(*zones.xy))
    left, right, bottom, top = rectangles.T
    rectangle, tile = tree.query(box(left, bottom, right, top))
    order = np.lexsort((tile, rectangle))
    return np.split(tile[order].astype(np.int32), np.searchsorted(rectangle[order], np.arange(1, len(rectangles))))
