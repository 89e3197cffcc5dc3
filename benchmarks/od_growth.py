"""Time to solve one matrix of 10³, 10⁴, 10⁵ and 10⁶ flows on one map of 3,000 tiles: `atg-dual` and `joint`, one thread.

Printed are milliseconds, and microseconds a flow; and the peak memory of a matrix like `senegal_split`. The last figure is
microseconds a flow of `joint` at 10⁶ flows over those at 10⁴.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from _bench import answer, measured, say

TILES = 3000
FLOWS = (10**3, 10**4, 10**5, 10**6)


def matrix(flows: int) -> Any:
    """A matrix of a number of flows: gravity on scattered tiles, small volumes."""
    from crowdveil.io.flows import with_tree
    from crowdveil.model.flows import Flows
    from crowdveil.model.zones import Zones

    rng = np.random.default_rng(flows)
    place = rng.normal(0, 0.3, (TILES, 2)) * rng.lognormal(0, 0.5, (TILES, 1))
    zones = Zones(np.arange(TILES).astype(str), 2 + place[:, 0], 48 + place[:, 1], kind="centroids")
    pull = rng.lognormal(0, 1.2, TILES)
    pairs = rng.choice(TILES, (2, 3 * flows), p=pull / pull.sum())
    keys = np.unique(pairs[0] * TILES + pairs[1])
    keys = np.sort(rng.permutation(keys)[:flows])
    volume = rng.zipf(2.2, len(keys)).clip(max=200)
    made = Flows.from_rows(
        zones, np.zeros(len(keys), np.int64), (keys // TILES).astype(np.int32), (keys % TILES).astype(np.int32), volume
    )
    return with_tree(made, "ward")


def solve(method: str, flows: Any) -> None:
    """One matrix on one thread."""
    from crowdveil import engine
    from crowdveil.progress import no_progress
    from crowdveil.registry import find_method

    found = find_method(method)
    parameters = {"v_target": 300} if method == "atg-dual" else {}
    with engine.use(engine.LocalEngine(threads=1)):
        found.run(flows, found.params.checked(parameters), np.random.default_rng(0), no_progress)


def split_job(method: str) -> None:
    """In a process of its own: a matrix like senegal_split."""
    from crowdveil.io.flows import with_tree
    from crowdveil.experiments.profiles import make_profile

    flows = with_tree(make_profile("senegal_split", np.random.default_rng(11), 1), "ward")
    answer(lambda: solve(method, flows))


def main() -> None:
    if len(sys.argv) == 2:
        split_job(sys.argv[1])
        return
    each: dict[tuple[str, int], float] = {}
    for flows in FLOWS:
        made = matrix(flows)
        for method in ("atg-dual", "joint"):
            solve(method, made)
            taken = []
            for _ in range(3):
                begin = time.process_time()
                solve(method, made)
                taken.append(time.process_time() - begin)
            each[method, flows] = 1e6 * min(taken) / len(made)
            say(f"{method}_{len(made)}_flows_ms", 1e3 * min(taken))
            say(f"{method}_{len(made)}_microseconds_a_flow", each[method, flows])
    for method in ("atg-dual", "joint"):
        found = measured(__file__, method)
        say(f"senegal_split_{method}_seconds", found["wall"])
        say(f"senegal_split_{method}_peak_mib", found["peak_mib"])
    say("ratio", each["joint", 10**6] / each["joint", 10**4])


if __name__ == "__main__":
    main()
