"""Parts of trajectories: which are done together, and from the points of a part to the rows of a release, checked."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil import engine
from crowdveil.engine import LocalEngine
from crowdveil.errors import InputError
from crowdveil.guarantees import Guarantee
from crowdveil.io.release_writer import area_properties, trajectory_table
from crowdveil.io.values import encode_ids, one_array
from crowdveil.io.written_release import WrittenRelease
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.separation import DistanceParams, distances_to_originals
from crowdveil.model.arrays import Ints, refrozen
from crowdveil.model.canonical import canonical_order, trajectory_keys
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Outline, Trajectories
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.progress import no_progress
from crowdveil.registry import find_method
from crowdveil.report.cost_summary import TrajectoryCost
from crowdveil.run.spark.merge_partitions import AREA, ROW, TOLD, in_parts
from crowdveil.run.spark.point_rows import KEY
from crowdveil.run.verification import check

OUTCOME = pa.schema([
    ("kind", pa.string()), ("lat", pa.float64()), ("lon", pa.float64()), ("timestamp", pa.timestamp("us", tz="UTC")),
    ("source", pa.int64()), ("place", pa.int64()), ("tile", pa.int64()), *((name, pa.int64()) for name in KEY),
    (TOLD, pa.string()),
])  # fmt: skip
"""What a part gives, by kind: points of the release with the number of the trajectory that they are published for and their place
in it; the key of each published trajectory; tiles that are named; and one line of JSON."""
PUBLISHED = "published"
"""The kind of rows with keys of published trajectories."""
KEYED = ("number", "owner", "part")
"""What is planned for each trajectory: its number, that of its person, and the part that it is done in."""


@dataclass(frozen=True)
class Plan:
    """Which trajectories are done together, found in one task from their outlines, a row each.

    Numbers are those that a reader on one machine gives: of trajectories and people in canonical order.

    Attributes
    ----------
    method, params
        What is to run.
    ids
        Columns that name a trajectory.
    start
        First time of the data.
    most
        Points of a part, unless those that must be done together have more.
    """

    method: str
    params: Params
    ids: tuple[str, ...]
    start: int
    most: int

    @property
    def needs(self) -> list[str]:
        """Columns of the outlines."""
        return [*self.ids, *KEY, "points", "lost", "t", "total"]

    def schema(self, tracks: pa.Schema) -> pa.Schema:
        """The columns of the plan, from those of the outlines."""
        return pa.schema([*(tracks.field(name) for name in self.ids), *((name, pa.int64()) for name in KEYED)])

    def __call__(self, tracks: pa.Table) -> pa.Table:
        """Numbers and parts of all usable trajectories."""
        tracks = tracks.filter(pa.array(_numbers(tracks, "lost") == 0))
        person = encode_ids(tracks["person"])[0] if len(self.ids) == 2 else None
        keys = np.array([_numbers(tracks, name) for name in KEY], np.int64).reshape(len(KEY), len(tracks))
        order, people = canonical_order(keys, person, 0 if person is None else int(person.max(initial=-1)) + 1)
        tracks = tracks.take(pa.array(order))
        owner = np.arange(len(tracks)) if person is None else np.argsort(people)[person[order]]
        points, total = _numbers(tracks, "points"), _numbers(tracks, "total")
        outline = Outline(points, _numbers(tracks, "t") - self.start, total - points * self.start, owner)
        made = {"number": np.arange(len(tracks)), "owner": owner, "part": self._parts(outline)}
        wanted = self.schema(tracks.schema)
        return pa.table([made[n] if n in made else tracks[n] for n in wanted.names], schema=wanted)

    def _parts(self, outline: Outline) -> Ints:
        """The part of each trajectory: as many of those that are done together as it has room for."""
        method, together = find_method(self.method), np.arange(len(outline))
        if method.parts is not None:
            for number, members in enumerate(method.parts(outline, self.params)):
                together[members] = number
        sizes = np.bincount(together, outline.points).astype(np.int64)
        lengths = [len(several) for several in in_parts(sizes.tolist(), self.most)]
        parts: Ints = np.repeat(np.arange(len(lengths)), lengths)[together]
        return parts


@dataclass(frozen=True)
class TrackReader:
    """From the points of a part, with numbers of trajectories and people, to its trajectories; sent to executors."""

    frame: Trajectories

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for model in (self.frame, self.frame.zones):
            if model is not None:
                refrozen(model)

    def __call__(self, part: pa.Table) -> Trajectories:
        """The trajectories, in the order of their numbers; their ids are these."""
        number, t = _numbers(part, "number"), _numbers(part, "t")
        lon, lat = (one_array(part[name]).to_numpy() + 0.0 for name in ("lon", "lat"))
        order = np.lexsort([lat, lon, t, number])
        lon, lat = lon[order], lat[order]
        ids, first = np.unique(number[order], return_index=True)
        people, person = np.unique(_numbers(part, "owner")[order][first], return_inverse=True)
        return Trajectories(
            lon, lat, t[order], np.append(first, len(order)), ids, person, people, self.frame.k_unit,
            zones=self.frame.zones, within=self.frame.within,
        )  # fmt: skip


@dataclass(frozen=True)
class TracksPart:
    """What is done with a part, by the code that does it with all trajectories on one machine.

    Attributes
    ----------
    method, params, seed
        What is to run.
    reader
        From the points of the part to its trajectories.
    guarantees
        What is checked on what is written.
    parts
        How many there are, to say which one failed.
    """

    method: str
    params: Params
    seed: int
    reader: TrackReader
    guarantees: tuple[Guarantee, ...]
    parts: int

    def __call__(self, part: pa.Table) -> pa.Table:
        """Points, tiles and what is told of the part."""
        number = int(part["part"][0].as_py())
        # One task has one processor: the cluster decides how many run side by side.
        with engine.use(LocalEngine(1)):
            data = self.reader(part)
            release = self._made(data, number)
            written = as_written(release)
            checked = check(written, self.guarantees, data, release.source)
            far = distances_to_originals(TrajectoryComparison(data, release), DistanceParams(time_weight=0.0))
        told = {
            "part": number,
            "findings": [finding.as_json() for _, finding in checked],
            "figures": None if release.figures is None else release.figures.tolist(),
            "cost": asdict(TrajectoryCost.of(data, release)),
            "squares": float(far @ far),
            "grid": _grid(release),
            "areas": release.areas is not None,
        }
        told_row = _filled(TOLD, 1, {TOLD: pa.array([json.dumps(told)])})
        return pa.concat_tables([self._rows(data, release, written), _keys(data, release), _tiles(release), told_row])

    def _made(self, data: Trajectories, number: int) -> TrajectoryRelease:
        method, rng = find_method(self.method), np.random.default_rng(self.seed)
        try:
            made = method.run(data, self.params, rng, no_progress)
        except InputError as error:
            raise InputError(f"part {number + 1:,} of {self.parts:,}: {error}") from None
        if not isinstance(made, TrajectoryRelease) or made.source is None or made.person is not None:
            raise TypeError(f"{self.method} makes no trajectories that can be numbered together")
        return made

    def _rows(self, data: Trajectories, release: TrajectoryRelease, written: WrittenRelease) -> pa.Table:
        lengths = np.diff(release.offsets)
        made = {
            name: one_array(written.data[name]).cast(OUTCOME.field(name).type) for name in ("lat", "lon", "timestamp")
        }
        made["source"] = pa.array(np.repeat(data.ids[release.source], lengths), pa.int64())
        made["place"] = pa.array(np.arange(release.points) - np.repeat(release.offsets[:-1], lengths), pa.int64())
        return _filled(ROW, release.points, made)


def as_written(release: TrajectoryRelease) -> WrittenRelease:
    """A release as its files would be read, without a file."""
    areas = release.areas
    features = [] if areas is None else [{"properties": properties} for properties in area_properties(areas)]
    return WrittenRelease(Path("the part"), trajectory_table(release, "parquet"), None, features)


def _keys(data: Trajectories, release: TrajectoryRelease) -> pa.Table:
    """The key of each published trajectory, by the number of the one that it is published for."""
    keys = trajectory_keys(release.lon, release.lat, release.t, release.offsets, in_places=True)
    made = {name: pa.array(key) for name, key in zip(KEY, keys, strict=True)}
    return _filled(PUBLISHED, len(release), made | {"source": pa.array(data.ids[release.source], pa.int64())})


def _grid(release: TrajectoryRelease) -> Any:
    """The grid whose tiles are named by their numbers in it, or None where tiles are given or there are none."""
    zones = None if release.areas is None else release.areas.zones
    return None if zones is None or zones.grid is None else astuple(zones.grid)


def _tiles(release: TrajectoryRelease) -> pa.Table:
    """The tiles that are named, by numbers that mean the same in every part."""
    if release.areas is None:
        return _filled(AREA, 0, {})
    zones, tiles = release.areas.zones, release.areas.tiles.astype(np.int64)
    if int(release.areas.size.max(initial=1)) > 1:
        raise TypeError("areas of several tiles are not put together")
    return _filled(
        AREA, len(tiles), {"tile": pa.array(_grid_numbers(zones)[tiles] if zones.grid else tiles, pa.int64())}
    )


def _grid_numbers(zones: Zones) -> Ints:
    if zones.grid is None or zones.column is None or zones.row is None:
        raise TypeError("the tiles are of no grid")
    numbers: Ints = zones.row.astype(np.int64) * zones.grid.columns + zones.column
    return numbers


def _filled(kind: str, n: int, made: dict[str, Any]) -> pa.Table:
    made = {**made, "kind": pa.array([kind] * n, pa.string())}
    return pa.table([made.get(f.name, pa.nulls(n, f.type)) for f in OUTCOME], schema=OUTCOME)


def _numbers(table: pa.Table, name: str) -> Ints:
    numbers: Ints = one_array(table[name]).to_numpy()
    return numbers
