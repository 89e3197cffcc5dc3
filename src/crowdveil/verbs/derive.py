"""Derive coarser releases from published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from crowdveil.io.notes import ReadNotes
from crowdveil.io.written_release import MANIFEST_FILE
from crowdveil.ledger.store import open_ledger
from crowdveil.run import deriving
from crowdveil.run.options import LedgerOptions
from crowdveil.run.result import Result
from crowdveil.verbs.base import InputFile, Outcome, Output, Task, Verb, with_examples
from crowdveil.verbs.opened import folder_of


def derive(
    release: Any,
    output: str | Path,
    *,
    overwrite: bool = False,
    report: bool = True,
    ledger: str | Path | None = None,
    **options: Any,
) -> Result:
    """Derive a coarser release from a published one by adding up its rows, and write it to the folder `output`.

    `options` are `step` ("1d", or "all") and `to_zones` (a table with the columns zone and group, and a row for each tile).
    It reveals nothing more than the published release, and a `ledger` with that release accepts it.

    >>> crowdveil.derive("hours", "days", step="1d")  # doctest: +SKIP
    """
    with folder_of(release) as folder:
        checked = deriving.DeriveOptions.checked(options)
        opened = None if ledger is None else open_ledger(ledger)
        return deriving.derive(Path(folder), Path(output), checked, overwrite=overwrite, report=report, ledger=opened)


class DerivedOptions(LedgerOptions):
    """Options of a derived release."""

    report: bool = Field(True, strict=True)
    """Write report.html into the release."""


def _run(task: Task) -> Outcome:
    options = task.of(deriving.DeriveOptions, DerivedOptions)
    result = derive(task.files["release"], str(task.output), overwrite=task.overwrite, **options)
    return Outcome(ReadNotes(), result.lines())


HELP = """Derive a coarser release from a published one: longer time steps, or larger zones.

Rows are added up, so the result reveals nothing more than the published release. The manifest names that release, and
crowdveil verify compares the sums with it if both are in the same folder. Rows of areas outside of all zones are left out.
The number of people of a sum is that of its largest row, since several rows may have the same people."""
VERB = Verb(
    verb="derive",
    summary="Derive a coarser release from a published one, by adding up its rows.",
    run=_run,
    options=lambda name: (deriving.DeriveOptions, DerivedOptions),
    files=lambda name: (InputFile("release", (), "RELEASE"),),
    output=lambda name: Output(
        "Folder to write the release to.", "FOLDER", required=True, mark=MANIFEST_FILE, note="verified and written"
    ),
    help=lambda name: with_examples(
        HELP,
        "derive",
        "hours/ --step 1d -o days/",
        "hours/ --step 1d --to-zones districts.csv -o districts/ --ledger ledger/",
    ),
)
