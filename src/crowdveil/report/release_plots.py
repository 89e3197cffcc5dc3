"""Plots of a release, and of written comparisons, for papers: PNG or SVG. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv

from crowdveil.analysis.calendar import GAPS
from crowdveil.comparison.plots import front, method_styles
from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Floats, Ints
from crowdveil.report import flow_picture, layers, svg_figures, trajectory_picture
from crowdveil.report.flow_page import map_frame, time_zone
from crowdveil.report.flow_picture import FlowPicture
from crowdveil.report.shapes import PictureFrame

CLASSES = ("#e9f1d8", "#c2e0b4", "#8ecba8", "#55aea6", "#2f8a9a", "#265f86", "#232f66")
AREA, BORDER, FLOW = "#e3e7ea", "#ffffff", "#a33b00"
MAX_PROFILES = 6
TABLES = ("summary.csv", "sweep.csv")
"""Tables that `compare` and `sweep` write."""


@dataclass(frozen=True)
class PlotOptions:
    """Options of a plot: the number of flows, and the zones."""

    top: int = 300
    zones: tuple[str, ...] = ()


def draw(kind: str, written: WrittenRelease, manifest: Mapping[str, Any], wanted: PlotOptions, file: Path) -> None:
    """Draw a plot of a release."""
    what = "trajectories" if kind == "heatmap" else "flows"
    if written.is_flows != (what == "flows"):
        raise InputError(
            kind,
            f"wanted a release of {what}, but this one holds {'flows' if written.is_flows else 'trajectories'}; "
            "choose another plot.",
        )
    if kind == "heatmap":
        _heat_map(trajectory_picture.released(written), file)
        return
    shown, values = flow_picture.released(written, time_zone(written, dict(manifest)))
    if not len(shown.volume):
        raise InputError(kind, "nothing was published, so there is nothing to draw.")
    if kind == "profiles":
        _profiles(shown, wanted, file)
    elif not shown.located:
        raise InputError(kind, "the zones have no positions, so there is no map; choose another plot.")
    elif kind == "flows":
        _flows(shown, wanted, file)
    else:
        _areas(shown, layers.by_size("", "", shown.by_face(values.spread_over)), file)


def pareto(folder: Path, file: Path) -> None:
    """Draw generalization and reconstruction error against suppressed trips, with the Pareto front of each."""
    table = next((folder / name for name in TABLES if (folder / name).is_file()), None)
    if table is None:
        raise InputError(
            folder, f"wanted a folder written by compare or sweep, but it has neither {' nor '.join(TABLES)}."
        )
    rows = pacsv.read_csv(table).to_pylist()
    figure = new_figure(10, 4.6)
    left, right = figure.subplots(1, 2)
    _points(left, rows, lambda row: _number(row, "suppressed", 100), "generalization", "trips suppressed, %")
    _points(right, rows, lambda row: _number(row, "suppressed", 100), "reconstruction-error", "trips suppressed, %")
    left.set_ylabel("mean generalization error Ḡ, tiles")
    right.set_ylabel("mean reconstruction error E")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(file)


def _number(row: dict[str, Any], name: str, factor: float = 1) -> float:
    value = row.get(name)
    return float("nan") if value is None else factor * float(value)


def _budget(row: dict[str, Any]) -> str:
    trips = row.get("suppress_trips")
    return f"{row.get('suppress')}" if trips is None else f"{trips} trips"


def _k_of(row: dict[str, Any]) -> str:
    """Return the k of a row of a sweep, or of a comparison of several k, whose methods have names such as joint:k=5."""
    parts = [part for part in str(row.get("method") or "").split(":")[1:] if part.startswith("k=")]
    return f"{row['k']}" if row.get("k") is not None else parts[0].removeprefix("k=") if parts else ""


def _points(axis: Any, rows: list[dict[str, Any]], x: Callable[[dict[str, Any]], float], y: str, title: str) -> None:
    """Draw a point for each row, and the Pareto front of each k: a smaller k would be on every common front."""
    points = [(x(row), _number(row, y)) for row in rows]
    for row, point, (color, marker) in zip(rows, points, method_styles(), strict=False):
        label = row.get("method") or f"k = {row.get('k')}, at most {_budget(row)} suppressed"
        if np.isfinite(point).all():
            axis.plot(*point, marker=marker, color=color, linestyle="none", markersize=8, label=label)
    for (k, best), style in zip(pareto_fronts(rows, points).items(), _FRONTS * len(rows), strict=False):
        name = f"Pareto front, k = {k}" if k else "Pareto front"
        axis.plot(*zip(*best, strict=True), color="#888888", linestyle=style, linewidth=1.2, zorder=0, label=name)
    axis.set_xlabel(title)
    axis.grid(alpha=0.3)


_FRONTS = ("-", "--", ":", "-.")


def pareto_fronts(
    rows: list[dict[str, Any]], points: list[tuple[float, float]]
) -> dict[str, list[tuple[float, float]]]:
    """Return the Pareto front of each k, without methods that a remark calls not comparable."""
    of_k: dict[str, list[tuple[float, float]]] = {}
    for row, point in zip(rows, points, strict=True):
        if np.isfinite(point).all() and not row.get("remark"):
            of_k.setdefault(_k_of(row), []).append(point)
    return {k: front(found) for k, found in of_k.items()}


def _flows(shown: FlowPicture, wanted: PlotOptions, file: Path) -> None:
    frame = map_frame([shown])
    figure, axis = _map(frame)
    _outlines(axis, shown, frame, None)
    x, y = frame.to_cells(np.nan_to_num(shown.lon), np.nan_to_num(shown.lat))
    o, d, v = svg_figures.top_flows(shown, wanted.top)
    top = float(v.max(initial=1))
    for a, b, volume in zip(o[::-1].tolist(), d[::-1].tolist(), v[::-1].tolist(), strict=True):
        width = 0.3 + 3 * float(np.sqrt(max(volume, 0) / top))
        if a == b or (x[a], y[a]) == (x[b], y[b]):
            axis.plot(x[a], y[a], "o", markersize=2 + 2 * width, markerfacecolor="none", markeredgecolor=FLOW,
                      markeredgewidth=width / 2)  # fmt: skip
        else:
            axis.annotate("", (x[b], y[b]), (x[a], y[a]), arrowprops={
                "arrowstyle": "-|>", "color": FLOW, "linewidth": width, "alpha": 0.6, "shrinkA": 0, "shrinkB": 0,
                "mutation_scale": 3 + 2 * width, "connectionstyle": "arc3,rad=0.15"})  # fmt: skip
    axis.set_title(f"the {len(v):,} largest flows, {int(v.min()):,} to {int(v.max()):,} trips", fontsize=9)
    figure.savefig(file)


def _areas(shown: FlowPicture, shade: layers.Shade, file: Path) -> None:
    from matplotlib.patches import Patch

    frame = map_frame([shown])
    figure, axis = _map(frame)
    _outlines(axis, shown, frame, shade.classes)
    there = [i for i in range(len(shade.labels)) if np.any(shade.classes == i)]
    entries = [Patch(color=CLASSES[i], label=shade.labels[i]) for i in there]
    figure.legend(
        handles=entries, title="tiles that a trip's\nend is spread over", fontsize=8, title_fontsize=8, frameon=False,
        loc="outside right upper",
    )  # fmt: skip
    figure.savefig(file)


def _map(frame: PictureFrame) -> tuple[Any, Any]:
    """Return an empty map with the proportions of the frame."""
    wide = float(np.clip(6 * frame.width / frame.height, 4, 11))
    figure = new_figure(wide, 6)
    axis = figure.subplots()
    axis.set_xlim(0, frame.width)
    axis.set_ylim(frame.height, 0)
    axis.set_aspect("equal")
    axis.set_axis_off()
    return figure, axis


def _outlines(axis: Any, shown: FlowPicture, frame: PictureFrame, classes: Ints | None) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Outline

    snapped = shown.rings.fitted(frame)
    ends = np.cumsum(snapped.corners)
    first = np.concatenate([[0], np.cumsum(snapped.rings)])
    corners = np.column_stack([snapped.x, snapped.y])
    paths, colors, dots = [], [], []
    for area in svg_figures.paint_order(shown).tolist():
        color = AREA if classes is None or classes[area] < 0 else CLASSES[classes[area]]
        rings = [
            Outline(corners[ends[j] - snapped.corners[j] : ends[j]], closed=True)
            for j in range(first[area], first[area + 1])
        ]
        if rings:
            paths.append(Outline.make_compound_path(*rings))
            colors.append(color)
        elif np.isfinite(shown.lon[area]):
            dots.append((area, color))
    axis.add_collection(PathCollection(paths, facecolors=colors, edgecolors=BORDER, linewidths=0.4))
    x, y = frame.to_cells(np.nan_to_num(shown.lon), np.nan_to_num(shown.lat))
    for area, color in dots:
        axis.plot(x[area], y[area], "o", color=color if classes is not None else "#9aa3ab", markersize=3)


def _profiles(shown: FlowPicture, wanted: PlotOptions, file: Path) -> None:
    """Draw trips that leave and reach areas by time step, for the named areas or those with most trips."""
    missing = [name for name in wanted.zones if shown.find(name) < 0]
    if missing:
        raise ParameterError(
            Option("zone"), f"there is no area {missing[0]!r} in the release; name one of areas.geojson."
        )
    busiest = np.argsort(-shown.trips, kind="stable")[:MAX_PROFILES].tolist()
    areas = [shown.find(name) for name in wanted.zones] or busiest
    steps = max(len(shown.labels), 1)
    figure = new_figure(9, 0.6 + 1.4 * len(areas))
    axes = np.atleast_1d(figure.subplots(len(areas), 1, sharex=True))
    for axis, area in zip(axes, areas, strict=True):
        for column, name, line, color in (
            (shown.origin, "leaving", "-", "#0b5cad"),
            (shown.destination, "reaching", "--", FLOW),
        ):
            here = column == area
            values = _by_step(shown.step[here], shown.volume[here], steps)
            axis.plot(values, line, color=color, linewidth=1.2, label=name)
            known = np.isfinite(values)
            alone = known & ~np.append(known[1:], False) & ~np.append(False, known[:-1])
            axis.plot(np.flatnonzero(alone), values[alone], ".", color=color, markersize=4)
        axis.set_title(shown.names[area], fontsize=9, loc="left")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    ticks = np.unique(np.linspace(0, steps - 1, 5).round().astype(int))
    axes[-1].set_xticks(ticks, [shown.labels[i] if shown.labels else "all" for i in ticks], fontsize=8)
    axes[0].legend(ncols=2, fontsize=8, frameon=False, loc="lower right", bbox_to_anchor=(1, 1))
    figure.supylabel("trips", fontsize=9)
    figure.supxlabel(f"gaps: {GAPS}, or published as part of another area", fontsize=8)
    figure.savefig(file)


def _by_step(step: Ints, volume: Ints, steps: int) -> Floats:
    """Return trips by step; NaN where nothing was published, which does not mean 0."""
    sums = np.bincount(step, volume, steps).astype(np.float64)
    sums[np.bincount(step, minlength=steps) == 0] = np.nan
    return sums


def _heat_map(shown: trajectory_picture.TrajectoryPicture, file: Path) -> None:
    if not len(shown):
        raise InputError("heatmap", "nothing was published, so there is nothing to draw.")
    frame = PictureFrame.around(shown.lon, shown.lat)
    cells, count, cell = trajectory_picture.heat(shown, frame)
    figure, axis = _map(frame)
    grid = np.full(trajectory_picture.HEAT_CELLS**2, np.nan)
    grid[cells] = count
    from matplotlib.colors import PowerNorm

    side = trajectory_picture.HEAT_CELLS
    drawn = axis.imshow(grid.reshape(side, side), extent=(0, side * cell, side * cell, 0), cmap="viridis_r", norm=PowerNorm(0.5),
                        interpolation="nearest")  # fmt: skip
    axis.set_xlim(0, frame.width)
    axis.set_ylim(frame.height, 0)
    figure.colorbar(drawn, ax=axis, shrink=0.6, label="trajectories")
    figure.savefig(file)
