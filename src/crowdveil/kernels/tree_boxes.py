"""Matrices over two trees: the boxes that hold a crowd, for all pairs of nodes or for given origins.

A box is a pair of nodes of the tree of origins and the tree of destinations. Of all boxes with the same trips only the
tightest matters: it has the smallest areas, and whatever another can be split into it can be split into too. So for each origin
only leaves with trips and the lowest common ancestors of neighbouring ones are looked at, whatever the depth of the tree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdveil.kernels._jit import kernel

Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]

BY_DESTINATION, BY_ORIGIN = 2, 4


@kernel
def join_table(join: Ints) -> tuple[Ints, Ints]:
    """What the lowest common ancestor of two leaves is looked up in.

    `join` has the lowest common ancestor of each leaf and the next. In post-order ancestors have larger numbers, so that
    of two leaves it is the largest between them: the table has the largest of 1, 2, 4, … in a row, one row after the other,
    and the second array the exponent of the longest row that fits into each length.
    """
    n = len(join)
    exponent = np.zeros(n + 2, np.int64)
    for length in range(2, n + 2):
        exponent[length] = exponent[length // 2] + 1
    table = np.zeros((exponent[n + 1] + 1) * max(n, 1), np.int64)
    for i in range(n):
        table[i] = join[i]
    half, row = 1, 1
    while 2 * half <= n:
        for i in range(n - 2 * half + 1):
            table[row * n + i] = max(table[(row - 1) * n + i], table[(row - 1) * n + i + half])
        half, row = 2 * half, row + 1
    return table, exponent


@kernel
def _ancestor(table: Ints, exponent: Ints, leaves: int, i: int, j: int) -> int:
    """The lowest common ancestor of the leaves i < j."""
    n = leaves - 1
    row = exponent[j - i]
    found: int = max(table[row * n + i], table[row * n + j - (1 << row)])
    return found


@kernel
def _order(key: Indices, keys: int, before: Ints) -> Ints:
    """The rows in `before`, in stable order of their key."""
    place = np.zeros(keys + 1, np.int64)
    for row in before:
        place[key[row] + 1] += 1
    for i in range(keys):
        place[i + 1] += place[i]
    order = np.empty(len(before), np.int64)
    for row in before:
        order[place[key[row]]] = row
        place[key[row]] += 1
    return order


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
def _count_people(
    person: Ints, leaf: Ints, low: int, high: int, anchor: Ints, table: Ints, exponent: Ints, gain: Ints
) -> None:
    """Write down where different people begin to count: sums of `gain` over a subtree are then its people.

    People come in order, each with rising leaves: one at every leaf, less one where the way up meets that of the leaf before.
    """
    for i in range(low, high):
        here = anchor[leaf[i]]
        gain[here] += 1
        if i > low and person[i] == person[i - 1]:
            # The anchor of the leaf before is never above both: a node that holds the two leaves and is large enough is not
            # below it.
            meet = here
            if leaf[i] != leaf[i - 1]:
                meet = _ancestor(table, exponent, len(anchor), leaf[i - 1], leaf[i])
            gain[max(meet, here)] -= 1


@kernel
def _grow(
    leaf: Ints,
    volume: Ints,
    crowd: Ints,
    cells: Ints,
    low: int,
    high: int,
    gain: Ints,
    with_people: bool,
    anchor: Ints,
    table: Ints,
    exponent: Ints,
    k: int,
    stack: Ints,
    out: Ints,
) -> int:
    """The nodes above the leaves of one origin that hold a crowd, in post-order; returns their number.

    Leaves rise. Each counts at its anchor: the leaf's own node, or the lowest node above it that is large enough to be
    published. `stack` and `out` hold six numbers a node: its number, volume, crowd and cells; in `stack` the volume below that is
    kept and where its subtree begins in `out`, in `out` the volume that a split gives up and the number of nodes in its subtree.
    """
    depth, found = 0, 0
    # The node at hand lies below the top of the stack; most are leaves that never get there.
    node = anchor[leaf[low]] if high > low else -1
    sum_volume, sum_crowd, sum_cells, kept, begin = 0, 0, 0, 0, 0
    for i in range(low, high):
        here = anchor[leaf[i]]
        if i > low:
            meet = max(_ancestor(table, exponent, len(anchor), leaf[i - 1], leaf[i]), here)
            while node < meet:
                if with_people:
                    sum_crowd += gain[node]
                    gain[node] = 0
                if sum_crowd >= k:
                    at = 6 * found
                    out[at], out[at + 1], out[at + 2], out[at + 3] = node, sum_volume, sum_crowd, sum_cells
                    out[at + 4], out[at + 5] = sum_volume - kept, found + 1 - begin
                    found += 1
                    kept = sum_volume
                else:
                    kept = 0
                at = 6 * (depth - 1)
                if depth > 0 and stack[at] <= meet:
                    depth -= 1
                    node = stack[at]
                    sum_volume += stack[at + 1]
                    sum_crowd += stack[at + 2]
                    sum_cells += stack[at + 3]
                    kept += stack[at + 4]
                    begin = stack[at + 5]
                else:
                    node = meet
            if node != here:
                at = 6 * depth
                stack[at], stack[at + 1], stack[at + 2] = node, sum_volume, sum_crowd
                stack[at + 3], stack[at + 4], stack[at + 5] = sum_cells, kept, begin
                depth += 1
                node, sum_volume, sum_crowd, sum_cells, kept, begin = here, 0, 0, 0, 0, found
        sum_volume += volume[i]
        if not with_people:
            sum_crowd += crowd[i]
        sum_cells += cells[i]
    while node >= 0:
        if with_people:
            sum_crowd += gain[node]
            gain[node] = 0
        if sum_crowd >= k:
            at = 6 * found
            out[at], out[at + 1], out[at + 2], out[at + 3] = node, sum_volume, sum_crowd, sum_cells
            out[at + 4], out[at + 5] = sum_volume - kept, found + 1 - begin
            found += 1
            kept = sum_volume
        else:
            kept = 0
        if depth == 0:
            break
        depth -= 1
        at = 6 * depth
        node = stack[at]
        sum_volume += stack[at + 1]
        sum_crowd += stack[at + 2]
        sum_cells += stack[at + 3]
        kept += stack[at + 4]
        begin = stack[at + 5]
    return found


@kernel
def build_forest(
    part: Indices,
    parts: int,
    row_leaf: Indices,
    row_volume: Ints,
    row_crowd: Ints,
    pair_offsets: Ints,
    pair_person: Ints,
    pair_leaf: Ints,
    anchor: Ints,
    table: Ints,
    exponent: Ints,
    d_depth: int,
    d_is_leaf: Ints,
    part_cost: Ints,
    d_cost: Ints,
    scale: int,
    k: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    """The boxes with a crowd of at least k for given origins, each origin the root of a tree of destinations.

    Parameters
    ----------
    part, row_leaf, row_volume, row_crowd
        Of each row its origin, its destination leaf, its trips, and its crowd where crowds add up. In any order.
    pair_offsets, pair_person, pair_leaf
        By origin who went to which leaf, in order of person and leaf; empty where people are not known.
    anchor, table, exponent
        The lowest node above each leaf that may be published; what common ancestors are looked up in.
    part_cost, d_cost, scale
        What each origin and each destination node costs a trip, and what costs are multiplied with.

    Returns
    -------
    origin, destination node, volume, crowd and cost of each box; the volume that splitting it gives up, -1 where it cannot be
    split; the box above it, -1 at the top; and the volume of each origin that is in no box. Boxes come after those below them.
    """
    leaves = len(anchor)
    rows = len(row_leaf)
    everything = np.arange(rows)
    order = _order(part, parts, _order(row_leaf, leaves, everything))
    with_people = len(pair_offsets) > 1
    leaf, volume = np.empty(rows, np.int64), np.empty(rows, np.int64)
    crowd, cells = np.empty(rows, np.int64), np.empty(rows, np.int64)
    gain = np.zeros(len(d_cost), np.int64)
    stack = np.empty(6 * (d_depth + 2), np.int64)
    widest = min(2 * leaves, 2 * rows + 1)
    out = np.empty(6 * (widest + 1), np.int64)
    size = max(16, rows // 4)
    box_part, box_node, box_volume = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    box_crowd, box_lost, box_above = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    box_cost = np.empty(size, np.int64)
    left = np.zeros(parts, np.int64)
    boxes, at = 0, 0
    while at < rows:
        origin = part[order[at]]
        # Rows of one origin with the same leaf are one.
        n, total = 0, 0
        while at < rows and part[order[at]] == origin:
            row = order[at]
            if n > 0 and leaf[n - 1] == row_leaf[row]:
                volume[n - 1] += row_volume[row]
                crowd[n - 1] += row_crowd[row]
            else:
                leaf[n], volume[n], crowd[n], cells[n] = row_leaf[row], row_volume[row], row_crowd[row], 1
                n += 1
            total += row_volume[row]
            at += 1
        if with_people:
            low, high = pair_offsets[origin], pair_offsets[origin + 1]
            _count_people(pair_person, pair_leaf, low, high, anchor, table, exponent, gain)
        found = _grow(leaf, volume, crowd, cells, 0, n, gain, with_people, anchor, table, exponent, k, stack, out)
        if found == 0:
            left[origin] = total
            continue
        box_part, box_node = _room(box_part, boxes + found), _room(box_node, boxes + found)
        box_volume, box_crowd = _room(box_volume, boxes + found), _room(box_crowd, boxes + found)
        box_lost, box_above = _room(box_lost, boxes + found), _room(box_above, boxes + found)
        box_cost = _room(box_cost, boxes + found)
        for i in range(found):
            node = out[6 * i]
            box_part[boxes + i], box_node[boxes + i] = origin, node
            box_volume[boxes + i], box_crowd[boxes + i] = out[6 * i + 1], out[6 * i + 2]
            box_cost[boxes + i] = (part_cost[origin] + d_cost[node]) * out[6 * i + 1] * scale
            box_lost[boxes + i] = -1 if d_is_leaf[node] else out[6 * i + 4]
            box_above[boxes + i] = -1
            child, stop = i - 1, i - out[6 * i + 5]
            while child > stop:
                box_above[boxes + child] = boxes + i
                child -= out[6 * child + 5]
        boxes += found
    return (
        box_part[:boxes].copy(),
        box_node[:boxes].copy(),
        box_volume[:boxes].copy(),
        box_crowd[:boxes].copy(),
        box_cost[:boxes].copy(),
        box_lost[:boxes].copy(),
        box_above[:boxes].copy(),
        left,
    )


@kernel
def _merge(leaf: Ints, volume: Ints, crowd: Ints, cells: Ints, low: int, middle: int, high: int, spare: Ints) -> int:
    """Merge two sorted lists of destination leaves that lie one after the other; returns the new end."""
    room = len(spare) // 4
    i, j, at = low, middle, 0
    while i < middle or j < high:
        if j >= high or (i < middle and leaf[i] <= leaf[j]):
            take = i
            i += 1
        else:
            take = j
            j += 1
        if at > 0 and spare[at - 1] == leaf[take]:
            spare[room + at - 1] += volume[take]
            spare[2 * room + at - 1] += crowd[take]
            spare[3 * room + at - 1] += cells[take]
        else:
            spare[at], spare[room + at] = leaf[take], volume[take]
            spare[2 * room + at], spare[3 * room + at] = crowd[take], cells[take]
            at += 1
    for x in range(at):
        leaf[low + x], volume[low + x] = spare[x], spare[room + x]
        crowd[low + x], cells[low + x] = spare[2 * room + x], spare[3 * room + x]
    return low + at


@kernel
def _merge_people(person: Ints, leaf: Ints, low: int, middle: int, high: int, spare: Ints) -> int:
    """Merge two lists of (person, leaf) that lie one after the other, each pair once; returns the new end."""
    room = len(spare) // 2
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
        if at == 0 or spare[at - 1] != person[take] or spare[room + at - 1] != leaf[take]:
            spare[at], spare[room + at] = person[take], leaf[take]
            at += 1
    for x in range(at):
        person[low + x], leaf[low + x] = spare[x], spare[room + x]
    return low + at


@kernel
def build_boxes(
    row_origin: Indices,
    row_leaf: Indices,
    row_volume: Ints,
    row_crowd: Ints,
    pair_offsets: Ints,
    pair_person: Ints,
    pair_leaf: Ints,
    o_child_offsets: Ints,
    o_children: Ints,
    o_first: Ints,
    o_leaves: int,
    o_fits: Ints,
    anchor: Ints,
    table: Ints,
    exponent: Ints,
    d_low: Ints,
    d_depth: int,
    d_is_leaf: Ints,
    origins_first: bool,
    k: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    """All boxes of a matrix with a crowd of at least k.

    Parameters
    ----------
    row_origin, row_leaf, row_volume, row_crowd
        Of each row the leaf of its origin and of its destination, its trips, and its crowd where crowds add up. In any order.
    pair_offsets, pair_person, pair_leaf
        By leaf of origins who went to which leaf, in order of person and leaf; empty where people are not known.
    o_child_offsets, o_children, o_first, o_leaves, o_fits
        The tree of origins in post-order, and which of its nodes may be published.
    anchor, table, exponent, d_low, d_depth, d_is_leaf
        The tree of destinations: the lowest node above each leaf that may be published, what common ancestors are looked up in,
        the first node of each subtree, its depth, and which nodes are leaves.
    origins_first
        Whether an origin can only be split while its destinations are not. A box then stays with its origin even if all
        its trips are from one child.

    Returns
    -------
    origin node, destination node, volume, crowd, cells with a trip of each box; the offsets of the ways that it can be split in;
    of each way its kind (by destination or by origin), the volume that it gives up, and the offsets of the boxes that it leaves;
    and these. Boxes that a box can be split into come before it; the last one has all trips.
    """
    rows, leaves, origins = len(row_leaf), len(anchor), len(o_first)
    everything = np.arange(rows)
    order = _order(row_origin, o_leaves, _order(row_leaf, leaves, everything))
    with_people = len(pair_offsets) > 1
    leaf, volume = np.empty(rows, np.int64), np.empty(rows, np.int64)
    crowd, cells = np.empty(rows, np.int64), np.empty(rows, np.int64)
    person, person_leaf = np.empty(len(pair_person), np.int64), np.empty(len(pair_person), np.int64)
    spare, people_spare = np.empty(4 * rows, np.int64), np.empty(2 * len(pair_person), np.int64)
    list_start, people_start = np.empty(origins + 1, np.int64), np.empty(origins + 1, np.int64)
    gain = np.zeros(len(d_low), np.int64)
    stack = np.empty(6 * (d_depth + 2), np.int64)
    room = min(2 * leaves, 2 * rows + 1) + 1
    out = np.empty(6 * room, np.int64)
    # The boxes of each origin node by destination node, its own ones or those of a child with the same trips.
    ref_start, ref_end = np.zeros(origins, np.int64), np.zeros(origins, np.int64)
    size = max(16, 2 * rows)
    ref_node, ref_box = np.empty(size, np.int64), np.empty(size, np.int64)
    box_o, box_d, box_v = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    box_u, box_cells, way_off = np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(size + 1, np.int64)
    way_kind, way_lost, link_off = np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(size + 1, np.int64)
    link = np.empty(size, np.int64)
    refs, boxes, ways, links = 0, 0, 0, 0
    lists, top, people_top, at = 0, 0, 0, 0
    most_children = 0
    for a in range(origins):
        most_children = max(most_children, o_child_offsets[a + 1] - o_child_offsets[a])
    pointer = np.zeros(most_children + 1, np.int64)

    for a in range(origins):
        children = o_child_offsets[a + 1] - o_child_offsets[a]
        if children == 0:
            place = o_first[a]
            list_start[lists], people_start[lists] = top, people_top
            while at < rows and row_origin[order[at]] == place:
                row = order[at]
                leaf[top], volume[top], crowd[top], cells[top] = row_leaf[row], row_volume[row], row_crowd[row], 1
                top += 1
                at += 1
            if with_people:
                for e in range(pair_offsets[place], pair_offsets[place + 1]):
                    person[people_top], person_leaf[people_top] = pair_person[e], pair_leaf[e]
                    people_top += 1
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
                if new_top < begin:  # never backwards: lists only shrink when they are merged
                    for x in range(n):
                        leaf[new_top + x], volume[new_top + x] = leaf[begin + x], volume[begin + x]
                        crowd[new_top + x], cells[new_top + x] = crowd[begin + x], cells[begin + x]
                if new_top == low or n == 0:
                    new_top += n
                else:
                    new_top = _merge(leaf, volume, crowd, cells, low, new_top, new_top + n, spare)
                if with_people:
                    begin = people_start[lists + c]
                    end = people_start[lists + c + 1] if c + 1 < children else people_top
                    n = end - begin
                    for x in range(n):
                        person[new_people_top + x] = person[begin + x]
                        person_leaf[new_people_top + x] = person_leaf[begin + x]
                    new_people_top = _merge_people(
                        person, person_leaf, people_low, new_people_top, new_people_top + n, people_spare
                    )
            top, people_top = new_top, new_people_top
            lists += 1
        ref_start[a] = refs
        ref_end[a] = refs
        if not o_fits[a]:
            continue
        low, people_low = list_start[lists - 1], people_start[lists - 1]
        if with_people:
            _count_people(person, person_leaf, people_low, people_top, anchor, table, exponent, gain)
        found = _grow(leaf, volume, crowd, cells, low, top, gain, with_people, anchor, table, exponent, k, stack, out)
        for c in range(children):
            pointer[c] = ref_start[o_children[o_child_offsets[a] + c]]
        # Room for all that may come of this origin at once: asking box by box takes longer than the rest.
        ref_node, ref_box = _room(ref_node, refs + found), _room(ref_box, refs + found)
        box_o, box_d, box_v = _room(box_o, boxes + found), _room(box_d, boxes + found), _room(box_v, boxes + found)
        box_u, box_cells = _room(box_u, boxes + found), _room(box_cells, boxes + found)
        way_off, link_off = _room(way_off, boxes + found + 1), _room(link_off, ways + 2 * found + 1)
        way_kind, way_lost = _room(way_kind, ways + 2 * found), _room(way_lost, ways + 2 * found)
        link = _room(link, links + found * (children + 1))
        for i in range(found):
            node, here = out[6 * i], out[6 * i + 1]
            # By origin: of each child, the box of its trips to this node.
            same, first_link, kept = -1, links, 0
            if children > 0 and (not origins_first or i == found - 1):
                for c in range(children):
                    below = o_children[o_child_offsets[a] + c]
                    e, end = pointer[c], ref_end[below]
                    while e < end and ref_node[e] <= node:
                        e += 1
                    pointer[c] = e
                    if e > ref_start[below] and ref_node[e - 1] >= d_low[node]:
                        box = ref_box[e - 1]
                        link[links] = box
                        links += 1
                        kept += box_v[box]
                        if box_v[box] == here:
                            same = box
            ref_node[refs + i] = node
            if same >= 0 and not origins_first:
                links = first_link
                ref_box[refs + i] = same
                continue
            box_o[boxes], box_d[boxes], box_v[boxes] = a, node, here
            box_u[boxes], box_cells[boxes] = out[6 * i + 2], out[6 * i + 3]
            if children > 0 and (not origins_first or i == found - 1):
                way_kind[ways], way_lost[ways] = BY_ORIGIN, here - kept
                ways += 1
                link_off[ways] = links
            if not d_is_leaf[node]:
                child, stop = i - 1, i - out[6 * i + 5]
                while child > stop:
                    link[links] = ref_box[refs + child]
                    links += 1
                    child -= out[6 * child + 5]
                way_kind[ways], way_lost[ways] = BY_DESTINATION, out[6 * i + 4]
                ways += 1
                link_off[ways] = links
            ref_box[refs + i] = boxes
            boxes += 1
            way_off[boxes] = ways
        refs += found
        ref_end[a] = refs
    # The box of all trips is the last that was looked up; what came after it is not part of it.
    if refs > 0:
        boxes = ref_box[refs - 1] + 1
        ways = way_off[boxes]
        links = link_off[ways]
    return (
        box_o[:boxes].copy(),
        box_d[:boxes].copy(),
        box_v[:boxes].copy(),
        box_u[:boxes].copy(),
        box_cells[:boxes].copy(),
        way_off[: boxes + 1].copy(),
        way_kind[:ways].copy(),
        way_lost[:ways].copy(),
        link_off[: ways + 1].copy(),
        link[:links].copy(),
    )
