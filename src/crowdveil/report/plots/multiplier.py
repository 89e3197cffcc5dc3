"""The function of the multiplier of one matrix, for teaching: the best piece at each multiplier."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from crowdveil.errors import InputError
from crowdveil.model.flows import Flows
from crowdveil.report.plots.teaching import Line
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.forest import Forest
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.targets import origins_near, target_volumes


def function_of(flows: Flows, step: int, params: Any) -> tuple[Callable[[Fraction | None], Line], int]:
    """Return the best piece (cost, suppressed volume) at a multiplier, of a time step, and the step's trips."""
    system = RegionSpace.trees(flows)
    matrix = Matrix.of(flows, step, system)
    if params.method == "joint":
        boxes = BoxSpace.of(flows, step, system, params.k)
        return lambda multiplier: boxes.solve_at(multiplier)[:2], matrix.total
    forest = _best_forest(matrix, params)

    def of_forest(multiplier: Fraction | None) -> Line:
        solved = forest.solve_at(multiplier)
        return solved.cost, solved.suppressed

    return of_forest, matrix.total


def _best_forest(matrix: Matrix, params: Any) -> Forest:
    """Return the origins of the target volume with the least mean generalization error, as atg-dual takes them."""
    best: tuple[float, Forest] | None = None
    budget = params.max_suppressed(matrix.total)
    for target in target_volumes(params.k, matrix.total):
        forest = Forest.of(matrix, origins_near(matrix, target), params.k)
        solved = forest.solve_for_budget(budget)
        if isinstance(solved, int):
            continue
        error = solved.cost / max(matrix.total - solved.suppressed, 1)
        if best is None or error < best[0]:
            best = error, forest
    if best is None:
        raise InputError("multiplier", "no target volume keeps the budget; allow more to be suppressed.")
    return best[1]
