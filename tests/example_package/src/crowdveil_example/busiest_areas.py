"""List the areas of a release that most trips leave.

What it does
------------
Adds up the published trips of each origin area over all time steps.

Notes
-----
An example of an analysis in a package of its own; nobody needs it.

References
----------
None.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from crowdveil.analysis.base import Analysis
from crowdveil.analysis.study import Study
from crowdveil.engine.progress import Progress
from crowdveil.params import Params


class BusiestParams(Params):
    """Parameters of busiest areas."""

    most: int = Field(5, ge=1)
    """Number of areas to list."""


@dataclass(frozen=True)
class Busiest:
    """Areas and their trips, most first."""

    rows: tuple[tuple[str, int], ...]

    def lines(self) -> list[str]:
        """Return a line for each area."""
        return [f"{name}  {trips:,}" for name, trips in self.rows]

    def write(self, path: Path, progress: Progress) -> None:
        """Write the areas as CSV."""
        path.write_text("area,trips\n" + "".join(f"{name},{trips}\n" for name, trips in self.rows), encoding="utf-8")


def run(study: Study, params: BusiestParams, progress: Progress) -> Busiest:
    """Add up the trips of each origin area."""
    release = study.released.release
    trips = np.bincount(release.origin, release.volume, len(release.areas)).astype(np.int64)
    order = np.argsort(-trips, kind="stable")[: params.most]
    return Busiest(tuple((str(release.areas.names[i]), int(trips[i])) for i in order))


ANALYSIS = Analysis(
    "busiest-areas", BusiestParams, run, __doc__ or "", "List the areas that most trips leave.", compares=False
)
