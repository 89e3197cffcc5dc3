"""Who was at these different places, however often?

The adversary knows some of the different places of somebody. Everybody matches who has them all.

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
    return searched(scene, scene.sight(params.tile_m), params, MatchRule("at-least", "counts"), progress)


ATTACK = Attack(
    "unique-location",
    "different places",
    takes=Trajectories,
    params=KnowledgeParams,
    run=run,
    doc=__doc__ or "",
    aliases=("UniqueLocationAttack",),
)
