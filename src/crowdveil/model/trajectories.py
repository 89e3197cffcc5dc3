"""Define trajectories: the locations of a person in order of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import shapely

from crowdveil.model.arrays import (
    Floats,
    Ints,
    Labels,
    Mask,
    check_coordinates,
    check_lengths,
    check_offsets,
    freeze_columns,
    frozen,
    require,
    row_slices,
)
from crowdveil.model.globe import Box
from crowdveil.model.projection import LocalProjection
from crowdveil.model.tabular import Tabular
from crowdveil.model.tessellation import public_box
from crowdveil.model.time_axis import DAY_S
from crowdveil.model.zones import Zones

TrajectoryUnit = Literal["people", "trajectories"]


PUBLIC_M = 1_000
"""Side of the tiles whose public grid an extent is on: its sides are whole tenths of a degree."""


@dataclass(frozen=True)
class Extent(Box):
    """A public box around all points of a data set, in degrees, and the midnight (UTC) before its first time.

    It defines meters, tiles and moments, and can be inferred from a release. So it is rounded: it shows no exact place or time of
    any person, published or not.
    """

    start: int

    @classmethod
    def around(cls, box: Box, first: int) -> Extent:
        """Return the extent of points in a box from the time of the first point."""
        public = public_box(box, PUBLIC_M)
        return cls(public.west, public.south, public.east, public.north, first // DAY_S * DAY_S)

    @classmethod
    def of_points(cls, lon: Floats, lat: Floats, t: Ints) -> Extent:
        """Return the extent of points; one around 0° of none."""
        return cls.around(Box.of(lon, lat), int(t.min()) if len(t) else 0)


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(Tabular):
    """Ragged columns: the points of trajectory i are rows offsets[i] to offsets[i + 1], in order of time.

    Attributes
    ----------
    lon, lat
        Position of each point, degrees WGS84, as read.
    t
        Time of each point, seconds since 1970-01-01 UTC; may repeat, never falls inside a trajectory.
    offsets
        Where each trajectory begins and ends; none is empty.
    ids
        The id of each trajectory as read (whole numbers or text). Never published.
    person
        The person of each trajectory, as a number from 0. Where people are not known, each trajectory has its own.
    people_ids
        The id of each person as read. Never published.
    k_unit
        The unit of k: "people" where people are known, otherwise "trajectories".
    row
        The row of the input (from 0) that each point was read from, or None.
    zones
        Tiles given by the user, for methods that assign points to tiles, or None.
    within
        The extent of the whole data set, so that a partition has its meters and tiles; None where this is the whole.
    """

    lon: Floats
    lat: Floats
    t: Ints
    offsets: Ints
    ids: Labels
    person: Ints
    people_ids: Labels
    k_unit: TrajectoryUnit = "people"
    row: Ints | None = None
    zones: Zones | None = None
    within: Extent | None = None

    def __post_init__(self) -> None:
        freeze_columns(self)
        for name in ("ids", "people_ids"):
            object.__setattr__(self, name, frozen(getattr(self, name), getattr(self, name).dtype))
        n, m = len(self.lon), len(self.offsets) - 1
        check_lengths("trajectories", n, lat=self.lat, t=self.t, row=self.row)
        check_lengths("trajectories", m, ids=self.ids, person=self.person)
        check_offsets(self.offsets, n, "trajectories")
        check_coordinates("trajectories", self.lon, self.lat)
        require(bool(np.all(np.diff(self.offsets) > 0)), "trajectories: every trajectory must have a point.")
        if m:
            in_range = self.person.min() >= 0 and self.person.max() < len(self.people_ids)
            require(bool(in_range), "trajectories: a person is not in the list of people.")
        begins = np.zeros(n + 1, np.bool_)
        begins[self.offsets] = True
        require(
            bool(np.all((self.t[1:] >= self.t[:-1]) | begins[1:-1])),
            "trajectories: points must be in order of time.",
        )

    def to_arrow(self) -> pa.Table:
        """Return the points as a table with original ids, as `write_trajectories` writes them. They are not anonymized."""
        of_point = pa.array(self.trajectory)
        columns: dict[str, Any] = {
            "lat": self.lat,
            "lon": self.lon,
            "timestamp": pa.array(self.t * 1000, pa.timestamp("ms", tz="UTC")),
            "trajectory_id": pa.array(self.ids.tolist()).take(of_point),
        }
        if self.k_unit == "people":
            columns["user_id"] = pa.array(self.people_ids[self.person].tolist()).take(of_point)
        return pa.table(columns)

    def shapes(self) -> Any:
        """Return each point as a shapely geometry."""
        return shapely.points(self.lon, self.lat)

    def summary(self) -> str:
        """Return the numbers of trajectories, points and, where they are known, people."""
        known = f", {self.people:,} people" if self.k_unit == "people" else ""
        return f"{len(self):,} trajectories, {self.points:,} points{known}"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def points(self) -> int:
        """Return the number of points of all trajectories."""
        return len(self.lon)

    @property
    def people(self) -> int:
        """Return the number of people."""
        return len(self.people_ids)

    @property
    def total_people(self) -> int:
        """Return the number of people, or of trajectories where people are not known."""
        return self.people

    @property
    def trajectory(self) -> Ints:
        """Return the trajectory of each point."""
        return row_slices(self.offsets)

    @cached_property
    def extent(self) -> Extent:
        """Return the extent of the whole data set."""
        return self.within or Extent.of_points(self.lon, self.lat, self.t)

    @property
    def start(self) -> int:
        """Return the midnight (UTC) before the first time of the whole data set."""
        return self.extent.start

    @cached_property
    def projection(self) -> LocalProjection:
        """Return the projection in which meters are measured."""
        return LocalProjection.around_box(self.extent)

    @cached_property
    def xy(self) -> tuple[Floats, Floats]:
        """Return positions in planar meters."""
        return self.projection.to_plane(self.lon, self.lat)

    def forget_meters(self) -> None:
        """Free the memory of `xy`; it is computed again where it is needed."""
        self.__dict__.pop("xy", None)

    def where(self, keep: Mask) -> Trajectories:
        """Return the trajectories in `keep`, and only their people."""
        lengths = np.diff(self.offsets)
        points = np.repeat(keep, lengths)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[keep], dtype=np.int64)])
        left, person = np.unique(self.person[keep], return_inverse=True)
        return replace(
            self,
            lon=self.lon[points],
            lat=self.lat[points],
            t=self.t[points],
            offsets=offsets,
            ids=self.ids[keep],
            person=person,
            people_ids=self.people_ids[left],
            row=None if self.row is None else self.row[points],
        )


@dataclass(frozen=True, eq=False)
class Outline:
    """Numbers of each trajectory without its points: enough to partition trajectories.

    Attributes
    ----------
    points
        Number of points.
    first, total
        First time, and sum of all times, in seconds since the first time of the data.
    person
        As in `Trajectories`.
    """

    points: Ints
    first: Ints
    total: Ints
    person: Ints

    @classmethod
    def of(cls, data: Trajectories) -> Outline:
        """Return the outline of trajectories."""
        since, begins = data.t - data.start, data.offsets[:-1]
        total = np.add.reduceat(since, begins) if data.points else since
        return cls(np.diff(data.offsets), since[begins], total, data.person)

    def __len__(self) -> int:
        return len(self.points)
