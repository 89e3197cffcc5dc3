"""Methods that match points of trajectories, on long ones: 1,500 synthetic flights of 412 points in the mean, k = 3.

Flights between 40 airports of a continent in one day, each aircraft with about three of them, a point every few seconds, with
turns after the start and before the landing. CPU seconds of `log-cost-generalization` and `frechet-microaggregation`, after a
run on few flights that loads compiled kernels, and the share of pairs of trajectories that were compared point by point.

`python benchmarks/long_paths.py` prints them; the last line is the longer of the two as a share of 80 CPU seconds, in which
neither finished before. `... long_paths.py 500` takes that many flights.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from _bench import answer, measured, say

FLIGHTS, POINTS, K, SECONDS = 1_500, 412, 3, 80


def flights(n: int) -> Any:
    """Return synthetic flights in canonical order."""
    from crowdveil.model.canonical import canonical
    from crowdveil.model.projection import LocalProjection
    from crowdveil.model.trajectories import Trajectories

    rng = np.random.default_rng(3)
    airports = rng.uniform((-1_200_000, -800_000), (1_200_000, 800_000), (40, 2))
    popular = 1.0 / np.arange(1, 41)
    lengths = np.maximum(rng.gamma(4.0, POINTS / 4, n).astype(np.int64), 20)
    points, times = [], []
    for length in lengths.tolist():
        start, end = airports[rng.choice(40, 2, replace=False, p=popular / popular.sum())]
        way = np.linspace(0.0, 1.0, length)
        straight = start + way[:, None] * (end - start)
        across = np.array([-(end - start)[1], (end - start)[0]]) / np.hypot(*(end - start))
        bend = np.sin(np.pi * way) * rng.normal(0, 15_000) + np.exp(-30 * way) * rng.normal(0, 8_000)
        bend += np.exp(-30 * (1 - way)) * rng.normal(0, 8_000) - rng.normal(0, 60, length)
        points.append(straight + bend[:, None] * across)
        seconds = np.hypot(*(end - start)) / rng.uniform(190, 240)
        times.append(rng.integers(0, 80_000) + way * seconds)
    lon, lat = LocalProjection(10.0, 48.0).to_globe(*np.concatenate(points).T)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    aircraft = rng.integers(0, max(n // 3, 1), n)
    _, person = np.unique(aircraft, return_inverse=True)
    people = np.arange(person.max() + 1)
    t = np.concatenate(times).astype(np.int64) + 1_700_000_000
    return canonical(Trajectories(lon, lat, t, offsets, np.arange(n), person, people))


def run(method: str, n: int) -> dict[str, float]:
    """Return the CPU seconds of a method, and the number of its groups."""
    from crowdveil.progress import no_progress
    from crowdveil.registry import find_method

    found = find_method(method)
    seconds = 0.0
    for size in (12, n):
        data, params = flights(size), found.params.checked({"k": K})
        begin = time.process_time()
        release: Any = found.run(data, params, np.random.default_rng(0), no_progress)
        seconds = time.process_time() - begin
    classes = {release.lon[a:b].tobytes() for a, b in zip(release.offsets[:-1], release.offsets[1:], strict=True)}
    return {"seconds": seconds, "groups": len(classes), "published": len(release)}


def main(n: int) -> None:
    longest = 0.0
    for method in ("log-cost-generalization", "frechet-microaggregation"):
        found = measured(__file__, method, str(n))
        longest = max(longest, found["seconds"])
        say(f"{method}_cpu", found["seconds"], "s")
        say(f"{method}_peak", found["peak_mib"], "MiB")
        say(f"{method}_trajectories_per_group", found["published"] / found["groups"])
    say("ratio", longest / SECONDS)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        answer(lambda: run(sys.argv[1], int(sys.argv[2])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else FLIGHTS)
