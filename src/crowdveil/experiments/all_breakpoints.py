"""Compute the whole curve of best partitions: the All Breakpoints Algorithm (Matet et al. 2022, section 3.3).

The best cost of a box is a concave, piecewise linear function of the multiplier λ. Each of its pieces A + λS is a partition
with the cost A that suppresses S trips. One pass over the boxes, parts before wholes, computes all pieces of each: the pieces of
a split are the sums of pieces of its parts, and a box takes the lower envelope of its splits and of being published whole.

The solvers of this package evaluate few multipliers instead (the Specific Breakpoints Algorithm). This is the plain form, as an
independent check on small matrices: the number of pieces grows with the number of trips.
"""

from __future__ import annotations

from typing import TypeAlias

from crowdveil.kernels.od.structures import WHOLE
from crowdveil.solve.od.boxes import BoxSpace

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
