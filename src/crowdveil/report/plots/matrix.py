"""Draw the OD matrix with tiles in the order of the tree, so that each published flow is a rectangle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crowdveil.errors import InputError
from crowdveil.guarantees.runs import Runs
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.report.plots.flow_panels import FlowPanel, meaning_of_gray
from crowdveil.report.plots.layout import INK, MUTED, Layout, Margins, lay_out
from crowdveil.report.plots.scales import VolumeScale, color_bar, colors_of

MAX_CELLS = 1200
"""Rows and columns of a drawn matrix; of more tiles, neighbors in the order share one."""
NOT_PUBLISHED = "#e3e7ea"


def tile_order(panels: Sequence[FlowPanel], tree: Hierarchy | None, zone_names: Sequence[str]) -> dict[str, int]:
    """Return the position of each tile: in the order of the tree, or of the areas of the first release, which nest alike."""
    if tree is not None:
        return {zone_names[tile]: i for i, tile in enumerate(tree.leaf_tile.tolist())}
    position: dict[str, int] = {}
    for panel in sorted(panels, key=lambda panel: panel.confidential):
        rows = np.bincount(np.concatenate([panel.origin, panel.destination]), minlength=len(panel.names))
        order = np.argsort(Runs.of(panel.tiles, len(panel.tile_names), rows).position, kind="stable")
        for tile in order.tolist():
            position.setdefault(panel.tile_names[tile], len(position))
    return position


def dense_matrix(panel: FlowPanel, position: dict[str, int]) -> Floats:
    """Return the mean trips of each pair of tiles, rows of areas spread evenly; NaN where nothing is published.

    With more than `MAX_CELLS` tiles, a cell has the mean of several pairs.
    """
    n = max(len(position), 1)
    m = min(n, MAX_CELLS)
    place = np.array([position[name] for name in panel.tile_names], np.int64)
    per_cell = np.bincount(np.arange(n) * m // n, minlength=m).astype(np.float64)
    weights: list[tuple[Ints, Floats]] = []
    for tiles in panel.tiles:
        at, count = np.unique(place[tiles] * m // n, return_counts=True)
        weights.append((at, count / len(tiles)))
    found, known = np.zeros((m, m)), np.zeros((m, m), np.bool_)
    for o, d, volume in zip(panel.origin.tolist(), panel.destination.tolist(), panel.volume.tolist(), strict=True):
        (rows, share_o), (columns, share_d) = weights[o], weights[d]
        cells = np.ix_(rows, columns)
        found[cells] += volume * share_o[:, None] * share_d
        known[cells] = True
    return np.where(known, found / np.outer(per_cell, per_cell), np.nan)


def draw_matrix(panels: Sequence[FlowPanel], position: dict[str, int], by_tree: bool) -> Layout:
    """Draw the trips of each pair of tiles, with one scale of colors for all panels."""
    values = [dense_matrix(panel, position) for panel in panels]
    scale = VolumeScale.of(*values)
    if not any(np.isfinite(v).any() for v in values):
        raise InputError("matrix", "nothing was published, so there is nothing to draw.")
    n, m = len(position), len(values[0])
    side = {1: 5.4, 2: 4.7}.get(len(panels), 4.0)
    order = "the order of the tree" if by_tree else "an order that keeps those of an area together"
    notes = [
        f"Tiles are in {order}: an area is a run of rows or columns, and a published flow a rectangle, whose trips are spread "
        "evenly."
    ]
    if m < n:
        notes.append(f"A row or column has {n / m:.1f} tiles on average.")
    made = lay_out(
        (side, side), [panel.title for panel in panels], f"Trips between {n:,} tiles", notes,
        confidential=any(panel.confidential for panel in panels), margins=Margins(0.62, 0.5, 1.9),
    )  # fmt: skip
    for axis, matrix in zip(made.panels, values, strict=True):
        shades = colors_of(scale.share(np.nan_to_num(matrix)))
        shades[~np.isfinite(matrix)] = (*(int(NOT_PUBLISHED[i : i + 2], 16) / 255 for i in (1, 3, 5)), 1.0)
        axis.imshow(shades, extent=(0, n, n, 0), interpolation="nearest", aspect="equal")
        axis.set_xlabel("destination tile", fontsize=8, color=INK)
        axis.set_ylabel("origin tile", fontsize=8, color=INK)
        axis.tick_params(labelsize=7, colors=MUTED)
    color_bar(made.legend, scale, "trips per pair\nof tiles", none=meaning_of_gray(panels))
    return made
