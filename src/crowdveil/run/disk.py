"""Runs on this machine with more flows than memory has room for: they stay on the disk, and are solved in parts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.attacks.risk import RiskEstimate
from crowdveil.errors import Option, ParameterError
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io.column_files import ColumnFiles, columns_in_files
from crowdveil.io.derived_files import write_crosswalk
from crowdveil.io.geojson import write_features
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_writer import area_features
from crowdveil.io.tables import CHUNK_ROWS, in_dictionaries, open_parquet, write_table
from crowdveil.io.time_windows import TimeUnits
from crowdveil.io.written_release import AREAS_FILE, read_features, read_release
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress
from crowdveil.run.flow_partitions import PartitionSolver, file_schema
from crowdveil.run.local import LocalBackend
from crowdveil.run.manifest import file_entry
from crowdveil.run.merge_partitions import AreasOfPartitions, FlowTotals, split_by_size
from crowdveil.run.release_partitions import check_in_parts
from crowdveil.run.releases import REPORT_ROWS, add_report, without_report
from crowdveil.run.stages import FileEntries, Findings, Guarantees, RunSpec, Solution

MEMORY_ROWS = 50_000_000
"""Flows that are held in memory, unless the disk is asked for."""
PART_ROWS = 1_000_000
"""Flows that are solved together, and rows of a release that are checked together, unless one window has more."""
PARTS_FOLDER = "parts"


def why_in_memory(spec: RunSpec) -> str | None:
    """Return why a run must hold all flows in memory; None if they can stay on the disk."""
    method, options = spec.method, spec.options
    if method.takes is not Flows:
        return f"{method.name} is for trajectories"
    reason = method.partitioning(spec.params)
    if reason is not None:
        return f"{method.name} cannot be done in parts, since {reason}"
    if method.shared(spec.params) is not None:
        return "one partition of the map is for all time steps"
    if isinstance(spec.data, Flows):
        return "the flows are in memory already"
    if options.table_format(spec.data, spec.data_name) == "csv":
        return f"the tables are CSV, and it writes Parquet alone ({Option('format', 'parquet')})"
    for name in ("exports", "resume", "ledger"):
        if getattr(options, name):
            return "further files, a ledger and resuming need all rows at once"
    if getattr(spec.reading, "like", None) is not None or getattr(spec.reading, "fold", None) is not None:
        return "rows of all time steps are compared"
    return None


class DiskBackend(LocalBackend):
    """Does the stages in parts of whole time steps or windows, where there are many flows; else as in memory."""

    files_of_columns: ColumnFiles
    totals: FlowTotals
    in_parts = False

    def check_target(self) -> None:
        """Raise unless all files can be written, and the run can be done in parts if that is asked for."""
        reason = why_in_memory(self.spec)
        if reason is not None and self.spec.options.rows_in == "disk":
            raise ParameterError(Option("rows_in", "disk"), f"{reason}; leave it out.")
        self.can_be_in_parts = reason is None
        super().check_target()

    def read(self, notes: ReadNotes, progress: Progress) -> Flows | Trajectories:
        """Read the flows into files that are mapped into memory, if there are many."""
        if not self.can_be_in_parts:
            return super().read(notes, progress)
        most = 0 if self.spec.options.rows_in == "disk" else MEMORY_ROWS
        with columns_in_files(above=most) as self.files_of_columns:
            data = super().read(notes, progress)
        self.in_parts = len(data) > most
        self.files_of_columns.drop_pages()
        return data

    def solve(self, guarantees: Guarantees, progress: Progress) -> Solution:
        """Solve, check and attack one part after the other, and keep its rows in a file."""
        if not self.in_parts or not isinstance(self.data, Flows):
            return super().solve(guarantees, progress)
        spec, data = self.spec, self.data
        solver = PartitionSolver.of(spec, self.seed, guarantees, data, data.t)
        self.make_folder()
        # Next to the release, not where temporary files are: it is as large, and is found and removed should this run be killed.
        self.parts_folder = self.folder / PARTS_FOLDER
        self.parts_folder.mkdir()
        self.rows = solver.rows
        self.areas_found = AreasOfPartitions()
        visited, summaries, done = data.visited, [], 0
        for number, steps in enumerate(self._parts()):
            dropped = 0 if number else data.dropped_weight  # which belongs to no time step
            flows = replace(data.at_steps(steps), visited_tiles=visited, dropped_weight=dropped)
            solved = solver(flows, partial(_shifted, progress, done, data.steps))
            pq.write_table(solved.rows, self._part(number), compression="lz4", use_dictionary=True)
            self.areas_found.add(solved.areas)
            summaries.append(solved.summary)
            done += len(steps)
            del solved, flows
            self.files_of_columns.drop_pages()
        self.totals = FlowTotals.of_partitions(summaries)
        return self.totals.solution(spec)

    def _parts(self) -> list[Ints]:
        """Return the numbers of the time steps of each part: whole windows, of about `PART_ROWS` flows."""
        data = self.data
        if not isinstance(data, Flows):
            raise TypeError("parts are of flows")
        unit = self._units.number(data.t)
        starts = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
        sizes = np.add.reduceat(np.diff(data.offsets), starts)
        bounds = np.append(starts, data.steps)
        return [np.arange(bounds[part[0]], bounds[part[-1] + 1]) for part in split_by_size(sizes.tolist(), PART_ROWS)]

    @property
    def _units(self) -> TimeUnits:
        """What of time is in one part: a time step or a window, of which the suppression budget may be, with intervals or not."""
        return self.spec.method.time_units(self.spec.params, getattr(self.data, "tz", "UTC"))

    def _part(self, number: int) -> Path:
        return self.parts_folder / f"{number:06}.parquet"

    def write(self, progress: Progress) -> FileEntries:
        """Write the rows of all parts to one table, the time steps and the areas."""
        if not self.in_parts or not isinstance(self.data, Flows):
            return super().write(progress)
        data, folder = self.data, self.folder
        tz = data.tz if data.step_s is not None else "UTC"
        schema = file_schema(self.rows, tz, intervals=self.totals.has_intervals)
        self.files = {"data": self.spec.data_name or "flows.parquet", "steps": "steps.parquet", "areas": AREAS_FILE}
        files = sorted(self.parts_folder.iterdir())
        parts = (pq.read_table(file, columns=schema.names).cast(schema) for file in files)
        _write_rows(parts, schema, folder / self.files["data"], self.totals.cost.flows)
        shutil.rmtree(self.parts_folder)
        write_table(self.totals.steps_table(tz), folder / self.files["steps"])
        areas, drawn = self.areas_found.merged(data.zones)
        write_features(area_features(areas, drawn), folder / AREAS_FILE)
        self.files |= write_crosswalk(read_features(folder / AREAS_FILE), folder)
        return {role: file_entry(folder / name) for role, name in self.files.items()}

    def verify(self, guarantees: Guarantees, progress: Progress) -> Findings:
        """Check the written files part by part; return what each part found with the original, merged."""
        if not self.in_parts:
            return super().verify(guarantees, progress)
        small = read_release(self.folder, {**self.files, "data": self.files["steps"]})
        file = self.folder / self.files["data"]
        require_not_violated(check_in_parts(file, small.steps, small.features, self._units, guarantees, PART_ROWS))
        return self.totals.checked(guarantees)

    def attack(self, guarantees: Guarantees, notes: ReadNotes, progress: Progress) -> list[RiskEstimate] | None:
        """Merge the attacks that were made on each part."""
        return self.totals.trials if self.in_parts else super().attack(guarantees, notes, progress)

    def report(self, manifest: dict[str, Any], notes: ReadNotes) -> dict[str, Any]:
        """Write the report, if the published rows are few enough to be held in memory."""
        if not self.in_parts:
            return super().report(manifest, notes)
        if self.totals.cost.flows > REPORT_ROWS:
            return without_report(manifest, notes)
        add_report(self.folder, read_release(self.folder, self.files), manifest)
        return manifest


def _shifted(progress: Progress, before: int, count: int, done: int, total: int) -> None:
    """Report progress of a part as that of the whole."""
    progress(before + done, count)


def _write_rows(tables: Iterator[pa.Table], schema: pa.Schema, path: Path, rows: int) -> None:
    """Write tables of so many rows as one: the bytes are those of a table in memory."""
    first = next((table for table in tables if len(table)), None)
    held = schema.empty_table()
    if first is None:
        write_table(held, path)
        return
    written = in_dictionaries if rows > CHUNK_ROWS else pa.Table.combine_chunks
    with open_parquet(path, written(schema.empty_table()).schema) as writer:
        for table in chain([first], tables, [None]):
            held = held if table is None else pa.concat_tables([held, table])
            while len(held) >= CHUNK_ROWS or (table is None and len(held)):
                writer.write_table(written(held.slice(0, CHUNK_ROWS)))
                held = held.slice(CHUNK_ROWS)
