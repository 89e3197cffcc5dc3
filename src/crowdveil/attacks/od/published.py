"""Define the adversary's view of a release of flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdveil.attacks.base import DEFAULT_K, FlowAttackParams
from crowdveil.model.arrays import Indices, Ints, ranks
from crowdveil.model.release import FlowRelease


@dataclass(frozen=True, eq=False)
class Published:
    """A published release, and the public facts of its method.

    Attributes
    ----------
    release
        The flows.
    k
        The guaranteed group size, None where there is none.
    row_semantics
        The meaning of a row: the volume of all flows in it (exact), of some of them (overlapping), or one with noise.
    """

    release: FlowRelease
    k: int | None = None
    row_semantics: Literal["exact", "overlapping", "noisy"] = "exact"

    def threshold(self, params: FlowAttackParams) -> int:
        """Return the group size that counts are compared with."""
        return params.k or self.k or DEFAULT_K

    def margins(self, area: Indices, *, over_steps: bool) -> tuple[Ints, Ints]:
        """Return a number for each row, the same for rows of one area, in one time step or in any; and the upper bound of the
        trips or people of each number: people in two rows count twice.
        """
        areas = max(len(self.release.areas), 1)
        step = self.release.step
        if self.release.intervals is not None:  # rows of one interval, as those of one time step
            step, _ = ranks(
                self.release.intervals.first * (len(self.release.intervals.start) + 1) + self.release.intervals.last
            )
        key = area.astype(np.int64) if over_steps else step * areas + area
        number, _ = ranks(key)
        return number, np.bincount(number, self.release.people).astype(np.int64)
