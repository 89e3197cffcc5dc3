"""Overlaps of the rows of two published releases: sets of origin tiles, destination tiles and time that both contain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.model.arrays import Ints, group_sums
from crowdveil.model.release import NOT_GIVEN, FlowRelease
from crowdveil.model.time_axis import TimeAxis
from crowdveil.solve.od.derivable_sets import Overlaps

Times = tuple[Ints, Ints]


class TimedRows(NamedTuple):
    """The rows of a release with their times, and those of its windows (its time steps, where rows have no interval).

    Attributes
    ----------
    release
        The release. A published suppressed total is one more row of its window, after the rows of the table.
    start, end
        Time of each row of the table, in seconds.
    windows
        Start and end of each window.
    totals
        The number of the row of each window's suppressed total; -1 where it is not published.
    volume
        The volume of each row, totals included.
    """

    release: FlowRelease
    start: Ints
    end: Ints
    windows: Times
    totals: Ints
    volume: Ints

    @classmethod
    def of(cls, release: FlowRelease, without_times: tuple[int, int]) -> TimedRows:
        """Return the rows; a release without times covers the given period."""
        windows = _windows(release, without_times)
        intervals = release.intervals
        if intervals is None:
            start, end = (side[release.step] for side in windows)
        else:
            start, end = intervals.start[intervals.first], intervals.end[intervals.last - 1]
        known = release.suppressed != NOT_GIVEN
        totals = np.where(known, len(release) + np.cumsum(known) - 1, -1)
        return cls(release, start, end, windows, totals, np.concatenate([release.volume, release.suppressed[known]]))


def _windows(release: FlowRelease, without_times: tuple[int, int]) -> Times:
    if release.intervals is not None:
        return release.intervals.window_start, release.intervals.window_end
    if release.step_s is None:
        return np.full(len(release.t), without_times[0]), np.full(len(release.t), without_times[1])
    return release.t, TimeAxis(release.step_s, release.tz).ends(release.t)


def period_of(releases: list[FlowRelease]) -> tuple[int, int]:
    """Return the period of releases with times: one without times is taken to cover it."""
    found = [_windows(r, (0, 1)) for r in releases if r.step_s is not None and len(r.t)]
    return (min(int(s.min()) for s, _ in found), max(int(e.max()) for _, e in found)) if found else (0, 1)


class ReleaseOverlaps(NamedTuple):
    """The overlaps of two releases, with the cells of each: pairs of tiles times seconds; -1 where they are not known."""

    overlaps: Overlaps
    cells: Ints


def release_overlaps(first: TimedRows, second: TimedRows) -> ReleaseOverlaps:
    """Return the overlaps of the rows of two releases over the same zones, whose own rows do not overlap."""
    found: list[tuple[Ints, Ints, Ints]] = []
    sides = first, second
    seen = [np.zeros(len(side.start), np.int64) for side in sides]
    covered = [np.zeros(len(side.totals), np.int64) for side in sides]
    for a, b in _window_pairs(first.windows, second.windows):
        rows = [np.arange(*side.release.offsets[[w, w + 1]]) for side, w in zip(sides, (a, b), strict=True)]
        p, q, cells = _common(first, second, *rows)
        found.append((p, q, cells))
        low, high = max(first.windows[0][a], second.windows[0][b]), min(first.windows[1][a], second.windows[1][b])
        totals = int(first.totals[a]), int(second.totals[b])
        for i, (side, own) in enumerate(zip(sides, rows, strict=True)):
            cells_of_rows = _cells(side, own, int(low), int(high))
            inside = group_sums((p, q)[i] - (own[0] if len(own) else 0), cells, len(own))
            seen[i][own] += cells_of_rows
            left = own[cells_of_rows > inside]
            outside = np.full(len(left), totals[1 - i])
            pair = (left, outside) if i == 0 else (outside, left)
            found.append((*pair, (cells_of_rows - inside)[cells_of_rows > inside]))
            covered[i][(a, b)[i]] += high - low
        if max(totals) >= 0:
            found.append((np.array([totals[0]]), np.array([totals[1]]), np.array([-1])))
    for i, side in enumerate(sides):
        rest = _cells(side, np.arange(len(side.start))) - seen[i]
        open_totals = side.totals[(side.totals >= 0) & (covered[i] < side.windows[1] - side.windows[0])]
        left = np.concatenate([np.flatnonzero(rest), open_totals])
        outside = np.full(len(left), -1)
        pair = (left, outside) if i == 0 else (outside, left)
        found.append((*pair, np.concatenate([rest[rest > 0], np.full(len(open_totals), -1)])))
    return _merged(found, (len(first.volume), len(second.volume)))


def _merged(found: list[tuple[Ints, Ints, Ints]], rows: tuple[int, int]) -> ReleaseOverlaps:
    """Return each overlap once, with the sum of its cells."""
    p, q, cells = (np.concatenate(part).astype(np.int64) for part in zip(*found, strict=True))
    key, number = np.unique((p + 1) * (rows[1] + 1) + q + 1, return_inverse=True)
    total = group_sums(number, cells, len(key))
    total[number[cells < 0]] = -1
    return ReleaseOverlaps(Overlaps(key // (rows[1] + 1) - 1, key % (rows[1] + 1) - 1, rows), total)


def _window_pairs(first: Times, second: Times) -> list[tuple[int, int]]:
    """Return the windows of two releases that have a time in common; those of one release do not overlap."""
    order = np.argsort(second[0], kind="stable")
    start, end = second[0][order], second[1][order]
    low, high = np.searchsorted(end, first[0], side="right"), np.searchsorted(start, first[1], side="left")
    return [(a, int(order[b])) for a in range(len(first[0])) for b in range(low[a], high[a])]


def _cells(side: TimedRows, rows: Ints, low: int | None = None, high: int | None = None) -> Ints:
    """Return the cells of rows, or those within a time."""
    size, release = side.release.areas.size, side.release
    start, end = side.start[rows], side.end[rows]
    if low is not None and high is not None:
        start, end = np.maximum(start, low), np.minimum(end, high)
    found: Ints = size[release.origin[rows]] * size[release.destination[rows]] * np.maximum(end - start, 0)
    return found


def _common(first: TimedRows, second: TimedRows, p: Ints, q: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the pairs of rows that overlap, and the cells that they have in common."""
    one, other = first.release, second.release
    tiles = _common_tiles(one, other, np.concatenate([one.origin[p], one.destination[p]]),
                          np.concatenate([other.origin[q], other.destination[q]]))  # fmt: skip
    shared, (area, other_area) = tiles
    n, m = len(p), len(q)
    pairs = shared[np.ix_(area[:n], other_area[:m])] * shared[np.ix_(area[n:], other_area[m:])]
    i, j = np.nonzero(pairs)
    seconds = np.minimum(first.end[p[i]], second.end[q[j]]) - np.maximum(first.start[p[i]], second.start[q[j]])
    keep = seconds > 0
    return p[i[keep]], q[j[keep]], (pairs[i, j] * seconds)[keep]


def _common_tiles(one: FlowRelease, other: FlowRelease, areas: Ints, others: Ints) -> tuple[Ints, tuple[Ints, Ints]]:
    """Return how many tiles areas of two releases have in common, and the numbers of the areas in that table."""
    from scipy.sparse import csr_array

    tables, numbers = [], []
    for release, wanted in ((one, areas), (other, others)):
        used, number = np.unique(wanted, return_inverse=True)
        some = release.areas.only(used)
        ones = np.ones(len(some.tiles), np.int64)
        tables.append(csr_array((ones, some.tiles, some.offsets), shape=(len(used), len(release.areas.zones))))
        numbers.append(number)
    shared: Ints = (tables[0] @ tables[1].T).toarray()
    return shared, (numbers[0], numbers[1])
