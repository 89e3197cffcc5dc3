"""The result of a comparison: a tidy table, a text, a recommendation, and a confidential folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.comparison.plots import plot_measures, plot_trade_off
from crowdveil.comparison.requested_measures import Column
from crowdveil.comparison.runs import SECONDS, Run
from crowdveil.errors import Naming, Text, render
from crowdveil.io.atomic import check_target, new_folder
from crowdveil.io.tables import write_json_or_table
from crowdveil.measures.base import shown
from crowdveil.model.tabular import TableProperty, align_rows, numbers_or_null, plain_column

MARK_FILE = "CONFIDENTIAL.txt"
ALL_INPUTS = "all inputs"
TOTAL_SECONDS = "total-seconds"
ACCEPTABLE = 2
"""Largest factor of the error for a larger k or a smaller budget."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(TableProperty):
    """Methods with different parameters on the same inputs.

    Attributes
    ----------
    runs
        Each combination of input, method and parameters that ran.
    columns
        The measures.
    left_out
        Reasons for missing combinations or measures, by label.
    caption
        A description of the samples behind the numbers.
    joined
        Whether there is a row over all inputs, because they are different data and not one input with several zones.
    """

    runs: tuple[Run, ...]
    columns: tuple[Column, ...]
    left_out: Mapping[str, Text]
    caption: str
    joined: bool

    @cached_property
    def rows(self) -> tuple[Run, ...]:
        """The runs and, if inputs are joined, each method on all matrices of all inputs."""
        inputs = {run.input for run in self.runs}
        if not self.joined or len(inputs) < 2:
            return self.runs
        by_label: dict[str, list[Run]] = {}
        for run in self.runs:
            by_label.setdefault(run.label, []).append(run)
        joined = [
            replace(
                members[0],
                input=ALL_INPUTS,
                tiles=None,
                values={key: np.concatenate([run.values[key] for run in members]) for key in members[0].values},
            )
            for members in by_label.values()
            if len(members) == len(inputs)
        ]
        return (*self.runs, *joined)

    @property
    def table(self) -> pa.Table:
        """A row for each combination and measure: the mean over matrices. Seconds are processor time per matrix."""
        cells = [
            (run, name, value)
            for run in self.rows
            for name, value in [
                *((column.name, run.mean(column.key)) for column in self.columns),
                (SECONDS, run.mean(SECONDS)),
                (TOTAL_SECONDS, run.total_seconds),
            ]
        ]
        runs = [run for run, _, _ in cells]
        columns: dict[str, Any] = {
            "input": pa.array([run.input or None for run in runs], pa.string()),
            "tiles": pa.array([run.tiles for run in runs], pa.int64()),
            "method": [run.method for run in runs],
            "k": pa.array([run.k for run in runs], pa.int64()),
            "suppress": pa.array([run.suppress for run in runs], pa.string()),
        }
        for parameter in self.varied:
            columns[parameter] = plain_column([run.varied.get(parameter) for run in runs])
        columns["measure"] = [name for _, name, _ in cells]
        columns["value"] = numbers_or_null([value for _, _, value in cells])
        columns["remark"] = pa.array([run.remark or None for run in runs], pa.string())
        return pa.table(columns)

    @property
    def varied(self) -> list[str]:
        """The names of the varied parameters."""
        return list(dict.fromkeys(name for run in self.runs for name in run.varied))

    def lines(self) -> list[str]:
        """Return a text with a line for each combination, a column for each measure and, with joined inputs, the total time."""
        settings: dict[str, list[Any]] = {
            "input": [run.input for run in self.rows],
            "k": [run.k for run in self.rows],
            "suppress": [run.suppress for run in self.rows],
            **{name: [run.varied.get(name) for run in self.rows] for name in self.varied},
        }
        differing = {name: values for name, values in settings.items() if len(set(values)) > 1}
        total = len(self.rows) > len(self.runs)
        times = [SECONDS, "total seconds"] if total else [SECONDS]
        head = ["method", *differing, *(column.title for column in self.columns), *times, ""]
        lines = [
            [
                run.method,
                *("–" if values[i] is None else f"{values[i]}" for values in differing.values()),
                *(_shown(run.mean(column.key), column) for column in self.columns),
                f"{run.mean(SECONDS):.3g}",
                *([f"{run.total_seconds:.3g}"] if total else []),
                run.remark,
            ]
            for i, run in enumerate(self.rows)
        ]
        return align_rows([head, *lines], remarks=True)

    @property
    def criterion(self) -> Column:
        """The measure of a recommendation: Ḡ, or E for a method without a budget, or else the first one."""
        by_key = {column.key: column for column in self.columns}
        wanted = "E" if all(run.suppress is None for run in self.runs) else "Ḡ"
        return by_key.get(wanted, self.columns[0])

    @property
    def recommended(self) -> Run | None:
        """The choice of `recommend` among the runs of one method on one input; None if there is no choice."""
        if len({(run.method, run.input) for run in self.runs}) > 1 or len(self.runs) < 2:
            return None
        key = self.criterion.key
        defined = [run for run in self.runs if np.isfinite(run.mean(key))]
        if not defined or len({run.suppress is not None and run.suppress.endswith("trips") for run in defined}) > 1:
            return None
        best: dict[tuple[int, float], Run] = {}
        for run in sorted(defined, key=lambda run: run.mean(key), reverse=True):
            best[run.k or 0, budget_size(run.suppress)] = run
        return best[recommend([(k, budget, run.mean(key)) for (k, budget), run in best.items()])]

    def recommendation(self) -> str:
        """Return the recommended parameters of a single method as a sentence; "" if several methods or inputs ran."""
        best = self.recommended
        if best is None:
            return ""
        values = {"k": best.k, "suppress": best.suppress, **best.varied}
        given = " and ".join(f"{name} = {value}" for name, value in values.items() if value is not None)
        measure = self.criterion
        return (
            f"Take {given} ({measure.title} {_shown(best.mean(measure.key), measure)}): the largest k and the smallest "
            f"budget with {measure.title} at most twice that of the smallest k and of the largest budget."
        )

    def omissions(self, naming: Naming) -> list[str]:
        """Return a sentence for each missing method or measure."""
        return [f"{label} is left out: {render(reason, naming)}" for label, reason in self.left_out.items()]

    def write(self, folder: str | Path, table_format: str = "csv", *, overwrite: bool = False) -> None:
        """Write the table and two plots to a folder that only its owner can read."""
        with new_folder(Path(folder), overwrite=overwrite, mark_file=MARK_FILE) as target:
            write_json_or_table(self.table.to_pylist, lambda: self.table, target / f"comparison.{table_format}")
            plot_measures(self.runs, self.columns).save(target / "measures.png", "png")
            plot_trade_off(self.runs, self.columns).save(target / "trade-off.png", "png")
            (target / MARK_FILE).write_text(f"{CONFIDENTIAL}\n", encoding="utf-8")
            target.chmod(0o700)
            for file in target.iterdir():
                file.chmod(0o600)


def check_folder(target: str | Path | None, *, overwrite: bool) -> None:
    """Raise unless the folder of a comparison can be written."""
    if target is not None:
        check_target(Path(target).absolute(), overwrite=overwrite, mark_file=MARK_FILE)


def recommend(tried: Sequence[tuple[int, float, float]]) -> tuple[int, float]:
    """Return the recommended k and budget of (k, budget, error): the largest acceptable k at the smallest acceptable budget.

    A budget is acceptable if its error at the smallest k is at most twice that of the largest budget: more suppression would
    not make areas much finer. A k is acceptable if its error at that budget is at most twice that of the smallest k.
    """
    least = min(k for k, _, _ in tried)
    budgets = sorted((budget, error) for k, budget, error in tried if k == least)
    budget, at_least = next(pair for pair in budgets if pair[1] <= ACCEPTABLE * budgets[-1][1])
    return max(k for k, b, error in tried if b == budget and error <= ACCEPTABLE * at_least), budget


def budget_size(text: str | None) -> float:
    """Return the share or the number of trips of a budget; 0 if there is none."""
    return 0.0 if text is None else float(text.removesuffix("trips").removesuffix("%"))


def _shown(value: float, column: Column) -> str:
    if column.key == "S" and np.isfinite(value):
        return f"{100 * value:.1f} %"
    return shown(value, column.unit)
