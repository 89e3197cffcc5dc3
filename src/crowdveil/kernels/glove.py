"""Greedy merging of flows that do not reach k, the two that are cheapest to put into one box first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

DIMENSIONS = 4
NONE = -1


@kernel
def _room(array: Ints, needed: int) -> Ints:
    """The array, or a copy of twice the size if it is too small. (A kernel and its helpers stay in one file.)"""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), np.int64)
    larger[: len(array)] = array
    return larger


@kernel
def _cost(low: Floats, high: Floats, extent: Floats, volume: Ints, by_volume: bool, a: int, b: int) -> float:
    """What it costs to merge two clusters: the extent of their common box, or how much a trip's box grows on average."""
    common = 0.0
    for d in range(DIMENSIONS):
        common += max(high[a, d], high[b, d]) - min(low[a, d], low[b, d])
    if not by_volume:
        return common
    growth = volume[a] * (common - extent[a]) + volume[b] * (common - extent[b])
    return float(growth / (volume[a] + volume[b]))


@kernel
def _find(parent: Ints, item: int) -> int:
    """The cluster that an earlier one has become part of."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


@kernel
def _before(cost: Floats, first: Ints, second: Ints, i: int, j: int) -> bool:
    """Whether entry i of the queue comes before entry j: cheaper, or of the same cost and of earlier clusters."""
    if cost[i] != cost[j]:
        return bool(cost[i] < cost[j])
    if first[i] != first[j]:
        return bool(first[i] < first[j])
    return bool(second[i] < second[j])


@kernel
def _swap(cost: Floats, first: Ints, second: Ints, owner: Ints, i: int, j: int) -> None:
    cost[i], cost[j] = cost[j], cost[i]
    first[i], first[j] = first[j], first[i]
    second[i], second[j] = second[j], second[i]
    owner[i], owner[j] = owner[j], owner[i]


@kernel
def _push(
    cost: Floats, first: Ints, second: Ints, owner: Ints, size: int, new_cost: float, mine: int, partner: int
) -> int:
    """Put the best pair of a cluster into the queue, and return its new size."""
    i = size
    cost[i], first[i], second[i], owner[i] = new_cost, min(mine, partner), max(mine, partner), mine
    while i > 0 and _before(cost, first, second, i, (i - 1) // 2):
        _swap(cost, first, second, owner, i, (i - 1) // 2)
        i = (i - 1) // 2
    return size + 1


@kernel
def _pop(cost: Floats, first: Ints, second: Ints, owner: Ints, size: int) -> int:
    """Move the first entry behind the others, and return the new size."""
    size -= 1
    _swap(cost, first, second, owner, 0, size)
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _before(cost, first, second, child + 1, child):
            child += 1
        if not _before(cost, first, second, child, i):
            break
        _swap(cost, first, second, owner, i, child)
        i = child
    return size


@kernel
def _best(
    mine: int,
    parent: Ints,
    head: Ints,
    tail: Ints,
    item: Ints,
    following: Ints,
    small: Bools,
    join_any: bool,
    low: Floats,
    high: Floats,
    extent: Floats,
    volume: Ints,
    by_volume: bool,
    stamp: Ints,
    mark: int,
) -> tuple[int, float]:
    """The cheapest neighbour to merge with, NONE if there is none, and its cost.

    Neighbours that have become part of others are taken for these; what can never be merged with is struck off the list.
    """
    partner, least = NONE, np.inf
    before, link = NONE, head[mine]
    while link != NONE:
        other = _find(parent, item[link])
        fits = small[other] if not join_any else small[mine] or small[other]
        if other == mine or not fits or stamp[other] == mark:
            link = following[link]
            if before == NONE:
                head[mine] = link
            else:
                following[before] = link
            continue
        stamp[other] = mark
        item[link] = other
        cost = _cost(low, high, extent, volume, by_volume, mine, other)
        if cost < least or (cost == least and _earlier(mine, other, partner)):
            partner, least = other, cost
        before, link = link, following[link]
    tail[mine] = before
    return partner, least


@kernel
def _earlier(mine: int, a: int, b: int) -> bool:
    """Whether the pair with a comes before the pair with b where both cost the same."""
    if min(mine, a) != min(mine, b):
        return min(mine, a) < min(mine, b)
    return max(mine, a) < max(mine, b)


@kernel
def _link(mine: int, other: int, at: int, head: Ints, tail: Ints, item: Ints, following: Ints) -> None:
    """Put a neighbour at the end of a list."""
    item[at], following[at] = other, NONE
    if head[mine] == NONE:
        head[mine] = at
    else:
        following[tail[mine]] = at
    tail[mine] = at


@kernel
def _together(members: Ints, at: Ints, length: Ints, a: int, b: int, end: int) -> int:
    """Write the different people of two sorted lists behind `end`, and return how many they are."""
    i, j, n = at[a], at[b], 0
    i_end, j_end = at[a] + length[a], at[b] + length[b]
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and members[i] < members[j]):
            members[end + n] = members[i]
            i += 1
        else:
            if i < i_end and members[i] == members[j]:
                i += 1
            members[end + n] = members[j]
            j += 1
        n += 1
    return n


@kernel
def merge_flows(
    place: Floats,
    flow_volume: Ints,
    flow_crowd: Ints,
    member_offsets: Ints,
    member: Ints,
    near_offsets: Ints,
    near: Ints,
    more_near: int,
    k: int,
    budget: int,
    join_any: bool,
    by_volume: bool,
) -> tuple[Ints, int]:
    """Merge clusters of flows until those below k hold at most `budget` trips: the cluster of each flow, and their number.

    Flows of clusters below k are in none, -1. Of all pairs of neighbours, of which at least one (or both, unless
    `join_any`) is below k, the one with the least cost is merged; of those that cost the same the one with the
    earliest clusters, which are numbered as flows first and then in the order that they are made. Their neighbours are
    those of both. A cluster below k without neighbours left gets the `more_near` cheapest of all clusters as neighbours.
    The last one below k, if the budget is not kept without it, joins the cheapest of all.

    The queue has one pair for each cluster, the best when it was last looked at. A pair is on the lists of both of its
    clusters, so that it is known to the one that is made later: a queued pair is the best one of its cluster and all
    others that were there, even if a part of it is gone; only then must be looked anew.

    Parameters
    ----------
    place, flow_volume, flow_crowd
        The four dimensions, trips and crowd of each flow.
    member_offsets, member
        Who is behind each flow, rising; empty where crowds add up.
    near_offsets, near
        Neighbours of each flow; each is one of theirs.
    """
    n = len(flow_volume)
    most, with_people = 2 * n, len(member) > 0
    low, high, extent = np.empty((most, DIMENSIONS)), np.empty((most, DIMENSIONS)), np.zeros(most)
    volume, crowd = np.zeros(most, np.int64), np.zeros(most, np.int64)
    small, alive, parent = np.zeros(most, np.bool_), np.zeros(most, np.bool_), np.arange(most)
    head, tail, stamp = np.full(most, NONE, np.int64), np.full(most, NONE, np.int64), np.full(most, NONE, np.int64)
    item, following = np.empty(len(near) + 1024, np.int64), np.empty(len(near) + 1024, np.int64)
    member_at, member_length = np.zeros(most, np.int64), np.zeros(most, np.int64)
    members, member_end = np.empty(2 * len(member) + 1, np.int64), len(member)
    members[: len(member)] = member
    cost, owner = np.empty(most), np.empty(most, np.int64)
    first, second, queued = np.empty(most, np.int64), np.empty(most, np.int64), 0
    living, candidate = np.arange(most), np.empty(most)
    count, links, mark, too_small = n, 0, 0, 0
    for i in range(n):
        low[i], high[i] = place[i], place[i]
        volume[i], crowd[i], alive[i] = flow_volume[i], flow_crowd[i], True
        small[i] = crowd[i] < k
        too_small += volume[i] * small[i]
        if with_people:
            member_at[i], member_length[i] = member_offsets[i], member_offsets[i + 1] - member_offsets[i]
        for e in range(near_offsets[i], near_offsets[i + 1]):
            _link(i, near[e], links, head, tail, item, following)
            links += 1
    looking, n_living = 0, n
    while too_small > budget:
        # Which two to merge; or, with `mine`, whose best pair to look for.
        mine, a, b = NONE, NONE, NONE
        if looking < n:
            mine = looking
            looking += 1
        elif queued > 0:
            queued = _pop(cost, first, second, owner, queued)
            a, b = first[queued], second[queued]
            if not (alive[a] and alive[b]):
                mine = owner[queued]
                if not alive[mine]:
                    continue
        else:
            # One cluster below k is left alone.
            a = 0
            while not (alive[a] and small[a]):
                a += 1
            least = np.inf
            for c in range(count):
                if alive[c] and c != a:
                    here = _cost(low, high, extent, volume, by_volume, a, c)
                    if here < least:
                        b, least = c, here
        if mine == NONE:
            new = count
            count += 1
            for d in range(DIMENSIONS):
                low[new, d], high[new, d] = min(low[a, d], low[b, d]), max(high[a, d], high[b, d])
                extent[new] += high[new, d] - low[new, d]
            volume[new], crowd[new] = volume[a] + volume[b], crowd[a] + crowd[b]
            if with_people and small[a] and small[b]:
                members = _room(members, member_end + member_length[a] + member_length[b])
                member_at[new] = member_end
                crowd[new] = _together(members, member_at, member_length, a, b, member_end)
                member_length[new] = crowd[new]
                member_end += crowd[new]
            elif with_people:
                crowd[new] = k  # at least; who they are matters no more
            small[new] = crowd[new] < k
            too_small -= volume[a] * small[a] + volume[b] * small[b] - volume[new] * small[new]
            parent[a], parent[b] = new, new
            alive[a], alive[b], alive[new] = False, False, True
            head[new], tail[new] = head[a], tail[a]
            if head[a] == NONE:
                head[new], tail[new] = head[b], tail[b]
            elif head[b] != NONE:
                following[tail[a]] = head[b]
                tail[new] = tail[b]
            living[n_living] = new
            n_living += 1
            mine = new
        if not small[mine] and not join_any:
            continue
        mark += 1
        partner, least = _best(
            mine, parent, head, tail, item, following, small, join_any, low, high, extent, volume, by_volume, stamp,
            mark,
        )  # fmt: skip
        if partner == NONE and small[mine]:
            # Look among all that are left, and strike those that are gone.
            kept, others = 0, 0
            for i in range(n_living):
                c = living[i]
                if alive[c] and (small[c] or join_any):
                    living[kept] = c
                    kept += 1
            n_living = kept
            for i in range(n_living):
                candidate[i] = np.inf
                if living[i] != mine:
                    candidate[i] = _cost(low, high, extent, volume, by_volume, mine, living[i])
                    others += 1
            if others > 0:
                enough = np.partition(candidate[:n_living], min(more_near, others) - 1)[min(more_near, others) - 1]
                for i in range(n_living):
                    if candidate[i] <= enough:
                        item, following = _room(item, links + 2), _room(following, links + 2)
                        _link(mine, living[i], links, head, tail, item, following)
                        _link(living[i], mine, links + 1, head, tail, item, following)
                        links += 2
                mark += 1
                partner, least = _best(
                    mine, parent, head, tail, item, following, small, join_any, low, high, extent, volume, by_volume,
                    stamp, mark,
                )  # fmt: skip
        if partner != NONE:
            queued = _push(cost, first, second, owner, queued, least, mine, partner)
    label, number, clusters = np.full(n, NONE, np.int64), np.full(most, NONE, np.int64), 0
    for i in range(n):
        c = _find(parent, i)
        if not small[c]:
            if number[c] == NONE:
                number[c] = clusters
                clusters += 1
            label[i] = number[c]
    return label, clusters


@kernel
def lowest_cut(
    merges: Ints, flow_volume: Ints, flow_crowd: Ints, member_offsets: Ints, member: Ints, k: int, budget: int
) -> tuple[Ints, int]:
    """Do merges in order until clusters below k hold at most `budget` trips: the cluster of each flow, and their number.

    Flows of clusters below k are in none, -1. What is below k falls with every merge, so that this is the lowest such cut.

    Parameters
    ----------
    merges
        The two clusters of each merge; flows come first, and merge i makes cluster i + the number of flows.
    flow_volume, flow_crowd, member_offsets, member
        As in `merge_flows`.
    """
    n = len(flow_volume)
    most = n + len(merges)
    volume, crowd, parent = np.zeros(most, np.int64), np.zeros(most, np.int64), np.arange(most)
    at, length = np.zeros(most, np.int64), np.zeros(most, np.int64)
    people, end, too_small = np.empty(2 * len(member) + 1, np.int64), len(member), 0
    people[: len(member)] = member
    for i in range(n):
        volume[i], crowd[i] = flow_volume[i], flow_crowd[i]
        too_small += volume[i] * (crowd[i] < k)
        if len(member) > 0:
            at[i], length[i] = member_offsets[i], member_offsets[i + 1] - member_offsets[i]
    done = 0
    while too_small > budget and done < len(merges):
        a, b, new = merges[done, 0], merges[done, 1], n + done
        done += 1
        parent[a], parent[b] = new, new
        volume[new], crowd[new] = volume[a] + volume[b], crowd[a] + crowd[b]
        if len(member) > 0 and max(crowd[a], crowd[b]) < k:
            people = _room(people, end + length[a] + length[b])
            at[new] = end
            crowd[new] = _together(people, at, length, a, b, end)
            length[new] = crowd[new]
            end += crowd[new]
        too_small -= volume[a] * (crowd[a] < k) + volume[b] * (crowd[b] < k) - volume[new] * (crowd[new] < k)
    label, number, clusters = np.full(n, NONE, np.int64), np.full(most, NONE, np.int64), 0
    for i in range(n):
        c = _find(parent, i)
        if crowd[c] >= k:
            if number[c] == NONE:
                number[c] = clusters
                clusters += 1
            label[i] = number[c]
    return label, clusters
