"""Random releases of a few trips, as rows of boxes in origin x destination x time, for audits of several releases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.ledger.audit import Published, Records
from crowdveil.model.arrays import Ints, Mask

KINDS = ("tree", "dyadic", "time-adaptive")


class SmallWorld(NamedTuple):
    """Records with their cells, and the number of cells in each dimension."""

    records: Records
    cell: Ints
    shape: tuple[int, int, int]


def random_world(rng: np.random.Generator, *, people: bool, largest: int = 4) -> SmallWorld:
    """Return trips of a few cells; with people, several trips of one person."""
    shape = (int(rng.integers(2, largest + 1)), int(rng.integers(1, largest + 1)), int(rng.integers(1, 4)))
    n = int(rng.integers(4, 30))
    cell = np.stack([rng.integers(0, s, n) for s in shape], axis=1)
    if people:
        return SmallWorld(Records(np.ones(n, np.int64), rng.integers(0, max(2, n // 2), n)), cell, shape)
    return SmallWorld(Records(rng.integers(1, 5, n), None), cell, shape)


def random_release(rng: np.random.Generator, world: SmallWorld, k: int, name: str) -> Published:
    """Return a k-anonymous release: a random partition into boxes, the small ones suppressed, perhaps with a total."""
    kind = KINDS[int(rng.integers(len(KINDS)))]
    row = np.full(len(world.cell), -1, np.int64)
    boxes = _split(rng, [(0, s) for s in world.shape], kind, float(rng.uniform(0.3, 0.95)))
    suppressed = []
    for number, box in enumerate(boxes):
        inside = np.all([(world.cell[:, d] >= a) & (world.cell[:, d] < b) for d, (a, b) in enumerate(box)], axis=0)
        if size_of(world.records, inside) >= k:
            row[inside] = number
        elif inside.any():
            suppressed.append(inside)
    if suppressed and rng.random() < 0.5:
        rest = np.any(suppressed, axis=0)
        if size_of(world.records, rest) >= k:
            row[rest] = len(boxes)
    return Published(name, row)


def size_of(records: Records, inside: Mask) -> int:
    """Return the people (or trips) of some records."""
    if records.person is None:
        return int(records.volume[inside].sum())
    return len(np.unique(records.person[inside]))


def _split(
    rng: np.random.Generator, box: list[tuple[int, int]], kind: str, chance: float
) -> list[list[tuple[int, int]]]:
    dimensions = [d for d, (a, b) in enumerate(box) if b - a > 1 and (d < 2 or kind == "time-adaptive")]
    whole_time = kind != "time-adaptive" and box[2][1] - box[2][0] > 1
    if whole_time:  # steps apart, as in releases with fixed time steps
        parts = [[box[0], box[1], (t, t + 1)] for t in range(*box[2])]
    elif not dimensions or rng.random() > chance:
        return [box]
    else:
        d = dimensions[int(rng.integers(len(dimensions)))]
        a, b = box[d]
        cut = (a + b) // 2 if kind == "dyadic" else int(rng.integers(a + 1, b))
        parts = [[*box[:d], part, *box[d + 1 :]] for part in ((a, cut), (cut, b))]
    return [found for part in parts for found in _split(rng, part, kind, chance)]
