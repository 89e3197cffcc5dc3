"""Who has these two places as the most visited ones?

The adversary knows the two most visited places of somebody, in any order. Everybody matches whose two most visited places are
these; who has one place only is looked for by that one.

Notes
-----
Of places that are visited equally often the southern ones count first, then the western ones. scikit-mobility's text speaks of
the two most visited places; its code sorts by rising frequency and takes the first two, which are the least visited ones. Here
the text counts, and `visited = least` is the code.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from __future__ import annotations

import numpy as np

from crowdveil.attacks.adversary_view import AttackScenario, LocationHistories
from crowdveil.attacks.base import Attack, HomeWorkParams, Interval, Risk
from crowdveil.attacks.search import drawn
from crowdveil.model.arrays import Ints, row_slices
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress


def run(scene: AttackScenario, params: HomeWorkParams, progress: Progress) -> Risk:
    """The risk of each individual: there is one thing to know of each, so that the average is the mean."""
    sight = scene.sight(params.tile_m)
    tried = drawn(sight, params, np.random.default_rng(params.seed))
    known, label, wanted = two_places(sight.targets, params.visited), sight.candidates.label, sight.wanted
    crowds: dict[tuple[int, int], set[int]] = {}
    for (first, second), whose in zip(
        two_places(sight.candidates, params.visited).tolist(), label.tolist(), strict=True
    ):
        # One place alone matches whoever has it among the two.
        for pair in {(first, second), (first, -1), (second, -1)}:
            crowds.setdefault(pair, set()).add(whose)
    crowd = np.zeros(len(tried), np.int64)
    for i, unit in enumerate(tried.tolist()):
        there = crowds.get((int(known[unit, 0]), int(known[unit, 1])), set())
        crowd[i] = len(there) if wanted[unit] < 0 or wanted[unit] in there else 0
    progress(len(tried), len(tried))
    risk = Risk(scene.units, tried, len(sight.targets), crowd, True, Interval.known(0.0), sight.paired)
    return Risk(risk.units, tried, risk.of, crowd, True, risk.mean, sight.paired)


def two_places(traces: LocationHistories, visited: str) -> Ints:
    """The two most (or least) visited places of each unit, the lower number first; -1 for the second where there is one alone."""
    offsets, place, count = traces.profiles
    unit = row_slices(offsets)
    order = np.lexsort((place, -count if visited == "most" else count, unit))
    first = order[offsets[:-1]]
    alone = np.diff(offsets) < 2
    second = order[np.where(alone, offsets[:-1], offsets[:-1] + 1)]
    low, high = np.minimum(place[first], place[second]), np.maximum(place[first], place[second])
    return np.column_stack([low, np.where(alone, -1, high)])


ATTACK = Attack(
    "home-work", "home and work", takes=Trajectories, params=HomeWorkParams, run=run, doc=__doc__ or "",
    aliases=("HomeWorkAttack",),
)  # fmt: skip
