"""The stages of a run, which `crowdveil.run.pipeline` calls in its order, and the data that they pass on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from crowdveil.attacks.risk import RiskEstimate
from crowdveil.engine.progress import Progress
from crowdveil.errors import Text
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.manifest import FileEntry, LedgerEntry, Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.release import Release
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.reading import Reading
from crowdveil.run.options import RunOptions

Guarantees = tuple[Guarantee, ...]
Findings = list[tuple[Guarantee, Finding]]
FileEntries = dict[str, FileEntry]
"""Files of a release by role, each with name and hash, as the manifest lists them."""


@dataclass(frozen=True)
class RunSpec:
    """A request whose method is known and whose parameters and options are valid."""

    method: Method
    params: Params
    reading: Reading
    options: RunOptions
    data: Any
    output: Path | str
    data_name: str | None = None

    @property
    def seed_given(self) -> bool:
        """Whether the run is reproducible."""
        return self.options.seed is not None

    @property
    def k(self) -> int | None:
        """The smallest group size, where the method has one."""
        return getattr(self.params, "k", None)


@dataclass(frozen=True)
class Solution:
    """A solved release, as the pipeline sees it.

    Attributes
    ----------
    facts, cost
        Diagnostics of the method and the information loss, for the manifest.
    cost_lines
        The information loss for the person who ran it. Exact totals are confidential.
    release
        The release; None where it stays on a cluster.
    notes
        Sentences about this run.
    distortion
        For trajectories, how far points were moved, and lengths, speeds and coverage; None where it was not measured.
    """

    facts: Mapping[str, Any]
    cost: dict[str, Any]
    cost_lines: list[str]
    release: Release | None = None
    notes: list[Text] = field(default_factory=list)
    distortion: dict[str, Any] | None = None


@dataclass(frozen=True)
class LedgerAudit:
    """The audit of a release that passed.

    Attributes
    ----------
    statement
        The manifest's statement: the entry that the release becomes, and how it was audited.
    lines
        Sentences for the person who ran it. Confidential.
    """

    statement: LedgerEntry
    lines: list[str]


class Recorder(Protocol):
    """An object that records a release in a ledger."""

    def recorded(self, folder: Path, manifest: Manifest) -> AbstractContextManager[None]:
        """Record a release that is moved to its place inside."""


class Backend(ExitStack, ABC):
    """Does the stages of one run; each method is called once, in the order of declaration.

    It is a stack of resources to close or undo: the temporary folder of the release, staged or cached rows. `publish` closes it;
    if a stage fails, leaving the backend's context undoes everything.
    """

    output: Path | str
    recorder: Recorder | None = None
    """Audits and records the release; None without a ledger."""

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
        """Audit the release against the ledger's entries; raise where a small set could be derived. `counts` is what k counts."""
        raise NotImplementedError

    @abstractmethod
    def report(self, manifest: Manifest, notes: ReadNotes) -> Manifest:
        """Write the report; return the manifest, with a note if there are too many rows for one."""

    @abstractmethod
    def publish(self, manifest: Manifest) -> Path | str:
        """Write the manifest, and move the temporary folder to its place, which is returned."""
