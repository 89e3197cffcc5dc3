"""Build trees over tiles: by position (Ward, k-d), by the tiles' own system (quadtree, H3), by a table."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import h3 as h3_library
import numpy as np
import pyarrow as pa

from crowdveil import engine
from crowdveil.errors import InputError, Option, ParameterError, Text, rows_named
from crowdveil.kernels.trees import ward_merges
from crowdveil.model.arrays import Floats, Indices, Ints, Mask, Words, require
from crowdveil.model.hierarchy import Hierarchy, tiles_first
from crowdveil.model.tree_tables import NODE_COLUMNS, levels, nodes, parents
from crowdveil.model.zones import Zones

__all__ = ["BUILDERS", "build", "h3", "kd", "levels", "nodes", "parents", "quadtree", "ward"]

TIE = 1.06
"""Costs of merges that differ by less than this factor are tied: more than the noise in centroids does, and little to a tree."""
_HALF_MM = 5e-4

_made: WeakKeyDictionary[Zones, Hierarchy] = WeakKeyDictionary()
"""Ward trees of zones in use: partitions of a data set, and methods that are compared, use the same tree."""


def ward(zones: Zones) -> Hierarchy:
    """Build the Ward dendrogram of the tiles' centroids: neighbors merge first, into compact areas.

    Near-ties go by the order of the tiles: the tree of a regular grid is the same whoever computes its centroids.

    Every position counts once: tiles with the same centroid (to a millimeter) become children of one node, and
    that node enters the dendrogram like a single tile.
    """
    if zones not in _made:
        _made[zones] = _ward(zones)
    return _made[zones]


def _ward(zones: Zones) -> Hierarchy:
    x, y = _plane(zones, "Ward trees")
    _, tile, position = np.unique(np.column_stack((x, y)), axis=0, return_index=True, return_inverse=True)
    tile, position = np.sort(tile), np.argsort(np.argsort(tile))[position.ravel()]  # in the order of the tiles
    n, m = len(zones), len(tile)
    merges = engine.apart(lambda: ward_merges(x[tile], y[tile], TIE))
    # Merged nodes are numbered by their first position, so that the order of children does not depend on that of the merges.
    rank = np.argsort(np.argsort(merges[:, 2], kind="stable"))
    number = np.concatenate([np.arange(m), m + rank])
    parent = np.full(n + 2 * m - 1, -1, np.int64)
    parent[:n] = n + position
    parent[n + number[merges[:, :2]]] = (n + m + rank)[:, None]
    return Hierarchy.from_parents(parent, tiles_first(n, len(parent)), "ward")


def kd(zones: Zones) -> Hierarchy:
    """Build balanced splits: halve every node at the median, across the longer side of the box of its centroids.

    The halves differ by at most one tile. Equal coordinates are ordered by the other coordinate, then by tile.
    """
    x, y = _plane(zones, "k-d trees")
    along_x, along_y = _ranks(x, y), _ranks(y, x)
    n = len(zones)
    order, bounds, node = np.arange(n), np.array([0, n]), np.zeros(1, np.int64)
    parent = [np.array([-1])]
    nodes = 1
    while len(node) < n:
        # Places are whole millimeters or cells; differences of floats are so only up to rounding.
        tall = _extents(y[order], bounds) - _extents(x[order], bounds) > _HALF_MM
        piece = np.repeat(np.arange(len(node)), np.diff(bounds))
        rank = np.where(tall[piece], along_y[order], along_x[order])
        order = order[np.argsort(piece * n + rank)]
        bounds, owner, is_new = _halved(bounds)
        above = node[owner]
        parent.append(above[is_new])
        node = np.where(is_new, nodes - 1 + np.cumsum(is_new), above)
        nodes += int(np.count_nonzero(is_new))
    tile = np.full(nodes, -1, np.int64)
    tile[node] = order
    return Hierarchy.from_parents(np.concatenate(parent), tile, "kd")


def quadtree(zones: Zones) -> Hierarchy:
    """Build quarters of quarters of the square that covers the grid: south-west, south-east, north-west, north-east.

    Sides are powers of two tiles, counted from the grid's south-west corner. Quarters without tiles are left out.
    """
    if zones.kind != "grid" or zones.column is None or zones.row is None:
        raise InputError(
            Text(
                "a quadtree needs a square grid of zones, but these are of kind {kind}. Make one with {zones}.",
                kind=zones.kind,
                zones=Option("zones", "grid:500m"),
            )
        )
    _need_tiles(zones)
    column, row = zones.column, zones.row
    require(min(int(column.min()), int(row.min())) >= 0, "zones: columns and rows of a grid must count from 0.")
    code = _spread(column) | (_spread(row) << np.uint64(1))
    halvings = max(int(column.max()), int(row.max())).bit_length()
    return Hierarchy.from_units([code >> np.uint64(2 * level) for level in range(halvings + 1)], "quadtree")


def h3(zones: Zones) -> Hierarchy:
    """Build the parents of H3 cells at every coarser resolution, and one root above the cells of resolution 0."""
    if zones.kind != "h3":
        raise InputError(
            Text(
                "an H3 tree needs H3 cells as zones, but these are of kind {kind}. Make them with {zones}.",
                kind=zones.kind,
                zones=Option("zones", "h3:8"),
            )
        )
    _need_tiles(zones)
    cells = _h3_cells(zones)
    resolutions = (cells >> np.uint64(52)) & np.uint64(15)
    finest = int(resolutions.max())
    require(
        bool(np.all(resolutions == finest)),
        Text(
            "an H3 tree needs cells of one resolution, but the zones have several. Make them with {zones}.",
            zones=Option("zones", "h3:8"),
        ),
    )
    return Hierarchy.from_units([_h3_parents(cells, r) for r in range(finest, -1, -1)], "h3")


BUILDERS: dict[str, Callable[[Zones], Hierarchy]] = {"ward": ward, "kd": kd, "quadtree": quadtree, "h3": h3}
"""The trees that need tiles alone, by their names in `--hierarchy`."""


def build(zones: Zones, kind: str | pa.Table) -> Hierarchy:
    """Build the tree named `kind`, or the tree of a table.

    A table with the columns of a written tree is read by `nodes`, one with `node` and `parent` alone by `parents`, every other
    by `levels`.
    """
    if not isinstance(kind, str):
        if set(kind.column_names) == set(NODE_COLUMNS):
            return nodes(zones, kind)
        edges = set(kind.column_names) == {"node", "parent"}
        return parents(zones, kind) if edges else levels(zones, kind)
    if kind not in BUILDERS:
        raise ParameterError(
            Option("hierarchy"), f"Expected one of {', '.join(BUILDERS)} or a table of levels, got {kind!r}."
        )
    return BUILDERS[kind](zones)


def _need_tiles(zones: Zones) -> None:
    require(len(zones) > 0, "hierarchy: expected a tree over at least one tile, got no tile.")


def _plane(zones: Zones, purpose: str) -> tuple[Floats, Floats]:
    """Return centroids in meters, such that equal centroids have equal meters.

    A projection leaves noise of nanometers, which must not decide the side of a split: grids use their columns and
    rows, all others are rounded to a millimeter.
    """
    zones.need_location(purpose)
    _need_tiles(zones)
    if zones.grid is not None and zones.column is not None and zones.row is not None:
        side = np.float64(zones.grid.size_m)
        return zones.column * side, zones.row * side
    x, y = zones.xy
    return np.round(x, 3), np.round(y, 3)


def _ranks(major: Floats, minor: Floats) -> Ints:
    """Return the rank of each tile in order of `major`, then `minor`, then its index."""
    rank = np.empty(len(major), np.int64)
    rank[np.lexsort((minor, major))] = np.arange(len(major))
    return rank


def _extents(values: Floats, bounds: Ints) -> Floats:
    """Return the largest minus the smallest value of each node."""
    begins = bounds[:-1]
    extents: Floats = np.maximum.reduceat(values, begins) - np.minimum.reduceat(values, begins)
    return extents


def _halved(bounds: Ints) -> tuple[Ints, Ints, Mask]:
    """Halve all nodes of more than one tile: return bounds, the old node of each node, and whether it is new."""
    sizes = np.diff(bounds)
    split = sizes > 1
    middles = (bounds[:-1] + sizes // 2)[split]
    owner = np.repeat(np.arange(len(sizes)), 1 + split)
    return np.sort(np.concatenate([bounds, middles])), owner, split[owner]


def _spread(values: Indices) -> Words:
    """Return the bits of each value with a zero bit above each, so that two values can be interleaved (Morton)."""
    spread = values.astype(np.uint64)
    for shift, mask in _SPREADING:
        spread = (spread | (spread << np.uint64(shift))) & np.uint64(mask)
    return spread


_SPREADING = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)


def _h3_cells(zones: Zones) -> Words:
    bad = [i + 1 for i, cell in enumerate(zones.ids) if not h3_library.is_valid_cell(cell)]
    if bad:
        raise InputError(
            f"an H3 tree needs H3 cells as zones, but the id is not an H3 cell in {rows_named(bad, len(bad))}."
        )
    return np.array([h3_library.str_to_int(cell) for cell in zones.ids], np.uint64)


def _h3_parents(cells: Words, resolution: int) -> Words:
    """Return the parents at a resolution: it goes into bits 52 to 55, and all finer digits, 3 bits each, become 7."""
    unused = np.uint64((1 << (3 * (15 - resolution))) - 1)
    kept = cells & ~np.uint64(15 << 52)
    return kept | np.uint64(resolution << 52) | unused
