"""Plots of one measure of several methods for trajectories, as PNG: by k, or by another parameter."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from crowdveil.comparison.candidates import without_k
from crowdveil.comparison.plots import k_axis, method_styles
from crowdveil.comparison.requested_measures import Column
from crowdveil.comparison.trajectories import TrajectoryMethodComparison, TrajectoryOutcome
from crowdveil.errors import counted
from crowdveil.io.matplotlib_figure import new_figure

Value = Callable[[TrajectoryOutcome], float]


def plots_of_measures(found: TrajectoryMethodComparison) -> dict[str, Callable[[Path], None]]:
    """Return a plot for each measure of the table, the share of removed trajectories and the time, by the name of its file."""
    drawn: dict[str, tuple[str, Value]] = {
        column.name: (_title(column), partial(_score, column.key)) for column in found.shared.columns
    }
    drawn["trajectories-removed"] = ("trajectories removed, %", lambda outcome: 100 * outcome.removed)
    drawn["seconds"] = ("processor seconds", lambda outcome: outcome.seconds)
    return {
        f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.png": partial(measure_by_parameter, found, title, value)
        for name, (title, value) in drawn.items()
    }


def measure_by_parameter(found: TrajectoryMethodComparison, title: str, value: Value, file: Path) -> None:
    """Draw a measure against k, a line for each method and its other parameters; without several k against the first
    parameter that is varied; without either as bars. Methods without the parameter are level lines.
    """
    parameter = _parameter(found)
    figure = new_figure(8, 4.6)
    axis = figure.subplots()
    families: dict[str, list[TrajectoryOutcome]] = {}
    for outcome in found.outcomes:
        families.setdefault(_family(outcome.label, parameter), []).append(outcome)
    if parameter is None:
        axis.barh(range(len(found.outcomes)), [value(outcome) for outcome in found.outcomes], color="#0072b2")
        axis.set_yticks(range(len(found.outcomes)), [outcome.label for outcome in found.outcomes])
        axis.invert_yaxis()
        axis.set_xlabel(title)
    else:
        for (family, members), (color, marker) in zip(families.items(), method_styles(), strict=False):
            points = sorted((at, value(o)) for o in members if (at := _place(o, parameter)) is not None)
            if points:
                axis.plot(*zip(*points, strict=True), color=color, marker=marker, label=family)
            else:
                axis.axhline(value(members[0]), color=color, linestyle="--", label=f"{family} (without {parameter})")
        if parameter == "k":
            k_axis(axis, [outcome.k for outcome in found.outcomes if outcome.k is not None])
        else:
            axis.set_xlabel(parameter)
        axis.set_ylabel(title)
        if all(value(outcome) >= 0 or not np.isfinite(value(outcome)) for outcome in found.outcomes):
            axis.set_ylim(bottom=0)
        figure.legend(loc="outside right upper", fontsize=9, frameon=False)
    axis.grid(alpha=0.3)
    axis.set_title(counted(len(found.data), "trajectory", "trajectories"), fontsize=11)
    figure.savefig(file)


def _score(key: str, outcome: TrajectoryOutcome) -> float:
    return outcome.scores[key]


def _title(column: Column) -> str:
    title = column.name if column.asked is None else column.asked.measure.title
    return f"{title}, {column.unit}" if column.unit else title


def _parameter(found: TrajectoryMethodComparison) -> str | None:
    """Return the parameter of the horizontal axis: k, or another with several numbers; None where there is none."""
    if len({outcome.k for outcome in found.outcomes if outcome.k is not None}) > 1:
        return "k"
    names = dict.fromkeys(name for outcome in found.outcomes for name in outcome.parameters)
    for name in names:
        if len({_place(o, name) for o in found.outcomes} - {None}) > 1:
            return name
    return None


def _place(outcome: TrajectoryOutcome, parameter: str) -> float | None:
    value = outcome.k if parameter == "k" else outcome.parameters.get(parameter)
    return float(value) if isinstance(value, int | float) else None


def _family(label: str, parameter: str | None) -> str:
    if parameter is None or parameter == "k":
        return without_k(label)
    return ":".join(part for part in label.split(":") if part.partition("=")[0] != parameter)
