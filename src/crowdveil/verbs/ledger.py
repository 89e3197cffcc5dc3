"""Keep a ledger of the releases of one data source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from crowdveil.ledger.recording import retire, verify_ledger
from crowdveil.ledger.store import Ledger, create_ledger
from crowdveil.ledger.wording import entry_rows, explain
from crowdveil.model.tabular import Table
from crowdveil.run.ledgers import Checked, add_release, check_release
from crowdveil.verbs.opened import folder_of


def ledger_init(folder: str | Path) -> Path:
    """Create an empty ledger in a new folder that only its owner can read.

    Runs with `ledger=folder` are audited against all its entries. The folder is confidential.

    >>> crowdveil.ledger_init("ledger")  # doctest: +SKIP
    """
    return create_ledger(Path(folder)).folder


def ledger_list(folder: str | Path) -> Table:
    """Return a table of the entries of a ledger: their releases, periods, k, methods and audits.

    >>> crowdveil.ledger_list("ledger").to_pandas()  # doctest: +SKIP
    """
    return Table(pa.Table.from_pylist(entry_rows(Ledger(folder))))


def ledger_check(
    folder: str | Path, release: Any, original: Any, *, independent: bool = False, **options: Any
) -> Checked:
    """Audit a release or a heat map against a ledger without adding it; the result has `.passed` and `.lines`.

    `original` is the data behind it, read with the options in the manifest; only files, such as zones, must be named again in
    `options`. With `independent` the publisher states that new records in the period of an earlier release are other trips.

    >>> crowdveil.ledger_check("ledger", "out", "trips.parquet", zones="zones.geojson").passed  # doctest: +SKIP
    """
    with folder_of(release) as opened:
        return check_release(Path(opened), Ledger(folder), original, options, independent=independent)


def ledger_add(
    folder: str | Path,
    release: Any,
    original: Any = None,
    *,
    published: bool = False,
    independent: bool = False,
    **options: Any,
) -> Checked:
    """Audit a release or a heat map and add it to a ledger; raise if a set of fewer than k could be derived.

    With `published` it is added whatever the audit finds, because it is already public. For the rest see `ledger_check`.

    >>> crowdveil.ledger_add("ledger", "out", "trips.parquet", zones="zones.geojson").entry  # doctest: +SKIP
    """
    with folder_of(release) as opened:
        ledger = Ledger(folder)
        return add_release(Path(opened), ledger, original, options, published=published, independent=independent)


def ledger_explain(folder: str | Path, entry: int | None = None) -> list[str]:
    """Explain the audit of an entry, or of the last refused release: rows, subtraction and size of the set.

    >>> print("\\n".join(crowdveil.ledger_explain("ledger")))  # doctest: +SKIP
    """
    return explain(Ledger(folder), entry)


def ledger_verify(folder: str | Path, last: str | None = None) -> list[str]:
    """Check that no line or file of a ledger was changed or removed; `last` is the last hash of an earlier check.

    >>> crowdveil.ledger_verify("ledger")  # doctest: +SKIP
    """
    return verify_ledger(Ledger(folder), last)


def ledger_retire(folder: str | Path, entry: int, reason: str) -> None:
    """Leave an entry out of later audits. Only for a release that nobody received; published data stay known.

    >>> crowdveil.ledger_retire("ledger", 3, "never sent: the recipient withdrew the request")  # doctest: +SKIP
    """
    retire(Ledger(folder), entry, reason)
