"""Candidates for an audit: releases with their source records and the row of each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.errors import GuaranteeViolatedError, InputError, Option
from crowdveil.guarantees import SumsOfParent, guarantee_from_manifest
from crowdveil.io.manifest import Manifest
from crowdveil.io.release_reader import load_flow_release, places_in_table
from crowdveil.io.sectors import WrittenSectors, read_sectors
from crowdveil.io.written_release import WrittenRelease
from crowdveil.ledger.content import SourceRecords
from crowdveil.ledger.entries import Kind, Period, Times, active_entries, entry_label, stored_records, stored_release
from crowdveil.ledger.records import Inputs, read_records
from crowdveil.ledger.store import Ledger
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, FlowRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.reading import Reading
from crowdveil.registry import find_method
from crowdveil.solve.od.assignment import row_of_flows, windows_of_steps


@dataclass(frozen=True, eq=False)
class Candidate:
    """A release before it is in the ledger.

    Attributes
    ----------
    name
        The name of its folder.
    kind, columns, inputs
        As in `Entry`.
    records
        Its source records with their published rows; row `rows` + i is the suppressed total of time step i.
    rows
        Number of rows in its table.
    period, k, k_unit
        As in `Entry`.
    parent
        The entry from which it was derived; None if it was made from the data.
    step_s, tz
        As in `Entry`.
    epsilon
        Privacy loss of a release with noise, whose rows contain no record exactly; None if volumes are exact.
    fold
        The period by which its times are folded; None if they are not.
    independent
        As in `Entry`.
    times
        As in `Inputs`.
    """

    name: str
    kind: Kind
    columns: dict[str, str]
    inputs: list[str]
    records: SourceRecords
    rows: int
    period: Period | None
    k: int
    k_unit: str
    parent: int | None = None
    step_s: int | None = None
    tz: str = "UTC"
    epsilon: float | None = None
    fold: str | None = None
    independent: bool = False
    times: Times | None = None


def known_columns(ledger: Ledger) -> dict[str, str] | None:
    """Return the columns that identify trips or flows in the ledger's first active entry; None if there is none."""
    first = next((entry for entry in active_entries(ledger) if entry.kind != "locations"), None)
    return None if first is None else dict(first.columns)


def check_auditable(method_name: str, option: str = "ledger") -> None:
    """Raise if a ledger cannot audit a method, because its rows overlap; `option` is the one that needs the audit."""
    semantics = find_method(method_name).row_semantics
    if semantics == "noisy" and option == "keep_unchanged":
        raise InputError(
            Option(option),
            f"Expected a method with exact volumes, got {method_name}, which adds noise. Leave this out.",
        )
    if semantics == "overlapping":
        raise InputError(
            Option(option),
            f"Expected a method without overlapping rows, got {method_name}. Leave this out, or choose another method.",
        )


def flow_candidate(
    ledger: Ledger,
    name: str,
    inputs: Inputs,
    flows: Flows,
    written: WrittenRelease,
    about: Mapping[str, Any],
) -> Candidate:
    """Return the candidate of a written release of flows; `about` has its k and k_unit, and epsilon if it has noise."""
    made = model_candidate(ledger, name, inputs, flows, load_flow_release(written, flows), about)
    rows, steps = places_in_table(written, flows)
    place = np.concatenate([rows, made.rows + steps, [-1]])  # the last is for records without a row
    return replace(made, records=made.records._replace(cell=place[made.records.cell]))


def model_candidate(
    ledger: Ledger,
    name: str,
    inputs: Inputs,
    flows: Flows,
    release: FlowRelease,
    about: Mapping[str, Any],
) -> Candidate:
    """Return the candidate of a release of flows before it is written."""
    _check_kind(ledger, inputs)
    epsilon = about.get("epsilon")
    row = (
        rows_with_totals(flows, release)[inputs.records.cell]
        if epsilon is None
        else np.full(len(inputs.records.cell), -1, np.int64)
    )
    return Candidate(
        name, inputs.kind, inputs.columns, inputs.files, inputs.records._replace(cell=row), len(release),
        None if inputs.times is None else inputs.times.period, int(about["k"]), str(about["k_unit"]),
        step_s=flows.step_s, tz=flows.tz, epsilon=epsilon, fold=inputs.fold, independent=bool(about.get("independent")),
        times=inputs.times,
    )  # fmt: skip


def inputs_of(ledger: Ledger, data: Any, reading: Reading, flows: Flows) -> Inputs:
    """Read the source records behind flows from `data`, with the identifying columns of the ledger."""
    return read_records(data, reading, flows, known_columns(ledger), ledger.key)


def map_candidate(
    ledger: Ledger, name: str, data: Trajectories, written: WrittenSectors, inputs: list[str]
) -> Candidate:
    """Return the candidate of a written heat map; raise if the ledger has a different map of its period.

    Different maps of the same data can be subtracted, and the ledger has no locations to tell what two maps share.
    """
    period = Period(int(data.t.min()), int(data.t.max()) + 1, True)
    for entry in active_entries(ledger):
        if entry.kind != "locations" or (entry.period is not None and not entry.period.common(period)):
            continue
        earlier = read_sectors(ledger.entry_folder(entry.entry) / entry.roles["data"])
        if (earlier.properties, earlier.k) != (written.properties, written.k):
            raise GuaranteeViolatedError(
                name,
                f"Expected a single heat map of the data, but {entry_label(entry)} is of the same period and differs, so the two "
                "can be subtracted. Use the earlier map.",
            )
    nothing = np.zeros(0, np.int64)
    records = SourceRecords(nothing.astype(np.uint64), None, nothing, nothing)
    return Candidate(name, "locations", {}, inputs, records, len(written), period, written.k, written.counts)


def derived_candidate(ledger: Ledger, name: str, written: WrittenRelease, manifest: Manifest) -> Candidate:
    """Return the candidate of a derived release, with the records of its parent in the ledger."""
    origin, stated = manifest.parent, manifest.guaranteed(SumsOfParent.name)
    if origin is None or stated is None:
        raise InputError(name, "Expected a parent in the manifest of a derived release, got none. Derive it again.")
    sums, sha256 = guarantee_from_manifest(SumsOfParent.name, stated), origin.files.get("data")
    parent = next((entry for entry in active_entries(ledger) if sha256 in entry.files.values()), None)
    stored = None if parent is None else stored_release(ledger, parent)
    if parent is None or stored is None or not isinstance(sums, SumsOfParent):
        raise InputError(
            name,
            f"Expected its parent {origin.name} in the ledger, which lacks it. Add the parent first.",
        )
    finding = sums.compare(stored, written)
    if finding.violated:
        raise GuaranteeViolatedError(name, f"its rows are not sums of rows of {entry_label(parent)}. {finding.detail}")
    records = stored_records(ledger, parent)
    of_row = np.array([*sums.rows_of_parent(stored, written), -1], np.int64)
    inside = (records.cell >= 0) & (records.cell < len(stored.data))  # a suppressed total is not added up
    records = records._replace(cell=of_row[np.where(inside, records.cell, -1)])
    return Candidate(
        name, parent.kind, parent.columns, parent.inputs, records, len(written.data), parent.period, parent.k,
        parent.k_unit, parent.entry, manifest.step_seconds, manifest.time_zone,
    )  # fmt: skip


def _check_kind(ledger: Ledger, inputs: Inputs) -> None:
    other = next((e for e in active_entries(ledger) if e.kind not in (inputs.kind, "locations")), None)
    if other is not None:
        raise InputError(
            Option("ledger"),
            f"Expected {other.kind}, as in the earlier entries, got {inputs.kind}. Create a ledger for this source.",
        )


def rows_with_totals(flows: Flows, release: FlowRelease) -> Ints:
    """Return the published row of each flow: one of the table, or after those the suppressed total of its step or window."""
    row, place = row_of_flows(flows, release), windows_of_steps(flows, release)
    # The last place is for time steps that are not listed.
    given = np.append(release.suppressed != NOT_GIVEN, False)[place]
    total = np.where(given, len(release) + place, -1)
    return np.where(row >= 0, row, total[flows.step])


def release_name(folder: Path | str) -> str:
    """Return the name of a release in the ledger: the name of its folder."""
    return Path(folder).absolute().name
