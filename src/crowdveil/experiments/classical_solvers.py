"""Solve the problems of the paper in its other ways: as a maximal closure, and by all breakpoints (Matet et al. 2022).

Best pruning as a maximal closure, by a minimum cut (appendix I, after Picard 1976): a box can be split only if the box that it is
a part of is split. Splitting one changes the cost at a given multiplier by a fixed amount, its benefit. The splits of the best
partition are the closed set with the greatest sum of benefits; it is the side of the source in a minimum cut of a network in
which an edge of infinite capacity leads from each box to the box above it.

The All Breakpoints Algorithm (section 3.3) computes the whole curve of best partitions. The best cost of a box is a concave,
piecewise linear function of the multiplier λ. Each of its pieces A + λS is a partition with the cost A that suppresses S trips.
One pass over the boxes, parts before wholes, computes all pieces of each: the pieces of a split are the sums of pieces of its
parts, and a box takes the lower envelope of its splits and of being published whole.

The solvers of this package use the recurrence over the tree, which takes linear time, and evaluate few multipliers (the Specific
Breakpoints Algorithm). These are independent checks on small matrices.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from crowdveil.kernels.od.structures import WHOLE
from crowdveil.solve.od.boxes import BoxSpace


def best_value(space: BoxSpace, multiplier: Fraction) -> Fraction:
    """Return the least A + λS of the partitions of a forest, in which a box has at most one split and no box is in two others."""
    splits, (p, q) = space.splits, multiplier.as_integer_ratio()
    whole = [q * int(cost) for cost in space.cost]
    top = len(space) - 1
    forced = not space.allowed[top] & WHOLE
    benefit: dict[int, int] = {}
    above: dict[int, int] = {}
    for box in range(len(space)):
        for split in range(splits.offsets[box], splits.offsets[box + 1]):
            parts = splits.link[splits.link_offsets[split] : splits.link_offsets[split + 1]].tolist()
            benefit[box] = whole[box] - p * int(splits.lost[split]) - sum(whole[part] for part in parts)
            above |= dict.fromkeys(parts, box)
    fixed = benefit.pop(top, 0) if forced else 0
    return Fraction(whole[top] - fixed - closure(benefit, above), q)


def closure(benefit: dict[int, int], above: dict[int, int]) -> int:
    """Return the greatest sum of benefits of a set that has with each member also the one above it, where that has a benefit."""
    if not benefit:
        return 0
    number = {box: i for i, box in enumerate(benefit)}
    source, sink = len(number), len(number) + 1
    gains = sum(max(value, 0) for value in benefit.values())
    edges = [(number[box], number[above[box]], gains + 1) for box in benefit if above.get(box) in number]
    edges += [(source, number[box], value) for box, value in benefit.items() if value > 0]
    edges += [(number[box], sink, -value) for box, value in benefit.items() if value < 0]
    if not edges:
        return 0
    start, end, capacity = np.array(edges, np.int32).T
    network = csr_array((capacity, (start, end)), shape=(sink + 1, sink + 1))
    left = network - maximum_flow(network, source, sink).flow
    left.eliminate_zeros()
    kept = set(breadth_first_order(left, source, return_predecessors=False).tolist())
    return sum(value for box, value in benefit.items() if number[box] in kept)


Piece: TypeAlias = tuple[int, int]
"""Suppressed trips S and cost A of a partition that is best for some multiplier."""


def all_pieces(space: BoxSpace) -> list[Piece]:
    """Return the pieces of the whole matrix, the fewest suppressed trips (the highest multipliers) first."""
    splits = space.splits
    pieces: list[list[Piece]] = []
    for box in range(len(space)):
        allowed = int(space.allowed[box])
        found = [(0, int(space.cost[box]))] if allowed & WHOLE else []
        for split in range(splits.offsets[box], splits.offsets[box + 1]):
            if allowed & splits.kind[split]:
                parts = splits.link[splits.link_offsets[split] : splits.link_offsets[split + 1]]
                total = [(int(splits.lost[split]), 0)]
                for part in parts:
                    total = envelope([(s + t, a + b) for s, a in total for t, b in pieces[part]])
                found += total
        pieces.append(envelope(found or [(int(space.volume[box]), 0)]))
    return pieces[-1]


def envelope(points: list[Piece]) -> list[Piece]:
    """Return the points that are best for some multiplier: the lower convex hull, as far as A falls where S rises."""
    hull: list[Piece] = []
    for s, a in sorted(points):
        if hull and a >= hull[-1][1]:
            continue  # neither fewer suppressed trips nor a lower cost
        while len(hull) > 1 and not _is_corner(hull[-2], hull[-1], (s, a)):
            hull.pop()
        hull.append((s, a))
    return hull


def _is_corner(before: Piece, at: Piece, after: Piece) -> bool:
    """Return whether the middle point lies below the line between the others."""
    (s0, a0), (s1, a1), (s2, a2) = before, at, after
    return (a1 - a0) * (s2 - s1) < (a2 - a1) * (s1 - s0)


def best_within(pieces: list[Piece], budget: int) -> Piece | None:
    """Return the piece with the lowest cost that keeps a budget of suppressed trips; None if there is none."""
    return max((piece for piece in pieces if piece[0] <= budget), default=None)
