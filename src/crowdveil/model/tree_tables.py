"""Make trees over tiles from a table: units of every level, the parent of each node, or the nodes of a written tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Option, counted, rows_named
from crowdveil.model.arrays import Ints, Mask, require
from crowdveil.model.hierarchy import Hierarchy, tiles_first
from crowdveil.model.zones import Zones

TableLike = Mapping[str, Sequence[Any]]


def levels(zones: Zones, table: pa.Table | TableLike) -> Hierarchy:
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
    table = _as_table(table)
    names = table.column_names
    require(
        len(names) >= 2, "table of levels: expected a column of tile ids and at least one of units, got fewer columns."
    )
    row = _row_of_tile(zones, _complete(table, 0))
    units = [_first_seen(_complete(table, i), row) for i in range(1, len(names))]
    for i, (fine, coarse) in enumerate(pairwise(units), start=1):
        _check_nested(fine, coarse, row, names[i], names[i + 1])
    return Hierarchy.from_units(units, "levels")


def parents(zones: Zones, table: pa.Table | TableLike) -> Hierarchy:
    """Make the tree of a table with one row a node: its name in column `node`, the name above it in column `parent`.

    The tiles' ids are the names of the leaves. The root has no row, or a row without parent. The tree does not
    depend on the order of the rows; children are in order of their names, tiles in their own.
    """
    table = _as_table(table)
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


def named_units(zones: Zones, table: pa.Table | TableLike) -> tuple[tuple[str, Ints], ...]:
    """Return name and tiles of each unit of several tiles, from a table of levels or of parents; no table of nodes has names.

    The table must be one that `levels` or `parents` takes. Units with the same tiles have the name of the finest.
    """
    table = _as_table(table)
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
    held: dict[str, list[int]] = {}
    for tile, name in enumerate(zones.ids):
        unit = above.get(name)
        while unit:
            held.setdefault(unit, []).append(tile)
            unit = above.get(unit)
    for name in sorted(held, key=lambda name: (len(held[name]), name)):
        yield name, np.array(held[name], np.int64)


NODE_COLUMNS = ("node", "parent", "tiles", "tile")
"""Columns of a written tree, see `crowdveil.io.hierarchy.hierarchy_table`."""


def nodes(zones: Zones, table: pa.Table | TableLike) -> Hierarchy:
    """Make the tree of a table that `crowdveil hierarchy` wrote: number of each node, number of its parent, tile of a leaf.

    The tree has the same nodes in the same order. The column `tiles` is not read. Rows may be in any order.
    """
    table = _as_table(table)
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


def _as_table(table: pa.Table | TableLike) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    try:
        return pa.table({str(name): pa.array(values) for name, values in table.items()})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(Option("hierarchy"), "Expected a table with columns of one type and equal length.") from error


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
    """Raise if there are bad rows, counted from 1: what is `wrong` in them, and what to do."""
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
