"""Original trajectories beside a release of them: what every measure of trajectories reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints, frozen
from crowdveil.model.distances import Paths
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class TrajectoryComparison:
    """The two sets of trajectories, in metres on the plane of the original.

    Attributes
    ----------
    original
        The trajectories that were read.
    release
        What is published of them. Its `source` is known where it was just made, or where the pairing was kept.
    """

    original: Trajectories
    release: TrajectoryRelease
    _made: dict[str, Any] = field(default_factory=dict, repr=False)
    _of_original: dict[str, Any] = field(default_factory=dict, repr=False)

    def with_release(self, release: TrajectoryRelease) -> TrajectoryComparison:
        """The same original beside another release; what was made of the original alone is not made again."""
        return replace(self, release=release, _made={})

    def all_steps(self) -> TrajectoryComparison:
        """Trajectories are one group."""
        return self

    @property
    def source(self) -> Ints:
        """The original trajectory that each published one comes from; an error where nobody knows."""
        if self.release.source is None:
            raise InputError(
                "release: which trajectory came of which is not known, since ids are new; "
                "keep it with --pairing when anonymising, and give it here."
            )
        return self.release.source

    @cached_property
    def start(self) -> int:
        """Seconds are counted from here in `paths` and `published`: the first time of the original."""
        return int(self.original.t.min()) if self.original.points else 0

    @property
    def paths(self) -> Paths:
        """The original trajectories."""
        data = self.original
        return self.once_of_original("paths", lambda: self._paths(*data.xy, data.t, data.offsets))

    @cached_property
    def published(self) -> Paths:
        """The published trajectories."""
        x, y = self.original.projection.to_plane(self.release.lon, self.release.lat)
        return self._paths(x, y, self.release.t, self.release.offsets)

    def _paths(self, x: Floats, y: Floats, t: Ints, offsets: Ints) -> Paths:
        return Paths(frozen(x, np.float64), frozen(y, np.float64), frozen(t - self.start, np.float64), offsets)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What is costly and several measures need: made the first time that it is asked for."""
        return _once(self._made, name, make)

    def once_of_original(self, name: str, make: Callable[[], T]) -> T:
        """The same for what does not depend on the release."""
        return _once(self._of_original, name, make)


def _once(made: dict[str, Any], name: str, make: Callable[[], T]) -> T:
    if name not in made:
        made[name] = make()
    found: T = made[name]
    return found
