"""Who spends these shares of all visits at these places?

The adversary knows some of the different places of somebody, and which share of all visits each of them has. Everybody matches
whose share p at each known place is so that the known one is from p − tolerance · p to p + tolerance · p.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from __future__ import annotations

from crowdveil.attacks.adversary_view import AttackScenario
from crowdveil.attacks.base import Attack, Risk, ToleranceParams
from crowdveil.attacks.search import MatchRule, searched
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress


def run(scene: AttackScenario, params: ToleranceParams, progress: Progress) -> Risk:
    """The risk of each individual."""
    way = MatchRule("within", "shares", params.tolerance)
    return searched(scene, scene.sight(params.tile_m), params, way, progress)


ATTACK = Attack(
    "probability",
    "places with probabilities",
    takes=Trajectories,
    params=ToleranceParams,
    run=run,
    doc=__doc__ or "",
    aliases=("LocationProbabilityAttack",),
)
