"""What a release lost, by as many measures as are asked for: as lines for people, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.io.times import time_column
from crowdveil.measures.base import Measure, Scores, scores
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.registry import MEASURES, find_measure

OVERLAPPING = "rows of this release overlap; what several say of a pair of tiles is added up."
_ARROWS = {"lower": "↓", "higher": "↑", "neither": " "}


@dataclass(frozen=True, eq=False)
class Measurement:
    """The scores of a release. `measurement["E"]` are those of one measure, by its name or symbol.

    Attributes
    ----------
    original
        The flows that were measured against.
    scores
        In the order asked for.
    overlapping
        Whether flows lie in several rows of the release, whose shares in a pair of tiles are then added.
    """

    original: Flows
    scores: tuple[Scores, ...]
    overlapping: bool = False

    def __getitem__(self, name: str) -> Scores:
        for found in self.scores:
            if name in (found.measure.name, found.measure.symbol):
                return found
        raise KeyError(name)

    def lines(self) -> list[str]:
        """A table for people: each measure, its mean over matrices and its value over all of them together."""
        one = self.original.steps == 1
        head = ["measure", "value"] if one else ["measure", "mean of matrices", "all together"]
        rows = [head]
        for label, unit, mean, pooled in self._rows():
            values = [_shown(pooled, unit)] if one else [_shown(mean, unit), _shown(pooled, unit)]
            rows.append([label, *values])
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        told = (row[1:] for row in rows)
        return [
            "  ".join([row[0].ljust(widths[0]), *(v.rjust(w) for v, w in zip(values, widths[1:], strict=True))])
            for row, values in zip(rows, told, strict=True)
        ]

    def _rows(self) -> list[tuple[str, str, float, float]]:
        listed = []
        for found in self.scores:
            measure = found.measure
            title = f"{_ARROWS[measure.better]} {measure.title}{f' ({measure.symbol})' if measure.symbol else ''}"
            for part, _, mean, pooled in _columns(found):
                listed.append((f"{title}: {part}" if part else title, measure.unit, mean, pooled))
        return listed

    def as_json(self) -> dict[str, Any]:
        """Everything, by name of measure; what is undefined is null."""
        t = self._times(as_text=True)
        return {
            "time_steps": t,
            "measures": {
                found.measure.name: {
                    "title": found.measure.title,
                    "symbol": found.measure.symbol or None,
                    "unit": found.measure.unit or None,
                    "better": found.measure.better,
                    **({"parts": list(found.measure.parts)} if found.measure.parts else {}),
                    "mean": _plain(found.mean),
                    "pooled": _plain(found.pooled),
                    "by_step": _plain(found.by_step),
                }
                for found in self.scores
            },
        }

    def table(self, *, as_text: bool) -> pa.Table:
        """One row for each measure, part and time step; two more, `mean` and `pooled`, stand over all steps."""
        steps, times = self.original.steps, self._times(as_text=as_text)
        columns: dict[str, list[Any]] = {"measure": [], "part": [], "over": [], "t": [], "value": []}
        for found in self.scores:
            for part, by_step, mean, pooled in _columns(found):
                columns["measure"] += [found.measure.name] * (steps + 2)
                columns["part"] += [part or None] * (steps + 2)
                columns["over"] += ["step"] * steps + ["mean", "pooled"]
                columns["t"] += [*times, None, None]
                columns["value"] += [v if np.isfinite(v) else None for v in (*by_step.tolist(), mean, pooled)]
        return pa.table({**columns, "t": pa.array(columns["t"], self._time_type(as_text)),
                         "part": pa.array(columns["part"], pa.string())})  # fmt: skip

    def _times(self, *, as_text: bool) -> list[Any]:
        """Starts of the steps; None where the data has no times."""
        if self.original.step_s is None:
            return [None] * self.original.steps
        times: list[Any] = time_column(self.original.t, self.original.tz, as_text=as_text).to_pylist()
        return times

    def _time_type(self, as_text: bool) -> Any:
        return pa.string() if as_text else time_column(self.original.t, self.original.tz, as_text=False).type


def named_measures(names: Sequence[str] | None) -> list[Measure]:
    """The measures of these names or symbols, each once; all of them where none are named."""
    found = [find_measure(name) for name in (MEASURES if names is None else names)]
    return list(dict.fromkeys(found))


def measured(original: Flows, release: FlowRelease, measures: Sequence[Measure]) -> Measurement:
    """Compute measures of a release."""
    if len(original) == 0:
        raise InputError("original: there is no flow in it, so that nothing can have been lost.")
    compared = OdComparison.between(original, release)
    found = tuple(scores(measure, compared) for measure in measures)
    return Measurement(original, found, overlapping=compared.row is None)


def _columns(found: Scores) -> list[tuple[str, Floats, float, float]]:
    """Part, values by step, mean and pooled value of each column; one without a name where there are no parts."""
    if not found.measure.parts:
        return [("", found.by_step, float(found.mean), float(found.pooled))]
    return [
        (part, found.by_step[:, i], float(found.mean[i]), float(found.pooled[i]))
        for i, part in enumerate(found.measure.parts)
    ]


def _shown(value: float, unit: str) -> str:
    """A number of four digits or so, "–" where it is undefined."""
    if not np.isfinite(value):
        return "–"
    whole = value == int(value) and value != 1  # a share of 1 is shown as the other shares are
    text = f"{value:,.0f}" if value >= 1000 or whole else f"{value:.4g}" if value > 1 else f"{value:.4f}"
    return f"{text} {unit}".rstrip()


def _plain(values: Floats) -> Any:
    """Numbers as JSON has them; None for what is undefined."""
    if values.ndim:
        return [_plain(value) for value in values]
    return float(values) if np.isfinite(values) else None
