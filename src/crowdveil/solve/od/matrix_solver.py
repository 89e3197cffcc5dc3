"""Solve the matrices of many time steps, each by one call of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from crowdveil.model.arrays import frozen
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.solve.od.box_building import BuiltBoxes
from crowdveil.solve.od.boxes import BoxSpace, check_exact, most_cost
from crowdveil.solve.od.budget_search import FIRST_GUESS, BoxSolution
from crowdveil.solve.od.region_space import Objective, RegionSpace, large_enough_map
from crowdveil.solve.od.several_budgets import NEAREST, WIDELY, largest_multiplier
from crowdveil.solve.od.solved_budget import SolvedBudget
from crowdveil.solve.od.step_solver import StepSolution

_NEAREST, _WIDELY = (frozen(np.array(parts), np.float64) for parts in (NEAREST, WIDELY))


@dataclass(frozen=True, eq=False)
class MatrixSolver:
    """The matrices of a data set over two trees, whose crowds add up and whose boxes may all be published.

    Attributes
    ----------
    data
        The flows.
    system
        The regions that boxes are made of.
    k
        Smallest crowd.
    """

    data: Flows
    system: RegionSpace
    k: int

    @classmethod
    def of(cls, data: Flows, system: RegionSpace, k: int, objective: Objective) -> MatrixSolver | None:
        """Return what solves matrices in one call; None where these have other boxes, crowds or costs."""
        sides = system.origins, system.destinations
        trees = all(isinstance(side.regions, Hierarchy) and side.all_small_enough for side in sides)
        if data.person_ids is not None or objective == "reconstruction" or not trees:
            return None
        return cls(data, large_enough_map(system), k)

    def solve(
        self, step: int, max_suppressed: Callable[[int], int], near: float | None, *, left: bool
    ) -> StepSolution | None:
        """Find the best partition of a time step within its budget; None where another way must be taken.

        The search begins around the multiplier `near`, and the partition is what `BoxSpace.improve` would find. With `left` the
        boxes that are not published are wanted as well.
        """
        total = self._totals[step]
        most, budget = most_cost(self.system, 0, total), max_suppressed(total)
        check_exact(most)
        if budget == 0:
            return None
        rows = slice(self._offsets[step], self._offsets[step + 1])
        data = self.data
        flows = data.origin[rows], data.destination[rows], data.volume[rows], data.people[rows]
        begin = (0.0, float(FIRST_GUESS), _WIDELY) if near is None else (near, 0.0, _NEAREST)
        *built, partition = self._kernel(*flows, budget, total.bit_length(), *begin, largest_multiplier(most, total))
        if not partition.found:
            return None
        boxes = partial(BoxSpace.of_built, self.system, BuiltBoxes(*built), total)
        _, p, q, cost, suppressed, spent, saved, choice, columns = partition
        best = BoxSolution(Fraction(p, q) if q else None, cost, suppressed, choice)
        return SolvedBudget(best, spent, saved, columns).outcome(budget, boxes, left=left)

    @cached_property
    def _totals(self) -> list[int]:
        found: list[int] = self.data.trips_by_step.tolist()
        return found

    @cached_property
    def _offsets(self) -> list[int]:
        found: list[int] = self.data.offsets.tolist()
        return found

    @cached_property
    def _kernel(self) -> Callable[..., Any]:
        """Return the kernel, with the trees."""
        from crowdveil.kernels._jit import bind
        from crowdveil.kernels.od.solve_matrix import solve_matrix

        origins, destinations = self.system.origins, self.system.destinations
        trees = origins.as_origins, destinations.as_destinations, origins.cost, destinations.cost
        return bind(solve_matrix, *trees, self.k)
