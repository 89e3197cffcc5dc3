"""Plots of comparisons as PNG. Needs matplotlib, which is imported for the first plot."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.comparison.candidates import without_k
from crowdveil.comparison.flows import FlowComparison, MethodResult
from crowdveil.comparison.sweep import Sweep, budget_shown
from crowdveil.comparison.trajectories import TrajectoryMethodComparison
from crowdveil.errors import counted
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.model.arrays import Floats
from crowdveil.registry import find_measure

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444")
_MARKERS = "osD^vP*Xph"
_RATIOS = {
    "Ḡ": "generalization error Ḡ",
    "E": "reconstruction error E",
    "D": "distribution distance D",
    "seconds": "processor time",
}
_DIGITS = ((8, (1, 1.5, 2, 3, 5, 7)), (50, (1, 2, 5)), (500, (1, 3)), (np.inf, (1,)))
"""First digits of tick labels on a logarithmic axis, by the upper bound of largest / smallest value."""


def method_styles() -> Iterator[tuple[str, str]]:
    """Return pairs of color and marker, without an end; the first seventy are distinct."""
    return zip(cycle(_COLORS), cycle(_MARKERS), strict=False)


def ratios(found: FlowComparison, file: Path) -> None:
    """Draw box plots over matrices of each measure as a ratio to the first method (with the same k); right is worse."""
    labels = [f"{outcome.label} *" if outcome.remark else outcome.label for outcome in found.outcomes]
    figure = new_figure(14, 1.6 + 0.36 * len(labels))
    axes = figure.subplots(1, len(_RATIOS), sharey=True)
    first, several = found.outcomes[0], several_k(found)
    base = {
        outcome.k: outcome for outcome in reversed(found.outcomes) if without_k(outcome.label) == without_k(first.label)
    }
    bases = [base.get(outcome.k, first) for outcome in found.outcomes]
    for axis, (symbol, title) in zip(axes, _RATIOS.items(), strict=True):
        pairs = zip(found.outcomes, bases, strict=True)
        boxes = [ratio_boxes(outcome, other, symbol) for outcome, other in pairs]
        _boxes(axis, boxes)
        axis.axvline(1, color="#d55e00", linewidth=1, zorder=0)
        axis.set_title(title, fontsize=11)
        axis.set_xlabel(f"ratio to {without_k(first.label)} with the same k" if several else f"ratio to {first.label}")
        log_axis(axis, np.concatenate([*boxes, np.ones(1)]))
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].set_ylim(len(labels) - 0.4, -0.6)
    marked = {remark for outcome in found.outcomes for remark in outcome.remark.split(", ") if remark}
    remarks = f"   (* {' or '.join(sorted(marked))})" if marked else ""
    figure.suptitle(f"{_settings(found)}; {counted(found.flows.steps, 'matrix', 'matrices')}{remarks}", fontsize=11)
    figure.savefig(file)


def coarseness_and_loss(found: FlowComparison, file: Path) -> None:
    """Draw the mean Ḡ of each method against its mean suppressed share; lower left is better.

    The Pareto front is drawn only for a single k, since a smaller k always lies on it.
    """
    figure = new_figure(9, 5)
    axis = figure.subplots()
    points = [(100 * outcome.mean("S"), outcome.mean("Ḡ")) for outcome in found.outcomes]
    budget = found.shared.suppress
    if budget is not None:
        axis.axvline(
            100 * budget, color="#888888", linestyle="--", linewidth=1, zorder=0, label=f"budget, {100 * budget:g} %"
        )
    _draw_methods(axis, found, points)
    if not several_k(found):
        _draw_front(axis, front(_comparable(found, points)), "Pareto front (methods without a remark)")
    axis.set_xlabel("trips suppressed S, %")
    axis.set_ylabel("mean generalization error Ḡ, tiles")
    log_axis(axis, np.array([error for _, error in points]), which="y")
    axis.grid(alpha=0.3)
    axis.set_title(f"{_settings(found)}; lower left is better", fontsize=11)
    figure.legend(loc="outside right upper", fontsize=9, frameon=False)
    figure.savefig(file)


def error_by_k(found: FlowComparison, file: Path) -> None:
    """Draw the mean E of each method against its k, and the Pareto front; lower right is better."""
    figure = new_figure(9, 5)
    axis = figure.subplots()
    points = [(float(outcome.k or np.nan), outcome.mean("E")) for outcome in found.outcomes]
    _draw_methods(axis, found, points)
    best = front([(-k, error) for k, error in _comparable(found, points)])
    _draw_front(axis, [(-k, error) for k, error in best], "Pareto front (methods without a remark)")
    k_axis(axis, [outcome.k for outcome in found.outcomes if outcome.k is not None])
    axis.set_ylabel("mean reconstruction error E")
    axis.set_ylim(bottom=0)
    axis.set_title(f"{_settings(found)}; lower right is better", fontsize=11)
    figure.legend(loc="outside right upper", fontsize=9, frameon=False)
    figure.savefig(file)


def sweep(found: Sweep, file: Path) -> None:
    """Draw the criterion of the recommendation by k, with the recommended point circled, and E by k with its front."""
    symbols = list(dict.fromkeys((found.weighed, "E")))
    figure = new_figure(1 + 5 * len(symbols), 4.5)
    axes = np.atleast_1d(figure.subplots(1, len(symbols)))
    for axis, symbol in zip(axes, symbols, strict=True):
        _trials(axis, found, symbol)
    if found.recommended is not None or any(trial.budget is not None for trial in found.trials):
        axes[0].legend(fontsize=9, frameon=False)
    figure.suptitle(f"{found.method}; {counted(found.flows.steps, 'matrix', 'matrices')}", fontsize=11)
    figure.savefig(file)


def distortion_by_window(found: TrajectoryMethodComparison, file: Path) -> None:
    """Draw distortion by window: a row per k, a column per measure, a line per method.

    Methods without k are in each row; hollow markers are of methods without a proven guarantee.
    """
    measures = found.shared.by_window
    ks: list[int | None] = [*sorted({outcome.k for outcome in found.outcomes if outcome.k is not None})] or [None]
    families = dict.fromkeys(without_k(outcome.label) for outcome in found.outcomes)
    look = dict(zip(families, method_styles(), strict=False))
    figure = new_figure(11, 1.2 + 2.9 * len(ks))
    axes = figure.subplots(len(ks), len(measures), squeeze=False, sharex=True)
    top = {name: max(float(outcome.by_window[name].max()) for outcome in found.outcomes) for name in measures}
    handles = {}
    for row, k in zip(axes, ks, strict=True):
        for axis, name in zip(row, measures, strict=True):
            for outcome in found.outcomes:
                if outcome.k not in (k, None):
                    continue
                family = without_k(outcome.label)
                color, marker = look[family]
                (handles[family],) = axis.plot(
                    range(len(found.windows)), outcome.by_window[name], color=color, marker=marker, markersize=6,
                    markerfacecolor="none" if outcome.remark else color, linewidth=1.2,
                    linestyle="--" if outcome.remark else "-",
                    label=f"{family} ({outcome.remark})" if outcome.remark else family,
                )  # fmt: skip
            measure = find_measure(name)
            title = f"{measure.title} ({measure.symbol})"
            axis.set_title(title if k is None else f"{title}, k = {k}", fontsize=10)
            axis.set_ylim(0, min(1.0, top[name] * 1.08) if top[name] else 1.0)
            axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xticks(range(len(found.windows)), [str(window) for window in found.windows])
        axis.set_xlabel("maximum query duration, seconds")
    for row in axes:
        row[0].set_ylabel("distortion")
    queries = f"{found.shared.queries:,} queries per window, radius up to {found.shared.radius_m:g} m"
    figure.suptitle(
        f"{counted(len(found.data), 'trajectory', 'trajectories')}; {queries}; lower is better", fontsize=11
    )
    figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.savefig(file)


def _trials(axis: Any, found: Sweep, symbol: str) -> None:
    """Draw a measure by k, one line per budget."""
    budgets = {trial.budget: trial.budget_shown for trial in found.trials}
    for budget, (color, marker) in zip(budgets, method_styles(), strict=False):
        points = [(t.k, t.outcome.mean(symbol)) for t in found.chosen if t.budget == budget]
        name = None if budget is None else f"at most {budgets[budget]} suppressed"
        axis.plot(*zip(*points, strict=True), marker=marker, color=color, label=name)
    best = found.recommended
    if best is not None:
        axis.plot(best.k, best.outcome.mean(symbol), "o", markersize=18, markerfacecolor="none", markeredgecolor="black",
                  linestyle="none", label="recommended", clip_on=False)  # fmt: skip
    if symbol == "E" and len(budgets) > 1:
        errors = [(-float(t.k), t.outcome.mean(symbol)) for t in found.chosen if np.isfinite(t.outcome.mean(symbol))]
        _draw_front(axis, [(-k, error) for k, error in front(errors)], "Pareto front of k and E")
        axis.legend(handles=[axis.lines[-1]], fontsize=9, frameon=False)
    k_axis(axis, [trial.k for trial in found.trials])
    axis.set_ylabel("mean generalization error Ḡ, tiles" if symbol == "Ḡ" else "mean reconstruction error E")
    axis.set_ylim(bottom=0)


def front(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the Pareto front of points (lower is better in both numbers), from left to right."""
    chosen: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if not chosen or y < chosen[-1][1]:
            chosen.append((x, y))
    return chosen


def _comparable(found: FlowComparison, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points of methods that guarantee k and the budget, with rows that do not overlap."""
    pairs = zip(found.outcomes, points, strict=True)
    return [point for outcome, point in pairs if not outcome.remark and np.isfinite(point).all()]


def several_k(found: FlowComparison) -> bool:
    """Return whether methods have different k."""
    return len({outcome.k for outcome in found.outcomes if outcome.k is not None}) > 1


def _draw_methods(axis: Any, found: FlowComparison, points: list[tuple[float, float]]) -> None:
    """Draw a line for each method through its k; hollow markers for methods with a remark; undefined points are omitted."""
    families: dict[str, list[int]] = {}
    for i, outcome in enumerate(found.outcomes):
        if np.isfinite(points[i]).all():
            families.setdefault(without_k(outcome.label), []).append(i)
    for (name, members), (color, marker) in zip(families.items(), method_styles(), strict=False):
        remark = found.outcomes[members[0]].remark
        axis.plot(*zip(*(points[i] for i in members), strict=True), marker=marker, color=color, markersize=9,
                  markerfacecolor="none" if remark else color, markeredgewidth=1.5, linewidth=1 if len(members) > 1 else 0,
                  label=f"{name} ({remark})" if remark else name)  # fmt: skip


def _draw_front(axis: Any, points: list[tuple[float, float]], name: str) -> None:
    """Draw a broad line behind the points of the front."""
    if points:
        axis.plot(*zip(*points, strict=True), color="#f0c808", linewidth=9, alpha=0.35, zorder=0, marker="o", markersize=15,
                  markeredgewidth=0, label=name)  # fmt: skip


def k_axis(axis: Any, values: list[int]) -> None:
    """Set a logarithmic axis of k with a tick at each value."""
    from matplotlib.ticker import NullLocator

    axis.set_xscale("log")
    ticks = sorted(set(values))
    axis.set_xticks(ticks, [str(k) for k in ticks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("k, minimum group size")
    axis.grid(alpha=0.3)


def _boxes(axis: Any, boxes: list[Floats]) -> None:
    """Draw a box for each method, from quartile to quartile, with whiskers from minimum to maximum."""
    axis.boxplot(
        boxes, positions=range(len(boxes)), orientation="horizontal", widths=0.6, whis=(0, 100), patch_artist=True,
        boxprops={"facecolor": "#cfe2f0", "edgecolor": "#0072b2"}, medianprops={"color": "#0072b2", "linewidth": 2},
        whiskerprops={"color": "#0072b2"}, capprops={"color": "#0072b2"}, manage_ticks=False,
    )  # fmt: skip


def log_axis(axis: Any, values: Floats, which: str = "x") -> None:
    """Set a logarithmic axis with plain numbers, fewer of them if it spans decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    defined = values[np.isfinite(values) & (values > 0)]
    if not len(defined):
        return
    (axis.set_xscale if which == "x" else axis.set_yscale)("log")
    low, high = float(defined.min()) / 1.15, float(defined.max()) * 1.15
    (axis.set_xlim if which == "x" else axis.set_ylim)(low, high)
    span = high / low
    digits = next(digits for most, digits in _DIGITS if span < most)
    side = axis.xaxis if which == "x" else axis.yaxis
    side.set_major_locator(LogLocator(subs=digits, numticks=50))
    side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    side.set_minor_formatter(NullFormatter())


def ratio_boxes(outcome: MethodResult, other: MethodResult, symbol: str) -> Floats:
    """Return the ratios of a measure, or of the processor time, of each matrix to those of another, where both are above 0."""
    values, first = (each.seconds_by_step if symbol == "seconds" else each.by_step[symbol] for each in (outcome, other))
    good = np.isfinite(values) & np.isfinite(first) & (values > 0) & (first > 0)  # as a logarithm needs
    return values[good] / first[good]


def _settings(found: FlowComparison) -> str:
    budget = budget_shown(found.shared.suppress, found.shared.suppress_trips)
    ks = sorted({outcome.k for outcome in found.outcomes if outcome.k is not None})
    k = f"{ks[0]} to {ks[-1]}" if several_k(found) else f"{found.shared.k}"
    return f"k = {k}, at most {budget.replace('%', ' %')} suppressed"
