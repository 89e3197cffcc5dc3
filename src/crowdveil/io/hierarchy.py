"""Build trees over zones by name or from a table of levels, parents or nodes, and write them as a table of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from crowdveil.io.source import open_source
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.trees import BUILDERS, build, named_units
from crowdveil.model.zones import Zones


def build_hierarchy(zones: Zones, kind: Any) -> Hierarchy:
    """Build a tree over zones: "ward", "kd", "quadtree" or "h3", or from a table or file.

    A table of levels has the tile's id first, then one column per level from fine to coarse. A table of parents has the
    columns node and parent. A table of nodes is what `hierarchy_table` returns.
    """
    return build(zones, _opened(kind))


def named_by_levels(zones: Zones, kinds: Sequence[Any]) -> Zones:
    """Return zones with the named units of tables of levels and of parents among `kinds`, for readable names of areas."""
    tables = [table for table in map(_opened, kinds) if isinstance(table, pa.Table)]
    return (
        replace(zones, units=tuple(unit for table in tables for unit in named_units(zones, table))) if tables else zones
    )


def _opened(kind: Any) -> str | pa.Table:
    """Return the name of a builder, or the table that was given or that a file holds."""
    if isinstance(kind, str) and kind in BUILDERS:
        return kind
    if isinstance(kind, str | Path) and not ("." in str(kind) or Path(kind).exists()):
        return str(kind)
    return kind if isinstance(kind, pa.Table) else open_source(kind).read(as_is=True)


def hierarchy_table(tree: Hierarchy, zones: Zones) -> pa.Table:
    """Return the nodes of a tree, children before parents: number, parent, number of tiles, and a leaf's tile."""
    tile = [None] * len(tree.parent)
    for leaf, node in enumerate(tree.leaf_node.tolist()):
        tile[node] = zones.ids[tree.leaf_tile[leaf]]
    return pa.table(
        {
            "node": list(range(len(tree.parent))),
            "parent": pa.array([None if p < 0 else int(p) for p in tree.parent], pa.int64()),
            "tiles": tree.size,
            "tile": pa.array(tile, pa.string()),
        }
    )
