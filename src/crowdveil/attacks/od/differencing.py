"""Subtract published flows from one another, and from suppressed totals.

The adversary searches rows of one time step that lie inside another row: origin in origin, destination in destination, and
interval in interval where rows span several time steps. The outer row minus the inner ones is the volume of the rest. Where a
suppressed total is given, the adversary searches the pairs of tiles that it can belong to.

This attack uses one release only. An adversary with two releases of the same data, made with another tree, k, budget or
splits, subtracts them from each other: the attack `releases` does that. Publish one release of the same data, or audit each new
one with `crowdveil ledger`.

Notes
-----
Rows that do not overlap cannot be subtracted; only time steps with overlapping rows are searched. Volumes of different time
steps are of different trips. Where each trip is in one of several overlapping rows, or volumes have noise, differences mean
nothing.
"""

from __future__ import annotations

import numpy as np

from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams
from crowdveil.attacks.od.published import Published
from crowdveil.errors import counted
from crowdveil.model.arrays import Ints, Mask, slice_sums, take_slices
from crowdveil.model.release import FlowRelease

ONE_RELEASE = (
    "this attack uses one release only: subtracting another release of the same data, with another tree, k, budget or "
    "splits, reveals small flows and is the attack releases"
)
MAX_ROWS = 10_000
"""Rows searched of a time step with overlapping rows: the time grows with their square."""


def run(published: Published, params: FlowAttackParams) -> Exposure:
    """Return the smallest difference, and suppressed totals of one pair of tiles alone."""
    if published.row_semantics != "exact":
        reason = (
            "each trip is in one of several rows that overlap"
            if published.row_semantics == "overlapping"
            else "volumes have noise"
        )
        sentence = f"No rows can be subtracted, since {reason}; {ONE_RELEASE}."
        return Exposure(ATTACK.name, ATTACK.title, {}, None, False, sentence)
    release, k = published.release, published.threshold(params)
    crossed, large = _overlapping_steps(release), 0
    left = []
    for step in np.flatnonzero(crossed).tolist():
        rows = np.arange(release.offsets[step], release.offsets[step + 1])
        large += len(rows) > MAX_ROWS
        left += _differences(release, rows[:MAX_ROWS])
    small = sum(1 for rest in left if 0 < rest < k)
    totals = release.suppressed[release.suppressed > 0]
    few, one = int((totals < k).sum()), int((~crossed & (release.suppressed > 0) & (_pairs_left(release) == 1)).sum())
    worst = min([rest for rest in left if rest > 0] + totals.tolist(), default=None)
    values = {
        "steps_with_overlapping_rows": int(crossed.sum()),
        "differences": len(left),
        "smallest": worst,
        "differences_below_k": small,
        "suppressed_totals_below_k": few,
        "suppressed_totals_of_one_pair": one,
    }
    sentence = (
        f"{counted(len(left), 'difference')} found in {counted(int(crossed.sum()), 'time step')} with overlapping rows, "
        f"{small:,} below {k:,}; {counted(len(totals), 'suppressed total')} given, {few:,} below, {one:,} of one pair of tiles"
        + (f"; of {counted(large, 'time step')} with too many rows only some were checked" if large else "")
        + f"; {ONE_RELEASE}."
    )
    return Exposure(ATTACK.name, ATTACK.title, values, worst, small + few > 0, sentence)


def _overlapping_steps(release: FlowRelease) -> Mask:
    """Return the time steps (windows, where rows have intervals) in which a pair of tiles lies in two rows at a time."""
    from scipy.sparse import csr_array

    areas = release.areas
    shape = (len(areas), len(areas.zones))
    tiles_of = csr_array((np.ones(len(areas.tiles), np.int64), areas.tiles, areas.offsets), shape=shape)
    crossed = np.zeros(len(release.t), np.bool_)
    for step in range(len(release.t)):
        rows = np.arange(release.offsets[step], release.offsets[step + 1])
        origin, destination = tiles_of[release.origin[rows]], tiles_of[release.destination[rows]]
        common = (origin @ origin.T).multiply(destination @ destination.T).tocoo()
        first, last = _times(release, rows)
        one, other = common.row, common.col
        crossed[step] = np.any((one < other) & (first[one] < last[other]) & (first[other] < last[one]))
    return crossed


def _differences(release: FlowRelease, rows: Ints) -> list[int]:
    """Return each row minus one row inside it, and minus all rows inside it that do not overlap."""
    used, area = np.unique(np.concatenate([release.origin[rows], release.destination[rows]]), return_inverse=True)
    inside, disjoint = _between(release, used)
    o, d = area[: len(rows)], area[len(rows) :]
    size = release.areas.size[used]
    pairs, volume = size[o] * size[d] * release.steps_spanned[rows], release.volume[rows]
    first, last = _times(release, rows)
    left = []
    for i in range(len(rows)):
        within = inside[o, o[i]] & inside[d, d[i]] & (first >= first[i]) & (last <= last[i])
        within[i] = False
        inner = np.flatnonzero(
            within & ((pairs < pairs[i]) | (np.arange(len(rows)) > i))
        )  # of equal ones each pair once
        if len(inner):
            left += np.abs(volume[i] - volume[inner]).tolist()
            taken: list[int] = []
            for j in inner[np.argsort(-pairs[inner], kind="stable")].tolist():
                apart = (
                    disjoint[o[j], o[t]] or disjoint[d[j], d[t]] or first[j] >= last[t] or last[j] <= first[t]
                    for t in taken
                )  # fmt: skip
                if all(apart):
                    taken.append(j)
            if len(taken) > 1:
                left.append(abs(int(volume[i] - volume[taken].sum())))
    return left


def _times(release: FlowRelease, rows: Ints) -> tuple[Ints, Ints]:
    """Return the time steps of rows, half-open; those of one time step are all at the same."""
    if release.intervals is None:
        return np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64)
    return release.intervals.first[rows], release.intervals.last[rows]


def _between(release: FlowRelease, used: Ints) -> tuple[Mask, Mask]:
    """Return which of some areas lie inside which, and which have no tile in common."""
    from scipy.sparse import csr_array

    taken, offsets = take_slices(release.areas.offsets, used)
    tiles = release.areas.tiles[taken]
    contains = csr_array((np.ones(len(tiles), np.int64), tiles, offsets), shape=(len(used), len(release.areas.zones)))
    common = (contains @ contains.T).toarray()
    return common == np.diff(offsets)[:, None], common == 0


def _pairs_left(release: FlowRelease) -> Ints:
    """Count the pairs of tiles in no row of each time step, where rows do not overlap."""
    size = release.areas.size
    covered = slice_sums(release.offsets, size[release.origin] * size[release.destination] * release.steps_spanned)
    steps = 1 if release.intervals is None else np.diff(release.intervals.offsets)
    left: Ints = len(release.areas.zones) ** 2 * steps - covered
    return left


ATTACK = Attack("differencing", "smallest difference", takes=FlowRelease, params=FlowAttackParams, run=run)
