"""Boxes of an OD matrix: all pairs of regions that hold a crowd, how each can be split, and what each costs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from crowdveil.errors import InputError, Option, Text
from crowdveil.kernels.od.deviation import deviations
from crowdveil.kernels.od.dyadic import build_dyadic_boxes
from crowdveil.kernels.od.structures import BY_ORIGIN, BoxArrays, OriginTree, Splits
from crowdveil.kernels.od.tree_boxes import build_boxes
from crowdveil.model.arrays import Ints, frozen
from crowdveil.solve.od.dyadic_regions import DyadicRegions
from crowdveil.solve.od.region_space import Objective, large_enough_map
from crowdveil.solve.od.step_matrix import Matrix

MAX_WORDS = 2**27
"""Words of 64 bits that dyadic boxes of a matrix may take while they are built: 1 GiB."""
BLOCK_FACTOR, GROWTH_MARGIN = 4, 2
"""How the size of regions with one split falls, and how much faster boxes may grow than pairs of regions before it is tried."""
DEVIATION_SCALE = 1000
"""Deviations are fractions; they count in thousandths of a trip, so that costs stay whole numbers."""


class BuiltBoxes(NamedTuple):
    """All boxes of a matrix, how each can be split, and what its areas cost times its trips."""

    boxes: BoxArrays
    splits: Splits
    cost: Ints


class TooManyBoxesError(InputError):
    """Boxes of dyadic regions would take too much memory."""


def build_bounded_boxes(matrix: Matrix, k: int, *, origins_first: bool = False) -> tuple[Matrix, BuiltBoxes]:
    """Build all boxes of a matrix; return it with the regions that were used.

    Where all dyadic regions have too many boxes, regions of few tiles are halved in one direction only: first all, as in a
    tree, then smaller and smaller ones while their boxes are few enough. That depends on this matrix alone, so a time step
    has the same boxes alone and among others.
    """
    with suppress(TooManyBoxesError):
        return matrix, build_matrix_boxes(matrix, k, origins_first=origins_first)
    system = matrix.system
    block = int(system.origins.regions.size[-1])
    best = replace(matrix, system=system.with_blocks(block))
    built = build_matrix_boxes(best, k)
    while block > BLOCK_FACTOR:
        block //= BLOCK_FACTOR
        finer = replace(matrix, system=system.with_blocks(block))
        growth = (finer.system.origins.large_enough.sum() / best.system.origins.large_enough.sum()) ** 2
        if GROWTH_MARGIN * growth * _words(built) > MAX_WORDS:
            break
        try:
            best, built = finer, build_matrix_boxes(finer, k)
        except TooManyBoxesError:
            break
    return best, built


def _words(built: BuiltBoxes) -> int:
    """Return the words of 64 bits that boxes and their splits take."""
    return sum(len(array) for array in (*built.boxes, *built.splits))


def build_matrix_boxes(matrix: Matrix, k: int, *, origins_first: bool = False) -> BuiltBoxes:
    """Build all boxes of a matrix that reach k, and how each can be split."""
    system = large_enough_map(matrix.system)
    origins, destinations = system.origins, system.destinations
    if isinstance(origins.regions, DyadicRegions):
        large = frozen(origins.large_enough, np.int64)
        enough, boxes, splits = build_dyadic_boxes(
            matrix.rows, *matrix.pairs_by_person(), origins.regions.arrays, large, large, k, MAX_WORDS
        )
        if not enough:
            raise TooManyBoxesError(
                Text(
                    "dyadic splits of this map and these flows need more than {most} GiB of memory. Use {splits}.",
                    most=8 * MAX_WORDS >> 30,
                    splits=Option("splits", "tree"),
                )
            )
        return BuiltBoxes(boxes, splits, (origins.cost[boxes.origin] + origins.cost[boxes.destination]) * boxes.volume)
    leaves = origins.tree.tiles
    pairs = matrix.pairs_by(np.arange(leaves, dtype=np.int32), leaves) if len(matrix.person) else None
    trees, costs = (origins.as_origins, destinations.as_destinations), (origins.cost, destinations.cost)
    return BuiltBoxes(*build_boxes(matrix.in_order_of_leaves(matrix.rows), pairs, *trees, *costs, origins_first, k))


def build_given_origins(matrix: Matrix, origins: Ints, k: int, scale: int = 1) -> BuiltBoxes:
    """Build the boxes of given origins, nodes that hold each tile once, in rising order; costs are multiplied with `scale`.

    An origin is not split. Where there are several, the last box is the whole map, which must be split into them.
    """
    system, count = matrix.system, len(origins)
    tree, number, zero = system.origins.tree, np.arange(count), np.zeros(count + 1, np.int64)
    pairs = None
    if len(matrix.person):
        pairs = matrix.pairs_by(np.repeat(np.arange(count, dtype=np.int32), tree.size[origins]), count)
    by_leaf = matrix.rows_by_leaf
    starts = by_leaf.offsets[np.append(tree.first_leaf[origins], tree.tiles)]
    rows = matrix.in_order_of_leaves(by_leaf._replace(offsets=frozen(starts, np.int64)))
    # Each origin is a tree of a single leaf.
    leaves = OriginTree(*(frozen(a, np.int64) for a in (zero, zero[:0], number, number, zero[1:] + 1)))
    o_cost, d_cost = (frozen(scale * c, np.int64) for c in (system.origins.cost[origins], system.destinations.cost))
    boxes, splits, cost = build_boxes(
        rows, pairs, leaves, system.destinations.as_destinations, o_cost, d_cost, False, k
    )
    top = np.flatnonzero(np.diff(boxes.origin, append=-1))
    boxes = boxes._replace(origin=origins[boxes.origin])
    if count == 1:
        return BuiltBoxes(boxes, splits, cost)
    total, lost = matrix.total, matrix.total - boxes.volume[top].sum()
    map_box = (tree.root, system.destinations.tree.root, total, total, len(rows.tile))
    boxes = BoxArrays(*(np.append(column, value) for column, value in zip(boxes, map_box, strict=True)))
    ends = len(splits.kind) + 1, len(splits.link) + len(top)
    more = (ends[0], BY_ORIGIN, lost, ends[1], top)
    splits = Splits(*(np.append(column, value) for column, value in zip(splits, more, strict=True)))
    return BuiltBoxes(boxes, splits, np.append(cost, scale * system.widest * total))


def box_deviations(matrix: Matrix, boxes: BoxArrays, steps: int = 1) -> Ints:
    """Return what each box loses when its volume is spread evenly over its cells, pairs of tiles in `steps` time steps."""
    regions = (side.regions for side in (matrix.system.origins, matrix.system.destinations))
    tiles = (frozen(a, np.int64) for r in regions for a in r.tiles_of(np.arange(len(r.size))))
    return frozen(deviations(boxes, matrix.rows, steps, DEVIATION_SCALE, *tiles), np.int64)


def lost_cost_of(objective: Objective) -> int:
    """Return what a suppressed trip costs."""
    return DEVIATION_SCALE if objective == "reconstruction" else 0
