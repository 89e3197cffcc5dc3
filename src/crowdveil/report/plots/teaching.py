"""Pictures for teaching: the tree over zones, and the concave function of the multiplier whose maximum solves the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.zones import Zones
from crowdveil.report.plots.flow_panels import common_frame, zone_rings
from crowdveil.report.plots.layout import EDGE, INK, MUTED, Layout, Margins, cells, draw_rings, lay_out, show_frame
from crowdveil.report.plots.scales import number

COLORS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#dd8452", "#937860", "#8172b3", "#55a868", "#c44e52",
    "#64b5cd",
)  # fmt: skip
MAX_LABELS, MAX_PIECES = 64, 400
"""Leaves up to which a tree has labels, and pieces of the function that are searched."""

Line = tuple[int, int]
"""A piece of the function: the cost A of the published boxes, and the suppressed volume S; at λ it is A + λS."""


def cut_groups(tree: Hierarchy, most: int, weight: Floats | None = None) -> Ints:
    """Return the nodes of a partition of at most `most` groups: that with the most zones, or weight of zones, is split first."""
    heavy = tree.size if weight is None else tree.subtree_sums(weight)
    groups = [len(tree) - 1]
    while True:
        groups.sort(key=lambda node: (-float(heavy[node]), node))
        largest = next((node for node in groups if tree.size[node] > 1), None)
        children = [] if largest is None else tree.children(largest).tolist()
        if largest is None or len(groups) - 1 + len(children) > most:
            return np.array(sorted(groups, key=lambda node: int(tree.first_leaf[node])), np.int64)
        groups = [node for node in groups if node != largest] + children


def draw_tree(tree: Hierarchy, zones: Zones, groups: int) -> Layout:
    """Draw a tree over zones, and its groups on the map in the same colors."""
    cut = cut_groups(tree, min(groups, len(COLORS)))
    color_of = {int(node): COLORS[i] for i, node in enumerate(cut)}
    titles = [f"{tree.tiles:,} zones, {len(tree):,} nodes, depth {int(tree.depth.max())}"]
    if zones.located:
        titles.append(f"the same {len(cut)} groups on the map")
    notes = [
        "A node is as high as the number of zones below it. Areas of a release are nodes: they are split or kept whole."
    ]
    size = (5.2, 4.6)
    made = lay_out(size, titles, "Tree over the zones", notes, confidential=False, margins=Margins(0.5, 0.55, 0.0))
    _dendrogram(made.panels[0], tree, color_of, [str(name) for name in zones.ids])
    if zones.located:
        frame = common_frame([], zones, None)
        show_frame(made.panels[1], frame, size)
        colors: list[str] = [EDGE] * len(zones)
        for node, color in color_of.items():
            for tile in tree.node_tiles(node).tolist():
                colors[tile] = color
        rings = zone_rings(zones)
        draw_rings(made.panels[1], rings, frame, colors, edgecolors="#ffffff")
        if not rings.drawn.all():
            made.panels[1].scatter(*cells(frame, zones.lon, zones.lat), c=colors, s=14)
    return made


def _dendrogram(axis: Any, tree: Hierarchy, color_of: dict[int, str], names: Sequence[str]) -> None:
    from matplotlib.collections import LineCollection

    x = (tree.first_leaf + tree.last_leaf - 1) / 2.0
    height = tree.size.astype(np.float64)
    colors = [MUTED] * len(tree)
    for node in range(len(tree) - 1, -1, -1):
        above = int(tree.parent[node])
        colors[node] = color_of.get(node) or (colors[above] if above >= 0 else MUTED)
    lines, shades = [], []
    for node in range(len(tree)):
        for child in tree.children(node).tolist():
            lines.append([(x[node], height[node]), (x[child], height[node]), (x[child], height[child])])
            shades.append(colors[child])
    axis.add_collection(LineCollection(lines, colors=shades, linewidths=1.4 if tree.tiles <= MAX_LABELS else 0.6))
    axis.set(xlim=(-1, tree.tiles), ylim=(0.85, tree.tiles * 1.15), yscale="log")
    axis.set_ylabel("zones below a node", fontsize=8, color=INK)
    axis.yaxis.set_major_formatter(lambda value, _: number(value))
    axis.tick_params(labelsize=7, colors=MUTED)
    axis.spines[["top", "right"]].set_visible(False)
    if tree.tiles <= MAX_LABELS:
        labels = [names[tile][:10] for tile in tree.leaf_tile.tolist()]
        axis.set_xticks(range(tree.tiles), labels, fontsize=6.5, rotation=0 if tree.tiles <= 16 else 90)
    else:
        axis.set_xticks([])
        axis.set_xlabel("zones, in the order of the tree", fontsize=8, color=INK)


@dataclass(frozen=True)
class Envelope:
    """The function min (A + λS) over all partitions: its pieces from λ = 0 on, and whether all of them were found."""

    pieces: list[Line]
    complete: bool

    @property
    def breakpoints(self) -> list[Fraction]:
        """The multipliers at which one piece follows another."""
        return [meet(left, right) for left, right in zip(self.pieces[:-1], self.pieces[1:], strict=True)]


def meet(left: Line, right: Line) -> Fraction:
    """Return the multiplier at which two pieces are equal."""
    return Fraction(right[0] - left[0], left[1] - right[1])


def find_envelope(solve: Callable[[Fraction | None], Line], most: int = MAX_PIECES) -> Envelope:
    """Return the pieces of the function: where two meet, either they follow one another or a third is below them.

    `solve` returns the best piece at a multiplier, with None for an infinite one.
    """
    first, last = solve(Fraction(0)), solve(None)
    pieces, waiting = [first, last], [(first, last)]
    while waiting and len(pieces) < most:
        left, right = waiting.pop(0)
        if left[1] == right[1]:
            continue
        at = meet(left, right)
        found = solve(at)
        if found[0] + at * found[1] < right[0] + at * right[1]:
            pieces.append(found)
            waiting += [(left, found), (found, right)]
    distinct = sorted(set(pieces), key=lambda piece: (-piece[1], piece[0]))
    return Envelope(distinct, not waiting)


def draw_multiplier(envelope: Envelope, budget: int, total: int, what: str) -> Layout:
    """Draw L(λ) = min (A + λ (S − budget)), which is concave, with its breakpoints; below it S of λ. Confidential."""
    from matplotlib.ticker import MaxNLocator

    breaks = [float(at) for at in envelope.breakpoints]
    pieces = envelope.pieces
    kept = [i for i, piece in enumerate(pieces) if piece[1] <= budget]
    best = kept[0] if kept else len(pieces) - 1
    star = breaks[best - 1] if best else 0.0
    end = max(star * 2, breaks[min(best + 1, len(breaks) - 1)] * 1.2 if breaks else 1.0) or 1.0
    titles = [f"L(λ) = min A + λ (S − {budget:,}): maximal at λ* = {number(star)}", "suppressed trips S at λ"]
    notes = [
        f"{what}: {total:,} trips, of which {budget:,} may be suppressed. A: cost of the published boxes, zones times trips. "
        "A dot is a breakpoint: another partition of the map becomes the best. Right of λ* the budget holds.",
        *([] if envelope.complete else [f"The first {len(pieces):,} pieces that were found; there are more."]),
    ]
    heading = "The concave function of the multiplier λ, and its breakpoints"
    made = lay_out((5.0, 3.9), titles, heading, notes, confidential=True, margins=Margins(0.75, 0.55, 0.0))
    upper, lower = made.panels
    edges = [0.0, *[at for at in breaks if at < end], end]
    values = [_value(pieces, at, budget) for at in edges]
    for cost, suppressed in pieces if len(pieces) <= 40 else []:
        line = [cost + at * (suppressed - budget) for at in (0.0, end)]
        upper.plot([0, end], line, color=EDGE, linewidth=0.6, zorder=0)
    upper.plot(edges, values, color="#0072b2", linewidth=1.6)
    upper.plot(edges[1:-1], values[1:-1], "o", color="#0072b2", markersize=3.5)
    span = max(values) - min(values) or 1.0
    upper.set_ylim(min(values) - 0.05 * span, max(values) + 0.12 * span)
    amounts = [pieces[min(i, len(pieces) - 1)][1] for i in range(len(edges) - 1)]
    lower.step([*edges[:-1], end], [*amounts, amounts[-1]], where="post", color="#0072b2", linewidth=1.6)
    lower.axhline(budget, color="#d55e00", linewidth=1, linestyle="--")
    lower.annotate(f"budget {budget:,}", (end, budget), xytext=(-2, 3), textcoords="offset points", fontsize=7.5, ha="right",
                   color="#d55e00")  # fmt: skip
    for axis in made.panels:
        axis.axvline(star, color="#009e73", linewidth=1, linestyle=":")
        axis.set_xlim(0, end)
        axis.set_xlabel("multiplier λ: cost of a suppressed trip", fontsize=8, color=INK)
        axis.tick_params(labelsize=7, colors=MUTED)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.spines[["top", "right"]].set_visible(False)
    lower.set_ylim(bottom=0)
    lower.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    return made


def _value(pieces: Sequence[Line], at: float, budget: int) -> float:
    return min(cost + at * (suppressed - budget) for cost, suppressed in pieces)
