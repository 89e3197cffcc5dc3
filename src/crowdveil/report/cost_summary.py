"""Summarize the information loss of a run in a few numbers and lines."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from crowdveil.io.manifest import Manifest
from crowdveil.measures.rounding import round_share, share_step
from crowdveil.model.arrays import number_rows, sorted_distinct
from crowdveil.model.flows import WEIGHT_UNITS, Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories


@dataclass(frozen=True)
class FlowCost:
    """Published and original numbers of flows, trips and time steps. Costs of partitions can be added."""

    flows: int = 0
    volume: int = 0
    steps: int = 0
    all_flows: int = 0
    all_volume: int = 0
    all_steps: int = 0
    weighted: int = 0
    """Flows whose trips have weights."""
    rounded_off: int = 0
    """Flows with weights that are rounded to 0 trips."""
    units: int = 0
    """Trips in the data before rounding, in units of weights."""

    @classmethod
    def of(cls, data: Flows, release: FlowRelease) -> FlowCost:
        """Return the cost of a release of the data."""
        steps, all_steps = int((np.diff(release.offsets) > 0).sum()), data.steps
        if release.intervals is not None:
            # All steps of the calendar, since a count of those with trips in the original would reveal empty ones.
            steps, all_steps = len(np.unique(release.intervals.spread()[0])), len(release.intervals.start)
        weighted = 0 if data.weight is None else len(data)
        return cls(
            len(release), int(release.volume.sum()), steps, len(data), data.total, all_steps,
            weighted, int((data.volume == 0).sum()), data.exact_units,
        )  # fmt: skip

    def __add__(self, other: FlowCost) -> FlowCost:
        return FlowCost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def lines(self) -> list[str]:
        """Return exact lines for the operator (confidential)."""
        all_trips = self.units / WEIGHT_UNITS
        trips = f"{all_trips:,.1f}" if self.weighted else f"{self.all_volume:,}"
        lines = [
            f"trips published        {self.volume:,} of {trips} ({_percent(self.volume * WEIGHT_UNITS, self.units)})",
            f"flows published        {self.flows:,} of {self.all_flows:,} ({_percent(self.flows, self.all_flows)})",
            f"time steps with flows  {self.steps:,} of {self.all_steps:,}",
        ]
        if self.weighted:
            lines.append(
                f"rounded to 0 trips     {self.rounded_off:,} of {self.weighted:,} flows "
                f"({_percent(self.rounded_off, self.weighted)}); "
                f"all weights sum to {all_trips:,.1f} trips, their volumes to {self.all_volume:,}"
            )
        return lines

    def numbers(self, k: int | None) -> dict[str, Any]:
        """Return numbers for the manifest; shares are rounded for a group size k."""
        trips, off = self.units / WEIGHT_UNITS, self.units / WEIGHT_UNITS - self.volume
        published = {
            "published_flows": self.flows,
            "published_volume": self.volume,
            "suppressed_volume_percent": round_share(max(off, 0), trips, k),
            "published_time_steps": self.steps,
        }
        if not self.weighted:
            return published
        return {
            **published,
            "flows_rounded_to_0_percent": round_share(self.rounded_off, self.weighted, k),
            "rounding_loss_percent": round_share(abs(trips - self.all_volume), trips, k),
        }


@dataclass(frozen=True)
class TrajectoryCost:
    """Published and original numbers of trajectories and points. Costs of partitions can be added."""

    trajectories: int = 0
    points: int = 0
    all_trajectories: int = 0
    all_points: int = 0
    more_segments: int = 0
    """Published segments of trajectories beyond the first of each."""

    @classmethod
    def of(cls, data: Trajectories, release: TrajectoryRelease) -> TrajectoryCost:
        """Return the cost of a release of the data."""
        more = 0 if release.source is None else len(release) - len(sorted_distinct(release.source))
        return cls(len(release), release.points, len(data), data.points, more)

    def __add__(self, other: TrajectoryCost) -> TrajectoryCost:
        return TrajectoryCost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def lines(self) -> list[str]:
        """Return exact lines for the operator (confidential)."""
        _, points, of_n, of_points, more = astuple(self)
        n = self.trajectories - more
        segments = f", in {self.trajectories:,} segments" if more else ""
        return [
            f"trajectories published {n:,} of {of_n:,} ({_percent(n, of_n)}){segments}",
            f"points published       {points:,} of {of_points:,} ({_percent(points, of_points)})",
        ]

    def numbers(self, k: int | None) -> dict[str, Any]:
        """Return numbers for the manifest; shares are rounded for a group size k."""
        return {
            "published_trajectories": self.trajectories,
            "published_points": self.points,
            "suppressed_trajectories_percent": round_share(
                self.all_trajectories - self.trajectories + self.more_segments, self.all_trajectories, k
            ),
        }


def cost_of(data: Flows | Trajectories, release: Release) -> FlowCost | TrajectoryCost:
    """Return the cost of a release of the data."""
    if isinstance(release, FlowRelease) and isinstance(data, Flows):
        return FlowCost.of(data, release)
    if isinstance(release, TrajectoryRelease) and isinstance(data, Trajectories):
        return TrajectoryCost.of(data, release)
    raise TypeError("release and original must be of one kind")


def cost_lines(data: Flows | Trajectories, release: Release, cost: FlowCost | TrajectoryCost) -> list[str]:
    """Return lines for the operator. They hold exact totals and are confidential."""
    lines = cost.lines()
    if isinstance(release, TrajectoryRelease) and isinstance(data, Trajectories):
        lines.append(f"distinct locations     {_count_locations(release):,} of {_count_locations(data):,}")
    return lines


def _count_locations(data: Trajectories | TrajectoryRelease) -> int:
    return int(number_rows(data.lon, data.lat).max(initial=-1)) + 1


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def over_budget(manifest: Manifest) -> list[str]:
    """Return a line where more is suppressed than the share that was allowed: time steps with fewer than k people."""
    allowed = manifest.method.parameters.get("suppress")
    lost = manifest.cost.get("suppressed_volume_percent")
    if not isinstance(allowed, float) or lost is None or "published_volume" not in manifest.cost:
        return []
    whole = manifest.cost["published_volume"] / max(1 - lost / 100, 0.01)
    if lost - share_step(whole, manifest.k) / 2 <= 100 * allowed:  # the share is rounded
        return []
    return [
        f"you allowed {100 * allowed:g} %, but {lost:g} % are suppressed, since some time steps have too few people; "
        "choose a longer step"
    ]
