"""Target volumes of origins, where origins are cut before destinations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, Option, Text
from crowdveil.kernels.od.origins import best_origins
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.solve.od.boxes import BoxSolution, BoxSpace, BudgetError
from crowdveil.solve.od.region_space import ANY_EXTENT, RegionExtent, RegionSpace, large_enough_map
from crowdveil.solve.od.small_flows import Reporting
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import StepRange, StepSolution, solve_steps

SAMPLE = 24
"""Matrices of a sample, evenly spread over the data."""
_SERIES = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)

Build = Callable[[Matrix, Ints], BoxSpace]
"""Makes the boxes of some origins."""
Solve = Callable[[BoxSpace], BoxSolution]
"""Finds the best partition of boxes; raises BudgetError where none keeps the budget."""
Score = Callable[[BoxSpace, BoxSolution], float]
Finish = Callable[[BoxSpace, BoxSolution], tuple[Ints, tuple[float, ...]]]
"""Improves the best partition of a matrix, and returns facts about it, which follow the target among those of the step."""


def mean_cost(boxes: BoxSpace, solved: BoxSolution) -> float:
    """Return the cost for each published trip."""
    return solved.full_cost / max(boxes.total - solved.suppressed, 1)


@dataclass(frozen=True)
class Targets:
    """How the target volume of each matrix is found.

    Attributes
    ----------
    wanted
        A number; `auto`, the best for each matrix from a grid; or `sample`, the one of the grid at which origins and
        destinations have about the same size in a sample of matrices.
    k
        Smallest crowd.
    build, attempt
        Make the boxes of given origins, and find the best partition of them.
    score
        What the best target minimizes.
    extent
        How large published areas must be.
    """

    wanted: Literal["auto", "sample"] | float
    k: int
    build: Build
    attempt: Solve
    score: Score = mean_cost
    extent: RegionExtent = ANY_EXTENT

    def solve(
        self,
        data: Flows,
        finish: Finish,
        reporting: Reporting,
        summarize: Callable[[Floats], dict[str, Any]],
        progress: Progress,
    ) -> FlowRelease:
        """Solve every time step with the best of its targets."""

        def solver(system: RegionSpace) -> Callable[[int], StepSolution]:
            choices = self.choices(data, system)

            def solve(step: int) -> StepSolution:
                matrix = Matrix.of(data, step, system)
                target, boxes, solved = self.best(
                    (t, self.build(matrix, origins_near(matrix, t))) for t in choices(matrix)
                )
                choice, facts = finish(boxes, solved)
                return boxes.outcome(choice, target, *facts, left=reporting.wanted)

            return solve

        def system() -> RegionSpace:
            return large_enough_map(RegionSpace.trees(data, extent=self.extent))

        steps = StepRange(self.k, system, solver, reporting, summarize)
        return solve_steps(data, steps, progress)

    def choices(self, data: Flows, system: RegionSpace) -> Callable[[Matrix], list[float]]:
        """Return the targets to try for a matrix, in order; the first that works is enough unless `auto` is wanted."""
        if self.wanted == "auto":
            return lambda matrix: target_volumes(self.k, matrix.total)
        if self.wanted == "sample":
            found = self._from_sample(data, system)
            # The target of the sample may be too small for a thinner matrix: larger origins work.
            return lambda matrix: [found, *(t for t in target_volumes(self.k, matrix.total) if t > found)]
        return lambda matrix: [float(self.wanted)]

    def best(self, candidates: Iterable[tuple[float, BoxSpace]]) -> tuple[float, BoxSpace, BoxSolution]:
        """Find the best partition over targets, each with its boxes, and its target; the first that works unless `auto`."""
        best: tuple[float, BoxSpace, BoxSolution] | None = None
        needed = []
        for target, boxes in candidates:
            try:
                solved = self.attempt(boxes)
            except BudgetError:
                needed.append(boxes.solve_at(None)[1])
                continue
            if best is None or self.score(boxes, solved) < self.score(*best[1:]):
                best = target, boxes, solved
            if self.wanted != "auto":
                break
        if best is None:
            raise InputError(
                Option("v_target"),
                Text(
                    "origins below k have more trips than may be suppressed. Choose a larger target or auto, or allow more with "
                    "{suppress}; at least {needed:,} trips must be suppressed here.",
                    needed=min(needed),
                ),
            )
        return best

    def _from_sample(self, data: Flows, system: RegionSpace) -> float:
        """Find the target at which origins and destinations of a sample have the nearest mean sizes."""
        steps = np.flatnonzero(data.trips_by_step >= max(self.k, 1))
        chosen = (
            steps[np.linspace(0, len(steps) - 1, min(SAMPLE, len(steps))).astype(np.int64)] if len(steps) else steps
        )
        matrices = [Matrix.of(data, step, system) for step in chosen.tolist()]
        grid = target_volumes(self.k, max((m.total for m in matrices), default=self.k))
        unequal = [self._difference(matrices, target) for target in grid]
        return grid[int(np.argmin(unequal))]

    def _difference(self, matrices: list[Matrix], target: float) -> float:
        """Return how far mean origin and destination sizes of published trips differ; infinite if a matrix has no solution."""
        sums = np.zeros(3)
        for matrix in matrices:
            boxes = self.build(matrix, origins_near(matrix, target))
            try:
                found = boxes.outcome(self.attempt(boxes).choice, left=False)
            except BudgetError:
                return float("inf")
            origin = matrix.system.origins.tree.size[found.origin]
            destination = matrix.system.destinations.tree.size[found.destination]
            sums += ((origin * found.volume).sum(), (destination * found.volume).sum(), found.volume.sum())
        return abs(sums[0] - sums[1]) / sums[2] if sums[2] else float("inf")


def origins_near(matrix: Matrix, volume: float) -> Ints:
    """Cut origins into the nodes whose outgoing trips are nearest to `volume`."""
    origins = best_origins(matrix.system.origins.as_origins, matrix.leaving, float(volume))
    origins.flags.writeable = False
    return origins


def target_volumes(k: int, volume: int) -> list[float]:
    """List the target volumes to choose from: round numbers from k to the first above twice the volume of the matrix.

    They do not depend on the volume itself: the chosen one, which is published, does not disclose it.
    """
    round_numbers = [x * 10**e for e in range(20) for x in _SERIES]
    return [
        *(x for x in round_numbers if k <= x <= 2 * volume),
        next(x for x in round_numbers if x > max(2 * volume, k)),
    ]


def one_target(params: Any) -> str | None:
    """Return why time steps cannot be solved independently: one target is chosen from all of them."""
    return "v_target = sample looks at all time steps; give auto or a number" if params.v_target == "sample" else None


def summarize_targets(wanted: str | float, used: Floats) -> dict[str, Any]:
    """Summarize the target volumes that were used, for the manifest."""
    how = wanted if isinstance(wanted, str) else "given"
    return {"v_target": how, "v_target_least": float(used.min()), "v_target_largest": float(used.max())}


def as_figure(multiplier: Fraction | None) -> float:
    """Return a multiplier as a figure of a time step; None is infinite."""
    return float("inf") if multiplier is None else float(multiplier)


def round_gap(percent: float) -> float:
    """Round a gap up to 1, 2 or 5 · 10ⁿ per cent, at least 0.01; 0 stays 0.

    The cost of a published partition follows from the release, so an exact gap would reveal the cost of another partition, which
    is a sum of volumes that are not published.
    """
    if percent <= 0:
        return 0.0
    return next(x for e in range(-2, 400) for digit in (1, 2, 5) if (x := float(f"{digit}e{e}")) >= percent)


def summarize_gaps(gap: Floats, before: Floats | None = None) -> dict[str, Any]:
    """Summarize the certified gap to the best partition, in per cent of its cost, rounded up, for the manifest.

    `before` is the gap of the partition that a multiplier found, where others were searched after it.
    """
    searched = {} if before is None else {"certified_gap_percent_of_multiplier": round_gap(float(before.mean()))}
    return {
        **searched,
        "certified_gap_percent_mean": round_gap(float(gap.mean())),
        "certified_gap_percent_largest": round_gap(float(gap.max())),
    }
