"""Guess that a record of a group is of the person who has most records in it (dominance).

The adversary knows who has most trajectories in an equivalence class, or most trips in a row of flows, and takes any record of
the group for one of theirs. With k people of equal weight the guess is right once in k; it is right far more often where one
person has most of the records.

Trajectories: the share is counted, with the original of each published trajectory.
Flows: files show trips and people of a row, and not how many trips each person made. Each other person made at least one, which
bounds the share from above.

Notes
-----
No k protects from it: k counts people, each once. It is measured, not guaranteed. Means of groups give every person equal weight,
so that it shows in the number of copies alone.

References
----------
Dominance rule of statistical disclosure control: Hundepool et al., Statistical Disclosure Control, Wiley 2012, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.attacks.adversary_view import DEFAULT_K
from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams, percent
from crowdveil.errors import counted
from crowdveil.model.arrays import Ints
from crowdveil.model.release import FlowRelease, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

OF_ROWS, OF_CLASSES = "the row of a trip", "the equivalence class of a trajectory"
"""The background knowledge, in words."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of records of a release.

    Attributes
    ----------
    records, people
        Number of trajectories or trips, and of people, of each group.
    largest
        Records of the person who has most of them; the most that are possible in a row of flows.
    exact
        Whether `largest` is counted.
    k
        The guaranteed group size, None where there is none.
    """

    records: Ints
    people: Ints
    largest: Ints
    exact: bool
    k: int | None = None

    @classmethod
    def of_classes(cls, data: Trajectories, release: TrajectoryRelease, k: int | None = None) -> Groups:
        """Return the equivalence classes of a release whose originals are known."""
        if release.source is None:
            raise ValueError("the people of a class need the source of each trajectory")
        points = np.column_stack([release.lon, release.lat, release.t])
        number: dict[bytes, int] = {}
        ends = zip(release.offsets[:-1].tolist(), release.offsets[1:].tolist(), strict=True)
        of = np.array([number.setdefault(points[low:high].tobytes(), len(number)) for low, high in ends], np.int64)
        pair, count = np.unique(of * max(data.people, 1) + data.person[release.source], return_counts=True)
        first = np.flatnonzero(np.diff(pair // max(data.people, 1), prepend=-1))
        records, largest = (how.reduceat(count, first) if len(first) else count for how in (np.add, np.maximum))
        return cls(records, np.diff(np.append(first, len(pair))), largest, True, k)

    @classmethod
    def of_rows(cls, release: FlowRelease, k: int | None = None) -> Groups:
        """Return the rows of a release of flows without weights, with numbers of people."""
        return cls(release.volume, release.people, release.volume - release.people + 1, False, k)

    @property
    def totals(self) -> tuple[int, int]:
        """Return the records of the largest people of all groups, and all records."""
        return int(self.largest.sum()), int(self.records.sum())

    def threshold(self, params: FlowAttackParams) -> int:
        """Return the group size that shares are compared with."""
        return params.k or self.k or DEFAULT_K


def run(groups: Groups, params: FlowAttackParams) -> Exposure:
    """Measure the share of the largest person: on average over records, and in how many groups it is more than a half."""
    largest, records = groups.totals
    by_chance = float((groups.records / groups.people).sum())
    most = int((2 * groups.largest > groups.records).sum())
    values: dict[str, float | int | None] = {
        "groups": len(groups.records),
        "largest_person_percent": percent(largest, records),
        "by_chance_percent": percent(by_chance, records),
        "groups_with_a_majority_percent": percent(most, len(groups.records)),
    }
    bound = "" if groups.exact else "at most "
    sentence = f"{counted(len(groups.records), 'group')} checked"
    if records:
        sentence += (
            f": {bound}{values['largest_person_percent']} % of the records are of the person who has most of their group; "
            f"{bound}{counted(most, 'group')} with one person who has more than half"
        )
    sentence += "."
    return Exposure(ATTACK.name, ATTACK.title, values, None, False, sentence)


ATTACK = Attack("dominance", "the largest person of a group", takes=Groups, params=FlowAttackParams, run=run)
