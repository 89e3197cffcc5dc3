"""Measure how often segments of a trajectory, or trajectories of a person, can be linked: where one ends, the next begins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crowdveil.attacks.known_points import FEWEST
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

TRIED = 20_000
"""Most links that are tried: the first, by the order of content."""


def measured_continuity(segments: Trajectories, whole: Ints, release: TrajectoryRelease) -> dict[str, Any]:
    """Measure an adversary who follows a trajectory from segment to segment.

    After each segment the adversary takes the published segment that begins nearest to its end, in space and in time at the mean
    speed. A link is right if the person's next segment is published like the one that is taken.

    Parameters
    ----------
    segments, whole
        The original segments, and the trajectory of each; or trajectories, and the person of each.
    release
        The release of the segments; its source is the segment of each.

    Returns
    -------
    Whole percentages, None where there are fewer than 50: right links, and trajectories (people) with right links alone.
    """
    from scipy.spatial import cKDTree

    if release.source is None:
        raise ValueError("a release of segments needs the source of each")
    number, first, last = _classes(segments, release)
    published = np.full(len(segments), -1, np.int64)
    published[release.source] = number
    order = np.lexsort((segments.t[segments.offsets[:-1]], whole))
    whole, published = whole[order], published[order]
    here = np.flatnonzero((np.diff(whole) == 0) & (published[:-1] >= 0) & (published[1:] >= 0))[:TRIED]
    if len(here) < FEWEST:
        return {"links_percent": None, "trajectories_percent": None}
    guessed = cKDTree(first).query(last)[1]
    right = guessed[published[here]] == published[here + 1]
    of = whole[here]
    begins = np.flatnonzero(np.diff(of, prepend=-1))
    every = np.minimum.reduceat(right.astype(np.int64), begins)
    trajectories = round(100 * float(every.mean())) if len(begins) >= FEWEST else None
    return {"links_percent": round(100 * float(right.mean())), "trajectories_percent": trajectories}


def with_continuity(data: Trajectories, release: TrajectoryRelease) -> TrajectoryRelease:
    """Return a release with the measured continuity of the trajectories of people who have several, among its facts."""
    several = data.k_unit == "people" and data.people < len(data) and release.person is None
    if release.source is None or not several or "continuity" in release.facts:
        return release
    found = measured_continuity(data, data.person, release)
    people = {"links_percent": found["links_percent"], "people_percent": found["trajectories_percent"]}
    return replace(release, facts=release.facts | {"continuity": people})


def _classes(segments: Trajectories, release: TrajectoryRelease) -> tuple[Ints, Floats, Floats]:
    """Return the equivalence class of each published segment, and the first and the last point of each class, in meters."""
    x, y = segments.projection.to_plane(release.lon, release.lat)
    t = (release.t - segments.start).astype(np.float64)
    begin, end = release.offsets[:-1], release.offsets[1:] - 1
    ends = np.column_stack([x[begin], y[begin], t[begin], x[end], y[end], t[end]])
    # Segments that begin and end alike are one to this adversary.
    found, number = np.unique(ends, axis=0, return_inverse=True)
    took = np.maximum(found[:, 5] - found[:, 2], 1.0)
    speed = float(np.mean(np.hypot(found[:, 3] - found[:, 0], found[:, 4] - found[:, 1]) / took)) if len(found) else 0.0
    scale = np.array([1.0, 1.0, max(speed, 1.0)])
    return number.reshape(-1), found[:, :3] * scale, found[:, 3:] * scale


def continuity_lines(facts: Any) -> list[str]:
    """Return the measured continuity in a line for the terminal."""
    found = facts.get("continuity")
    if not found or found["links_percent"] is None:
        return []
    part, whole = ("trajectories", "people") if "people_percent" in found else ("segments", "trajectories")
    every = found[f"{whole}_percent"]
    more = "" if every is None else f"; all {part} of {every} % of {whole}"
    return [f"linked by continuity   {found['links_percent']} % of {part} to the next{more}"]
