"""Microaggregation of San Francisco's cabs, whole and by parts of time, against the CPU seconds that mdl-anonymizer takes.

Ours is measured from reading the file to the verified release, without attack and report, which the peer has not either; in a
process that has done a small run before, the best of several runs. The peer's figures were measured once on two cores of the same
kind, and two seconds of imports are taken off. The ratio is that of CPU seconds; the last line is the least one on the sets of
6,581 and 23,830 trajectories. On the set of 643 the peer takes about as long as its imports, so that its ratios say little.

The loss next to it is the root mean square over all trajectories of the spatio-temporal distance to what is published for them.
The peer picks points in a way that misses the last ones, so ours is reported by its picks too ("their points"). It counts
trajectories, so that some of its groups are one person's; ours counts people, and with `count_trajectories` what it counts. It
sorts trajectories into parts by their first time, where MobiDataLab has mean time: both are given. The peer's λ for measuring is
not known; with λ = 0.00658, taken here, time is worth a few meters.

The data is looked for in ../shared/data/sf_cabs; without it there is nothing to measure.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _bench import SMALL, answer, measured, say

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "sf_cabs"
FILES = {
    "S": "cabs_dataset_20080608_0700_0715.csv",
    "M": "cabs_dataset_20080608_0800_1200.parquet",
    "L": "cabs_dataset_20080608.parquet",
}
LAMBDA = 0.00657901067783612
"""Of the peer's example for the set of 643 trajectories."""
IMPORTS = 2.0
PEER = {
    ("whole", 3): {"S": 5.0, "M": 416.0},
    ("whole", 10): {"S": 2.7, "M": 144.0},
    ("900", 3): {"S": 4.0, "M": 41.0, "L": 104.0},
    ("900", 10): {"S": 2.6, "M": 18.0},
    ("60", 3): {"S": 2.6, "M": 10.0, "L": 34.0},
    ("60", 10): {"S": 2.1, "M": 10.0, "L": 24.0},
}
PEER_RMSE = {
    ("S", "whole", 3): 881,
    ("S", "whole", 10): 1524,
    ("S", "60", 3): 1591,
    ("M", "60", 3): 2007,
    ("M", "60", 10): 2857,
}
ROUNDS = 1 if SMALL else 7
SIZES = ("S",) if SMALL else tuple(FILES)


def request(size: str, how: str, k: int, folder: str, **more: Any) -> Any:
    """A run; the release is in the form that the data is in."""
    from crowdveil.run.pipeline import Request

    name = "microaggregation" if how == "whole" else "time-partitioned-microaggregation"
    peers = {"time_weight": LAMBDA, "aggregation": "mean-trajectory"}
    parameters = {"k": k, **(peers if how == "whole" else {"interval_s": int(how)}), **more}
    table_format: Any = "csv" if size == "S" else "parquet"
    # The peer neither attacks what it made nor reports on it.
    return Request(
        name,
        str(DATA / FILES[size]),
        Path(folder) / "out",
        parameters,
        options={"format": table_format, "attack": False, "report": False},
    )


def run(size: str, how: str, k: int, **more: Any) -> Any:
    from crowdveil.run import pipeline

    with tempfile.TemporaryDirectory() as folder:
        return pipeline.run(request(size, how, k, folder, **more))


def best_cpu(size: str, how: str, k: int) -> float:
    """CPU seconds of the run that the machine's other work disturbed least."""
    taken = []
    for _ in range(1 if (size, how) == ("L", "whole") else ROUNDS):
        start = time.process_time()
        run(size, how, k)
        taken.append(time.process_time() - start)
    return min(taken)


def losses(size: str, how: str, k: int, **more: Any) -> tuple[float, float]:
    """RMSE by our distance, and by the peer's picks of points."""
    import numpy as np

    from crowdveil.io.trajectories import read_trajectories
    from crowdveil.solve.trajectory.distances import Paths, SpatioTemporal

    data, release = read_trajectories(str(DATA / FILES[size])), run(size, how, k, **more).release
    distance = SpatioTemporal.of(Paths.of(data), LAMBDA)
    x, y = data.projection.to_plane(release.lon, release.lat)
    made = Paths(x, y, (release.t - data.t.min()).astype(np.float64), release.offsets)
    ours, theirs = [], []
    for i, source in enumerate(release.source.tolist()):
        ours.append(float(distance.between(made.one(i), np.array([source]))[0]))
        theirs.append(_by_their_points(distance.paths.one(source), made.one(i)))
    return tuple(math.sqrt(sum(d * d for d in found) / len(found)) for found in (ours, theirs))  # type: ignore[return-value]


def _by_their_points(a: Any, b: Any) -> float:
    """The distance with point round(i·p/h) of each, at most the last."""
    h = round((len(a[0]) + len(b[0])) / 2)
    worth = LAMBDA * (_speed(*a) + _speed(*b)) / 2
    total = 0.0
    for step in range(h):
        i, j = (min(round(step * len(path[0]) / h), len(path[0]) - 1) for path in (a, b))
        total += (math.hypot(a[0][i] - b[0][j], a[1][i] - b[1][j]) + worth * abs(a[2][i] - b[2][j])) ** 2
    return math.sqrt(total / h)


def _speed(x: Any, y: Any, t: Any) -> float:
    legs = range(1, len(x))
    speeds = [math.hypot(x[e] - x[e - 1], y[e] - y[e - 1]) / (t[e] - t[e - 1]) if t[e] > t[e - 1] else 0 for e in legs]
    return sum(speeds) / len(speeds) if speeds else 0.0


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"there is no {DATA}, so there is nothing to measure")
    ratios = []
    for size in SIZES:
        for (how, k), peer in PEER.items():
            label = f"{size}_{how if how == 'whole' else 'parts_of_' + how + '_s'}_k{k}"
            figures = measured(__file__, "run", size, how, str(k))
            cpu = figures["best_cpu"]
            say(f"{label}_cpu", cpu, "s")
            say(f"{label}_peak", figures["peak_mib"], "MiB")
            if size in peer:
                ratio = (peer[size] - IMPORTS) / cpu
                say(f"{label}_peer_over_ours", ratio)
                ratios += [ratio] if size != "S" or SMALL else []
    for (size, how, k), peer_loss in PEER_RMSE.items():
        if size not in SIZES:
            continue
        for counts in (False, True):
            for by in (None,) if how == "whole" else ("mean-time", "first-time"):
                more = {} if by is None else {"parts_by": by}
                ours, theirs = losses(size, how, k, count_trajectories=counts, **more)
                label = f"{size}_{how}_k{k}_{'trajectories' if counts else 'people'}{'' if by is None else '_by_' + by}_rmse"
                say(label, f"{ours:,.0f} m, {theirs:,.0f} by their points; the peer's {peer_loss:,}")
    say("ratio", min(ratios))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        _, _, size, how, k = sys.argv
        answer(lambda: {"best_cpu": best_cpu(size, how, int(k))}, lambda: run("S", how, int(k)))
