"""Compare original trajectories with a release: the input of every measure of trajectories."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from crowdveil.engine.progress import Progress, no_progress
from crowdveil.errors import InputError, Text
from crowdveil.io.notes import ReadNotes
from crowdveil.model.arrays import Floats, Ints, require
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.distances import Paths

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class TrajectoryComparison:
    """Original and released trajectories, in meters on the plane of the original.

    Attributes
    ----------
    original
        The original trajectories.
    release
        The release. Its `source` is known in the run that made it, or where the pairing was kept.
    progress
        Called by slow measures with their progress.
    notes
        Remarks of measures on their computation, such as an estimated value.
    """

    original: Trajectories
    release: TrajectoryRelease
    progress: Progress = no_progress
    notes: ReadNotes = field(default_factory=ReadNotes)
    _made: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _of_original: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        require(
            bool(np.all(np.diff(self.release.offsets) > 0)), "release: a trajectory has no point. Verify the release."
        )

    def with_release(self, release: TrajectoryRelease) -> TrajectoryComparison:
        """Return the original with another release; what was made of the original alone is kept."""
        return replace(self, release=release, _made={})

    def all_steps(self) -> TrajectoryComparison:
        """Return itself: trajectories are one group."""
        return self

    @property
    def source(self) -> Ints:
        """Return the original trajectory of each published one; raise `InputError` where it is unknown."""
        if self.release.source is None:
            raise InputError(
                "release",
                Text(
                    "the original of each trajectory is not known; keep it with {pairing} when anonymizing, and give it here, "
                    "or give {paired_by_id} if others published the trajectories under the original ids."
                ),
            )
        return self.release.source

    @cached_property
    def start(self) -> int:
        """Return the first time of the original: seconds in `paths` and `published` count from it."""
        return int(self.original.t.min()) if self.original.points else 0

    @property
    def paths(self) -> Paths:
        """Return the original trajectories."""
        data = self.original

        def make() -> Paths:
            return Paths.on_plane(*data.xy, data.t - self.start, data.offsets)

        return self.once("paths", make, of_original=True)

    @cached_property
    def published(self) -> Paths:
        """Return the published trajectories."""
        x, y = self.original.projection.to_plane(self.release.lon, self.release.lat)
        return Paths.on_plane(x, y, self.release.t - self.start, self.release.offsets)

    def tiles(self, size_m: float) -> tuple[Ints, Ints]:
        """Return the square tile of each original and of each published point: numbers from 1, row by row from the south-west, of
        all tiles in the box around both.
        """

        def make() -> tuple[Ints, Ints]:
            sides = [(_cells(paths.x, size_m), _cells(paths.y, size_m)) for paths in (self.paths, self.published)]
            columns, rows = (np.concatenate([side[axis] for side in sides]) for axis in (0, 1))
            west, south = columns.min(initial=0), rows.min(initial=0)
            wide = columns.max(initial=0) - west + 1
            original, published = ((row - south) * wide + column - west + 1 for column, row in sides)
            return original, published

        return self.once(("tiles", size_m), make)

    def once(self, name: Hashable, make: Callable[[], T], *, of_original: bool = False) -> T:
        """Return a costly value that several measures need, of the original alone or not; make it on the first call."""
        made = self._of_original if of_original else self._made
        if name not in made:
            made[name] = make()
        found: T = made[name]
        return found


def _cells(meters: Floats, size_m: float) -> Ints:
    return np.floor(meters / size_m).astype(np.int64)
