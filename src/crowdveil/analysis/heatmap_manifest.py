"""The manifest of a heat map (guarantees, their verification, file hashes), and verification of a map from its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil import __version__
from crowdveil.errors import GuaranteeViolatedError, InputError, Option
from crowdveil.guarantees import Finding, SectorGuarantee, guarantee_from_manifest
from crowdveil.guarantees.sectors import DisjointSectors, EveryLocationCounted, SectorKAnonymity, WellFormedSectors
from crowdveil.io.manifest_reader import FORMAT
from crowdveil.io.manifest_schema import HeatMapManifestSchema, SectorFile
from crowdveil.io.sectors import ABOUT, WrittenSectors, read_sectors
from crowdveil.io.written_release import MANIFEST_FILE, file_hash
from crowdveil.model.trajectories import Trajectories

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


def write_heatmap_manifest(folder: Path, about: dict[str, Any], counts: str, checked: SectorFindings) -> None:
    """Write the manifest of the heat map in a folder."""
    stated = [
        {
            **stated_guarantee(guarantee),
            "outcome": f.outcome.value,
            "checked": f.detail,
            "with_original": f.with_original,
        }
        for guarantee, f in checked
    ]
    manifest = {
        "format": FORMAT,
        "crowdveil": __version__,
        "analysis": about["analysis"],
        "parameters": about["parameters"],
        "k_unit": counts,
        "guarantees": stated,
        "files": {role: {"name": name, "sha256": file_hash(folder / name)} for role, name in _FILES.items()},
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST_FILE).write_text(text, encoding="utf-8")


def stated_guarantee(guarantee: SectorGuarantee) -> dict[str, Any]:
    """Return a guarantee as plain values for a file."""
    return {
        "name": guarantee.name,
        "kind": guarantee.kind,
        "parameters": guarantee.model_dump(mode="json"),
        "statement": guarantee.statement(),
    }


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
        written, stated = _read_map(path / GEOJSON), manifest["guarantees"]
    guarantees = _guarantees_of(path, written, stated)
    if original is not None and original.k_unit != written.counts:
        raise InputError(
            f"the original counts {original.k_unit}, but the heat map counts {written.counts}. Give the same "
            f"{Option('user')} as for "
            "the map."
        )
    return check_sectors(guarantees, written, original), written.counts


def read_map_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of the heat map in a folder, which may come from anyone."""
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise InputError(
            folder,
            f"Expected a heat map with its {MANIFEST_FILE}, but there is none. Make the map again, or verify {GEOJSON} "
            "alone.",
        )
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        HeatMapManifestSchema.model_validate(manifest)
        # A manifest is untrusted and must not choose which files are opened.
        if {role: entry["name"] for role, entry in manifest["files"].items()} != _FILES:
            raise ValueError
    except (ValueError, RecursionError):
        raise InputError(path, "the manifest is broken, so the heat map cannot be verified. Make it again.") from None
    return manifest


def _refuse_changed(folder: Path, manifest: dict[str, Any]) -> None:
    gone = [name for name in _FILES.values() if not (folder / name).is_file()]
    if gone:
        raise InputError(folder, f"the heat map lacks {', '.join(gone)}, so it cannot be verified. Make it again.")
    changed = [e["name"] for e in manifest["files"].values() if file_hash(folder / e["name"]) != e["sha256"]]
    if changed:
        raise GuaranteeViolatedError(folder, f"{', '.join(changed)} changed since the map was made; do not publish it.")


def _read_map(path: Path) -> WrittenSectors:
    """Read an untrusted map."""
    wrong = InputError(path, "Expected a heat map written by crowdveil. Give such a file.")
    try:
        SectorFile.model_validate(json.loads(path.read_text(encoding="utf-8")))
        written = read_sectors(path)
    except (ValueError, RecursionError, OverflowError, OSError):
        raise wrong from None
    import shapely

    numbers = (written.area_km2, written.locations_per_km2, written.bounds, shapely.bounds(written.polygons))
    if not all(np.isfinite(values).all() for values in numbers) or np.abs(numbers[-1]).max(initial=0) > _FARTHEST:
        raise wrong
    return written


def _guarantees_of(path: Path, written: WrittenSectors, stated: list[dict[str, Any]] | None) -> list[SectorGuarantee]:
    """Return the guarantees in a map; raise unless they are those of every heat map, with the map's k."""
    within = _parse_guarantees(written.about["guarantees"])
    k = {p.k for p in within if isinstance(p, SectorKAnonymity | EveryLocationCounted)}
    complete = [type(guarantee) for guarantee in within] == list(_EVERY)
    if not complete or k != {written.k} or (stated is not None and _parse_guarantees(stated) != within):
        raise GuaranteeViolatedError(
            path,
            f"it lacks guarantees of a heat map, or its {MANIFEST_FILE}, its {ABOUT} member and its k contradict one "
            "another; do not publish it.",
        )
    return within


def _parse_guarantees(stated: list[dict[str, Any]]) -> list[SectorGuarantee]:
    guarantees = [guarantee_from_manifest(entry) for entry in stated]
    return [guarantee for guarantee in guarantees if isinstance(guarantee, SectorGuarantee)]
