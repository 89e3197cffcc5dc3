"""Plots of processor time and of varied parameters, as PNG: time by number of tiles, by budget, and error by value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.comparison.flows import FlowComparison
from crowdveil.comparison.plots import log_axis, method_styles, ratio_boxes
from crowdveil.comparison.sweep import Sweep, SweepPoint
from crowdveil.io.matplotlib_figure import new_figure

SECONDS = "processor seconds per matrix"


def time_by_tiles(found: Mapping[str, FlowComparison], file: Path) -> None:
    """Draw the processor seconds per matrix against the number of tiles, a line for each method."""
    figure = new_figure(8, 5)
    axis = figure.subplots()
    labels = dict.fromkeys(outcome.label for each in found.values() for outcome in each.outcomes)
    everything, tiles = [], [len(each.flows.zones) for each in found.values()]
    for label, (color, marker) in zip(labels, method_styles(), strict=False):
        points = sorted(
            (len(each.flows.zones), outcome.seconds)
            for each in found.values()
            for outcome in each.outcomes
            if outcome.label == label
        )
        everything += [seconds for _, seconds in points]
        axis.plot(*zip(*points, strict=True), color=color, marker=marker, label=label)
    log_axis(axis, np.array(tiles, np.float64))
    log_axis(axis, np.array(everything), which="y")
    axis.set_xlabel("number of tiles")
    axis.set_ylabel(SECONDS)
    axis.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=9, frameon=False)
    figure.savefig(file)


def ratios_of_inputs(found: Mapping[str, FlowComparison], file: Path) -> None:
    """Draw box plots over matrices of each measure and of the time as a ratio to the first method: a row for each method, a
    column for each measure, a box for each input.
    """
    inputs, first = list(found), next(iter(found.values())).outcomes[0].label
    labels = [
        label
        for label in dict.fromkeys(outcome.label for each in found.values() for outcome in each.outcomes)
        if label != first
    ]
    titles = {"Ḡ": "Ḡ", "E": "E", "D": "D", "seconds": "processor time"}
    figure = new_figure(12, 1.2 + (0.5 + 0.3 * len(inputs)) * max(len(labels), 1))
    axes = figure.subplots(max(len(labels), 1), len(titles), squeeze=False, sharey=True)
    for row, label in zip(axes, labels, strict=False):
        for axis, (symbol, title) in zip(row, titles.items(), strict=True):
            boxes = [_ratios(each, label, first, symbol) for each in found.values()]
            axis.boxplot(
                boxes, positions=range(len(boxes)), orientation="horizontal", whis=(0, 100), manage_ticks=False
            )
            axis.axvline(1, color="#d55e00", linewidth=1, zorder=0)
            log_axis(axis, np.concatenate([*boxes, np.ones(1)]))
            axis.set_title(f"{label}: {title}", fontsize=9)
            axis.grid(axis="x", alpha=0.3)
        row[0].set_yticks(range(len(inputs)), inputs)
        row[0].set_ylim(len(inputs) - 0.4, -0.6)
    figure.suptitle(f"Ratio to {first} on the same matrices; right of the line is worse", fontsize=11)
    figure.savefig(file)


def _ratios(found: FlowComparison, label: str, first: str, symbol: str) -> Any:
    by_label = {outcome.label: outcome for outcome in found.outcomes}
    if label not in by_label or first not in by_label:
        return np.zeros(0)
    return ratio_boxes(by_label[label], by_label[first], symbol)


def sweep_time(found: Sweep, file: Path) -> None:
    """Draw the processor seconds per matrix by budget, a line for each k; by k where there is one budget."""
    figure = new_figure(7, 4.5)
    axis = figure.subplots()
    budgets = list(dict.fromkeys(trial.budget for trial in found.chosen))
    if len(budgets) > 1:
        _lines(axis, {f"k = {k}": [(float(t.budget or 0), t.outcome.seconds) for t in found.chosen if t.k == k]
                      for k in dict.fromkeys(trial.k for trial in found.chosen)})  # fmt: skip
        shares = found.chosen[0].suppress is not None
        axis.set_xlabel("suppression budget, share of the trips" if shares else "suppression budget, trips")
    else:
        _lines(axis, {"": [(float(t.k), t.outcome.seconds) for t in found.chosen]})
        axis.set_xlabel("k, minimum group size")
    axis.set_ylabel(SECONDS)
    axis.set_ylim(bottom=0)
    axis.set_title(found.method, fontsize=11)
    figure.savefig(file)


def varied_values(found: Sweep, file: Path) -> None:
    """Draw measures by the value of the first varied parameter: mean sizes of origins and destinations of a target volume, and
    the error; a line for each k, at the first budget.
    """
    name = found.varied[0]
    trials = [trial for trial in found.trials if trial.budget == found.trials[0].budget]
    values = list(dict.fromkeys(trial.varied[name] for trial in trials))
    place = {value: float(value) if all(isinstance(v, int | float) for v in values) else float(i)
             for i, value in enumerate(values)}  # fmt: skip
    measures = ["origin-tiles", "destination-tiles", "Ḡ"] if name == "v_target" else [found.weighed, "S"]
    figure = new_figure(4.2 * len(measures), 4.2)
    for axis, key in zip(np.atleast_1d(figure.subplots(1, len(measures))), measures, strict=True):
        _lines(axis, {f"k = {k}": [(place[t.varied[name]], t.outcome.mean(key)) for t in trials if t.k == k]
                      for k in dict.fromkeys(trial.k for trial in trials)})  # fmt: skip
        _ring(axis, [t for t in found.chosen if any(t is other for other in trials)], name, place, key)
        axis.set_xlabel(name)
        axis.set_ylabel(f"mean {key.replace('-tiles', ' size, tiles')}")
        if not all(isinstance(value, int | float) for value in values):
            axis.set_xticks(range(len(values)), [str(value) for value in values])
    figure.suptitle(f"{found.method}; circles are chosen", fontsize=11)
    figure.savefig(file)


def _ring(axis: Any, chosen: list[SweepPoint], name: str, place: Mapping[Any, float], key: str) -> None:
    points = [(place[trial.varied[name]], trial.outcome.mean(key)) for trial in chosen]
    if points:
        axis.plot(*zip(*points, strict=True), "o", markersize=13, markerfacecolor="none", markeredgecolor="black")


def _lines(axis: Any, lines: Mapping[str, list[tuple[float, float]]]) -> None:
    for (label, points), (color, marker) in zip(lines.items(), method_styles(), strict=False):
        if points:
            axis.plot(*zip(*sorted(points), strict=True), color=color, marker=marker, label=label or None)
    if any(lines):
        axis.legend(fontsize=9, frameon=False)
    axis.grid(alpha=0.3)
