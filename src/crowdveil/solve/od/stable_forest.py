"""One partition for all time steps with given origins: the destinations that cost least over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.model.arrays import Ints, frozen
from crowdveil.model.flows import Flows
from crowdveil.solve.od.forest import Forest
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.step_solver import check_person_ids
from crowdveil.solve.od.targets import origins_near


def add_up(base: Forest, steps: Iterable[Matrix], k: int) -> Ints:
    """Return the trips that each box publishes in some time steps, those in which it reaches k.

    `base` has the boxes of some origins, from the flows of all time steps together.
    """
    from crowdveil.kernels.od.stable_boxes import fill_forest_step

    nodes = len(base.matrix.system.destinations.cost)
    keys = base.part * nodes + base.node
    order = np.argsort(keys)
    total, volume = np.zeros(len(keys), np.int64), np.empty(len(keys), np.int64)
    for matrix in steps:
        step = Forest.of(matrix, base.origins, k)
        listed = order[np.searchsorted(keys, step.part * nodes + step.node, sorter=order)]
        fill_forest_step(frozen(listed, np.int64), step.volume, base.above, volume)
        total += volume
    return total


def with_volumes(base: Forest, volume: Ints, trips: int) -> Forest:
    """Return the boxes with the volumes and costs of all time steps, which have so many `trips`.

    As in `StableProblem.space`, a split suppresses what a box publishes and its parts do not.
    """
    system = base.matrix.system
    below, inner = np.zeros(len(volume), np.int64), base.above >= 0
    np.add.at(below, base.above[inner], volume[inner])
    sides = system.origins.cost[base.origins[base.part]] + system.destinations.cost[base.node]
    return replace(
        base,
        volume=frozen(volume, np.int64),
        cost=frozen(sides * volume, np.int64),
        lost=frozen(np.where(base.lost >= 0, volume - below, -1), np.int64),
        gone=trips - int(volume[~inner].sum()),
    )


def large_steps(data: Flows, system: RegionSpace, k: int) -> list[Matrix]:
    """Return the matrices of the time steps with at least k people."""
    check_person_ids(data)
    return [Matrix.of(data, s, system) for s in range(data.steps) if data.people_in_step(s) >= k]


@dataclass(frozen=True)
class StableForests:
    """Forests over all time steps of a class, one for each target volume.

    Attributes
    ----------
    matrix
        The matrix of all time steps together, which origins are cut by.
    forests
        The forests, in the order of the targets.
    """

    matrix: Matrix
    forests: tuple[Forest, ...]

    @classmethod
    def of(cls, summed: Flows, system: RegionSpace, k: int, targets: Callable[[Matrix], list[float]]) -> StableForests:
        """Build the forests of all targets from the flows of all time steps together."""
        matrix = Matrix.of(summed, 0, system)
        return cls(matrix, tuple(Forest.of(matrix, origins_near(matrix, t), k) for t in targets(matrix)))

    def add_up(self, steps: list[Matrix], k: int) -> list[Ints]:
        """Return the trips of time steps, and those that the boxes of each forest publish in them."""
        trips = np.array([sum(matrix.total for matrix in steps)])
        return [trips, *(add_up(forest, steps, k) for forest in self.forests)]

    def with_volumes(self, sums: Sequence[Ints]) -> Iterator[Forest]:
        """Yield the forests with the volumes and costs of all time steps."""
        trips, *volumes = sums
        for forest, volume in zip(self.forests, volumes, strict=True):
            yield with_volumes(forest, volume, int(trips[0]))

    def without_people(self) -> StableForests:
        """Return the forests without the people behind the flows, which are needed to build them alone."""
        none, nowhere = np.zeros(0, np.int64), np.zeros(0, np.int32)
        matrix = replace(self.matrix, person=none, person_origin=nowhere, person_destination=nowhere)
        forests = tuple(replace(forest, matrix=matrix) for forest in self.forests)
        return replace(self, matrix=matrix, forests=forests)
