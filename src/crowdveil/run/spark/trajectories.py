"""Trajectories on Spark: rows become points, Spark groups them to partitions of whole trajectories, and executors solve these."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.attacks.risk import RiskEstimate
from crowdveil.engine.progress import Progress
from crowdveil.engine.spark import SparkEngine
from crowdveil.errors import GuaranteeViolatedError
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io.axes import check_axes
from crowdveil.io.geojson import write_features
from crowdveil.io.manifest import FileEntry
from crowdveil.io.notes import Problems, ReadNotes
from crowdveil.io.person_ids import count_case_variants, id_type, note_case_variants
from crowdveil.io.release_folder import file_system
from crowdveil.io.release_writer import area_features, area_properties
from crowdveil.io.source import Source
from crowdveil.io.times import TimeForm, far_reason, learned_form, refuse_spread
from crowdveil.io.trajectories import (
    INCOMPLETE_TRAJECTORY,
    PointColumns,
    find_point_columns,
    no_ids,
    no_value_reason,
    none_usable,
    note_ids_per_user,
    read_points,
    rows_without_ids,
    settle_points,
    with_normalized_ids,
)
from crowdveil.io.values import one_array
from crowdveil.io.written_release import AREAS_FILE
from crowdveil.io.zones import read_zones
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Sent
from crowdveil.model.canonical import point_hashes
from crowdveil.model.globe import JOINED, Reach
from crowdveil.model.projection import LocalProjection
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.time_axis import Clock
from crowdveil.model.trajectories import Extent, Trajectories
from crowdveil.model.zones import Grid, Zones
from crowdveil.reading import TrajectoryReading
from crowdveil.report.cost_summary import TrajectoryCost
from crowdveil.run.partitions import PartitionedRun, merged_facts, merged_findings
from crowdveil.run.spark.sources import (
    COUNTED,
    HEAD_ROWS,
    INSTANT,
    TIME_NOTES,
    add_time_notes,
    first_rows,
    open_data,
    quoted,
    time_notes,
    with_missing,
)
from crowdveil.run.stages import FileEntries, Findings, Guarantees, RunSpec, Solution
from crowdveil.run.trajectory_partitions import (
    FILE,
    KEY,
    PARTITION,
    SOLVED,
    TrajectoryFile,
    TrajectoryPartition,
    new_numbers,
    plan_partitions,
)
from crowdveil.run.verification import refuse_large_k, what_k_counts

PARTITION_POINTS = 100_000
"""Points of a partition, unless trajectories that must be solved together have more."""
FILE_ROWS = 1_000_000
SOLVED_FOLDER = "solved"
NO_ATTACK = "attacks on trajectories need all of them at once, so Spark makes none."
_INT, _DEGREES = pa.int64(), pa.float64()
POINT = [("lon", _DEGREES), ("lat", _DEGREES), ("t", _INT), *((name, _INT) for name in KEY)]
NOTES = [("reason", pa.int8()), *TIME_NOTES]
"""Columns that say why a row cannot be used (-1: it can), and how its time was read."""


@dataclass(frozen=True)
class PointReader(Sent):
    """Reads rows as points, with the columns trajectory and person (those that exist), `POINT` and `NOTES`; sent to executors."""

    source: Source
    columns: PointColumns
    tz: str
    form: TimeForm

    @property
    def ids(self) -> list[str]:
        """Return the columns that identify a trajectory."""
        named = {"trajectory": self.columns.trajectory, "person": self.columns.user}
        return [name for name, column in named.items() if column is not None]

    @property
    def reasons(self) -> list[str]:
        """Return why rows cannot be used, in the order of their numbers."""
        columns = self.columns
        return [
            *map(no_value_reason, (*columns.ids, columns.lat, columns.lon, columns.time)),
            far_reason(columns.time),
        ]

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the points."""
        kinds = [id_type(self.source.schema.field(column).type) for column in self.columns.ids]
        return pa.schema([*zip(self.ids, kinds, strict=True), *POINT, *NOTES])

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the points of chunks; those that cannot be used are at zero."""
        for chunk in chunks:
            rows = with_missing(chunk) if self.source.delimiter is not None else chunk
            read = with_normalized_ids(rows, self.source, self.columns)
            lon, lat, times, bad = read_points(self.source, self.columns, read, self.form)
            bad |= rows_without_ids(self.columns, read)
            reason = np.full(rows.num_rows, -1, np.int8)
            for number, why in reversed(list(enumerate(self.reasons))):
                reason[bad.get(why, np.zeros(rows.num_rows, np.bool_))] = number
            lost = reason >= 0
            t = times.values if times.instants else Clock(self.tz).to_utc(times.values)
            made: dict[str, Any] = {name: np.where(lost, 0, v) for name, v in (("lon", lon), ("lat", lat), ("t", t))}
            made |= zip(KEY, point_hashes(made["lon"], made["lat"], made["t"]), strict=True)
            made |= {name: one_array(read[column]) for name, column in zip(self.ids, self.columns.ids, strict=True)}
            made |= {"reason": reason} | time_notes(times, self.tz)
            columns = [pa.array(made[field.name]).cast(field.type) for field in self.schema]
            yield pa.record_batch(columns, schema=self.schema)


class SparkTrajectories(PartitionedRun):
    """Runs partitions of trajectories on the executors of a cluster; outlines, counts and areas come to the driver."""

    DATA_FOLDER = "trajectories.parquet"

    def __init__(self, spec: RunSpec, engine: SparkEngine) -> None:
        super().__init__(spec)
        self.engine = engine

    def read(self, notes: ReadNotes, progress: Progress) -> Trajectories:
        """Read points, and plan the partitions; return trajectories without points."""
        reading, engine = self.spec.reading, self.engine
        if not isinstance(reading, TrajectoryReading):
            raise TypeError("trajectories are read with the input options of trajectories")
        data, source, is_text = open_data(engine, self.spec.data)
        columns = find_point_columns(
            source, reading.lat, reading.lon, reading.time, reading.trajectory, reading.user, notes
        )
        first = first_rows(engine, data, source, is_text)
        what = f"{source.name}, column {columns.time}"
        form = learned_form([first[columns.time]], TimeForm(reading.time_format), what)
        zones = None
        if reading.zones is not None:
            zones = read_zones(reading.zones, zone_id=reading.zone_id, numbered=True, notes=notes)
        reader = PointReader(source, columns, reading.tz, form)
        read = engine.map_rows(data.select(*map(quoted, columns.used)), reader, reader.schema)
        self.rows = self.enter_context(engine.kept(read))
        self._settle_rows(reader, notes, progress)
        tracks = self._tracks(reader, notes)
        low, high = int(min(tracks["t"].to_pylist())), int(max(tracks["last"].to_pylist()))
        refuse_spread(low, high, form, what)
        sample = engine.gather(self.rows.where("reason < 0").select("lon", "lat").limit(HEAD_ROWS))
        lon, lat = (sample[name].to_numpy() for name in ("lon", "lat"))
        check_axes(lon, lat, (columns.lon, columns.lat), source.name, zones, None)
        ends = {name: float(getattr(np, how)(tracks[name].to_numpy())) for name, how in JOINED.items()}
        nothing, nobody = np.zeros(0, np.int64), np.zeros(0, object)
        none = np.zeros(0)
        self.frame = Trajectories(
            none, none, nothing, np.zeros(1, np.int64), nobody, nothing, nobody, columns.counts, zones=zones,
            within=Extent.around(Reach(**ends).box, low),
        )  # fmt: skip
        self.ids = reader.ids
        self.planned = plan_partitions(self.spec, tracks, reader.ids, self.frame.start, PARTITION_POINTS)
        return self.frame

    def _settle_rows(self, reader: PointReader, notes: ReadNotes, progress: Progress) -> None:
        """Note how times were read, and which rows cannot be used; raise where these may not be dropped."""
        query = f"SELECT reason, {COUNTED} FROM {{rows}} GROUP BY reason, {INSTANT}"
        counts = self.engine.gather(self.engine.sql(query, rows=self.rows), progress).to_pylist()
        column, tz = reader.columns.time, self.spec.reading.tz
        # Times of rows without ids are not read on one machine.
        known = [row for row in counts if row["reason"] < 0 or row["reason"] >= len(reader.ids)]
        add_time_notes(known, column, tz, f"{reader.source.name}, column {column}", notes)
        problems = Problems()
        for number, reason in enumerate(reader.reasons):
            if n := sum(row["n"] for row in counts if row["reason"] == number):
                problems.add_count(reason, n, [])
        settle_points(problems, reader.source, reader.columns, self.spec.reading.drop_invalid, notes)
        notes.rows = sum(row["n"] for row in counts)

    def _tracks(self, reader: PointReader, notes: ReadNotes) -> pa.Table:
        """Return the outline of each trajectory whose points can all be used."""
        ids = ", ".join(reader.ids)
        known = " AND ".join(f"{name} IS NOT NULL" for name in reader.ids)
        sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in KEY)
        east = "lon + if(lon < 0, 360.0, 0.0)"
        query = (
            f"SELECT {ids}, count(*) AS points, count_if(reason >= 0) AS lost, CAST(sum(t) AS BIGINT) AS total, "
            f"min(t) AS t, max(t) AS last, min(lon) AS west, min(lat) AS south, max(lon) AS east, max(lat) AS north, "
            f"min({east}) AS low, max({east}) AS high, {sums} FROM {{rows}} WHERE {known} GROUP BY {ids}"
        )
        every = self.engine.gather(self.engine.sql(query, rows=self.rows))
        if not len(every):
            raise no_ids(reader.source, reader.columns)
        lost = every["lost"].to_numpy()
        tracks, gone = every.filter(pa.array(lost == 0)), every.filter(pa.array(lost > 0))
        notes.drop(INCOMPLETE_TRAJECTORY, int(gone["points"].to_numpy().sum() - lost.sum()))
        if not len(tracks):
            raise none_usable(reader.source, len(every))
        if len(reader.ids) == 2 and len(every["trajectory"].unique()) < len(every):
            note_ids_per_user(notes)
        note_case_variants(count_case_variants(every[reader.ids[-1]].unique()), reader.columns.people, notes)
        return tracks

    def count_people(self) -> int | None:
        """Return the number of people in the data; None where people are not known."""
        return len(self.planned["owner"].unique()) if self.frame.k_unit == "people" else None

    def check_k(self) -> None:
        """Raise if k is larger than the people, or the trajectories, in the data."""
        counts = what_k_counts(self.frame, self.spec.params)
        refuse_large_k(self.spec.params, (counts == "people" and self.count_people()) or len(self.planned), counts)

    def solve(self, guarantees: Guarantees, progress: Progress) -> Solution:
        """Solve and check each partition."""
        spec, engine, self.guarantees = self.spec, self.engine, guarantees
        self.make_folders()
        solved = f"{self.folder}/{SOLVED_FOLDER}"
        files, path = file_system(solved)
        files.create_dir(path)
        same = " AND ".join(f"r.{name} = p.{name}" for name in self.ids)
        points = engine.sql(
            f"SELECT r.lon, r.lat, r.t, p.number, p.owner, p.{PARTITION} FROM {{rows}} r JOIN {{planned}} p ON {same}",
            rows=self.rows,
            planned=engine.table(self.planned),
        )
        function = TrajectoryPartition(spec.method.name, spec.params, self.seed, guarantees, self.frame, solved)
        count = len(self.planned[PARTITION].unique())
        self.results = engine.gather(engine.map_groups(points, PARTITION, function, SOLVED, count), progress)
        summaries = [json.loads(text) for text in self.results["summary"].to_pylist()]
        self.summaries = sorted(summaries, key=lambda summary: summary["number"])
        cost = self.cost
        squares = math.fsum(summary["squares"] for summary in self.summaries)
        meters = math.sqrt(squares / cost.trajectories) if cost.trajectories else 0.0
        far = f"distance to originals  {meters:,.1f} m (root of the mean square, in space alone)"
        return Solution(merged_facts(spec, self.summaries), cost.numbers(spec.k), [*cost.lines(), far])

    @property
    def cost(self) -> TrajectoryCost:
        """Return the information loss."""
        return sum((TrajectoryCost(**summary["cost"]) for summary in self.summaries), TrajectoryCost())

    @property
    def published_rows(self) -> int:
        """Return the number of published points."""
        return self.cost.points

    def write(self, progress: Progress) -> FileEntries:
        """Write points under their published numbers, in this order, and check each file; write the areas."""
        engine, cost, areas = self.engine, self.cost, self._areas()
        features = [] if areas is None else [{"properties": properties} for properties in area_properties(areas)]
        files = max(min(engine.slots, cost.trajectories), -(-cost.points // FILE_ROWS), 1)
        numbers = new_numbers(self.results["keys"].to_pylist(), files)
        function = TrajectoryFile(self.guarantees, features, self.data)
        solved = f"{self.folder}/{SOLVED_FOLDER}"
        rows = engine.sql(
            f"SELECT s.lat, s.lon, s.timestamp, s.place, n.published_id, n.{FILE} FROM {{solved}} s JOIN {{numbers}} n "
            "ON s.source = n.source",
            solved=engine.read(solved if self.target.is_remote else Path(solved).absolute().as_uri()),
            numbers=engine.table(numbers),
        )
        if len(numbers):
            schema, count = pa.schema([("summary", pa.string())]), len(numbers[FILE].unique())
            found = engine.gather(engine.map_groups(rows, FILE, function, schema, count), progress)
        else:
            found = function(engine.schema(rows).empty_table())
        written = [json.loads(text) for text in found["summary"].to_pylist()]
        self.written_files = sorted(written, key=lambda file: file["first"])
        folder, path = file_system(solved)
        folder.delete_dir(path)
        entries = {"data": FileEntry.of_parts(self.DATA_FOLDER, {file["file"]: file["sha256"] for file in written})}
        if areas is not None:
            write_features(area_features(areas, np.ones(len(areas), np.bool_)), self.here / AREAS_FILE)
            entries["areas"] = FileEntry.of(self.here / AREAS_FILE)
        return entries

    def _areas(self) -> Areas | None:
        """Return the tiles that any partition names, in their order; None where the method names none."""
        named = [np.frombuffer(content, np.int64) for content in self.results["tiles"].to_pylist()]
        tiles = np.unique(np.concatenate([np.zeros(0, np.int64), *named]))
        found = next((summary["grid"] for summary in self.summaries if summary["grid"] is not None), None)
        if found is not None:
            grid = Grid(LocalProjection(*found[0]), *found[1:])
            column, row = (numbers.astype(np.int32) for numbers in (tiles % grid.columns, tiles // grid.columns))
            return Areas.of_tiles(grid_zones(grid, column, row), np.arange(len(tiles), dtype=np.int32))
        if not any(summary["areas"] for summary in self.summaries):
            return None
        return Areas.of_tiles(self.frame.zones or Zones.from_ids([]), tiles.astype(np.int32))

    def verify(self, guarantees: Guarantees, progress: Progress) -> Findings:
        """Check the findings of each file; return the merged findings of the partitions with the original."""
        require_not_violated(merged_findings(guarantees, [file["findings"] for file in self.written_files]))
        last = 0
        for file in self.written_files:
            if file["last"] >= file["first"] != last + 1:
                raise GuaranteeViolatedError("the trajectories of the files are not numbered; nothing was published.")
            last = file["last"]
        return merged_findings(guarantees, [summary["findings"] for summary in self.summaries])

    def attack(self, guarantees: Guarantees, notes: ReadNotes, progress: Progress) -> list[RiskEstimate] | None:
        """Attack nothing: an adversary's candidates are all trajectories, and these are in partitions."""
        notes.add(NO_ATTACK)
        return None
