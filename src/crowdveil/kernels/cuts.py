"""Minimum cuts between rows of two releases, for each overlap of them, as far as they are below k.

Nodes are rows. An edge is an overlap: from a row of the first release (its tail) to a row of the second (its head). The arc from
tail to head has the overlap's weight as capacity, the arc back is unlimited. So a set S of rows has a finite cut only if with a
row of the second release all rows of the first that meet it are in S; the weight of the cut is then the sum of S's first rows
minus that of its second rows.

Notes
-----
Flows are augmented along shortest paths that are searched from both ends in turns, an edge at a time, and end at k. Two rows
that no cut below k separates become one node: in a safe pair of releases every flow removes a node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import grow, kernel
from crowdveil.kernels._types import Ints

SOURCE_EXHAUSTED, SINK_EXHAUSTED = -2, -3
_NO_EDGE = -1


class Edges(NamedTuple):
    """The edges, by their rows (nodes), and their capacity in the direction of tail to head."""

    tail: Ints
    head: Ints
    capacity: Ints


class Nodes(NamedTuple):
    """The contracted nodes: parent in the union-find forest, next and last row of each node, and edges of each row."""

    parent: Ints
    following: Ints
    last: Ints
    offsets: Ints
    incident: Ints


class Search(NamedTuple):
    """Buffers of searches: flow of edges, mark and edge of arrival of nodes, queues, positions, edges of the last flow."""

    flow: Ints
    mark: Ints
    via: Ints
    queue: Ints
    position: Ints
    touched: Ints
    used: Ints
    counters: Ints


# Columns of `position`, a row for each of the two ends, and of `counters`.
_TAKEN, _FILLED, _ROW, _EDGE, _EDGE_END, _NODE = 0, 1, 2, 3, 4, 5
_STAMP, _USED, _FLOW = 0, 1, 2


@kernel
def root_of(parent: Ints, node: int) -> int:
    """Return the node that a row was contracted to."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def merge_ends(tail: Ints, head: Ints, chosen: Ints, parent: Ints) -> None:
    """Contract the two ends of each chosen edge."""
    for i in range(len(chosen)):
        a, b = root_of(parent, tail[chosen[i]]), root_of(parent, head[chosen[i]])
        if a != b:
            parent[b] = a


@kernel
def all_roots(parent: Ints) -> Ints:
    """Return the node of each row."""
    roots = np.empty(len(parent), np.int64)
    for i in range(len(parent)):
        roots[i] = root_of(parent, i)
    return roots


@kernel
def make_nodes(edges: Edges, parent: Ints) -> Nodes:
    """Return the nodes of a contraction with the edges between different nodes, each listed at both."""
    n = len(parent)
    offsets = np.zeros(n + 1, np.int64)
    for e in range(len(edges.tail)):
        a, b = root_of(parent, edges.tail[e]), root_of(parent, edges.head[e])
        if a != b:
            offsets[a + 1] += 1
            offsets[b + 1] += 1
    for i in range(n):
        offsets[i + 1] += offsets[i]
    place = offsets[:-1].copy()
    incident = np.empty(offsets[n], np.int64)
    for e in range(len(edges.tail)):
        a, b = root_of(parent, edges.tail[e]), root_of(parent, edges.head[e])
        if a != b:
            incident[place[a]] = e
            incident[place[b]] = e
            place[a] += 1
            place[b] += 1
    return Nodes(parent, np.full(n, -1, np.int64), np.arange(n), offsets, incident)


@kernel
def make_search(edges: int, nodes: int) -> Search:
    """Return empty buffers."""
    return Search(
        np.zeros(edges, np.int64),
        np.full(nodes, -1, np.int64),
        np.full(nodes, -1, np.int64),
        np.empty((2, nodes), np.int64),
        np.zeros((2, 6), np.int64),
        np.zeros(edges, np.int64),
        np.empty(edges, np.int64),
        np.zeros(3, np.int64),
    )


@kernel
def _merge(nodes: Nodes, a: int, b: int) -> None:
    """Contract two nodes."""
    a, b = root_of(nodes.parent, a), root_of(nodes.parent, b)
    if a != b:
        nodes.parent[b] = a
        nodes.following[nodes.last[a]] = b
        nodes.last[a] = nodes.last[b]


@kernel
def _begin(search: Search, side: int, node: int) -> None:
    search.position[side, _TAKEN] = 0
    search.position[side, _FILLED] = 1
    search.position[side, _ROW] = -1
    search.position[side, _EDGE] = 0
    search.position[side, _EDGE_END] = 0
    search.queue[side, 0] = node
    search.mark[node] = 2 * search.counters[_STAMP] + side
    search.via[node] = -1


@kernel
def _advance(edges: Edges, nodes: Nodes, search: Search, side: int, skipped: int) -> int:
    """Look at one more edge from one end; return the edge that meets the other end, or that there is none, or no more."""
    at = search.position[side]
    while at[_EDGE] >= at[_EDGE_END]:
        if at[_ROW] >= 0:
            at[_ROW] = nodes.following[at[_ROW]]
        if at[_ROW] < 0:
            if at[_TAKEN] == at[_FILLED]:
                return SOURCE_EXHAUSTED - side
            at[_NODE] = search.queue[side, at[_TAKEN]]
            at[_ROW] = at[_NODE]
            at[_TAKEN] += 1
        at[_EDGE] = nodes.offsets[at[_ROW]]
        at[_EDGE_END] = nodes.offsets[at[_ROW] + 1]
    e = int(nodes.incident[at[_EDGE]])
    at[_EDGE] += 1
    a, b = root_of(nodes.parent, edges.tail[e]), root_of(nodes.parent, edges.head[e])
    if a == b or e == skipped:
        return _NO_EDGE
    from_tail = a == at[_NODE]
    limited = from_tail == (side == 0)
    if limited and edges.capacity[e] - search.flow[e] <= 0:
        return _NO_EDGE
    other = b if from_tail else a
    mark = search.mark[other] - 2 * search.counters[_STAMP]
    if mark == side:
        return _NO_EDGE
    if mark == 1 - side:
        return e
    search.mark[other] = 2 * search.counters[_STAMP] + side
    search.via[other] = e
    search.queue[side, at[_FILLED]] = other
    at[_FILLED] += 1
    return _NO_EDGE


@kernel
def _find_path(edges: Edges, nodes: Nodes, search: Search, source: int, sink: int, skipped: int) -> int:
    """Search from both ends in turns; return the edge where they meet, or the end from which nothing more is reached."""
    search.counters[_STAMP] += 1
    _begin(search, 0, source)
    _begin(search, 1, sink)
    found = _NO_EDGE
    side = 1
    while found == _NO_EDGE:
        side = 1 - side
        found = _advance(edges, nodes, search, side, skipped)
    return found


@kernel
def _send(search: Search, e: int, amount: int) -> None:
    """Change the flow of an edge, and note it for the reset."""
    if search.touched[e] != search.counters[_FLOW]:
        search.touched[e] = search.counters[_FLOW]
        search.used[search.counters[_USED]] = e
        search.counters[_USED] += 1
    search.flow[e] += amount


@kernel
def _along_half(edges: Edges, nodes: Nodes, search: Search, ends: tuple[int, int], amount: int, sending: bool) -> int:
    """Follow a path from its middle to one end (0 the source, 1 the sink); return what it can take, or send the amount."""
    node, side = ends
    while search.via[node] >= 0:
        e = search.via[node]
        tail, head = root_of(nodes.parent, edges.tail[e]), root_of(nodes.parent, edges.head[e])
        # From the source paths arrive at the node, to the sink they leave it.
        along = (head == node) if side == 0 else (tail == node)
        if sending:
            _send(search, e, amount if along else -amount)
        elif along:
            amount = min(amount, edges.capacity[e] - search.flow[e])
        node = tail if head == node else head
    return amount


@kernel
def _push(edges: Edges, nodes: Nodes, search: Search, meeting: int, amount: int) -> int:
    """Send as much flow as the path over an edge allows, at most an amount; return how much."""
    a, b = root_of(nodes.parent, edges.tail[meeting]), root_of(nodes.parent, edges.head[meeting])
    along = search.mark[a] == 2 * search.counters[_STAMP]
    near, far = (a, b) if along else (b, a)
    if along:
        amount = min(amount, edges.capacity[meeting] - search.flow[meeting])
    amount = _along_half(edges, nodes, search, (near, 0), amount, False)
    amount = _along_half(edges, nodes, search, (far, 1), amount, False)
    _send(search, meeting, amount if along else -amount)
    _along_half(edges, nodes, search, (near, 0), amount, True)
    _along_half(edges, nodes, search, (far, 1), amount, True)
    return amount


@kernel
def _max_flow(
    edges: Edges, nodes: Nodes, search: Search, ends: tuple[int, int], limit: int, skipped: int
) -> tuple[int, int]:
    """Return the maximum flow between two nodes, at most a limit; and the end that was exhausted, if it is below."""
    for i in range(search.counters[_USED]):
        search.flow[search.used[i]] = 0
    search.counters[_USED] = 0
    search.counters[_FLOW] += 1
    total = 0
    while total < limit:
        meeting = _find_path(edges, nodes, search, ends[0], ends[1], skipped)
        if meeting < 0:
            return total, meeting
        total += _push(edges, nodes, search, meeting, limit - total)
    return total, _NO_EDGE


@kernel
def bounded_cuts(edges: Edges, parent: Ints, k: int) -> Ints:
    """Return the minimum cut that each edge crosses, k where it is k or more; rows that no smaller cut separates are merged.

    `parent` is the union-find forest of rows, with overlaps of at least k contracted; it is contracted further.
    """
    cut = np.full(len(edges.tail), k, np.int64)
    nodes, search = make_nodes(edges, parent), make_search(len(edges.tail), len(parent))
    merged = 0
    left = len(nodes.incident) // 2
    for e in range(len(edges.tail)):
        a, b = root_of(parent, edges.tail[e]), root_of(parent, edges.head[e])
        if a == b:
            continue
        cut[e], _ = _max_flow(edges, nodes, search, (a, b), k, -1)
        if cut[e] >= k:
            _merge(nodes, a, b)
            merged += 1
            if 4 * merged > left:  # edges inside a node are passed over again and again
                nodes = make_nodes(edges, parent)
                merged, left = 0, len(nodes.incident) // 2
    for e in range(len(edges.tail)):
        if root_of(parent, edges.tail[e]) == root_of(parent, edges.head[e]):
            cut[e] = k
    return cut


@kernel
def cut_sides(edges: Edges, parent: Ints, chosen: Ints, k: int, outside: Ints) -> tuple[Ints, Ints, Ints]:
    """Return for each chosen edge the nodes of one side of its minimum cut: offsets, nodes, and 1 for the sink's side.

    A side with a node of `outside` (1 where rows are not published) cannot be added up; the other one is returned then.
    """
    nodes, search = make_nodes(edges, parent), make_search(len(edges.tail), len(parent))
    offsets, side_of = np.zeros(len(chosen) + 1, np.int64), np.zeros(len(chosen), np.int64)
    members = np.empty(64, np.int64)
    for i in range(len(chosen)):
        a, b = root_of(parent, edges.tail[chosen[i]]), root_of(parent, edges.head[chosen[i]])
        _, exhausted = _max_flow(edges, nodes, search, (a, b), k, -1)
        side = SOURCE_EXHAUSTED - exhausted
        for j in range(search.position[side, _FILLED]):
            if outside[search.queue[side, j]]:
                side = 1 - side
                while _advance(edges, nodes, search, side, -1) == _NO_EDGE:
                    pass
                break
        found = search.position[side, _FILLED]
        members = grow(members, offsets[i] + found)
        for j in range(found):
            members[offsets[i] + j] = search.queue[side, j]
        offsets[i + 1] = offsets[i] + found
        side_of[i] = side
    return offsets, members[: offsets[len(chosen)]], side_of


@kernel
def smallest_values(edges: Edges, parent: Ints, chosen: Ints) -> Ints:
    """Return the lower bound of the weight of each chosen edge, from the sums of the rows alone.

    To lower an edge by 1, others of its two rows must rise: arcs from tail to head are unlimited here, and arcs back take what
    an edge has. `parent` may have contracted edges whose weight is at least that of each chosen edge.
    """
    reverse = Edges(edges.head, edges.tail, edges.capacity)
    nodes, search = make_nodes(reverse, parent), make_search(len(edges.tail), len(parent))
    lowest = np.empty(len(chosen), np.int64)
    for i in range(len(chosen)):
        e = chosen[i]
        a, b = root_of(parent, edges.tail[e]), root_of(parent, edges.head[e])
        if a == b:
            lowest[i] = 0
            continue
        moved, _ = _max_flow(reverse, nodes, search, (a, b), edges.capacity[e], e)
        lowest[i] = edges.capacity[e] - moved
    return lowest
