"""How few people or trips does a row tell of?

The adversary reads the smallest published crowd.
"""

from __future__ import annotations

from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams
from crowdveil.attacks.od.published import Published
from crowdveil.errors import counted
from crowdveil.model.release import FlowRelease


def run(published: Published, params: FlowAttackParams) -> Exposure:
    """The smallest crowd and volume of all rows."""
    release, k = published.release, published.crowd(params)
    small = int((release.people < k).sum())
    worst = int(release.people.min()) if len(release) else None
    values = {
        "rows": len(release),
        f"smallest_{release.counts}": worst,
        "smallest_volume": int(release.volume.min()) if len(release) else None,
        "rows_below_k": small,
    }
    said = f"{counted(len(release), 'row')} looked at, {small:,} with fewer than {k:,} {release.counts}."
    return Exposure(ATTACK.name, ATTACK.title, values, worst, small > 0, said)


ATTACK = Attack(
    "minimum-crowd", "smallest crowd", takes=FlowRelease, params=FlowAttackParams, run=run, doc=__doc__ or ""
)
