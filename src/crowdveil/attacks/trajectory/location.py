"""Who was at these places, each at least as often as it is known?

The adversary knows some of somebody's records without their times. Everybody matches who has each known place at least as
often as it is known.

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
    return searched(scene, scene.sight(params.tile_m), params, MatchRule("at-least"), progress)


ATTACK = Attack(
    "location",
    "places",
    takes=Trajectories,
    params=KnowledgeParams,
    run=run,
    doc=__doc__ or "",
    aliases=("LocationAttack",),
)
