"""Who visits these places in these proportions?

The adversary knows some of the different places of somebody, and how often each was visited in proportion to the most visited one
that is known. Everybody matches who has all known places, each with a proportion p so that the known one is from
p − tolerance · p to p + tolerance · p.

Notes
-----
With a tolerance, knowing more places may make a crowd larger, since another place may be the most visited one then. Exactly
`knowledge` places are known, as in scikit-mobility; in a release, where not all that is known need be there, up to so many.

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
    way = MatchRule("proportion", "counts", params.tolerance)
    return searched(scene, scene.sight(params.tile_m), params, way, progress)


ATTACK = Attack(
    "proportion",
    "places in proportion",
    takes=Trajectories,
    params=ToleranceParams,
    run=run,
    doc=__doc__ or "",
    aliases=("LocationProportionAttack",),
)
