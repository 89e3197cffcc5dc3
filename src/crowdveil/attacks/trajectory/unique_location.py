"""Match distinct known locations.

The adversary knows some distinct locations of a person. A person matches who has them all.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from __future__ import annotations

from crowdveil.attacks.adversary_view import AttackScenario
from crowdveil.attacks.base import Attack, KnowledgeParams, Risk
from crowdveil.attacks.search import MatchRule, search_risk
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress


def run(scenario: AttackScenario, params: KnowledgeParams, progress: Progress) -> Risk:
    """Return the risk of each individual."""
    return search_risk(scenario, scenario.view(params.tile_m), params, MatchRule("at-least", "counts"), progress)


ATTACK = Attack(
    "unique-location",
    "different locations",
    takes=Trajectories,
    params=KnowledgeParams,
    run=run,
    aliases=("UniqueLocationAttack",),
)
