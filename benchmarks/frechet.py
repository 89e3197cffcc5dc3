"""The Fréchet/Manhattan distance and microaggregation by its couplings, on the scale of their paper.

`python benchmarks/frechet.py` reports how far the one pass is above the definition and clusters by sketched pivots are from those
by the exact path, makes the clusters of 5,000 trajectories of 98 points in the mean, k = 2 and 8 and 10 pivots, and times the
distance of paths of 100 points against the paper's programme in plain Python. The last line is how many times faster it is.

`growth` makes clusters of 1,000 to 20,000 trajectories with k = 8, or of the numbers that follow it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from _bench import SMALL, answer, measured, oldenburg, say

TRAJECTORIES, K, PIVOTS = (300 if SMALL else 5_000), 8, 10
GROWTH = (1_000, 2_000, 5_000, 10_000, 20_000)
FEW = 50 if SMALL else 200
"""Trajectories whose distances of all pairs are computed."""
POINTS = 100
PAIRS = 40


def movers(trajectories: int) -> Any:
    """Paths of movers on the roads of a town, 98 points in the mean."""
    from crowdveil.experiments.movers import make_movers
    from crowdveil.solve.trajectory.distances import Paths

    return Paths.of(make_movers(oldenburg(), trajectories, seed=0))


def distances() -> dict[str, float]:
    """Microseconds of a distance here, milliseconds in plain Python; best of several."""
    import numpy as np
    import plain_couplings

    from crowdveil.solve.trajectory.distances import FrechetManhattan, Paths

    rng = np.random.default_rng(2)
    x, y = np.cumsum(rng.standard_normal((2, PAIRS, POINTS)), axis=2)
    data = Paths(x.ravel(), y.ravel(), np.tile(np.arange(float(POINTS)), PAIRS), np.arange(PAIRS + 1) * POINTS)
    distance, to = FrechetManhattan(data), np.arange(1, PAIRS)
    listed = [list(zip(*(c.tolist() for c in data.one(i)), strict=True)) for i in range(PAIRS)]
    distance.from_one(0, to)
    ours, plain, found = [], [], []
    for j in range(1, PAIRS):
        begin = time.process_time()
        values = distance.from_one(0, to)
        ours.append((time.process_time() - begin) / len(to))
        begin = time.process_time()
        found.append(plain_couplings.one_pass(listed[0], listed[j])[0])
        plain.append(time.process_time() - begin)
    if found != values.tolist():
        sys.exit("the distance is not that of the paper's programme")
    return {"us": 1e6 * min(ours), "plain_ms": 1e3 * min(plain)}


def definition() -> dict[str, float]:
    """How far one pass is above the definition, of pairs of movers and, if there are any, of cab rides."""
    import numpy as np

    from crowdveil.io.trajectories import read_trajectories
    from crowdveil.solve.trajectory.distances import FrechetManhattan, Paths

    cabs = Path(__file__).resolve().parents[2] / "shared/data/sf_cabs/cabs_dataset_20080608_0700_0715.csv"
    found = {}
    sources = {"movers": movers(FEW)} | ({"cabs": Paths.of(read_trajectories(str(cabs)))} if cabs.exists() else {})
    for name, data in sources.items():
        those, to = np.arange(0, len(data), len(data) // 30), np.arange(len(data))
        for resampled in (False, True):
            both = (FrechetManhattan(data, e, resampled) for e in (False, True))
            one, exact = (np.array([distance.from_one(i, to) for i in those.tolist()]) for distance in both)
            far = exact > 0
            over = one[far] / exact[far] - 1
            near = over[exact[far] <= np.quantile(exact[far], 0.05)]
            label = f"{name}_{'resampled' if resampled else 'as_they_are'}"
            found |= {f"{label}_mean": 100 * over.mean(), f"{label}_most": 100 * over.max()}
            found |= {f"{label}_differ": 100 * (over > 1e-9).mean(), f"{label}_mean_of_near": 100 * near.mean()}
    return found


def paths_of_pivots() -> dict[str, float]:
    """Mean distance to the pivot, by sketched and by exact paths and by one random pivot, over several seeds."""
    import numpy as np

    from crowdveil.solve.trajectory.distances import FrechetManhattan
    from crowdveil.solve.trajectory.pivots import Clustering

    distance = FrechetManhattan(movers(FEW), resampled=True)
    found = {}
    for name, pivots, path in (("sketched", PIVOTS, "sketched"), ("exact", PIVOTS, "exact"), ("one", 1, "sketched")):
        clustering, losses = Clustering(distance, np.arange(FEW), 3, pivots, path), []  # type: ignore[arg-type]
        for seed in range(5):
            made = clustering.clusters("join", np.random.default_rng(seed))
            far = [distance.from_one(p, np.flatnonzero(made.cluster == c)) for c, p in enumerate(made.pivot.tolist())]
            losses.append(np.concatenate(far).mean())
        found[name] = float(np.mean(losses))
    return found


def clusters(trajectories: int, k: int) -> dict[str, float]:
    """Clusters of that many movers."""
    import numpy as np

    from crowdveil.solve.trajectory import pivots
    from crowdveil.solve.trajectory.distances import FrechetManhattan

    distance = FrechetManhattan(movers(trajectories), resampled=True)
    clustering = pivots.Clustering(distance, np.arange(trajectories), k, PIVOTS)
    return {"clusters": len(clustering.clusters("join", np.random.default_rng(0)).pivot)}


def report_clusters(trajectories: int, k: int = K) -> None:
    found = measured(__file__, "clusters", str(trajectories), str(k))
    label = f"trajectories_{trajectories}" + (f"_k{k}" if k != K else "")
    say(f"{label}_wall", found["wall"] / 60, "minutes")
    say(f"{label}_cpu", found["cpu"] / 60, "minutes")
    say(f"{label}_peak", found["peak_mib"], "MiB")


def main() -> None:
    above = measured(__file__, "definition")
    for name, value in above.items():
        if name not in ("wall", "cpu", "peak_mib"):
            say(f"one_pass_above_definition_{name}", value, "%")
    paths = measured(__file__, "paths_of_pivots")
    for name in ("sketched", "exact", "one"):
        say(f"distance_to_pivot_{name}", paths[name], "m")
    for k in (2, K):
        report_clusters(TRAJECTORIES, k)
    found = measured(__file__, "distances")
    say("distance_of_100_points", found["us"], "µs")
    say("distance_in_plain_python", found["plain_ms"], "ms")
    say("ratio", 1e3 * found["plain_ms"] / found["us"])


JOBS = {"distances": distances, "definition": definition, "paths_of_pivots": paths_of_pivots}

if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "growth":
        for number in map(int, sys.argv[2:] or GROWTH):
            report_clusters(number)
    elif sys.argv[1] == "clusters":
        number, crowd = map(int, sys.argv[2:])
        answer(lambda: clusters(number, crowd), lambda: clusters(40, crowd))
    else:
        answer(JOBS[sys.argv[1]])
