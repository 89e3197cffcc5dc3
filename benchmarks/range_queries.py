"""SID and AID of 5,000 movers with about 98 points each: 100,000 range queries for each of five windows, against a plain scan.

The scan looks at all legs for each query, with numpy, for a few queries of the same lists; both must find the same numbers. CPU
seconds of one query, so that threads and other work on the machine do not count. Before the ratio, what microaggregation loses.
The movers are on Oldenburg's roads where its network is available, otherwise on a synthetic grid of streets.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from _bench import oldenburg, say
from crowdveil.measures.base import MeasureRequest, scores
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.range_queries import RangeQueryParams, draw_queries
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import no_progress
from crowdveil.registry import find_measure, find_method
from crowdveil.solve.trajectory.distances import Paths
from crowdveil.solve.trajectory.path_tree import PathTree, RangeQueries
from crowdveil.synth.movers import make_movers

MOVERS, SCANNED = 5000, 20
KS, QUERIES = (2, 8), 10_000


class Scan:
    """All legs, looked at for every query."""

    def __init__(self, paths: Paths) -> None:
        of = np.repeat(np.arange(len(paths)), np.diff(paths.offsets))
        leg = np.flatnonzero(np.diff(of) == 0)
        self.of, self.paths = of[leg], len(paths)
        self.x, self.y, self.t = (column[leg] for column in (paths.x, paths.y, paths.t))
        self.vx, self.vy, self.lasts = (column[leg + 1] - column[leg] for column in (paths.x, paths.y, paths.t))
        self.square = self.vx**2 + self.vy**2
        self.first, self.last = paths.t[paths.offsets[:-1]], paths.t[paths.offsets[1:] - 1]

    def ask(self, x: float, y: float, radius: float, begin: float, end: float) -> tuple[int, int]:
        """How many paths are inside at some time, and at every time."""
        low, high = np.maximum(begin - self.t, 0) / self.lasts, np.minimum(end - self.t, self.lasts) / self.lasts
        dx, dy = self.x - x, self.y - y
        with np.errstate(all="ignore"):
            nearest = np.clip(np.nan_to_num(-(dx * self.vx + dy * self.vy) / self.square), low, high)
        far = [(dx + s * self.vx) ** 2 + (dy + s * self.vy) ** 2 for s in (nearest, low, high)]
        there = low <= high
        some = np.unique(self.of[there & (far[0] <= radius**2)])
        always = (self.first <= begin) & (self.last >= end)
        always[self.of[there & (np.maximum(far[1], far[2]) > radius**2)]] = False
        return len(some), int(always.sum())


def cpu(work: Any) -> tuple[Any, float]:
    """What work came to, and its CPU seconds."""
    begin = time.process_time()
    return work(), time.process_time() - begin


def with_same_answers(tree: PathTree, scan: Scan, queries: RangeQueries) -> float:
    """CPU seconds of the scan for some queries; the tree must agree."""
    few = RangeQueries(*queries.part(slice(0, SCANNED)))
    wanted, took = cpu(lambda: [scan.ask(*query) for query in zip(*few.part(slice(None)), strict=True)])
    found = np.stack(tree.counts(few), axis=1)
    # The scan divides, so that a border may fall to the other side.
    if np.abs(found - np.array(wanted)).sum() > 2:
        raise SystemExit("the tree and the scan find different trajectories")
    return took


def lost(data: Trajectories) -> None:
    """Distortions of releases by microaggregation."""
    method, params = find_method("microaggregation"), {"queries": QUERIES}
    for k in KS:
        release = method.run(data, method.params.checked({"k": k}), np.random.default_rng(0), no_progress)
        compared = TrajectoryComparison(data, release)
        for name in ("sid", "aid"):
            found = scores(MeasureRequest.of(find_measure(name), params), compared)
            shown = ", ".join(f"{value:.3f}" for value in found.pooled)
            say(f"microaggregation k = {k}, {name} by window", shown)


def main() -> None:
    """Run and print."""
    network = oldenburg()
    make_movers(network, 10, seed=0)
    data, took = cpu(lambda: make_movers(network, MOVERS, seed=0))
    say("movers", len(data))
    say("points", data.points)
    say("CPU seconds to make them", took)
    same = TrajectoryComparison(data, TrajectoryRelease(data.lon, data.lat, data.t, data.offsets))
    params = RangeQueryParams()
    every = [draw_queries(same, params, window) for window in range(len(params.windows))]
    PathTree.of(Paths(*(c[:2] for c in same.paths.points[:3]), np.array([0, 2]))).counts(
        RangeQueries(*every[0].part(slice(1)))
    )
    tree, took = cpu(lambda: PathTree.of(same.paths))
    say("CPU seconds to plant the tree", took)
    scan, tree_s, scan_s = Scan(same.paths), 0.0, 0.0
    for queries, part in zip(every, params.parts, strict=True):
        wall = time.perf_counter()
        (some, always), took = cpu(lambda asked=queries: tree.counts(asked))
        say(f"{part}: {len(queries):,} queries, CPU seconds", took)
        say(f"{part}: seconds", time.perf_counter() - wall)
        say(f"{part}: found by a query, at some time and all the time", f"{some.mean():.3f}, {always.mean():.3f}")
        tree_s += took / len(queries)
        scan_s += with_same_answers(tree, scan, queries) / SCANNED
    say("one query of each window, by scan, CPU ms", scan_s * 1e3)
    say("one query of each window, by tree, CPU ms", tree_s * 1e3)
    lost(data)
    say("times as fast as the scan", scan_s / tree_s)


if __name__ == "__main__":
    main()
