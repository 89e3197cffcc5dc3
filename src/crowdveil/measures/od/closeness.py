"""Measure t-closeness: how far the destinations of each published origin are from the destinations of all trips."""

from __future__ import annotations

import numpy as np

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, Ints, groups_of, row_slices, take_slices
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.trees import kd

FAR = 0.5
"""Distance above which the destinations of an origin count as far from those of all trips."""
AT_ONCE = 1 << 20
"""Tiles of destinations in memory; exceeded only by a single time step."""


def closeness(compared: OdComparison) -> Floats:
    """Return the mean distance over published trips, and the share of trips from origins that are far."""
    by_step = compared.once("t-closeness", lambda: _sums(compared))
    parts = [ratio(compared.of_steps(by_step[:, i]), compared.published) for i in range(by_step.shape[1])]
    return np.column_stack(parts)


def edge_weights(tree: Hierarchy) -> Floats:
    """Return the weight of the edge above each node: two tiles are as far apart as their common node is high.

    A tile has height 0, another node one more than its highest child; heights are shares of the root's. The way from tile to
    tile goes up and down, so an edge has half the difference of the heights of its ends.
    """
    height = np.zeros(len(tree.parent))
    for node, parent in enumerate(tree.parent.tolist()):  # children come before parents
        if parent >= 0:
            height[parent] = max(height[parent], height[node] + 1)
    inner = tree.parent >= 0
    weights = np.zeros(len(height))
    weights[inner] = (height[tree.parent[inner]] - height[inner]) / 2 / max(height.max(), 1.0)
    return weights


def tree_distances(tree: Hierarchy, shares: Floats, of_all: Floats) -> Floats:
    """Return the earth mover's distance of distributions over tiles (rows) from one: Σ over edges of weight · |difference|."""
    difference = (shares - of_all)[:, tree.leaf_tile]
    before = np.pad(np.cumsum(difference, axis=1), ((0, 0), (1, 0)))
    distances: Floats = np.abs(before[:, tree.last_leaf] - before[:, tree.first_leaf]) @ edge_weights(tree)
    return distances


def mean_variation(step: Ints, origin: Ints, destination: Ints, volume: Ints, offsets: Ints, tiles: Ints) -> float:
    """Return the mean over trips of the distance between an origin's destinations and all of its step, with tiles equally far.

    With equal distances the earth mover's distance is half the sum of differences (Li et al. 2007). Rows are sorted by step and
    origin; origins are numbered over all steps. The volume of a row is spread evenly over the tiles of its destination, which
    are tiles[offsets[d]:offsets[d + 1]].
    """
    begins = np.append(np.flatnonzero(np.diff(step, prepend=-1)), len(step))
    sizes = np.add.reduceat(np.diff(offsets)[destination], begins[:-1])
    sums = np.zeros(2)
    for low, high in (begins[[*group]] for group in groups_of(sizes, AT_ONCE)):
        entries, rows = take_slices(offsets, destination[low:high])
        row = row_slices(rows) + low
        spread = volume[row] / np.diff(rows)[row - low]
        sums += _variation_of_tiles(step[row], origin[row] - origin[low:high].min(), tiles[entries], spread)
    return float(sums[0] / sums[1]) if sums[1] else 0.0


def _variation_of_tiles(step: Ints, origin: Ints, tile: Ints, volume: Floats) -> tuple[float, float]:
    """Return the sum over trips of the distance, and the trips; a row is what goes from an origin to a tile."""
    if not volume.sum():
        return 0.0, 0.0
    count = int(tile.max()) + 1
    key, number = np.unique(origin * count + tile, return_inverse=True)
    trips_to = np.bincount(number, volume)
    of, to = key // count, key % count
    step_of = np.zeros(int(origin.max()) + 1, np.int64)
    step_of[origin] = step
    trips = np.bincount(of, trips_to)
    all_key, place = np.unique(step_of[of] * count + to, return_inverse=True)
    at_all = np.bincount(place, trips_to)
    of_all = at_all / np.bincount(all_key // count, at_all)[all_key // count]
    own, share_of_all = trips_to / np.maximum(trips[of], 1e-300), of_all[place]
    # Tiles that an origin has no trips to differ by their whole share.
    distance = (np.bincount(of, np.abs(own - share_of_all) - share_of_all) + 1) / 2
    return float((trips * distance)[trips > 0].sum()), float(trips.sum())


def _sums(compared: OdComparison) -> Floats:
    """Return for each time step the sums over trips of the distance, and of being far."""
    original, release = compared.original, compared.release
    sums = np.zeros((original.steps, 2))
    tree = original.destination_tree
    if tree is None:
        if np.isnan(original.zones.lon).any() or len(original.zones) == 0:
            return sums + np.nan
        tree = kd(original.zones)
    volume = compared.step_volume
    for step in range(original.steps):
        rows = np.arange(len(release))[compared.rows_of(step)]
        if not volume[rows].sum():
            continue
        origins, group = np.unique(release.origin[rows], return_inverse=True)
        entries, offsets = take_slices(release.areas.offsets, release.destination[rows].astype(np.int64))
        spread = np.repeat(volume[rows] / np.diff(offsets), np.diff(offsets))
        trips_to = np.zeros((len(origins), len(original.zones)))
        np.add.at(trips_to, (np.repeat(group, np.diff(offsets)), release.areas.tiles[entries]), spread)
        trips = trips_to.sum(axis=1)
        distance = tree_distances(
            tree, trips_to / np.maximum(trips, 1e-300)[:, None], trips_to.sum(axis=0) / trips.sum()
        )
        sums[step] = (trips * distance).sum(), trips[distance > FAR].sum()
    return sums


MEASURES = (
    Measure(
        "t-closeness", "distance of an origin's destinations from all", "", "neither", Flows, closeness,
        "Earth mover's distance on a tree of tiles between the destinations of each published origin and those of all published "
        "trips of the time step: its mean over trips, and the share of trips from origins with more than 0.5. The tree is that "
        "of the destinations where it is given, otherwise a k-d tree. 0: the origin reveals nothing about the destination.",
        parts=("mean", "share above 0.5"),
    ),
)  # fmt: skip
