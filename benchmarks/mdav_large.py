"""Exact MDAV on journeys of the shape of the Navitia set: 192,855 trajectories, about 759,000 points, k = 3.

The document that describes the method calls this unfeasible. Here nearly no distance is computed: boxes around the ends and the
halves of trajectories, in a tree, show of most that they are neither the farthest nor among the nearest, and most others are
given up after a few points. What is found is what all distances would have found; tests compare the two.

The last line is the share of ten minutes that it
took. `... growth` makes releases of 10,000, 100,000 and 1,000,000 trajectories of a month (`crowdveil synth trajectories`), or of
the numbers that follow it; its last line is the share of 25 CPU minutes that the largest took.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path
from typing import Any

from _bench import SMALL, answer, data_file, measured, say

TRAJECTORIES = 1_000 if SMALL else 192_855
MEAN_POINTS = 759_123 / 192_855
MINUTES = 10
GROWTH, GROWTH_MINUTES = (10_000, 100_000, 1_000_000), 25


def make(path: Path, trajectories: int) -> None:
    """Journeys as a planner answers them: between popular stops of a few cities, over stops on the way, in four weeks."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(6)
    cities = np.array([[2.35, 48.86], [4.84, 45.76], [3.06, 50.63], [-1.68, 48.11]])
    of_city = rng.choice(len(cities), 8_000, p=[0.7, 0.12, 0.1, 0.08])
    stops = (cities[of_city] + rng.standard_normal((8_000, 2)) * [0.12, 0.08]).round(5)
    popular = 1.0 / np.arange(1, 8_001) ** 0.7
    by_city = [np.flatnonzero(of_city == c) for c in range(len(cities))]
    start = rng.choice(8_000, trajectories, p=popular / popular.sum())
    end = np.array([rng.choice(by_city[c]) for c in of_city[start]])
    points = 2 + rng.poisson(MEAN_POINTS - 2, trajectories)
    share = np.concatenate([np.arange(p) / (p - 1) for p in points])
    journey = np.repeat(np.arange(trajectories), points)
    way = stops[start][journey] + share[:, None] * (stops[end] - stops[start])[journey]
    inner = (share > 0) & (share < 1)
    way[inner] += rng.standard_normal((int(inner.sum()), 2)) * 0.004
    hour = rng.choice([8, 9, 12, 17, 18, 21], trajectories) * 3600 + rng.normal(0, 3600, trajectories)
    leaves = 1_700_000_000 // 86_400 * 86_400 + rng.integers(0, 28, trajectories) * 86_400 + hour
    meters = np.hypot(*((stops[end] - stops[start]) * [73_000, 111_000]).T)
    t = leaves[journey] + share * (300 + meters / rng.uniform(4, 9, trajectories))[journey]
    table = {
        "lat": way[:, 1].round(5),
        "lon": way[:, 0].round(5),
        "timestamp": pa.array(t.astype(np.int64), pa.timestamp("s")),
        "trajectory_id": journey,
        "user_id": rng.integers(0, trajectories // 3, trajectories)[journey],
    }
    pq.write_table(pa.table(table), path)


def month(path: Path, trajectories: int) -> None:
    """Drives of a month in a city, each person with about ten of them."""
    from crowdveil.synth.city import City
    from crowdveil.synth.trajectories import write_trajectories

    city = City.make(0, people=max(trajectories // 10, 1_000))
    write_trajectories(city, path, trajectories, days=30, seed=0)


def whole(path: str) -> dict[str, float]:
    """The release of a file, without counts."""
    return {"published": run("microaggregation", path)}


def by_parts(path: str) -> dict[str, float]:
    return {"published": run("time-partitioned-microaggregation", path)}


def run(method: str, path: str, **parameters: Any) -> int:
    from crowdveil.run import pipeline

    with tempfile.TemporaryDirectory() as folder:
        request = pipeline.Request(method, path, Path(folder) / "out", {"k": 3, **parameters})
        return len(pipeline.run(request).release)


def points_of(path: str) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def growth(sizes: list[int]) -> None:
    """Print CPU minutes and memory of releases of several sizes, and the exponent of time between them."""
    before: tuple[int, float] | None = None
    for n in sizes:
        path = str(data_file(f"month_{n}.parquet", lambda file, n=n: month(file, n)))  # type: ignore[misc]
        found = measured(__file__, "whole", path)
        say(f"{n}_trajectories_points", points_of(path))
        say(f"{n}_trajectories_cpu", found["cpu"] / 60, "minutes")
        say(f"{n}_trajectories_peak", found["peak_mib"], "MiB")
        if before:
            say(f"{n}_trajectories_exponent", math.log(found["cpu"] / before[1]) / math.log(n / before[0]))
        before = n, found["cpu"]
    say("ratio", before[1] / 60 / GROWTH_MINUTES if before else 0.0)


def main(trajectories: int) -> None:
    path = str(data_file(f"journeys_{trajectories}.parquet", lambda file: make(file, trajectories)))
    points = points_of(path)
    say("trajectories", trajectories)
    say("points", points)
    parts = measured(__file__, "by_parts", path)
    say("parts_of_900_s_wall", parts["wall"], "s")
    say("parts_of_900_s_cpu", parts["cpu"], "s")
    say("parts_of_900_s_peak", parts["peak_mib"], "MiB")
    all_at_once = measured(__file__, "whole", path)
    say("whole_wall", all_at_once["wall"] / 60, "minutes")
    say("whole_cpu", all_at_once["cpu"] / 60, "minutes")
    say("whole_peak", all_at_once["peak_mib"], "MiB")
    say("ratio", all_at_once["wall"] / 60 / MINUTES)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main(TRAJECTORIES)
    elif sys.argv[1] == "growth":
        growth([int(n) for n in sys.argv[2:]] or list(GROWTH))
    else:
        answer(lambda: {"whole": whole, "by_parts": by_parts}[sys.argv[1]](sys.argv[2]))
