"""Match known locations with their proportions of visits.

The adversary knows some distinct locations of a person, and the visits to each in proportion to the most visited known one. A
person matches with all known locations, each with a proportion p such that the known one is from p − tolerance · p to
p + tolerance · p.

Notes
-----
With a tolerance, more known locations may make a group larger, since another location may then be the most visited one. Exactly
`knowledge` locations are known, as in scikit-mobility; in a release, where known ones may be missing, up to that number.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from __future__ import annotations

from crowdveil.attacks.adversary_view import AttackScenario
from crowdveil.attacks.base import Attack, Risk, ToleranceParams
from crowdveil.attacks.search import MatchRule, search_risk
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress


def run(scenario: AttackScenario, params: ToleranceParams, progress: Progress) -> Risk:
    """Return the risk of each individual."""
    rule = MatchRule("proportion", "counts", params.tolerance)
    return search_risk(scenario, scenario.view(params.tile_m), params, rule, progress)


ATTACK = Attack(
    "proportion",
    "locations in proportion",
    takes=Trajectories,
    params=ToleranceParams,
    run=run,
    aliases=("LocationProportionAttack",),
)
