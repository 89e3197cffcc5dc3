"""A release of flows as an adversary reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdveil.attacks.adversary_view import ranks
from crowdveil.attacks.base import USUAL_K, FlowAttackParams
from crowdveil.model.arrays import Indices, Ints
from crowdveil.model.release import FlowRelease


@dataclass(frozen=True, eq=False)
class Published:
    """What is published, and what is known of how it was made.

    Attributes
    ----------
    release
        The flows.
    k
        The crowd that was guaranteed, None where none was.
    rows
        What a row says: the volume of all flows in it (exact), of some of them (overlapping), or one with noise.
    """

    release: FlowRelease
    k: int | None = None
    rows: Literal["exact", "overlapping", "noisy"] = "exact"

    def crowd(self, params: FlowAttackParams) -> int:
        """What counts are held against."""
        return params.k or self.k or USUAL_K

    def margins(self, area: Indices, *, over_steps: bool) -> tuple[Ints, Ints]:
        """A number for each row, the same for rows that begin (or end) in one area, in one time step or in any; and how many
        trips or people each of them has at most: who is in two rows counts twice.
        """
        areas = max(len(self.release.areas), 1)
        key = area.astype(np.int64) if over_steps else self.release.step * areas + area
        number, _ = ranks(key)
        return number, np.bincount(number, self.release.people).astype(np.int64)
