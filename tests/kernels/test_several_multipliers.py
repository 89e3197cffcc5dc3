"""Keys of the best partitions at several multipliers: those of plain Python, for any number of parts and suppressed trips."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels.od.several_multipliers import LATER, evaluate_keys, read_key
from crowdveil.kernels.od.structures import CHOICE_BITS, COLUMNS, PARTS, Splits
from crowdveil.model.arrays import Ints


def _plain(cost: Ints, splits: Splits, p: int, bits: int) -> list[tuple[int, int]]:
    """Return the key of each box without what becomes of it, and this: the first choice with the least key, at most LATER."""
    keys: list[tuple[int, int]] = []
    for i, whole in enumerate(cost.tolist()):
        options = [PARTS * whole << bits]
        for split in range(splits.offsets[i], splits.offsets[i + 1]):
            lost, parts = int(splits.lost[split]), slice(splits.link_offsets[split], splits.link_offsets[split + 1])
            options.append((p * lost << bits) + lost + sum(keys[part][0] for part in splits.link[parts].tolist()))
        keys.append((min(options), min(options.index(min(options)), LATER)))
    return keys


def test_keys_are_those_of_plain_python() -> None:
    rng = np.random.default_rng(7)
    n, bits = 60, 20
    counts = np.where(np.arange(n) < 8, 0, rng.integers(0, 6, n))
    offsets = np.append(0, np.cumsum(counts))
    links = [rng.integers(0, i, rng.integers(0, 5)) for i in range(n) for _ in range(counts[i])]
    link_offsets = np.append(0, np.cumsum([len(parts) for parts in links]))
    lost = rng.integers(0, 100, len(links))
    splits = Splits(offsets, np.ones(len(links), np.int64), lost, link_offsets, np.concatenate(links))
    cost, p = rng.integers(0, 5000, n), np.array([0, 1, 700, 40_000])
    keys = np.full(n * COLUMNS, -1, np.int64)
    evaluate_keys(cost, splits, p, bits, keys)
    assert set(np.diff(link_offsets).tolist()) == {0, 1, 2, 3, 4} and len(p) == COLUMNS
    assert set((keys & LATER).tolist()) == {0, 1, 2, LATER}
    for column, multiplier in enumerate(p.tolist()):
        found = keys[column::COLUMNS]
        assert [*zip(found >> CHOICE_BITS, found & LATER, strict=True)] == _plain(cost, splits, multiplier, bits)


def test_the_largest_multipliers_and_volumes_are_multiplied_exactly() -> None:
    p, lost = np.array([0, 1, 2**20 + 1, 2**32 - 1]), 2**13 - 1
    splits = Splits(
        np.array([0, 1]), np.ones(1, np.int64), np.array([lost]), np.zeros(2, np.int64), np.empty(0, np.int64)
    )
    keys = np.empty(COLUMNS, np.int64)
    evaluate_keys(np.array([2**43]), splits, p, 13, keys)
    assert [read_key(key, multiplier, 13) for key, multiplier in zip(keys, p, strict=True)] == [(0, lost)] * COLUMNS
    evaluate_keys(np.array([2**26]), splits._replace(lost=np.array([2**28 - 1])), np.arange(COLUMNS), 28, keys)
    assert [key >> 28 + CHOICE_BITS for key in keys] == [p * (2**28 - 1) for p in range(COLUMNS)]
