"""Match known locations, each at least as often as known.

The adversary knows some records of a person without their times. A person matches with each known location at least as often as
known.

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
    return search_risk(scenario, scenario.view(params.tile_m), params, MatchRule("at-least"), progress)


ATTACK = Attack(
    "location",
    "locations",
    takes=Trajectories,
    params=KnowledgeParams,
    run=run,
    aliases=("LocationAttack",),
)
