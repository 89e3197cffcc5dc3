"""Tables and figures of papers, from a comparison of methods. All show exact numbers and are confidential.

- `draw_ratios`: Matet et al. (2022), Fig. 12: each measure as a ratio to the first method, box plots over matrices.
- `target_lines`: Matet et al. (2022), section 3.5 and Table 5: the target volume at which origins and destinations have the
  nearest mean sizes, for each k.
- `draw_windows`: Ferreira Torres and Trujillo-Rasua (2016), Fig. 1: distortion of range queries by the window of the queries.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from crowdveil.comparison.comparison import Comparison
from crowdveil.comparison.requested_measures import Column
from crowdveil.comparison.runs import SECONDS, Run
from crowdveil.errors import Option, ParameterError
from crowdveil.model.arrays import Floats
from crowdveil.report.plots.drawing import COLORS, INK, Drawing, VolumeScale, new_drawing, number

SIZES = ("origin-tiles", "destination-tiles")


def draw_ratios(found: Comparison) -> Drawing:
    """Draw a panel for each measure and for the time, with a box for each input and method but the first."""
    first = found.runs[0].method
    firsts, others = ([run for run in found.runs if (run.method == first) == same] for same in (True, False))
    if not others:
        raise ParameterError(Option("methods"), "Expected at least two methods. Name more.")
    pairs = [(run, other) for run in others for other in firsts if _fits(other, run)]
    if not pairs:
        raise ParameterError(
            Option("methods"), f"No other method ran on the same input with the k and budget of {first}. Name others."
        )
    fitting = Counter(run for run, _ in pairs)
    labels = [f"{_label(run)} / {other.label}" if fitting[run] > 1 else _label(run) for run, other in pairs]
    titles = {column.key: column.title for column in found.columns} | {SECONDS: "processor time"}
    boxes = {key: [matrix_ratios(run, other, key) for run, other in pairs] for key in titles}
    notes = []
    if any(len(box) == 0 for listed in boxes.values() for box in listed):
        notes.append("A box is missing where the measure of one of the two methods is 0 or undefined in each matrix.")
    if without := [_label(run) for run in others if run not in fitting]:
        notes.append(f"Left out, since {first} did not run with the same parameters: {'; '.join(without)}.")
    made = new_drawing(
        list(titles.values()), f"Ratio to {first} on the same matrices; right of the line is worse", notes, confidential=True,
        size=(3.4, 0.8 + 0.28 * len(pairs)), columns=4,
    )  # fmt: skip
    for i, (axis, listed) in enumerate(zip(made.panels, boxes.values(), strict=True)):
        axis.boxplot(
            listed, positions=range(len(listed)), orientation="horizontal", whis=(0, 100), manage_ticks=False,
            medianprops={"color": INK, "linewidth": 2},
        )  # fmt: skip
        axis.axvline(1, color=COLORS[-1], linewidth=1, zorder=0)
        axis.set_xscale("log")
        axis.set_xticks(VolumeScale.of([1.0], *listed).ticks(log_from=5))
        axis.xaxis.set_major_formatter(lambda value, _: number(value))
        axis.minorticks_off()
        axis.set_yticks(range(len(labels)), labels if i % 4 == 0 else [""] * len(labels))
        axis.set_ylim(len(labels) - 0.5, -0.5)
        axis.grid(axis="x", alpha=0.3)
    return made


def _fits(first: Run, run: Run) -> bool:
    """Return whether two runs have the same input, and the same values of the parameters that both have."""
    own, other = ({"k": each.k, "suppress": each.suppress, **each.varied} for each in (first, run))
    common = own.keys() & other.keys()
    return first.input == run.input and all(
        None in (own[name], other[name]) or own[name] == other[name] for name in common
    )


def _label(run: Run) -> str:
    return ", ".join(part for part in (run.input, run.label) if part)


def matrix_ratios(run: Run, other: Run, key: str) -> Floats:
    """Return the ratio of a measure of each matrix to that of another run, where both are above 0."""
    values, first = run.values[key], other.values[key]
    good = (values > 0) & (first > 0)  # false for NaN
    return values[good] / first[good]


def target_lines(found: Comparison) -> list[str]:
    """Return a line for each method, k and budget with the best target volume."""
    tried = [run for run in found.runs if "v_target" in run.varied]
    if not tried or not all(size in run.values for run in tried for size in SIZES):
        raise ParameterError(
            Option("vary"), "Expected several values of v_target and the measures origin-tiles and destination-tiles."
        )
    best: dict[tuple[Any, ...], Run] = {}
    for run in sorted(tried, key=_difference, reverse=True):
        best[run.input, run.method, run.k, run.suppress] = run
    return [
        f"k = {run.k}: v_target = {run.varied['v_target']}, origins of {run.mean(SIZES[0]):.3g} and destinations of "
        f"{run.mean(SIZES[1]):.3g} tiles"
        for run in sorted(best.values(), key=lambda run: (run.input, run.method, run.k or 0))
    ]


def _difference(run: Run) -> float:
    difference = abs(run.mean(SIZES[0]) - run.mean(SIZES[1]))
    return difference if np.isfinite(difference) else float("inf")


def draw_windows(found: Comparison) -> Drawing:
    """Draw a panel for each k and measure of range queries, with a line for each method; methods without k are in each."""
    by_measure: dict[str, list[Column]] = {}
    for column in found.columns:
        if column.asked is not None and hasattr(column.asked.params, "windows"):
            by_measure.setdefault(column.asked.label, []).append(column)
    if not by_measure:
        raise ParameterError(Option("measures"), "Expected sid or aid among the measures. Add one of them.")
    ks: list[int | None] = [*sorted({run.k for run in found.runs if run.k is not None})] or [None]
    panels = [(k, columns) for k in ks for columns in by_measure.values()]
    titles = [f"{columns[0].title.split(' ')[0]}{'' if k is None else f', k = {k}'}" for k, columns in panels]
    made = new_drawing(
        titles, "Distortion of range queries by their longest time; lower is better", [], confidential=True, size=(5, 3),
        columns=len(by_measure),
    )  # fmt: skip
    methods = list(dict.fromkeys(run.method for run in found.runs))
    for axis, (k, columns) in zip(made.panels, panels, strict=True):
        windows = [column.title.split(" ", 1)[1] for column in columns]
        for run in found.runs:
            if run.k in (k, None):
                values = [run.mean(column.key) for column in columns]
                color = COLORS[methods.index(run.method) % len(COLORS)]
                axis.plot(
                    windows, values, color=color, marker="o", linestyle="--" if run.remark else "-", label=run.method
                )
        axis.set_xlabel("window of the queries", fontsize=8)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, frameon=False)
    return made
