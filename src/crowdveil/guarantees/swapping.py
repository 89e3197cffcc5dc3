"""Promises about trajectories whose locations were swapped, held against the trajectories that they were made from."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind
from crowdveil.io.written import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.trajectories import Trajectories

_NOT_SEEN = Finding(True, "the files alone do not tell.", looked=False)


class OriginalPoints(Guarantee):
    """Nothing is made up."""

    name: ClassVar[str] = "original-points"
    kind: ClassVar[Kind] = "structure"

    def statement(self) -> str:
        """The promise in one sentence."""
        return "Every published place with its time is one of the original data, and none is there more often than originally."

    def check(self, written: WrittenRelease) -> Finding:
        """The files do not tell."""
        return _NOT_SEEN

    def check_from(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Look each written point up among the original ones, and count equal ones."""
        here, there = written.points_beside(original)
        size = int(max(here.max(initial=-1), there.max(initial=-1))) + 1
        more = np.bincount(here, minlength=size) - np.bincount(there, minlength=size)
        strange = int(more[more > 0].sum())
        detail = f"{counted(len(here), 'point')} looked up, {strange:,} of them not in the original or too often there."
        return Finding(strange == 0, detail, with_original=True)


class SwappedTrajectories(Guarantee):
    """No published trajectory is one person's from beginning to end."""

    name: ClassVar[str] = "swapped-trajectories"
    kind: ClassVar[Kind] = "structure"
    swaps: int
    """Fewest swaps of a trajectory."""
    counts: Literal["people", "trajectories"]
    """Whose points are told apart."""

    def statement(self) -> str:
        """The promise in one sentence."""
        whose = "person" if self.counts == "people" else "original trajectory"
        return (
            f"Along every published trajectory the {whose} that points are of changes at least "
            f"{counted(self.swaps, 'time')}; points at one place and time that are of several count for none."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """The files do not tell."""
        return _NOT_SEEN

    def check_from(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Find out whose each written point is, and count how often that changes."""
        owner = _owners(written, original, self.counts)
        number = _rising(written.column("trajectory_id"))
        known = np.flatnonzero(owner >= 0)
        change = (np.diff(owner[known]) != 0) & (np.diff(number[known]) == 0)
        changes = np.bincount(number[known][1:][change], minlength=int(number.max(initial=-1)) + 1)
        few = int((changes < self.swaps).sum())
        detail = f"{counted(len(changes), 'trajectory', 'trajectories')} followed, {few:,} with fewer swaps."
        return Finding(few == 0, detail, with_original=True)


class NoOwnPoints(Guarantee):
    """No point stays with whom it is of."""

    name: ClassVar[str] = "no-own-points"
    kind: ClassVar[Kind] = "structure"
    counts: Literal["people", "trajectories"]
    """Whose points are told apart."""

    def statement(self) -> str:
        """The promise in one sentence."""
        whose = "person" if self.counts == "people" else "original trajectory"
        return f"No point of a published trajectory is of the {whose} that the trajectory stands for."

    def check(self, written: WrittenRelease) -> Finding:
        """The files do not tell."""
        return _NOT_SEEN

    def check_from(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Find out whose each written point is, and for whom the trajectory stands."""
        if source is None:
            return _NOT_SEEN
        number = _rising(written.column("trajectory_id"))
        if int(number.max(initial=-1)) + 1 != len(source):
            return Finding(False, "the files have another number of trajectories than were made.", with_original=True)
        stands_for = original.person[source] if self.counts == "people" else source
        own = int((_owners(written, original, self.counts) == stands_for[number]).sum())
        return Finding(own == 0, f"{counted(len(number), 'point')} looked up, {own:,} at home.", with_original=True)


def _rising(number: Ints) -> Ints:
    """Trajectories as 0, 1, …, in the order of the rows."""
    return np.cumsum(np.diff(number, prepend=number[:1]) != 0)


def _owners(written: WrittenRelease, original: Trajectories, counts: str) -> Ints:
    """Whose each written point is; -1 where several have a point of that place and time, or nobody has."""
    here, there = written.points_beside(original)
    whose = (original.person if counts == "people" else np.arange(len(original)))[original.trajectory]
    owner = np.full(int(max(here.max(initial=-1), there.max(initial=-1))) + 1, -1)
    owner[there] = whose
    # Whoever did not come last at a place and time shares it.
    owner[there[owner[there] != whose]] = -1
    return owner[here]
