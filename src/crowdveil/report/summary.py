"""What a run cost, in a few numbers and lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories


def cost_lines(data: Flows | Trajectories, release: Release) -> list[str]:
    """Three lines for the person who ran it. They may hold exact totals: they stay in the house."""
    if isinstance(release, FlowRelease) and isinstance(data, Flows):
        published, steps = int(release.volume.sum()), np.diff(release.offsets) > 0
        return [
            f"trips published        {published:,} of {data.total:,} ({_percent(published, data.total)})",
            f"flows published        {len(release):,} of {len(data):,} ({_percent(len(release), len(data))})",
            f"time steps with flows  {int(steps.sum()):,} of {data.steps:,}",
        ]
    if isinstance(release, TrajectoryRelease) and isinstance(data, Trajectories):
        return [
            f"trajectories published {len(release):,} of {len(data):,} ({_percent(len(release), len(data))})",
            f"points published       {release.points:,} of {data.points:,} ({_percent(release.points, data.points)})",
            f"different places       {_places(release):,} of {_places(data):,}",
        ]
    raise TypeError("a release and the data that it was made from must be of one kind")


def cost_numbers(data: Flows | Trajectories, release: Release) -> dict[str, Any]:
    """The cost for the certificate. Shares are whole percents: an exact total of what was withheld may be a person."""
    if isinstance(release, FlowRelease) and isinstance(data, Flows):
        published = int(release.volume.sum())
        return {
            "published_flows": len(release),
            "published_volume": published,
            "withheld_volume_percent": _whole_percent(data.total - published, data.total),
            "published_time_steps": int((np.diff(release.offsets) > 0).sum()),
        }
    return {
        "published_trajectories": len(release),
        "published_points": getattr(release, "points", 0),
        "withheld_trajectories_percent": _whole_percent(len(data) - len(release), len(data)),
    }


def _places(data: Trajectories | TrajectoryRelease) -> int:
    from crowdveil.kernels.distinct import count_pairs

    # Bits are compared in place of numbers; adding 0 makes one of the two zeros.
    lon, lat = ((degrees + 0.0).view(np.int64) for degrees in (data.lon, data.lat))
    return int(count_pairs(lon, lat))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _whole_percent(part: int, whole: int) -> int:
    return round(100 * part / whole) if whole else 0
