"""The boxes of a matrix over two trees: pairs of nodes that hold a crowd, and the ways that each can be split in.

A box (a, b) exists if its crowd is at least k. Boxes that a box can be split into come before it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel

Ints = npt.NDArray[np.int64]

BY_DESTINATION, BY_ORIGIN = 2, 4


@kernel
def _room(array: Ints, needed: int) -> Ints:
    """The array, or a copy of twice the size if it is too small."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), np.int64)
    for i in range(len(array)):
        larger[i] = array[i]
    return larger


@kernel
def _merge(leaf: Ints, volume: Ints, crowd: Ints, low: int, middle: int, high: int) -> int:
    """Merge two sorted lists of destination leaves that lie one after the other; returns the new end."""
    n = high - low
    leaves = np.empty(n, np.int64)
    volumes = np.empty(n, np.int64)
    crowds = np.empty(n, np.int64)
    i, j, at = low, middle, 0
    while i < middle or j < high:
        if j >= high or (i < middle and leaf[i] <= leaf[j]):
            take = i
            i += 1
        else:
            take = j
            j += 1
        if at > 0 and leaves[at - 1] == leaf[take]:
            volumes[at - 1] += volume[take]
            crowds[at - 1] += crowd[take]
        else:
            leaves[at] = leaf[take]
            volumes[at] = volume[take]
            crowds[at] = crowd[take]
            at += 1
    for x in range(at):
        leaf[low + x] = leaves[x]
        volume[low + x] = volumes[x]
        crowd[low + x] = crowds[x]
    return low + at


@kernel
def _merge_people(person: Ints, leaf: Ints, low: int, middle: int, high: int) -> int:
    """Merge two lists of (person, leaf) that lie one after the other, each pair once; returns the new end."""
    people = np.empty(high - low, np.int64)
    leaves = np.empty(high - low, np.int64)
    i, j, at = low, middle, 0
    while i < middle or j < high:
        first = j >= high
        if not first and i < middle:
            first = person[i] < person[j] or (person[i] == person[j] and leaf[i] <= leaf[j])
        if first:
            take = i
            i += 1
        else:
            take = j
            j += 1
        if at == 0 or people[at - 1] != person[take] or leaves[at - 1] != leaf[take]:
            people[at] = person[take]
            leaves[at] = leaf[take]
            at += 1
    for x in range(at):
        person[low + x] = people[x]
        leaf[low + x] = leaves[x]
    return low + at


@kernel
def _count_people(
    person: Ints, leaf: Ints, low: int, high: int, leaf_node: Ints, parent: Ints, first: Ints, last: Ints, count: Ints
) -> None:
    """Add the number of different people to every node above their leaves.

    People come in order, each with rising leaves: from a leaf, one is added on the way up until a node is reached that
    holds the person's leaf before, and so has counted them already.
    """
    for i in range(low, high):
        again = i > low and person[i] == person[i - 1]
        node = leaf_node[leaf[i]]
        while node >= 0 and not (again and first[node] <= leaf[i - 1] < last[node]):
            count[node] += 1
            node = parent[node]


@kernel
def build_boxes(
    row_offsets: Ints,
    leaf: Ints,
    volume: Ints,
    crowd: Ints,
    member_offsets: Ints,
    member: Ints,
    o_child_offsets: Ints,
    o_children: Ints,
    o_first: Ints,
    d_parent: Ints,
    d_first: Ints,
    d_last: Ints,
    d_leaf_node: Ints,
    d_child_offsets: Ints,
    d_children: Ints,
    k: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    """All boxes of a matrix with a crowd of at least k.

    Parameters
    ----------
    row_offsets
        The rows of origin leaf i are row_offsets[i] to row_offsets[i + 1].
    leaf, volume, crowd
        Destination leaf of each row (rising inside an origin), its trips, and its crowd where crowds add up.
    member_offsets, member
        The people of each row, rising; empty where people are not known, and then `crowd` is taken.
    o_*, d_*
        The trees of origins and of destinations, in post-order.

    Returns
    -------
    origin node, destination node, volume, crowd of each box; the offsets of the ways that it can be split in; of each way its
    kind (by destination or by origin), the volume that it gives up, and the offsets of the boxes that it leaves; and these.
    Boxes that a box can be split into come before it.
    """
    with_people = len(member_offsets) > 1
    origins, rows = len(o_first), len(leaf)
    ent_leaf, ent_volume, ent_crowd = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64)
    pairs = len(member)
    pair_person, pair_leaf = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    list_start, people_start = np.empty(origins + 1, np.int64), np.empty(origins + 1, np.int64)
    lists, top, people_top = 0, 0, 0
    sum_volume, sum_crowd = np.zeros(len(d_parent), np.int64), np.zeros(len(d_parent), np.int64)
    where = np.full(len(d_parent), -1, np.int64)
    box_start, box_end = np.zeros(origins, np.int64), np.zeros(origins, np.int64)
    room = max(16, rows)
    box_o, box_d, box_v = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    box_u, way_off = np.empty(room, np.int64), np.zeros(room + 1, np.int64)
    way_kind, way_lost, link_off = np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(room + 1, np.int64)
    link = np.empty(room, np.int64)
    boxes, ways, links = 0, 0, 0
    most_children = 0
    for a in range(origins):
        most_children = max(most_children, o_child_offsets[a + 1] - o_child_offsets[a])
    pointer = np.zeros(most_children + 1, np.int64)

    for a in range(origins):
        children = o_child_offsets[a + 1] - o_child_offsets[a]
        if children == 0:
            # A leaf: its rows come as they are.
            place = o_first[a]
            list_start[lists], people_start[lists] = top, people_top
            people_from = people_top
            for row in range(row_offsets[place], row_offsets[place + 1]):
                ent_leaf[top], ent_volume[top], ent_crowd[top] = leaf[row], volume[row], crowd[row]
                top += 1
                if with_people:
                    for m in range(member_offsets[row], member_offsets[row + 1]):
                        pair_person[people_top], pair_leaf[people_top] = member[m], leaf[row]
                        people_top += 1
                    if people_from < people_top and row > row_offsets[place]:
                        middle = people_top - (member_offsets[row + 1] - member_offsets[row])
                        people_top = _merge_people(pair_person, pair_leaf, people_from, middle, people_top)
            lists += 1
        else:
            # The lists of its children lie on top of the stack, one after the other.
            lists -= children
            low, people_low = list_start[lists], people_start[lists]
            new_top, new_people_top = low, people_low
            for c in range(children):
                begin = list_start[lists + c]
                end = list_start[lists + c + 1] if c + 1 < children else top
                n = end - begin
                for x in range(n):  # never backwards: lists only shrink when they are merged
                    ent_leaf[new_top + x] = ent_leaf[begin + x]
                    ent_volume[new_top + x] = ent_volume[begin + x]
                    ent_crowd[new_top + x] = ent_crowd[begin + x]
                new_top = _merge(ent_leaf, ent_volume, ent_crowd, low, new_top, new_top + n)
                if with_people:
                    begin = people_start[lists + c]
                    end = people_start[lists + c + 1] if c + 1 < children else people_top
                    n = end - begin
                    for x in range(n):
                        pair_person[new_people_top + x] = pair_person[begin + x]
                        pair_leaf[new_people_top + x] = pair_leaf[begin + x]
                    new_people_top = _merge_people(
                        pair_person, pair_leaf, people_low, new_people_top, new_people_top + n
                    )
            top, people_top = new_top, new_people_top
            lists += 1
        low, people_low = list_start[lists - 1], people_start[lists - 1]
        box_start[a] = boxes
        if with_people:
            _count_people(
                pair_person, pair_leaf, people_low, people_top, d_leaf_node, d_parent, d_first, d_last, sum_crowd
            )
        for c in range(children):
            pointer[c] = box_start[o_children[o_child_offsets[a] + c]]
        # Walk the leaves in order: a node is complete when the next leaf lies outside it, which is post-order.
        for i in range(low, top):
            node = d_leaf_node[ent_leaf[i]]
            sum_volume[node] += ent_volume[i]
            if not with_people:
                sum_crowd[node] += ent_crowd[i]
            while True:
                if sum_crowd[node] >= k:
                    box_o, box_d, box_v = _room(box_o, boxes + 1), _room(box_d, boxes + 1), _room(box_v, boxes + 1)
                    box_u, way_off = _room(box_u, boxes + 1), _room(way_off, boxes + 2)
                    way_kind, way_lost = _room(way_kind, ways + 2), _room(way_lost, ways + 2)
                    link_off = _room(link_off, ways + 3)
                    box_o[boxes], box_d[boxes] = a, node
                    box_v[boxes], box_u[boxes] = sum_volume[node], sum_crowd[node]
                    if d_last[node] - d_first[node] > 1:
                        kept = 0
                        for e in range(d_child_offsets[node], d_child_offsets[node + 1]):
                            child = where[d_children[e]]
                            if child >= 0:
                                link = _room(link, links + 1)
                                link[links] = child
                                links += 1
                                kept += box_v[child]
                        way_kind[ways], way_lost[ways] = BY_DESTINATION, sum_volume[node] - kept
                        ways += 1
                        link_off[ways] = links
                    if children > 0:
                        kept = 0
                        for c in range(children):
                            below = o_children[o_child_offsets[a] + c]
                            while pointer[c] < box_end[below] and box_d[pointer[c]] < node:
                                pointer[c] += 1
                            if pointer[c] < box_end[below] and box_d[pointer[c]] == node:
                                link = _room(link, links + 1)
                                link[links] = pointer[c]
                                links += 1
                                kept += box_v[pointer[c]]
                        way_kind[ways], way_lost[ways] = BY_ORIGIN, sum_volume[node] - kept
                        ways += 1
                        link_off[ways] = links
                    way_off[boxes + 1] = ways
                    where[node] = boxes
                    boxes += 1
                up = d_parent[node]
                if up >= 0:
                    sum_volume[up] += sum_volume[node]
                    if not with_people:
                        sum_crowd[up] += sum_crowd[node]
                sum_volume[node] = 0
                sum_crowd[node] = 0
                if up < 0 or (i + 1 < top and d_first[up] <= ent_leaf[i + 1] < d_last[up]):
                    break
                node = up
        box_end[a] = boxes
        for i in range(box_start[a], boxes):
            where[box_d[i]] = -1
    return (
        box_o[:boxes].copy(),
        box_d[:boxes].copy(),
        box_v[:boxes].copy(),
        box_u[:boxes].copy(),
        way_off[: boxes + 1].copy(),
        way_kind[:ways].copy(),
        way_lost[:ways].copy(),
        link_off[: ways + 1].copy(),
        link[:links].copy(),
    )
