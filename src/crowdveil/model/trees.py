"""Build trees over tiles: by position (Ward, k-d), by the tiles' own system (quadtree, H3), or from a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from weakref import WeakKeyDictionary

import h3 as h3_library
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil import engine
from crowdveil.errors import InputError, Option, ParameterError, Text, counted, rows_named
from crowdveil.kernels.trees import ward_merges
from crowdveil.model.arrays import Floats, Ints, Mask, require
from crowdveil.model.hierarchy import Hierarchy, tiles_first
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
    column, row = zones.column.astype(np.int64), zones.row.astype(np.int64)
    require(min(int(column.min()), int(row.min())) >= 0, "zones: columns and rows of a grid must count from 0.")
    halvings, width = max(int(column.max()), int(row.max())).bit_length(), int(column.max()) + 1
    # Numbered by row, then column: so the quarters of each square are in this order, too.
    quarters = [(row >> level) * width + (column >> level) for level in range(halvings + 1)]
    return Hierarchy.from_units(quarters, "quadtree")


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
    bad = [i + 1 for i, cell in enumerate(zones.ids) if not h3_library.is_valid_cell(cell)]
    if bad:
        raise InputError(
            f"an H3 tree needs H3 cells as zones, but the id is not an H3 cell in {rows_named(bad, len(bad))}."
        )
    resolutions = {h3_library.get_resolution(cell) for cell in zones.ids}
    require(
        len(resolutions) == 1,
        Text(
            "an H3 tree needs cells of one resolution, but the zones have several. Make them with {zones}.",
            zones=Option("zones", "h3:8"),
        ),
    )
    parents_at = (
        [h3_library.cell_to_parent(cell, resolution) for cell in zones.ids]
        for resolution in range(resolutions.pop(), -1, -1)
    )
    return Hierarchy.from_units([np.array(cells) for cells in parents_at], "h3")


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
    """Return centroids in meters, equal ones for equal centroids.

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


def levels(zones: Zones, table: pa.Table) -> Hierarchy:
    """Make the tree of a table with one row a tile: its id, then its units, from fine to coarse.

    Parameters
    ----------
    zones
        The tiles. Each must have exactly one row.
    table
        The first column has tile ids, every further column the unit of a level (tract, district, city). Names of units
        are unique within their column. A unit must lie in one unit of the next column.

    The tree does not depend on the order of the rows; units are in the order of their first tile.
    """
    names = table.column_names
    require(
        len(names) >= 2, "table of levels: expected a column of tile ids and at least one of units, got fewer columns."
    )
    row = _row_of_tile(zones, _complete(table, 0))
    units = [_first_seen(_complete(table, i), row) for i in range(1, len(names))]
    for i, (fine, coarse) in enumerate(pairwise(units), start=1):
        _check_nested(fine, coarse, row, names[i], names[i + 1])
    return Hierarchy.from_units(units, "levels")


def parents(zones: Zones, table: pa.Table) -> Hierarchy:
    """Make the tree of a table with one row a node: its name in column `node`, the name above it in column `parent`.

    The tiles' ids are the names of the leaves. The root has no row, or a row without parent. The tree does not
    depend on the order of the rows; children are in order of their names, tiles in their own.
    """
    absent = [name for name in ("node", "parent") if table.column_names.count(name) != 1]
    require(not absent, f"table of parents: expected one column named {' and one named '.join(absent)}.")
    node_text = _complete(table, table.column_names.index("node"))
    parent_text, is_root = _text(table, table.column_names.index("parent"))
    names = _all_names(zones, node_text, parent_text.filter(_arrow(~is_root)))
    node, above = _positions(node_text, names), _positions(parent_text, names)
    # A missing value is no name, even where a tile is called "nan".
    above[is_root] = -1
    _check_edges(zones, node, above, len(names))
    parent = np.full(len(names), -1, np.int64)
    parent[node] = above
    return Hierarchy.from_parents(parent, tiles_first(len(zones), len(names)), "parents")


def named_units(zones: Zones, table: pa.Table) -> tuple[tuple[str, Ints], ...]:
    """Return name and tiles of each unit of several tiles, from a table of levels or of parents; no table of nodes has names.

    The table must be one that `levels` or `parents` takes. Units with the same tiles have the name of the finest.
    """
    if set(table.column_names) == set(NODE_COLUMNS):
        return ()
    edges = set(table.column_names) == {"node", "parent"}
    found: dict[bytes, tuple[str, Ints]] = {}
    for name, tiles in _parent_units(zones, table) if edges else _level_units(zones, table):
        if len(tiles) > 1:
            found.setdefault(tiles.tobytes(), (name, tiles))
    return tuple(found.values())


def _level_units(zones: Zones, table: pa.Table) -> Iterator[tuple[str, Ints]]:
    """Yield the units of a table of levels, from fine to coarse, each with its tiles in order."""
    row = _row_of_tile(zones, _complete(table, 0))
    for column in range(1, len(table.column_names)):
        text = _complete(table, column)
        unit = _first_seen(text, row)
        order = np.argsort(unit, kind="stable")
        for tiles in np.split(order, np.flatnonzero(np.diff(unit[order])) + 1):
            yield str(text[int(row[tiles[0]])]), tiles


def _parent_units(zones: Zones, table: pa.Table) -> Iterator[tuple[str, Ints]]:
    """Yield the inner nodes of a table of parents, smaller ones first, each with its tiles in order."""
    (node, _), (parent, _) = (_text(table, table.column_names.index(name)) for name in ("node", "parent"))
    above = dict(zip(node.to_pylist(), parent.to_pylist(), strict=True))
    below: dict[str, list[int]] = {}
    for tile, name in enumerate(zones.ids):
        unit = above.get(name)
        while unit:
            below.setdefault(unit, []).append(tile)
            unit = above.get(unit)
    for name in sorted(below, key=lambda name: (len(below[name]), name)):
        yield name, np.array(below[name], np.int64)


NODE_COLUMNS = ("node", "parent", "tiles", "tile")
"""Columns of a written tree, see `crowdveil.io.hierarchy.hierarchy_table`."""


def nodes(zones: Zones, table: pa.Table) -> Hierarchy:
    """Make the tree of a table that `crowdveil hierarchy` wrote: number of each node, number of its parent, tile of a leaf.

    The tree has the same nodes in the same order. The column `tiles` is not read. Rows may be in any order.
    """
    node, no_node = _numbers(table, "node")
    parent, is_root = _numbers(table, "parent")
    _refuse(np.flatnonzero(no_node) + 1, "table of nodes: column node has no value in", "Write the tree again")
    n = len(node)
    known = (node >= 0) & (node < n)
    _refuse(
        np.flatnonzero(~known) + 1, f"table of nodes: expected numbers from 0 to {n - 1:,}, but another is in", "Fix it"
    )
    _refuse(_repeats(node), "table of nodes: an earlier node is repeated in", "Leave one")
    stray = ~is_root & ((parent < 0) | (parent >= n))
    _refuse(np.flatnonzero(stray) + 1, "table of nodes: the parent has no row in", "Add it")
    text, inner = _text(table, table.column_names.index("tile"))
    tile = _positions(text, _zone_ids(zones))
    tile[inner] = -1
    _refuse(np.flatnonzero((tile < 0) & ~inner) + 1, "table of nodes: the zones lack the tile of", "Give its zones")
    lacking = len(zones) - len(np.unique(tile[tile >= 0]))
    require(
        lacking == 0,
        f"table of nodes: expected a row for each tile, but {counted(lacking, 'tile')} had none. Add them.",
    )
    order = np.argsort(node)
    return Hierarchy.from_parents(np.where(is_root, -1, parent)[order], tile[order], "nodes")


def _numbers(table: pa.Table, name: str) -> tuple[Ints, Mask]:
    """Return a column of whole numbers, and which rows have none."""
    require(table.column_names.count(name) == 1, f"table of nodes: expected one column named {name}.")
    text, missing = _text(table, table.column_names.index(name))
    try:
        numbers = pc.if_else(_arrow(missing), "0", text).cast(pa.int64())
    except pa.ArrowInvalid:
        raise InputError(Option("hierarchy"), f"column {name} must have whole numbers.") from None
    return np.array(numbers, np.int64), missing


def _text(table: pa.Table, column: int) -> tuple[pa.Array, Mask]:
    """Return a column as text, and which rows have none: null, NaN, or empty as in a CSV file."""
    values = table.column(column)
    try:
        text = values.cast(pa.string()).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            Option("hierarchy"), f"column {table.column_names[column]} must be text or whole numbers."
        ) from error
    missing = pc.or_kleene(pc.is_null(values, nan_is_null=True), pc.equal(text, ""))
    return text, np.array(missing, np.bool_)


def _complete(table: pa.Table, column: int) -> pa.Array:
    """Return a column as text; raise `InputError` if a row has none."""
    text, missing = _text(table, column)
    name = table.column_names[column]
    _refuse(np.flatnonzero(missing) + 1, f"hierarchy: column {name} has no value in", "Fill it in")
    return text


def _arrow(mask: Mask) -> pa.Array:
    return pa.array(mask, pa.bool_())


def _positions(text: pa.Array, names: pa.Array) -> Ints:
    """Return the position of each text in `names`, -1 if it has none."""
    return np.array(pc.fill_null(pc.index_in(text, value_set=names), -1), np.int64)


def _zone_ids(zones: Zones) -> pa.Array:
    return pa.array(zones.ids, pa.string())


def _row_of_tile(zones: Zones, ids: pa.Array) -> Ints:
    """Return the row of each tile, which must be exactly one."""
    tile = _positions(ids, _zone_ids(zones))
    _refuse(np.flatnonzero(tile < 0) + 1, "table of levels: the zones lack the tile of", "Leave those out")
    _refuse(_repeats(tile), "table of levels: expected one row a tile, but an earlier tile is repeated in", "Leave one")
    lacking = counted(len(zones) - len(tile), "tile")
    require(len(tile) == len(zones), f"table of levels: expected one row a tile, but {lacking} had none. Add them.")
    row = np.empty(len(zones), np.int64)
    row[tile] = np.arange(len(tile))
    return row


def _refuse(rows: Ints, wrong: str, remedy: str) -> None:
    """Raise if there are bad rows, counted from 1; `wrong` says why, `remedy` what to do."""
    if len(rows):
        raise InputError(f"{wrong} {rows_named(rows, len(rows))}. {remedy}.")


def _repeats(values: Ints) -> Ints:
    """Return the rows, counted from 1, whose value is in an earlier row too."""
    again = np.ones(len(values), np.bool_)
    again[np.unique(values, return_index=True)[1]] = False
    return np.flatnonzero(again) + 1


def _first_seen(text: pa.Array, row: Ints) -> Ints:
    """Return the unit of each tile, numbered in the order of their first tile."""
    return np.array(text.take(pa.array(row)).dictionary_encode().indices, np.int64)


def _check_nested(fine: Ints, coarse: Ints, row: Ints, fine_name: str, coarse_name: str) -> None:
    """Check that no fine unit has tiles in two coarse units; the first row of a unit in the table counts as right."""
    by_row = np.argsort(row)
    fine, coarse, row = fine[by_row], coarse[by_row], row[by_row]
    first = np.unique(fine, return_index=True)[1]
    _refuse(
        row[coarse != coarse[first][fine]] + 1,
        f"hierarchy is not a tree: a unit of column {fine_name} lies in two of column {coarse_name} in",
        "Give columns from fine to coarse, and give units unique names",
    )


def _all_names(zones: Zones, node: pa.Array, parent: pa.Array) -> pa.Array:
    """Return every name once: the tiles' ids in their order, then the others sorted."""
    mentioned = pa.concat_arrays([node, parent]).unique()
    in_order = mentioned.take(pc.sort_indices(mentioned))
    return pa.concat_arrays([_zone_ids(zones), in_order]).unique()


def _check_edges(zones: Zones, node: Ints, above: Ints, names: int) -> None:
    """Check the rows: one row a node, every tile present, and only tiles as leaves."""
    _refuse(_repeats(node), "hierarchy is not a tree: an earlier node gets a second parent in", "Leave one")
    has_child = np.zeros(names, np.bool_)
    has_child[above[above >= 0]] = True
    mentioned = has_child.copy()
    mentioned[node] = True
    tiles = len(zones)
    lacking = int(np.count_nonzero(~mentioned[:tiles]))
    require(
        lacking == 0, f"table of parents: expected one row a tile, but {counted(lacking, 'tile')} had none. Add them."
    )
    bare = (node >= tiles) & ~has_child[node]
    _refuse(np.flatnonzero(bare) + 1, "table of parents: the node is neither tile nor parent in", "Leave those out")
