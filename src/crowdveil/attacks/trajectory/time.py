"""Match known locations with their times.

The adversary knows some records of a person with their times, at the precision `time_precision`. A person matches with each
known location and time at least as often as known.

Notes
-----
scikit-mobility's code joins year, month, day and, for hours, the month again, so that its hours are days, and its minutes are
those of any hour of the day. Here each precision is that of its name.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from __future__ import annotations

from crowdveil.attacks.adversary_view import AttackScenario
from crowdveil.attacks.base import Attack, Risk, TimeParams
from crowdveil.attacks.search import MatchRule, search_risk
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress


def run(scenario: AttackScenario, params: TimeParams, progress: Progress) -> Risk:
    """Return the risk of each individual."""
    view = scenario.view(params.tile_m, params.time_precision)
    return search_risk(scenario, view, params, MatchRule("at-least"), progress)


ATTACK = Attack(
    "time",
    "locations with times",
    takes=Trajectories,
    params=TimeParams,
    run=run,
    aliases=("LocationTimeAttack",),
)
