"""Define the adversary's view of a release of flows, and the adversaries who read its rows and add them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdveil.attacks.adversary_view import DEFAULT_K
from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams
from crowdveil.errors import counted
from crowdveil.model.arrays import Indices, Ints, ranks
from crowdveil.model.release import FlowRelease


@dataclass(frozen=True, eq=False)
class Published:
    """A published release, and the public facts of its method.

    Attributes
    ----------
    release
        The flows.
    k
        The guaranteed group size, None where there is none.
    row_semantics
        The meaning of a row: the volume of all flows in it (exact), of some of them (overlapping), or one with noise.
    """

    release: FlowRelease
    k: int | None = None
    row_semantics: Literal["exact", "overlapping", "noisy"] = "exact"

    def threshold(self, params: FlowAttackParams) -> int:
        """Return the group size that counts are compared with."""
        return params.k or self.k or DEFAULT_K

    def margins(self, area: Indices, *, over_steps: bool) -> tuple[Ints, Ints]:
        """Return a number for each row, the same for rows of one area, in one time step or in any; and the upper bound of the
        trips or people of each number: people in two rows count twice.
        """
        areas = max(len(self.release.areas), 1)
        step = self.release.step
        if self.release.intervals is not None:  # rows of one interval, as those of one time step
            step, _ = ranks(
                self.release.intervals.first * (len(self.release.intervals.start) + 1) + self.release.intervals.last
            )
        key = area.astype(np.int64) if over_steps else step * areas + area
        number, _ = ranks(key)
        return number, np.bincount(number, self.release.people).astype(np.int64)


def _read_rows(published: Published, params: FlowAttackParams) -> Exposure:
    """Return the smallest group size and volume of all rows."""
    release, k = published.release, published.threshold(params)
    small = int((release.people < k).sum())
    worst = int(release.people.min()) if len(release) else None
    values = {
        "rows": len(release),
        f"smallest_{release.k_unit}": worst,
        "smallest_volume": int(release.volume.min()) if len(release) else None,
        "rows_below_k": small,
    }
    sentence = f"{counted(len(release), 'row')} checked, {small:,} with fewer than {k:,} {release.k_unit}."
    return Exposure(MINIMUM_GROUP_SIZE.name, MINIMUM_GROUP_SIZE.title, values, worst, small > 0, sentence)


def _add_up_margins(published: Published, params: FlowAttackParams) -> Exposure:
    """Return the smallest total, and how many are below k."""
    release, k = published.release, published.threshold(params)
    checked, small, smallest = 0, 0, []
    for area in (release.origin, release.destination):
        for over_steps in (False, True):
            _, people = published.margins(area, over_steps=over_steps)
            checked, small = checked + len(people), small + int((people < k).sum())
            smallest += [int(people.min())] if len(people) else []
    totals = release.suppressed[release.suppressed > 0]
    few = int((totals < k).sum())
    smallest += [int(totals.min())] if len(totals) else []
    worst = min(smallest, default=None)
    values = {"totals": checked, "smallest": worst, "totals_below_k": small, "suppressed_totals_below_k": few}
    sentence = (
        f"{counted(checked, 'total')} of origins and destinations checked, {small:,} with fewer than {k:,} "
        f"{release.k_unit}; {counted(len(totals), 'suppressed total')} given, {few:,} below."
    )
    return Exposure(SINGLETON_MARGINS.name, SINGLETON_MARGINS.title, values, worst, small + few > 0, sentence)


MINIMUM_GROUP_SIZE = Attack(
    "minimum-group-size", "smallest group", takes=FlowRelease, params=FlowAttackParams, run=_read_rows,
    text="""Read the smallest published group size.

The adversary reads rows of few people or trips.
""",
)  # fmt: skip
SINGLETON_MARGINS = Attack(
    "singleton-margins", "smallest total", takes=FlowRelease, params=FlowAttackParams, run=_add_up_margins,
    text="""Add up totals of fewer than k people.

The adversary adds up the rows of each origin and of each destination, in each time step and over all of them, and reads the
suppressed totals.

Notes
-----
Rows may share people, so that a sum of group sizes is an upper bound: if it is below k, the total is of fewer than k people for
certain.
""",
)  # fmt: skip
