"""Run one method with several k and budgets on the same matrices, and recommend one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress as ignoring
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.comparison.candidates import (
    REFUSALS,
    Candidate,
    RemainingTime,
    Stage,
    numbers_or_null,
    plain_column,
    reason_of,
    with_each,
)
from crowdveil.comparison.flows import MethodResult, run_candidate, shown
from crowdveil.comparison.requested_measures import Column, flow_columns
from crowdveil.errors import InputError, Option, ParameterError, reason_as
from crowdveil.measures.od.comparison import Baseline
from crowdveil.model.flows import Flows
from crowdveil.model.tabular import TableProperty, align_rows
from crowdveil.params import Budgeted
from crowdveil.progress import Progress, no_progress

K, SUPPRESS = (5, 10, 20), ("5%", "10%", "20%")
"""Default values."""
ACCEPTABLE = 2
"""Maximum factor of the error that a larger k or a smaller budget may cost."""


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """Result of one k, one budget (a share or a number of trips; both are None for a method without one), and one value of
    each varied parameter.
    """

    k: int
    suppress: float | None
    outcome: MethodResult
    suppress_trips: int | None = None
    varied: Mapping[str, Any] = field(default_factory=dict)

    @property
    def budget(self) -> float | None:
        """The share or the number of trips; all trials of a sweep have the same kind."""
        return self.suppress if self.suppress_trips is None else self.suppress_trips

    @property
    def budget_shown(self) -> str:
        """The budget as text."""
        return budget_shown(self.suppress, self.suppress_trips)


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(TableProperty):
    """One method with several k and budgets.

    Attributes
    ----------
    method
        Its name, with the parameters that are not swept.
    flows
        The matrices that it ran on.
    trials
        By budget, then by k, both ascending; then by the values of varied parameters, in their order.
    left_out
        Why trials are missing, by label.
    columns
        The measures of the table.
    """

    method: str
    flows: Flows
    trials: tuple[SweepPoint, ...]
    left_out: Mapping[str, str]
    columns: Sequence[Column] = field(default_factory=lambda: flow_columns(None))

    @property
    def varied(self) -> list[str]:
        """Return the names of the varied parameters."""
        return list(self.trials[0].varied)

    def _budgets(self) -> dict[str, Any]:
        """Return the column of budgets: shares, or numbers of trips."""
        trips = [trial.suppress_trips for trial in self.trials]
        if any(number is not None for number in trips):
            return {"suppress_trips": pa.array(trips, pa.int64())}
        return {"suppress": pa.array([trial.suppress for trial in self.trials], pa.float64())}

    @property
    def table(self) -> pa.Table:
        """A row per k, budget and varied value, with the means over matrices and processor seconds per matrix."""
        columns: dict[str, Any] = {"k": [trial.k for trial in self.trials], **self._budgets()}
        for name in self.varied:
            columns[name] = plain_column([trial.varied[name] for trial in self.trials])
        for column in self.columns:
            columns[column.name] = numbers_or_null([trial.outcome.mean(column.key) for trial in self.trials])
        columns["seconds"] = numbers_or_null([trial.outcome.seconds for trial in self.trials])
        if self.varied:
            columns["chosen"] = [any(trial is other for other in self.chosen) for trial in self.trials]
        return pa.table(columns)

    def lines(self) -> list[str]:
        """Return the table as text; with varied parameters the best values for each k and budget are marked."""
        chosen = self.chosen if self.varied else ()
        rows = [
            [
                f"{trial.k}",
                trial.budget_shown,
                *(f"{trial.varied[name]}" for name in self.varied),
                *(shown(trial.outcome.mean(c.key), c.key) for c in self.columns),
                f"{trial.outcome.seconds:.3g}",
                "chosen" if any(trial is other for other in chosen) else "",
            ]
            for trial in self.trials
        ]
        return align_rows(
            [["k", "suppress", *self.varied, *(c.title for c in self.columns), "seconds", ""], *rows], remarks=True
        )

    @property
    def chosen(self) -> tuple[SweepPoint, ...]:
        """The best varied values for each k and budget; all trials where nothing is varied.

        The best target volume is the one at which origins and destinations have the nearest mean sizes, as in the papers;
        of other parameters it is the value with the least error.
        """
        best: dict[Any, SweepPoint] = {}
        for trial in self.trials:
            known = best.setdefault((trial.budget, trial.k), trial)
            if self._worth(trial) < self._worth(known):
                best[trial.budget, trial.k] = trial
        return tuple(best.values())

    def _worth(self, trial: SweepPoint) -> float:
        of = trial.outcome
        sizes = "v_target" in trial.varied
        worth = abs(of.mean("origin-tiles") - of.mean("destination-tiles")) if sizes else of.mean(self.weighed)
        return worth if np.isfinite(worth) else float("inf")

    def choices(self) -> list[str]:
        """Return a sentence on the best varied values for each k and budget; nothing where nothing is varied."""
        made = []
        for trial in self.chosen if self.varied else ():
            values = " and ".join(f"{name} = {value}" for name, value in trial.varied.items())
            budget = "" if trial.budget is None else f" and suppress = {trial.budget_shown}"
            why = f"{self.weighed} is least ({trial.outcome.mean(self.weighed):.3g})"
            if "v_target" in trial.varied:
                origin, destination = (trial.outcome.mean(f"{end}-tiles") for end in ("origin", "destination"))
                why = f"mean origins of {origin:.3g} and destinations of {destination:.3g} tiles are nearest in size"
            made.append(f"For k = {trial.k}{budget} choose {values}: {why}.")
        return made

    @property
    def weighed(self) -> str:
        """The criterion: Ḡ; for a method without a budget E, which includes suppressed trips."""
        return "E" if all(trial.budget is None for trial in self.trials) else "Ḡ"

    @property
    def recommended(self) -> SweepPoint | None:
        """The trial that `recommend` chooses; None if nothing could be published."""
        best = recommend([(trial.k, trial.budget, trial.outcome.mean(self.weighed)) for trial in self.chosen])
        return None if best is None else self.chosen[best]

    def recommendation(self) -> str:
        """Return the recommendation and its reasons, in one sentence."""
        best = self.recommended
        if best is None:
            steps = "" if self.flows.step_s is None else " or longer time steps"
            return f"Nothing could be published with any of these; try a smaller k{', ' if steps else ' or '}larger zones{steps}."
        error = {(trial.k, trial.budget): trial.outcome.mean(self.weighed) for trial in self.chosen}
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
    method: str,
    k: Sequence[Any],
    suppress: Sequence[Any] | None,
    suppress_trips: Sequence[Any] | None = None,
    varied: Mapping[str, Sequence[str]] | None = None,
) -> list[Candidate]:
    """Return the method with each budget, each k and each varied value, smallest first, checked before data is read."""
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
    names = with_each([method], varied or {})
    made = [(i, Candidate.named(name, {"k": n, **b})) for b in wanted for n in k for i, name in enumerate(names)]
    different = {(_budget(c)[0] or _budget(c)[1] or 0, getattr(c.params, "k", 0), i): c for i, c in made}
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
    columns: Sequence[Column] = (),
    varied: Sequence[str] = (),
) -> Sweep:
    """Run every trial on the same matrices; one that fails is left out; raise if all fail."""
    listed = {column.key: column for column in columns or flow_columns(None)}
    if "v_target" in varied:
        listed |= {column.key: column for column in flow_columns("origin-tiles,destination-tiles")}
    found: list[SweepPoint] = []
    left_out: dict[str, str] = {}
    remaining, baseline = RemainingTime(len(chosen)), Baseline(flows)
    _warm_up(chosen[0], flows, seed)
    for candidate in chosen:
        k, budget = getattr(candidate.params, "k", 0), _budget(candidate)
        label = f"k = {k}" + ("" if budget == (None, None) else f", {budget_shown(*budget)} suppressed")
        values = {name: getattr(candidate.params, name) for name in varied}
        label += "".join(f", {name} = {value}" for name, value in values.items())
        stage(f"{label}{remaining.shown()}")
        try:
            outcome = run_candidate(candidate, flows, seed, progress, [*listed.values()], baseline)
            found.append(SweepPoint(k, budget[0], outcome, budget[1], values))
        except REFUSALS as error:
            left_out[label] = reason_of(error)
        remaining.done += 1
    if not found:
        raise InputError(reason_as(next(iter(left_out.values())), str))
    label = ":".join(part for part in chosen[0].label.split(":") if part.partition("=")[0] not in varied)
    return Sweep(label, flows, tuple(found), left_out, [*listed.values()])


def _warm_up(candidate: Candidate, flows: Flows, seed: int) -> None:
    """Compile the kernels of a method on the smallest matrix, so that it is not measured; a failure shows in the trials."""
    smallest = flows.at_steps(np.argmin(flows.trips_by_step, keepdims=True))
    with ignoring(*REFUSALS):
        candidate.run(smallest, seed)


def budget_shown(share: float | None, trips: int | None) -> str:
    """Format a budget as on the command line."""
    if trips is not None:
        return f"{trips:,} trips"
    return "–" if share is None else f"{100 * share:g}%"
