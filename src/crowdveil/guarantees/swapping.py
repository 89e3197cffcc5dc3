"""Guarantees about trajectories whose locations were swapped, held against the trajectories that they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.guarantees.trajectories import OTHER_NUMBER
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.trajectories import Trajectories

_NOT_SEEN = "the files alone do not show this: the original trajectories are needed."


class _OfTheOriginal(Guarantee):
    """A guarantee that only the original trajectories can prove."""

    kind: ClassVar[Kind] = "structure"

    def check(self, written: WrittenRelease) -> Finding:
        """The files do not tell."""
        return self.judged(False, {}, open_=True)


class OriginalPoints(_OfTheOriginal):
    """Nothing is made up."""

    name: ClassVar[str] = "original-points"
    tallies: ClassVar[Mapping[str, Merge]] = {"points": "sum", "strange": "sum"}

    def statement(self) -> str:
        """The guarantee in one sentence."""
        return "Every published place with its time is one of the original data, and none is there more often than originally."

    def check_from(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Look each written point up among the original ones, and count equal ones."""
        here, there = written.number_points(original)
        size = int(max(here.max(initial=-1), there.max(initial=-1))) + 1
        more = np.bincount(here, minlength=size) - np.bincount(there, minlength=size)
        strange = int(more[more > 0].sum())
        return self.judged(strange > 0, {"points": len(here), "strange": strange}, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say how many points are not in the original."""
        if not with_original:
            return _NOT_SEEN
        points = counted(counts["points"], "point")
        return f"{points} looked up, {counts['strange']:,} of them not in the original or too often there."


class SwappedTrajectories(_OfTheOriginal):
    """No published trajectory is one person's from beginning to end."""

    name: ClassVar[str] = "swapped-trajectories"
    tallies: ClassVar[Mapping[str, Merge]] = {"trajectories": "sum", "few": "sum"}
    swaps: int
    """Fewest swaps of a trajectory."""
    counts: Literal["people", "trajectories"]
    """Whose points are told apart."""

    def statement(self) -> str:
        """The guarantee in one sentence."""
        whose = "person" if self.counts == "people" else "original trajectory"
        return (
            f"Along every published trajectory the {whose} that points are of changes at least "
            f"{counted(self.swaps, 'time')}; points at one place and time that are of several count for none."
        )

    def check_from(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Find out whose each written point is, and count how often that changes."""
        owner = _owners(written, original, self.counts)
        number = _rising(written.column("trajectory_id"))
        known = np.flatnonzero(owner >= 0)
        change = (np.diff(owner[known]) != 0) & (np.diff(number[known]) == 0)
        changes = np.bincount(number[known][1:][change], minlength=int(number.max(initial=-1)) + 1)
        few = int((changes < self.swaps).sum())
        return self.judged(few > 0, {"trajectories": len(changes), "few": few}, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say how many trajectories have fewer swaps."""
        if not with_original:
            return _NOT_SEEN
        return f"{counted(counts['trajectories'], 'trajectory', 'trajectories')} followed, {counts['few']:,} with fewer swaps."


class NoOwnPoints(_OfTheOriginal):
    """No point stays with whom it is of."""

    name: ClassVar[str] = "no-own-points"
    tallies: ClassVar[Mapping[str, Merge]] = {"points": "sum", "own": "sum", "other_number": "max"}
    counts: Literal["people", "trajectories"]
    """Whose points are told apart."""

    def statement(self) -> str:
        """The guarantee in one sentence."""
        whose = "person" if self.counts == "people" else "original trajectory"
        return f"No point of a published trajectory is of the {whose} that the trajectory stands for."

    def check_from(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Find out whose each written point is, and for whom the trajectory stands."""
        if source is None:
            return self.check(written)
        number = _rising(written.column("trajectory_id"))
        if int(number.max(initial=-1)) + 1 != len(source):
            return self.judged(True, {"other_number": 1}, with_original=True)
        stands_for = original.person[source] if self.counts == "people" else source
        own = int((_owners(written, original, self.counts) == stands_for[number]).sum())
        return self.judged(own > 0, {"points": len(number), "own": own}, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say how many points are with the person that they are of."""
        if counts["other_number"]:
            return OTHER_NUMBER
        if not with_original:
            return "which trajectory comes from which is known only while the release is made: files do not show it."
        return f"{counted(counts['points'], 'point')} looked up, {counts['own']:,} are still with their own person."


def _rising(number: Ints) -> Ints:
    """Trajectories as 0, 1, …, in the order of the rows."""
    return np.cumsum(np.diff(number, prepend=number[:1]) != 0)


def _owners(written: WrittenRelease, original: Trajectories, counts: str) -> Ints:
    """Whose each written point is; -1 where several have a point of that place and time, or nobody has."""
    here, there = written.number_points(original)
    whose = (original.person if counts == "people" else np.arange(len(original)))[original.trajectory]
    owner = np.full(int(max(here.max(initial=-1), there.max(initial=-1))) + 1, -1)
    owner[there] = whose
    # Whoever did not come last at a place and time shares it.
    owner[there[owner[there] != whose]] = -1
    return owner[here]
