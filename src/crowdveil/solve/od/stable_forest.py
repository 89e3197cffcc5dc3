"""One partition for all time steps with given origins: the destinations that cost least over all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdveil.model.arrays import Ints, frozen
from crowdveil.model.flows import Flows
from crowdveil.solve.od.forest import Forest
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import check_person_ids
from crowdveil.solve.od.summed_steps import sum_steps


@dataclass(frozen=True)
class StableForests:
    """Forests over all time steps, for any origins.

    Attributes
    ----------
    system
        The regions that boxes are made of.
    k
        Smallest crowd.
    matrix
        The matrix of all time steps together, which origins are cut by.
    steps
        The matrices of the time steps with at least k people.
    """

    system: RegionSpace
    k: int
    matrix: Matrix
    steps: tuple[Matrix, ...]

    @classmethod
    def of(cls, data: Flows, system: RegionSpace, k: int) -> StableForests:
        """Take the matrices out of the data."""
        check_person_ids(data)
        steps = tuple(Matrix.of(data, s, system) for s in range(data.steps) if data.people_in_step(s) >= k)
        return cls(system, k, Matrix.of(sum_steps(data), 0, system), steps)

    @property
    def total(self) -> int:
        """Return the trips of the time steps with at least k people."""
        return sum(matrix.total for matrix in self.steps)

    def forest(self, origins: Ints) -> Forest:
        """Build the boxes of origins with the volumes and costs of all time steps in which they reach k.

        As in `StableProblem.space`, a split suppresses what a box publishes and its parts do not.
        """
        from crowdveil.kernels.od.stable_boxes import fill_forest_step

        base = Forest.of(self.matrix, origins, self.k)
        nodes = len(self.system.destinations.cost)
        keys = base.part * nodes + base.node
        order = np.argsort(keys)
        total, volume = np.zeros(len(keys), np.int64), np.empty(len(keys), np.int64)
        for matrix in self.steps:
            step = Forest.of(matrix, origins, self.k)
            listed = order[np.searchsorted(keys, step.part * nodes + step.node, sorter=order)]
            fill_forest_step(frozen(listed, np.int64), step.volume, base.above, volume)
            total += volume
        below, inner = np.zeros(len(keys), np.int64), base.above >= 0
        np.add.at(below, base.above[inner], total[inner])
        sides = self.system.origins.cost[origins[base.part]] + self.system.destinations.cost[base.node]
        return replace(
            base,
            volume=frozen(total, np.int64),
            cost=frozen(sides * total, np.int64),
            lost=frozen(np.where(base.lost >= 0, total - below, -1), np.int64),
            gone=frozen(np.array([self.total - int(total[~inner].sum())]), np.int64),
        )
