"""Match the two most visited locations, home and work.

The adversary knows the two most visited locations of a person, in any order. A person matches if their two most visited
locations are these. A target with one location is searched by that one.

Notes
-----
Of locations with equal visits the southern ones count first, then the western ones. The text of scikit-mobility names the two
most visited locations; its code sorts by rising frequency and takes the first two, which are the least visited ones. Here the
text counts, and `visited = least` is the code.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from __future__ import annotations

import numpy as np

from crowdveil.attacks.adversary_view import AttackScenario, LocationHistories
from crowdveil.attacks.base import Attack, HomeWorkParams, Interval, Risk
from crowdveil.attacks.search import draw_targets
from crowdveil.engine.progress import Progress
from crowdveil.model.arrays import Ints, row_slices
from crowdveil.model.trajectories import Trajectories


def run(scenario: AttackScenario, params: HomeWorkParams, progress: Progress) -> Risk:
    """Return the risk of each individual: there is one combination of each, so that the average is the mean."""
    view = scenario.view(params.tile_m)
    tried = draw_targets(len(view.targets), params, np.random.default_rng(params.seed))
    known, label, wanted = two_locations(view.targets, params.visited), view.candidates.label, view.wanted
    groups: dict[tuple[int, int], set[int]] = {}
    for (first, second), whose in zip(
        two_locations(view.candidates, params.visited).tolist(), label.tolist(), strict=True
    ):
        # A single location matches all who have it among the two.
        for pair in {(first, second), (first, -1), (second, -1)}:
            groups.setdefault(pair, set()).add(whose)
    group_size = np.zeros(len(tried), np.int64)
    for i, unit in enumerate(tried.tolist()):
        there = groups.get((int(known[unit, 0]), int(known[unit, 1])), set())
        group_size[i] = len(there) if wanted[unit] < 0 or wanted[unit] in there else 0
    progress(len(tried), len(tried))
    risk = Risk(scenario.units, tried, len(view.targets), group_size, True, Interval.known(0.0), view.paired)
    return Risk(risk.units, tried, risk.of, group_size, True, risk.mean, view.paired)


def two_locations(histories: LocationHistories, visited: str) -> Ints:
    """Return the two most (or least) visited locations of each unit, the lower number first; second -1 for a single one."""
    offsets, location, count = histories.profiles
    unit = row_slices(offsets)
    order = np.lexsort((location, -count if visited == "most" else count, unit))
    first = order[offsets[:-1]]
    alone = np.diff(offsets) < 2
    second = order[np.where(alone, offsets[:-1], offsets[:-1] + 1)]
    low, high = np.minimum(location[first], location[second]), np.maximum(location[first], location[second])
    return np.column_stack([low, np.where(alone, -1, high)])


ATTACK = Attack(
    "home-work", "home and work", takes=Trajectories, params=HomeWorkParams, run=run,
    aliases=("HomeWorkAttack",),
)  # fmt: skip
