"""Compare methods on the same matrices: generalization, error, suppression and time.

All is done in memory and nothing is published. The numbers are exact and therefore confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.comparison.candidates import (
    REFUSALS,
    Candidate,
    RemainingTime,
    Stage,
    align_columns,
    mean_of_defined,
    numbers_or_null,
    reason_of,
)
from crowdveil.errors import InputError, counted
from crowdveil.guarantees import SuppressionBudget
from crowdveil.io.flows import with_trees
from crowdveil.io.times import time_column
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, Ints, slice_sums
from crowdveil.model.flows import Flows
from crowdveil.model.tabular import Tabular
from crowdveil.params import Budgeted
from crowdveil.progress import Progress, no_progress
from crowdveil.registry import all_methods, find_measure

SYMBOLS = ("Ḡ", "E", "D", "S")
"""The measures of the table, by their symbols in the papers."""
MAX_MATRICES, MAX_FLOWS = 10, 2_000_000
"""Default number of matrices, and flows up to which so many are taken; of larger matrices fewer, at least one."""
MAX_CONSECUTIVE = 48
"""Default number of matrices where a method joins time steps."""
DYADIC_TILES = 1000
"""Largest map on which dyadic splits run by default: beyond it they take very long."""


class FlowComparisonParams(Budgeted):
    """Parameters that all methods of a comparison share."""

    k: int = Field(10, ge=2)
    """Minimum group size k."""
    sample: int | None = Field(None, ge=1)
    """Number of matrices, evenly spread over time (default: at most 10, with 2 million flows); or of trajectories (5,000)."""
    seed: int = Field(0, ge=0)
    """Seed of every random choice."""


@dataclass(frozen=True, eq=False)
class MethodResult:
    """Result of one method: measures of each matrix by symbol (NaN where undefined), seconds per matrix, and its k."""

    label: str
    by_step: Mapping[str, Floats]
    seconds: float
    remark: str = ""
    k: int | None = None

    def mean(self, symbol: str) -> float:
        """Return the mean over the matrices in which the measure is defined."""
        return mean_of_defined(self.by_step[symbol])


@dataclass(frozen=True, eq=False, repr=False)
class FlowComparison(Tabular):
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

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return self.table

    @property
    def table(self) -> pa.Table:
        """A row per method: the mean of each measure over matrices, processor seconds per matrix, and a remark."""
        columns: dict[str, Any] = {"method": [found.label for found in self.outcomes]}
        for symbol in SYMBOLS:
            columns[find_measure(symbol).name] = numbers_or_null([found.mean(symbol) for found in self.outcomes])
        columns["seconds"] = numbers_or_null([found.seconds for found in self.outcomes])
        columns["remark"] = pa.array([found.remark or None for found in self.outcomes], pa.string())
        return pa.table(columns)

    @property
    def values(self) -> pa.Table:
        """A row per method, matrix and measure."""
        steps = self.flows.steps
        methods = [found.label for found in self.outcomes for _ in range(steps * len(SYMBOLS))]
        names = [find_measure(symbol).name for symbol in SYMBOLS for _ in range(steps)] * len(self.outcomes)
        numbers = [v for found in self.outcomes for symbol in SYMBOLS for v in found.by_step[symbol].tolist()]
        times = pa.array(step_times(self.flows) * (len(SYMBOLS) * len(self.outcomes)), pa.string())
        return pa.table({"method": methods, "t": times, "measure": names, "value": numbers_or_null(numbers)})

    def lines(self) -> list[str]:
        """Return the table as text."""
        head = ["method", *SYMBOLS, "seconds", ""]
        rows = [
            [found.label, *(shown(found.mean(s), s) for s in SYMBOLS), f"{found.seconds:.3g}", found.remark]
            for found in self.outcomes
        ]
        return align_columns([head, *rows])

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


def sample_matrices(flows: Flows, wanted: int | None, k: int, chosen: Sequence[Candidate] = ()) -> Flows:
    """Return the matrices to compare on, with the default tree of methods, built once.

    Time steps of fewer than k people are fully suppressed by every method that publishes time step by time step, so they are
    not taken. Where a method joins time steps, those taken follow one another, from the one after which most trips are.
    """
    if len(flows) == 0:
        raise InputError("input", "there is no flow; wanted at least one.")
    held = np.flatnonzero(slice_sums(flows.offsets, flows.people) >= k)
    if any(getattr(candidate.params, "time_partition", None) == "adaptive" for candidate in chosen):
        steps = _consecutive(flows, MAX_CONSECUTIVE if wanted is None else wanted)
    else:
        steps = held[spread_evenly(len(held), wanted, len(flows))] if len(held) else np.arange(flows.steps)
    taken = flows if len(steps) == flows.steps else flows.at_steps(steps)
    plain = taken.origin_tree is None and taken.destination_tree is None
    return with_trees(taken, "ward") if plain and taken.zones.located else taken


def _consecutive(flows: Flows, wanted: int) -> Ints:
    """Return the numbers of time steps that follow one another and have most trips together."""
    number = min(flows.steps, wanted)
    trips = np.concatenate([np.zeros(1, np.int64), np.cumsum(slice_sums(flows.offsets, flows.volume))])
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
    cost: dict[str, float] = {}
    largest = flows.at_steps(np.argmax(slice_sums(flows.offsets, flows.volume), keepdims=True))
    for candidate in chosen:
        stage(f"warming up {candidate.label}")
        try:
            cost[candidate.label] = candidate.run(largest, shared.seed)[0]
        except REFUSALS as error:
            left_out[candidate.label] = reason_of(error)
    outcomes, remaining = [], RemainingTime(sum(cost.values()))
    for candidate in chosen:
        if candidate.label in left_out:
            continue
        stage(f"{candidate.label}{remaining.shown()}")
        try:
            outcomes.append(run_candidate(candidate, flows, shared.seed, progress))
        except REFUSALS as error:
            left_out[candidate.label] = reason_of(error)
        remaining.add(cost[candidate.label])
    if not outcomes:
        raise InputError(next(iter(left_out.values())))
    return FlowComparison(flows, shared, tuple(outcomes), left_out)


def run_candidate(candidate: Candidate, flows: Flows, seed: int, progress: Progress = no_progress) -> MethodResult:
    """Run one method on all matrices, and measure its release."""
    seconds, release = candidate.run(flows, seed, progress)
    compared = OdComparison.between(flows, release)
    by_step = {symbol: find_measure(symbol).of(compared) for symbol in SYMBOLS}
    if candidate.method.row_semantics == "noisy":
        # Noise changes the number of trips, so missing trips do not measure suppression.
        by_step["S"] = np.full(flows.steps, np.nan)
    return MethodResult(candidate.label, by_step, seconds / flows.steps, remark_on(candidate, flows), candidate.k)


def shown(value: float, symbol: str) -> str:
    """Format a number for the table; "–" where undefined."""
    if not np.isfinite(value):
        return "–"
    return f"{100 * value:.1f} %" if symbol == "S" else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def step_times(flows: Flows, *, as_text: bool = True) -> list[Any]:
    """Return the starts of the steps; None if the data has no times."""
    if flows.step_s is None:
        return [None] * flows.steps
    times: list[Any] = time_column(flows.t, flows.tz, as_text=as_text).to_pylist()
    return times
