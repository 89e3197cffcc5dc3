"""Solve the time steps of a run within its budget, together with those of runs that differ from it in the budget alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.budget_search import BoxSolution
from crowdveil.solve.od.matrix_solver import MatrixSolver
from crowdveil.solve.od.several_budgets import search_budgets
from crowdveil.solve.od.solved_budget import SolvedBudget
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepSolution
from crowdveil.solve.od.targets import as_figure

Multipliers = list[Floats]
"""For each budget, rising, a multiplier of each time step."""
Budget = Callable[[int], int]
"""How many trips of a time step may be suppressed, from the number of its trips."""
Solutions = dict[tuple[int, Hashable], StepSolution | InputError]
"""What becomes of a time step within a budget, by the step and the key of the budget; or why nothing can."""
QUANTILES, MIDDLE, MANY = (0.05, 0.2, 0.5, 0.8, 0.95), (0.5,), 200
"""Steps that are solved before all others, one after the other, by their place in the order of trips: several of many steps."""
BELOW = 0.95
"""Part of the expected multiplier that a search begins at: one too small settles boxes at once, one too large does not."""


@dataclass(frozen=True, eq=False)
class BudgetedSteps:
    """Time steps that are partitioned into boxes, each within a budget.

    Attributes
    ----------
    boxes_of
        Builds the boxes of a step.
    budgets
        The budget of each run that is solved together, by any key.
    own
        The key of this run.
    left
        Whether boxes that are not published are wanted as well.
    many
        Whether there are so many steps that the quickest search pays, which takes long to compile.
    at_once
        What solves a step in one call, where it can for the only budget.
    solved
        What the runs have solved so far; shared by them.
    """

    boxes_of: Callable[[int], BoxSpace]
    budgets: Mapping[Any, Budget]
    own: Hashable
    left: bool
    many: bool
    at_once: MatrixSolver | None = None
    solved: Solutions = field(default_factory=dict)

    def begin(self, volumes: Ints) -> Multipliers:
        """Solve a few steps, from their trips; return for every step multipliers near its own, where the search begins.

        Multipliers of steps with about as many trips are alike. Empty where an earlier run has solved the steps, or no step has
        a multiplier.
        """
        places = np.array(QUANTILES if len(volumes) >= MANY else MIDDLE)
        chosen = np.argsort(volumes, kind="stable")[(len(volumes) * places).astype(np.int64)].tolist()
        if all((step, self.own) in self.solved for step in chosen):
            return []
        found: dict[int, list[float]] = {}
        near: list[float] = []
        for step in dict.fromkeys(chosen):
            with suppress(InputError):  # its own turn raises the error
                near = self._solve(step, near) or near
                found[int(volumes[step])] = near
        # Small steps may have the same budget several times.
        most = max(map(len, found.values()), default=0)
        rising = sorted(volume for volume, multipliers in found.items() if len(multipliers) == most)
        by_budget = zip(*(found[volume] for volume in rising), strict=True)
        return [BELOW * np.interp(volumes, rising, of_budget) for of_budget in by_budget]

    def solve(self, near: Multipliers, step: int) -> StepSolution:
        """Return what becomes of a step; `near` has the multipliers of each step where its search begins."""
        if (step, self.own) not in self.solved:
            self._solve(step, [float(of_budget[step]) for of_budget in near])
        found = self.solved[step, self.own]
        if isinstance(found, InputError):
            raise found
        return found

    def _solve(self, step: int, near: Sequence[float]) -> list[float]:
        """Solve a step for every budget; return their multipliers, by rising budget."""
        if self.at_once is not None:
            max_suppressed, begin = self.budgets[self.own], near[0] if near else None
            solved = self.at_once.solve(step, max_suppressed, begin, left=self.left)
            if solved is not None:
                self.solved[step, self.own] = solved
                return _multipliers([solved])
        boxes = self.boxes_of(step)
        if len(boxes) == 0:
            self.solved.update({(step, key): ALL_SUPPRESSED for key in self.budgets})
            return []
        wanted: dict[int, list[Hashable]] = {}
        for key, max_suppressed in self.budgets.items():
            wanted.setdefault(max_suppressed(boxes.total), []).append(key)
        outcomes: dict[int, StepSolution] = {}
        for budget, found in search_budgets(boxes, wanted, near, many=self.many):
            outcome = found if isinstance(found, InputError) else self._outcome(boxes, found, budget)
            self.solved.update({(step, key): outcome for key in wanted[budget]})
            if not isinstance(outcome, InputError):
                outcomes[budget] = outcome
        return _multipliers([outcomes[budget] for budget in sorted(outcomes)])

    def _outcome(self, boxes: BoxSpace, found: BoxSolution | SolvedBudget, budget: int) -> StepSolution:
        if isinstance(found, SolvedBudget):
            return found.outcome(budget, lambda: boxes, left=self.left)
        choice, gaps, published = boxes.improve(found, budget)
        return boxes.outcome(choice, *gaps, as_figure(found.multiplier), left=self.left, published=published)


def _multipliers(outcomes: Sequence[StepSolution]) -> list[float]:
    """Return the multiplier of each outcome, other than infinite ones: no search can begin there."""
    return [multiplier for outcome in outcomes if isfinite(multiplier := float(outcome.facts[-1]))]
