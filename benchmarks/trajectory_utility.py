"""What microaggregation loses at equal k: with our defaults, with the weight 0.1, and with the semantics of MobiDataLab.

MobiDataLab's semantics are its formula for the weight of time, means, and k of trajectories, easier than k of people. For each
data set and k: the root mean square distance of published trajectories from their originals in space (meters) and in time
(seconds), and SID, the distortion of range queries, in windows of 300, 600, 1,800 and 3,600 s. Each release is also tested by a
count of the people of each equivalence class that shares no code with the method. The last line is the mean, over data sets and
k, of our RMSE in space over that of MobiDataLab's semantics.

    python benchmarks/trajectory_utility.py            # the small data sets
    python benchmarks/trajectory_utility.py S M L      # which data sets: S, M, L, O (5,000 movers on the roads of Oldenburg)
    python benchmarks/trajectory_utility.py table S    # every measure of mdl-anonymizer's comparison, next to ours

Cab files are looked for in ../shared/data/sf_cabs; without them there are the movers alone.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from _bench import SMALL, oldenburg, say
from crowdveil.engine.progress import no_progress
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.canonical import canonical
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import find_measure, find_method
from crowdveil.solve.trajectory.distances import SpatioTemporal
from crowdveil.solve.trajectory.distances.nearest import NearestNeighbors

CABS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sf_cabs"
FILES = {
    "S": "cabs_dataset_20080608_0700_0715.csv",
    "M": "cabs_dataset_20080608_0800_1200.parquet",
    "L": "cabs_dataset_20080608.parquet",
}
MOVERS, QUERIES, WINDOWS = (100 if SMALL else 5_000), (100 if SMALL else 5_000), "300,600,1800,3600"
KS = {"S": (3, 5, 10), "M": (3, 5, 10), "L": (3,), "O": (4,)}
OURS: dict[str, Any] = {}
THEIRS: dict[str, Any] = {
    "time_weight": "mobidatalab", "count_trajectories": True, "aggregation": "mean-trajectory",
}  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {
    "auto": OURS,
    "0.1": {"time_weight": 0.1},
    "mobidatalab": THEIRS,
    "auto, 2 % suppressed": {"suppress": "2%"},
}
TABLE = ("rmse", "record-linkage", "propensity-score", "trajectories-removed")


def data_set(name: str) -> Trajectories:
    """Return a data set in canonical order, as a run reads it."""
    from crowdveil.io.trajectories import read_trajectories

    if name == "O":
        return canonical(make_movers())
    return canonical(read_trajectories(str(CABS / FILES[name])))


def make_movers() -> Trajectories:
    """Return movers on the roads of Oldenburg."""
    from crowdveil.experiments.movers import make_movers as make

    return make(oldenburg(), MOVERS, seed=1)


def released(data: Trajectories, k: int, parameters: dict[str, Any]) -> tuple[TrajectoryRelease, float]:
    """Return a release, and its CPU seconds."""
    method = find_method("microaggregation")
    begin = time.process_time()
    release: Any = method.run(
        data, method.params.checked({"k": k, **parameters}), np.random.default_rng(1), no_progress
    )
    return release, time.process_time() - begin


def require_people(data: Trajectories, release: TrajectoryRelease, k: int, *, people: bool) -> None:
    """Stop unless every equivalence class has k people, or trajectories where those are counted."""
    behind: dict[bytes, set[int]] = {}
    points = np.column_stack([release.lon, release.lat, release.t.astype(np.float64)])
    for i, source in enumerate(np.asarray(release.source).tolist()):
        content = points[release.offsets[i] : release.offsets[i + 1]].tobytes()
        behind.setdefault(content, set()).add(int(data.person[source]) if people else source)
    if min(map(len, behind.values()), default=k) < k:
        raise SystemExit("an equivalence class has fewer than k people")


def root_mean_square(far: Floats) -> float:
    return float(np.sqrt(np.mean(far * far)))


def losses(data: Trajectories, release: TrajectoryRelease) -> tuple[float, float, list[float]]:
    """Return RMSE in space and in time, and SID in each window."""
    compared = TrajectoryComparison(data, release)
    source, own, paths = compared.source, compared.published, compared.paths
    space = NearestNeighbors(SpatioTemporal.of(paths, 0.0), own).to_each(source)
    flat, flat_own = (replace(p, x=np.zeros_like(p.x), y=np.zeros_like(p.y)) for p in (paths, own))
    # The speed of a pair is the mean of 1 and 0: a second counts 1.
    seconds = NearestNeighbors(SpatioTemporal(flat, 2.0, np.ones(len(flat))), flat_own).to_each(source)
    sid = find_measure("sid")
    params = sid.params.checked({"queries": QUERIES, "windows_s": WINDOWS}) if sid.params else None
    return root_mean_square(space), root_mean_square(seconds), sid.of(compared, params)[0].tolist()


def compare(names: list[str]) -> float:
    """Print the losses of each way on each data set; return the mean ratio of RMSE."""
    ratios = []
    for name in names:
        data = data_set(name)
        say(f"{name} trajectories", len(data))
        for k in KS[name]:
            found = {}
            for way, parameters in WAYS.items():
                release, seconds = released(data, k, parameters)
                require_people(data, release, k, people=not parameters.get("count_trajectories", False))
                meters, late, sid = losses(data, release)
                found[way] = meters
                weight, left = release.facts["time_weight"], 100 * (1 - len(release) / len(data))
                shown = f"{meters:,.0f} m, {late:,.0f} s, SID {' '.join(f'{v:.3f}' for v in sid)}"
                say(f"{name} k = {k}, {way}", f"{shown}; weight {weight:g}, {left:.1f} % removed, {seconds:.1f} CPU s")
            ratios.append(found["auto"] / found["mobidatalab"])
            say(f"{name} k = {k}, ratio", ratios[-1])
    return float(np.mean(ratios))


def table(names: list[str]) -> float:
    """Print each measure for our defaults and for the semantics of MobiDataLab; return the mean ratio of RMSE."""
    ratios = []
    for name in names:
        data = data_set(name)
        for k in KS[name]:
            rows = {}
            for way, parameters in (("ours", OURS), ("mobidatalab", THEIRS)):
                release, _ = released(data, k, parameters)
                meters, _, sid = losses(data, release)
                rows[way] = meters
                say(f"{name} k = {k}, {way}, rmse in space", meters, "m")
                say(f"{name} k = {k}, {way}, SID", " ".join(f"{v:.3f}" for v in sid))
                compared = TrajectoryComparison(data, release)
                for measure in TABLE:
                    say(f"{name} k = {k}, {way}, {measure}", float(find_measure(measure).of(compared)[0]))
            ratios.append(rows["ours"] / rows["mobidatalab"])
    return float(np.mean(ratios))


if __name__ == "__main__":
    wanted = [name for name in sys.argv[1:] if name != "table"]
    names = wanted or (["S", "M", "O"] if CABS.is_dir() and not SMALL else ["O"])
    say("ratio", (table if "table" in sys.argv else compare)(names))
