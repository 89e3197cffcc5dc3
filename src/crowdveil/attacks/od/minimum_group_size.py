"""Read the smallest published group size.

The adversary reads rows of few people or trips.
"""

from __future__ import annotations

from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams
from crowdveil.attacks.od.published import Published
from crowdveil.errors import counted
from crowdveil.model.release import FlowRelease


def run(published: Published, params: FlowAttackParams) -> Exposure:
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
    said = f"{counted(len(release), 'row')} checked, {small:,} with fewer than {k:,} {release.k_unit}."
    return Exposure(ATTACK.name, ATTACK.title, values, worst, small > 0, said)


ATTACK = Attack("minimum-group-size", "smallest group", takes=FlowRelease, params=FlowAttackParams, run=run)
