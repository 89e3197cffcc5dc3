"""Who is known to go to one place, because everybody from there does?

The adversary knows where somebody set out from, and in which time step. If all published travellers of that origin go to one
area, the crowd hides who is who, and not where they went.

Notes
-----
No k protects from it: it is a matter of how different the travellers of a crowd are (l-diversity), and it is told, not
promised. The larger the one destination, the less is learnt; origins whose travellers all go to one single tile are told apart.
Where trips were withheld, some of the origin may have gone elsewhere. With the roles exchanged the same is told of destinations.

References
----------
Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, l-diversity: privacy beyond k-anonymity, 2007.
"""

from __future__ import annotations

import numpy as np

from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams
from crowdveil.attacks.od.published import Published
from crowdveil.errors import counted
from crowdveil.model.arrays import Indices, Ints
from crowdveil.model.release import FlowRelease


def run(published: Published, params: FlowAttackParams) -> Exposure:
    """Shares of origins, and of trips from them, whose travellers all go to one area, and to one tile; the same backwards."""
    release = published.release
    alone, least = np.zeros(0, np.bool_), None
    told: dict[str, float | int | None] = {}
    for side, area, other in (
        ("origins", release.origin, release.destination),
        ("destinations", release.destination, release.origin),
    ):
        number, _ = published.margins(area, over_steps=False)
        ends = _different(number, other, len(release.areas))
        one, tile = ends == 1, (ends == 1) & _all_small(number, release.areas.size[other], len(ends))
        volume = np.bincount(number, release.volume, len(ends))
        told |= {
            side: len(ends),
            f"{side}_with_one_end_percent": _percent(one.sum(), len(ends)),
            f"trips_of_{side}_with_one_end_percent": _percent(volume[one].sum(), volume.sum()),
            f"{side}_with_one_tile_percent": _percent(tile.sum(), len(ends)),
            f"trips_of_{side}_with_one_tile_percent": _percent(volume[tile].sum(), volume.sum()),
        }
        if side == "origins":
            alone, least = one, int(ends.min()) if len(ends) else None
    said = (
        f"{counted(len(alone), 'origin')} of time steps looked at; from {int(alone.sum()):,} all published travellers go to one "
        "area: their crowds hide who they are, and not where they went."
    )
    return Exposure(ATTACK.name, ATTACK.title, {**told, "fewest_destinations": least}, None, False, said)


def _different(number: Ints, area: Indices, areas: int) -> Ints:
    """How many different areas each group of rows has."""
    from crowdveil.kernels.ordering import rows_by_two

    groups = int(number.max(initial=-1)) + 1
    order = rows_by_two(number, area.astype(np.int64), groups, areas)
    group, end = number[order], area[order]
    new = (np.diff(group, prepend=-1) != 0) | (np.diff(end, prepend=-1) != 0)
    return np.bincount(group[new], minlength=groups)


def _all_small(number: Ints, size: Ints, groups: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether every row of a group ends in a single tile."""
    large = np.bincount(number[size > 1], minlength=groups) > 0
    return ~large


def _percent(part: float, whole: float) -> float | None:
    return round(100 * float(part) / float(whole), 2) if whole else None


ATTACK = Attack(
    "homogeneity", "one destination for all", takes=FlowRelease, params=FlowAttackParams, run=run, doc=__doc__ or ""
)
