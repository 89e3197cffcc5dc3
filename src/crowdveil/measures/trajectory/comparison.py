"""Original trajectories beside a release of them: what every measure of trajectories reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.io.notes import ReadNotes
from crowdveil.model.arrays import Floats, Ints, require
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress, no_progress
from crowdveil.solve.trajectory.distances import Paths

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class TrajectoryComparison:
    """The two sets of trajectories, in meters on the plane of the original.

    Attributes
    ----------
    original
        The trajectories that were read.
    release
        What is published of them. Its `source` is known where it was just made, or where the pairing was kept.
    progress
        Told by measures that take long how far they are.
    notes
        What measures say of how they were computed, such as a value that was found.
    """

    original: Trajectories
    release: TrajectoryRelease
    progress: Progress = no_progress
    notes: ReadNotes = field(default_factory=ReadNotes)
    _made: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _of_original: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        require(bool(np.all(np.diff(self.release.offsets) > 0)), "release: a trajectory in it has no point; verify it.")

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
                "release",
                "which trajectory came of which is not known, since ids are new; "
                f"keep it with {Option('pairing')} when anonymizing, and give it here.",
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
        return self.once_of_original("paths", lambda: Paths.on_plane(*data.xy, data.t - self.start, data.offsets))

    @cached_property
    def published(self) -> Paths:
        """The published trajectories."""
        x, y = self.original.projection.to_plane(self.release.lon, self.release.lat)
        return Paths.on_plane(x, y, self.release.t - self.start, self.release.offsets)

    def tiles(self, size_m: float) -> tuple[Ints, Ints]:
        """The square tile of each original and of each published point: numbers from 1, row by row from south west, of all tiles
        in the box around both.
        """

        def make() -> tuple[Ints, Ints]:
            sides = [(_cells(paths.x, size_m), _cells(paths.y, size_m)) for paths in (self.paths, self.published)]
            columns, rows = (np.concatenate([side[axis] for side in sides]) for axis in (0, 1))
            west, south = columns.min(initial=0), rows.min(initial=0)
            wide = columns.max(initial=0) - west + 1
            original, published = ((row - south) * wide + column - west + 1 for column, row in sides)
            return original, published

        return self.once(("tiles", size_m), make)

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """What is costly and several measures need: made the first time that it is asked for."""
        return _once(self._made, name, make)

    def once_of_original(self, name: Hashable, make: Callable[[], T]) -> T:
        """The same for what does not depend on the release."""
        return _once(self._of_original, name, make)


def _once(made: dict[Hashable, Any], name: Hashable, make: Callable[[], T]) -> T:
    if name not in made:
        made[name] = make()
    found: T = made[name]
    return found


def _cells(meters: Floats, size_m: float) -> Ints:
    return np.floor(meters / size_m).astype(np.int64)
