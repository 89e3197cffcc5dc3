"""Compare unknown zone ids with those of the zones, to report another spelling as the cause."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.io.person_ids import normalized_ids
from crowdveil.model.zones import Zones


def refuse_other_spelling(unknown: Iterable[str], zones: Zones, what: str) -> None:
    """Raise if unknown ids differ from an id of the zones only in the spelling of a number, or in blanks."""
    present = [name for name in unknown if name]
    if not present:
        return
    known = set(normalized_ids(pa.array([str(i) for i in zones.ids], pa.string()), what).to_pylist()) - {None}
    if known.intersection(normalized_ids(pa.array(present, pa.string()), what).to_pylist()):
        raise InputError(
            what,
            "ids differ from those of the zones only in spelling (01 and 1 where leading zeros were lost, or 193.0 and 193) "
            "or in blanks; "
            "write them alike in both files.",
        )
