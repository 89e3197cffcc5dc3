"""The manifest of a release (`manifest.json`): its entries, and how it is written and read.

A manifest may come from anyone, so its reader checks the type of every entry. Writer and reader share one model: a manifest has
no entry that a reader does not know.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from crowdveil.errors import InputError, ParameterError
from crowdveil.io.atomic import new_file
from crowdveil.io.written_release import MANIFEST_FILE, file_hash, folder_hash
from crowdveil.model.time_axis import Clock

FORMAT: Final = 6
"""Version of manifests; each is read by the versions of Crowdveil that write it."""
INPUT_FILES = ("zones", "hierarchy", "partition")
"""Input options that name a file, or are data themselves; a manifest describes them by a hash, a name or a type."""
Number = int | float | None


class Entry(BaseModel):
    """A part of a manifest. Unset fields are not written, so that a manifest is written as it was read."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return self.model_dump(mode="json", exclude_unset=True)


class FileEntry(Entry):
    """Name and SHA-256 of a file of a release, or of a folder of part files with the hash of each."""

    name: str
    sha256: str
    parts: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> Self:
        """Describe a written file or folder."""
        if path.is_dir():
            return cls.of_parts(path.name, {part.name: file_hash(part) for part in path.iterdir()})
        return cls(name=path.name, sha256=file_hash(path))

    @classmethod
    def of_parts(cls, name: str, parts: dict[str, str]) -> Self:
        """Describe a folder by the hash of each file in it."""
        return cls(name=name, sha256=folder_hash(parts), parts=dict(sorted(parts.items())))


class StatedGuarantee(Entry):
    """A guarantee by name and parameters, with its statement."""

    name: str
    kind: str
    parameters: dict[str, Any]
    statement: str


class CheckedGuarantee(StatedGuarantee):
    """A guarantee and the finding of its check."""

    outcome: Literal["holds", "violated", "not checked"]
    checked: str
    with_original: bool


class MethodEntry(Entry):
    """The method with its parameters, and facts about its run."""

    name: str
    status: str
    parameters: dict[str, Any]
    seed_given: bool
    facts: dict[str, Any]

    @field_validator("facts")
    @classmethod
    def _known_measurements(cls, facts: dict[str, Any]) -> dict[str, Any]:
        _Facts.model_validate(facts)
        return facts


class DataEntry(Entry):
    """Kind of the input, and the number of its people, rounded down to a multiple of at least k."""

    kind: str
    people_about: int | None


class InputEntry(Entry):
    """How the data were read."""

    data: DataEntry
    options: dict[str, Any]
    notes: list[str]
    dropped: dict[str, str]
    """Numbers of dropped rows by reason, rounded down to a multiple of k."""
    dropped_percent: int | None

    @field_validator("options")
    @classmethod
    def _described_files(cls, options: dict[str, Any]) -> dict[str, Any]:
        for described in (options[name] for name in INPUT_FILES if name in options):
            if not isinstance(described, dict) or not all(isinstance(value, str) for value in described.values()):
                raise ValueError("an input file is not described by names and texts")
        return options


class Trial(Entry):
    """Success of an attack before and after, in whole percents."""

    attack: str
    knowledge: str | None
    risk_percent_before: Number
    risk_percent: Number
    guarantee: str | None


class LedgerEntry(Entry):
    """The entry of a ledger that the release became, and how it was audited."""

    entry: int
    entries_audited: int
    tier: int
    k: int
    k_unit: str
    independent: bool = False
    """Whether the publisher stated that records missing from earlier releases are different trips."""
    epsilon_of_all_releases: float | None = None


class DecisionEntry(Entry):
    """The publisher's statements about the release."""

    title: str | None = None
    purpose: str | None = None
    recipient: str | None = None


class ParentEntry(Entry):
    """The parent of a derived release, with the hash of each of its files."""

    name: str
    method: str
    files: dict[str, str]


class StatedFiles(Entry):
    """The entries that manifests of releases and of heat maps share."""

    format: Literal[6] = FORMAT
    crowdveil: str
    k_unit: str
    guarantees: list[CheckedGuarantee]
    files: dict[str, FileEntry]
    ledger: LedgerEntry | None = None

    @field_validator("files")
    @classmethod
    def _plain_names(cls, files: dict[str, FileEntry]) -> dict[str, FileEntry]:
        """Refuse names with folders: a forged manifest must not choose which files of this machine are opened."""
        if any(file.name != Path(file.name).name or file.name in ("", ".", "..") for file in files.values()):
            raise ValueError("a file is named by a path")
        return files

    @property
    def file_names(self) -> dict[str, str]:
        """Names of the files by role."""
        return {role: entry.name for role, entry in self.files.items()}

    @property
    def text(self) -> str:
        """The text of manifest.json."""
        return json.dumps(self.plain(), indent=2, ensure_ascii=False) + "\n"

    def write(self, folder: Path) -> None:
        """Write manifest.json into a folder atomically."""
        with new_file(folder / MANIFEST_FILE, overwrite=True) as file:
            file.write_text(self.text, encoding="utf-8", newline="\n")


class Manifest(StatedFiles):
    """The manifest of a release."""

    created: str
    python: str
    packages: dict[str, str]
    method: MethodEntry
    input: InputEntry
    step_seconds: int | None = Field(gt=0)
    """Length of a time step; None for one matrix, and for trajectories."""
    time_zone: str
    """Zone of the local time of time steps."""
    k: int | None
    """The group size; None where the method has none."""
    original_ids_published: Literal[False] = False
    cost: dict[str, Any]
    distortion: dict[str, Any] | None = None
    """For trajectories: how far points were moved, lengths, speeds and coverage; None where it was not measured."""
    risk: list[Trial] | None
    decision: DecisionEntry = Field(default_factory=DecisionEntry)
    parent: ParentEntry | None = None

    @field_validator("cost")
    @classmethod
    def _known_cost(cls, cost: dict[str, Any]) -> dict[str, Any]:
        (_CostOfTrajectories if "published_trajectories" in cost else _CostOfFlows).model_validate(cost)
        return cost

    @field_validator("distortion")
    @classmethod
    def _known_distortion(cls, distortion: dict[str, Any] | None) -> dict[str, Any] | None:
        if distortion is not None:
            _Distortion.model_validate(distortion)
        return distortion

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, tz: str) -> str:
        try:
            Clock(tz)
        except ParameterError:
            raise ValueError("there is no such time zone") from None
        return tz

    @model_validator(mode="after")
    def _one_k(self) -> Self:
        if self.method.parameters.get("k") != self.k:
            raise ValueError("k is not that of the method")
        return self

    def guaranteed(self, name: str) -> dict[str, Any] | None:
        """Return the parameters of a guarantee, None if it is not stated."""
        return next((entry.parameters for entry in self.guarantees if entry.name == name), None)


class _Open(BaseModel):
    """Figures that are shown in part; methods may add others."""

    model_config = ConfigDict(strict=True, extra="allow")


class _Measured(_Open):
    found_percent: Number = None
    true_points_percent: Number = None


class _Facts(_Open):
    measured: _Measured | None = None


class _CostOfFlows(_Open):
    published_volume: int
    published_flows: int
    published_time_steps: int
    suppressed_volume_percent: int | float = 0


class _CostOfTrajectories(_Open):
    published_trajectories: int
    published_points: int
    suppressed_trajectories_percent: int | float


class _Quantiles(_Open):
    low: Number = None
    middle: Number = None
    high: Number = None


class _Distortion(_Open):
    moved_m: _Quantiles = Field(default_factory=_Quantiles)
    length_km: dict[str, _Quantiles] = Field(default_factory=dict)
    speed_kmh: dict[str, _Quantiles] = Field(default_factory=dict)
    coverage_percent: Number = None


def manifest_path(folder: Path) -> Path:
    """Return the path of the manifest in a folder; raise if there is none."""
    if not folder.exists():
        raise InputError(folder, "there is no such file or folder. Expected the folder of a release.")
    if not (folder / MANIFEST_FILE).is_file():
        raise InputError(folder, f"Expected a folder with a release, but there is no {MANIFEST_FILE} in it.")
    return folder / MANIFEST_FILE


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a release."""
    path = manifest_path(Path(folder))
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values["format"] != FORMAT:
            # Anything but a number is not repeated.
            version = values["format"] if type(values["format"]) is int else "unknown"
            raise InputError(
                path,
                f"its format is {version}, and this version reads {FORMAT}. Verify the release with "
                "the version of Crowdveil that made it, or make it again with this one.",
            )
        if "analysis" in values:
            raise InputError(
                folder, "Expected a release, but this is the result of an analysis; it can only be verified."
            )
        return Manifest.model_validate(values)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(path, "the manifest is broken; the release cannot be verified.") from None
