"""Define the adversaries of trajectories with background knowledge of a few locations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crowdveil.attacks.adversary_view import AttackScenario, LocationHistories
from crowdveil.attacks.base import Attack, HomeWorkParams, Interval, KnowledgeParams, Risk, TimeParams, ToleranceParams
from crowdveil.attacks.search import KnownValues, MatchKind, MatchRule, draw_targets, search_risk
from crowdveil.engine.progress import Progress
from crowdveil.model.arrays import Ints, row_slices
from crowdveil.model.trajectories import Trajectories

_REFERENCES = """
References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""


def _attack(
    name: str, title: str, params: type[KnowledgeParams], kind: MatchKind, by: KnownValues, alias: str, text: str
) -> Attack:
    """Return the record of an adversary who knows a few locations; `text` describes the adversary."""

    def run(scenario: AttackScenario, params: Any, progress: Progress) -> Risk:
        """Return the risk of each individual."""
        view = scenario.view(params.tile_m, getattr(params, "time_precision", None))
        rule = MatchRule(kind, by, getattr(params, "tolerance", 0.0))
        return search_risk(scenario.units, view, params, rule, progress)

    return Attack(name, title, takes=Trajectories, params=params, run=run, aliases=(alias,), text=text + _REFERENCES)


LOCATION = _attack(
    "location", "locations", KnowledgeParams, "at-least", "records", "LocationAttack",
    """Match known locations, each at least as often as known.

The adversary knows some records of a person without their times. A person matches with each known location at least as often as
known.
""",
)  # fmt: skip
SEQUENCE = _attack(
    "sequence", "locations in order", KnowledgeParams, "in-order", "records", "LocationSequenceAttack",
    """Match known locations in their order.

The adversary knows some records of a person in their order, without times. A person matches with the known locations in that
order, with or without other locations between them.

Notes
-----
Records of one time keep the order in which they were read; scikit-mobility leaves it undefined.
""",
)  # fmt: skip
TIME = _attack(
    "time", "locations with times", TimeParams, "at-least", "records", "LocationTimeAttack",
    """Match known locations with their times.

The adversary knows some records of a person with their times, at the precision `time_precision`. A person matches with each
known location and time at least as often as known.

Notes
-----
scikit-mobility's code joins year, month, day and, for hours, the month again, so that its hours are days, and its minutes are
those of any hour of the day. Here each precision is that of its name.
""",
)  # fmt: skip
UNIQUE_LOCATION = _attack(
    "unique-location", "different locations", KnowledgeParams, "at-least", "counts", "UniqueLocationAttack",
    """Match distinct known locations.

The adversary knows some distinct locations of a person. A person matches who has them all.
""",
)  # fmt: skip
FREQUENCY = _attack(
    "frequency", "locations with frequencies", ToleranceParams, "within", "counts", "LocationFrequencyAttack",
    """Match known locations with their numbers of visits.

The adversary knows some distinct locations of a person, and the visits to each. A person matches if the frequency f at each
known location is such that the known one is from f − tolerance · f to f + tolerance · f.

Notes
-----
The interval is around the frequency of the candidate, not around the known one, as in scikit-mobility's code.
""",
)  # fmt: skip
PROBABILITY = _attack(
    "probability", "locations with probabilities", ToleranceParams, "within", "shares", "LocationProbabilityAttack",
    """Match known locations with their shares of all visits.

The adversary knows some distinct locations of a person, and the share of all visits to each. A person matches if the share p at
each known location is such that the known one is from p − tolerance · p to p + tolerance · p.
""",
)  # fmt: skip
PROPORTION = _attack(
    "proportion", "locations in proportion", ToleranceParams, "proportion", "counts", "LocationProportionAttack",
    """Match known locations with their proportions of visits.

The adversary knows some distinct locations of a person, and the visits to each in proportion to the most visited known one. A
person matches with all known locations, each with a proportion p such that the known one is from p − tolerance · p to
p + tolerance · p.

Notes
-----
With a tolerance, more known locations may make a group larger, since another location may then be the most visited one. Exactly
`knowledge` locations are known, as in scikit-mobility; in a release, where known ones may be missing, up to that number.
""",
)  # fmt: skip


def _run_home_work(scenario: AttackScenario, params: HomeWorkParams, progress: Progress) -> Risk:
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
        group = groups.get((int(known[unit, 0]), int(known[unit, 1])), set())
        group_size[i] = len(group) if wanted[unit] < 0 or wanted[unit] in group else 0
    progress(len(tried), len(tried))
    risk = Risk(scenario.units, tried, len(view.targets), group_size, True, Interval.known(0.0), view.paired)
    return replace(risk, average=risk.mean)


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


HOME_WORK = Attack(
    "home-work", "home and work", takes=Trajectories, params=HomeWorkParams, run=_run_home_work, aliases=("HomeWorkAttack",),
    text="""Match the two most visited locations, home and work.

The adversary knows the two most visited locations of a person, in any order. A person matches if their two most visited
locations are these. A target with one location is searched by that one.

Notes
-----
Among locations with equal visits, the southern ones come first, then the western ones. The text of scikit-mobility names the two
most visited locations; its code sorts by rising frequency and takes the first two, which are the least visited ones. Here the
text counts, and `visited = least` is the code.
"""
    + _REFERENCES,
)  # fmt: skip
