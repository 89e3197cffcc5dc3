"""All boxes of a matrix over two trees that hold a crowd, and how each can be split.

A box is a pair of nodes of the tree of origins and the tree of destinations. Of all boxes with the same trips only the
tightest matters: it has the smallest areas, and whatever another can be split into it can be split into too.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.growable import grow
from crowdveil.kernels.od.box_arrays import cut_boxes, new_boxes, new_splits
from crowdveil.kernels.od.leaf_sums import add, new_sums, take
from crowdveil.kernels.od.structures import (
    BY_DESTINATION,
    BY_ORIGIN,
    BoxArrays,
    DestinationTree,
    MatrixRows,
    OriginTree,
    PeoplePairs,
    Splits,
)  # fmt: skip
from crowdveil.kernels.od.tree_walk import count_people, walk_destinations


@kernel
def _merge_people(person: Ints, leaf: Ints, low: int, middle: int, high: int, spare: Ints) -> int:
    """Merge two lists of (person, leaf) that lie one after the other, each pair once; returns the new end."""
    half = len(spare) // 2
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
        if at == 0 or spare[at - 1] != person[take] or spare[half + at - 1] != leaf[take]:
            spare[at], spare[half + at] = person[take], leaf[take]
            at += 1
    for x in range(at):
        person[low + x], leaf[low + x] = spare[x], spare[half + x]
    return low + at


@kernel
def build_boxes(
    rows: MatrixRows,
    pairs: PeoplePairs | None,
    origin_tree: OriginTree,
    destination_tree: DestinationTree,
    origins_first: bool,
    k: int,
) -> tuple[BoxArrays, Splits]:
    """Build all boxes of a matrix with a crowd of at least k.

    `pairs` are by leaf of origins; None where people are not known, and nothing that counts them is compiled then. With
    `origins_first` an origin can only be split while its destinations are not; a box then stays with its origin even if all its
    trips are from one child. Boxes that a box can be split into come before it; the last one has all trips.
    """
    row_offsets, row_tile, row_volume, row_crowd = rows
    o_child_offsets, o_children, o_first, o_leaf_tile, o_large_enough = origin_tree
    d_tile_leaf, anchor, d_low = destination_tree.tile_leaf, destination_tree.anchor, destination_tree.first_node
    d_is_leaf = destination_tree.is_leaf
    size, leaves, origins = len(row_tile), len(anchor), len(o_first)
    leaf, volume = np.empty(size, np.int64), np.empty(size, np.int64)
    crowd, cells = np.empty(size, np.int64), np.empty(size, np.int64)
    people = 0 if pairs is None else len(pairs.person)
    person, person_leaf = np.empty(people, np.int64), np.empty(people, np.int64)
    people_spare = np.empty(2 * people, np.int64)
    sums, marks, words = new_sums(leaves)
    list_start, people_start = np.empty(origins + 1, np.int64), np.empty(origins + 1, np.int64)
    gain = np.zeros(len(d_low), np.int64)
    stack = np.empty((destination_tree.depth + 2, 6), np.int64)
    out = np.empty((2 * min(leaves, size) + 1, 6), np.int64)
    # The boxes of each origin node by destination node, its own ones or those of a child with the same trips.
    ref_start, ref_end = np.zeros(origins, np.int64), np.zeros(origins, np.int64)
    size = max(16, 2 * size)
    ref_node, ref_box = np.empty(size, np.int64), np.empty(size, np.int64)
    box_o, box_d, box_v, box_u, box_cells = new_boxes(size)
    split_offsets, split_kind, split_lost, link_offsets, link = new_splits(size)
    refs, made, split, links = 0, 0, 0, 0
    # Typed, since a function that is called with a literal is compiled once more for it.
    lists, top, people_top, one = 0, int(np.int64(0)), 0, int(np.int64(1))
    most_children = 0
    for a in range(origins):
        most_children = max(most_children, o_child_offsets[a + 1] - o_child_offsets[a])
    pointer = np.zeros(most_children + 1, np.int64)

    for a in range(origins):
        end_if_stopped()
        children = o_child_offsets[a + 1] - o_child_offsets[a]
        if children == 0:
            place = o_first[a]
            tile = o_leaf_tile[place]
            list_start[lists], people_start[lists] = top, people_top
            for row in range(row_offsets[tile], row_offsets[tile + 1]):
                add(sums, marks, words, d_tile_leaf[row_tile[row]], row_volume[row], row_crowd[row], one)
            top = take(sums, marks, words, leaf, volume, crowd, cells, top)
            if pairs is not None:
                for e in range(pairs.offsets[place], pairs.offsets[place + 1]):
                    person[people_top], person_leaf[people_top] = pairs.person[e], pairs.leaf[e]
                    people_top += 1
            lists += 1
        else:
            # The lists of its children lie on top of the stack, one after the other.
            lists -= children
            low, people_low = list_start[lists], people_start[lists]
            longest = top - list_start[lists + children - 1]
            for c in range(1, children):
                longest = max(longest, list_start[lists + c] - list_start[lists + c - 1])
            if longest < top - low:
                for e in range(low, top):
                    add(sums, marks, words, leaf[e], volume[e], crowd[e], cells[e])
                top = take(sums, marks, words, leaf, volume, crowd, cells, low)
            if pairs is not None:
                new_people_top = people_low
                for c in range(children):
                    begin = people_start[lists + c]
                    end = people_start[lists + c + 1] if c + 1 < children else people_top
                    n = end - begin
                    for x in range(n):
                        person[new_people_top + x] = person[begin + x]
                        person_leaf[new_people_top + x] = person_leaf[begin + x]
                    new_people_top = _merge_people(
                        person, person_leaf, people_low, new_people_top, new_people_top + n, people_spare
                    )
                people_top = new_people_top
            lists += 1
        ref_start[a] = refs
        ref_end[a] = refs
        if not o_large_enough[a]:
            continue
        low, people_low = list_start[lists - 1], people_start[lists - 1]
        if pairs is not None:
            count_people(person, person_leaf, people_low, people_top, destination_tree, gain)
        found = walk_destinations(
            leaf, volume, crowd, cells, low, top, gain, pairs is not None, destination_tree, k, stack, out
        )
        for c in range(children):
            pointer[c] = ref_start[o_children[o_child_offsets[a] + c]]
        # Asked once for all boxes of this origin, and for arrays of the same length together: asking takes longer than the rest.
        if refs + found > len(ref_node):
            ref_node, ref_box = grow(ref_node, refs + found), grow(ref_box, refs + found)
        if made + found > len(box_o):
            box_o, box_d = grow(box_o, made + found), grow(box_d, made + found)
            box_v, box_u = grow(box_v, made + found), grow(box_u, made + found)
            box_cells = grow(box_cells, made + found)
            split_offsets = grow(split_offsets, len(box_o) + 1)
        if split + 2 * found > len(split_kind):
            split_kind, split_lost = grow(split_kind, split + 2 * found), grow(split_lost, split + 2 * found)
            link_offsets = grow(link_offsets, len(split_kind) + 1)
        if links + found * (children + 1) > len(link):
            link = grow(link, links + found * (children + 1))
        for i in range(found):
            # Indices are unsigned: others would each be tested for being counted from the end.
            node, here = out[i, 0], out[i, 1]
            # By origin: of each child, the box of its trips to this node.
            same, first_link, kept = -1, links, 0
            if children > 0 and (not origins_first or i == found - 1):
                for c in range(children):
                    below = o_children[o_child_offsets[a] + c]
                    e, end = pointer[c], ref_end[below]
                    while e < end and ref_node[np.uintp(e)] <= node:
                        e += 1
                    pointer[c] = e
                    before = np.uintp(e - 1)
                    if e > ref_start[below] and ref_node[before] >= d_low[np.uintp(node)]:
                        box = ref_box[before]
                        link[np.uintp(links)] = box
                        links += 1
                        volume_there = box_v[np.uintp(box)]
                        kept += volume_there
                        if volume_there == here:
                            same = box
            ref, at = np.uintp(refs + i), np.uintp(made)
            ref_node[ref] = node
            if same >= 0 and not origins_first:
                links = first_link
                ref_box[ref] = same
                continue
            box_o[at], box_d[at], box_v[at] = a, node, here
            box_u[at], box_cells[at] = out[i, 2], out[i, 3]
            if children > 0 and (not origins_first or i == found - 1):
                split_kind[np.uintp(split)], split_lost[np.uintp(split)] = BY_ORIGIN, here - kept
                split += 1
                link_offsets[np.uintp(split)] = links
            if not d_is_leaf[node]:
                child, stop = i - 1, i - out[i, 5]
                while child > stop:
                    link[np.uintp(links)] = ref_box[np.uintp(refs + child)]
                    links += 1
                    child -= out[child, 5]
                split_kind[np.uintp(split)], split_lost[np.uintp(split)] = BY_DESTINATION, out[i, 4]
                split += 1
                link_offsets[np.uintp(split)] = links
            ref_box[ref] = made
            made += 1
            split_offsets[np.uintp(made)] = split
        refs += found
        ref_end[a] = refs
    boxes = BoxArrays(box_o, box_d, box_v, box_u, box_cells)
    splits = Splits(split_offsets, split_kind, split_lost, link_offsets, link)
    return cut_boxes(boxes, splits, ref_box[refs - 1] + 1 if refs > 0 else 0)
