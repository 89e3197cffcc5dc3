"""Match known locations in their order.

The adversary knows some records of a person in their order, without times. A person matches with the known locations in that
order, with or without other locations between them.

Notes
-----
Records of one time keep the order in which they were read; scikit-mobility leaves it undefined.

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
    return search_risk(scenario, scenario.view(params.tile_m), params, MatchRule("in-order"), progress)


ATTACK = Attack(
    "sequence",
    "locations in order",
    takes=Trajectories,
    params=KnowledgeParams,
    run=run,
    aliases=("LocationSequenceAttack",),
)
