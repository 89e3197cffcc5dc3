"""Check the suppression budget of released trajectories or segments of them, on the written table and the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.guarantees.budget import within_budget
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.trajectories import Trajectories


class SuppressedTrajectories(Guarantee):
    """At most a share of the trajectories is suppressed: none, or those of at least k people."""

    name: ClassVar[str] = "suppressed-trajectories"
    published: ClassVar[str] = "trajectories"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = dict.fromkeys(("over", "few_people", "other_number", "open"), "max")
    suppress: float = Field(ge=0, lt=1)
    """A share of the trajectories."""
    k: int = Field(ge=1)
    """Smallest number of people among the suppressed trajectories, if there are any."""
    k_unit: Literal["people", "trajectories"]
    """Unit of the group size."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        whose = f"those of at least {self.k:,} people" if self.k_unit == "people" else f"at least {self.k:,}"
        return f"At most {100 * self.suppress:g} % of the trajectories are suppressed: none, or {whose}."

    def check(self, written: WrittenRelease) -> Finding:
        """Check nothing: the files do not show the number of original trajectories."""
        return self.make_finding(False, {"open": 1}, open_=True)

    def check_with_trajectories(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Count the missing parts of the original trajectories, and their people."""
        parts = self._parts(original)
        published, total = len(np.unique(written.column("published_id"))), int(parts.sum())
        over = not within_budget(total - published, total, self.suppress)
        if source is None:
            return self.make_finding(over, {"over": over, "open": 1}, open_=True, with_original=True)
        missing = parts - np.bincount(source, minlength=len(original))
        if len(source) != published or missing.min(initial=0) < 0:
            return self.make_finding(True, {"other_number": 1}, with_original=True)
        absent = np.flatnonzero(missing)
        behind = original.person[absent] if self.k_unit == "people" else absent
        few = 0 < len(np.unique(behind)) < self.k
        return self.make_finding(over or few, {"over": over, "few_people": few}, with_original=True)

    def _parts(self, original: Trajectories) -> Ints:
        """Return the number of parts of each original trajectory."""
        return np.ones(len(original), np.int64)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return whether too much is suppressed, without numbers, which may reveal a person."""
        if not with_original:
            return f"the files do not show how many {self.published} the original has."
        parts = ["too many are suppressed" if counts["over"] else "no more than allowed are suppressed"]
        if counts["few_people"]:
            parts.append(f"they are of fewer than {self.k:,}")
        if counts["open"]:
            parts.append("their people are known only during the run")
        return f"{'; '.join(parts)}."


class SuppressedSegments(SuppressedTrajectories):
    """At most a share of the segments of trajectories is suppressed: none, or those of at least k people."""

    name: ClassVar[str] = "suppressed-segments"
    published: ClassVar[str] = "segments"
    segment_s: int = Field(ge=1)
    """Length of a segment in seconds: trajectories are cut at its multiples."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return (
            f"At most {100 * self.suppress:g} % of the segments of trajectories are suppressed: none, or those of at least "
            f"{self.k:,} {self.k_unit}."
        )

    def _parts(self, original: Trajectories) -> Ints:
        return segment_counts(original, self.segment_s)


def segment_counts(original: Trajectories, segment_s: int) -> Ints:
    """Return the number of segments of each trajectory, cut at multiples of a length of time."""
    begins = np.ones(original.points, np.bool_)
    begins[1:] = np.diff(original.t // segment_s) != 0
    begins[original.offsets[:-1]] = True
    if not len(original):
        return np.zeros(0, np.int64)
    counts: Ints = np.add.reduceat(begins, original.offsets[:-1], dtype=np.int64)
    return counts
