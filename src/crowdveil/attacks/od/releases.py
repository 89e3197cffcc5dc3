"""Subtract two or more releases of the same trips from one another (differencing over several releases).

The adversary has the published files of several releases of the same trips, and nothing else. Rows are sets of origin tiles,
destination tiles and times. For each two releases the adversary derives:
sets below k: rows of one release minus rows of the other one that lie inside them, with a volume below k;
bounds: the smallest and the largest volume of each overlap of two rows that the published volumes allow;
recovered overlaps: those whose bounds are equal, so that their volume of 1 to k - 1 is known exactly;
recovered flows: recovered overlaps of one pair of tiles and one time step.

Published suppressed totals are rows too. Of three or more releases every two are compared; what only
all of them reveal together is not looked for.

Notes
-----
The sets are minimum cuts, and complete: an overlap is in a derivable set below k if and only if its largest volume is below k. A
release without times is taken to cover the period of the others. Releases with noise, or with rows that overlap, cannot be
subtracted; neither can releases of different trips, which the attack notices where their volumes contradict each other.
`crowdveil ledger` audits a new release before it is published, with the trips themselves.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import NamedTuple

import numpy as np

from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams
from crowdveil.attacks.od.published import Published
from crowdveil.attacks.od.release_overlaps import ReleaseOverlaps, TimedRows, period_of, release_overlaps
from crowdveil.errors import counted
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.flows import Flows
from crowdveil.solve.od.derivable_sets import Overlaps, PairCuts

MAX_TOTAL = 2**30
"""Most trips of all rows of two releases that are compared: scipy counts them in 32 bits."""


def feasible_table(overlaps: Overlaps, first: Ints, second: Ints) -> Ints | None:
    """Return a volume for each overlap so that the rows of both partitions have their volumes; None if there is none.

    Overlaps with row -1 take any volume. The table is a maximum flow from the first rows to the second ones. What is not
    published is one more node, which may take and give as much as all rows have.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    total = int(first.sum() + second.sum())
    n, m = overlaps.rows
    outside, source, sink = n + m, n + m + 1, n + m + 2
    tail = np.where(overlaps.first >= 0, overlaps.first, outside)
    head = np.where(overlaps.second >= 0, n + overlaps.second, outside)
    rows = np.concatenate([tail, np.full(n, source), np.arange(n, n + m), [source, outside]])
    columns = np.concatenate([head, np.arange(n), np.full(m, sink), [outside, sink]])
    unlimited = np.full(len(tail), max(total, 1))
    capacity = np.concatenate([unlimited, first, second, [second.sum(), first.sum()]]).astype(np.int32)
    graph = csr_array((capacity, (rows.astype(np.int32), columns.astype(np.int32))), shape=(n + m + 3, n + m + 3))
    found = maximum_flow(graph, source, sink)
    if found.flow_value < total:
        return None
    flow = found.flow.tocsr()
    values: Ints = np.asarray(flow[tail, head], np.int64).ravel()
    return values


class PublishedReleases(NamedTuple):
    """Releases of the same trips over the same zones, by name; and the original, to count what was recovered of it."""

    names: tuple[str, ...]
    releases: tuple[Published, ...]
    original: Flows | None = None

    def threshold(self, params: FlowAttackParams) -> int:
        """Return the group size that counts are compared with: the smallest of the releases."""
        return min(one.threshold(params) for one in self.releases)


class Recovery(NamedTuple):
    """The result of an attack on two releases together.

    Attributes
    ----------
    found
        The overlaps of their rows.
    cuts
        The smallest derivable set of each overlap.
    leaking
        The overlaps with a largest volume of 1 to k - 1.
    lowest, highest
        The bounds of their volumes.
    """

    found: ReleaseOverlaps
    cuts: PairCuts
    leaking: Ints
    lowest: Ints
    highest: Ints


def recover(first: TimedRows, second: TimedRows, k: int) -> Recovery | None:
    """Return what two releases reveal together; None where their volumes contradict each other."""
    found = release_overlaps(first, second)
    table = feasible_table(found.overlaps, first.volume, second.volume)
    if table is None:
        return None
    # Every table with the published volumes has the same cuts of rows.
    cuts = PairCuts(found.overlaps, table, np.full(len(table), k))
    leaking = cuts.leaking()
    leaking = leaking[cuts.smallest[leaking] >= 1]
    return Recovery(found, cuts, leaking, cuts.lowest(leaking, table), cuts.smallest[leaking])


def run(published: PublishedReleases, params: FlowAttackParams) -> Exposure:
    """Derive what each two releases reveal together."""
    exact = [i for i, one in enumerate(published.releases) if one.row_semantics == "exact"]
    period = period_of([published.releases[i].release for i in exact])
    rows = {i: TimedRows.of(published.releases[i].release, period) for i in exact}
    k = published.threshold(params)
    names = ("overlaps", "overlaps_in_sets_below_k", "overlaps_bounded_within_1_to_k", "overlaps_recovered",
             "flows_recovered", "pairs_that_contradict", "pairs_too_large")  # fmt: skip
    found = Counter(dict.fromkeys(names, 0))
    worst: tuple[int, str] | None = None
    for a, b in combinations(exact, 2):
        if rows[a].volume.sum() + rows[b].volume.sum() > MAX_TOTAL:
            found.update(pairs_too_large=1)
            continue
        recovered = recover(rows[a], rows[b], k)
        if recovered is None:
            found.update(pairs_that_contradict=1)
            continue
        known = recovered.lowest == recovered.highest
        found.update(
            overlaps=len(recovered.found.cells), overlaps_in_sets_below_k=len(recovered.leaking),
            overlaps_bounded_within_1_to_k=int((recovered.lowest >= 1).sum()), overlaps_recovered=int(known.sum()),
            flows_recovered=_single_flows(recovered, known, rows[a], rows[b]),
        )  # fmt: skip
        if len(recovered.leaking) and (worst is None or recovered.highest.min() < worst[0]):
            worst = int(recovered.highest.min()), _subtraction(recovered, (published.names[a], published.names[b]))
    values: dict[str, float | int | None] = {**found}
    values["smallest"] = None if worst is None else worst[0]
    if published.original is not None:
        small = (published.original.volume >= 1) & (published.original.volume < k)
        values["original_flows_below_k"] = int(small.sum())
        values["original_flows_recovered_percent"] = round(100 * found["flows_recovered"] / max(int(small.sum()), 1), 2)
    sentence, smallest = _sentence(published, values, worst, k), None if worst is None else worst[0]
    return Exposure(ATTACK.name, ATTACK.title, values, smallest, worst is not None, sentence)


def _single_flows(recovered: Recovery, known: Mask, first: TimedRows, second: TimedRows) -> int:
    """Count the recovered overlaps of one pair of tiles in the shorter of the two rows' times."""
    chosen = recovered.leaking[known]
    shortest = np.full(len(chosen), np.iinfo(np.int64).max)
    for side, row in (
        (first, recovered.found.overlaps.first[chosen]),
        (second, recovered.found.overlaps.second[chosen]),
    ):
        listed = np.flatnonzero((row >= 0) & (row < len(side.start)))  # totals are of all tiles
        seconds = side.end[row[listed]] - side.start[row[listed]]
        shortest[listed] = np.minimum(shortest[listed], seconds)
    return int(np.count_nonzero(recovered.found.cells[chosen] == shortest))


def _subtraction(recovered: Recovery, names: tuple[str, str]) -> str:
    """Return the derivation of the smallest set in words."""
    sets = recovered.cuts.sets(recovered.leaking[[int(recovered.highest.argmin())]])
    added, subtracted = sets.rows_of(0)
    one, other = (names[1], names[0]) if sets.second[0] else names
    return f"{counted(len(added), 'row')} of {one} minus {counted(len(subtracted), 'row')} of {other}"


def _sentence(
    published: PublishedReleases, values: dict[str, float | int | None], worst: tuple[int, str] | None, k: int
) -> str:
    if sum(one.row_semantics == "exact" for one in published.releases) < 2:
        return "No two releases can be subtracted: volumes have noise, or each trip is in one of several rows."
    sentence = f"{counted(int(values['overlaps'] or 0), 'overlap')} of rows checked; "
    if worst is None:
        sentence += f"no set below {k:,} can be derived from two of the releases"
    else:
        sentence += (
            f"{values['overlaps_in_sets_below_k']:,} are in sets below {k:,} that can be derived, "
            f"{values['overlaps_recovered']:,} are recovered exactly; the smallest set has "
            f"{counted(worst[0], 'trip')}: {worst[1]}"
        )
    contradicting = int(values["pairs_that_contradict"] or 0)
    if contradicting:
        sentence += (
            f"; volumes of {counted(contradicting, 'pair')} of releases contradict each other: not of the same trips"
        )
    large = int(values["pairs_too_large"] or 0)
    if large:
        sentence += f"; {counted(large, 'pair')} of releases not compared, with more than {MAX_TOTAL:,} trips"
    return sentence + "."


ATTACK = Attack("releases", "difference of releases", takes=PublishedReleases, params=FlowAttackParams, run=run)
