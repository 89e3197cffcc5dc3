"""Written releases: open, verify and report them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crowdveil.analysis.heatmap_manifest import is_heat_map, verify_heat_map
from crowdveil.errors import GuaranteeViolatedError, InputError, Option, ParameterError, Text, counted
from crowdveil.guarantees import Finding, Guarantee, guarantee_from_manifest
from crowdveil.guarantees.original import BoundedVolumes, TrueVolumes
from crowdveil.io.atomic import new_file, recover
from crowdveil.io.derived_files import CROSSWALK_FILE, write_crosswalk
from crowdveil.io.manifest import Manifest, read_manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.pairing import read_pairing
from crowdveil.io.release_reader import load_trajectory_release
from crowdveil.io.written_release import MANIFEST_FILE, REPORT_FILE, WrittenRelease, file_hash, read_release
from crowdveil.model.flows import Flows
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.reading import READINGS, TrajectoryReading, read
from crowdveil.report.html import public_report
from crowdveil.run.manifest import map_input_options, original_input_options, refuse_other_counts
from crowdveil.run.verification import check, stated_guarantees, validate_release_tables
from crowdveil.version import __version__

REPORT_ROWS = 5_000_000
"""Most published rows for which a report is drawn, where they are not in memory."""


def without_report(manifest: Manifest, notes: ReadNotes) -> Manifest:
    """Return the manifest of a release with too many rows for a report, with a note that says so."""
    notes.add(f"there are more than {REPORT_ROWS:,} published rows, so no report was drawn.")
    noted = manifest.input.model_copy(update={"notes": [*manifest.input.notes, notes.messages[-1]]})
    return manifest.model_copy(update={"input": noted})


def verify(
    folder: Path, original: Any = None, reading: dict[str, Any] | None = None, pairing: Any = None
) -> list[tuple[Guarantee, Finding]]:
    """Check that the files of a release or a heat map are unchanged, and every guarantee in the manifest.

    Most guarantees are checked on the files alone, the rest with the `original` data, or a file or table of them. It is read
    with the manifest's input options, or those in `reading`; `pairing` says which published trajectory is whose.
    """
    return verified(folder, original, reading, pairing)[0]


def verified(
    folder: Path, original: Any = None, reading: dict[str, Any] | None = None, pairing: Any = None
) -> tuple[list[tuple[Guarantee, Finding]], str]:
    """Verify a release as `verify` does; return what k counts too."""
    for option in (*(reading or {}), *(["pairing"] if pairing is not None else [])):
        if original is None:
            raise ParameterError(
                Option(option), Text("Expected the original with this option, got none. Add {original}.")
            )
    if is_heat_map(Path(folder)):
        if pairing is not None:
            raise ParameterError(Option("pairing"), "a heat map has no pairing. Leave it out.")
        points = None
        if original is not None:
            options = TrajectoryReading.checked(map_input_options(Path(folder), reading or {}))
            points = read(Trajectories, original, options, ReadNotes())
        sectors, counts = verify_heat_map(Path(folder), points)
        return list(sectors), counts
    manifest, written = open_release(Path(folder))
    refuse_unlisted_files(Path(folder), manifest)
    refuse_other_crosswalk(Path(folder), manifest, written)
    guarantees = stated_guarantees(manifest)
    checked = _checked(written, guarantees, manifest, original, reading or {}, pairing)
    if not any(finding.violated for _, finding in checked):
        refuse_other_report(Path(folder), manifest, written)
    return checked, manifest.k_unit


def _checked(
    written: WrittenRelease,
    guarantees: tuple[Guarantee, ...],
    manifest: Manifest,
    original: Any,
    reading: dict[str, Any],
    pairing: Any,
) -> list[tuple[Guarantee, Finding]]:
    """Check guarantees on written files, with the original and the pairing where they are given."""
    if original is None:
        return check(written, guarantees)
    if written.is_flows:
        if pairing is not None:
            raise ParameterError(Option("pairing"), "a release of flows has no pairing. Leave it out.")
        return check(written, guarantees, read_again(manifest, Flows, original, reading))
    data, source = read_again(manifest, Trajectories, original, reading), None
    if pairing is not None and isinstance(data, Trajectories):
        source = with_pairing(load_trajectory_release(written), pairing, data).source
    return check(written, guarantees, data, source)


def release_of_file(path: Path) -> Path:
    """Return the folder of a release if `path` is the data file in it, else the path itself."""
    if not path.is_file() or not (path.parent / MANIFEST_FILE).is_file():
        return path
    named = read_manifest(path.parent).file_names.get("data")
    return path.parent if named == path.name else path


def open_release(folder: Path) -> tuple[Manifest, WrittenRelease]:
    """Return the manifest and the files of a release; raise if a file was changed."""
    recover(folder)
    manifest = read_manifest(folder)
    stated_guarantees(manifest)  # raises on one that is unknown, and if one is missing
    written = read_release(folder, manifest.file_names)
    checked = list(manifest.files.values())
    missing = [entry.name for entry in checked if not (folder / entry.name).exists()]
    if missing:
        raise InputError(folder, f"the release lacks {', '.join(missing)}; it cannot be verified.")
    changed = [entry.name for entry in checked if file_hash(folder / entry.name) != entry.sha256]
    if changed:
        raise GuaranteeViolatedError(
            folder, f"{', '.join(changed)} changed since the release was made; do not publish it."
        )
    return manifest, written


def refuse_unlisted_files(folder: Path, manifest: Manifest) -> None:
    """Raise if the folder holds files that the manifest does not list: they would be published without any check."""
    known = set(manifest.file_names.values()) | {MANIFEST_FILE, REPORT_FILE}
    more = sorted(path.name for path in folder.iterdir() if path.name not in known)
    if more:
        raise GuaranteeViolatedError(
            folder,
            f"it holds {counted(len(more), 'file')} that the manifest does not list. Remove files that are not part of it.",
        )


def refuse_other_report(folder: Path, manifest: Manifest, written: WrittenRelease) -> None:
    """Raise if the report is not that of the files: it names the SHA-256 of the manifest, which therefore cannot list it.

    The report of another version of Crowdveil looks different; of it only that hash is checked.
    """
    if not (folder / REPORT_FILE).exists():
        return

    text = (folder / REPORT_FILE).read_text(encoding="utf-8")
    if manifest.crowdveil == __version__:
        same = text == public_report(written, manifest)
    else:
        same = file_hash(folder / MANIFEST_FILE) in text
    if not same:
        raise GuaranteeViolatedError(
            folder,
            f"Expected the report of these files, got another {REPORT_FILE}. Write it again with crowdveil report.",
        )


def refuse_other_crosswalk(folder: Path, manifest: Manifest, written: WrittenRelease) -> None:
    """Raise if the crosswalk is not that of the areas."""
    entry = manifest.files.get("crosswalk")
    if entry is None:
        return
    with TemporaryDirectory(prefix="crowdveil-") as again:
        write_crosswalk(written.features, Path(again))
        same = (Path(again) / CROSSWALK_FILE).read_bytes() == (folder / entry.name).read_bytes()
    if not same:
        raise GuaranteeViolatedError(folder, f"{entry.name} is not that of the areas; do not publish the release.")


def sound_release(folder: Path) -> tuple[Manifest, WrittenRelease]:
    """Open a release whose content is to be shown: its tables must be well-formed too."""
    manifest, written = open_release(folder)
    validate_release_tables(written)
    return manifest, written


def add_report(folder: Path, written: WrittenRelease, manifest: Manifest) -> None:
    """Write the report of a release into its folder.

    The report names the SHA-256 of the manifest, which is final by now and lists no report.
    """
    with new_file(folder / REPORT_FILE, overwrite=True) as file:
        file.write_text(public_report(written, manifest), encoding="utf-8", newline="\n")


def report_again(folder: Path) -> Path:
    """Write the report of a release, replacing an earlier one."""
    manifest, written = sound_release(folder)
    add_report(folder, written, manifest)
    return folder / REPORT_FILE


def refuse_other_original(manifest: Manifest, written: WrittenRelease, original: Flows) -> None:
    """Raise if a release was not made from these flows. The manifest names no file, so that volumes are compared."""
    names = (TrueVolumes.name, BoundedVolumes.name)
    volumes = [guarantee_from_manifest(e.name, e.parameters) for e in manifest.guarantees if e.name in names]
    findings = check(written, tuple(volumes), original) if volumes else []
    if any(finding.violated for _, finding in findings):
        raise InputError(
            "original",
            "the release was made from other data, for its volumes differ. Give the data that it was made from.",
        )


def published_ids(count: int) -> list[str]:
    """Return the ids of published trajectories."""
    return [str(number) for number in range(1, count + 1)]


def with_pairing(release: TrajectoryRelease, pairing: Any, original: Trajectories) -> TrajectoryRelease:
    """Return a release with the original of each trajectory, from a file or a table of the pairing."""
    return replace(release, source=read_pairing(pairing, original, published_ids(len(release))))


def read_again(manifest: Manifest, takes: type, original: Any, given: dict[str, Any]) -> Flows | Trajectories:
    """Read the original with the input options of the release."""
    options = READINGS[takes].checked({} if isinstance(original, takes) else original_input_options(manifest, given))
    data: Flows | Trajectories = read(takes, original, options, ReadNotes(), person_ids=manifest.k_unit == "people")
    refuse_other_counts(manifest, data.k_unit)
    return data
