"""Pictures of comparisons, as PNG. Needs matplotlib, which is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdveil.errors import MissingExtraError, counted
from crowdveil.model.arrays import Floats

if TYPE_CHECKING:
    from crowdveil.report.compare import Comparison
    from crowdveil.report.sweep import Sweep

_RATIOS = {"Ḡ": "generalisation error Ḡ", "E": "reconstruction error E", "D": "distribution distance D"}
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444")
_MARKERS = "osD^vP*Xph"
_DIGITS = ((8, (1, 1.5, 2, 3, 5, 7)), (50, (1, 2, 5)), (500, (1, 3)), (np.inf, (1,)))
"""First digits of the numbers on a logarithmic axis, by how many times the largest is the least at most."""


def ratios(found: Comparison, file: Path) -> None:
    """Box plots over matrices of each measure as a ratio to that of the first method; right of the line is worse."""
    labels = [f"{outcome.label} *" if outcome.remark else outcome.label for outcome in found.outcomes]
    figure = _figure(11, 1.6 + 0.36 * len(labels))
    axes = figure.subplots(1, len(_RATIOS), sharey=True)
    first = found.outcomes[0]
    for axis, (symbol, title) in zip(axes, _RATIOS.items(), strict=True):
        boxes = [_ratio(outcome.by_step[symbol], first.by_step[symbol]) for outcome in found.outcomes]
        _boxes(axis, boxes)
        axis.axvline(1, color="#d55e00", linewidth=1, zorder=0)
        axis.set_title(title, fontsize=11)
        axis.set_xlabel(f"ratio to {first.label}")
        _log_axis(axis, np.concatenate([*boxes, np.ones(1)]))
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].invert_yaxis()
    marked = {remark for outcome in found.outcomes for remark in outcome.remark.split(", ") if remark}
    apart = f"   (* {' or '.join(sorted(marked))})" if marked else ""
    figure.suptitle(f"{_settings(found)}; {counted(found.flows.steps, 'matrix', 'matrices')}{apart}", fontsize=11)
    figure.savefig(file)


def coarseness_and_loss(found: Comparison, file: Path) -> None:
    """The mean Ḡ of each method against the mean share that it suppresses; lower left is better."""
    figure = _figure(8.5, 5)
    axis = figure.subplots()
    errors = np.array([outcome.mean("Ḡ") for outcome in found.outcomes])
    for outcome, error, (colour, marker) in zip(found.outcomes, errors, _looks(), strict=False):
        if np.isfinite(error) and np.isfinite(outcome.mean("S")):
            name = f"{outcome.label} ({outcome.remark})" if outcome.remark else outcome.label
            axis.plot(100 * outcome.mean("S"), error, marker, color=colour, markersize=9, label=name, linestyle="none",
                      markerfacecolor="none" if outcome.remark else colour, markeredgewidth=1.5)  # fmt: skip
    budget = found.shared.suppress
    if budget <= 1:
        axis.axvline(100 * budget, color="#888888", linestyle="--", linewidth=1, label=f"budget, {100 * budget:g} %")
    axis.set_xlabel("trips suppressed S, %")
    axis.set_ylabel("mean generalisation error Ḡ, tiles")
    _log_axis(axis, errors, which="y")
    axis.grid(alpha=0.3)
    axis.set_title(f"{_settings(found)}; lower left is better", fontsize=11)
    figure.legend(loc="outside right upper", fontsize=9, frameon=False)
    figure.savefig(file)


def sweep(found: Sweep, file: Path) -> None:
    """What the rule weighs (Ḡ, or E) by k, a line for each budget; a ring is around what is recommended."""
    from crowdveil.report.sweep import budget_shown

    figure = _figure(7.5, 4.5)
    axis = figure.subplots()
    budgets = list(dict.fromkeys(trial.suppress for trial in found.trials))
    for budget, (colour, marker) in zip(budgets, _looks(), strict=False):
        points = [(t.k, t.outcome.mean(found.weighed)) for t in found.trials if t.suppress == budget]
        name = None if budget is None else f"at most {budget_shown(budget)} withheld"
        axis.plot(*zip(*points, strict=True), marker=marker, color=colour, label=name)
    best = found.recommended
    if best is not None:
        axis.plot(best.k, best.outcome.mean(found.weighed), "o", markersize=18, markerfacecolor="none", markeredgecolor="black",
                  linestyle="none", label="recommended")  # fmt: skip
    axis.set_xticks(sorted({trial.k for trial in found.trials}))
    axis.set_xlabel("k, smallest crowd")
    axis.set_ylabel("mean generalisation error Ḡ, tiles" if found.weighed == "Ḡ" else "mean reconstruction error E")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.set_title(found.method, fontsize=11)
    if best is not None or budgets != [None]:
        axis.legend(fontsize=9, frameon=False)
    figure.savefig(file)


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "drawing plots") from None
    return Figure(figsize=(width, height), layout="constrained", dpi=130)


def _boxes(axis: Any, boxes: list[Floats]) -> None:
    """A box for each method, from quartile to quartile, with whiskers from the least to the largest."""
    axis.boxplot(
        boxes, positions=range(len(boxes)), orientation="horizontal", widths=0.6, whis=(0, 100), patch_artist=True,
        boxprops={"facecolor": "#cfe2f0", "edgecolor": "#0072b2"}, medianprops={"color": "#0072b2", "linewidth": 2},
        whiskerprops={"color": "#0072b2"}, capprops={"color": "#0072b2"}, manage_ticks=False,
    )  # fmt: skip


def _log_axis(axis: Any, values: Floats, which: str = "x") -> None:
    """A logarithmic axis with plain numbers: few of them where it spans decades, more where it does not."""
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


def _ratio(values: Floats, first: Floats) -> Floats:
    """Where both are defined and above 0, which a logarithm needs."""
    good = np.isfinite(values) & np.isfinite(first) & (values > 0) & (first > 0)
    return values[good] / first[good]


def _looks() -> Iterator[tuple[str, str]]:
    """Colours and markers, no two alike for the first seventy."""
    for i in range(len(_COLOURS) * len(_MARKERS)):
        yield _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]


def _settings(found: Comparison) -> str:
    budget = found.shared.suppress
    return f"k = {found.shared.k}, at most {f'{100 * budget:g} %' if budget <= 1 else f'{budget:,.0f} trips'} withheld"
