"""Trajectories as distances take them, and the protocol and the record of a distance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from crowdveil.kernels.trajectory.structures import Points
from crowdveil.model.arrays import Floats, Ints, freeze_columns, frozen, require
from crowdveil.model.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class Paths:
    """Trajectories in planar meters and seconds since the first point of the data, as kernels take them."""

    x: Floats
    y: Floats
    t: Floats
    offsets: Ints

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        freeze_columns(self)

    @classmethod
    def of(cls, data: Trajectories) -> Paths:
        """Return the paths of a data set."""
        return cls.on_plane(*data.xy, data.t - data.start, data.offsets)

    @classmethod
    def on_plane(cls, x: Floats, y: Floats, t: Ints, offsets: Ints) -> Paths:
        """Make paths from planar meters and seconds since any moment."""
        # A point opposite to the middle of the data has no place on the plane.
        require(
            bool(np.isfinite(x).all() and np.isfinite(y).all()),
            "trajectories: positions on opposite sides of the globe cannot be compared in meters. Take a part of them.",
        )
        x, y, seconds = (frozen(column, np.float64) for column in (x, y, t))
        return cls(x, y, seconds, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def points(self) -> Points:
        """Return the points as kernels take them."""
        return Points(self.x, self.y, self.t, self.offsets)

    def one(self, i: int) -> tuple[Floats, Floats, Floats]:
        """Return x, y and t of a trajectory."""
        here = slice(self.offsets[i], self.offsets[i + 1])
        return self.x[here], self.y[here], self.t[here]


class Distance(Protocol):
    """Distances between trajectories of a data set, in meters; infinite where there is none."""

    @property
    def paths(self) -> Paths:
        """Return the trajectories."""
        ...

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """Return distances from any path, given as x, y and t, to trajectories of the data."""
        ...

    def from_one(self, i: int, to: Ints) -> Floats:
        """Return distances from a trajectory of the data to others."""
        ...


@dataclass(frozen=True)
class DistanceKind:
    """The record of a distance: what parameters, run files and the docs are drawn from.

    Attributes
    ----------
    name
        In lower case with hyphens.
    make
        (paths, what time counts) → the distance; only the spatio-temporal one looks at the latter.
    summary
        A description in one sentence.
    aliases
        Names in papers.
    """

    name: str
    make: Callable[[Paths, float], Distance]
    summary: str
    aliases: tuple[str, ...] = ()
