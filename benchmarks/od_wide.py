"""Solving matrices with exact comparisons in 128 bits against the same kernels with comparisons in 64 bits, one thread.

Matrices are those of `od_speed.py`, which are small enough for 64 bits, so that the results must be equal. Each side runs in a
process of its own, in turns. Then two matrices that 64 bits are too small for: the size of commuting in New York State (5,411
zones, 32.7 million trips), and 100,000 tiles with 10¹² trips. The last figure is CPU time in 128 bits over that in 64.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

import numpy as np

from _bench import answer, best, measured, say

PROFILES = {"nyc": 12, "senegal": 6}
TARGET = {"nyc": 100.0, "senegal": 300.0}
REPEATS = 6
ROUNDS = 3
SIZES = {"new_york_state": (5_411, 400_000, 32_700_000), "largest": (100_000, 1_000_000, 10**12)}


def compare_in_64_bits() -> None:
    """Replace the comparison before any kernel that uses it is compiled."""
    from numba import njit

    from crowdveil.kernels.od import exact_compare

    @njit
    def sign_at(p: int, q: int, a: int, s: int) -> int:
        total = q * a + p * s
        return 1 if total > 0 else -1 if total < 0 else 0

    exact_compare.sign_at = sign_at


def solve_profiles() -> None:
    """In a process of its own: CPU seconds of both solvers, and a checksum of what they found."""
    from crowdveil.io.flows import with_tree
    from crowdveil.solve.od.boxes import BoxSpace
    from crowdveil.solve.od.region_space import RegionSpace
    from crowdveil.solve.od.step_matrix import Matrix
    from crowdveil.solve.od.targets import origins_near
    from crowdveil.experiments.profiles import make_profile

    prepared: list[tuple[BoxSpace, BoxSpace]] = []
    for name, count in PROFILES.items():
        flows = with_tree(make_profile(name, np.random.default_rng(11), count), "ward")
        system = RegionSpace.trees(flows)
        for step in range(count):
            matrix = Matrix.of(flows, step, system)
            given = BoxSpace.of_origins(matrix, origins_near(matrix, TARGET[name]), 10)
            prepared.append((BoxSpace.of(flows, step, system, 10), given))

    def solve() -> int:
        check = 0
        for pair in prepared:
            for boxes in pair:
                found = boxes.solve_for_budget(boxes.total // 10)
                check += found.cost + found.suppressed
        return check

    answer(lambda: {"result": {solve() for _ in range(REPEATS)}.pop()}, warm=solve)


def large_matrix(size: str) -> Any:
    """Return a made-up matrix of a size: gravity on scattered tiles."""
    from crowdveil.io.flows import with_tree
    from crowdveil.model.flows import Flows
    from crowdveil.model.zones import Zones

    tiles, flows, trips = SIZES[size]
    rng = np.random.default_rng(tiles)
    place = rng.normal(0, 0.3, (tiles, 2)) * rng.lognormal(0, 0.5, (tiles, 1))
    zones = Zones(np.arange(tiles).astype(str), 2 + place[:, 0], 48 + place[:, 1], kind="centroids")
    pull = rng.lognormal(0, 1.2, tiles)
    pairs = rng.choice(tiles, (2, 2 * flows), p=pull / pull.sum())
    keys = np.unique(pairs[0] * tiles + pairs[1])
    keys = np.sort(rng.permutation(keys)[:flows])
    weight = rng.pareto(1.2, len(keys)) + 0.01
    volume = np.maximum(np.rint(weight * (trips / weight.sum())).astype(np.int64), 1)
    origin, destination = ((part).astype(np.int32) for part in np.divmod(keys, tiles))
    return with_tree(Flows.from_rows(zones, np.zeros(len(keys), np.int64), origin, destination, volume), "ward")


def solve_large(size: str, method: str) -> None:
    """In a process of its own: one method on one large matrix."""
    from crowdveil.progress import no_progress
    from crowdveil.registry import find_method

    flows, found = large_matrix(size), find_method(method)
    params = found.params.checked({"v_target": flows.total // 2000} if method != "joint" else {})
    answer(lambda: len(found.run(flows, params, np.random.default_rng(0), no_progress).volume))


def main() -> None:
    match sys.argv[1:]:
        case ["64"]:
            os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp()
            compare_in_64_bits()
            return solve_profiles()
        case ["128"]:
            return solve_profiles()
        case [size, method]:
            return solve_large(size, method)
    runs: dict[str, list[dict[str, float]]] = {"64": [], "128": []}
    for _ in range(ROUNDS):
        for width, found in runs.items():
            found.append(measured(__file__, width))
    if len({run["result"] for found in runs.values() for run in found}) != 1:
        raise SystemExit("results differ")
    for width, found in runs.items():
        say(f"in_{width}_bits_ms", 1e3 * best(found, "cpu"))
    for size in SIZES:
        for method in ("atg-dual", "joint"):
            figures = measured(__file__, size, method)
            say(f"{size}_{method}_seconds", figures["cpu"])
            say(f"{size}_{method}_peak_mib", figures["peak_mib"])
    say("ratio", best(runs["128"], "cpu") / best(runs["64"], "cpu"))
    return None


if __name__ == "__main__":
    main()
