"""Build the confidential content of a private report from the original."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.comparison.requested_measures import named_measures
from crowdveil.io.written_release import file_hash
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.measures.trajectory.distortion import displacements
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.report.cost_summary import cost_lines, cost_of
from crowdveil.report.measurement import measured
from crowdveil.report.page_model import PrivateContext


def build_private_context(data: Flows | Trajectories, release: Release | None, given: Any = None) -> PrivateContext:
    """Return the original and its exact information loss; without a matching release, the original alone.

    `given` is the original as it was given, such as the path of a file.
    """
    context = PrivateContext(data, source=_source(data, given))
    if isinstance(data, Flows) and isinstance(release, FlowRelease):
        cost, lost = cost_lines(data, release, cost_of(data, release)), _lost(data, release)
        return replace(context, cost=cost, measures=_measures(data, release), lost=lost)
    if isinstance(data, Trajectories) and isinstance(release, TrajectoryRelease):
        cost = cost_lines(data, release, cost_of(data, release))
        return replace(context, cost=cost, displaced_m=_displaced(data, release))
    return context


def _source(data: Flows | Trajectories, given: Any) -> list[tuple[str, str]]:
    """Return what the data is, with exact numbers, and name and hash of its file."""
    known = not isinstance(data, Flows) or data.total_people_is_exact
    people = f"{'' if known else 'at most '}{data.total_people:,}" if data.k_unit == "people" else "not known"
    amount = ("Trips", f"{data.total:,}") if isinstance(data, Flows) else ("Trajectories", f"{len(data):,}")
    rows = [("People", people), amount]
    if isinstance(given, str | Path) and Path(given).exists():
        rows += [("Source", Path(given).name), ("SHA-256 of the source", file_hash(Path(given)))]
    return rows


def _measures(data: Flows, release: FlowRelease) -> list[tuple[str, str, str]]:
    """Return a row for each measure that is defined; lengths of trips are not, between zones without positions."""
    return measured(data, release, named_measures(None)).rows() if len(data) else []


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
    """Return meters from each published point to its original trajectory at that time; None where that is not known."""
    return None if release.source is None or not len(release) else displacements(data, release)
