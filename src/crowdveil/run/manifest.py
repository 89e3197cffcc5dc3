"""The manifest of a release: what ran on what, what is guaranteed, how it was checked, what it cost."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from crowdveil import __version__
from crowdveil.errors import InputError, ParameterError
from crowdveil.guarantees.base import Finding, Guarantee
from crowdveil.io.atomic import new_file
from crowdveil.io.notes import ReadNotes
from crowdveil.io.written import MANIFEST_FILE, file_hash, folder_hash
from crowdveil.manifest_schema import FORMAT, Manifest
from crowdveil.method import Method
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params

FILES = ("zones", "voronoi", "hierarchy", "destination_hierarchy")
"""Options of reading that name a file, or are data themselves."""
_TREES = ("hierarchy", "destination_hierarchy")
_PACKAGES = ("numpy", "pyarrow", "duckdb", "shapely", "pyproj", "numba", "h3", "scipy", "fastcluster")


def build_manifest(
    *,
    method: Method,
    params: Params,
    reading: Params,
    seed_given: bool,
    data: Any,
    notes: ReadNotes,
    counts: str,
    checked: list[tuple[Guarantee, Finding]],
    cost: dict[str, Any],
    risk: list[dict[str, Any]] | None,
    facts: Mapping[str, Any],
    files: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """All that the manifest says, ready to be written as JSON; `files` are as `file_entry` makes them, by role."""
    return {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "crowdveil": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "method": {
            "name": method.name,
            "status": method.status,
            "parameters": params.model_dump(mode="json"),
            "seed_given": seed_given,
            "facts": dict(facts),
        },
        "input": {
            "data": {"kind": _kind(data)},
            "options": _options(reading),
            "notes": notes.said,
            "dropped": notes.dropped,
        },
        "k_counts": counts,
        "guarantees": [
            {
                "name": guarantee.name,
                "kind": guarantee.kind,
                "parameters": guarantee.model_dump(mode="json"),
                "statement": guarantee.statement(),
                "outcome": finding.outcome.value,
                "checked": finding.detail,
                "with_original": finding.with_original,
            }
            for guarantee, finding in checked
        ],
        "original_ids_published": False,
        "cost": cost,
        "risk": risk,
        "files": dict(files),
    }


def file_entry(path: Path) -> dict[str, Any]:
    """A file of a release, or a folder of part files, by name and hash; of a folder the hash of each part besides."""
    if not path.is_dir():
        return {"name": path.name, "sha256": file_hash(path)}
    return folder_entry(path.name, {part.name: file_hash(part) for part in path.iterdir()})


def folder_entry(name: str, parts: dict[str, str]) -> dict[str, Any]:
    """A folder of part files, from the hash of each."""
    return {"name": name, "sha256": folder_hash(parts), "parts": dict(sorted(parts.items()))}


@cache
def _version(package: str) -> str:
    """Looked up once: it reads files and parses mail headers, which is a tenth of a small run."""
    return version(package)


def _options(reading: Params) -> dict[str, Any]:
    """The options that differ from their defaults; files by their hash."""
    given = {
        n: getattr(reading, n)
        for n, f in type(reading).model_fields.items()
        if _differs(getattr(reading, n), f.default)
    }
    return {n: _described(value) if n in FILES else value for n, value in given.items()}


def _differs(value: Any, default: Any) -> bool:
    """Return whether a value is not the default; a data frame, which zones may be, is compared cell by cell, so it differs."""
    differs = value != default
    return differs if isinstance(differs, bool) else True


def _kind(data: Any) -> str:
    """How data was handed in. Its name says nothing about its content, and a hash would confirm a guess of a single record."""
    if isinstance(data, Flows | Trajectories):
        return "model"
    return "omx" if isinstance(data, str | Path) and Path(data).suffix.lower() == ".omx" else "table"


def _described(data: Any) -> dict[str, str]:
    """A file of zones or of a tree, which are public, by its hash; a kind of tree by its name, anything else by its type."""
    if isinstance(data, str | Path):
        path = Path(data)
        return {"sha256": file_hash(path)} if path.is_file() else {"name": path.name}
    return {"type": type(data).__name__}


def reading_again(manifest: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The options to read the input of a release with once more; files of zones and trees are held against the manifest.

    Of files the manifest knows no more than a hash, so that they must be among the options that are `given`.
    Trees are left out: they change nothing in the flows.
    """
    before = manifest["input"]
    for name in [name for name in FILES if name in before["options"]]:
        if name in given:
            _must_be_the_same(given[name], before["options"][name], name)
        elif name not in _TREES:
            raise ParameterError(f"{name}: the release was made with {name} of its own; give them again with --{name}.")
    options = {name: value for name, value in before["options"].items() if name not in FILES} | given
    return {name: value for name, value in options.items() if name not in _TREES}


def refuse_other_counts(manifest: dict[str, Any], counts: str) -> None:
    """Raise if an original counts something else than its release did. Trajectories may be counted although people are known."""
    before = manifest["k_counts"]
    if counts != before and before != "trajectories":
        raise InputError(f"the original counts {counts}, but the release counts {before}; read it as for the release.")


def _must_be_the_same(data: Any, before: dict[str, str], option: str) -> None:
    """Raise if a file is another one than it was."""
    if "sha256" in before and _described(data).get("sha256", before["sha256"]) != before["sha256"]:
        raise InputError(
            f"{data}: this is not the file that the release was made with (its SHA-256 differs from the manifest's); "
            f"give that with --{option}."
        )


def _format(value: Any) -> str:
    """A format in words; what is no number is not repeated."""
    return str(value) if type(value) is int else "unknown"


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest into the release's folder; at every moment there is a whole one."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    with new_file(folder / MANIFEST_FILE, overwrite=True) as file:
        file.write_text(text, encoding="utf-8")


def with_file(manifest: dict[str, Any], role: str, path: Path) -> dict[str, Any]:
    """The manifest with one more file of the release."""
    return manifest | {"files": manifest["files"] | {role: file_entry(path)}}


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a release."""
    path = Path(folder) / MANIFEST_FILE
    if not path.is_file():
        raise InputError(f"{folder}: wanted a folder with a release, but there is no {MANIFEST_FILE} in it.")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise InputError(
                f"{path}: its format is {_format(manifest['format'])}, and this version reads {FORMAT}; verify the release with "
                "the version of Crowdveil that made it, or make it again with this one."
            )
        if "analysis" in manifest:
            raise InputError(
                f"{folder}: wanted a release, but this is the result of an analysis; it can only be verified."
            )
        Manifest.model_validate(manifest)
        # Whoever wrote the manifest must not choose which files of this machine are opened.
        names = [f["name"] for f in manifest["files"].values()]
        if any(name != Path(name).name or name in ("", ".", "..") for name in names):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: the manifest is broken; the release cannot be verified.") from None
    return manifest
