"""Solve the matrices of many time steps, each by one call of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crowdveil.model.arrays import Ints, frozen, slice_sums
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.solve.od.box_building import BuiltBoxes
from crowdveil.solve.od.boxes import BoxSpace, SpentSlack, check_exact, most_cost
from crowdveil.solve.od.budget_search import FIRST_GUESS, BoxSolution, Piece
from crowdveil.solve.od.region_space import Objective, RegionSpace, large_enough_map
from crowdveil.solve.od.several_budgets import NEAREST, WIDELY, largest_multiplier

if TYPE_CHECKING:
    from crowdveil.kernels.od.solve_matrix import SolvedMatrix

_NEAREST, _WIDELY = (frozen(np.array(parts), np.float64) for parts in (NEAREST, WIDELY))


class SolvedStep(NamedTuple):
    """The boxes of a time step, the best partition of a multiplier, and what spending the rest of the budget has changed."""

    boxes: BoxSpace
    best: BoxSolution
    slack: SpentSlack


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

    @cached_property
    def totals(self) -> list[int]:
        """Return the trips of each time step."""
        found: list[int] = slice_sums(self.data.offsets, self.data.volume).tolist()
        return found

    def solve(self, step: int, budget: int, near: float | None) -> SolvedStep | None:
        """Find the best partition of a time step within a budget; None where there are no boxes, or other ways are to be taken.

        The search begins around the multiplier `near`.
        """
        if budget == 0:
            return None
        total = self.totals[step]
        most = most_cost(self.system, 0, total)
        check_exact(most)
        rows = slice(self._offsets[step], self._offsets[step + 1])
        flows = tuple(column[rows] for column in self._columns)
        begin = (0.0, float(FIRST_GUESS), _WIDELY) if near is None else (near, 0.0, _NEAREST)
        solved = self._solve(*flows, budget, total.bit_length(), *begin, largest_multiplier(most, total))
        return self._as_step(solved, budget, total) if solved.tried else None

    def _as_step(self, solved: SolvedMatrix, budget: int, total: int) -> SolvedStep:
        boxes = BoxSpace.of_built(self.system, BuiltBoxes(*solved[:3]), total)
        piece = Piece(
            solved.found, solved.p, solved.q, solved.partition_cost, solved.suppressed, solved.choice, solved.published
        )
        return SolvedStep(
            boxes, piece.solution(boxes, budget), SpentSlack.of(solved.published, solved.spent, solved.saved)
        )

    @cached_property
    def _offsets(self) -> list[int]:
        found: list[int] = self.data.offsets.tolist()
        return found

    @cached_property
    def _columns(self) -> tuple[Ints, ...]:
        data = self.data
        return data.origin, data.destination, data.volume, data.people  # type: ignore[return-value]

    @cached_property
    def _solve(self) -> Callable[..., SolvedMatrix]:
        """Return the kernel, with the trees."""
        from crowdveil.kernels._jit import bind
        from crowdveil.kernels.od.solve_matrix import solve_matrix

        origins, destinations = self.system.origins, self.system.destinations
        trees = origins.as_origins, destinations.as_destinations, origins.cost, destinations.cost
        return bind(solve_matrix, *trees, self.k)
