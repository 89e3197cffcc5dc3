"""Stages of a run on Spark for trips and flows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.attacks.risk import RiskEstimate
from crowdveil.engine.spark import Frame
from crowdveil.errors import Option
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io.derived_files import write_crosswalk, write_derived
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_grouping import refuse_tiny_weights
from crowdveil.io.tables import write_table
from crowdveil.io.written_release import AREAS_FILE
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import step_classes
from crowdveil.progress import Progress
from crowdveil.reading import FlowReading
from crowdveil.run.flow_partitions import PartitionSolver, file_schema
from crowdveil.run.merge_partitions import (
    AREA,
    ROW,
    AreasOfPartitions,
    FlowTotals,
    even_partitions,
    summarize_facts,
)
from crowdveil.run.releases import REPORT_ROWS
from crowdveil.run.spark.backend import (
    FILE_ROWS,
    SparkBackend,
    partition_bins,
)
from crowdveil.run.spark.flow_partitions import PACKED_RESULTS, FlowPartition
from crowdveil.run.spark.part_files import ParquetMaker, write_parquet_files
from crowdveil.run.spark.release_verification import check_flows
from crowdveil.run.spark.shared_partition import (
    SharedStage,
    facts_by_class,
    find_boxes_of_whole_classes,
    find_shared_boxes,
)
from crowdveil.run.spark.spark_trips import (
    SparkTrips,
    read_spark_trips,
    summarize_trips,
)
from crowdveil.run.spark.trip_rows import FlowPartitionReader
from crowdveil.run.stages import FileEntries, Findings, Guarantees, LedgerAudit, Solution
from crowdveil.run.verification import refuse_large_k

STEPS_FILE = "steps.parquet"


class FlowSparkBackend(SparkBackend):
    """Does the stages of a run whose partitions are whole time steps."""

    DATA_FOLDER = "flows.parquet"
    trips: SparkTrips
    totals: FlowTotals
    files: FileEntries
    packed_rows: pa.Schema
    """Columns of the packed rows of a release."""
    audited: Flows
    """The flows of the source records, where a ledger is named."""

    def read(self, notes: ReadNotes, progress: Progress) -> Flows:
        """Read trips or flows into packed rows by time step; return flows without rows."""
        spec, reading = self.spec, self.spec.reading
        if not isinstance(reading, FlowReading):
            raise TypeError("flows are read with the input options of flows")
        visited = getattr(spec.params, "min_inhabited_tiles", 0) > 0  # the only choice of a method that asks for it
        trips = read_spark_trips(self.engine, spec.data, reading, notes)
        self.keep(trips.rows)
        self.trips = summarize_trips(
            self.engine, trips, reading, notes, visited=visited, k=spec.k or 0, progress=progress
        )
        return self.trips.frame

    def check_k(self) -> None:
        """Raise if k is larger than the people or trips in the data, or the data lacks what the method needs."""
        trips = self.trips
        refuse_large_k(self.spec.params, trips.crowd, trips.frame.k_unit, exact=trips.crowd_is_exact)
        self.spec.method.check_data(trips.frame, self.spec.params)

    def solve(self, guarantees: Guarantees, progress: Progress) -> Solution:
        """Solve, check and attack each partition of time steps."""
        spec, trips = self.spec, self.trips
        members = spec.method.needs_person_ids
        reader = FlowPartitionReader(trips.reader.schema, trips.reader.steps, trips.frame, members)
        partitions = self._partitions(np.arange(len(trips.numbers)))
        shared = self._shared_boxes(reader, progress)
        least = self._overlaps_earlier()
        solver = PartitionSolver.of(
            spec, self.seed, guarantees, trips.frame, trips.starts, shared=shared, least_people=least
        )
        function = FlowPartition(solver, reader)
        self.packed_rows = solver.rows
        lines = self.solve_partitions(partitions, self._keyed, function, PACKED_RESULTS, progress)
        self.totals = FlowTotals.of(lines)
        if not self.totals.partitions:
            refuse_tiny_weights(trips.reader.source.name)
        refuse_large_k(spec.params, self.totals.crowd, trips.frame.k_unit)
        solution = replace(self.totals.solution(spec), notes=self._omitted_files())
        if not shared:
            return solution
        return replace(solution, facts=summarize_facts(facts_by_class(shared), spec.method, spec.params))

    def _overlaps_earlier(self) -> bool:
        """Return whether an earlier release in the ledger shares records, with the hashes that executors make of them."""
        recorder = self.recorder
        if recorder is None:
            return False
        from crowdveil.ledger.candidates import known_columns  # here, since few runs have a ledger
        from crowdveil.run.spark.source_records import read_spark_records

        ledger = recorder.ledger
        self.enter_context(ledger.locked())
        inputs, self.audited = read_spark_records(
            self.engine, self.spec.data, self.trips, known_columns(ledger), ledger.key
        )
        return recorder.overlaps(self.spec, inputs)

    def _omitted_files(self) -> list[str]:
        """Return a sentence where files that were asked for are not written, since there are too many rows to fetch."""
        if not self.spec.options.exports or self.fits_here:
            return []
        return [
            f"there are more than {REPORT_ROWS:,} published rows, so the files of {Option('export')} were not written; use "
            "longer time steps, or leave it out."
        ]

    def _keyed(self, bins: pa.Table) -> Frame:
        """Return the packed rows of some time steps, with the partition of each."""
        return self.engine.sql(
            "SELECT r.packed, b.partition_id FROM {rows} r JOIN {bins} b ON r.step = b.number WHERE r.note IS NULL",
            rows=self.trips.rows,
            bins=self.engine.table(bins),
        )

    def _partitions(self, which: Ints) -> list[Ints]:
        """Put time steps, given by their places, into partitions of about one size; windows are whole."""
        spec, trips = self.spec, self.trips
        shared = spec.method.shared(spec.params)
        unit = spec.method.time_units(spec.params, trips.frame.tz).number(trips.starts[which])
        if shared is not None:  # time steps of a class come together
            unit = step_classes(trips.starts[which], trips.frame.tz, shared.by) * len(trips.numbers) + which
        units, of_step = np.unique(unit, return_inverse=True)
        sizes = np.zeros(len(units), np.int64)
        np.add.at(sizes, of_step, trips.sizes[which])
        found = even_partitions(sizes, self.engine.slots)
        return [trips.numbers[which[np.isin(of_step, partition)]] for partition in found]

    def _shared_boxes(self, reader: FlowPartitionReader, progress: Progress) -> dict[int, Sequence[Any]]:
        """Find the boxes of each class of time steps, where one partition of the map is for all of them."""
        spec, trips = self.spec, self.trips
        shared = spec.method.shared(spec.params)
        if shared is None:
            return {}
        classes = step_classes(trips.starts, trips.frame.tz, shared.by)
        stage = SharedStage(spec.method.name, spec.params, reader)
        if shared.needs_flows:
            by_class = pa.table({"number": trips.numbers, "partition_id": classes})
            return find_boxes_of_whole_classes(self.engine, stage, self._keyed(by_class), classes, progress)
        every = self._partitions(np.arange(len(trips.numbers)))
        rows = partial(self._keyed, partition_bins(every))
        return find_shared_boxes(self.engine, stage, rows, len(every), classes, progress)

    @property
    def published_rows(self) -> int:
        """Return the number of published flows."""
        return self.totals.cost.flows

    def write(self, progress: Progress) -> FileEntries:
        """Write the rows of the release as part files, and its time steps and areas here."""
        rows = self.result.where(f"kind = '{ROW}'").select("packed")
        files = max(self.engine.slots, -(-self.published_rows // FILE_ROWS))
        tz = self.trips.frame.tz if self.trips.frame.step_s is not None else "UTC"
        schema = file_schema(self.packed_rows, tz, intervals=self.totals.has_intervals)
        maker = ParquetMaker(self.packed_rows, schema)
        write_parquet_files(self.engine, rows.coalesce(files), maker, self.data, progress)
        self._gather_areas()
        self.steps = self.totals.steps_table(tz)
        write_table(self.steps, self.here / STEPS_FILE)
        self.write_areas()
        small = {"steps": STEPS_FILE} | self._derived(tz)
        self.files = self.file_entries(**{role: self.here / name for role, name in small.items()})
        return self.files

    def _derived(self, tz: str) -> dict[str, str]:
        """Write the crosswalk and the further files that were asked for here; return their names by role."""
        exports = self.spec.options.exports
        if not exports or not self.fits_here:
            return write_crosswalk(self.features, self.here)
        written = self.fetch({"data": self.DATA_FOLDER, "steps": STEPS_FILE, "areas": AREAS_FILE})
        return write_derived(written, exports, "parquet", tz, self.here)

    def _gather_areas(self) -> None:
        """Gather the areas that any partition names; raise if two partitions define one differently."""
        found = AreasOfPartitions()
        found.add(self.engine.gather(self.result.where(f"kind = '{AREA}'").select("area", "tiles", "drawn").distinct()))
        self.areas, self.drawn = found.merged(self.trips.frame.zones)

    def verify(self, guarantees: Guarantees, progress: Progress) -> Findings:
        """Check the written files on the cluster; return what each partition found with the original, merged."""
        rows = self.engine.read(self.data)
        # Also where each interval is one time step: the suppression budget is that of a window.
        units = self.spec.method.time_units(self.spec.params, self.trips.frame.tz)
        require_not_violated(check_flows(self.engine, rows, self.steps, self.features, units, guarantees, progress))
        return self.totals.checked(guarantees)

    def attack(self, guarantees: Guarantees, notes: ReadNotes, progress: Progress) -> list[RiskEstimate] | None:
        """Merge the attacks that were made on each partition."""
        return self.totals.trials

    def audit(self, counts: str) -> LedgerAudit:
        """Audit the written files on the driver."""
        if self.recorder is None:
            raise RuntimeError("a run without a ledger is not audited")
        written = self.fetch({role: entry["name"] for role, entry in self.files.items()})
        return self.recorder.audit(self.spec, self.audited, written, counts)
