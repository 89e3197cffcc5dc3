"""People who walk through one small town, and what methods publish of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.engine.progress import no_progress
from crowdveil.methods.base import Method
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import METHODS, find_method

HERE = 10.0
"""The longitude that data is made around."""
TRACKS = [m for m in map(find_method, METHODS) if m.takes is Trajectories]


def people(rng: np.random.Generator, n: int = 30) -> Trajectories:
    """Walks through one small town, most of them near one another, no two points at one time of one person."""
    lengths = rng.integers(3, 9, n)
    points = int(lengths.sum())
    lon = HERE + np.round(rng.normal(0, 0.01, n).repeat(lengths) + rng.normal(0, 0.004, points), 6)
    lat = 50 + np.round(rng.normal(0, 0.006, n).repeat(lengths) + rng.normal(0, 0.003, points), 6)
    t = np.concatenate([np.sort(rng.choice(1800, m, replace=False)) for m in lengths]) + 1_700_000_000
    person = rng.integers(0, n, n)
    names, person = np.unique(person, return_inverse=True)
    return Trajectories(lon, lat, t, np.append(0, np.cumsum(lengths)), np.arange(n), person, names)


def walks(release: TrajectoryRelease, lon: Any) -> list[tuple[Any, ...]]:
    parts = [slice(a, b) for a, b in zip(release.offsets[:-1], release.offsets[1:], strict=True)]
    return sorted(
        (tuple(release.t[p].tolist()), tuple(release.lat[p].tolist()), tuple(np.asarray(lon)[p].tolist()))
        for p in parts
    )


def released(method: Method, data: Any) -> Any:
    k: dict[str, Any] = {"k": 2} if "k" in method.params.model_fields else {}
    if method.name == "w4m":
        k["delta_m"] = 0  # else it draws points of a disk, which a mirror does not change
    return method.run(data, method.params.checked(k), np.random.default_rng(5), no_progress)
