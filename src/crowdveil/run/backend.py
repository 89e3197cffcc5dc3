"""Define the backend of a run: the stages that `crowdveil.run.pipeline` calls, in its order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack, nullcontext
from pathlib import Path

from crowdveil.attacks.risk import RiskEstimate
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress
from crowdveil.run.stages import FileEntries, Findings, Guarantees, LedgerAudit, Recorder, RunSpec, Solution


class Backend(ExitStack, ABC):
    """Does the stages of one run; each verb is called once, in the order of declaration.

    It is a stack of what must be closed or undone: the temporary folder of the release, kept time steps, cached rows. `publish`
    closes it; where a stage fails, leaving the backend's context undoes all.
    """

    output: Path | str
    recorder: Recorder | None = None
    """What audits and records the release, where a ledger is named."""

    def __init__(self, spec: RunSpec) -> None:
        super().__init__()
        self.spec = spec

    def put_in_place(self, folder: Path, manifest: Manifest) -> None:
        """Close the backend, which moves the release to its place, and record it in the ledger; `folder` has its small files."""
        with nullcontext() if self.recorder is None else self.recorder.recorded(folder, manifest):
            self.close()

    @abstractmethod
    def check_target(self) -> None:
        """Raise unless all output files of the run can be written."""

    @abstractmethod
    def read(self, notes: ReadNotes, progress: Progress) -> Flows | Trajectories:
        """Read the data; on a cluster, return a model without rows: zones, trees, and what k counts."""

    @abstractmethod
    def check_k(self) -> None:
        """Raise if k is larger than the number of people, or of what k counts, in the data."""

    def count_people(self) -> int | None:
        """Return the number of people in the data; None where people, or their number, are not known."""
        return None

    @abstractmethod
    def solve(self, guarantees: Guarantees, progress: Progress) -> Solution:
        """Run the method."""

    @abstractmethod
    def write(self, progress: Progress) -> FileEntries:
        """Write the tables of the release to a temporary folder; return them by role, with their hashes."""

    @abstractmethod
    def verify(self, guarantees: Guarantees, progress: Progress) -> Findings:
        """Read the files back; check each guarantee on them and against the original. Raise where files violate one."""

    @abstractmethod
    def attack(self, guarantees: Guarantees, notes: ReadNotes, progress: Progress) -> list[RiskEstimate] | None:
        """Attack the release; None where that cannot be done here."""

    def audit(self, counts: str) -> LedgerAudit:
        """Audit the release against the ledger's entries; raise where a small set could be derived. `counts`: what k counts."""
        raise NotImplementedError

    @abstractmethod
    def report(self, manifest: Manifest, notes: ReadNotes) -> Manifest:
        """Write the reports that are asked for; return the manifest with the public one."""

    @abstractmethod
    def publish(self, manifest: Manifest) -> Path | str:
        """Write the manifest, and move the temporary folder to its place, which is returned."""
