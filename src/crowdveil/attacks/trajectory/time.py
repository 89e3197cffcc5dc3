"""Who was at these places at these times, as finely as times are known?

The adversary knows some of somebody's records with their times, cut to whole hours or whatever `time_precision` says. Everybody
matches who has each known place and time at least as often as it is known.

Notes
-----
scikit-mobility's code joins year, month, day and, for hours, the month once more, so that its hours are days, and its minutes are
those of any hour of the day. Here each precision is what its name says.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from __future__ import annotations

from crowdveil.attacks.adversary_view import AttackScenario
from crowdveil.attacks.base import Attack, Risk, TimeParams
from crowdveil.attacks.search import MatchRule, searched
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress


def run(scene: AttackScenario, params: TimeParams, progress: Progress) -> Risk:
    """The risk of each individual."""
    sight = scene.sight(params.tile_m, params.time_precision)
    return searched(scene, sight, params, MatchRule("at-least"), progress)


ATTACK = Attack(
    "time",
    "places with times",
    takes=Trajectories,
    params=TimeParams,
    run=run,
    doc=__doc__ or "",
    aliases=("LocationTimeAttack",),
)
