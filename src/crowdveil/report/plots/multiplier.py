"""The function of the multiplier of one matrix, for teaching: the best piece at each multiplier."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from crowdveil.model.flows import Flows
from crowdveil.report.plots.teaching import Line
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.targets import Targets, origins_near, target_volumes


def function_of(flows: Flows, step: int, params: Any) -> tuple[Callable[[Fraction | None], Line], int]:
    """Return the best piece (cost, suppressed volume) at a multiplier, of a time step, and the step's trips."""
    system = RegionSpace.trees(flows)
    matrix = Matrix.of(flows, step, system)
    if params.method == "joint":
        boxes = BoxSpace.of(flows, step, system, params.k)
        return lambda multiplier: boxes.solve_at(multiplier)[:2], matrix.total
    boxes = _best_boxes(matrix, params)
    return lambda multiplier: boxes.solve_at(multiplier)[:2], matrix.total


def _best_boxes(matrix: Matrix, params: Any) -> BoxSpace:
    """Return the boxes of the target volume with the least mean generalization error, as atg-dual takes them."""
    budget = params.max_suppressed(matrix.total)
    targets = Targets(
        "auto", params.k, partial(BoxSpace.of_origins, k=params.k), lambda boxes: boxes.solve_for_budget(budget)
    )
    found = ((t, targets.build(matrix, origins_near(matrix, t))) for t in target_volumes(params.k, matrix.total))
    return targets.best(found)[1]
