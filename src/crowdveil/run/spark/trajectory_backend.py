"""Stages of a run on Spark for trajectories."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.attacks.risk import RiskEstimate
from crowdveil.engine.spark import Frame
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io.notes import ReadNotes
from crowdveil.io.written_release import TRAJECTORY_COLUMNS
from crowdveil.methods.base import Method
from crowdveil.model.areas import Areas
from crowdveil.model.canonical import canonical_order
from crowdveil.model.projection import LocalProjection
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Grid, Zones
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.reading import TrajectoryReading
from crowdveil.report.cost_summary import TrajectoryCost
from crowdveil.run.merge_partitions import AREA, ROW, Totals, summarize_facts
from crowdveil.run.spark.backend import FILE_ROWS, SparkBackend
from crowdveil.run.spark.part_files import write_part_files
from crowdveil.run.spark.point_rows import KEY
from crowdveil.run.spark.spark_points import SparkPoints, read_spark_points, summarize_points
from crowdveil.run.spark.trajectory_partitions import (
    PLANNED,
    PUBLISHED,
    RESULT,
    PartitionPlan,
    TrajectoryPartition,
    TrajectoryPartitionReader,
)
from crowdveil.run.spark.trajectory_verification import check_trajectories
from crowdveil.run.stages import FileEntries, Findings, Guarantees, Solution
from crowdveil.run.verification import refuse_large_k, what_k_counts

PARTITION_POINTS = 100_000
"""Points of a partition, unless trajectories that must be solved together have more."""
NO_ATTACK = "attacks on trajectories need all of them at once, so none was made on Spark."


class TrajectorySparkBackend(SparkBackend):
    """Does the stages of a run whose partitions are trajectories that are solved together."""

    DATA_FOLDER = "trajectories.parquet"
    points: SparkPoints
    totals: TrajectoryTotals

    def read(self, notes: ReadNotes, progress: Progress) -> Trajectories:
        """Read points; return trajectories without any."""
        reading = self.spec.reading
        if not isinstance(reading, TrajectoryReading):
            raise TypeError("trajectories are read with the input options of trajectories")
        points = read_spark_points(self.engine, self.spec.data, reading, notes)
        self.keep(points.rows, points.tracks)
        self.points = summarize_points(self.engine, points, reading, notes, progress)
        return self.points.frame

    def check_k(self) -> None:
        """Raise if k is larger than the people, or the trajectories, in the data."""
        counts = what_k_counts(self.points.frame, self.spec.params)
        number = self.points.people if counts == "people" else self.points.trajectories
        refuse_large_k(self.spec.params, number, counts)

    def count_people(self) -> int | None:
        """Return the number of people in the data; None where people are not known."""
        return self.points.people if self.points.frame.k_unit == "people" else None

    def solve(self, guarantees: Guarantees, progress: Progress) -> Solution:
        """Plan partitions from the outlines of trajectories; solve and check each."""
        spec, points, engine = self.spec, self.points, self.engine
        ids = points.reader.ids
        plan = PartitionPlan(spec.method.name, spec.params, tuple(ids), points.frame.start, PARTITION_POINTS)
        outline = ", ".join([*plan.needs, "0 AS task"])
        tracks = engine.sql(f"SELECT {outline} FROM {{tracks}}", tracks=points.tracks)
        planned = engine.map_groups(tracks, "task", plan, plan.schema(engine.schema(tracks)), 1)
        columns = ", ".join([*(f"r.{name}" for name in ("lon", "lat", "t")), *(f"p.{name}" for name in PLANNED)])
        same = " AND ".join(f"r.{name} = p.{name}" for name in ids)

        def keyed(bins: pa.Table) -> Frame:
            return engine.sql(
                f"SELECT {columns} FROM {{rows}} r JOIN {{planned}} p ON {same} "
                "JOIN {bins} b ON p.partition_id = b.number WHERE r.note IS NULL",
                rows=points.rows,
                planned=planned,
                bins=engine.table(bins),
            )

        with engine.kept(planned):
            found = engine.gather(engine.sql("SELECT DISTINCT partition_id FROM {planned}", planned=planned))
            numbers = found["partition_id"].to_numpy()
            reader = TrajectoryPartitionReader(points.frame)
            function = TrajectoryPartition(spec.method.name, spec.params, self.seed, reader, guarantees)
            left = [np.array([number]) for number in np.sort(numbers)]
            self.totals = TrajectoryTotals.of(self.solve_partitions(left, keyed, function, RESULT, progress))
        cost = self.totals.cost
        lines = [*cost.lines(), self.totals.distance_line()]
        return Solution(self.totals.facts(spec.method, spec.params), cost.numbers(spec.k), lines)

    @property
    def published_rows(self) -> int:
        """Return the number of published points."""
        return self.totals.cost.points

    def write(self, progress: Progress) -> FileEntries:
        """Write points under new numbers of trajectories, in their order, one trajectory in one file; gather the areas."""
        engine, cost, result = self.engine, self.totals.cost, self.result
        keys = engine.gather(result.where(f"kind = '{PUBLISHED}'").select("source", *KEY))
        published = engine.sql(
            "SELECT o.lat, o.lon, o.timestamp, n.published_id, o.place FROM {rows} o JOIN {numbers} n "
            "ON o.source = n.source",
            rows=result.where(f"kind = '{ROW}'"),
            numbers=engine.table(new_numbers(keys)),
        )
        files = max(min(engine.slots, cost.trajectories), -(-cost.points // FILE_ROWS), 1)
        placed = published.repartitionByRange(files, "published_id").sortWithinPartitions("published_id", "place")
        write_part_files(engine, placed.select(*TRAJECTORY_COLUMNS), self.data, progress)
        self.areas = self._gather_areas()
        self.write_areas()
        return self.file_entries()

    def _gather_areas(self) -> Areas | None:
        """Gather the tiles that any partition names, in their order; None where the method names none."""
        query = f"SELECT DISTINCT tile FROM {{result}} WHERE kind = '{AREA}'"
        found = self.engine.gather(self.engine.sql(query, result=self.result))
        tiles, grid = np.sort(found["tile"].to_numpy()), self.totals.grid
        if grid is not None:
            zones = grid_zones(grid, (tiles % grid.columns).astype(np.int32), (tiles // grid.columns).astype(np.int32))
            return Areas.of_tiles(zones, np.arange(len(tiles), dtype=np.int32))
        if not any(partition["areas"] for partition in self.totals.partitions):
            return None
        return Areas.of_tiles(self.points.frame.zones or Zones.from_ids([]), tiles.astype(np.int32))

    def verify(self, guarantees: Guarantees, progress: Progress) -> Findings:
        """Check the written files on the cluster; return what each partition found with the original, merged."""
        require_not_violated(check_trajectories(self.engine, self.data, self.features, guarantees, progress))
        return self.totals.checked(guarantees)

    def attack(self, guarantees: Guarantees, notes: ReadNotes, progress: Progress) -> list[RiskEstimate] | None:
        """Attack nothing: an adversary's candidates are all trajectories, and these are in partitions."""
        notes.add(NO_ATTACK)
        return None


def new_numbers(published: pa.Table) -> pa.Table:
    """Return the new number of each published trajectory, from their keys, as a run on one machine does."""
    published = published.sort_by("source")
    keys = np.array([published[name].to_numpy() for name in KEY], np.int64).reshape(len(KEY), len(published))
    order, _ = canonical_order(keys, None, 0)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(1, len(order) + 1)
    return pa.table({"source": published["source"], "published_id": number})


class TrajectoryTotals(Totals):
    """Totals of trajectories."""

    @property
    def cost(self) -> TrajectoryCost:
        """Return what is published of the data."""
        return sum((TrajectoryCost(**partition["cost"]) for partition in self.partitions), TrajectoryCost())

    @property
    def grid(self) -> Grid | None:
        """Return the grid of the tiles that are named, equal in all partitions."""
        found = next((partition["grid"] for partition in self.partitions if partition["grid"] is not None), None)
        return None if found is None else Grid(LocalProjection(*found[0]), *found[1:])

    def facts(self, method: Method, params: Params) -> dict[str, Any]:
        """Return what the manifest says of the method's diagnostics in all partitions."""
        ordered = sorted(self.partitions, key=lambda partition: partition["partition_id"])
        return summarize_facts([row for partition in ordered for row in partition["figures"] or ()], method, params)

    def distance_line(self) -> str:
        """Return the distance of published trajectories to their originals; confidential."""
        n = self.cost.trajectories
        meters = math.sqrt(math.fsum(partition["squares"] for partition in self.partitions) / n) if n else 0.0
        return f"distance to originals  {meters:,.1f} m (root of the mean square, in space alone)"
