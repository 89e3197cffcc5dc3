"""Check (k, δ)-anonymity of released trajectories, on the written table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import CountedByPeople, Kind, Merge, unknown_people
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.projection import great_circle_m

MOST_STEPS = 20_000
"""Number of sets that are tried for one trajectory before its search ends without an answer."""


class KDeltaAnonymity(CountedByPeople):
    """Every trajectory has k − 1 others with the same times; at each of these, all k are within δ of one another."""

    name: ClassVar[str] = "k-delta-anonymity"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = {
        "trajectories": "sum", "alone": "sum", "unknown": "sum", "whose": "max", "other_number": "max",
    }  # fmt: skip
    k: int = Field(ge=1)
    """Smallest number of trajectories within δ of one another."""
    delta_m: float = Field(ge=0)
    """Largest distance at any time, in meters."""
    k_unit: Literal["people", "trajectories"]
    """Unit of k."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        others = "of other people" if self.k_unit == "people" else "(people are not known)"
        return (
            f"Every published trajectory has the times of at least {self.k - 1:,} others {others}, and at each of them all "
            f"{self.k:,} are within {self.delta_m:g} m of one another; this is not k-anonymity."
        )

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many trajectories have too few others near them."""
        trajectories = counted(counts["trajectories"], "trajectory", "trajectories")
        unknown = f"; the search for {counts['unknown']:,} ended early" if counts["unknown"] else ""
        alone = f"{counts['alone']:,} with fewer than {self.k - 1:,} others near them at all times"
        return f"{trajectories} checked, {alone}{unknown}{unknown_people(counts)}."

    def _count(self, written: WrittenRelease, owner: Ints) -> tuple[int, int, int]:
        """Search k − 1 others for each trajectory; count those without them, and those whose search ended early."""
        number, t = written.column("published_id"), written.column("timestamp")
        lon, lat = written.column("lon"), written.column("lat")
        begins = np.append(np.flatnonzero(np.diff(number, prepend=0)), len(number))
        of_times: dict[bytes, list[int]] = {}
        for i in range(len(begins) - 1):
            of_times.setdefault(t[begins[i] : begins[i + 1]].tobytes(), []).append(i)
        alone = unknown = 0
        for together in of_times.values():
            rows = np.array(together, np.int64)
            at = begins[rows][:, None] + np.arange(begins[rows[0] + 1] - begins[rows[0]])
            near = _neighbors(lon[at], lat[at], self.delta_m)
            found = [self._has_k(i, near, owner[rows]) for i in range(len(near))]
            alone += found.count(False)
            unknown += found.count(None)
        return len(begins) - 1, alone, unknown

    def _has_k(self, one: int, near: list[set[int]], owner: Ints) -> bool | None:
        """Return whether k owners have trajectories near `one` and near one another; None if the search ended early."""
        steps = 0

        def extend(chosen: set[int], candidates: set[int]) -> bool | None:
            nonlocal steps
            owners = {int(owner[i]) for i in chosen}
            if len(owners) >= self.k:
                return True
            left = {i for i in candidates if int(owner[i]) not in owners}
            # Those near most others come first: in a separate cluster the first try ends the search.
            for i in sorted(left, key=lambda i: (-len(near[i] & left), i)):
                steps += 1
                if steps > MOST_STEPS:
                    return None
                found = extend(chosen | {i}, left & near[i])
                if found is not False:
                    return found
                left = left - {i}
            return False

        return extend({one}, near[one] - {one})


def _neighbors(lon: Floats, lat: Floats, delta_m: float) -> list[set[int]]:
    """Return the trajectories within δ of each one at all times, of trajectories with equal times."""
    near: list[set[int]] = []
    for i in range(len(lon)):
        left = np.arange(len(lon))
        for point in (0, slice(None)):  # most are apart at the first time already
            here = lon[left][:, point], lat[left][:, point]
            far = great_circle_m(lon[i][point], lat[i][point], *here)
            left = left[(far <= delta_m).reshape(len(left), -1).all(axis=1)]
        near.append(set(left.tolist()))
    return near
