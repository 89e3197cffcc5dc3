"""Run candidates on the same matrices or trajectories, and measure their releases.

Everything stays in memory, and nothing is published. The numbers are exact and confidential.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.comparison.candidates import Candidate
from crowdveil.comparison.requested_measures import Column, figures_of
from crowdveil.comparison.samples import few_of
from crowdveil.engine import timed_tasks
from crowdveil.engine.progress import Progress, Stage
from crowdveil.errors import CrowdveilError, Text
from crowdveil.guarantees import PeriodBudget, SuppressionBudget
from crowdveil.measures.od.comparison import Baseline, OdComparison
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.methods.base import Facts
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Budgeted

SECONDS = "seconds"
"""Key of the processor seconds of a run."""
FAILURES = (CrowdveilError, MemoryError)
"""Errors that remove only one method from a comparison."""


@dataclass(frozen=True, eq=False)
class Run:
    """One method with its parameters on one input.

    Attributes
    ----------
    input, tiles
        The name of the input, and its number of tiles; None for trajectories.
    method
        The method as it was named.
    k, suppress, varied
        Its group size, budget and varied parameters; None if it has none.
    values
        Values of each measure by the key of its column, one for each matrix, NaN if undefined. Trajectories count as one
        matrix.
    remark
        Its difference from methods that guarantee k and the budget.
    """

    input: str
    tiles: int | None
    method: str
    k: int | None
    suppress: str | None
    varied: Mapping[str, Any]
    values: Mapping[str, Floats]
    remark: str = ""

    def mean(self, key: str) -> float:
        """Return the mean over the matrices with a defined value; NaN if there are none."""
        defined = self.values[key][np.isfinite(self.values[key])]
        return float(defined.mean()) if len(defined) else float("nan")

    @property
    def total_seconds(self) -> float:
        """The processor seconds of all matrices."""
        return float(self.values[SECONDS].sum())

    @property
    def label(self) -> str:
        """The method with all parameters that a comparison sets."""
        return full_label(self.method, self)


class Runner:
    """Run candidates on one input.

    Attributes
    ----------
    left_out
        Reasons for missing candidates or measures, by their label.
    """

    def __init__(self, data: Flows | Trajectories, name: str, columns: Sequence[Column], seed: int) -> None:
        self.data, self.name, self.columns, self.seed = data, name, columns, seed
        self.left_out: dict[str, Text] = {}
        self._baseline = Baseline(data) if isinstance(data, Flows) else None
        self._compared: TrajectoryComparison | None = None

    def run_all(self, candidates: Sequence[Candidate], progress: Progress, stage: Stage) -> list[Run]:
        """Run each candidate. Leave out one that fails, with its reason."""
        runs, begin = [], time.monotonic()
        for done, candidate in enumerate(candidates):
            left = (time.monotonic() - begin) / max(done, 1) * (len(candidates) - done)
            stage(f"{candidate.label}{f' (about {left:.0f} s left)' if done else ''}")
            try:
                runs.append(self.run(candidate, progress))
            except FAILURES as error:
                label = full_label(candidate.label, candidate)
                self.left_out[f"{self.name}, {label}" if self.name else label] = _reason(error)
        return runs

    def run(self, candidate: Candidate, progress: Progress) -> Run:
        """Run a candidate on all of the data, after a run on a part of it that compiles its kernels."""
        with suppress(*FAILURES):  # a failure on all of the data is reported below
            candidate.run(few_of(self.data), self.seed)
        begin = time.process_time()
        with timed_tasks() as tasks:
            release = candidate.run(self.data, self.seed, progress)
        seconds = time.process_time() - begin
        if isinstance(self.data, Flows):
            tiles, steps = len(self.data.zones), self.data.steps
            values = self._measure(candidate, OdComparison.between(self.data, release, self._baseline), release)
            remark = _remark_on_flows(candidate, self.data)
        else:
            tiles, steps = None, 1
            known = self._compared
            compared = TrajectoryComparison(self.data, release) if known is None else known.with_release(release)
            self._compared = compared
            values = self._measure(candidate, compared, release)
            remark = "" if candidate.method.status == "proven" else candidate.method.status
        values[SECONDS] = _seconds_by_step(seconds, tasks, steps)
        return Run(self.name, tiles, candidate.label, candidate.k, candidate.suppress, candidate.varied, values, remark)

    def _measure(self, candidate: Candidate, compared: Any, release: Any) -> dict[str, Floats]:
        """Return the values of each column; NaN, with a reason, if a measure cannot be computed."""
        steps = self.data.steps if isinstance(self.data, Flows) else 1
        found: dict[str, Floats] = {}
        measured: dict[str, Floats | None] = {}
        for column in self.columns:
            asked = column.asked
            if asked is None:
                found[column.key] = figures_of(column.key, candidate.method.figure_names, release.figures, steps)
                continue
            if asked.label not in measured:
                try:
                    measured[asked.label] = asked.measure.of(compared, asked.params)
                except CrowdveilError as error:
                    measured[asked.label] = None
                    self.left_out[f"{asked.label} of {candidate.label}"] = error.text
            values = measured[asked.label]
            found[column.key] = np.full(steps, np.nan) if values is None else column.of(values)
            if candidate.method.row_semantics == "noisy" and column.key == "S":
                # Noise changes the number of trips, so missing trips are not a measure of suppression.
                found[column.key] = np.full(steps, np.nan)
        return found


def full_label(method: str, settings: Run | Candidate) -> str:
    """Return the name of a method with all parameters that a comparison sets."""
    values = {"k": settings.k, "suppress": settings.suppress, **settings.varied}
    return ":".join((method, *(f"{name}={value}" for name, value in values.items() if value is not None)))


def _remark_on_flows(candidate: Candidate, flows: Flows) -> str:
    """Describe the difference from methods that guarantee k and the budget."""
    remarks, method = [], candidate.method
    if method.row_semantics == "noisy":
        remarks.append("noise in place of k")
    guarantees = method.guarantees(candidate.params, Facts.of(flows))
    if not any(isinstance(guarantee, SuppressionBudget | PeriodBudget) for guarantee in guarantees):
        remarks.append("budget not guaranteed" if isinstance(candidate.params, Budgeted) else "has no budget")
    if method.row_semantics == "overlapping":
        remarks.append("rows overlap")
    return ", ".join(remarks)


def _seconds_by_step(seconds: float, tasks: Sequence[Sequence[float]], steps: int) -> Floats:
    """Return the seconds of each matrix: those of its tasks, and an even share of the rest."""
    own = np.sum([each for each in tasks if len(each) == steps] or [[0.0] * steps], axis=0)
    found: Floats = own + max(seconds - float(own.sum()), 0.0) / steps
    return found


def _reason(error: BaseException) -> Text:
    """Return the reason for leaving out a method."""
    if isinstance(error, CrowdveilError):
        return error.text
    return Text("not enough memory. Use a smaller sample.")
