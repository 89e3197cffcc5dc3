"""The form of a manifest and of a list of areas: what whoever reads them may count on, since they may come from anybody."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

Number = int | float | None
FORMAT: Final = 2
"""Of manifests. 1: a guarantee had `holds`, true also where it was not checked; 2: it has `outcome`."""


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _File(_Form):
    name: str
    sha256: str
    parts: dict[str, str] = Field(default_factory=dict)
    """Where it is a folder, its files with their hashes."""


class _Stated(_Form):
    name: str
    kind: str
    parameters: dict[str, JsonValue]
    statement: str


class _Guarantee(_Stated):
    outcome: Literal["holds", "violated", "not checked"]
    checked: str
    with_original: bool


class _Measured(_Form):
    found_percent: Number = None
    true_points_percent: Number = None


class _Facts(_Form):
    measured: _Measured | None = None


class _Method(_Form):
    name: str
    status: str
    parameters: dict[str, JsonValue]
    seed_given: bool = False
    facts: _Facts


class _Source(_Form):
    kind: str | None = None


class _Input(_Form):
    data: _Source = Field(default_factory=_Source)
    options: dict[str, JsonValue]
    notes: list[str]
    dropped: dict[str, int]


class _Risk(_Form):
    attack: str
    knowledge: str | None
    risk_percent_before: Number
    risk_percent: Number
    guarantee: str | None


class _CostOfFlows(_Form):
    published_volume: int
    published_flows: int
    published_time_steps: int
    suppressed_volume_percent: int | float = 0


class _CostOfTrajectories(_Form):
    published_trajectories: int
    published_points: int
    suppressed_trajectories_percent: int | float


class Manifest(_Form):
    """All that a manifest must have; more may be in it."""

    format: Literal[2]
    created: str
    crowdveil: str
    python: str
    packages: dict[str, str]
    method: _Method
    input: _Input
    k_counts: str
    guarantees: list[_Guarantee]
    cost: _CostOfFlows | _CostOfTrajectories
    risk: list[_Risk] | None
    files: dict[str, _File]


class HeatMapManifest(_Form):
    """All that the manifest of a heat map must have."""

    format: Literal[2]
    crowdveil: str
    analysis: str
    parameters: dict[str, JsonValue]
    k_counts: str
    guarantees: list[_Guarantee]
    files: dict[str, _File]


class _Plane(_Form):
    longitude: float = Field(ge=-180, le=180)
    latitude: float = Field(ge=-90, le=90)


class _SectorAbout(_Form):
    analysis: str
    parameters: dict[str, JsonValue]
    k: int
    k_counts: Literal["people", "trajectories"]
    suppressed_locations: int | None
    guarantees: list[_Stated]
    plane: _Plane


class _Sector(_Form):
    properties: dict[str, int | float]
    geometry: dict[str, Any]


class SectorFile(_Form):
    """All that the GeoJSON of a heat map must have."""

    crowdveil: _SectorAbout
    features: list[_Sector]


class _Area(_Form):
    area: str
    tiles: list[str]
    size: int = 0
    area_km2: Number = None
    lon: int | float = 0
    lat: int | float = 0

    @model_validator(mode="after")
    def _whole_place(self) -> Self:
        if ("lon" in self.model_fields_set) != ("lat" in self.model_fields_set):
            raise ValueError("a place has a longitude and a latitude")
        return self


class _Outline(_Form):
    type: str
    coordinates: list[Any]


class _Feature(_Form):
    properties: _Area
    geometry: _Outline | None = None


class AreaList(_Form):
    """All that the GeoJSON of areas must have."""

    features: list[_Feature]
