"""Methods side by side on the same matrices: how coarse, how far off, how much suppressed, how long.

Everything is done in memory. Nothing of it is a release, and the numbers are exact: they stay in the house.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.compare.candidates import (
    Candidate,
    Stage,
    aligned,
    mean_of_defined,
    numbers_or_null,
)
from crowdveil.errors import CrowdveilError, InputError, counted
from crowdveil.guarantees import SuppressionBudget
from crowdveil.io.flows import with_trees
from crowdveil.io.times import time_column
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, Ints, slice_sums
from crowdveil.model.flows import Flows
from crowdveil.params import Budgeted
from crowdveil.progress import Progress, no_progress
from crowdveil.registry import all_methods, find_measure

SYMBOLS = ("Ḡ", "E", "D", "S")
"""The measures of the table, as the papers call them."""
MOST_MATRICES = 100
"""How many matrices are taken where it is not said."""
DYADIC_TILES = 1000
"""Largest map on which dyadic splits are tried unasked: beyond it they take very long."""


class SideBySide(Budgeted):
    """What all methods of a comparison share."""

    k: int = Field(10, ge=2)
    """Smallest crowd."""
    sample: int | None = Field(None, ge=1)
    """Take so many matrices, evenly spread over time, at most 100 without it; or so many trajectories, all without it."""
    seed: int = Field(0, ge=0)
    """Seed of every random choice."""


@dataclass(frozen=True, eq=False)
class MethodResult:
    """What came of one method: the measures of each matrix by symbol (NaN where undefined), seconds a matrix, and its k."""

    label: str
    by_step: Mapping[str, Floats]
    seconds: float
    remark: str = ""
    k: int | None = None

    def mean(self, symbol: str) -> float:
        """Over the matrices in which it is defined."""
        return mean_of_defined(self.by_step[symbol])


@dataclass(frozen=True, eq=False)
class FlowComparison:
    """Methods side by side.

    Attributes
    ----------
    flows
        The matrices that they ran on.
    shared
        k, budget and seed.
    outcomes
        Of each method, in the order asked for.
    left_out
        Why methods are missing, by name.
    """

    flows: Flows
    shared: SideBySide
    outcomes: tuple[MethodResult, ...]
    left_out: Mapping[str, str]

    @property
    def table(self) -> pa.Table:
        """A row for each method: the mean of each measure over matrices, processor seconds a matrix, and a remark."""
        columns: dict[str, Any] = {"method": [found.label for found in self.outcomes]}
        for symbol in SYMBOLS:
            columns[find_measure(symbol).name] = numbers_or_null([found.mean(symbol) for found in self.outcomes])
        columns["seconds"] = numbers_or_null([found.seconds for found in self.outcomes])
        columns["remark"] = pa.array([found.remark or None for found in self.outcomes], pa.string())
        return pa.table(columns)

    @property
    def values(self) -> pa.Table:
        """A row for each method, matrix and measure."""
        steps = self.flows.steps
        methods = [found.label for found in self.outcomes for _ in range(steps * len(SYMBOLS))]
        names = [find_measure(symbol).name for symbol in SYMBOLS for _ in range(steps)] * len(self.outcomes)
        numbers = [v for found in self.outcomes for symbol in SYMBOLS for v in found.by_step[symbol].tolist()]
        times = pa.array(_times(self.flows) * (len(SYMBOLS) * len(self.outcomes)), pa.string())
        return pa.table({"method": methods, "t": times, "measure": names, "value": numbers_or_null(numbers)})

    def lines(self) -> list[str]:
        """The table for people."""
        head = ["method", *SYMBOLS, "seconds", ""]
        rows = [
            [found.label, *(shown(found.mean(s), s) for s in SYMBOLS), f"{found.seconds:.3g}", found.remark]
            for found in self.outcomes
        ]
        return aligned([head, *rows])

    def told(self) -> str:
        """What the numbers of the table are of."""
        return f"Means of {counted(self.flows.steps, 'matrix', 'matrices')}; seconds of processor time a matrix."


def remark_on(candidate: Candidate, flows: Flows) -> str:
    """What sets it apart from methods that keep k and the budget."""
    remarks, method = [], candidate.method
    if method.rows == "noisy":
        remarks.append("noise in place of k")
    if not any(isinstance(guarantee, SuppressionBudget) for guarantee in method.guarantees(flows, candidate.params)):
        remarks.append("budget not kept")
    if method.rows == "overlapping":
        remarks.append("rows overlap")
    return ", ".join(remarks)


def candidates(names: Sequence[str] | None, shared: Mapping[str, Any], flows: Flows) -> list[Candidate]:
    """The methods that are named, each once; all for flows where none are, `joint` with dyadic splits too."""
    if names is None:
        own = [name for name, method in all_methods().items() if method.takes is Flows]
        names = [n for name in own for n in ((name, "joint:splits=dyadic") if name == "joint" else (name,))]
        if len(flows.zones) > DYADIC_TILES:
            names.remove("joint:splits=dyadic")
    return [Candidate.named(name, shared) for name in dict.fromkeys(names)]


def evenly(steps: int, wanted: int | None) -> Ints:
    """The numbers of so many time steps, evenly spread from the first to the last."""
    number = min(steps, MOST_MATRICES if wanted is None else wanted)
    return np.linspace(0, steps - 1, number).round().astype(np.int64)


def matrices(flows: Flows, wanted: int | None, k: int) -> Flows:
    """The matrices that are compared on, with the tree that methods would build for themselves, built once.

    Time steps of fewer than k people are suppressed whole by every method, and say nothing: they are not taken.
    """
    if len(flows) == 0:
        raise InputError("input", "there is no flow in it, so that nothing can be compared.")
    held = np.flatnonzero(slice_sums(flows.offsets, flows.people) >= k)
    steps = held[evenly(len(held), wanted)] if len(held) else np.arange(flows.steps)
    taken = flows if len(steps) == flows.steps else flows.at_steps(steps)
    plain = taken.origin_tree is None and taken.destination_tree is None
    return with_trees(taken, "ward") if plain and taken.zones.located else taken


def side_by_side(
    flows: Flows,
    chosen: Sequence[Candidate],
    shared: SideBySide,
    *,
    all_of_them: bool,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
) -> FlowComparison:
    """Run methods on the same matrices.

    Each runs on the largest matrix alone before, so that compiling is not measured, and what cannot run at all is known
    before the long work begins: it is an error if the method was named, and left out where `all_of_them` were wanted. A
    method that fails on a later matrix is left out too.
    """
    left_out: dict[str, str] = {}
    largest = flows.at_steps(np.argmax(slice_sums(flows.offsets, flows.volume), keepdims=True))
    for candidate in chosen:
        stage(f"warming up {candidate.label}")
        try:
            candidate.run(largest, shared.seed)
        except CrowdveilError as error:
            if not all_of_them:
                raise
            left_out[candidate.label] = str(error)
    outcomes = []
    for candidate in chosen:
        if candidate.label in left_out:
            continue
        stage(candidate.label)
        try:
            outcomes.append(outcome(candidate, flows, shared.seed, progress))
        except CrowdveilError as error:
            left_out[candidate.label] = str(error)
    if not outcomes:
        raise InputError(next(iter(left_out.values())))
    return FlowComparison(flows, shared, tuple(outcomes), left_out)


def outcome(candidate: Candidate, flows: Flows, seed: int, progress: Progress = no_progress) -> MethodResult:
    """Run one method on all matrices, and measure what would be released."""
    seconds, release = candidate.run(flows, seed, progress)
    compared = OdComparison.between(flows, release)
    by_step = {symbol: find_measure(symbol).compute(compared) for symbol in SYMBOLS}
    if candidate.method.rows == "noisy":
        # Noise makes more trips than there were: what is missing of them says nothing of what was suppressed.
        by_step["S"] = np.full(flows.steps, np.nan)
    return MethodResult(candidate.label, by_step, seconds / flows.steps, remark_on(candidate, flows), candidate.k)


def shown(value: float, symbol: str) -> str:
    """A number for the table; "–" where it is undefined."""
    if not np.isfinite(value):
        return "–"
    return f"{100 * value:.1f} %" if symbol == "S" else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _times(flows: Flows) -> list[Any]:
    if flows.step_s is None:
        return [None] * flows.steps
    times: list[Any] = time_column(flows.t, flows.tz, as_text=True).to_pylist()
    return times
