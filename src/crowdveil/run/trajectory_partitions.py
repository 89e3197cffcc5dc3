"""Trajectories in partitions: which are solved together, how one partition is solved, and how the files are written.

A partition is a group of time intervals. Each is solved into a file of the original's numbers, which is no part of the release.
Published numbers follow from the content of all partitions, and the files of the release are sorted by them, so that they do not
show which trajectories were solved together. Equal trajectories have consecutive numbers and are in one file, so that each file
is checked by itself.
"""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.progress import no_progress
from crowdveil.io.release_writer import area_properties, trajectory_table
from crowdveil.io.values import encode_ids, one_array
from crowdveil.io.written_release import POINTS, WrittenRelease, required
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.distances import DistanceParams, distances_to_originals
from crowdveil.model.arrays import Ints, Sent
from crowdveil.model.canonical import canonical_order, trajectory_keys
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Outline, Trajectories
from crowdveil.params import Params
from crowdveil.registry import find_method
from crowdveil.report.cost_summary import TrajectoryCost
from crowdveil.run.partitions import write_part
from crowdveil.run.stages import Guarantees, RunSpec
from crowdveil.run.verification import check

PARTITION, FILE = "crowdveil_partition", "crowdveil_file"
"""Columns with the partition of a trajectory, and with its file in the release."""
KEY = tuple(f"crowdveil_hash_{i}" for i in range(4))
"""Columns with the hashes of a point: their sums are the key of a trajectory, which determines its number."""
SOLVED = pa.schema([("summary", pa.string()), ("keys", pa.binary()), ("tiles", pa.binary())])
"""The results of a partition: counts as JSON; original number and key of each published trajectory; tiles that it names."""


def plan_partitions(spec: RunSpec, tracks: pa.Table, ids: list[str], start: int, most: int) -> pa.Table:
    """Return number, person and partition of each trajectory, next to its `ids`, from a row for each in `tracks`.

    Numbers are those that a reader on one machine gives: of trajectories and people in canonical order. A partition has at most
    `most` points, unless trajectories that must be solved together have more. `start` is the first time of the data.
    """
    person = encode_ids(tracks["person"])[0] if len(ids) == 2 else None
    keys = np.array([_numbers(tracks, name) for name in KEY], np.int64).reshape(len(KEY), len(tracks))
    order, people = canonical_order(keys, person, 0 if person is None else int(person.max(initial=-1)) + 1)
    tracks = tracks.take(pa.array(order))
    owner = np.arange(len(tracks)) if person is None else np.argsort(people)[person[order]]
    points, total = _numbers(tracks, "points"), _numbers(tracks, "total")
    outline = Outline(points, _numbers(tracks, "t") - start, total - points * start, owner)
    together = np.arange(len(outline))
    if spec.method.partitions is not None:
        for number, members in enumerate(spec.method.partitions(outline, spec.params)):
            together[members] = number
    partition = runs_of(np.bincount(together, points).astype(np.int64), most)[together]
    made = {"number": np.arange(len(tracks)), "owner": owner, PARTITION: partition}
    return pa.table({**{name: tracks[name] for name in ids}, **made})


def runs_of(sizes: Ints, most: int) -> Ints:
    """Number consecutive items so that those of one number have at most `most` together, unless one alone has more."""
    numbers, room, number = np.zeros(len(sizes), np.int64), most, 0
    for i, size in enumerate(sizes.tolist()):
        if size > room and i:
            number, room = number + 1, most
        numbers[i], room = number, room - size
    return numbers


@dataclass(frozen=True)
class TrajectoryPartition(Sent):
    """Solves a partition with the code that solves all trajectories on one machine; sent to executors.

    Attributes
    ----------
    method, params, seed
        The method, its parameters and the seed.
    guarantees
        The guarantees that are checked on its rows, with the original.
    frame
        Trajectories without points: zones, what k counts, and the extent of all.
    folder
        Path or URI of the folder of the solved partitions.
    """

    method: str
    params: Params
    seed: int
    guarantees: Guarantees
    frame: Trajectories
    folder: str

    def __call__(self, points: pa.Table) -> pa.Table:
        """Return the results as one row of `SOLVED`."""
        data = self._read(points)
        release = find_method(self.method).run(data, self.params, np.random.default_rng(self.seed), no_progress)
        if not isinstance(release, TrajectoryRelease) or release.source is None or release.person is not None:
            raise TypeError(f"{self.method} makes no trajectories that can be numbered together")
        areas, source = release.areas, data.ids[release.source].astype(np.int64)
        features = [] if areas is None else [{"properties": properties} for properties in area_properties(areas)]
        rows = trajectory_table(release, "parquet")
        checked = check(WrittenRelease(Path(), rows, None, features), self.guarantees, data, release.source)
        lengths = np.diff(release.offsets)
        place = np.arange(release.points) - np.repeat(release.offsets[:-1], lengths)
        rows = rows.select(["lat", "lon", "timestamp"])
        rows = rows.append_column("source", pa.array(np.repeat(source, lengths)))
        number = points[PARTITION][0].as_py()
        write_part(rows.append_column("place", pa.array(place)), self.folder, f"part-{number:05}.parquet")
        far = distances_to_originals(TrajectoryComparison(data, release), DistanceParams(time_weight=0.0))
        summary = {
            "number": number,
            "findings": [finding.as_json() for _, finding in checked],
            "figures": [] if release.figures is None else release.figures.tolist(),
            "cost": asdict(TrajectoryCost.of(data, release)),
            "squares": float(far @ far),
            "grid": None if areas is None or areas.zones.grid is None else astuple(areas.zones.grid),
            "areas": areas is not None,
        }
        keys = trajectory_keys(release.lon, release.lat, release.t, release.offsets, in_places=True)
        keyed = np.vstack([source, *keys]).astype(np.int64).tobytes()
        return pa.table([[json.dumps(summary)], [keyed], [named_tiles(release).tobytes()]], schema=SOLVED)

    def _read(self, points: pa.Table) -> Trajectories:
        """Return the trajectories, sorted by number; their ids are the numbers."""
        number, t = _numbers(points, "number"), _numbers(points, "t")
        lon, lat = (one_array(points[name]).to_numpy() + 0.0 for name in ("lon", "lat"))
        order = np.lexsort([lat, lon, t, number])
        ids, first = np.unique(number[order], return_index=True)
        people, person = np.unique(_numbers(points, "owner")[order][first], return_inverse=True)
        return Trajectories(
            lon[order], lat[order], t[order], np.append(first, len(order)), ids, person, people, self.frame.k_unit,
            zones=self.frame.zones, within=self.frame.within,
        )  # fmt: skip


def named_tiles(release: TrajectoryRelease) -> Ints:
    """Return the tiles that a release names, by numbers that are equal in every partition."""
    if release.areas is None:
        return np.zeros(0, np.int64)
    zones, tiles = release.areas.zones, release.areas.tiles.astype(np.int64)
    if int(release.areas.size.max(initial=1)) > 1:
        raise TypeError("areas of several tiles are not put together")
    if zones.grid is None or zones.column is None or zones.row is None:
        return tiles
    numbers: Ints = (zones.row.astype(np.int64) * zones.grid.columns + zones.column)[tiles]
    return numbers


def new_numbers(keyed: list[bytes], files: int) -> pa.Table:
    """Return the published number and the file of each original number, from the keys of all partitions.

    Files have about the same number of trajectories; equal ones are in one file.
    """
    columns = [np.frombuffer(content, np.int64).reshape(1 + len(KEY), -1) for content in keyed]
    source, *keys = np.hstack([np.zeros((1 + len(KEY), 0), np.int64), *columns])
    first = np.argsort(source)
    keys_in_order = np.array(keys, np.int64)[:, first]
    order, _ = canonical_order(keys_in_order, None, 0)
    sorted_keys = keys_in_order[:, order]
    differs = np.append(True, (sorted_keys[:, 1:] != sorted_keys[:, :-1]).any(axis=0))[: len(order)]
    begins = np.maximum.accumulate(np.where(differs, np.arange(len(order)), 0))
    return pa.table(
        {
            "source": source[first][order],
            "published_id": np.arange(1, len(order) + 1),
            FILE: begins * files // max(len(order), 1),
        }
    )


@dataclass(frozen=True)
class TrajectoryFile(Sent):
    """Writes a file of the release, reads it back and checks it; sent to executors.

    Attributes
    ----------
    guarantees, features
        The guarantees to check, and the areas without outlines.
    folder
        Path or URI of the folder of the rows.
    """

    guarantees: Guarantees
    features: list[dict[str, Any]]
    folder: str

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return name, hash, findings, and the first and last number of the file as one row of JSON."""
        name = f"part-{rows[FILE][0].as_py() if len(rows) else 0:05}.parquet"
        rows = rows.sort_by([("published_id", "ascending"), ("place", "ascending")]).select(required(POINTS))
        timestamps = rows["timestamp"].cast(pa.timestamp("ms", tz="UTC"))
        rows, sha256 = write_part(rows.set_column(2, "timestamp", timestamps), self.folder, name)
        number = _numbers(rows, "published_id")
        first, last = (int(number.min()), int(number.max())) if len(number) else (1, 0)
        # A release is numbered from 1; that the numbers of files follow one another is checked where all are known.
        alone = rows.set_column(3, "published_id", pa.array(number - (first - 1)))
        checked = check(WrittenRelease(Path(), alone, None, self.features), self.guarantees)
        summary = {
            "file": name,
            "sha256": sha256,
            "first": first,
            "last": last,
            "findings": [finding.as_json() for _, finding in checked],
        }
        return pa.table({"summary": [json.dumps(summary)]})


def _numbers(table: pa.Table, name: str) -> Ints:
    numbers: Ints = one_array(table[name]).to_numpy()
    return numbers
