"""Run one method with several k and budgets on the same matrices, and recommend one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.comparison.candidates import (
    REFUSALS,
    Candidate,
    RemainingTime,
    Stage,
    align_columns,
    numbers_or_null,
    reason_of,
)
from crowdveil.comparison.flows import SYMBOLS, MethodResult, run_candidate, shown
from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.model.flows import Flows
from crowdveil.model.tabular import Tabular
from crowdveil.params import Budgeted
from crowdveil.progress import Progress, no_progress
from crowdveil.registry import find_measure
from crowdveil.solve.od.kept_boxes import keep_boxes

K, SUPPRESS = (5, 10, 20), ("5%", "10%", "20%")
"""Default values."""
ACCEPTABLE = 2
"""Maximum factor of the error that a larger k or a smaller budget may cost."""


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """Result of one k and one budget, a share or a number of trips; both are None for a method without a budget."""

    k: int
    suppress: float | None
    outcome: MethodResult
    suppress_trips: int | None = None

    @property
    def budget(self) -> float | None:
        """The share or the number of trips; all trials of a sweep have the same kind."""
        return self.suppress if self.suppress_trips is None else self.suppress_trips

    @property
    def budget_shown(self) -> str:
        """The budget as text."""
        return budget_shown(self.suppress, self.suppress_trips)


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Tabular):
    """One method with several k and budgets.

    Attributes
    ----------
    method
        Its name, with the parameters that are not swept.
    flows
        The matrices that it ran on.
    trials
        By budget, then by k, both ascending.
    left_out
        Why trials are missing, by label.
    """

    method: str
    flows: Flows
    trials: tuple[SweepPoint, ...]
    left_out: Mapping[str, str]

    def _budgets(self) -> dict[str, Any]:
        """Return the column of budgets: shares, or numbers of trips."""
        trips = [trial.suppress_trips for trial in self.trials]
        if any(number is not None for number in trips):
            return {"suppress_trips": pa.array(trips, pa.int64())}
        return {"suppress": pa.array([trial.suppress for trial in self.trials], pa.float64())}

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return self.table

    @property
    def table(self) -> pa.Table:
        """A row per k and budget, with the means over matrices."""
        columns: dict[str, Any] = {"k": [trial.k for trial in self.trials], **self._budgets()}
        for symbol in SYMBOLS:
            columns[find_measure(symbol).name] = numbers_or_null([trial.outcome.mean(symbol) for trial in self.trials])
        return pa.table(columns)

    def lines(self) -> list[str]:
        """Return the table as text."""
        rows = [
            [f"{trial.k}", trial.budget_shown, *(shown(trial.outcome.mean(s), s) for s in SYMBOLS), ""]
            for trial in self.trials
        ]
        return align_columns([["k", "suppress", *SYMBOLS, ""], *rows])

    @property
    def weighed(self) -> str:
        """The criterion: Ḡ; for a method without a budget E, which includes suppressed trips."""
        return "E" if all(trial.budget is None for trial in self.trials) else "Ḡ"

    @property
    def recommended(self) -> SweepPoint | None:
        """The trial that `recommend` chooses; None if nothing could be published."""
        best = recommend([(trial.k, trial.budget, trial.outcome.mean(self.weighed)) for trial in self.trials])
        return None if best is None else self.trials[best]

    def recommendation(self) -> str:
        """Return the recommendation and its reasons, in one sentence."""
        best = self.recommended
        if best is None:
            steps = "" if self.flows.step_s is None else " or longer time steps"
            return f"Nothing could be published with any of these; try a smaller k{', ' if steps else ' or '}larger zones{steps}."
        error = {(trial.k, trial.budget): trial.outcome.mean(self.weighed) for trial in self.trials}
        defined = [key for key, value in error.items() if np.isfinite(value)]
        least = min(k for k, suppress in defined if suppress == best.budget)
        reasons, shown_as = [], {trial.budget: trial.budget_shown for trial in self.trials}
        budgets = sorted({s for k, s in defined if k == least and s is not None})
        if best.budget is not None and len(budgets) > 1:
            reasons.append(
                f"{best.budget_shown} is the smallest budget whose {self.weighed} at k = {least} "
                f"({error[least, best.budget]:.3g}) is at most twice that of "
                f"{shown_as[budgets[-1]]} ({error[least, budgets[-1]]:.3g})"
            )
        here = error[best.k, best.budget]
        larger = [k for k, suppress in defined if suppress == best.budget and k > best.k]
        if best.k > least:
            reasons.append(
                f"{best.k} is the largest k whose {self.weighed}{' there' if reasons else ''} ({here:.3g}) is at most "
                f"twice that of k = {least} ({error[least, best.budget]:.3g})"
            )
        elif larger:
            reasons.append(
                f"{self.weighed} of every larger k is{' there' if reasons else ''} more than twice {here:.3g} "
                f"(k = {min(larger)} has {error[min(larger), best.budget]:.3g})"
            )
        if not reasons:
            reasons.append(f"nothing else could be compared, and its {self.weighed} is {here:.3g}")
        budget = "" if best.budget is None else f" and suppress = {best.budget_shown}"
        return f"Take k = {best.k}{budget}: {', and '.join(reasons)}."


def recommend(trials: Sequence[tuple[int, float | None, float]]) -> int | None:
    """Return the index of the recommended (k, budget, Ḡ): the largest acceptable k at the smallest acceptable budget.

    A budget is acceptable if its Ḡ at the smallest k is at most twice that of the largest budget: more suppression would not
    make areas much finer. A k is acceptable if its Ḡ at that budget is at most twice that of the smallest k. Undefined values
    are ignored.
    """
    defined = [(k, suppress, error) for k, suppress, error in trials if np.isfinite(error)]
    if not defined:
        return None
    least = min(k for k, _, _ in defined)
    budgets = sorted(((s, e) for k, s, e in defined if k == least), key=lambda pair: pair[0] or 0)
    budget = next(s for s, error in budgets if error <= ACCEPTABLE * budgets[-1][1])
    at_least = next(e for s, e in budgets if s == budget)
    best = max(k for k, s, error in defined if s == budget and error <= ACCEPTABLE * at_least)
    return next(i for i, (k, s, error) in enumerate(trials) if (k, s) == (best, budget) and np.isfinite(error))


def sweep_candidates(
    method: str, k: Sequence[Any], suppress: Sequence[Any] | None, suppress_trips: Sequence[Any] | None = None
) -> list[Candidate]:
    """Return the method with each budget and each k, smallest first; parameters are checked before data is read."""
    plain = Candidate.named(method, {})
    if plain.method.takes is not Flows:
        raise ParameterError(
            plain.method.name, "wanted a method for flows, but this one is for trajectories; name another method."
        )
    if "k" not in plain.method.params.model_fields:
        raise ParameterError(plain.method.name, "it has no k, so there is nothing to sweep; name another method.")
    budgets = {"suppress": suppress, "suppress_trips": suppress_trips}
    has_budget = issubclass(plain.method.params, Budgeted)
    for name, values in budgets.items():
        if values is not None and not has_budget:
            raise ParameterError(plain.method.name, f"it has no budget; omit {Option(name)}, or name another method.")
    if suppress is not None and suppress_trips is not None:
        raise ParameterError(
            Option("suppress"),
            f"wanted shares or numbers of trips ({Option('suppress_trips')}), but got both; omit one.",
        )
    for name in ("k", *budgets):
        if f":{name}=" in method.replace(" ", "").replace("-", "_"):
            raise ParameterError(method, f"{name} is swept; give its values with {Option(name)} instead.")
    for name, values in {"k": k, **budgets}.items():
        if values is not None and not list(values):
            raise ParameterError(Option(name), "wanted values separated by commas, but got none; give at least one.")
    wanted: list[dict[str, Any]] = [{}]
    if has_budget and suppress_trips is not None:
        wanted = [{"suppress_trips": n} for n in suppress_trips]
    elif has_budget:
        wanted = [{"suppress": share} for share in (SUPPRESS if suppress is None else suppress)]
    made = [Candidate.named(method, {"k": n, **budget}) for budget in wanted for n in k]
    different = {(_budget(c)[0] or _budget(c)[1] or 0, getattr(c.params, "k", 0)): c for c in made}
    return [different[key] for key in sorted(different)]


def _budget(candidate: Candidate) -> tuple[float | None, int | None]:
    """Return the budget as a share and as a number of trips; None if not given."""
    params = candidate.params
    return (params.suppress, params.suppress_trips) if isinstance(params, Budgeted) else (None, None)


def run_sweep(
    flows: Flows,
    chosen: Sequence[Candidate],
    seed: int,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
) -> Sweep:
    """Run every trial on the same matrices; one that fails is left out; raise if all fail.

    All budgets of one k run one after the other, so that boxes are built once for them.
    """
    found: dict[int, SweepPoint] = {}
    left_out: dict[str, str] = {}
    remaining = RemainingTime(len(chosen))
    ks = {i: getattr(candidate.params, "k", 0) for i, candidate in enumerate(chosen)}
    for k in sorted(set(ks.values())):
        with keep_boxes(flows):
            for i in (i for i in ks if ks[i] == k):
                budget = _budget(chosen[i])
                label = f"k = {k}" + ("" if budget == (None, None) else f", {budget_shown(*budget)} suppressed")
                stage(f"{label}{remaining.shown()}")
                try:
                    found[i] = SweepPoint(k, budget[0], run_candidate(chosen[i], flows, seed, progress), budget[1])
                except REFUSALS as error:
                    left_out[label] = reason_of(error)
                remaining.add(1)
    if not found:
        raise InputError(next(iter(left_out.values())))
    return Sweep(chosen[0].label, flows, tuple(found[i] for i in sorted(found)), left_out)


def budget_shown(share: float | None, trips: int | None) -> str:
    """Format a budget as on the command line."""
    if trips is not None:
        return f"{trips:,} trips"
    return "–" if share is None else f"{100 * share:g}%"
