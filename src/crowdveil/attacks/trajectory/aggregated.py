"""Define trajectories that are published as aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crowdveil.attacks.base import DEFAULT_K
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class AggregatedTrajectories:
    """Trajectories that are published as aggregates.

    Attributes
    ----------
    data
        The original trajectories.
    tz
        Time zone of nights and time steps.
    release
        A release of flows of these trajectories, None for heat maps of tiles with at least k people.
    k
        The group size of the release.
    """

    data: Trajectories
    tz: str = "UTC"
    release: WrittenRelease | None = None
    k: int | None = None

    def threshold(self, params: Any) -> int:
        """Return the group size of what is published."""
        return params.k or self.k or DEFAULT_K
