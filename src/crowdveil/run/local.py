"""Runs on this machine: the data and the release are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.attacks.continuity import continuity_lines, with_continuity
from crowdveil.attacks.known_points import measured_lines
from crowdveil.attacks.risk import RiskEstimate, attack_release
from crowdveil.engine.progress import Progress
from crowdveil.io.atomic import check_target, new_folder
from crowdveil.io.derived_files import write_crosswalk, write_derived
from crowdveil.io.manifest import FileEntry, Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.pairing import PairingWriter, open_pairing
from crowdveil.io.release_writer import write_release
from crowdveil.io.written_release import MANIFEST_FILE, WrittenRelease, read_features, read_release
from crowdveil.ledger.candidates import inputs_of
from crowdveil.measures.trajectory.distortion import measure_distortion
from crowdveil.model.canonical import numbered
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.reading import read
from crowdveil.report.cost_summary import cost_lines, cost_of
from crowdveil.run.ledgers import Recorder, open_recorder
from crowdveil.run.options import ATTACKS, derive_seed, drawn_seed
from crowdveil.run.releases import add_report
from crowdveil.run.stages import Backend, FileEntries, Findings, Guarantees, LedgerAudit, RunSpec, Solution
from crowdveil.run.verification import check, check_k_feasible, what_k_counts


class LocalBackend(Backend):
    """Does all stages in this process."""

    output: Path
    data: Flows | Trajectories
    release: Release
    written: WrittenRelease

    recorder: Recorder | None = None

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(spec)
        self.output, self.folder = Path(spec.output), Path()
        self.files: dict[str, str] = {}

    def check_target(self) -> None:
        """Raise unless the release and the confidential files can be written; open the pairing."""
        options, output = self.spec.options, self.output
        check_target(output.absolute(), overwrite=options.overwrite, mark_file=MANIFEST_FILE)
        self.recorder = open_recorder(self.spec, self.output)
        self.seed = drawn_seed(options.seed)
        pairing = None if options.pairing is None else Path(options.pairing)
        self.keep_pairing: PairingWriter = self.enter_context(
            open_pairing(pairing, output, overwrite=options.overwrite)
        )

    def read(self, notes: ReadNotes, progress: Progress) -> Flows | Trajectories:
        """Read the data into memory."""
        spec = self.spec
        self.data = read(spec.method.takes, spec.data, spec.reading, notes, person_ids=spec.method.needs_person_ids)
        return self.data

    def check_k(self) -> None:
        """Raise if k is larger than the data, or the data lacks something that the method needs."""
        check_k_feasible(self.data, self.spec.params)
        self.spec.method.check_data(self.data, self.spec.params)

    def count_people(self) -> int | None:
        """Return the number of people in the data; None where people, or their number, are not known."""
        data = self.data
        if data.k_unit != "people" or (isinstance(data, Flows) and not data.total_people_is_exact):
            return None
        return data.total_people

    def solve(self, guarantees: Guarantees, progress: Progress) -> Solution:
        """Run the method; trajectories get their new numbers, and their pairing is kept if it is asked for."""
        method, data = self.spec.method, self.data
        self.release = method.run(data, self.spec.params, np.random.default_rng(self.seed), progress)
        if isinstance(self.release, TrajectoryRelease):
            self.release = numbered(self.release)
        if isinstance(self.release, TrajectoryRelease) and isinstance(data, Trajectories):
            self.release = with_continuity(data, self.release)
        overlaps, ledger_lines = self._settle_with_ledger()
        if isinstance(self.release, FlowRelease):
            self.release = self.release.with_rounded_people(self.spec.k, least=overlaps)
        if isinstance(data, Trajectories):
            self.keep_pairing(data, self._source)
        cost = cost_of(data, self.release)
        lines = [
            *ledger_lines,
            *cost_lines(data, self.release, cost),
            *measured_lines(self.release.facts),
            *continuity_lines(self.release.facts),
        ]
        numbers, distortion = cost.numbers(self.spec.k), None
        if isinstance(data, Trajectories) and isinstance(self.release, TrajectoryRelease):
            distortion = measure_distortion(data, self.release, self.spec.k)
            self.release = replace(self.release, point=None)
            data.forget_meters()  # as large as the data, and rarely needed from here on
        return Solution(self.release.facts, numbers, lines, self.release, [], distortion)

    def _settle_with_ledger(self) -> tuple[bool, list[str]]:
        """Keep earlier values where few people changed, if asked to.

        Return whether an earlier release shares records, and lines that say how many rows were kept. No other run changes the
        ledger until this one ends.
        """
        recorder, data, release = self.recorder, self.data, self.release
        if recorder is None or not isinstance(data, Flows) or not isinstance(release, FlowRelease):
            return False, []

        self.enter_context(recorder.ledger.locked())
        overlaps = recorder.overlaps(self.spec, inputs_of(recorder.ledger, self.spec.data, self.spec.reading, data))
        if not self.spec.options.keep_unchanged:
            return overlaps, []
        counts = what_k_counts(data, self.spec.params)
        self.release, lines = recorder.unchanged(self.spec, data, release, counts)
        return overlaps, lines

    @property
    def _source(self) -> Any:
        return getattr(self.release, "source", None)

    def make_folder(self) -> None:
        """Make the folder that becomes the release when it is published."""
        folder = new_folder(self.output, overwrite=self.spec.options.overwrite, mark_file=MANIFEST_FILE)
        self.folder = self.enter_context(folder)

    def write(self, progress: Progress) -> FileEntries:
        """Write the tables to a folder that becomes the release when it is published."""
        options = self.spec.options
        self.make_folder()
        table_format = options.table_format(self.spec.data, self.spec.data_name)
        self.files = write_release(self.release, self.folder, table_format, self.spec.data_name)
        if isinstance(self.release, FlowRelease):
            self.files |= self._write_derived(options.exports, self.release.tz)
        return {role: FileEntry.of(self.folder / name) for role, name in self.files.items()}

    def _write_derived(self, exports: Sequence[str], tz: str) -> dict[str, str]:
        """Write the derived files. Rows take long to read, and the crosswalk needs the areas alone."""
        if not exports:
            return write_crosswalk(read_features(self.folder / self.files["areas"]), self.folder)
        return write_derived(read_release(self.folder, self.files), exports, tz, self.folder)

    def verify(self, guarantees: Guarantees, progress: Progress) -> Findings:
        """Read the files back, and check each guarantee on them and against the original."""
        self.written = read_release(self.folder, self.files)
        return check(self.written, guarantees, self.data, self._source)

    def attack(self, guarantees: Guarantees, notes: ReadNotes, progress: Progress) -> list[RiskEstimate] | None:
        """Attack the release, with draws that are not those of the method."""
        seed, status = derive_seed(self.seed, ATTACKS), self.spec.method.status
        return attack_release(self.data, self.release, guarantees, status, seed, progress)

    def audit(self, counts: str) -> LedgerAudit:
        """Audit the written release against the ledger's entries."""
        if self.recorder is None or not isinstance(self.data, Flows):
            raise RuntimeError("a run without a ledger is not audited")
        return self.recorder.audit(self.spec, self.data, self.written, counts)

    def report(self, manifest: Manifest, notes: ReadNotes) -> Manifest:
        """Write the report into the temporary folder."""
        add_report(self.folder, self.written, manifest)
        return manifest

    def publish(self, manifest: Manifest) -> Path:
        """Write the manifest, and move the temporary folder to its place."""
        manifest.write(self.folder)
        self.put_in_place(self.folder, manifest)
        return self.output
