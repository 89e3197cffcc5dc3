"""Promises about released trajectories, checked on the written table."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Pieces
from crowdveil.guarantees.outlines import broken_outlines
from crowdveil.io.written import TRAJECTORY_COLUMNS, WrittenRelease
from crowdveil.model.arrays import Ints


class WellFormedTrajectories(Guarantee):
    """The file holds what a release of trajectories holds, and nothing else; ids are new."""

    name: ClassVar[str] = "well-formed-trajectories"
    kind: ClassVar[Kind] = "structure"
    pieces: ClassVar[Pieces] = "runs"

    def statement(self) -> str:
        """The promise in one sentence."""
        return (
            "The file has the columns of a release and no others; trajectories are numbered 1, 2, …, in order of time."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Look at columns, numbering, order and coordinates."""
        table, faults = written.data, []
        if not set(TRAJECTORY_COLUMNS) <= set(table.column_names) <= {*TRAJECTORY_COLUMNS, "user_id"}:
            return Finding(False, "columns are missing or more than they should be.")
        if any(table[c].null_count for c in table.column_names):
            return Finding(False, "values are missing.")
        number, t = written.column("trajectory_id"), written.column("timestamp")
        if len(number) and (number[0] != 1 or not np.isin(np.diff(number), (0, 1)).all()):
            faults.append("trajectories are not numbered 1, 2, … in the order of the rows")
        if np.any((np.diff(t) < 0) & (np.diff(number) == 0)):
            faults.append("times fall inside a trajectory")
        lon, lat = written.column("lon"), written.column("lat")
        if not (np.all(np.abs(lon) <= 180) and np.all(np.abs(lat) <= 90)):
            faults.append("a position is off the globe")
        if "user_id" in table.column_names:
            faults += self._people(number, written.column("user_id"))
        if broken := broken_outlines(written.features):
            faults.append(f"{counted(broken, 'area')} with an outline that crosses itself or leaves the globe")
        return Finding(not faults, "; ".join(faults) + "." if faults else f"{counted(len(table), 'point')} looked at.")

    @staticmethod
    def _people(
        number: np.ndarray[tuple[int], np.dtype[np.int64]], user: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> list[str]:
        faults = []
        if np.any((np.diff(number) == 0) & (np.diff(user) != 0)):
            faults.append("a trajectory has two people")
        seen = np.unique(user)
        if len(seen) and (seen[0] != 1 or seen[-1] != len(seen)):
            faults.append("people are not numbered 1, 2, …")
        return faults


class LocationsOnTileCentres(Guarantee):
    """No exact position leaves: each is the centre of a tile in the list of areas."""

    name: ClassVar[str] = "locations-on-tile-centres"
    kind: ClassVar[Kind] = "structure"
    pieces: ClassVar[Pieces] = "runs"

    def statement(self) -> str:
        """The promise in one sentence."""
        return "Every published position is the centre of a tile in the list of areas."

    def check(self, written: WrittenRelease) -> Finding:
        """Look each position up among the centres."""
        centres = set(written.area_centres)
        positions = list(zip(written.column("lon").tolist(), written.column("lat").tolist(), strict=True))
        strange = sum(position not in centres for position in positions)
        return Finding(strange == 0, f"{counted(len(positions), 'position')} looked at, {strange:,} are no centre.")


class TrajectoryKAnonymity(Guarantee):
    """Every trajectory is one of k equal ones."""

    name: ClassVar[str] = "trajectory-k-anonymity"
    kind: ClassVar[Kind] = "privacy"
    pieces: ClassVar[Pieces] = "equal"
    k: int
    """Smallest crowd."""
    counts: Literal["people", "trajectories"]
    """What is counted."""

    def statement(self) -> str:
        """The promise in one sentence."""
        others = "of other people" if self.counts == "people" else "(people are not told apart)"
        return (
            f"Every published trajectory is equal, in all places and times, to at least {self.k - 1:,} others {others}."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Count equal trajectories. The files do not tell whose they are."""
        found = self._large_enough(_equal_trajectories(written))
        if not found.holds or self.counts != "people":
            return found
        return Finding(True, f"{found.detail} Whose they are was looked at when they were made: files do not tell.")

    def check_behind(self, written: WrittenRelease, person: Ints) -> Finding:
        """Count the people of equal trajectories."""
        group = _equal_trajectories(written)
        alone = self._large_enough(group)
        if not alone.holds or self.counts != "people":
            return alone
        if len(group) != len(person):
            return Finding(False, "the files have another number of trajectories than were made.", with_original=True)
        crowds = int(person.max(initial=0)) + 1
        people = np.bincount(np.unique(group * crowds + person) // crowds)
        small = int((people < self.k).sum())
        detail = f"{counted(len(people), 'group')} of equal trajectories, {small:,} with fewer than {self.k:,} people."
        return Finding(small == 0, detail, with_original=True)

    def _large_enough(self, group: Ints) -> Finding:
        sizes = np.bincount(group)
        small = int((sizes < self.k).sum())
        looked = f"{counted(len(group), 'trajectory', 'trajectories')} in {counted(len(sizes), 'group')} of equal ones"
        return Finding(small == 0, f"{looked}, {small:,} with fewer than {self.k:,}.")


def _equal_trajectories(written: WrittenRelease) -> Ints:
    """A number for each written trajectory, the same for those that are equal point for point, times included."""
    number, t = written.column("trajectory_id"), written.column("timestamp")
    points = np.column_stack([written.column("lon"), written.column("lat"), t.astype(np.float64)])
    begins = np.flatnonzero(np.diff(number, prepend=number[0] - 1 if len(number) else 0))
    cuts = (np.append(begins, len(number)) * points[:1].nbytes).tolist()
    every = points.tobytes()
    trajectories = [every[a:b] for a, b in pairwise(cuts)]
    group = {points: number for number, points in enumerate(dict.fromkeys(trajectories))}
    return np.array(list(map(group.__getitem__, trajectories)), np.int64)
