"""Read the manifest of a release, which may come from anyone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from crowdveil.errors import InputError
from crowdveil.io.written_release import MANIFEST_FILE

FORMAT: Final = 5
"""Format of manifests. 1: a guarantee had `holds`, true also if it was not checked; 2: it has `outcome`;
3: keys, columns and names of guarantees have the field's names (`k_unit`, `suppressed`, `suppression-budget`, `min-tiles`);
4: published trajectories are named in `published_id`, so that their numbers are never taken for original ids."""


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of manifest.json."""
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a release."""
    from crowdveil.io.manifest_schema import ManifestSchema  # here, since a run reads none, and its classes take long

    path = Path(folder) / MANIFEST_FILE
    if not Path(folder).exists():
        raise InputError(folder, "there is no such file or folder. Expected the folder of a release.")
    if not path.is_file():
        raise InputError(folder, f"Expected a folder with a release, but there is no {MANIFEST_FILE} in it.")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            # Anything but a number is not repeated.
            given = manifest["format"] if type(manifest["format"]) is int else "unknown"
            raise InputError(
                path,
                f"its format is {given}, and this version reads {FORMAT}. Verify the release with "
                "the version of Crowdveil that made it, or make it again with this one.",
            )
        if "analysis" in manifest:
            raise InputError(
                folder, "Expected a release, but this is the result of an analysis; it can only be verified."
            )
        ManifestSchema.model_validate(manifest)
        # The manifest may be forged: it must not choose which files of this machine are opened.
        names = [f["name"] for f in manifest["files"].values()]
        if any(name != Path(name).name or name in ("", ".", "..") for name in names):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise InputError(path, "the manifest is broken; the release cannot be verified.") from None
    return manifest
