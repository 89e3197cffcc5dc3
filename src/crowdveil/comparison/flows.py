"""Compare methods on the same matrices: generalization, error, suppression and time.

All is done in memory and nothing is published. The numbers are exact and therefore confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.comparison.candidates import (
    REFUSALS,
    Candidate,
    RemainingTime,
    Stage,
    mean_of_defined,
    numbers_or_null,
    reason_of,
)
from crowdveil.comparison.requested_measures import Column, Names, figures_of, flow_columns, usual_columns
from crowdveil.engine import timed_tasks
from crowdveil.errors import InputError, Option, counted, reason_as
from crowdveil.guarantees import SuppressionBudget
from crowdveil.io.flows import with_tree
from crowdveil.io.times import time_column
from crowdveil.measures.od.comparison import Baseline, OdComparison
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.tabular import TableProperty, align_rows
from crowdveil.params import Budgeted, Params
from crowdveil.progress import Progress, no_progress
from crowdveil.registry import all_methods

MAX_MATRICES, MAX_FLOWS = 10, 2_000_000
"""Default number of matrices, and flows up to which so many are taken; of larger matrices fewer, at least one."""
MAX_CONSECUTIVE = 48
"""Default number of matrices where a method joins time steps."""
DYADIC_TILES = 1000
"""Largest map on which dyadic splits run by default: beyond it they take very long."""


class FlowSample(Params):
    """Which matrices are run, and what is measured on them."""

    sample: int | None = Field(None, ge=1)
    """Number of matrices (default: at most 10, with 2 million flows); or of trajectories (5,000)."""
    sampling: Literal["spread", "random"] = "spread"
    """Take matrices that are evenly spread over time, or at random."""
    min_trips: int = Field(0, ge=0)
    """Take matrices of at least this number of trips alone."""
    measures: Names = Field(None, json_schema_extra={"metavar": "NAMES"})
    """Measures of the table with commas between, as in MAO,MAD,generalization-cost:delta=1,multiplier or rmse,record-linkage;
    all for every one. Default: Ḡ, E, D and S, or SID and AID."""
    seed: int = Field(0, ge=0)
    """Seed of every random choice."""


class FlowComparisonParams(FlowSample, Budgeted):
    """Parameters that all methods of a comparison share."""

    k: int = Field(10, ge=2)
    """Minimum group size k."""


@dataclass(frozen=True, eq=False)
class MethodResult:
    """Result of one method.

    Attributes
    ----------
    label
        Its label in the table.
    by_step
        Measures of each matrix by the key of their column, NaN where undefined.
    seconds
        Processor seconds per matrix.
    remark
        How it differs from methods that guarantee k and the budget.
    k
        Its k; None if it has none.
    seconds_by_step
        Processor seconds of each matrix. What a method does for all matrices together is shared evenly.
    """

    label: str
    by_step: Mapping[str, Floats]
    seconds: float
    remark: str = ""
    k: int | None = None
    seconds_by_step: Floats = field(default_factory=lambda: np.zeros(0))

    def mean(self, symbol: str) -> float:
        """Return the mean over the matrices in which the measure is defined."""
        return mean_of_defined(self.by_step[symbol])


@dataclass(frozen=True, eq=False, repr=False)
class FlowComparison(TableProperty):
    """Comparison of methods for flows.

    Attributes
    ----------
    flows
        The compared matrices.
    shared
        k, budget and seed.
    outcomes
        Result of each method, in the requested order.
    left_out
        Why methods are missing, by name.
    """

    flows: Flows
    shared: FlowComparisonParams
    outcomes: tuple[MethodResult, ...]
    left_out: Mapping[str, str]

    @property
    def columns(self) -> list[Column]:
        """Return the measures of the table."""
        return flow_columns(self.shared.measures)

    @property
    def table(self) -> pa.Table:
        """A row per method: the mean of each measure over matrices, processor seconds per matrix, and a remark."""
        columns: dict[str, Any] = {"method": [found.label for found in self.outcomes]}
        for column in self.columns:
            columns[column.name] = numbers_or_null([found.mean(column.key) for found in self.outcomes])
        columns["seconds"] = numbers_or_null([found.seconds for found in self.outcomes])
        columns["remark"] = pa.array([found.remark or None for found in self.outcomes], pa.string())
        return pa.table(columns)

    @property
    def values(self) -> pa.Table:
        """A row per method, matrix and measure; the last measure is the processor seconds of the matrix."""
        cells = [
            (found.label, name, values)
            for found in self.outcomes
            for name, values in [
                *((column.name, found.by_step[column.key]) for column in self.columns),
                ("seconds", found.seconds_by_step),
            ]
        ]
        times = pa.array(step_times(self.flows) * len(cells), pa.string())
        steps = self.flows.steps
        return pa.table(
            {
                "method": [label for label, _, _ in cells for _ in range(steps)],
                "t": times,
                "measure": [name for _, name, _ in cells for _ in range(steps)],
                "value": numbers_or_null([value for *_, values in cells for value in values.tolist()]),
            }
        )

    def lines(self) -> list[str]:
        """Return the table as text."""
        columns = self.columns
        head = ["method", *(column.title for column in columns), "seconds", ""]
        rows = [
            [found.label, *(shown(found.mean(c.key), c.key) for c in columns), f"{found.seconds:.3g}", found.remark]
            for found in self.outcomes
        ]
        return align_rows([head, *rows], remarks=True)

    def caption(self) -> str:
        """Return what the numbers of the table mean."""
        return f"Means of {counted(self.flows.steps, 'matrix', 'matrices')}; seconds of processor time per matrix."


def remark_on(candidate: Candidate, flows: Flows) -> str:
    """Return how a method differs from those that guarantee k and the budget."""
    remarks, method = [], candidate.method
    if method.row_semantics == "noisy":
        remarks.append("noise in place of k")
    if not any(isinstance(guarantee, SuppressionBudget) for guarantee in method.guarantees(flows, candidate.params)):
        remarks.append("budget not guaranteed" if isinstance(candidate.params, Budgeted) else "has no budget")
    if method.row_semantics == "overlapping":
        remarks.append("rows overlap")
    return ", ".join(remarks)


def candidates(names: Sequence[str] | None, shared: Mapping[str, Any], flows: Flows) -> list[Candidate]:
    """Return the distinct named methods; by default all for flows, `joint` with dyadic splits too."""
    if names is None:
        own = [name for name, method in all_methods().items() if method.takes is Flows]
        names = [n for name in own for n in ((name, "joint:splits=dyadic") if name == "joint" else (name,))]
        if len(flows.zones) > DYADIC_TILES:
            names.remove("joint:splits=dyadic")
    return [Candidate.named(name, shared) for name in dict.fromkeys(names)]


def spread_evenly(steps: int, wanted: int | None, flows: int = 0) -> Ints:
    """Return the numbers of `wanted` time steps, evenly spread from the first to the last; `flows` is the number of all flows."""
    usual = max(min(MAX_MATRICES, MAX_FLOWS * steps // max(flows, 1)), 1)
    number = min(steps, usual if wanted is None else wanted)
    return np.linspace(0, steps - 1, number).round().astype(np.int64)


def sample_matrices(
    flows: Flows,
    wanted: int | None,
    k: int,
    chosen: Sequence[Candidate] = (),
    shared: FlowComparisonParams | None = None,
) -> Flows:
    """Return the matrices to compare on, with the default tree of methods, built once; `shared` says how they are sampled.

    Time steps of fewer than k people are fully suppressed by every method that publishes time step by time step, so they are
    not taken. Where a method joins time steps, those taken follow one another, from the one after which most trips are.
    """
    if len(flows) == 0:
        raise InputError("input", "there is no flow; wanted at least one.")
    shared = FlowComparisonParams() if shared is None else shared
    enough = flows.trips_by_step >= shared.min_trips
    if not enough.any():
        raise InputError(Option("min_trips"), "no matrix has so many trips; wanted a smaller number.")
    held = np.flatnonzero(enough & (flows.people_by_step >= k))
    if any(getattr(candidate.params, "time_partition", None) == "adaptive" for candidate in chosen):
        steps = _consecutive(flows, MAX_CONSECUTIVE if wanted is None else wanted)
    elif len(held) == 0:
        steps = np.flatnonzero(enough)
    else:
        steps = held[spread_evenly(len(held), wanted, len(flows))]
        if shared.sampling == "random":
            steps = np.sort(np.random.default_rng(shared.seed).choice(held, len(steps), replace=False))
    taken = flows if len(steps) == flows.steps else flows.at_steps(steps)
    plain = taken.origin_tree is None and taken.destination_tree is None
    return with_tree(taken, "ward") if plain and taken.zones.located else taken


def _consecutive(flows: Flows, wanted: int) -> Ints:
    """Return the numbers of time steps that follow one another and have most trips together."""
    number = min(flows.steps, wanted)
    trips = np.concatenate([np.zeros(1, np.int64), np.cumsum(flows.trips_by_step)])
    first = int(np.argmax(trips[number:] - trips[: flows.steps - number + 1]))
    return np.arange(first, first + number)


def compare_flow_methods(
    flows: Flows,
    chosen: Sequence[Candidate],
    shared: FlowComparisonParams,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
) -> FlowComparison:
    """Run methods on the same matrices.

    Each first runs on the largest matrix alone, so that compilation is not measured and failures show early. A method that
    fails is left out with its reason; raise if all fail.
    """
    left_out: dict[str, str] = {}
    columns = flow_columns(shared.measures)
    cost: dict[str, float] = {}
    largest = flows.at_steps(np.argmax(flows.trips_by_step, keepdims=True))
    for candidate in chosen:
        stage(f"warming up {candidate.label}")
        try:
            cost[candidate.label] = candidate.run(largest, shared.seed)[0]
        except REFUSALS as error:
            left_out[candidate.label] = reason_of(error)
    outcomes, remaining, baseline = [], RemainingTime(sum(cost.values())), Baseline(flows)
    for candidate in chosen:
        if candidate.label in left_out:
            continue
        stage(f"{candidate.label}{remaining.shown()}")
        try:
            outcome = run_candidate(candidate, flows, shared.seed, progress, columns, baseline)
            outcomes.append(replace(outcome, remark=remark_on(candidate, flows)))
        except REFUSALS as error:
            left_out[candidate.label] = reason_of(error)
        remaining.done += cost[candidate.label]
    if not outcomes:
        raise InputError(reason_as(next(iter(left_out.values())), str))
    return FlowComparison(flows, shared, tuple(outcomes), left_out)


def run_candidate(
    candidate: Candidate,
    flows: Flows,
    seed: int,
    progress: Progress = no_progress,
    columns: Sequence[Column] = (),
    baseline: Baseline | None = None,
) -> MethodResult:
    """Run one method on all matrices, and measure its release: the usual measures, and those of more columns.

    Several methods and trials can share the baseline of the matrices.
    """
    with timed_tasks() as tasks:
        seconds, release = candidate.run(flows, seed, progress)
    compared = OdComparison.between(flows, release, baseline)
    by_step = {}
    for column in (*usual_columns(), *columns):
        if column.asked is None:
            names = candidate.method.figure_names
            by_step[column.key] = figures_of(column.key, names, release.figures, flows.steps)
        elif column.key not in by_step:
            by_step[column.key] = column.of(column.asked.measure.of(compared, column.asked.params))
    if candidate.method.row_semantics == "noisy":
        # Noise changes the number of trips, so missing trips do not measure suppression.
        by_step |= {key: np.full(flows.steps, np.nan) for key in ("S",) if key in by_step}
    return MethodResult(
        candidate.label,
        by_step,
        seconds / flows.steps,
        k=candidate.k,
        seconds_by_step=_seconds_by_step(seconds, tasks, flows.steps),
    )


def _seconds_by_step(seconds: float, tasks: Sequence[Sequence[float]], steps: int) -> Floats:
    """Return the seconds of each matrix: those of its tasks, and an even share of the rest."""
    own = np.sum([each for each in tasks if len(each) == steps] or [[0.0] * steps], axis=0)
    found: Floats = own + max(seconds - float(own.sum()), 0.0) / steps
    return found


def shown(value: float, symbol: str) -> str:
    """Format a number for the table; "–" where undefined."""
    if not np.isfinite(value):
        return "–"
    if symbol == "S":
        return f"{100 * value:.1f} %"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def step_times(flows: Flows, *, as_text: bool = True) -> list[Any]:
    """Return the starts of the steps; None if the data has no times."""
    if flows.step_s is None:
        return [None] * flows.steps
    times: list[Any] = time_column(flows.t, flows.tz, as_text=as_text).to_pylist()
    return times
