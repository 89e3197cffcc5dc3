"""Who was at these places in this order?

The adversary knows some of somebody's records in their order, and not their times. Everybody matches who has the known places in
that order, other places between them or not.

Notes
-----
Records of one time keep the order in which they were read; scikit-mobility leaves it open.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from __future__ import annotations

from crowdveil.attacks.adversary_view import AttackScenario
from crowdveil.attacks.base import Attack, KnowledgeParams, Risk
from crowdveil.attacks.search import MatchRule, searched
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress


def run(scene: AttackScenario, params: KnowledgeParams, progress: Progress) -> Risk:
    """The risk of each individual."""
    return searched(scene, scene.sight(params.tile_m), params, MatchRule("in-order"), progress)


ATTACK = Attack(
    "sequence",
    "places in order",
    takes=Trajectories,
    params=KnowledgeParams,
    run=run,
    doc=__doc__ or "",
    aliases=("LocationSequenceAttack",),
)
