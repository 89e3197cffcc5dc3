"""Add up totals of fewer than k people.

The adversary adds up the rows of each origin and of each destination, in each time step and over all of them, and reads the
suppressed totals.

Notes
-----
Rows may share people, so that a sum of group sizes is an upper bound: if it is below k, the total is of fewer than k people for
certain.
"""

from __future__ import annotations

from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams
from crowdveil.attacks.od.published import Published
from crowdveil.errors import counted
from crowdveil.model.release import FlowRelease


def run(published: Published, params: FlowAttackParams) -> Exposure:
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
    said = (
        f"{counted(checked, 'total')} of origins and destinations checked, {small:,} with fewer than {k:,} "
        f"{release.k_unit}; {counted(len(totals), 'suppressed total')} given, {few:,} below."
    )
    return Exposure(ATTACK.name, ATTACK.title, values, worst, small + few > 0, said)


ATTACK = Attack("singleton-margins", "smallest total", takes=FlowRelease, params=FlowAttackParams, run=run)
