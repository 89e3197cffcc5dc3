"""A sweep of `joint` over ten budgets against one over a single budget, on the same matrices in memory, one thread.

Printed are CPU seconds of both: the methods, and the measures of every trial. The last figure is ten budgets over one.
"""

from __future__ import annotations

import time

import numpy as np

from _bench import say

BUDGETS = [f"{share}%" for share in (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)]
ROUNDS = 4


def main() -> None:
    from crowdveil import engine
    from crowdveil.comparison.flows import sample_matrices
    from crowdveil.comparison.sweep import run_sweep, sweep_candidates
    from crowdveil.synth.profiles import make_profile

    flows = sample_matrices(make_profile("senegal", np.random.default_rng(11), 6), None, 10)
    taken: dict[str, list[float]] = {"one": [], "ten": []}
    with engine.use(engine.LocalEngine(threads=1)):
        for _ in range(ROUNDS):
            for name, budgets in (("one", ["10%"]), ("ten", BUDGETS)):
                begin = time.process_time()
                run_sweep(flows, sweep_candidates("joint", [10], budgets), 0)
                taken[name].append(time.process_time() - begin)
    for name, seconds in taken.items():
        say(f"{name}_seconds", min(seconds))
    say("ratio", min(taken["ten"]) / min(taken["one"]))


if __name__ == "__main__":
    main()
