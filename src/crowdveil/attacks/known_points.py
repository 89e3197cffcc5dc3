"""Measure the linkage by two known points of a person, or by a whole trajectory, where a method guarantees no group size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from crowdveil.kernels.linkage import nearest_paths
from crowdveil.model.arrays import Indices, Ints, gather, take_slices
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.swapping import equal_points

KNOWN = 2
TRIED, LINKED = 2_000, 500
CHUNK = 1 << 22
"""Published points whose cells are in memory at once."""
FEWEST = 50
"""Smallest number of trajectories of a published share: a share of fewer would reveal single draws."""
NEAR_S, FAR_M = 120, 2_000.0
"""Points at most this long apart are compared, and all that are this far apart are equally far."""


def with_linkage(
    data: Trajectories,
    release: TrajectoryRelease,
    points: Ints,
    rng: np.random.Generator,
    same: Indices | Ints | None = None,
) -> TrajectoryRelease:
    """Return a release of original points, each by its number in `points`, with the measured linkage among its facts."""
    if release.source is None:
        raise ValueError("a release of points needs the source of its trajectories")
    same = equal_points(data) if same is None else same
    measured = measured_linkage(data, points, release.offsets, release.source, same, rng)
    return replace(release, facts=release.facts | {"measured": measured})


def measured_linkage(
    data: Trajectories, points: Ints, offsets: Ints, source: Ints, same: Indices | Ints, rng: np.random.Generator
) -> dict[str, Any]:
    """Measure how often two exact points of a trajectory match one published trajectory alone, and what it reveals; and how
    often the published trajectory nearest to a trajectory is its own.

    Parameters
    ----------
    points, offsets
        The original point of each published point, and the offsets of published trajectories.
    source
        The original trajectory of each published trajectory.
    same
        A number for each original point, the same for points of one location and time.

    Returns
    -------
    Whole percentages, None where there are fewer than 50. found: share of the attacked trajectories whose known points are
    all in one published trajectory and in no other. true: share of the other points of these that are the same person's.
    linked: share of the first 500 whose nearest published trajectory, over all points, is their own. For comparison the share
    found in the original trajectories, which is 100 where no two points are equal.
    """
    tried = _tried(data, rng)
    found = _found(same[tried], same[points], offsets)
    share, others = _true(data, tried, found, points, offsets)
    alone = _found(same[tried], same, data.offsets)
    return {
        "known_points": KNOWN,
        "trajectories_tried": len(tried),
        "found_percent": _percent(int((found >= 0).sum()), len(tried)),
        "true_points_percent": _percent(share, others),
        "linked_percent": _percent(_linked(data, tried[:LINKED], points, offsets, source), len(tried[:LINKED])),
        "found_percent_in_the_original": _percent(int((alone >= 0).sum()), len(tried)),
    }


def measured_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return the measured linkage in lines for the terminal."""
    measured = facts.get("measured")
    if not measured or measured["found_percent"] is None:
        return []
    true = measured["true_points_percent"]
    return [
        f"re-identified by {measured['known_points']} known points  {measured['found_percent']} % of trajectories "
        f"(in the original {measured['found_percent_in_the_original']} %)"
        + ("" if true is None else f"; of their other points, {true} % are the person's"),
        f"re-identified by the whole trajectory  {measured['linked_percent']} % of trajectories",
    ]


def _tried(data: Trajectories, rng: np.random.Generator) -> Ints:
    """Return two different points of each of some trajectories, drawn at random among those that have two."""
    lengths = np.diff(data.offsets)
    long = np.flatnonzero(lengths >= KNOWN)
    drawn = rng.permutation(long)[:TRIED]
    first = rng.integers(0, lengths[drawn])
    second = (first + rng.integers(1, np.maximum(lengths[drawn], 2))) % lengths[drawn]
    return np.column_stack([data.offsets[drawn] + first, data.offsets[drawn] + second])


def _holders(offsets: Ints, rows: Ints) -> Ints:
    """Return the trajectory of some points: a column of those of all points would take much memory."""
    return np.searchsorted(offsets, rows, side="right") - 1


def _found(known: Indices | Ints, same: Indices | Ints, offsets: Ints) -> Ints:
    """Return the one trajectory with points equal to both known ones, -1 where there is none or more than one."""
    wanted = np.zeros(max(int(known.max(initial=-1)), int(same.max(initial=-1))) + 1, np.bool_)
    wanted[known] = True
    order = np.flatnonzero(gather(wanted, same))
    order = order[np.argsort(same[order], kind="stable")]
    low, high = (np.searchsorted(same[order], known, side) for side in ("left", "right"))
    holder = _holders(offsets, order)
    found = np.full(len(known), -1, np.int64)
    for i in range(len(known)):
        first, second = (set(holder[low[i, j] : high[i, j]].tolist()) for j in (0, 1))
        both = first & second
        if len(both) == 1:
            found[i] = both.pop()
    return found


def _true(data: Trajectories, tried: Ints, found: Ints, points: Ints, offsets: Ints) -> tuple[int, int]:
    """Return how many points besides the known ones are the person's own, and how many there are."""
    own, seen = 0, 0
    for known, path in zip(tried[found >= 0], found[found >= 0].tolist(), strict=True):
        seen_points = points[offsets[path] : offsets[path + 1]]
        other = seen_points[~np.isin(seen_points, known)]
        person = data.person[_holders(data.offsets, np.append(other, known[0]))]
        own += int((person[:-1] == person[-1]).sum())
        seen += len(other)
    return own, seen


def _linked(data: Trajectories, tried: Ints, points: Ints, offsets: Ints, source: Ints) -> int:
    """Count the trajectories whose nearest published trajectory is their own."""
    trajectory = _holders(data.offsets, tried[:, 0])
    rows, ends = take_slices(data.offsets, trajectory)
    near = _near_points(data, rows, points)
    near = near[np.argsort(data.t[points[near]], kind="stable")]
    candidates = points[near]
    t, (x, y) = data.t[candidates], data.xy
    low, high = np.searchsorted(t, data.t[rows] - NEAR_S), np.searchsorted(t, data.t[rows] + NEAR_S, "right")
    holder = _holders(offsets, near)
    nearest = nearest_paths(ends, x[rows], y[rows], low, high, x[candidates], y[candidates], holder, len(source), FAR_M)
    return int((source[nearest[nearest >= 0]] == trajectory[nearest >= 0]).sum())


def _near_points(data: Trajectories, rows: Ints, points: Ints) -> Ints:
    """Return the places in `points` of those that may be near one of `rows` in space and time, and of few others.

    Points are near only if their cells of space and time are the same or neighbors.
    """
    if not len(rows):
        return rows
    columns = (*data.xy, data.t)
    first = [float(column.min()) for column in columns]
    # Cells are wider than the distance by more than rounding errors.
    width = [distance * (1 + 1e-6) for distance in (FAR_M, FAR_M, NEAR_S)]
    _, rows_of_cells, slabs = (int(np.ptp(column) / wide) + 3 for column, wide in zip(columns, width, strict=True))

    def cells(of: Ints) -> Ints:
        """Return the number of the cell of each point; the cells at the border have no points."""
        x, y, t = (
            ((column[of] - least) / wide).astype(np.int64) + 1
            for column, least, wide in zip(columns, first, width, strict=True)
        )
        return (x * rows_of_cells + y) * slabs + t

    steps = np.array([(x * rows_of_cells + y) * slabs + t for x, y, t in product((-1, 0, 1), repeat=3)])
    around = np.unique(np.unique(cells(rows))[:, None] + steps)
    near = []
    for begin in range(0, len(points), CHUNK):
        cell = cells(points[begin : begin + CHUNK])
        place = np.minimum(np.searchsorted(around, cell), len(around) - 1)
        near.append(begin + np.flatnonzero(around[place] == cell))
    return np.concatenate([rows[:0], *near])


def _percent(part: int, whole: int) -> int | None:
    return round(100 * part / whole) if whole >= FEWEST else None
