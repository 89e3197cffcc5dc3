"""Solve the best pruning of trees as a maximal closure, by a minimum cut (Matet et al. 2022, appendix I, after Picard 1976).

A box can be split only if the box that it is a part of is split. Splitting one changes the cost at a given multiplier by a fixed
amount, its benefit. The splits of the best partition are the closed set with the greatest sum of benefits; it is the side of the
source in a minimum cut of a network in which an edge of infinite capacity leads from each box to the box above it.

The solvers of this package use the recurrence over the tree, which takes linear time. This is an independent check.
"""

from __future__ import annotations

from fractions import Fraction

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
