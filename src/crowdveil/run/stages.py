"""Data that the stages of a run pass on."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from crowdveil.errors import Text
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.manifest import FileEntry, LedgerEntry, Manifest
from crowdveil.methods.base import Method
from crowdveil.model.release import Release
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
        What the manifest says of the method's diagnostics, and of the information loss.
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
        What the manifest says: the entry that the release becomes, and how it was audited.
    lines
        Sentences for the person who ran it. Confidential.
    """

    statement: LedgerEntry
    lines: list[str]


class Recorder(Protocol):
    """An object that records a release in a ledger."""

    def recorded(self, folder: Path, manifest: Manifest) -> AbstractContextManager[None]:
        """Record a release that is moved to its place inside."""
