"""What a run cost, in a few numbers and lines."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from crowdveil.model.flows import WEIGHT_UNITS, Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories


@dataclass(frozen=True)
class FlowCost:
    """What of the flows is published: rows, trips and time steps, and how many there are in the data. Parts add up."""

    flows: int = 0
    volume: int = 0
    steps: int = 0
    all_flows: int = 0
    all_volume: int = 0
    all_steps: int = 0
    weighted: int = 0
    """Flows whose trips have weights."""
    rounded_off: int = 0
    """Those of them that are rounded to 0 trips."""
    units: int = 0
    """Trips in the data before any weight is rounded, in units of weights."""

    @classmethod
    def of(cls, data: Flows, release: FlowRelease) -> FlowCost:
        """What a release has of the data."""
        steps = int((np.diff(release.offsets) > 0).sum())
        weighted = 0 if data.weight is None else len(data)
        return cls(
            len(release), int(release.volume.sum()), steps, len(data), data.total, data.steps,
            weighted, int((data.volume == 0).sum()), data.exact_units,
        )  # fmt: skip

    def __add__(self, other: FlowCost) -> FlowCost:
        return FlowCost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def lines(self) -> list[str]:
        """For the person who ran it."""
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
                f"all weights add up to {all_trips:,.1f} trips, their volumes to {self.all_volume:,}"
            )
        return lines

    def numbers(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "published_flows": self.flows,
            "published_volume": self.volume,
            "suppressed_volume_percent": _whole_percent(max(self.units - self.volume * WEIGHT_UNITS, 0), self.units),
            "published_time_steps": self.steps,
            **(
                {"flows_rounded_to_0_percent": _whole_percent(self.rounded_off, self.weighted)} if self.weighted else {}
            ),
            **({"rounding_loss_percent": self._loss()} if self.weighted else {}),
        }

    def _loss(self) -> int:
        """How far the volumes are from the weights that they are rounded from, in whole percents of these."""
        return _whole_percent(abs(self.units - self.all_volume * WEIGHT_UNITS), self.units)


@dataclass(frozen=True)
class TrackCost:
    """What of the trajectories is published: how many, and points of them, and how many there are in the data. Parts add up."""

    trajectories: int = 0
    points: int = 0
    all_trajectories: int = 0
    all_points: int = 0

    @classmethod
    def of(cls, data: Trajectories, release: TrajectoryRelease) -> TrackCost:
        """What a release has of the data."""
        return cls(len(release), release.points, len(data), data.points)

    def __add__(self, other: TrackCost) -> TrackCost:
        return TrackCost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def lines(self) -> list[str]:
        """For the person who ran it."""
        tracks, points = (self.trajectories, self.all_trajectories), (self.points, self.all_points)
        return [
            f"trajectories published {tracks[0]:,} of {tracks[1]:,} ({_percent(*tracks)})",
            f"points published       {points[0]:,} of {points[1]:,} ({_percent(*points)})",
        ]

    def numbers(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "published_trajectories": self.trajectories,
            "published_points": self.points,
            "suppressed_trajectories_percent": _whole_percent(
                self.all_trajectories - self.trajectories, self.all_trajectories
            ),
        }


def _cost(data: Flows | Trajectories, release: Release) -> FlowCost | TrackCost:
    """What a release has of the data that it was made from."""
    if isinstance(release, FlowRelease) and isinstance(data, Flows):
        return FlowCost.of(data, release)
    if isinstance(release, TrajectoryRelease) and isinstance(data, Trajectories):
        return TrackCost.of(data, release)
    raise TypeError("a release and the data that it was made from must be of one kind")


def cost_lines(data: Flows | Trajectories, release: Release) -> list[str]:
    """Three lines for the person who ran it. They may hold exact totals: they stay in the house."""
    lines = _cost(data, release).lines()
    if isinstance(release, TrajectoryRelease) and isinstance(data, Trajectories):
        lines.append(f"different places       {_places(release):,} of {_places(data):,}")
    return lines


def cost_numbers(data: Flows | Trajectories, release: Release) -> dict[str, Any]:
    """The cost for the manifest. Shares are whole percents: an exact total of what was suppressed may be a person."""
    return _cost(data, release).numbers()


def _places(data: Trajectories | TrajectoryRelease) -> int:
    from crowdveil.kernels.distinct import count_pairs

    # Bits are compared in place of numbers; adding 0 makes one of the two zeros.
    lon, lat = ((degrees + 0.0).view(np.int64) for degrees in (data.lon, data.lat))
    return int(count_pairs(lon, lat))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _whole_percent(part: int, whole: int) -> int:
    return round(100 * part / whole) if whole else 0
