"""Check guarantees about released trajectories, on the written table."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge, broken_outlines, faults_in, flags, unknown_people
from crowdveil.io.written_release import POINTS, WrittenRelease, has_columns
from crowdveil.model.arrays import Floats, Ints, Mask, gather
from crowdveil.model.trajectories import Trajectories

CHUNK = 10_000
"""Number of trajectories that are hashed at once."""
CHUNK_ROWS = 1 << 18
"""Number of rows that are checked at once."""
_FAULTS = {
    "columns": "columns are missing, or there are others",
    "missing_values": "values are missing",
    "not_numbered": "trajectories are not numbered 1, 2, … in the order of the rows",
    "times_fall": "times fall inside a trajectory",
    "broken_outline": "an outline crosses itself or leaves the globe",
    "off_globe": "a position is off the globe",
    "two_people": "a trajectory has two people",
    "people_not_numbered": "people are not numbered 1, 2, …",
}


class WellFormedTrajectories(Guarantee):
    """The file has the content of a release of trajectories, and nothing else; ids are new."""

    name: ClassVar[str] = "well-formed-trajectories"
    kind: ClassVar[Kind] = "structure"
    sentence: ClassVar[str] = (
        "The file has the columns of a release and no others; trajectories are numbered 1, 2, …, and the points of each are in "
        "order of time."
    )
    tallies: ClassVar[Mapping[str, Merge]] = {"points": "sum", **flags(_FAULTS)}

    def check(self, written: WrittenRelease) -> Finding:
        """Check columns, numbering, order and coordinates."""
        table = written.data
        if not has_columns(table, POINTS):
            return self.make_finding(True, {"points": len(table), "columns": 1})
        if any(table[c].null_count for c in table.column_names):
            return self.make_finding(True, {"points": len(table), "missing_values": 1})
        first = written.column("published_id", slice(0, 1))
        faults = Counter(not_numbered=bool((first != 1).any()), broken_outline=broken_outlines(written.features))
        for rows in _row_chunks(len(table)):
            faults |= self._faults_in(written, rows)
        if "user_id" in table.column_names:
            faults |= self._people(written.column("published_id"), written.column("user_id"))
        return self.make_finding(faults.total() > 0, {"points": len(table), **dict.fromkeys(+faults, 1)})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return the faults, or the number of points checked."""
        return (faults_in(counts, _FAULTS) or f"{counted(counts['points'], 'point')} checked") + "."

    @staticmethod
    def _faults_in(written: WrittenRelease, rows: slice) -> Counter[str]:
        """Return the faults of some rows, each compared with the one before it."""
        number, t, lon, lat = (
            written.column(name, rows) for name in ("published_id", "timestamp", "lon", "lat")
        )  # fmt: skip
        step = np.diff(number)
        return Counter(
            not_numbered=not np.all((step == 0) | (step == 1)),
            times_fall=bool(np.any((t[1:] < t[:-1]) & (step == 0))),
            off_globe=not (np.all(np.abs(lon) <= 180) and np.all(np.abs(lat) <= 90)),
        )

    @staticmethod
    def _people(number: Ints, user: Ints) -> Counter[str]:
        seen = np.unique(user)
        return Counter(
            two_people=bool(np.any((np.diff(number) == 0) & (np.diff(user) != 0))),
            people_not_numbered=not np.array_equal(seen, np.arange(1, len(seen) + 1)),
        )


class LocationsOnTileCenters(Guarantee):
    """Every position is the center of a tile in the list of areas."""

    name: ClassVar[str] = "locations-on-tile-centers"
    kind: ClassVar[Kind] = "structure"
    sentence: ClassVar[str] = "Every published position is the center of a tile in the list of areas."
    tallies: ClassVar[Mapping[str, Merge]] = {"positions": "sum", "strange": "sum"}

    def check(self, written: WrittenRelease) -> Finding:
        """Look up each position among the centers."""
        centers = set(written.area_centers)
        strange, n = 0, len(written.data)
        for low in range(0, n, CHUNK_ROWS):
            rows = slice(low, min(low + CHUNK_ROWS, n))
            lon, lat = (written.column(name, rows).tolist() for name in ("lon", "lat"))
            strange += sum(position not in centers for position in zip(lon, lat, strict=True))
        return self.make_finding(strange > 0, {"positions": n, "strange": strange})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many positions are not at the center of a tile."""
        return f"{counted(counts['positions'], 'position')} checked, {counts['strange']:,} are not at a center."


class TrajectoryKAnonymity(Guarantee):
    """Every trajectory is in an equivalence class of at least k."""

    name: ClassVar[str] = "trajectory-k-anonymity"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {
        "trajectories": "sum", "classes": "sum", "small": "sum", "few_people": "sum", "whose": "max", "other_number": "max",
    }  # fmt: skip
    k: int
    """Smallest group size."""
    k_unit: Literal["people", "trajectories"]
    """Unit of the group size."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        others = "of other people" if self.k_unit == "people" else "(people are not known)"
        return f"Every published trajectory is equal, in all locations and times, to at least {self.k - 1:,} others {others}."

    def what_was_done(self) -> str:
        """Describe the anonymization."""
        return (
            f"Similar trajectories of at least {self.k:,} {self.k_unit} were put into groups, and all members of a group are "
            "published as one common trajectory, without ids. Trajectories without a group are suppressed."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Count the trajectories of each equivalence class. The files do not show their people."""
        counts = self._sizes(_equivalence_classes(written))
        whose = self.k_unit == "people" and counts["trajectories"] > 0 and not counts["small"]
        return self.make_finding(counts["small"] > 0, {"whose": whose, **counts}, open_=whose)

    def check_with_people(self, written: WrittenRelease, person: Ints) -> Finding:
        """Count the people of each equivalence class."""
        group = _equivalence_classes(written)
        counts = self._sizes(group)
        if counts["small"] or self.k_unit != "people":
            return self.make_finding(counts["small"] > 0, counts)
        if len(group) != len(person):
            return self.make_finding(True, {"other_number": 1}, with_original=True)
        few = _small_classes(group, person, self.k)
        return self.make_finding(few > 0, {"few_people": few, **counts}, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many equivalence classes are too small."""
        classes = counted(counts["classes"], "equivalence class", "equivalence classes")
        k = f"fewer than {self.k:,}"
        if with_original and not counts["small"]:
            return f"{classes}, {counts['few_people']:,} with {k} people."
        trajectories = counted(counts["trajectories"], "trajectory", "trajectories")
        return f"{trajectories} in {classes}, {counts['small']:,} with {k}{unknown_people(counts)}."

    def _sizes(self, group: Ints) -> dict[str, int]:
        sizes = np.bincount(group)
        return {"trajectories": len(group), "classes": len(sizes), "small": int((sizes < self.k).sum())}


class SegmentKAnonymity(TrajectoryKAnonymity):
    """Every segment of a trajectory is in an equivalence class of at least k, and is not linked to other segments."""

    name: ClassVar[str] = "segment-k-anonymity"

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        others = "of other people" if self.k_unit == "people" else "of other trajectories (people are not known)"
        return (
            f"Every published segment of a trajectory is equal, in all locations and times, to at least {self.k - 1:,} others "
            f"{others}; segments of one trajectory have no common id."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Count the segments of each equivalence class. The files do not show their people."""
        counts = self._sizes(_equivalence_classes(written))
        violated = counts["small"] > 0 or "user_id" in written.data.column_names
        whose = counts["trajectories"] > 0 and not violated
        return self.make_finding(violated, {"whose": whose, **counts}, open_=whose)

    def check_with_trajectories(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Count the people, or the trajectories, of each equivalence class of segments."""
        found = self.check(written)
        if source is None or found.violated:
            return found
        group = _equivalence_classes(written)
        if len(group) != len(source):
            return self.make_finding(True, {"other_number": 1}, with_original=True)
        owner = original.person if self.k_unit == "people" else np.arange(len(original))
        few = _small_classes(group, owner[source], self.k)
        return self.make_finding(few > 0, {"few_people": few, **self._sizes(group)}, with_original=True)


def _small_classes(group: Ints, person: Ints, k: int) -> int:
    """Return the number of equivalence classes with fewer than k different people."""
    ids = int(person.max(initial=0)) + 1
    people = np.bincount(np.unique(group * ids + person) // ids)
    return int((people < k).sum())


def _row_chunks(rows: int) -> Iterator[slice]:
    """Yield slices of rows, to save memory; each has the first row of the next one, too."""
    for low in range(0, rows, CHUNK_ROWS):
        yield slice(low, min(low + CHUNK_ROWS + 1, rows))


def _equivalence_classes(written: WrittenRelease) -> Ints:
    """Return the equivalence class of each written trajectory: those with equal points, including times."""
    number = written.column("published_id")
    begins = np.flatnonzero(np.append(True, number[1:] != number[:-1])[: len(number)])
    # Hashes of points, since copies would take as much memory as the table.
    known, ends = dict[bytes, int](), np.append(begins, len(number))
    found = [_classes_in(written, ends[low : low + CHUNK + 1], known) for low in range(0, len(begins), CHUNK)]
    return np.concatenate([np.zeros(0, np.int64), *found])


def _classes_in(written: WrittenRelease, ends: Ints, known: dict[bytes, int]) -> Ints:
    """Return the equivalence class of each trajectory between some `ends`.

    Hashes of points have numbers in `known`; new ones are added.
    """
    rows = slice(int(ends[0]), int(ends[-1]))
    columns = [written.column(name, rows).astype(np.float64) for name in ("lon", "lat", "timestamp")]
    differs, points = ~_repeats(columns, ends - ends[0]), np.column_stack(columns)
    every, cuts = points.view(np.uint8).reshape(-1).data, ((ends - ends[0]) * points[:1].nbytes).tolist()
    hashes = (
        hashlib.blake2b(every[cuts[i] : cuts[i + 1]], digest_size=16).digest() for i in np.flatnonzero(differs).tolist()
    )
    classes = np.array([known.setdefault(hashed, len(known)) for hashed in hashes], np.int64)
    numbered: Ints = classes[np.cumsum(differs) - 1]
    return numbered


def _repeats(columns: Sequence[Floats | Ints], ends: Ints) -> Mask:
    """Return which trajectories equal the one before, bit for bit: most of a release do, and need no hash."""
    lengths = np.diff(ends)
    before = np.arange(ends[-1]) - np.repeat(lengths, lengths)  # wrong if lengths differ, and for the first one
    same = np.ones(ends[-1], np.bool_)
    for column in columns:
        bits = column.view(np.int64)
        same &= bits == gather(bits, before)
    found: Mask = np.logical_and.reduceat(same, ends[:-1]) & (lengths == np.append(0, lengths[:-1]))
    return found
