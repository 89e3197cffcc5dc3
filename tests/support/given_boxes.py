"""Flows with a partition that was made before, for the method that needs one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crowdveil.model.areas import Areas
from crowdveil.model.flows import Flows
from crowdveil.model.partition import BoxPartition


def with_boxes(data: Flows, seed: int) -> Flows:
    """Return flows with random disjoint boxes: for each group of origins another grouping of destinations; some are left out."""
    rng, n = np.random.default_rng(seed), len(data.zones)
    names: dict[tuple[int, ...], int] = {}
    boxes = []
    for origins in _groups(rng, n):
        for destinations in _groups(rng, n):
            if rng.random() < 0.8:
                boxes.append([names.setdefault(part, len(names)) for part in (origins, destinations)])
    tiles = [list(part) for part in names]
    labels = [data.zones.ids[part[0]] if len(part) == 1 else f"area {sum(1 << t for t in part):x}" for part in tiles]
    flat = np.array([t for part in tiles for t in part], np.int32)
    areas = Areas(data.zones, np.array(labels, dtype=object), np.cumsum([0, *map(len, tiles)]), flat)
    pairs = np.array(boxes, np.int32).reshape(-1, 2)
    partition = BoxPartition(areas, "all", np.array([0]), np.array([0, len(pairs)]), pairs[:, 0], pairs[:, 1])
    return replace(data, partition=partition)


def _groups(rng: Any, n: int) -> list[tuple[int, ...]]:
    part = rng.integers(0, 3, n)
    return [tuple(np.flatnonzero(part == p).tolist()) for p in range(3) if np.any(part == p)]
