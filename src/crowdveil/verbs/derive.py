"""Derive coarser releases from published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.ledger.store import open_ledger
from crowdveil.run import deriving
from crowdveil.run.result import Result
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

    `options` are `step` ("1d", or "all") and `to_zones` (a table with the columns zone and group, a row for each tile).
    Nothing can be learned from it that is not in the published release; a `ledger` that has that accepts it.

    >>> crowdveil.derive("hours", "days", step="1d")  # doctest: +SKIP
    """
    with folder_of(release) as folder:
        checked = deriving.DeriveOptions.checked(options)
        opened = None if ledger is None else open_ledger(ledger)
        return deriving.derive(Path(folder), Path(output), checked, overwrite=overwrite, report=report, ledger=opened)
