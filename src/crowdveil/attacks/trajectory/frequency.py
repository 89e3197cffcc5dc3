"""Who was at these places so many times each?

The adversary knows some of the different places of somebody, and how often they were visited. Everybody matches whose frequency f
at each known place is so that the known one is from f − tolerance · f to f + tolerance · f.

Notes
-----
The interval is around the frequency of whoever is looked at, not around the known one, as in scikit-mobility's code.

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
    way = MatchRule("within", "counts", params.tolerance)
    return searched(scene, scene.sight(params.tile_m), params, way, progress)


ATTACK = Attack(
    "frequency",
    "places with frequencies",
    takes=Trajectories,
    params=ToleranceParams,
    run=run,
    doc=__doc__ or "",
    aliases=("LocationFrequencyAttack",),
)
