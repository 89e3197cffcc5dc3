"""Written releases of flows, made in memory, for tests of checkers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.flows import Flows

AREAS = {"a": ["a"], "b": ["b"], "ab": ["a", "b"], "c": ["c"]}


def written(
    rows: list[tuple[Any, ...]],
    steps: list[tuple[Any, ...]] | None = None,
    areas: dict[str, list[str]] = AREAS,
    k_unit: str = "people",
    **extra: Any,
) -> WrittenRelease:
    """A release of rows (time in seconds, origin, destination, volume, crowd[, state]).

    `steps` are (time, published, suppressed); without any, each step of a row is listed and nothing is suppressed.
    """
    columns = {
        "t": _times([r[0] for r in rows]),
        "origin_area": pa.array([r[1] for r in rows], pa.string()),
        "destination_area": pa.array([r[2] for r in rows], pa.string()),
        "volume": pa.array([r[3] for r in rows], pa.int64()),
        k_unit: pa.array([r[4] for r in rows], pa.int64()),
        "state": pa.array([r[5] if len(r) > 5 else "published" for r in rows], pa.string()),
        **extra,
    }
    if steps is None:
        times = list(dict.fromkeys(r[0] for r in rows))
        steps = [(t, sum(r[3] for r in rows if r[0] == t), 0) for t in times]
    listed = {
        "t": _times([s[0] for s in steps]),
        "published": pa.array([s[1] for s in steps], pa.int64()),
        "suppressed": pa.array([s[2] for s in steps], pa.int64()),
    }
    features = [
        {"properties": {"area": name, "tiles": tiles, "area_km2": 2.0 * len(tiles), "lon": 2.0 + i, "lat": 48.0}}
        for i, (name, tiles) in enumerate(areas.items())
    ]
    return WrittenRelease(Path("out"), pa.table(columns), pa.table(listed), features)


def _times(seconds: list[int | None]) -> Any:
    return pa.array([None if t is None else 1000 * t for t in seconds], pa.timestamp("ms", tz="UTC"))


def plain_crowd(data: Flows, rows: list[int]) -> int:
    """The crowd behind some flows, by sets."""
    if data.k_unit == "trips":
        return sum(int(data.people[i]) for i in rows)
    assert data.person_ids is not None and data.person_offsets is not None
    return len({m for i in rows for m in data.person_ids[data.person_offsets[i] : data.person_offsets[i + 1]].tolist()})


def honest(data: Flows, cuts: list[int], k: int) -> WrittenRelease:
    """A true release of flows: tiles between cuts are an area, and pairs of areas with a crowd of k are published."""
    names = data.zones.ids.tolist()
    bounds = [0, *sorted({c for c in cuts if 0 < c < len(names)}), len(names)]
    groups = [range(a, b) for a, b in pairwise(bounds)]
    areas = {f"area {i}": [names[t] for t in tiles] for i, tiles in enumerate(groups)}
    group_of = {t: i for i, tiles in enumerate(groups) for t in tiles}
    rows, steps, named = [], [], set()
    for step, t in enumerate(data.t.tolist()):
        boxes: dict[tuple[int, int], list[int]] = {}
        for i in range(data.offsets[step], data.offsets[step + 1]):
            boxes.setdefault((group_of[int(data.origin[i])], group_of[int(data.destination[i])]), []).append(i)
        out = {box: flows for box, flows in boxes.items() if plain_crowd(data, flows) >= k}
        for (o, d), flows in out.items():
            volume = int(data.volume[flows].sum())
            rows.append((t, f"area {o}", f"area {d}", volume, plain_crowd(data, flows)))
            named |= {o, d}
        here = slice(data.offsets[step], data.offsets[step + 1])
        published = sum(r[3] for r in rows if r[0] == t)
        if published:
            steps.append((t, published, int(np.sum(data.volume[here])) - published))
    return written(rows, steps, {f"area {i}": areas[f"area {i}"] for i in sorted(named)}, data.k_unit)
