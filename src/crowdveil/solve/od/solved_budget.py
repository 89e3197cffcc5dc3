"""What becomes of a time step, from the partition that compiled code has found for its budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crowdveil.model.arrays import Ints
from crowdveil.solve.od.boxes import BoxSpace, Improved, gap_after, is_small
from crowdveil.solve.od.budget_search import BoxSolution
from crowdveil.solve.od.step_solver import NO_BOXES, StepSolution
from crowdveil.solve.od.targets import as_figure


class SolvedBudget(NamedTuple):
    """The best partition of a multiplier, whose choices are those after the rest of the budget was spent.

    Attributes
    ----------
    best
        The partition.
    spent, saved
        Trips of the rest of the budget that were spent, and the cost that this saved.
    columns
        Origin, destination, volume and crowd of the boxes that are published.
    """

    best: BoxSolution
    spent: int
    saved: int
    columns: Ints

    def outcome(self, budget: int, boxes: Callable[[], BoxSpace], *, left: bool) -> StepSolution:
        """Return what becomes of the time step, as after `BoxSpace.improve`; with `left` also what is not published.

        Boxes are made where more is searched for, or what is not published is wanted.
        """
        best, multiplier = self.best, as_figure(self.best.multiplier)
        gap = gap_after(best, budget, self.spent, self.saved)
        if is_small(gap) and not left:
            origin, destination, volume, crowd = self.columns
            return StepSolution(origin, destination, volume, crowd, *NO_BOXES, np.array((gap, gap, multiplier)))
        made = boxes()
        improved = Improved(best.choice, (gap, gap)) if is_small(gap) else made.search_between(best, budget, gap)
        return made.outcome(improved.choice, *improved.gaps, multiplier, left=left)
