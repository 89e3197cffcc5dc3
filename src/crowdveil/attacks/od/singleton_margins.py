"""Which totals can be added up that fewer than k are behind?

The adversary adds up the rows of each origin and of each destination, in each time step and over all of them, and reads the
totals of what was suppressed.

Notes
-----
People of several rows may be the same ones, so that a sum of crowds is the most that a total can have: if it is below k, the
total tells of fewer than k people for sure.
"""

from __future__ import annotations

from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams
from crowdveil.attacks.od.published import Published
from crowdveil.errors import counted
from crowdveil.model.release import FlowRelease


def run(published: Published, params: FlowAttackParams) -> Exposure:
    """The smallest total, and how many are below k."""
    release, k = published.release, published.crowd(params)
    looked, small, smallest = 0, 0, []
    for area in (release.origin, release.destination):
        for over_steps in (False, True):
            _, crowd = published.margins(area, over_steps=over_steps)
            looked, small = looked + len(crowd), small + int((crowd < k).sum())
            smallest += [int(crowd.min())] if len(crowd) else []
    told = release.suppressed[release.suppressed > 0]
    few = int((told < k).sum())
    smallest += [int(told.min())] if len(told) else []
    worst = min(smallest, default=None)
    values = {"totals": looked, "smallest": worst, "totals_below_k": small, "suppressed_totals_below_k": few}
    said = (
        f"{counted(looked, 'total')} of origins and destinations looked at, {small:,} with fewer than {k:,} "
        f"{release.counts}; {counted(len(told), 'suppressed total')} told, {few:,} below."
    )
    return Exposure(ATTACK.name, ATTACK.title, values, worst, small + few > 0, said)


ATTACK = Attack(
    "singleton-margins", "smallest total", takes=FlowRelease, params=FlowAttackParams, run=run, doc=__doc__ or ""
)
