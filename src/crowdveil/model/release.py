"""Define a release: generalized flows or trajectories, before they are written.

A release holds no original id. A flow that is not in it is suppressed: fewer than k people, possibly none.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crowdveil.model.arrays import (
    Bytes,
    Floats,
    Indices,
    Ints,
    Labels,
    check_coordinates,
    check_lengths,
    check_offsets,
    distinct,
    frozen,
    require,
    row_slices,
    slice_sums,
    take_slices,
)
from crowdveil.model.flows import FlowUnit
from crowdveil.model.globe import rounded
from crowdveil.model.intervals import Intervals
from crowdveil.model.tabular import Tabular
from crowdveil.model.zones import Zones

if TYPE_CHECKING:
    import pyarrow as pa

    from crowdveil.model.hierarchy import Hierarchy
    from crowdveil.solve.od.dyadic_regions import DyadicRegions

STATES = ("published", "reported")
PUBLISHED, REPORTED = 0, 1
NOT_GIVEN = -1


@dataclass(frozen=True, eq=False, repr=False)
class Areas(Tabular):
    """The areas that a release names, each a set of tiles.

    Attributes
    ----------
    zones
        The tiles.
    names
        The name of each area in the written files. An area of one tile has the tile's own id.
    offsets, tiles
        The tiles of area i are tiles[offsets[i]:offsets[i + 1]].
    """

    zones: Zones
    names: Labels
    offsets: Ints
    tiles: Indices

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozen(self.names, object))
        object.__setattr__(self, "offsets", frozen(self.offsets, np.int64))
        object.__setattr__(self, "tiles", frozen(self.tiles, np.int32))
        check_offsets(self.offsets, len(self.tiles), "areas")
        check_lengths("areas", len(self.offsets) - 1, names=self.names)
        require(bool(np.all(np.diff(self.offsets) > 0)), "areas: every area must have a tile.")
        require(len(set(self.names)) == len(self.names), "areas: names must be unique.")

    @classmethod
    def of_tiles(cls, zones: Zones, tiles: Indices) -> Areas:
        """Return areas of one tile each."""
        return cls(zones, zones.ids[tiles], np.arange(len(tiles) + 1), tiles)

    @classmethod
    def of_parts(cls, zones: Zones, part: Ints) -> Areas:
        """Return the areas of a partition of the map, from the part of each tile; parts are 0, 1, …, each with a tile."""
        order = np.argsort(part, kind="stable")
        offsets = np.searchsorted(part[order], np.arange(int(part.max(initial=-1)) + 2))
        prefix = _free_prefix(zones, "area")
        parts = zip(offsets[:-1], np.diff(offsets), strict=True)
        names = [zones.ids[order[low]] if size == 1 else f"{prefix}-{i}" for i, (low, size) in enumerate(parts)]
        return cls(zones, np.array(names, dtype=object), offsets, order.astype(np.int32))

    @classmethod
    def of_nodes(
        cls, zones: Zones, nodes: Sequence[tuple[Hierarchy | DyadicRegions, Ints]]
    ) -> tuple[Areas, list[Ints]]:
        """Return areas of nodes of one or more trees, or of regions; also the area of each node, tree by tree.

        A node of one tile is that tile, whatever its tree; others are named after the tree and the node.
        """
        prefix = _free_prefix(zones, "area")
        number: dict[str, int] = {}
        tiles: list[Indices] = []
        found = []
        for which, (tree, wanted) in enumerate(nodes):
            area = np.empty(len(wanted), np.int64)
            for i, node in enumerate(wanted.tolist()):
                of_node = tree.node_tiles(node)
                name = zones.ids[of_node[0]] if len(of_node) == 1 else f"{prefix}{'-to' if which else ''}-{node}"
                if name not in number:
                    number[name] = len(tiles)
                    tiles.append(np.sort(of_node))
                area[i] = number[name]
            found.append(area)
        offsets = np.cumsum([0, *(len(t) for t in tiles)])
        flat = np.concatenate([np.zeros(0, np.int32), *tiles])
        return cls(zones, np.array(list(number), dtype=object), offsets, flat), found

    @classmethod
    def of_sets(cls, zones: Zones, held: Sequence[Indices]) -> tuple[Areas, Ints]:
        """Return the different areas among sets of tiles, each set rising, and which one each has; see `and_more` for names."""
        number: dict[bytes, int] = {}
        place = np.array([number.setdefault(tiles.tobytes(), len(number)) for tiles in held], np.int64)
        different = [np.frombuffer(tiles, np.int32) for tiles in number]
        return cls.of_tiles(zones, np.zeros(0, np.int32)).and_more(different, "area"), place

    def and_more(self, tiles: Sequence[Indices], word: str) -> Areas:
        """Return these areas and more, named after a word and a digest of their tiles.

        A running number would depend on the rest of the release; with a digest a time step has the same names in any release.
        """
        word = _free_prefix(self.zones, word)
        names = [self.zones.ids[here[0]] if len(here) == 1 else f"{word}-{_digest(here)}" for here in tiles]
        offsets = np.cumsum([len(self.tiles), *(len(here) for here in tiles)])
        return Areas(
            self.zones,
            np.concatenate([self.names, np.array(names, dtype=object)]),
            np.concatenate([self.offsets, offsets[1:]]),
            np.concatenate([self.tiles, *tiles]),
        )

    def only(self, used: Ints) -> Areas:
        """Return the areas in `used`."""
        rows, offsets = take_slices(self.offsets, used)
        return Areas(self.zones, self.names[used], offsets, self.tiles[rows])

    def __len__(self) -> int:
        return len(self.names)

    def to_arrow(self) -> pa.Table:
        """Return a table of the areas and the number of their tiles."""
        import pyarrow as pa

        return pa.table({"area": pa.array(self.names, pa.string()), "tiles": self.size})

    def summary(self) -> str:
        """Return the number of areas and of their tiles."""
        return f"{len(self):,} areas of {len(self.zones):,} zones"

    @property
    def size(self) -> Ints:
        """Return the number of tiles of each area."""
        return np.diff(self.offsets)

    @property
    def area_m2(self) -> Floats:
        """Return the square meters of each area; NaN where the tiles have no outlines."""
        if not len(self):
            return np.zeros(0)
        tile_area = self.zones.area_m2[self.tiles]
        sums: Floats = np.add.reduceat(tile_area, self.offsets[:-1])
        return sums

    def centers(self, decimals: int) -> tuple[Floats, Floats]:
        """Return longitude and latitude of each area, rounded: its tile's, or the mean of its tiles' in planar meters."""
        if not len(self):
            return np.zeros(0), np.zeros(0)
        zones, first = self.zones, self.tiles[self.offsets[:-1]]
        lon, lat = zones.lon[first], zones.lat[first]
        many = self.size > 1
        if many.any():
            x, y = (np.add.reduceat(c[self.tiles], self.offsets[:-1]) / self.size for c in zones.xy)
            lon[many], lat[many] = zones.projection.to_globe(x[many], y[many])
        return rounded(lon, decimals), np.round(lat, decimals)


def _digest(tiles: Indices) -> str:
    """Return twelve letters and digits that identify a set of tiles."""
    digest = hashlib.blake2b(np.ascontiguousarray(tiles, "<i4").tobytes(), digest_size=10).digest()
    return base64.b32encode(digest).decode("ascii").lower()[:12]


def _free_prefix(zones: Zones, word: str) -> str:
    """Return a word that no zone id begins with, so that names made of it are new."""
    while any(name.startswith(word) for name in zones.ids):
        word = "_" + word
    return word


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
        The numbers of each time step that the facts summarize, a row each, NaN where a step has none; None where there
        are none. Confidential, do not publish.
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
        if self.figures is not None:
            object.__setattr__(self, "figures", frozen(self.figures, np.float64))
        for name, dtype in _FLOW_TYPES.items():
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
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
        import pyarrow as pa

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
        held = self.intervals
        return {
            "t": (times(held.start), held.first.astype(np.int32)),
            "until": (times(held.end), (held.last - 1).astype(np.int32)),
        }

    def step_table(self, times: Callable[[Ints], Any] | None = None) -> pa.Table:
        """Return the table of time steps, or of windows."""
        import pyarrow as pa

        published = slice_sums(self.offsets, self.volume)
        # Listing a step with fewer than k travelers would reveal them: it is omitted like an empty one.
        listed = (published > 0) | (self.suppressed > 0)
        suppressed = pa.array(self.suppressed[listed], mask=self.suppressed[listed] == NOT_GIVEN)
        make = times or self._timestamps
        columns = {"t": make(self.t[listed])}
        if self.intervals is not None:
            columns["until"] = make(self.intervals.window_end[listed])
        return pa.table({**columns, "published": published[listed], "suppressed": suppressed})

    def _timestamps(self, seconds: Ints) -> Any:
        import pyarrow as pa

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

    def __post_init__(self) -> None:
        for name, dtype in (("lon", np.float64), ("lat", np.float64), ("t", np.int64), ("offsets", np.int64)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        n, m = len(self.lon), len(self.offsets) - 1
        check_lengths("release", n, lat=self.lat, t=self.t)
        check_offsets(self.offsets, n, "release")
        check_coordinates("release", self.lon, self.lat)
        if self.figures is not None:
            object.__setattr__(self, "figures", frozen(self.figures, np.float64))
        for name in ("person", "source"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), np.int64))
                check_lengths("release", m, **{name: getattr(self, name)})

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_arrow(self) -> pa.Table:
        """Return the table of points, with new trajectory ids."""
        import pyarrow as pa

        lengths = np.diff(self.offsets)
        columns: dict[str, Any] = {
            "lat": self.lat,
            "lon": self.lon,
            "timestamp": pa.array(self.t * 1000, pa.timestamp("ms", tz="UTC")),
            "published_id": np.repeat(np.arange(1, len(self) + 1), lengths),
        }
        if self.person is not None:
            columns["user_id"] = np.repeat(self.person, lengths)
        return pa.table(columns)

    def shapes(self) -> Any:
        """Return each point as a shapely geometry."""
        import shapely

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


_FLOW_TYPES = {
    "t": np.int64,
    "offsets": np.int64,
    "origin": np.int32,
    "destination": np.int32,
    "volume": np.int64,
    "people": np.int64,
    "state": np.uint8,
    "suppressed": np.int64,
}
