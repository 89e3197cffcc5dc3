"""Draw the tree over zones, and its groups on a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crowdveil.model.arrays import Ints
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.zones import Zones
from crowdveil.report.plots.drawing import (
    COLORS,
    EDGE,
    INK,
    MUTED,
    Drawing,
    fill_areas,
    new_drawing,
    number,
    show_frame,
)
from crowdveil.report.plots.flow_panels import common_frame, zone_rings

MAX_LABELS = 64
"""Leaves up to which a tree has labels."""


def cut_groups(tree: Hierarchy, most: int) -> Ints:
    """Return the nodes of a partition of at most `most` groups: the one with most zones is split first."""
    groups = [len(tree) - 1]
    while True:
        groups.sort(key=lambda node: (-int(tree.size[node]), node))
        children = tree.children(groups[0]).tolist()
        if not children or len(groups) - 1 + len(children) > most:
            return np.array(sorted(groups, key=lambda node: int(tree.first_leaf[node])), np.int64)
        groups = groups[1:] + children


def draw_tree(tree: Hierarchy, zones: Zones, groups: int) -> Drawing:
    """Draw a tree over zones, and its groups on the map in the same colors."""
    cut = cut_groups(tree, min(groups, len(COLORS)))
    color_of = {int(node): COLORS[i] for i, node in enumerate(cut)}
    titles = [f"{tree.tiles:,} zones, {len(tree):,} nodes, depth {int(tree.depth.max())}"]
    if zones.located:
        titles.append(f"the same {len(cut)} groups on the map")
    notes = [
        "A node is as high as the number of zones below it. Areas of a release are nodes: they are split or kept whole."
    ]
    drawing = new_drawing(titles, "Tree over the zones", notes, confidential=False, size=(5.2, 4.6))
    _dendrogram(drawing.panels[0], tree, color_of, [str(name) for name in zones.ids])
    if zones.located:
        frame = common_frame([], zones, None)
        show_frame(drawing.panels[1], frame)
        colors: list[str] = [EDGE] * len(zones)
        for node, color in color_of.items():
            for tile in tree.node_tiles(node).tolist():
                colors[tile] = color
        fill_areas(drawing.panels[1], zone_rings(zones), zones.lon, zones.lat, frame, colors)
    return drawing


def _dendrogram(axis: Any, tree: Hierarchy, color_of: dict[int, str], names: Sequence[str]) -> None:
    from matplotlib.collections import LineCollection

    x = (tree.first_leaf + tree.last_leaf - 1) / 2.0
    height = tree.size.astype(np.float64)
    colors = [MUTED] * len(tree)
    lines, shades = [], []
    for node in range(len(tree) - 1, -1, -1):
        above = int(tree.parent[node])
        colors[node] = color_of.get(node) or (colors[above] if above >= 0 else MUTED)
        for child in tree.children(node).tolist():
            lines.append([(x[node], height[node]), (x[child], height[node]), (x[child], height[child])])
            shades.append(color_of.get(child) or colors[node])
    axis.add_collection(LineCollection(lines, colors=shades, linewidths=1.4 if tree.tiles <= MAX_LABELS else 0.6))
    axis.set(xlim=(-1, tree.tiles), ylim=(0.85, tree.tiles * 1.15), yscale="log")
    axis.set_ylabel("zones below a node", fontsize=8, color=INK)
    axis.yaxis.set_major_formatter(lambda value, _: number(value))
    axis.spines[["top", "right"]].set_visible(False)
    if tree.tiles <= MAX_LABELS:
        labels = [names[tile][:10] for tile in tree.leaf_tile.tolist()]
        axis.set_xticks(range(tree.tiles), labels, fontsize=6.5, rotation=0 if tree.tiles <= 16 else 90)
    else:
        axis.set_xticks([])
        axis.set_xlabel("zones, in the order of the tree", fontsize=8, color=INK)
