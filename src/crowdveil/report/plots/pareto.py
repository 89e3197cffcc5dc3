"""Draw the Pareto curves of a comparison or a sweep: generalization and reconstruction error against suppressed trips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv

from crowdveil.comparison.plots import front, method_styles
from crowdveil.errors import InputError
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.report.plots.layout import CONFIDENTIAL, CONFIDENTIAL_COLOR, Layout

TABLES = ("summary.csv", "sweep.csv")
"""Tables that `compare` and `sweep` write."""


def draw_pareto(folder: Path) -> Layout:
    """Draw generalization and reconstruction error against suppressed trips, with the Pareto front of each. Confidential."""
    table = next((folder / name for name in TABLES if (folder / name).is_file()), None)
    if table is None:
        raise InputError(
            folder, f"wanted a folder written by compare or sweep, but it has neither {' nor '.join(TABLES)}."
        )
    rows = pacsv.read_csv(table).to_pylist()
    figure = new_figure(10, 4.6)
    left, right = figure.subplots(1, 2)
    _points(left, rows, "generalization")
    _points(right, rows, "reconstruction-error")
    left.set_ylabel("mean generalization error Ḡ, tiles")
    right.set_ylabel("mean reconstruction error E")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle(CONFIDENTIAL, fontsize=9, color=CONFIDENTIAL_COLOR, weight="bold")
    return Layout(figure, [left, right], None, True, "Pareto curves")


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


def _points(axis: Any, rows: list[dict[str, Any]], y: str) -> None:
    """Draw a point for each row, and the Pareto front of each k: a smaller k would be on every common front."""
    points = [(_number(row, "suppressed", 100), _number(row, y)) for row in rows]
    for row, point, (color, marker) in zip(rows, points, method_styles(), strict=False):
        label = row.get("method") or f"k = {row.get('k')}, at most {_budget(row)} suppressed"
        if np.isfinite(point).all():
            axis.plot(*point, marker=marker, color=color, linestyle="none", markersize=8, label=label)
    for (k, best), style in zip(pareto_fronts(rows, points).items(), _FRONTS * len(rows), strict=False):
        name = f"Pareto front, k = {k}" if k else "Pareto front"
        axis.plot(*zip(*best, strict=True), color="#888888", linestyle=style, linewidth=1.2, zorder=0, label=name)
    axis.set_xlabel("trips suppressed, %")
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
