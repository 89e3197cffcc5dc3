"""Plots of comparisons: each measure by the parameter that varies, and the coarseness against the suppressed share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crowdveil.comparison.requested_measures import Column
from crowdveil.comparison.runs import SECONDS, Run
from crowdveil.report.plots.drawing import COLORS, Drawing, new_drawing

MARKERS = "osD^vP*Xph"
SUPPRESSED = ("S", "trajectories-removed")
_LOGARITHMIC_ABOVE = 20
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""


def plot_measures(runs: Sequence[Run], columns: Sequence[Column]) -> Drawing:
    """Draw a panel for each measure: against the first setting with several values, or as bars if nothing varies."""
    titles = {column.key: _title(column) for column in columns} | {SECONDS: "processor seconds per matrix"}
    setting, places = _horizontal(runs)
    by_line: dict[str, list[int]] = {}
    for i, run in enumerate(runs):
        by_line.setdefault(_line_label(run, runs, setting), []).append(i)
    heading = "Methods side by side" if setting is None else f"Measures by {setting}"
    made = new_drawing(list(titles.values()), heading, _notes(runs), confidential=True, size=(4.2, 3.2))
    for axis, key in zip(made.panels, titles, strict=True):
        values = [run.mean(key) for run in runs]
        if setting is None:
            axis.barh(list(by_line), [values[members[0]] for members in by_line.values()], color=COLORS[0])
            axis.invert_yaxis()
            continue
        for number, members in enumerate(by_line.values()):
            known = sorted((places[i], values[i]) for i in members if places[i] is not None)
            style = _style(number, runs[members[0]])
            if known:
                axis.plot(*zip(*known, strict=True), **style)
            else:
                axis.axhline(values[members[0]], **(style | {"marker": None, "linestyle": ":"}))
        _set_scale(axis, "x", [place for place in places if place is not None])
        _set_scale(axis, "y", values)
        axis.set_xlabel(setting, fontsize=8)
        axis.grid(alpha=0.3)
    if setting is not None:
        _legend(made, runs, by_line)
    return made


def plot_trade_off(runs: Sequence[Run], columns: Sequence[Column]) -> Drawing:
    """Draw the first measure against the suppressed share, or against the second measure if that share is not measured.

    The front has the methods without a remark that no other one beats in both. It is drawn for a single k, since the smallest
    k would always be on it.
    """
    others = [column for column in columns[1:] if column.key in SUPPRESSED] or list(columns[1:2])
    key, title = (others[0].key, _title(others[0])) if others else (SECONDS, "processor seconds per matrix")
    made = new_drawing(["lower left is better"], "Trade-off", _notes(runs), confidential=True, size=(6, 4.5))
    axis = made.panels[0]
    points = [(run.mean(key), run.mean(columns[0].key)) for run in runs]
    by_line: dict[str, list[int]] = {}
    for i, run in enumerate(runs):
        by_line.setdefault(_line_label(run, runs, "k"), []).append(i)
    for number, members in enumerate(by_line.values()):
        known = [points[i] for i in members if np.isfinite(points[i]).all()]
        if known:
            axis.plot(*zip(*known, strict=True), **_style(number, runs[members[0]]))
    if len({run.k for run in runs if run.k is not None}) == 1 and len({run.input for run in runs}) == 1:
        best = front([point for point, run in zip(points, runs, strict=True) if not run.remark])
        if best:
            axis.plot(*zip(*best, strict=True), color="#f0c808", linewidth=9, alpha=0.35, zorder=0)
    _set_scale(axis, "y", [y for _, y in points])
    axis.set_xlabel(title, fontsize=8)
    axis.set_ylabel(_title(columns[0]), fontsize=8)
    axis.grid(alpha=0.3)
    _legend(made, runs, by_line)
    return made


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the Pareto front of points (lower is better in both numbers), from left to right."""
    chosen: list[tuple[float, float]] = []
    for x, y in sorted(point for point in points if np.isfinite(point).all()):
        if not chosen or y < chosen[-1][1]:
            chosen.append((x, y))
    return chosen


def _horizontal(runs: Sequence[Run]) -> tuple[str | None, list[float | None]]:
    """Return the first setting with several values, and the place of each run on its axis; None if nothing varies."""
    settings: dict[str, list[Any]] = {"k": [run.k for run in runs]}
    for name in dict.fromkeys(name for run in runs for name in run.varied):
        settings[name] = [run.varied.get(name) for run in runs]
    settings["suppress"] = [run.suppress for run in runs]
    settings["tiles"] = [run.tiles for run in runs]
    for name, values in settings.items():
        places = [_number(value) for value in values]
        if len({place for place in places if place is not None}) > 1:
            return name, places
    return None, []


def _number(value: Any) -> float | None:
    """Return a setting as a number; a budget is a number of percent or of trips."""
    if isinstance(value, str):
        value = value.removesuffix("trips").removesuffix("%")
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _line_label(run: Run, runs: Sequence[Run], without: str | None) -> str:
    """Return the method of a run with the settings that differ between runs, except the one on the axis."""
    settings: dict[str, Any] = {
        "input": run.input if without != "tiles" else None,
        "k": run.k,
        "suppress": run.suppress,
    }
    settings |= run.varied
    differing = {
        name: value
        for name, value in settings.items()
        if name != without and value is not None and any(_setting(other, name) not in (None, value) for other in runs)
    }
    return ", ".join((run.method, *(f"{name} {value}" for name, value in differing.items())))


def _setting(run: Run, name: str) -> Any:
    return run.varied.get(name) if name in run.varied else getattr(run, name, None)


def _style(number: int, run: Run) -> dict[str, Any]:
    """Return the style of a method: hollow markers if it has a remark."""
    color = COLORS[number % len(COLORS)]
    return {
        "color": color, "marker": MARKERS[number % len(MARKERS)], "markerfacecolor": "none" if run.remark else color,
        "linewidth": 1.2, "linestyle": "--" if run.remark else "-",
    }  # fmt: skip


def _legend(made: Drawing, runs: Sequence[Run], by_line: dict[str, list[int]]) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for number, (label, members) in enumerate(by_line.items()):
        first = runs[members[0]]
        text = f"{label} ({first.remark})" if first.remark else label
        handles.append(Line2D([], [], label=text, **_style(number, first)))
    made.figure.legend(handles=handles, loc="outside right upper", fontsize=7.5, frameon=False)


def _set_scale(axis: Any, which: str, values: Sequence[float]) -> None:
    """Start an axis at 0, or make it logarithmic if the largest value is many times the smallest."""
    known = [value for value in values if np.isfinite(value)]
    if known and min(known) > 0 and max(known) > _LOGARITHMIC_ABOVE * min(known):
        axis.set(**{f"{which}scale": "log"})
    elif known and min(known) >= 0:
        axis.set(**{"xlim" if which == "x" else "ylim": (0, max(known) * 1.08 or 1)})


def _title(column: Column) -> str:
    if column.asked is None:
        return column.title
    title = column.asked.measure.title
    title = title if column.part is None else f"{title}, {column.asked.measure.parts[column.part]}"
    return f"{title}, {column.unit}" if column.unit else title


def _notes(runs: Sequence[Run]) -> list[str]:
    return ["Hollow markers: methods with another guarantee."] if any(run.remark for run in runs) else []
