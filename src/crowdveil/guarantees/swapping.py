"""Check guarantees about trajectories with swapped locations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import ComparedWithOriginal, CountedByPeople, Finding, Kind, Merge, unknown_people
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Indices, Ints, gather, index_type, scatter
from crowdveil.model.projection import LocalProjection
from crowdveil.model.trajectories import Trajectories

CHUNK = 1 << 18
_NEEDS_ORIGINAL = "the files alone do not show this: the original trajectories are needed."


class OriginalPoints(ComparedWithOriginal):
    """Every published point is an original point."""

    name: ClassVar[str] = "original-points"
    sentence: ClassVar[str] = (
        "Every published location with its time is one of the original data, and none is more frequent than originally."
    )
    tallies: ClassVar[Mapping[str, Merge]] = {"points": "sum", "strange": "sum"}
    unseen: ClassVar[str] = _NEEDS_ORIGINAL

    def check_with_trajectories(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Count each written point and its occurrences in the original."""
        published, before = written.number_points(original)
        more = np.zeros(int(max(published.max(initial=-1), before.max(initial=-1))) + 1, published.dtype)
        _add_at(more, published, 1)
        _add_at(more, before, -1)
        strange = int(more[more > 0].sum())
        return self.make_finding(strange > 0, {"points": len(published), "strange": strange}, with_original=True)

    def _differences(self, counts: Mapping[str, int]) -> str:
        points = counted(counts["points"], "point")
        return f"{points} checked, {counts['strange']:,} of them not in the original, or more often than in it."


class SwappedTrajectories(ComparedWithOriginal):
    """No published trajectory is of one person from beginning to end."""

    name: ClassVar[str] = "swapped-trajectories"
    tallies: ClassVar[Mapping[str, Merge]] = {"trajectories": "sum", "few": "sum"}
    unseen: ClassVar[str] = _NEEDS_ORIGINAL
    swaps: int
    """Fewest swaps of a trajectory."""
    k_unit: Literal["people", "trajectories"]
    """The owner of a point: a person or a trajectory."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        owner = "person" if self.k_unit == "people" else "original trajectory"
        return (
            f"Along every published trajectory the {owner} of the points changes at least "
            f"{counted(self.swaps, 'time')}; points at one location and time of several owners do not count."
        )

    def check_with_trajectories(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Find the owner of each written point, and count its changes."""
        owner = _owners(written, original, self.k_unit)
        number = _rising(written.column("published_id"))
        trajectories, known = int(number.max(initial=-1)) + 1, owner >= 0
        owner, number = owner[known], number[known]
        change = (owner[1:] != owner[:-1]) & (number[1:] == number[:-1])
        changes = np.bincount(number[1:][change], minlength=trajectories)
        few = int((changes < self.swaps).sum())
        return self.make_finding(few > 0, {"trajectories": len(changes), "few": few}, with_original=True)

    def _differences(self, counts: Mapping[str, int]) -> str:
        return f"{counted(counts['trajectories'], 'trajectory', 'trajectories')} checked, {counts['few']:,} with fewer swaps."


class NoOwnPoints(ComparedWithOriginal):
    """No point stays in the trajectory of its owner."""

    name: ClassVar[str] = "no-own-points"
    tallies: ClassVar[Mapping[str, Merge]] = {"points": "sum", "own": "sum", "other_number": "max"}
    unseen: ClassVar[str] = "the source of each trajectory is known only during the run: files do not show it."
    k_unit: Literal["people", "trajectories"]
    """The owner of a point: a person or a trajectory."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        owner = "person" if self.k_unit == "people" else "original trajectory"
        return f"No point of a published trajectory is from the {owner} that the trajectory replaces."

    def check_with_trajectories(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Find the owner of each written point, and compare it with the owner of the trajectory."""
        if source is None:
            return self.check(written)
        number = _rising(written.column("published_id"))
        if int(number.max(initial=-1)) + 1 != len(source):
            return self.make_finding(True, {"other_number": 1}, with_original=True)
        replaced = original.person[source] if self.k_unit == "people" else source
        own = int((_owners(written, original, self.k_unit) == replaced[number]).sum())
        return self.make_finding(own > 0, {"points": len(number), "own": own}, with_original=True)

    def _differences(self, counts: Mapping[str, int]) -> str:
        return f"{counted(counts['points'], 'point')} checked, {counts['own']:,} are still with their owner."


class SharedTilePairs(CountedByPeople):
    """Every step from one tile to the next is made by several people."""

    name: ClassVar[str] = "shared-tile-pairs"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = {"steps": "sum", "small": "sum", "whose": "max", "other_number": "max"}
    from_data: ClassVar[tuple[str, ...]] = ("lon0", "lat0")
    min_group_size: int
    """Smallest number of people or trajectories that make a step."""
    tile_size_m: float
    """Side of the tiles, meters."""
    lon0: float
    """Longitude of a corner of tiles, the center of the projection."""
    lat0: float
    """Its latitude."""
    k_unit: Literal["people", "trajectories"]
    """Unit of the group size."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return (
            f"Every step from one square of {self.tile_size_m:g} m to the next one with points of a published trajectory is "
            f"made by the trajectories of at least {self.min_group_size:,} {self.k_unit}."
        )

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many steps are made by too few."""
        what = "people" if with_original else "trajectories"
        steps = counted(counts["steps"], "step")
        return f"{steps} from tile to tile, {counts['small']:,} with fewer {what}{unknown_people(counts)}."

    def _count(self, written: WrittenRelease, owner: Ints) -> tuple[int, int]:
        """Return the number of steps, and of those made by too few."""
        x, y = LocalProjection(self.lon0, self.lat0).to_plane(written.column("lon"), written.column("lat"))
        tile = np.column_stack([np.floor(x / self.tile_size_m), np.floor(y / self.tile_size_m)])
        number = written.column("published_id")
        step = np.flatnonzero((tile[1:] != tile[:-1]).any(axis=1) & (number[1:] == number[:-1]))
        _, pair = np.unique(np.column_stack([tile[step], tile[step + 1]]), axis=0, return_inverse=True)
        made_by = np.unique(np.column_stack([pair.reshape(-1), owner[number[step] - 1]]), axis=0)[:, 0]
        size = np.bincount(made_by)
        return len(size), int((size < self.min_group_size).sum())


def _add_at(counts: Indices | Ints, numbers: Indices | Ints, one: int) -> None:
    """Add `one` to the count of each number, in chunks: numpy takes 16 bytes for each number."""
    for low in range(0, len(numbers), CHUNK):
        np.add.at(counts, numbers[low : low + CHUNK].astype(np.intp), counts.dtype.type(one))


def _rising(number: Ints) -> Indices | Ints:
    """Number the trajectories 0, 1, … in the order of the rows."""
    begins = np.append(False, number[1:] != number[:-1])[: len(number)]
    return np.cumsum(begins, dtype=index_type(len(number)))


def _owners(written: WrittenRelease, original: Trajectories, counts: str) -> Indices | Ints:
    """Return the owner of each written point; -1 if nobody, or several, have a point of that place and time."""
    published, before = written.number_points(original)
    of_trajectory = original.person if counts == "people" else np.arange(len(original))
    holder = np.repeat(of_trajectory.astype(before.dtype), np.diff(original.offsets))
    owner = np.full(int(max(published.max(initial=-1), before.max(initial=-1))) + 1, -1, before.dtype)
    scatter(owner, before, holder)
    # Any other owner of a point than the last one shares it.
    owner[before[gather(owner, before) != holder]] = -1
    return gather(owner, published)
