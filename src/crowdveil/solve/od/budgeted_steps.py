"""Solve the time steps of a run within its budget, together with those of runs that differ from it in the budget alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from crowdveil.errors import InputError
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.budget_search import BoxSolution
from crowdveil.solve.od.several_budgets import search_budgets
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepSolution
from crowdveil.solve.od.targets import as_figure

Budget = Callable[[int], int]
"""How many trips of a time step may be suppressed, from the number of its trips."""
Solutions = dict[tuple[int, Hashable], StepSolution | InputError]
"""What becomes of a time step within a budget, by the step and the key of the budget; or why nothing can."""


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
    solved
        What the runs have solved so far; shared by them.
    """

    boxes_of: Callable[[int], BoxSpace]
    budgets: Mapping[Any, Budget]
    own: Hashable
    left: bool
    solved: Solutions = field(default_factory=dict)

    def begin(self, step: int) -> list[Fraction]:
        """Solve one step; return its multipliers, at which the search begins in all others, which have similar ones.

        None where an earlier run has solved it, and the others with it.
        """
        if (step, self.own) in self.solved:
            return []
        try:
            return self._solve(step, [])
        except InputError:
            return []  # its own turn raises the error

    def solve(self, near: Sequence[Fraction], step: int) -> StepSolution:
        """Return what becomes of a step; the search for its multipliers begins at `near`."""
        if (step, self.own) not in self.solved:
            self._solve(step, near)
        found = self.solved[step, self.own]
        if isinstance(found, InputError):
            raise found
        return found

    def _solve(self, step: int, near: Sequence[Fraction]) -> list[Fraction]:
        """Solve a step for every budget; return their multipliers, by rising budget."""
        boxes = self.boxes_of(step)
        if len(boxes) == 0:
            self.solved.update({(step, key): ALL_SUPPRESSED for key in self.budgets})
            return []
        wanted: dict[int, list[Hashable]] = {}
        for key, max_suppressed in self.budgets.items():
            wanted.setdefault(max_suppressed(boxes.total), []).append(key)
        multipliers: dict[int, Fraction] = {}
        for budget, found in search_budgets(boxes, wanted, near):
            outcome = found if isinstance(found, InputError) else self._outcome(boxes, found, budget)
            self.solved.update({(step, key): outcome for key in wanted[budget]})
            if isinstance(found, BoxSolution) and found.multiplier is not None:
                multipliers[budget] = found.multiplier
        return [multipliers[budget] for budget in sorted(multipliers)]

    def _outcome(self, boxes: BoxSpace, best: BoxSolution, budget: int) -> StepSolution:
        return boxes.improved_outcome(best, budget, as_figure(best.multiplier), left=self.left)
