"""Groups of trajectories at a small log cost, and the boxes in space and time that stand for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdveil.model.arrays import Floats, Ints, frozen
from crowdveil.progress import Progress, no_progress
from crowdveil.solve.trajectory.distances import Paths


@dataclass(frozen=True, eq=False)
class SpaceTimeBoxes:
    """What stands for a group of trajectories.

    Attributes
    ----------
    members
        The trajectories, in the order in which they came together.
    sides
        Six rows: least and most x, y (meters) and t (seconds); a column for each box, in order.
    """

    members: Ints
    sides: Floats


@dataclass(frozen=True, eq=False)
class LogCost:
    """What it costs to put trajectories on top of one another.

    Attributes
    ----------
    paths
        The trajectories.
    space_weight, time_weight
        What the logs of lengths in space and in time count.
    suppression
        What a point that is left out costs, as a share of what a box as large as all the data costs.
    """

    paths: Paths
    space_weight: float = 1.0
    time_weight: float = 1.0
    suppression: float = 1.0

    @cached_property
    def costs(self) -> tuple[float, float, float]:
        """Return what a point that is left out costs, and the two weights."""
        x, y, t = (float(np.ptp(a)) if len(a) else 0.0 for a in (self.paths.x, self.paths.y, self.paths.t))
        whole = self.space_weight * np.log((1.0 + x) * (1.0 + y)) + self.time_weight * np.log(1.0 + t)
        return self.suppression * float(whole), self.space_weight, self.time_weight

    @cached_property
    def computed(self) -> Ints:
        """Return how many bounds by the whole (not counted), by chunks and by rough logs, and how many costs, were computed so
        far.
        """
        return np.zeros(4, np.int64)

    def groups(
        self, person: Ints, k: int, growing: bool, rng: np.random.Generator, progress: Progress = no_progress
    ) -> list[SpaceTimeBoxes]:
        """Make groups of at least k people; none if all together have fewer.

        A trajectory that is drawn at random takes the one that costs least, and so on until k people are in the group, while k
        people are left. Those that are left then join the group that costs least, one by one. With `growing` costs are those to
        the boxes of all members so far, otherwise those to the first. Of equal costs the smaller number counts.
        """
        from crowdveil.kernels.trajectory.log_cost_groups import gather

        sequences, whose = _Sequences.of_points(self.paths), frozen(person, np.int64)
        alive = np.ones(len(person), np.bool_)
        left_of = np.bincount(person, minlength=1)
        found: list[SpaceTimeBoxes] = []
        for pivot in rng.permutation(len(person)).tolist():
            if not alive[pivot]:
                continue
            if np.count_nonzero(left_of) < k:
                break
            rest = np.flatnonzero(alive)
            made = SpaceTimeBoxes(*gather(pivot, rest, k, growing, whose, *sequences, self.costs, self.computed))
            found.append(made)
            alive[made.members] = False
            np.subtract.at(left_of, person[made.members], 1)
            progress(len(person) - int(alive.sum()), len(person))
        if found:
            self._join(np.flatnonzero(alive), found)
            progress(len(person), len(person))
        return found

    def _join(self, those: Ints, found: list[SpaceTimeBoxes]) -> None:
        """Let each trajectory join the group that costs least."""
        from crowdveil.kernels.trajectory.log_cost import put_together
        from crowdveil.kernels.trajectory.log_cost_groups import nearest

        points = _Sequences.of_points(self.paths)
        for i in those.tolist():
            low, high = self.paths.offsets[i], self.paths.offsets[i + 1]
            g = nearest(points.boxes[:, low:high].copy(), *_Sequences.of_groups(found), self.costs, self.computed)
            sides = found[g].sides.copy()
            left = put_together(sides, sides.shape[1], points.boxes, low, high, self.costs)
            found[g] = SpaceTimeBoxes(np.append(found[g].members, i), sides[:, :left].copy())


class _Sequences(NamedTuple):
    """Sequences of boxes as kernels take them, with their summaries."""

    boxes: Floats
    offsets: Ints
    chunks: Floats
    whole: Floats

    @classmethod
    def of(cls, boxes: Floats, offsets: Ints) -> _Sequences:
        from crowdveil.kernels.trajectory.log_cost_bounds import CHUNKS, summarize_all

        n = len(offsets) - 1
        chunks, whole = np.empty((9, CHUNKS * n)), np.empty((9, n))
        summarize_all(boxes, offsets, chunks, whole)
        return cls(boxes, offsets, chunks, whole)

    @classmethod
    def of_points(cls, paths: Paths) -> _Sequences:
        x, y, t, offsets = paths.points
        return cls.of(np.stack([x, x, y, y, t, t]), np.array(offsets))

    @classmethod
    def of_groups(cls, groups: list[SpaceTimeBoxes]) -> _Sequences:
        offsets = np.cumsum([0, *(group.sides.shape[1] for group in groups)])
        return cls.of(np.concatenate([group.sides for group in groups], axis=1), offsets)
