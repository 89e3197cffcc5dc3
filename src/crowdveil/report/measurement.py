"""Measurements of the information loss of a release: as text, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.progress import Progress, Stage, no_progress
from crowdveil.errors import CrowdveilError, InputError, Naming, Text, as_argument, render
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import write_json_or_table
from crowdveil.io.times import step_times, time_column
from crowdveil.measures.base import MeasureRequest, Scores, scores, shown
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release
from crowdveil.model.tabular import Tabular, align_rows, numbers_or_null
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import our_names
from crowdveil.report.plots.loss import draw_loss, measured_axes

OVERLAPPING = "rows of this release overlap: the shares of several rows in a pair of tiles are added."
_ARROWS = {"lower": "↓", "higher": "↑", "neither": " "}


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Tabular):
    """Scores of a release. `measurement["E"]` are those of one measure, by name, symbol, label or name in other software.

    Attributes
    ----------
    original
        The original flows or trajectories.
    scores
        In the requested order.
    overlapping
        Whether rows of the release overlap, so that their shares in a pair of tiles are added.
    left_out
        Why measures are missing, by name.
    notes
        Assumptions of the scores.
    """

    original: Flows | Trajectories
    scores: tuple[Scores, ...]
    overlapping: bool = False
    left_out: Mapping[str, Text] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Scores:
        names = {name, *our_names("measure", name)}
        for found in self.scores:
            if names & {found.asked.label, found.measure.name, found.measure.symbol}:
                return found
        raise KeyError(name)

    @property
    def matrices(self) -> Flows | None:
        """The original flows; None for trajectories."""
        return self.original if isinstance(self.original, Flows) else None

    def lines(self) -> list[str]:
        """Return a table as text: each measure, its mean over matrices and its value over all of them."""
        one = self.matrices is None or self.matrices.steps == 1
        rows = [["measure", "value"] if one else ["measure", "mean of matrices", "pooled"]]
        for label, unit, mean, pooled in self._rows():
            values = [shown(pooled, unit)] if one else [shown(mean, unit), shown(pooled, unit)]
            rows.append([label, *values])
        return align_rows(rows)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return label, mean over matrices and pooled value of each measure, as text."""
        return [(label.strip(), shown(mean, unit), shown(pooled, unit)) for label, unit, mean, pooled in self._rows()]

    def _rows(self) -> list[tuple[str, str, float, float]]:
        listed = []
        for found in self.scores:
            measure = found.measure
            parameters = found.asked.label.removeprefix(measure.name).replace(":", ", ")
            title = f"{_ARROWS[measure.better]} {measure.title}{f' ({measure.symbol})' if measure.symbol else ''}{parameters}"
            for part, _, mean, pooled in found.columns():
                listed.append((f"{title}: {part}" if part else title, measure.unit, mean, pooled))
        return listed

    def as_json(self) -> dict[str, Any]:
        """Return all scores by name of measure; undefined values are null."""
        flows = self.matrices
        content: dict[str, Any] = {} if flows is None else {"time_steps": step_times(flows, as_text=True)}
        content["measures"] = {found.asked.label: _described(found, flows is not None) for found in self.scores}
        if flows is None:
            content |= {
                "left_out": {label: str(why) for label, why in self.left_out.items()},
                "notes": list(self.notes),
            }
        return content

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return self.table(as_text=False)

    def table(self, *, as_text: bool) -> pa.Table:
        """Return a table of scores.

        For flows, one row per measure, part and time step, and two rows, `mean` and `pooled`, over all steps. For
        trajectories, one row per measure and part.
        """
        flows = self.matrices
        listed = [(found.asked.label, *column) for found in self.scores for column in found.columns()]
        if flows is None:
            names = {
                "measure": pa.array([label for label, *_ in listed], pa.string()),
                "part": pa.array([part or None for _, part, *_ in listed], pa.string()),
            }
            return pa.table({**names, "value": numbers_or_null([pooled for *_, pooled in listed])})
        steps, times = flows.steps, step_times(flows, as_text=as_text)
        columns: dict[str, list[Any]] = {"measure": [], "part": [], "over": [], "t": [], "value": []}
        for label, part, by_step, mean, pooled in listed:
            columns["measure"] += [label] * (steps + 2)
            columns["part"] += [part or None] * (steps + 2)
            columns["over"] += ["step"] * steps + ["mean", "pooled"]
            columns["t"] += [*times, None, None]
            columns["value"] += [*by_step.tolist(), mean, pooled]
        kind = pa.string() if as_text else time_column(flows.t, flows.tz, as_text=False).type
        return pa.table({**columns, "t": pa.array(columns["t"], kind), "part": pa.array(columns["part"], pa.string()),
                         "value": numbers_or_null(columns["value"])})  # fmt: skip

    def sentences(self, naming: Naming = as_argument) -> list[str]:
        """Return notes on overlapping rows and missing measures, with parameters named as `naming` says."""
        missing = [
            f"not measured: {', '.join(label for label, why in self.left_out.items() if why == reason)}: "
            f"{render(reason, naming)}"
            for reason in dict.fromkeys(self.left_out.values())
        ]
        return [*([OVERLAPPING] if self.overlapping else []), *missing]

    def write(self, path: Path) -> None:
        """Write scores in the format of the suffix: .json with everything, .csv or .parquet with the table."""
        as_text = path.suffix.lower() == ".csv"
        write_json_or_table(self.as_json, lambda: self.table(as_text=as_text), path)

    def plot(self, file: str | Path) -> None:
        """Draw the scores as a PNG, each measure on its own axis. Confidential."""
        axes = measured_axes([("release", self.scores)])
        draw_loss(axes, "Information loss of the release", [], confidential=True).save(Path(file), "png")


def measured(
    original: Flows | Trajectories,
    release: Release,
    measures: Sequence[MeasureRequest],
    *,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
) -> Measurement:
    """Compute measures of a release. One that cannot be computed is left out with the reason, or raises if it is alone."""
    if len(original) == 0:
        what = "flow" if isinstance(original, Flows) else "trajectory"
        raise InputError("original", f"Expected at least one {what}, got none.")
    compared = _compared(original, release, progress)
    found, left_out = [], {}
    for asked in measures:
        stage(asked.label)
        try:
            found.append(scores(asked, compared))
        except CrowdveilError as error:
            if len(measures) == 1:
                raise
            left_out[asked.label] = error.text
    if not found:
        raise InputError(next(iter(left_out.values())))
    if isinstance(compared, OdComparison):
        return Measurement(original, tuple(found), compared.row is None, left_out)
    return Measurement(original, tuple(found), False, left_out, tuple(compared.notes.messages))


def _compared(
    original: Flows | Trajectories, release: Release, progress: Progress
) -> OdComparison | TrajectoryComparison:
    if isinstance(original, Flows) and isinstance(release, FlowRelease):
        return OdComparison.between(original, release)
    if isinstance(original, Trajectories) and not isinstance(release, FlowRelease):
        return TrajectoryComparison(original, release, progress, ReadNotes())
    raise InputError(
        "release", "original and release must both be flows or both be trajectories. Give the original of the release."
    )


def _described(found: Scores, by_step: bool) -> dict[str, Any]:
    measure, params = found.measure, found.asked.params
    values = {"mean": _plain(found.mean), "pooled": _plain(found.pooled), "by_step": _plain(found.by_step)}
    return {
        "title": measure.title,
        "symbol": measure.symbol or None,
        "unit": measure.unit or None,
        "better": measure.better,
        **({"parts": list(measure.parts)} if measure.parts else {}),
        **({"parameters": params.model_dump(mode="json")} if params is not None else {}),
        **(values if by_step else {"value": values["pooled"]}),
    }


def _plain(values: Floats) -> Any:
    """Return numbers for JSON; None where undefined."""
    if values.ndim:
        return [_plain(value) for value in values]
    return float(values) if np.isfinite(values) else None
