"""Build the confidential content of a private report from the original."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.errors import CrowdveilError
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease, has_segments
from crowdveil.model.trajectories import Trajectories
from crowdveil.report.cost_summary import cost_lines
from crowdveil.report.measurement import measured, named_measures
from crowdveil.report.page_model import PrivateContext


def build_private_context(data: Flows | Trajectories, release: Release | None) -> PrivateContext:
    """Return the original and its exact information loss; without a matching release, the original alone."""
    if isinstance(data, Flows) and isinstance(release, FlowRelease):
        return PrivateContext(data, cost_lines(data, release), _measures(data, release), lost=_lost(data, release))
    if isinstance(data, Trajectories) and isinstance(release, TrajectoryRelease):
        return PrivateContext(data, cost_lines(data, release), displaced_m=_displaced(data, release))
    return PrivateContext(data)


def _measures(data: Flows, release: FlowRelease) -> list[tuple[str, str, str]]:
    """Return a row for each defined measure."""
    rows: list[tuple[str, str, str]] = []
    for asked in named_measures(None) if len(data) else []:
        try:
            rows += measured(data, release, [asked]).rows()
        except CrowdveilError:
            continue  # such as lengths of trips between zones without positions
    return rows


def _lost(data: Flows, release: FlowRelease) -> Floats | None:
    """Return the share of each tile's trips, leaving or reaching, that is in no row; None if rows overlap."""
    row = OdComparison.between(data, release).row
    if row is None or not len(data):
        return None
    n = len(data.zones)

    def ends(volume: Any) -> Floats:
        both = np.bincount(data.origin, volume, n) + np.bincount(data.destination, volume, n)
        return both.astype(np.float64)

    with np.errstate(invalid="ignore", divide="ignore"):
        lost: Floats = ends(np.where(row < 0, data.volume, 0)) / ends(data.volume)
    return lost


def _displaced(data: Trajectories, release: TrajectoryRelease) -> Floats | None:
    """Return meters from each published point to the point at the same relative position of its original trajectory."""
    if release.source is None or not len(release) or has_segments(release):
        return None
    source, length = release.source, np.diff(release.offsets)
    of = np.repeat(np.arange(len(release)), length)
    position = np.arange(release.points) - release.offsets[of]
    before = np.diff(data.offsets)[source[of]]
    along = np.rint(position * (before - 1) / np.maximum(length[of] - 1, 1)).astype(np.int64)
    point = data.offsets[source[of]] + np.minimum(along, before - 1)
    plane = data.projection
    x0, y0 = plane.to_plane(data.lon[point], data.lat[point])
    x1, y1 = plane.to_plane(release.lon, release.lat)
    meters: Floats = np.hypot(x1 - x0, y1 - y0)
    return meters
