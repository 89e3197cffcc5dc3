"""Runs with a ledger: the release is audited before it is put into place, and becomes an entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdveil.analysis.heatmap_manifest import (
    GEOJSON,
    HeatMapManifest,
    is_heat_map,
    read_map_manifest,
    verify_heat_map,
)
from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.sectors import read_sectors
from crowdveil.io.written_release import MANIFEST_FILE, WrittenRelease
from crowdveil.ledger.candidates import (
    Candidate,
    check_auditable,
    derived_candidate,
    flow_candidate,
    inputs_of,
    map_candidate,
    model_candidate,
    release_name,
)
from crowdveil.ledger.examination import Examination, aligned, connected, examine
from crowdveil.ledger.recording import MadeBy, add_entry, add_refusal, confirm
from crowdveil.ledger.records import Inputs, input_files
from crowdveil.ledger.reissues import (
    Kept,
    boxes_of_release,
    boxes_of_table,
    keep_earlier_values,
    small_changes,
    with_kept_rows,
)
from crowdveil.ledger.store import Ledger, open_ledger
from crowdveil.ledger.wording import found_lines, refuse
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.reading import FlowReading, TrajectoryReading, read
from crowdveil.run import releases
from crowdveil.run.manifest import map_input_options, original_input_options
from crowdveil.run.stages import LedgerAudit, RunSpec
from crowdveil.run.verification import DERIVED, check, stated_guarantees


def open_recorder(spec: RunSpec, output: Path | str) -> Recorder | None:
    """Open the ledger of a run, if one is named; raise where the release could not be audited, before anything is read."""
    folder, method = spec.options.ledger, spec.method
    if folder is None:
        return None
    if method.takes is not Flows:
        raise ParameterError(
            Option("ledger"), f"it audits flows and heat maps, and {method.name} publishes trajectories. Leave it out."
        )
    check_auditable(method.name)
    refuse_inside(folder, output)
    return Recorder(open_ledger(folder), output)


def refuse_inside(folder: Path | str, output: Path | str) -> None:
    """Raise if the ledger is in the folder of a release, which is published as a whole."""
    # A release of a cluster may be named by an address (file:///data/out).
    target = Path(re.sub(r"^file:(//)?", "", str(output)))
    if Path(folder).resolve().is_relative_to(target.resolve()):
        raise InputError(
            Option("ledger"), "the ledger is confidential and must not be in the release. Name another folder."
        )


class Recorder:
    """Audits the release of one run, and records it.

    Attributes
    ----------
    ledger
        The ledger; the run holds its lock from the audit until the entry is appended.
    name
        The name of the release.
    inputs
        The source records of the run, once they are read.
    """

    inputs: Inputs

    def __init__(self, ledger: Ledger, output: Path | str) -> None:
        self.ledger, self.name, self.output = ledger, release_name(output), output
        self._audited: tuple[Candidate, Examination] | None = None
        self._kept: Kept = {}

    def overlaps(self, spec: RunSpec, inputs: Inputs) -> bool:
        """Keep the source records of the run; return whether an earlier release shares some. The caller holds the lock."""
        self.inputs = inputs
        if spec.method.row_semantics == "noisy":
            return False
        independent = spec.options.independent
        return bool(connected(self.ledger, inputs.kind, inputs.records, inputs.times, independent=independent))

    def unchanged(self, spec: RunSpec, data: Flows, release: FlowRelease, counts: str) -> tuple[FlowRelease, list[str]]:
        """Keep earlier values of rows in which fewer than k people changed; the caller holds the lock."""
        check_auditable(spec.method.name, "keep_unchanged")
        if data.weight is not None:
            raise InputError(Option("keep_unchanged"), "earlier volumes of weighted trips are rounded. Leave it out.")
        candidate = model_candidate(self.ledger, self.name, self.inputs, data, release, _about(spec, counts))
        against, _, records, published = aligned(self.ledger, candidate)
        boxes, volume = boxes_of_release(release), release.volume.tolist()
        changes = small_changes(self.ledger, against, records, published, boxes, volume, candidate)
        release, self._kept, lines = keep_earlier_values(release, against, changes)
        return release, lines

    def audit(self, spec: RunSpec, data: Flows, written: WrittenRelease, counts: str) -> LedgerAudit:
        """Audit a written release; record a refusal and raise where a small set could be derived."""
        about = _about(spec, counts)
        if spec.method.row_semantics == "noisy":
            about["epsilon"] = spec.params.epsilon_of_release(len(written.steps))  # type: ignore[attr-defined]
        candidate = flow_candidate(self.ledger, self.name, self.inputs, data, written, about)
        boxes = boxes_of_table(written, data.step_s, data.tz) if self._kept else []
        return self.examined(with_kept_rows(self.ledger, candidate, boxes, self._kept), written)

    def examined(self, candidate: Candidate, written: WrittenRelease | None = None) -> LedgerAudit:
        """Audit a candidate; the caller holds the lock."""
        found = examine(self.ledger, candidate, written)
        if not found.passed:
            add_refusal(self.ledger, candidate, found)
            refuse(self.name, found)
        self._audited = candidate, found
        statement = found.statement(self.ledger.next_entry(), independent=candidate.independent)
        return LedgerAudit(statement, found_lines(found))

    def derived(self, written: WrittenRelease, manifest: Manifest) -> LedgerAudit:
        """Accept a derived release whose parent is in the ledger; the caller holds the lock."""
        return self.examined(derived_candidate(self.ledger, self.name, written, manifest), written)

    @contextmanager
    def recorded(self, folder: Path, manifest: Manifest | HeatMapManifest) -> Iterator[None]:
        """Append the entry, put the release into place in the body, and confirm it; withdraw it where it is not in place.

        Where that is not known, the entry stays prepared, and counts as published.
        """
        if self._audited is None:
            raise RuntimeError("a release is audited before it is recorded")
        made_by = _made_by(manifest)
        entry = add_entry(self.ledger, *self._audited, made_by, folder, manifest.files).entry
        try:
            yield
        except BaseException:
            if self._is_absent(manifest):
                confirm(self.ledger, entry, in_place=False)
            raise
        confirm(self.ledger, entry, in_place=True)

    def _is_absent(self, manifest: Manifest | HeatMapManifest) -> bool:
        """Return whether it is certain that the release is not in place; a folder of a cluster is not looked at."""
        if not isinstance(self.output, Path):
            return False
        try:
            return (self.output / MANIFEST_FILE).read_text(encoding="utf-8") != manifest.text
        except FileNotFoundError:
            return True
        except (OSError, ValueError):
            return False


def _about(spec: RunSpec, counts: str) -> dict[str, Any]:
    """Return k of a run and what it counts."""
    return {"k": getattr(spec.params, "k", 0), "k_unit": counts, "independent": spec.options.independent}


def record_map(ledger: Ledger, output: Path, inputs: list[str]) -> Callable[[Path, Trajectories], Any]:
    """Return a context that audits a heat map, and records it when its block has put it into place at `output`."""

    @contextmanager
    def recorded(folder: Path, data: Trajectories) -> Iterator[None]:
        recorder = Recorder(ledger, output)
        with ExitStack() as held:
            with ledger.locked():
                candidate = map_candidate(ledger, recorder.name, data, read_sectors(folder / GEOJSON), inputs)
                audited = recorder.examined(candidate).statement
                manifest = read_map_manifest(folder).model_copy(update={"ledger": audited})
                manifest.write(folder)
                held.enter_context(recorder.recorded(folder, manifest))
            yield

    return recorded


def _made_by(manifest: Manifest | HeatMapManifest) -> MadeBy:
    if isinstance(manifest, HeatMapManifest):
        return MadeBy(manifest.analysis, manifest.parameters, manifest.input_options)
    return MadeBy(manifest.method.name, manifest.method.parameters, manifest.input.options)


@dataclass(frozen=True)
class Checked:
    """The audit of a written release: sentences for the owner, and the entry that it became, if any."""

    passed: bool
    lines: list[str]
    entry: int | None = None


def check_release(
    folder: Path, ledger: Ledger, original: Any, reading: dict[str, Any], *, independent: bool = False
) -> Checked:
    """Audit a written release against a ledger without adding it; `original` is the data that it was made from."""
    candidate, written, _ = _candidate(folder, ledger, original, reading, independent)
    found = examine(ledger, candidate, written)
    return Checked(found.passed, found_lines(found))


def add_release(
    folder: Path,
    ledger: Ledger,
    original: Any,
    reading: dict[str, Any],
    *,
    published: bool = False,
    independent: bool = False,
) -> Checked:
    """Audit a written release and add it to a ledger; raise where the audit fails, unless it is `published` already."""
    candidate, written, manifest = _candidate(folder, ledger, original, reading, independent)
    with ledger.locked():
        found = examine(ledger, candidate, written)
        if not found.passed and not published:
            add_refusal(ledger, candidate, found)
            refuse(candidate.name, found)
        entry = add_entry(ledger, candidate, found, _made_by(manifest), folder, manifest.files).entry
        confirm(ledger, entry, in_place=True)
    return Checked(found.passed, found_lines(found), entry)


def _candidate(
    folder: Path, ledger: Ledger, original: Any, reading: dict[str, Any], independent: bool
) -> tuple[Candidate, WrittenRelease | None, Manifest | HeatMapManifest]:
    """Return the candidate of a written release or heat map, its tables, and its manifest."""
    folder = Path(folder)
    if is_heat_map(folder):
        return _map_candidate(folder, ledger, original, reading)
    manifest, written = releases.sound_release(folder)
    if not written.is_flows:
        raise InputError(folder, "the ledger audits flows and heat maps, and this release holds trajectories.")
    if manifest.method.name == DERIVED:
        require_not_violated(check(written, stated_guarantees(manifest)))
        return derived_candidate(ledger, release_name(folder), written, manifest), written, manifest
    check_auditable(manifest.method.name)
    if original is None:
        raise ParameterError(
            Option("original"), "the audit compares records. Give the data that the release was made from."
        )
    options = {} if isinstance(original, Flows) else original_input_options(manifest, reading)
    flows = releases.read_again(manifest, Flows, original, reading)
    if not isinstance(flows, Flows):
        raise InputError(folder, "Expected flows.")
    releases.refuse_other_original(manifest, written, flows)
    about = {"k": manifest.k or 0, "k_unit": manifest.k_unit, "independent": independent}
    about["epsilon"] = manifest.method.facts.get("epsilon_of_the_release")
    inputs = inputs_of(ledger, original, FlowReading.checked(options), flows)
    return flow_candidate(ledger, release_name(folder), inputs, flows, written, about), written, manifest


def _map_candidate(
    folder: Path, ledger: Ledger, original: Any, reading: dict[str, Any]
) -> tuple[Candidate, None, HeatMapManifest]:
    if original is None:
        raise ParameterError(
            Option("original"), "the audit compares records. Give the data that the map was made from."
        )
    if folder.is_file():
        raise InputError(folder, "Expected the folder of a heat map with its manifest. Write the map to a folder.")
    options = TrajectoryReading.checked(map_input_options(folder, reading))
    data = read(Trajectories, original, options, ReadNotes())
    verify_heat_map(folder, data)
    manifest = read_map_manifest(folder)
    candidate = map_candidate(ledger, release_name(folder), data, read_sectors(folder / GEOJSON), input_files(original))
    return candidate, None, manifest
