"""Keys of the best partitions at several multipliers: those of plain Python, for any number of parts and suppressed trips."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels.od.several_multipliers import evaluate_keys
from crowdveil.kernels.od.structures import COLUMNS, PARTS, Splits
from crowdveil.model.arrays import Ints


def _plain(cost: Ints, splits: Splits, p: int, bits: int) -> list[int]:
    keys: list[int] = []
    for i, whole in enumerate(cost.tolist()):
        options = [PARTS * whole << bits]
        for split in range(splits.offsets[i], splits.offsets[i + 1]):
            lost, parts = int(splits.lost[split]), slice(splits.link_offsets[split], splits.link_offsets[split + 1])
            options.append((p * lost << bits) + lost + sum(keys[part] for part in splits.link[parts].tolist()))
        keys.append(min(options))
    return keys


def test_keys_are_those_of_plain_python() -> None:
    rng = np.random.default_rng(7)
    n, bits = 60, 20
    counts = np.where(np.arange(n) < 8, 0, rng.integers(0, 4, n))
    offsets = np.append(0, np.cumsum(counts))
    links = [rng.integers(0, i, rng.integers(0, 5)) for i in range(n) for _ in range(counts[i])]
    link_offsets = np.append(0, np.cumsum([len(parts) for parts in links]))
    lost = rng.integers(0, 100, len(links))
    splits = Splits(offsets, np.ones(len(links), np.int64), lost, link_offsets, np.concatenate(links))
    cost, p = rng.integers(0, 5000, n), np.array([0, 1, 700, 40_000])
    keys = np.full(n * COLUMNS, -1, np.int64)
    evaluate_keys(cost, splits, p, bits, keys)
    assert set(np.diff(link_offsets).tolist()) == {0, 1, 2, 3, 4} and len(p) == COLUMNS
    for column, multiplier in enumerate(p.tolist()):
        assert keys[column::COLUMNS].tolist() == _plain(cost, splits, multiplier, bits)
