"""The manifest of a heat map (guarantees, their verification, hashes of files), and the verification of a map from its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import shapely
from pydantic import BaseModel, ConfigDict, Field

from crowdveil.errors import GuaranteeViolatedError, InputError, Text
from crowdveil.guarantees import Finding, SectorGuarantee, guarantee_from_manifest
from crowdveil.guarantees.sectors import DisjointSectors, EveryLocationCounted, SectorKAnonymity, WellFormedSectors
from crowdveil.io.manifest import FORMAT, CheckedGuarantee, FileEntry, StatedFiles, StatedGuarantee
from crowdveil.io.sectors import ABOUT, WrittenSectors, read_sectors
from crowdveil.io.written_release import MANIFEST_FILE, file_hash
from crowdveil.model.trajectories import Trajectories
from crowdveil.version import __version__

GEOJSON, PNG, HTML = "heatmap.geojson", "heatmap.png", "heatmap.html"
_FILES = {"data": GEOJSON, "picture": PNG, "page": HTML}
_ENDINGS = (".geojson", ".json")
_FARTHEST = 360.0
"""Largest absolute degrees on a map."""
_EVERY = (SectorKAnonymity, DisjointSectors, EveryLocationCounted, WellFormedSectors)
"""Guarantees of every heat map."""
SectorFindings = list[tuple[SectorGuarantee, Finding]]


def check_sectors(
    guarantees: Sequence[SectorGuarantee], written: WrittenSectors, original: Trajectories | None
) -> SectorFindings:
    """Check the guarantees of a map on its file, with or without the original locations."""
    return [(guarantee, guarantee.check_sectors(written, original)) for guarantee in guarantees]


class HeatMapManifest(StatedFiles):
    """The manifest of a heat map; the input options are those that read its original again."""

    analysis: str
    parameters: dict[str, Any]
    input_options: dict[str, Any] = Field(default_factory=dict)


class _Open(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Plane(_Open):
    longitude: float = Field(ge=-180, le=180)
    latitude: float = Field(ge=-90, le=90)


class _About(_Open):
    analysis: str
    parameters: dict[str, Any]
    k: int
    k_unit: Literal["people", "trajectories"]
    suppressed_locations: int | None
    guarantees: list[StatedGuarantee]
    plane: _Plane


class _Sector(_Open):
    properties: dict[str, int | float]
    geometry: dict[str, Any]


class SectorFile(_Open):
    """Required content of the GeoJSON of a heat map."""

    crowdveil: _About
    features: list[_Sector]


def write_heatmap_manifest(
    folder: Path, about: dict[str, Any], counts: str, checked: SectorFindings, input_options: dict[str, Any]
) -> None:
    """Write the manifest of the heat map in a folder."""
    stated = [
        CheckedGuarantee(
            **stated_guarantee(guarantee).plain(),
            outcome=finding.outcome.value,
            checked=finding.detail,
            with_original=finding.with_original,
        )
        for guarantee, finding in checked
    ]
    manifest = HeatMapManifest(
        format=FORMAT,
        crowdveil=__version__,
        analysis=about["analysis"],
        parameters=about["parameters"],
        input_options=input_options,
        k_unit=counts,
        guarantees=stated,
        files={role: FileEntry.of(folder / name) for role, name in _FILES.items()},
    )
    manifest.write(folder)


def stated_guarantee(guarantee: SectorGuarantee) -> StatedGuarantee:
    """Return a guarantee as a file states it."""
    return StatedGuarantee(
        name=guarantee.name,
        kind=guarantee.kind,
        parameters=guarantee.model_dump(mode="json"),
        statement=guarantee.statement(),
    )


def is_heat_map(path: Path) -> bool:
    """Return whether a path is a heat map (folder or GeoJSON), not a release."""
    if path.is_file():
        return path.suffix.lower() in _ENDINGS
    return (path / GEOJSON).is_file() or _names_an_analysis(path / MANIFEST_FILE)


def _names_an_analysis(manifest: Path) -> bool:
    try:
        return "analysis" in json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, RecursionError):
        return False


def verify_heat_map(path: Path, original: Trajectories | None = None) -> tuple[SectorFindings, str]:
    """Verify the guarantees of a heat map; return the findings and what k counts.

    For a folder, the hashes of all files are checked first. A GeoJSON alone has no hash.
    """
    if path.is_file():
        written, stated = _read_map(path), None
    else:
        manifest = read_map_manifest(path)
        _refuse_changed(path, manifest)
        written, stated = _read_map(path / GEOJSON), manifest.guarantees
    guarantees = _guarantees_of(path, written, stated)
    if original is not None and original.k_unit != written.counts:
        raise InputError(
            Text(
                "k counts {k_unit} in the original, but {counts} in the heat map. Give the same {user} as for the map.",
                k_unit=original.k_unit,
                counts=written.counts,
            )
        )
    return check_sectors(guarantees, written, original), written.counts


def read_map_manifest(folder: Path) -> HeatMapManifest:
    """Read the manifest of the heat map in a folder, which may come from anyone."""
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise InputError(
            folder,
            f"Expected a heat map with its {MANIFEST_FILE}, but there is none. Make the map again, or verify {GEOJSON} "
            "alone.",
        )
    try:
        manifest = HeatMapManifest.model_validate(json.loads(path.read_text(encoding="utf-8")))
        # A manifest is untrusted and must not choose which files are opened.
        if manifest.file_names != _FILES:
            raise ValueError
    except (ValueError, RecursionError):
        raise InputError(path, "the manifest is broken, so the heat map cannot be verified. Make it again.") from None
    return manifest


def _refuse_changed(folder: Path, manifest: HeatMapManifest) -> None:
    gone = [name for name in _FILES.values() if not (folder / name).is_file()]
    if gone:
        raise InputError(folder, f"the heat map lacks {', '.join(gone)}, so it cannot be verified. Make it again.")
    changed = [entry.name for entry in manifest.files.values() if file_hash(folder / entry.name) != entry.sha256]
    if changed:
        raise GuaranteeViolatedError(folder, f"{', '.join(changed)} changed since the map was made. Do not publish it.")


def _read_map(path: Path) -> WrittenSectors:
    """Read an untrusted map."""
    wrong = InputError(path, "Expected a heat map written by crowdveil. Give such a file.")
    try:
        SectorFile.model_validate(json.loads(path.read_text(encoding="utf-8")))
        written = read_sectors(path)
    except (ValueError, RecursionError, OverflowError, OSError):
        raise wrong from None

    numbers = (written.area_km2, written.locations_per_km2, written.bounds, shapely.bounds(written.polygons))
    if not all(np.isfinite(values).all() for values in numbers) or np.abs(numbers[-1]).max(initial=0) > _FARTHEST:
        raise wrong
    return written


def _guarantees_of(
    path: Path, written: WrittenSectors, stated: Sequence[StatedGuarantee] | None
) -> list[SectorGuarantee]:
    """Return the guarantees in a map; raise unless they are those of every heat map, with the map's k."""
    within = _parse_guarantees([StatedGuarantee.model_validate(entry) for entry in written.about["guarantees"]])
    k = {p.k for p in within if isinstance(p, SectorKAnonymity | EveryLocationCounted)}
    complete = [type(guarantee) for guarantee in within] == list(_EVERY)
    if not complete or k != {written.k} or (stated is not None and _parse_guarantees(stated) != within):
        raise GuaranteeViolatedError(
            path,
            f"it lacks guarantees of a heat map, or its {MANIFEST_FILE}, its {ABOUT} member and its k contradict one "
            "another. Do not publish it.",
        )
    return within


def _parse_guarantees(stated: Sequence[StatedGuarantee]) -> list[SectorGuarantee]:
    guarantees = [guarantee_from_manifest(entry.name, entry.parameters) for entry in stated]
    return [guarantee for guarantee in guarantees if isinstance(guarantee, SectorGuarantee)]
