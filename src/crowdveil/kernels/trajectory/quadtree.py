"""Sectors of a quadtree over points, each with the points of at least k people."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Indices, Ints, Mask

Copies = tuple[Indices, Indices, Indices]
"""Columns, rows and people of points."""

# Columns of a node on the stack, and of a sector.
FIRST, LAST, COLUMN, ROW, WIDE, HIGH, PEOPLE = range(7)
ALONE, LEFT_OUT = -1, -2


@kernel
def _people_of(person: Indices, begins: Ints, a: int, b: int, seen: Ints) -> int:
    """Count the people with points in slices a and b, which may be the same one. The last entry of `seen` counts the calls."""
    seen[-1] += 1
    stamp, people = seen[-1], 0
    for part in (a, b):
        for i in range(begins[part], begins[part + 1]):
            if seen[person[i]] != stamp:
                seen[person[i]] = stamp
                people += 1
        if a == b:
            break
    return people


@kernel
def _split(
    x: Indices, y: Indices, person: Indices, other: Copies, node: Ints, across: int, up: int, begins: Ints
) -> None:  # fmt: skip
    """Copy the points of a node to `other`, part by part: south-west, north-west, south-east, north-east.

    `across` and `up` are 1 where it is halved from west to east, or from south to north, else 0: then there is no other half.
    """
    east = node[COLUMN] + (1 << (node[WIDE] - across))
    north = node[ROW] + (1 << (node[HIGH] - up))
    begins[:] = 0
    for i in range(node[FIRST], node[LAST]):
        begins[2 * int(x[i] >= east) + int(y[i] >= north) + 1] += 1
    begins[0] = node[FIRST]
    for q in range(4):
        begins[q + 1] += begins[q]
    place = begins[:4].copy()
    for i in range(node[FIRST], node[LAST]):
        q = 2 * int(x[i] >= east) + int(y[i] >= north)
        to = place[q]
        place[q] += 1
        other[0][to], other[1][to], other[2][to] = x[i], y[i], person[i]


@kernel
def _copy_back(x: Indices, y: Indices, person: Indices, other: Copies, to: int, first: int, last: int) -> int:
    """Copy a quarter back, from position `to` on; return where the next one goes."""
    for i in range(last - first):
        x[to + i], y[to + i], person[to + i] = other[0][first + i], other[1][first + i], other[2][first + i]
    return to + last - first


@kernel
def _before(a: int, b: int, people: Ints, begins: Ints) -> bool:
    """Return whether quarter a comes before b: fewer people, then fewer points, then its number."""
    if people[a] != people[b]:
        return bool(people[a] < people[b])
    size_a, size_b = begins[a + 1] - begins[a], begins[b + 1] - begins[b]
    return bool(size_a < size_b) if size_a != size_b else a < b


@kernel
def _pair_up(person: Indices, begins: Ints, people: Ints, k: int, partner: Ints, together: Ints, seen: Ints) -> int:
    """Find a neighbor for each quarter that has people, but fewer than k; return the number of points without one.

    The least one comes first, and takes the lesser of its neighbors with which it makes k, if that one is not taken. `partner`
    gets the neighbor of each, and `together` the people of both.
    """
    order = np.arange(4)
    for i in range(1, 4):
        j = i
        while j > 0 and _before(order[j], order[j - 1], people, begins):
            order[j], order[j - 1] = order[j - 1], order[j]
            j -= 1
    left_out = 0
    for place in range(4):
        q = int(order[place])
        if people[q] == 0 or people[q] >= k or partner[q] >= 0:
            continue
        first = 2 if _before(q ^ 2, q ^ 1, people, begins) else 1
        for n in (q ^ first, q ^ (3 - first)):
            if people[n] > 0 and partner[n] == ALONE and partner[q] == ALONE:
                both = _people_of(person, begins, q, n, seen)
                if both >= k:
                    partner[q], partner[n] = n, q
                    together[q], together[n] = both, both
        if partner[q] == ALONE:
            partner[q] = LEFT_OUT
            left_out += begins[q + 1] - begins[q]
    return left_out


@kernel
def _cut(
    x: Indices,
    y: Indices,
    person: Indices,
    other: Copies,
    node: Ints,
    across: int,
    up: int,
    k: int,
    merge: bool,
    parts: tuple[Ints, Ints, Ints, Ints],
    seen: Ints,
) -> int:
    """Cut a node in parts, and find partners for those with too few people; return how many points would be left out."""
    begins, count, partner, together = parts
    _split(x, y, person, other, node, across, up, begins)
    for q in range(4):
        count[q] = _people_of(other[2], begins, q, q, seen)
    partner[:] = ALONE
    if merge:
        return _pair_up(other[2], begins, count, k, partner, together, seen)
    left_out = 0
    for q in range(4):
        if 0 < count[q] < k:
            partner[q] = LEFT_OUT
            left_out += begins[q + 1] - begins[q]
    return left_out


@kernel
def _leave_out(person: Indices, first: int, last: int, suppressed: Mask) -> None:
    for i in range(first, last):
        suppressed[person[i]] = True


@kernel
def k_anonymous_sectors(
    x: Indices,
    y: Indices,
    person: Indices,
    people: int,
    depth: int,
    k: int,
    split_above: int,
    merge: bool,
    halve: bool,
    suppress: float,
) -> tuple[Ints, int]:
    """Cut a square of 2^depth cells a side into sectors with the points of at least k people.

    Parameters
    ----------
    x, y, person
        Cell and person of each point; put into another order. All points together have at least k people, numbers below `people`.
    split_above
        Sectors with more points are cut, where that is possible.
    merge
        Put quarters with fewer than k people together with a neighbor.
    halve
        Halve what is longer than wide, or wider than long, where the halves can stand alone.
    suppress
        The share of a node's points that may be left out, in parts with fewer than k people, so that the node can be cut.

    Returns
    -------
    sectors
        A row for each: its points (from, to), first column and row, log2 of columns and rows, people.
    suppressed
        How many people have points that were left out.
    """
    other = (np.empty_like(x), np.empty_like(y), np.empty_like(person))
    begins, count, partner, together = parts = (
        np.zeros(5, np.int64), np.empty(4, np.int64), np.empty(4, np.int64), np.empty(4, np.int64)
    )  # fmt: skip
    seen, suppressed = np.zeros(people + 1, np.int64), np.zeros(people, np.bool_)
    found, sectors = np.empty((len(x) // k + 1, 7), np.int64), 0
    # A node leaves at most three more than itself, each of them flatter or narrower.
    stack, waiting = np.zeros((6 * depth + 8, 7), np.int64), 1
    begins[1] = len(x)
    stack[0, LAST], stack[0, WIDE], stack[0, HIGH] = len(x), depth, depth
    stack[0, PEOPLE] = _people_of(person, begins, 0, 0, seen)
    while waiting > 0:
        waiting -= 1
        node = stack[waiting].copy()
        size = node[LAST] - node[FIRST]
        # Something must be left, and little may be left out.
        most = min(suppress * size, size - 1.0)
        cut, across, up = False, 1, 1
        if size > split_above and halve and node[WIDE] != node[HIGH]:
            across, up = int(node[WIDE] > node[HIGH]), int(node[WIDE] < node[HIGH])
            cut = _cut(x, y, person, other, node, across, up, k, False, parts, seen) <= most
        if size > split_above and not cut and node[WIDE] > 0 and node[HIGH] > 0:
            across, up = 1, 1
            cut = _cut(x, y, person, other, node, across, up, k, merge, parts, seen) <= most
        if not cut:
            found[sectors] = node
            sectors += 1
            continue
        to = node[FIRST]
        for q in range(4):
            n = partner[q]
            if n == LEFT_OUT:
                _leave_out(other[2], begins[q], begins[q + 1], suppressed)
            if count[q] == 0 or n == LEFT_OUT or 0 <= n < q:
                continue  # nothing to put in place, or it was put with its partner
            part = stack[waiting]
            part[FIRST] = to
            to = _copy_back(x, y, person, other, to, begins[q], begins[q + 1])
            if n >= 0:
                to = _copy_back(x, y, person, other, to, begins[n], begins[n + 1])
            part[LAST] = to
            # A pair fills the node's whole width or height: numbers of quarters differ by 2 to the east, by 1 to the north.
            part[WIDE] = node[WIDE] - (0 if n == q + 2 else across)
            part[HIGH] = node[HIGH] - (0 if n == q + 1 else up)
            part[COLUMN] = node[COLUMN] + ((q >> 1) << (node[WIDE] - across))
            part[ROW] = node[ROW] + ((q & 1) << (node[HIGH] - up))
            part[PEOPLE] = count[q] if n < 0 else together[q]
            if n >= 0 and part[LAST] - part[FIRST] < 2 * k:
                found[sectors] = part
                sectors += 1
            else:
                waiting += 1
    return found[:sectors], int(suppressed.sum())
