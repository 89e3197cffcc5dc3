"""Reconstruction error and distribution distance of a release of 6,664 tiles, against plain dense matrices.

A matrix like `senegal_split` (44 million cells, 305,000 flows), released by `atg-dual`. The dense twin writes each row into
a matrix of all cells and subtracts. All other measures are timed too. The last figure is the ratio for E and D, assigning
flows to rows included.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from _bench import say

RUNS = 3


def dense(original: Any, release: Any) -> tuple[float, float]:
    """E and D by their definitions."""
    tiles = len(original.zones)
    v, w = np.zeros((tiles, tiles)), np.zeros((tiles, tiles))
    v[original.origin, original.destination] = original.volume
    areas = [release.areas.tiles[a:b] for a, b in zip(release.areas.offsets, release.areas.offsets[1:], strict=False)]
    for o, d, volume in zip(release.origin, release.destination, release.volume, strict=True):
        w[np.ix_(areas[o], areas[d])] = volume / (len(areas[o]) * len(areas[d]))
    return float(np.abs(w - v).sum() / v.sum()), float(np.abs(w / w.sum() - v / v.sum()).sum())


def sparse(original: Any, release: Any) -> tuple[float, float]:
    """E and D as we compute them."""
    from crowdveil.measures.od.comparison import OdComparison
    from crowdveil.measures.od.reconstruction import distance, error

    compared = OdComparison.between(original, release)
    return float(error(compared)[0]), float(distance(compared)[0])


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the best of some runs, and its result."""
    best, result = np.inf, None
    for _ in range(RUNS):
        start = time.perf_counter()
        result = job()
        best = min(best, time.perf_counter() - start)
    return best, result


def main() -> None:
    from crowdveil.io.flows import with_tree
    from crowdveil.measures.od.comparison import OdComparison
    from crowdveil.model.flows import Flows
    from crowdveil.progress import no_progress
    from crowdveil.registry import all_measures, find_method
    from crowdveil.experiments.profiles import make_profile

    original = with_tree(make_profile("senegal_split", np.random.default_rng(11), 1), "ward")
    method = find_method("atg-dual")
    release = method.run(original, method.params.checked({"k": 10}), np.random.default_rng(0), no_progress)
    say("flows", len(original))
    say("rows", len(release))
    sparse(original, release)  # compiles
    ours, theirs = timed(lambda: sparse(original, release)), timed(lambda: dense(original, release))
    assert np.allclose(ours[1], theirs[1]), (ours[1], theirs[1])  # noqa: S101
    compared = OdComparison.between(original, release)
    of_flows = {name: measure for name, measure in all_measures().items() if measure.takes is Flows}
    for name, measure in of_flows.items():
        measure.of(compared)
        fresh = timed(lambda measure=measure: measure.of(OdComparison(original, release, compared.row)))
        say(f"{name}_seconds", fresh[0])
    say("E", ours[1][0])
    say("D", ours[1][1])
    say("sparse_seconds", ours[0])
    say("dense_seconds", theirs[0])
    say("ratio", ours[0] / theirs[0])


if __name__ == "__main__":
    main()
