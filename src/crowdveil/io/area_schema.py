"""Define the schema of lists of areas: files from any source are validated with it."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator


class _Schema(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)


class _Area(_Schema):
    area: str
    name: str | None = None
    """Readable name, of at most 60 characters."""
    tiles: list[str]
    size: int = 0
    area_km2: int | float | None = None
    lon: int | float = 0
    lat: int | float = 0

    @model_validator(mode="after")
    def _check_position(self) -> Self:
        if ("lon" in self.model_fields_set) != ("lat" in self.model_fields_set):
            raise ValueError("a position has a longitude and a latitude")
        return self


class _Outline(_Schema):
    type: str
    coordinates: list[Any]


class _Feature(_Schema):
    properties: _Area
    geometry: _Outline | None = None


class AreaList(_Schema):
    """Required content of the GeoJSON of areas."""

    features: list[_Feature]
