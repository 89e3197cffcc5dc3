"""Flows in partitions: groups of time steps, each solved, written, read back, verified and attacked by one function.

Partitions run one after the other on this machine, where the data is large, or on the executors of a cluster
(`crowdveil.run.spark`). A partition gives counts and small tables, which `PartitionedFlows` merges.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.attacks.risk import RiskEstimate, attack_release, merge_risk_estimates
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.errors import EmptyInputError, GuaranteeViolatedError, InputError, Text, TimeStepError
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io.atomic import scratch_folder
from crowdveil.io.derived_files import write_crosswalk, write_derived
from crowdveil.io.flows import open_rows, with_tree
from crowdveil.io.geojson import write_features
from crowdveil.io.manifest import FileEntry
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import OdColumns
from crowdveil.io.omx import is_omx
from crowdveil.io.release_folder import file_system
from crowdveil.io.release_writer import area_features, area_properties, drawn_areas, flow_table, step_table
from crowdveil.io.tables import write_table
from crowdveil.io.written_release import AREAS_FILE, WrittenRelease, read_features
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints, Mask, Sent
from crowdveil.model.flows import VISITED, Flows, FlowUnit
from crowdveil.model.release import FlowRelease
from crowdveil.model.time_axis import shortest_step
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.reading import FRAME_OPTIONS, FlowReading, with_counted_tiles, with_partition
from crowdveil.registry import find_method
from crowdveil.report.cost_summary import FlowCost
from crowdveil.run.options import ATTACKS, derive_seed
from crowdveil.run.partitions import PartitionedRun, merged_facts, merged_findings, write_part
from crowdveil.run.releases import REPORT_ROWS
from crowdveil.run.stages import FileEntries, Findings, Guarantees, RunSpec, Solution
from crowdveil.run.verification import check, check_k_feasible, refuse_large_k

STEPS_FILE = "steps.parquet"
PARTITION_ROWS = 2_000_000
"""Most rows of a partition, unless time steps that are solved together have more."""
NOTHING_USABLE = "no row can be used, or all volumes are zero. Expected at least one."


class SolvedPartition(NamedTuple):
    """The results of a partition, whose rows are in its file.

    Attributes
    ----------
    summary
        File, findings, attacks, costs and diagnostics, as JSON can hold them.
    areas
        Its areas: name, tiles as bytes, and whether they are drawn.
    steps
        Its table of time steps.
    """

    summary: dict[str, Any]
    areas: pa.Table
    steps: pa.Table


@dataclass(frozen=True)
class FlowPartition(Sent):
    """Solves a group of time steps, and writes its rows as one file of the release; sent to executors.

    Attributes
    ----------
    method, params, seed
        The method, its parameters and the seed.
    guarantees
        The guarantees that are checked on the written file.
    attack
        Whether the rows are attacked.
    folder
        Path or URI of the folder of the rows.
    starts
        Starts of all time steps of the data, to number one that fails.
    """

    method: str
    params: Params
    seed: int
    guarantees: Guarantees
    attack: bool
    folder: str
    starts: Ints

    def __call__(self, flows: Flows, number: int) -> SolvedPartition:
        """Return the results of partition `number`."""
        method = find_method(self.method)
        release = self._solve(flows).with_rounded_people(getattr(self.params, "k", None))
        name, made = f"part-{number:05}.parquet", as_written(release)
        rows, sha256 = write_part(made.data, self.folder, name)
        findings, trials = check(replace(made, data=rows), self.guarantees, flows), []
        if self.attack:
            seed = derive_seed(self.seed, ATTACKS)
            trials = attack_release(flows, release, self.guarantees, method.status, seed)
        summary = {
            "file": name,
            "sha256": sha256,
            "people": flows.total_people,
            "findings": [finding.as_json() for _, finding in findings],
            "trials": [asdict(trial) for trial in trials],
            "cost": asdict(FlowCost.of(flows, release)),
            "figures": [] if release.figures is None else release.figures.tolist(),
        }
        return SolvedPartition(summary, _area_table(release), made.steps)

    def _solve(self, flows: Flows) -> FlowRelease:
        method = find_method(self.method)
        run = method.in_partition(self.params) or method.run
        try:
            release = run(flows, self.params, np.random.default_rng(self.seed), no_progress)
        except TimeStepError as error:  # its number is one of the partition
            number = int(np.searchsorted(self.starts, flows.t[error.step - 1])) + 1
            raise TimeStepError(number, len(self.starts), error.reason) from None
        if not isinstance(release, FlowRelease):
            raise TypeError(f"{self.method} makes no flows")
        return release


def as_written(release: FlowRelease) -> WrittenRelease:
    """Return a release as its files would be read, without writing them."""
    features = [{"properties": properties} for properties in area_properties(release.areas)]
    data = flow_table(release, "parquet")(slice(0, len(release)))
    return WrittenRelease(Path("the partition"), data, step_table(release, "parquet"), features)


def _area_table(release: FlowRelease) -> pa.Table:
    areas = release.areas
    tiles = [areas.tiles[low:high].tobytes() for low, high in zip(areas.offsets[:-1], areas.offsets[1:], strict=True)]
    names = pa.array(areas.names, pa.string())
    return pa.table({"area": names, "tiles": pa.array(tiles, pa.binary()), "drawn": drawn_areas(release, areas)})


@dataclass(frozen=True)
class FlowTotals:
    """The merged results of all partitions."""

    partitions: Sequence[SolvedPartition]
    lost_units: int = 0

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """Return the summaries in the order of their files."""
        return sorted((partition.summary for partition in self.partitions), key=lambda summary: summary["file"])

    @property
    def people(self) -> int:
        """Return an upper bound of the number of people: one may be in several partitions."""
        return sum(summary["people"] for summary in self.summaries)

    @property
    def cost(self) -> FlowCost:
        """Return the information loss."""
        return sum((FlowCost(**summary["cost"]) for summary in self.summaries), FlowCost(units=self.lost_units))

    @property
    def trials(self) -> list[RiskEstimate]:
        """Return the merged result of each attack."""
        return merge_risk_estimates([[RiskEstimate(**trial) for trial in s["trials"]] for s in self.summaries])

    @property
    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each file."""
        return {summary["file"]: summary["sha256"] for summary in self.summaries}

    @property
    def steps(self) -> pa.Table:
        """Return the table of time steps."""
        return pa.concat_tables(partition.steps for partition in self.partitions).sort_by("t")

    @property
    def findings(self) -> list[list[dict[str, Any]]]:
        """Return the findings of each file."""
        return [summary["findings"] for summary in self.summaries]

    def areas(self, zones: Zones) -> tuple[Areas, Mask]:
        """Return the areas, sorted by name, and which are drawn; raise where two areas have one name."""
        table = pa.concat_tables(partition.areas for partition in self.partitions)
        found = table.group_by(["area", "tiles"]).aggregate([("drawn", "any")]).sort_by("area")
        names = found["area"].to_pylist()
        if len(set(names)) < len(names):
            raise GuaranteeViolatedError("two areas have one name, so nothing was published.")
        tiles = [np.frombuffer(content, np.int32) for content in found["tiles"].to_pylist()]
        offsets, flat = np.cumsum([0, *map(len, tiles)]), np.concatenate([np.zeros(0, np.int32), *tiles])
        return Areas(zones, np.array(names, dtype=object), offsets, flat), found["drawn_any"].to_numpy()


class PartitionedFlows(PartitionedRun):
    """Does the stages of a run of flows in partitions of time steps; each is one file."""

    DATA_FOLDER = "flows.parquet"
    frame: Flows
    """Flows without rows: zones, trees, and what k counts."""
    starts: Ints
    """Starts of all time steps, rising."""
    lost_units: int = 0
    """The weight of time steps that are in no partition, since it is rounded to no trip; in units of weights."""

    @abstractmethod
    def solve_partitions(self, function: FlowPartition, progress: Progress) -> list[SolvedPartition]:
        """Return the results of all partitions."""

    def partition_numbers(self, sizes: Ints, most: int) -> Ints:
        """Return the partition of each time step, from the rows of each: at most `most` rows, where steps can be cut there."""
        groups = self.spec.method.time_groups(self.spec.params, self.starts, self.frame.tz)
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        group = np.argsort(np.argsort(first))[group.reshape(-1)]  # numbered in the order of their first time steps
        of_group, partition, room = [], -1, 0
        for size in np.bincount(group, sizes).astype(np.int64).tolist():
            if partition < 0 or size > room:
                partition, room = partition + 1, most
            of_group.append(partition)
            room -= size
        numbers: Ints = np.array(of_group, np.int64)[group]
        return numbers

    def solve(self, guarantees: Guarantees, progress: Progress) -> Solution:
        """Solve, write, verify and attack each partition."""
        spec = self.spec
        self.make_folders()
        function = FlowPartition(
            spec.method.name, spec.params, self.seed, guarantees, spec.options.attack, self.data, self.starts
        )
        solved = self.solve_partitions(function, progress)
        self.totals = FlowTotals(solved, self.lost_units)
        refuse_large_k(spec.params, self.totals.people, self.frame.k_unit, exact=False)
        cost = self.totals.cost
        notes = []
        if spec.options.exports and not self.is_small:
            notes = [
                Text(
                    "there are more than {most:,} published rows, so the files of {export} were not written; use "
                    "longer time steps, or leave it out.",
                    most=REPORT_ROWS,
                )
            ]
        return Solution(merged_facts(spec, self.totals.summaries), cost.numbers(spec.k), cost.lines(), notes=notes)

    @property
    def published_rows(self) -> int:
        """Return the number of published flows."""
        return self.totals.cost.flows

    def write(self, progress: Progress) -> FileEntries:
        """Write the areas, the time steps and the files derived from them."""
        areas, drawn = self.totals.areas(self.frame.zones)
        write_features(area_features(areas, drawn), self.here / AREAS_FILE)
        write_table(self.totals.steps, self.here / STEPS_FILE)
        names = {"steps": STEPS_FILE, "areas": AREAS_FILE}
        exports = self.spec.options.exports if self.is_small else ()
        if exports:
            names |= write_derived(self.written(names), exports, self.frame.tz, self.here)
        else:
            names |= write_crosswalk(read_features(self.here / AREAS_FILE), self.here)
        entries = {role: FileEntry.of(self.here / name) for role, name in names.items()}
        return {"data": FileEntry.of_parts(self.DATA_FOLDER, self.totals.hashes), **entries}

    def verify(self, guarantees: Guarantees, progress: Progress) -> Findings:
        """Merge the findings of each partition's file with those on the written areas and time steps."""
        features = read_features(self.here / AREAS_FILE)
        steps = pq.read_table(self.here / STEPS_FILE)
        if not steps.equals(self.totals.steps):
            raise GuaranteeViolatedError(
                "the written time steps are not those of the partitions; nothing was published."
            )
        files, path = file_system(f"{self.data}/{self.totals.summaries[0]['file']}")
        with files.open_input_file(path) as file:
            none = pq.read_schema(file).empty_table()
        rest = check(WrittenRelease(self.here, none, steps.slice(0, 0), features), guarantees, self.frame)
        of_rest = [finding.as_json() for _, finding in rest]
        merged = merged_findings(guarantees, [*self.totals.findings, of_rest])
        require_not_violated(merged)
        return merged

    def attack(self, guarantees: Guarantees, notes: ReadNotes, progress: Progress) -> list[RiskEstimate] | None:
        """Merge the attacks on all partitions."""
        return self.totals.trials


def frame_of(zones: Zones, reading: FlowReading, columns: OdColumns, step_s: int | None) -> Flows:
    """Return flows without rows, with the parts that all partitions share."""
    none, nowhere = np.zeros(0, np.int64), np.zeros(0, np.int32)
    counts: FlowUnit = "people" if columns.user is not None or columns.people is not None else "trips"
    flows = Flows(
        zones, none, np.zeros(1, np.int64), nowhere, nowhere, none, none, counts,
        tz="UTC" if step_s is None else reading.tz, weight=None if columns.weight is None else none, step_s=step_s,
    )  # fmt: skip
    flows = flows if reading.hierarchy is None else with_tree(flows, reading.hierarchy)
    flows = with_counted_tiles(flows, reading.min_tiles_of, reading.zones, reading.zone_id)
    return with_partition(flows, reading.partition)


def with_frame(flows: Flows, frame: Flows) -> Flows:
    """Return the flows of a partition with the parts that all partitions share."""
    return replace(
        flows, step_s=frame.step_s, origin_tree=frame.origin_tree, destination_tree=frame.destination_tree,
        partition=frame.partition, counted=frame.counted,
    )  # fmt: skip


LARGE_INPUT = 512 * 1024**2
"""Bytes of the files of an input that runs in partitions on one machine."""


def runs_in_partitions(spec: RunSpec) -> bool:
    """Return whether a run on this machine is done in partitions: its input is large, and nothing needs all rows at once."""
    options, reading = spec.options, spec.reading
    if not isinstance(reading, FlowReading) or spec.method.partitioning(spec.params) is not None:
        return False
    if reading.min_tiles_of == VISITED or reading.bbox is not None or reading.fold is not None:
        return False
    if options.ledger is not None or spec.data_name is not None or options.table_format(spec.data, None) == "csv":
        return False
    path = Path(spec.data) if isinstance(spec.data, str | Path) else None
    if path is None or not path.exists() or is_omx(path):
        return False
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files) > LARGE_INPUT


class LocalPartitions(PartitionedFlows):
    """Runs the partitions of a large input one after the other on this machine; the rows are staged on the disk."""

    def read(self, notes: ReadNotes, progress: Progress) -> Flows:
        """Stage the rows; return flows without rows."""
        reading = self.spec.reading
        if not isinstance(reading, FlowReading):
            raise TypeError("flows are read with the input options of flows")
        given = {name: getattr(reading, name) for name in FlowReading.model_fields if name not in FRAME_OPTIONS}
        grouping = open_rows(self.spec.data, notes=notes, **given)
        self.rows = grouping.stage(Path(self.enter_context(scratch_folder())))
        self.starts, reader = self.rows.starts, grouping.reader
        step_s = None if grouping.steps is None else grouping.steps.step_s
        step_s = shortest_step(self.starts, reader.tz) if grouping.own_steps else step_s
        frame = frame_of(self.rows.zones, reading, reader.columns, step_s)
        self.frame = replace(frame, distinct_people=grouping.people)
        return self.frame

    def count_people(self) -> int | None:
        """Return the number of people in the data; None where their number is not known."""
        return self.frame.distinct_people

    def check_k(self) -> None:
        """Raise if k is larger than the people in the data, or the data lacks something that the method needs."""
        if self.frame.distinct_people is not None:
            check_k_feasible(self.frame, self.spec.params)
        self.spec.method.check_data(self.frame, self.spec.params)

    def solve_partitions(self, function: FlowPartition, progress: Progress) -> list[SolvedPartition]:
        """Return the results of all partitions."""
        numbers = self.partition_numbers(self.rows.sizes, PARTITION_ROWS)
        count = int(numbers.max(initial=-1)) + 1
        solved = []
        for number in range(count):
            try:
                flows = self.rows.flows(numbers == number, members=self.spec.method.needs_person_ids)
            except EmptyInputError as error:  # all volumes are 0
                self.lost_units += error.units
            else:
                solved.append(function(with_frame(flows, self.frame), number))
            progress(number + 1, count)
        if not solved:
            raise InputError(NOTHING_USABLE)
        return solved
