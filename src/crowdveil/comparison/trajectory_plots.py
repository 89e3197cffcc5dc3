"""Plots of comparisons of trajectories as PNG."""

from __future__ import annotations

from pathlib import Path

from crowdveil.comparison.candidates import without_k
from crowdveil.comparison.method_styles import method_styles
from crowdveil.comparison.trajectories import MEASURES, TrajectoryMethodComparison
from crowdveil.errors import counted
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.registry import find_measure


def distortion_by_window(found: TrajectoryMethodComparison, file: Path) -> None:
    """Draw distortion by window: a row per k, a column per measure, a line per method.

    Methods without k are in each row; hollow markers are of methods without a proven guarantee.
    """
    ks: list[int | None] = [*sorted({outcome.k for outcome in found.outcomes if outcome.k is not None})] or [None]
    families = dict.fromkeys(without_k(outcome.label) for outcome in found.outcomes)
    look = dict(zip(families, method_styles(), strict=False))
    figure = new_figure(11, 1.2 + 2.9 * len(ks))
    axes = figure.subplots(len(ks), len(MEASURES), squeeze=False, sharex=True)
    top = {name: max(float(outcome.by_window[name].max()) for outcome in found.outcomes) for name in MEASURES}
    handles = {}
    for row, k in zip(axes, ks, strict=True):
        for axis, name in zip(row, MEASURES, strict=True):
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
