"""A guarantee about released flows with noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.io.written_release import WrittenRelease


class DifferentialPrivacy(Guarantee):
    """Volumes have noise, and nothing exact stands beside them."""

    name: ClassVar[str] = "differential-privacy"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"crowd_told": "max", "told": "sum"}
    of_mechanism: ClassVar[bool] = True

    epsilon: float = Field(gt=0)
    most_trips: int = Field(ge=1)

    def statement(self) -> str:
        """The guarantee in one sentence."""
        trips = "any one trip" if self.most_trips == 1 else f"any {self.most_trips:,} trips"
        return (
            f"In each time step, whether {trips} took place or not changes the chance of what is published by a factor of "
            f"e^{self.epsilon:g} at most, for whoever does not know the seed of the noise."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Look whether anything exact stands beside the noisy volumes; that there is noise cannot be seen."""
        crowd = "people" in written.data.column_names or not np.array_equal(
            written.column("trips"), written.column("volume")
        )
        told = int(written.listed("suppressed")[1].sum())
        return self.judged(crowd or told > 0, {"crowd_told": crowd, "told": told}, open_=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say what exact figure was found, or that there is none."""
        faults = ["the crowd of rows is told besides their volume"] if counts["crowd_told"] else []
        if counts["told"]:
            faults.append(f"what is suppressed is told in {counted(counts['told'], 'time step')}")
        if faults:
            return f"{'; '.join(faults)}."
        return (
            "no exact figure is published with the noisy ones; the noise itself is a property of the mechanism, which files "
            "do not show."
        )
