"""Check differential privacy of released flows with noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.io.written_release import BOUND_COLUMNS, WrittenRelease


class DifferentialPrivacy(Guarantee):
    """Volumes have noise, and no exact number is published with them."""

    name: ClassVar[str] = "differential-privacy"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"exact_group": "max", "exact_bounds": "max", "exact_totals": "sum"}
    of_mechanism: ClassVar[bool] = True

    epsilon: float = Field(gt=0)
    trips: int = Field(ge=1)
    """Number of trips that are kept of a person or, if people are unknown, that are protected together."""
    unit: Literal["person", "trips"] = "trips"
    period: Literal["step", "release"] = "step"

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        trips = "any one trip" if self.trips == 1 else f"any {self.trips:,} trips"
        kept = "one trip" if self.trips == 1 else f"{self.trips:,} trips"
        limits = f" (at most {kept} of each {'is' if self.trips == 1 else 'are'} kept)" if self.unit == "person" else ""
        subject = f"any one person is in the data or not{limits}" if limits else f"{trips} took place or not"
        where = "In each time step, whether" if self.period == "step" else "In all time steps together, whether"
        return (
            f"{where} {subject} changes the probability of any published result by a factor of at most e^{self.epsilon:g}, for "
            "an adversary without the seed of the noise. The zones, and the period from the first to the last time step, are "
            "public."
        )

    def what_was_done(self) -> str:
        """Describe the anonymization."""
        return "Random noise was added to every count, and small counts were left out."

    def check(self, written: WrittenRelease) -> Finding:
        """Check that no exact number is published with the noisy volumes; files do not show the noise itself."""
        exact = "people" in written.data.column_names or not np.array_equal(
            written.column("trips"), written.column("volume")
        )
        totals, bounds = int(written.listed("suppressed")[1].sum()), _do_bounds_differ(written)
        counts = {"exact_group": exact, "exact_bounds": bounds, "exact_totals": totals}
        return self.make_finding(exact or bounds or totals > 0, counts, open_=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return which exact numbers were found, or that there are none."""
        faults = ["the group size of rows is published next to their volume"] if counts["exact_group"] else []
        if counts["exact_bounds"]:
            faults.append("rows of one volume have different confidence bounds")
        if counts["exact_totals"]:
            faults.append(f"the suppressed volume is published in {counted(counts['exact_totals'], 'time step')}")
        if faults:
            return f"{'; '.join(faults)}."
        return (
            "no exact number is published with the noisy ones; the noise itself is a property of the mechanism, which files "
            "do not show."
        )


def _do_bounds_differ(written: WrittenRelease) -> bool:
    """Return whether rows of equal volume have different bounds, which then depend on more than the noisy volume."""
    columns = [written.column(name) for name in BOUND_COLUMNS if name in written.data.column_names]
    rows = np.column_stack([written.column("volume"), *columns])
    return len(np.unique(rows, axis=0)) > len(np.unique(rows[:, 0]))
