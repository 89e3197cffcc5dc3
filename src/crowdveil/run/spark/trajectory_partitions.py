"""Partitions of trajectories: which are solved together, and from the points of one to the rows of a release, checked."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.guarantees import Guarantee
from crowdveil.io.release_writer import area_properties, trajectory_table
from crowdveil.io.values import encode_ids, one_array
from crowdveil.io.written_release import WrittenRelease
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.separation import DistanceParams, distances_to_originals
from crowdveil.model.arrays import Ints, Sent
from crowdveil.model.canonical import canonical_order, trajectory_keys
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Outline, Trajectories
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.progress import no_progress
from crowdveil.registry import find_method
from crowdveil.report.cost_summary import TrajectoryCost
from crowdveil.run.merge_partitions import AREA, ROW, SUMMARY, result_table, split_by_size
from crowdveil.run.spark.point_rows import KEY
from crowdveil.run.verification import check

RESULT = pa.schema([
    ("kind", pa.string()), ("lat", pa.float64()), ("lon", pa.float64()), ("timestamp", pa.timestamp("us", tz="UTC")),
    ("source", pa.int64()), ("place", pa.int64()), ("tile", pa.int64()), *((name, pa.int64()) for name in KEY),
    (SUMMARY, pa.string()),
])  # fmt: skip
"""Columns of results, by kind: points of the release with the number of their original and their place in the trajectory; the key
of each published trajectory; tiles that are named; and a summary as one line of JSON."""
PUBLISHED = "published"
"""The kind of rows with keys of published trajectories."""
PLANNED = ("number", "owner", "partition_id")
"""Columns of the plan: the number of a trajectory, that of its person, and its partition."""


@dataclass(frozen=True)
class PartitionPlan:
    """Plans which trajectories are solved together, in one task from their outlines, a row each.

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
        Most points of a partition, unless trajectories that must be solved together have more.
    """

    method: str
    params: Params
    ids: tuple[str, ...]
    start: int
    most: int

    @property
    def needs(self) -> list[str]:
        """Return the columns of the outlines."""
        return [*self.ids, *KEY, "points", "lost", "t", "total"]

    def schema(self, tracks: pa.Schema) -> pa.Schema:
        """Return the columns of the plan, from those of the outlines."""
        return pa.schema([*(tracks.field(name) for name in self.ids), *((name, pa.int64()) for name in PLANNED)])

    def __call__(self, tracks: pa.Table) -> pa.Table:
        """Return numbers and partitions of all usable trajectories."""
        tracks = tracks.filter(pa.array(_numbers(tracks, "lost") == 0))
        person = encode_ids(tracks["person"])[0] if len(self.ids) == 2 else None
        keys = np.array([_numbers(tracks, name) for name in KEY], np.int64).reshape(len(KEY), len(tracks))
        order, people = canonical_order(keys, person, 0 if person is None else int(person.max(initial=-1)) + 1)
        tracks = tracks.take(pa.array(order))
        owner = np.arange(len(tracks)) if person is None else np.argsort(people)[person[order]]
        points, total = _numbers(tracks, "points"), _numbers(tracks, "total")
        outline = Outline(points, _numbers(tracks, "t") - self.start, total - points * self.start, owner)
        made = {"number": np.arange(len(tracks)), "owner": owner, "partition_id": self._partitions(outline)}
        wanted = self.schema(tracks.schema)
        return pa.table([made[n] if n in made else tracks[n] for n in wanted.names], schema=wanted)

    def _partitions(self, outline: Outline) -> Ints:
        """Return the partition of each trajectory."""
        method, together = find_method(self.method), np.arange(len(outline))
        if method.partitions is not None:
            for number, members in enumerate(method.partitions(outline, self.params)):
                together[members] = number
        sizes = np.bincount(together, outline.points).astype(np.int64)
        lengths = [len(several) for several in split_by_size(sizes.tolist(), self.most)]
        partitions: Ints = np.repeat(np.arange(len(lengths)), lengths)[together]
        return partitions


@dataclass(frozen=True)
class TrajectoryPartitionReader(Sent):
    """Reads the trajectories of a partition from points with numbers of trajectories and people; sent to executors."""

    frame: Trajectories

    def __call__(self, partition: pa.Table) -> Trajectories:
        """Return the trajectories, sorted by number; their ids are the numbers."""
        number, t = _numbers(partition, "number"), _numbers(partition, "t")
        lon, lat = (one_array(partition[name]).to_numpy() + 0.0 for name in ("lon", "lat"))
        order = np.lexsort([lat, lon, t, number])
        lon, lat = lon[order], lat[order]
        ids, first = np.unique(number[order], return_index=True)
        people, person = np.unique(_numbers(partition, "owner")[order][first], return_inverse=True)
        return Trajectories(
            lon, lat, t[order], np.append(first, len(order)), ids, person, people, self.frame.k_unit,
            zones=self.frame.zones, within=self.frame.within,
        )  # fmt: skip


@dataclass(frozen=True)
class TrajectoryPartition:
    """Solves a partition with the code that solves all trajectories on one machine; sent to executors.

    Attributes
    ----------
    method, params, seed
        What is to run.
    reader
        Reader of its trajectories.
    guarantees
        What is checked on its tables.
    """

    method: str
    params: Params
    seed: int
    reader: TrajectoryPartitionReader
    guarantees: tuple[Guarantee, ...]

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return points, keys, tiles and the summary of the partition."""
        data = self.reader(partition)
        release = self._solve(data)
        written = as_written(release)
        checked = check(written, self.guarantees, data, release.source)
        far = distances_to_originals(TrajectoryComparison(data, release), DistanceParams(time_weight=0.0))
        summary = {
            "partition_id": partition["partition_id"][0].as_py(),
            "findings": [finding.as_json() for _, finding in checked],
            "figures": None if release.figures is None else release.figures.tolist(),
            "cost": asdict(TrajectoryCost.of(data, release)),
            "squares": float(far @ far),
            "grid": _grid(release),
            "areas": release.areas is not None,
        }
        line = result_table(RESULT, SUMMARY, 1, {SUMMARY: pa.array([json.dumps(summary)])})
        return pa.concat_tables([_points(data, release, written), _keys(data, release), _tiles(release), line])

    def _solve(self, data: Trajectories) -> TrajectoryRelease:
        rng = np.random.default_rng(self.seed)
        release = find_method(self.method).run(data, self.params, rng, no_progress)
        if not isinstance(release, TrajectoryRelease) or release.source is None or release.person is not None:
            raise TypeError(f"{self.method} makes no trajectories that can be numbered together")
        return release


def _points(data: Trajectories, release: TrajectoryRelease, written: WrittenRelease) -> pa.Table:
    lengths = np.diff(release.offsets)
    places = ("lat", "lon", "timestamp")
    columns = {name: one_array(written.data[name]).cast(RESULT.field(name).type) for name in places}
    columns["source"] = pa.array(np.repeat(data.ids[release.source], lengths), pa.int64())
    columns["place"] = pa.array(np.arange(release.points) - np.repeat(release.offsets[:-1], lengths), pa.int64())
    return result_table(RESULT, ROW, release.points, columns)


def as_written(release: TrajectoryRelease) -> WrittenRelease:
    """Return a release as its files would be read, without writing them."""
    areas = release.areas
    features = [] if areas is None else [{"properties": properties} for properties in area_properties(areas)]
    return WrittenRelease(Path("the partition"), trajectory_table(release, "parquet"), None, features)


def _keys(data: Trajectories, release: TrajectoryRelease) -> pa.Table:
    """Return the key of each published trajectory, by the number of its original."""
    keys = trajectory_keys(release.lon, release.lat, release.t, release.offsets, in_places=True)
    made = {name: pa.array(key) for name, key in zip(KEY, keys, strict=True)}
    return result_table(
        RESULT, PUBLISHED, len(release), made | {"source": pa.array(data.ids[release.source], pa.int64())}
    )


def _grid(release: TrajectoryRelease) -> Any:
    """Return the grid whose tiles are named by number; None where tiles are given, or none are named."""
    zones = None if release.areas is None else release.areas.zones
    return None if zones is None or zones.grid is None else astuple(zones.grid)


def _tiles(release: TrajectoryRelease) -> pa.Table:
    """Return the tiles that are named, by numbers that are equal in every partition."""
    if release.areas is None:
        return result_table(RESULT, AREA, 0, {})
    zones, tiles = release.areas.zones, release.areas.tiles.astype(np.int64)
    if int(release.areas.size.max(initial=1)) > 1:
        raise TypeError("areas of several tiles are not put together")
    return result_table(
        RESULT, AREA, len(tiles), {"tile": pa.array(_grid_numbers(zones)[tiles] if zones.grid else tiles, pa.int64())}
    )


def _grid_numbers(zones: Zones) -> Ints:
    if zones.grid is None or zones.column is None or zones.row is None:
        raise TypeError("the tiles are of no grid")
    numbers: Ints = zones.row.astype(np.int64) * zones.grid.columns + zones.column
    return numbers


def _numbers(table: pa.Table, name: str) -> Ints:
    numbers: Ints = one_array(table[name]).to_numpy()
    return numbers
