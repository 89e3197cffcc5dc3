"""Glove: greedy merging of flows below k, the pair that is cheapest to put into one box first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Floats, Ints, Mask
from crowdveil.kernels.growable import grow
from crowdveil.kernels.od.merged import NONE, find, merge_people, number_clusters
from crowdveil.kernels.od.pair_queue import earlier, pop, push
from crowdveil.kernels.od.structures import FlowNeighbors, StepFlows

DIMENSIONS = 4


class ClusterBoxes(NamedTuple):
    """The box of each cluster (least and largest of each dimension), the sum of its sides, and its trips."""

    box: Floats
    extent: Floats
    volume: Ints


class ClusterState(NamedTuple):
    """What clusters are made of: the cluster that each became part of, its flows as a linked list, whether it is below k."""

    parent: Ints
    first_flow: Ints
    next_flow: Ints
    small: Mask
    stamp: Ints


class FlowLists(NamedTuple):
    """The flows near each flow with their distances and the farthest of them; and those that it is near for."""

    start: Ints
    end: Ints
    near: Ints
    far: Floats
    radius: Floats
    by_start: Ints
    by_end: Ints
    by: Ints


class ClusterLinks(NamedTuple):
    """Neighbors of clusters that had none left, as linked lists."""

    head: Ints
    tail: Ints
    item: Ints
    following: Ints


@kernel
def _cost(boxes: ClusterBoxes, by_volume: bool, a: int, b: int) -> float:
    """Return the cost of merging two clusters: the extent of their common box, or how much a trip's box grows on average."""
    box, extent, volume = boxes
    common = 0.0
    for d in range(DIMENSIONS):
        common += max(box[a, DIMENSIONS + d], box[b, DIMENSIONS + d]) - min(box[a, d], box[b, d])
    if not by_volume:
        return common
    growth = volume[a] * (common - extent[a]) + volume[b] * (common - extent[b])
    return float(growth / max(volume[a] + volume[b], 1))  # weights may be rounded to nothing


@kernel
def _found_by(offsets: Ints, near: Ints, far: Floats) -> tuple[Ints, Ints]:
    """Return the flows that each flow is near for though they are not near for it, as offsets and flows.

    None of them is nearer than the last of its own; some that are as far as that one may be both.
    """
    n = len(offsets) - 1
    count = np.zeros(n + 1, np.int64)
    for e in range(len(near)):
        other = near[e]
        count[other + 1] += far[e] >= far[offsets[other + 1] - 1]
    by_offsets = np.cumsum(count)
    by, end = np.empty(by_offsets[-1], np.int64), by_offsets[:-1].copy()
    for i in range(n):
        for e in range(offsets[i], offsets[i + 1]):
            other = near[e]
            if far[e] >= far[offsets[other + 1] - 1]:
                by[end[other]] = i
                end[other] += 1
    return by_offsets, by


@kernel
def _link(mine: int, other: int, at: int, links: ClusterLinks) -> None:
    """Put a neighbor at the end of a list."""
    head, tail, item, following = links
    item[at], following[at] = other, NONE
    if head[mine] == NONE:
        head[mine] = at
    else:
        following[tail[mine]] = at
    tail[mine] = at


@kernel
def _better(
    mine: int, partner: int, lowest: float, other: int, boxes: ClusterBoxes, by_volume: bool
) -> tuple[int, float]:
    """Return the cheaper one of two to merge with, the earlier one if they cost the same, and its cost."""
    cost = _cost(boxes, by_volume, mine, other)
    if cost < lowest or (cost == lowest and earlier(mine, other, mine, partner)):
        return other, cost
    return partner, lowest


@kernel
def _best(
    mine: int,
    hint: int,
    boxes: ClusterBoxes,
    state: ClusterState,
    lists: FlowLists,
    links: ClusterLinks,
    join_any: bool,
    by_volume: bool,
    mark: int,
) -> tuple[int, float]:
    """Return the cheapest neighbor to merge with, NONE if there is none, and its cost; `hint` is one of them, or NONE.

    Neighbors that have become part of others are replaced by these; clusters that can never be merged with are removed from the
    list. A box around two is never smaller than the distance of their flows, so that a list is left at the first flow that is
    farther than the best; where the cost is a growth there is no such end.
    """
    parent, first_flow, next_flow, small, stamp = state
    start, end, near, far, radius, by_start, by_end, by = lists
    head, tail, item, following = links
    partner, lowest = NONE, np.inf
    join_all = join_any and small[mine]
    if hint != NONE and hint != mine and (join_all or small[hint]):
        partner, lowest = _better(mine, partner, lowest, hint, boxes, by_volume)
    flow = first_flow[mine]
    while flow != NONE:
        e, kept = start[flow], start[flow]
        while e < end[flow] and (by_volume or far[e] <= lowest):
            other = find(parent, near[e])
            if other != mine and (join_all or small[other]) and stamp[other] != mark:
                stamp[other] = mark
                near[kept], far[kept] = other, far[e]
                kept += 1
                partner, lowest = _better(mine, partner, lowest, other, boxes, by_volume)
            e += 1
        # Those that stay go to what was not looked at.
        gap = e - kept
        if gap > 0:
            for at in range(kept - 1, start[flow] - 1, -1):
                near[at + gap], far[at + gap] = near[at], far[at]
            start[flow] += gap
        if e == end[flow] and (by_volume or radius[flow] <= lowest):
            kept = by_start[flow]
            for e in range(by_start[flow], by_end[flow]):
                other = find(parent, by[e])
                if other != mine and (join_all or small[other]) and stamp[other] != mark:
                    stamp[other] = mark
                    by[kept] = other
                    kept += 1
                    partner, lowest = _better(mine, partner, lowest, other, boxes, by_volume)
            by_end[flow] = kept
        flow = next_flow[flow]
    before, link = NONE, head[mine]
    while link != NONE:
        other = find(parent, item[link])
        if other == mine or not (join_all or small[other]) or stamp[other] == mark:
            link = following[link]
            if before == NONE:
                head[mine] = link
            else:
                following[before] = link
            continue
        stamp[other] = mark
        item[link] = other
        partner, lowest = _better(mine, partner, lowest, other, boxes, by_volume)
        before, link = link, following[link]
    tail[mine] = before
    return partner, lowest


@kernel
def merge_flows(
    flows: StepFlows,
    neighbors: FlowNeighbors,
    more_near: int,
    k: int,
    budget: int,
    join_any: bool,
    by_volume: bool,
) -> tuple[Ints, int]:
    """Merge clusters of flows until those below k hold at most `budget` trips: the cluster of each flow, and their number.

    Flows of clusters below k are in none, -1. Of all pairs of neighbors, of which at lowest one (or both, unless
    `join_any`) is below k, the one with the least cost is merged; of those that cost the same the one with the
    earliest clusters, which are numbered as flows first and then in the order that they are made. Neighbors of a flow are
    its nearest and those that it is one of the nearest for; those of a cluster are those of its flows. A cluster below k
    without neighbors left gets the `more_near` cheapest of all clusters as neighbors. The last one below k, if the budget
    is not kept without it, joins the cheapest of all.

    The queue has one pair for each cluster, the best when it was last searched. A pair is known to both of its
    clusters, and so to the one that is made later: a queued pair is the best one of its cluster and all others that were
    there, even if a part of it is gone; only then is it searched again.
    """
    place, flow_volume, flow_crowd, member_offsets, member = flows
    near_offsets, nearest, how_far = neighbors
    n = len(flow_volume)
    most, with_people = 2 * n, len(member) > 0
    box, extent = np.empty((most, 2 * DIMENSIONS)), np.zeros(most)
    volume, crowd = np.zeros(most, np.int64), np.zeros(most, np.int64)
    small, alive, parent = np.zeros(most, np.bool_), np.zeros(most, np.bool_), np.arange(most)
    first_flow, last_flow, next_flow = np.arange(most), np.arange(most), np.full(n, NONE, np.int64)
    near, far, start, end = nearest.copy(), how_far.copy(), near_offsets[:-1].copy(), near_offsets[1:]
    by_offsets, by = _found_by(near_offsets, near, far)
    by_start, by_end, radius = by_offsets[:-1], by_offsets[1:].copy(), np.zeros(n)
    lists = FlowLists(start, end, near, far, radius, by_start, by_end, by)
    head, tail, stamp = np.full(most, NONE, np.int64), np.full(most, NONE, np.int64), np.full(most, NONE, np.int64)
    links, linked = ClusterLinks(head, tail, np.empty(1024, np.int64), np.empty(1024, np.int64)), 0
    boxes, state = ClusterBoxes(box, extent, volume), ClusterState(parent, first_flow, next_flow, small, stamp)
    member_at, member_length = np.zeros(most, np.int64), np.zeros(most, np.int64)
    members, member_end = np.empty(2 * len(member) + 1, np.int64), len(member)
    members[: len(member)] = member
    costs, owners, partner, queued = np.empty(most), np.empty(most, np.int64), np.full(most, NONE, np.int64), 0
    living, candidate = np.arange(most), np.empty(most)
    count, mark, too_small = n, 0, 0
    for i in range(n):
        box[i, :DIMENSIONS], box[i, DIMENSIONS:] = place[i], place[i]
        volume[i], crowd[i], alive[i] = flow_volume[i], flow_crowd[i], True
        small[i] = crowd[i] < k
        too_small += volume[i] * small[i]
        if end[i] > start[i]:
            radius[i] = far[end[i] - 1]
        if with_people:
            member_at[i], member_length[i] = member_offsets[i], member_offsets[i + 1] - member_offsets[i]
    looking, n_living = 0, n
    while too_small > budget:
        end_if_stopped()
        # Which two to merge; or, with `mine`, whose best pair to look for.
        mine, a, b, hint = NONE, NONE, NONE, NONE
        if looking < n:
            mine = looking
            looking += 1
        elif queued > 0:
            a = owners[0]
            b = partner[a]
            queued = pop(costs, owners, partner, queued)
            if not alive[a]:
                continue
            if not alive[b]:
                mine, hint = a, find(parent, b)
        else:
            # One cluster below k is left alone.
            a = 0
            while not (alive[a] and small[a]):
                a += 1
            lowest = np.inf
            for c in range(count):
                if alive[c] and c != a:
                    here = _cost(boxes, by_volume, a, c)
                    if here < lowest:
                        b, lowest = c, here
        if mine == NONE:
            new = count
            count += 1
            for d in range(DIMENSIONS):
                box[new, d] = min(box[a, d], box[b, d])
                box[new, DIMENSIONS + d] = max(box[a, DIMENSIONS + d], box[b, DIMENSIONS + d])
                extent[new] += box[new, DIMENSIONS + d] - box[new, d]
            volume[new], crowd[new] = volume[a] + volume[b], crowd[a] + crowd[b]
            if with_people and small[a] and small[b]:
                members = grow(members, member_end + member_length[a] + member_length[b])
                member_at[new] = member_end
                crowd[new] = merge_people(members, member_at, member_length, a, b, member_end)
                member_length[new] = crowd[new]
                member_end += crowd[new]
            elif with_people:
                crowd[new] = k  # at lowest; who they are matters no more
            small[new] = crowd[new] < k
            too_small -= volume[a] * small[a] + volume[b] * small[b] - volume[new] * small[new]
            parent[a], parent[b] = new, new
            alive[a], alive[b], alive[new] = False, False, True
            first_flow[new], last_flow[new], next_flow[last_flow[a]] = first_flow[a], last_flow[b], first_flow[b]
            head[new], tail[new] = head[a], tail[a]
            if head[a] == NONE:
                head[new], tail[new] = head[b], tail[b]
            elif head[b] != NONE:
                links.following[tail[a]] = head[b]
                tail[new] = tail[b]
            living[n_living] = new
            n_living += 1
            mine = new
            if partner[b] != NONE:
                hint = find(parent, partner[b])
        if not small[mine] and not join_any:
            continue
        mark += 1
        partner[mine], lowest = _best(mine, hint, boxes, state, lists, links, join_any, by_volume, mark)
        if partner[mine] == NONE and small[mine]:
            # Search among all that are left, and remove those that are gone.
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
                    candidate[i] = _cost(boxes, by_volume, mine, living[i])
                    others += 1
            if others > 0:
                enough = np.partition(candidate[:n_living], min(more_near, others) - 1)[min(more_near, others) - 1]
                lowest = np.inf
                for i in range(n_living):
                    if candidate[i] > enough:
                        continue
                    item, following = grow(links.item, linked + 2), grow(links.following, linked + 2)
                    links = ClusterLinks(head, tail, item, following)
                    _link(mine, living[i], linked, links)
                    _link(living[i], mine, linked + 1, links)
                    linked += 2
                    tie = candidate[i] == lowest and earlier(mine, living[i], mine, partner[mine])
                    if candidate[i] < lowest or tie:
                        partner[mine], lowest = living[i], candidate[i]
        if partner[mine] != NONE:
            queued = push(costs, owners, partner, queued, lowest, mine)
    return number_clusters(parent, crowd, n, k)
