"""Define the schema of manifests and of heat maps: files from any source are validated with it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Number = int | float | None


class _Schema(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)


class _File(_Schema):
    name: str
    sha256: str
    parts: dict[str, str] = Field(default_factory=dict)
    """For a folder, its files with their hashes."""


class _Stated(_Schema):
    name: str
    kind: str
    parameters: dict[str, JsonValue]
    statement: str


class _Guarantee(_Stated):
    outcome: Literal["holds", "violated", "not checked"]
    checked: str
    with_original: bool


class _Measured(_Schema):
    found_percent: Number = None
    true_points_percent: Number = None


class _Facts(_Schema):
    measured: _Measured | None = None


class _Method(_Schema):
    name: str
    status: str
    parameters: dict[str, JsonValue]
    seed_given: bool = False
    facts: _Facts


class _Source(_Schema):
    kind: str | None = None
    people_about: int | None = None
    """Number of people in the data, rounded down to a multiple of at least k."""


class _Input(_Schema):
    data: _Source = Field(default_factory=_Source)
    options: dict[str, JsonValue]
    notes: list[str]
    dropped: dict[str, str]
    """Numbers of dropped rows by reason, rounded down to a multiple of k."""
    dropped_percent: int | None = None


class _Risk(_Schema):
    attack: str
    knowledge: str | None
    risk_percent_before: Number
    risk_percent: Number
    guarantee: str | None


class _CostOfFlows(_Schema):
    published_volume: int
    published_flows: int
    published_time_steps: int
    suppressed_volume_percent: int | float = 0


class _CostOfTrajectories(_Schema):
    published_trajectories: int
    published_points: int
    suppressed_trajectories_percent: int | float


class _Ledger(_Schema):
    entry: int
    entries_audited: int
    tier: int
    k: int
    k_unit: str
    epsilon_of_all_releases: float | None = None
    independent: bool = False
    """Whether the publisher stated that records that earlier releases do not share are other trips."""


class _Quantiles(_Schema):
    low: Number = None
    middle: Number = None
    high: Number = None


class _Distortion(_Schema):
    moved_m: _Quantiles = Field(default_factory=_Quantiles)
    length_km: dict[str, _Quantiles] = Field(default_factory=dict)
    speed_kmh: dict[str, _Quantiles] = Field(default_factory=dict)
    coverage_percent: Number = None


class _Decision(_Schema):
    title: str | None = None
    purpose: str | None = None
    recipient: str | None = None


class _Manifest(_Schema):
    format: Literal[5]
    crowdveil: str
    k_unit: str
    guarantees: list[_Guarantee]
    files: dict[str, _File]
    ledger: _Ledger | None = None


class ManifestSchema(_Manifest):
    """Required content of the manifest of a release; further keys are allowed."""

    created: str
    python: str
    packages: dict[str, str]
    method: _Method
    input: _Input
    step_seconds: int | None
    """Length of a time step; None for one matrix, and for trajectories."""
    cost: _CostOfFlows | _CostOfTrajectories
    distortion: _Distortion | None = None
    """Of trajectories: how far points were moved, lengths, speeds and coverage; None where it was not measured."""
    risk: list[_Risk] | None
    decision: _Decision = Field(default_factory=_Decision)
    """What the publisher says of the release: its title, purpose and recipients."""


class HeatMapManifestSchema(_Manifest):
    """Required content of the manifest of a heat map."""

    analysis: str
    parameters: dict[str, JsonValue]


class _Plane(_Schema):
    longitude: float = Field(ge=-180, le=180)
    latitude: float = Field(ge=-90, le=90)


class _SectorAbout(_Schema):
    analysis: str
    parameters: dict[str, JsonValue]
    k: int
    k_unit: Literal["people", "trajectories"]
    suppressed_locations: int | None
    guarantees: list[_Stated]
    plane: _Plane


class _Sector(_Schema):
    properties: dict[str, int | float]
    geometry: dict[str, Any]


class SectorFile(_Schema):
    """Required content of the GeoJSON of a heat map."""

    crowdveil: _SectorAbout
    features: list[_Sector]
