"""Define a release: generalized flows or trajectories, before they are written.

A release holds no original id. A flow that is not in it is suppressed: fewer than k people, possibly none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import shapely

from crowdveil.model.areas import Areas
from crowdveil.model.arrays import (
    Bytes,
    Floats,
    Indices,
    Ints,
    check_coordinates,
    check_lengths,
    check_offsets,
    distinct,
    freeze_columns,
    frozen,
    require,
    row_slices,
    slice_sums,
)
from crowdveil.model.flows import FlowUnit
from crowdveil.model.intervals import Intervals
from crowdveil.model.tabular import Tabular

STATES = ("published", "reported")
PUBLISHED, REPORTED = 0, 1
NOT_GIVEN = -1


class VolumeBounds(NamedTuple):
    """Confidence bounds of the volume of each row, where it is noisy: the true one lies between them, both included."""

    low: Ints
    high: Ints


@dataclass(frozen=True, eq=False, repr=False)
class FlowRelease(Tabular):
    """Anonymized flows of all time steps.

    Attributes
    ----------
    areas
        The areas; origins and destinations are indices of them.
    t, offsets
        Start of each time step (seconds since 1970-01-01 UTC), and the offsets of its rows. With `intervals`, those of each
        window instead of each time step.
    origin, destination
        Area indices.
    volume
        Trips of the row.
    people
        The group size of the row, which k is compared with; its unit is `k_unit`.
    state
        PUBLISHED (a box with its volume) or REPORTED (small flows of an origin, aggregated).
    suppressed
        Volume suppressed in each time step (or window), or NOT_GIVEN where fewer than k people made it.
    k_unit, step_s, tz
        As in `Flows`.
    facts
        Facts about the run for the manifest; published, so nothing in it may reveal a person.
    figures
        The numbers that the facts summarize, a row for each time step (NaN where it has none);
        of steps that share areas the first has them. None where there are none. Confidential, do not publish.
    intervals
        The interval of time of each row, where rows may span several time steps; None where each is of one.
    bounds
        Confidence bounds of noisy volumes; None where volumes are exact.
    """

    areas: Areas
    t: Ints
    offsets: Ints
    origin: Indices
    destination: Indices
    volume: Ints
    people: Ints
    state: Bytes
    suppressed: Ints
    k_unit: FlowUnit
    step_s: int | None = None
    tz: str = "UTC"
    facts: Mapping[str, Any] = field(default_factory=dict)
    figures: Floats | None = None
    intervals: Intervals | None = None
    bounds: VolumeBounds | None = None

    def __post_init__(self) -> None:
        freeze_columns(self)
        n = len(self.origin)
        check_lengths(
            "release",
            n,
            destination=self.destination,
            volume=self.volume,
            people=self.people,
            state=self.state,
        )
        if self.bounds is not None:
            bounds = VolumeBounds(*(frozen(column, np.int64) for column in self.bounds))
            object.__setattr__(self, "bounds", bounds)
            check_lengths("release", n, volume_low=bounds.low, volume_high=bounds.high)
        check_offsets(self.offsets, n, "release")
        check_lengths("release", len(self.offsets) - 1, t=self.t, suppressed=self.suppressed)
        if n:
            first = min(int(self.origin.min()), int(self.destination.min()))
            last = max(int(self.origin.max()), int(self.destination.max()))
            require(first >= 0 and last < len(self.areas), "release: a row names an area that does not exist.")
        if self.intervals is not None:
            check_lengths("release", n, interval=self.intervals.first)
            check_lengths("release", len(self.t), windows=self.intervals.window_start)
            begin, end = self.intervals.offsets[:-1][self.step], self.intervals.offsets[1:][self.step]
            inside = np.all((self.intervals.first >= begin) & (self.intervals.last <= end))
            require(bool(inside), "release: the interval of a row leaves its window.")

    def __len__(self) -> int:
        return len(self.origin)

    def to_arrow(self) -> pa.Table:
        """Return the table of flows."""
        return self.chunks()(slice(0, len(self)))

    def summary(self) -> str:
        """Return the numbers of flows, time steps and areas."""
        times = "time steps" if self.intervals is None else "windows of time"
        return f"{len(self):,} flows, {len(self.t):,} {times}, {len(self.areas):,} areas"

    def chunks(self, times: Callable[[Ints], Any] | None = None) -> Callable[[slice], pa.Table]:
        """Return a function that makes the table of a slice of rows; `times` makes a column of seconds, if not timestamps."""
        names, states = pa.array(self.areas.names, pa.string()), pa.array(STATES)
        columns, bounds = self._time_columns(times or self._timestamps), self.bounds

        def chunk(rows: slice) -> pa.Table:
            return pa.table(
                {
                    **{name: values.take(pa.array(index[rows])) for name, (values, index) in columns.items()},
                    "origin_area": names.take(pa.array(self.origin[rows])),
                    "destination_area": names.take(pa.array(self.destination[rows])),
                    "volume": self.volume[rows],
                    **({} if bounds is None else {"volume_low": bounds.low[rows], "volume_high": bounds.high[rows]}),
                    self.k_unit: self.people[rows],
                    "state": states.take(pa.array(self.state[rows])),
                }
            )

        return chunk

    def _time_columns(self, times: Callable[[Ints], Any]) -> dict[str, tuple[Any, Indices]]:
        """Return the columns of times, each as distinct values and the index of each row's value."""
        if self.intervals is None:
            return {"t": (times(self.t), self.step.astype(np.int32))}
        intervals = self.intervals
        return {
            "t": (times(intervals.start), intervals.first.astype(np.int32)),
            "until": (times(intervals.end), (intervals.last - 1).astype(np.int32)),
        }

    def step_table(self, times: Callable[[Ints], Any] | None = None) -> pa.Table:
        """Return the table of time steps, or of windows."""
        published = slice_sums(self.offsets, self.volume)
        # Listing a step with fewer than k travelers would reveal them: it is omitted like an empty one.
        # Where volumes have noise, all steps are listed: noise decides whether one has rows.
        listed = (published > 0) | (self.suppressed > 0) | (self.bounds is not None)
        suppressed = pa.array(self.suppressed[listed], mask=self.suppressed[listed] == NOT_GIVEN)
        make = times or self._timestamps
        columns = {"t": make(self.t[listed])}
        if self.intervals is not None:
            columns["until"] = make(self.intervals.window_end[listed])
        return pa.table({**columns, "published": published[listed], "suppressed": suppressed})

    def _timestamps(self, seconds: Ints) -> Any:
        if self.step_s is None:
            return pa.nulls(len(seconds), pa.timestamp("ms", tz="UTC"))
        return pa.array(seconds * 1000, pa.timestamp("ms", tz=self.tz))

    @property
    def step(self) -> Ints:
        """Return the time step of each row; its window, where rows have intervals."""
        return row_slices(self.offsets)

    @property
    def step_starts(self) -> Ints:
        """Return the start of each time step; with intervals, of each time step of all windows."""
        return self.t if self.intervals is None else self.intervals.start

    @property
    def steps_spanned(self) -> Ints:
        """Return how many time steps each row spans."""
        return np.ones(len(self), np.int64) if self.intervals is None else self.intervals.steps

    @property
    def hours(self) -> Floats:
        """Return the hours that each row spans; NaN where the data have no times."""
        if self.intervals is not None:
            spanned: Floats = (self.intervals.until - self.intervals.t) / 3600
            return spanned
        return np.full(len(self), np.nan if self.step_s is None else self.step_s / 3600)

    def with_rounded_people(self, k: int | None, *, least: bool = False) -> FlowRelease:
        """Return the release with numbers of people rounded down to a multiple of k, or to k itself where `least` is set.

        Differences of exact numbers, of this release or of several, would be about fewer than k people.
        """
        if self.k_unit != "people" or k is None:
            return self
        people = np.minimum(self.people, k) if least else self.people - self.people % k
        return replace(self, people=people)

    def with_suppressed(self, suppressed: Ints) -> FlowRelease:
        """Return the release with the volume suppressed in each time step."""
        return replace(self, suppressed=suppressed)

    def without_empty_rows(self) -> FlowRelease:
        """Return the release without rows whose weights round to nothing: a flow of 0 trips is none."""
        if self.volume.all():
            return self
        keep = self.volume > 0
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep, dtype=np.int64)])
        columns = {name: getattr(self, name)[keep] for name in ("origin", "destination", "volume", "people", "state")}
        intervals = None if self.intervals is None else self.intervals.rows(np.flatnonzero(keep))
        return replace(self, offsets=before[self.offsets], intervals=intervals, **columns)

    def without_unused_areas(self) -> FlowRelease:
        """Return the release without areas that no row names: their presence would reveal a visit."""
        used, number = distinct(np.concatenate([self.origin, self.destination]), len(self.areas))
        if len(used) == len(self.areas):
            return self
        n = len(self)
        origin, destination = number[:n].astype(np.int32), number[n:].astype(np.int32)
        return replace(self, areas=self.areas.only(used), origin=origin, destination=destination)


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryRelease(Tabular):
    """Anonymized trajectories, written with the ids 1, 2, … in the order of their content (`model/canonical.numbered`).

    Attributes
    ----------
    lon, lat, t, offsets
        As in `Trajectories`.
    person
        A new key of the person of each trajectory, or None where trajectories of one person must not be linked.
    source
        The input trajectory of each one, by its position in the input. Confidential: it is never written.
    original
        The hash of that input in its order (`model/canonical.digest`), set by `Method.run`; None stands for the canonical
        order of `reading.read`. Confidential: it is never written.
    areas
        The tiles of generalized locations, or None.
    facts
        Facts about the run for the manifest.
    figures
        The numbers that the facts summarize, a row for each partition; None where there are none. Confidential, do not
        publish.
    point
        The input point that each point is, by its position in the input, where a method publishes input points and their
        positions in meters are wanted again. Confidential: it is never written, and dropped when they are measured.
    """

    lon: Floats
    lat: Floats
    t: Ints
    offsets: Ints
    person: Ints | None = None
    source: Ints | None = None
    areas: Areas | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    figures: Floats | None = None
    original: bytes | None = None
    point: Indices | Ints | None = None

    def __post_init__(self) -> None:
        freeze_columns(self)
        n, m = len(self.lon), len(self.offsets) - 1
        check_lengths("release", n, lat=self.lat, t=self.t)
        check_offsets(self.offsets, n, "release")
        check_coordinates("release", self.lon, self.lat)
        if self.point is not None:
            object.__setattr__(self, "point", frozen(self.point, self.point.dtype))
        check_lengths("release", n, point=self.point)
        check_lengths("release", m, person=self.person, source=self.source)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_arrow(self) -> pa.Table:
        """Return the table of points, with new trajectory ids."""
        return self.chunk(slice(None))

    def chunk(self, rows: slice) -> pa.Table:
        """Return the table of a slice of the points."""
        low, high, _ = rows.indices(self.points)
        first, end = np.searchsorted(self.offsets, (low, high - 1), side="right") - (1, 0)
        cuts: Ints = np.clip(self.offsets[first : end + 1], low, high)
        lengths: Ints = np.diff(cuts)
        columns: dict[str, Any] = {
            "lat": self.lat[rows],
            "lon": self.lon[rows],
            "timestamp": pa.array(self.t[rows] * 1000, pa.timestamp("ms", tz="UTC")),
            "published_id": np.repeat(np.arange(first + 1, end + 1), lengths),
        }
        if self.person is not None:
            columns["user_id"] = np.repeat(self.person[first:end], lengths)
        return pa.table(columns)

    def shapes(self) -> Any:
        """Return each point as a shapely geometry."""
        return shapely.points(self.lon, self.lat)

    def summary(self) -> str:
        """Return the numbers of trajectories and points."""
        return f"{len(self):,} trajectories, {self.points:,} points"

    @property
    def points(self) -> int:
        """Return the number of points of all trajectories."""
        return len(self.lon)


def has_segments(release: TrajectoryRelease) -> bool:
    """Return whether several published trajectories are segments of one original."""
    return release.source is not None and len(np.unique(release.source)) < len(release)


Release = FlowRelease | TrajectoryRelease
