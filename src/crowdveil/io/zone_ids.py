"""Zone ids of data against those of the zones: a different spelling of the same number is named as the cause."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.io.person_ids import normalized_ids
from crowdveil.model.zones import Zones


def refuse_other_spelling(unknown: Iterable[str], zones: Zones, what: str) -> None:
    """Raise if ids that are not among the zones differ from one of them only in how a number is written, or in blanks."""
    strange = [name for name in unknown if name]
    if not strange:
        return
    known = set(normalized_ids(pa.array([str(i) for i in zones.ids], pa.string()), what).to_pylist()) - {None}
    if known.intersection(normalized_ids(pa.array(strange, pa.string()), what).to_pylist()):
        raise InputError(
            what,
            "ids differ from those of the zones only in how they are written, such as 01 and 1 where leading zeros were "
            "lost on one side, or in blanks; write them alike on both sides.",
        )
