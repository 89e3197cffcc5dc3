"""Match known locations with their numbers of visits.

The adversary knows some distinct locations of a person, and the visits to each. A person matches if the frequency f at each
known location is such that the known one is from f − tolerance · f to f + tolerance · f.

Notes
-----
The interval is around the frequency of the candidate, not around the known one, as in scikit-mobility's code.

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
    rule = MatchRule("within", "counts", params.tolerance)
    return search_risk(scenario, scenario.view(params.tile_m), params, rule, progress)


ATTACK = Attack(
    "frequency",
    "locations with frequencies",
    takes=Trajectories,
    params=ToleranceParams,
    run=run,
    aliases=("LocationFrequencyAttack",),
)
