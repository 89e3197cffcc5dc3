"""Guarantees about released trajectories, checked on the written table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge, Pieces, faults_in, flags
from crowdveil.guarantees.outlines import broken_outlines
from crowdveil.io.written_release import TRAJECTORY_COLUMNS, WrittenRelease
from crowdveil.model.arrays import Ints

OTHER_NUMBER = "the files have another number of trajectories than were made."
WHOSE = "which people they belong to is known only while the release is made, and files do not show it"
_FAULTS = {
    "columns": "columns are missing or more than they should be",
    "missing_values": "values are missing",
    "not_numbered": "trajectories are not numbered 1, 2, … in the order of the rows",
    "times_fall": "times fall inside a trajectory",
    "broken_outline": "an outline crosses itself or leaves the globe",
    "off_globe": "a position is off the globe",
    "two_people": "a trajectory has two people",
    "people_not_numbered": "people are not numbered 1, 2, …",
}


class WellFormedTrajectories(Guarantee):
    """The file holds what a release of trajectories holds, and nothing else; ids are new."""

    name: ClassVar[str] = "well-formed-trajectories"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = {"points": "sum", **flags(_FAULTS)}
    pieces: ClassVar[Pieces] = "runs"

    def statement(self) -> str:
        """The guarantee in one sentence."""
        return (
            "The file has the columns of a release and no others; trajectories are numbered 1, 2, …, in order of time."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Look at columns, numbering, order and coordinates."""
        table, faults = written.data, []
        if not set(TRAJECTORY_COLUMNS) <= set(table.column_names) <= {*TRAJECTORY_COLUMNS, "user_id"}:
            return self.judged(True, {"points": len(table), "columns": 1})
        if any(table[c].null_count for c in table.column_names):
            return self.judged(True, {"points": len(table), "missing_values": 1})
        number, t = written.column("trajectory_id"), written.column("timestamp")
        if len(number) and (number[0] != 1 or not np.isin(np.diff(number), (0, 1)).all()):
            faults.append("not_numbered")
        if np.any((np.diff(t) < 0) & (np.diff(number) == 0)):
            faults.append("times_fall")
        lon, lat = written.column("lon"), written.column("lat")
        if not (np.all(np.abs(lon) <= 180) and np.all(np.abs(lat) <= 90)):
            faults.append("off_globe")
        if "user_id" in table.column_names:
            faults += self._people(number, written.column("user_id"))
        if broken_outlines(written.features):
            faults.append("broken_outline")
        return self.judged(bool(faults), {"points": len(table), **dict.fromkeys(faults, 1)})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say what is wrong, or how much was looked at."""
        return (faults_in(counts, _FAULTS) or f"{counted(counts['points'], 'point')} looked at") + "."

    @staticmethod
    def _people(
        number: np.ndarray[tuple[int], np.dtype[np.int64]], user: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> list[str]:
        faults = []
        if np.any((np.diff(number) == 0) & (np.diff(user) != 0)):
            faults.append("two_people")
        seen = np.unique(user)
        if len(seen) and (seen[0] != 1 or seen[-1] != len(seen)):
            faults.append("people_not_numbered")
        return faults


class LocationsOnTileCenters(Guarantee):
    """No exact position leaves: each is the center of a tile in the list of areas."""

    name: ClassVar[str] = "locations-on-tile-centers"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = {"positions": "sum", "strange": "sum"}
    pieces: ClassVar[Pieces] = "runs"

    def statement(self) -> str:
        """The guarantee in one sentence."""
        return "Every published position is the center of a tile in the list of areas."

    def check(self, written: WrittenRelease) -> Finding:
        """Look each position up among the centers."""
        centers = set(written.area_centers)
        positions = list(zip(written.column("lon").tolist(), written.column("lat").tolist(), strict=True))
        strange = sum(position not in centers for position in positions)
        return self.judged(strange > 0, {"positions": len(positions), "strange": strange})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say how many positions are no center."""
        return f"{counted(counts['positions'], 'position')} looked at, {counts['strange']:,} are no center."


class TrajectoryKAnonymity(Guarantee):
    """Every trajectory is one of k equal ones."""

    name: ClassVar[str] = "trajectory-k-anonymity"
    kind: ClassVar[Kind] = "privacy"
    pieces: ClassVar[Pieces] = "equal"
    tallies: ClassVar[Mapping[str, Merge]] = {
        "trajectories": "sum", "groups": "sum", "small": "sum", "few_people": "sum", "whose": "max", "other_number": "max",
    }  # fmt: skip
    k: int
    """Smallest crowd."""
    counts: Literal["people", "trajectories"]
    """What is counted."""

    def statement(self) -> str:
        """The guarantee in one sentence."""
        others = "of other people" if self.counts == "people" else "(people are not told apart)"
        return (
            f"Every published trajectory is equal, in all places and times, to at least {self.k - 1:,} others {others}."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Count equal trajectories. The files do not tell whose they are."""
        counts = self._sizes(_equal_trajectories(written))
        whose = self.counts == "people" and counts["trajectories"] > 0 and not counts["small"]
        return self.judged(counts["small"] > 0, {"whose": whose, **counts}, open_=whose)

    def check_behind(self, written: WrittenRelease, person: Ints) -> Finding:
        """Count the people of equal trajectories."""
        group = _equal_trajectories(written)
        counts = self._sizes(group)
        if counts["small"] or self.counts != "people":
            return self.judged(counts["small"] > 0, counts)
        if len(group) != len(person):
            return self.judged(True, {"other_number": 1}, with_original=True)
        crowds = int(person.max(initial=0)) + 1
        people = np.bincount(np.unique(group * crowds + person) // crowds)
        few = int((people < self.k).sum())
        return self.judged(few > 0, {"few_people": few, **counts}, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say how many groups of equal trajectories have too few."""
        if counts["other_number"]:
            return OTHER_NUMBER
        groups, k = counted(counts["groups"], "group"), f"fewer than {self.k:,}"
        if with_original and not counts["small"]:
            return f"{groups} of equal trajectories, {counts['few_people']:,} with {k} people."
        looked = counted(counts["trajectories"], "trajectory", "trajectories")
        said = f"{looked} in {groups} of equal ones, {counts['small']:,} with {k}"
        return f"{said}; {WHOSE}." if counts["whose"] else f"{said}."

    def _sizes(self, group: Ints) -> dict[str, int]:
        sizes = np.bincount(group)
        return {"trajectories": len(group), "groups": len(sizes), "small": int((sizes < self.k).sum())}


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
