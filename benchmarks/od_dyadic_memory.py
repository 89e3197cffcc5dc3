"""Memory of one matrix on 2,327 zones: `joint` with dyadic splits against tree splits, each in a process of its own.

The matrix is made up: gravity on scattered zones, 300,000 flows with 4 million trips. Printed are CPU seconds, peak memory and
the generalization error Ḡ. The last figure is the peak memory with dyadic splits over that with tree splits.
"""

from __future__ import annotations

import sys

import numpy as np

from _bench import answer, measured, say
from od_wide import SIZES, large_matrix

SIZES["counties"] = (2_327, 300_000, 4_000_000)


def solve(splits: str) -> None:
    """In a process of its own: one matrix."""
    from crowdveil.measures.od.comparison import OdComparison
    from crowdveil.progress import no_progress
    from crowdveil.registry import find_measure, find_method

    flows, method = large_matrix("counties"), find_method("joint")

    def job() -> dict[str, float]:
        params = method.params.checked({"splits": splits})
        release = method.run(flows, params, np.random.default_rng(0), no_progress)
        error = find_measure("Ḡ").compute(OdComparison.between(flows, release))
        return {"error": float(np.asarray(error)[0])}

    answer(job)


def main() -> None:
    if len(sys.argv) == 2:
        return solve(sys.argv[1])
    peak = {}
    for splits in ("tree", "dyadic"):
        found = measured(__file__, splits)
        peak[splits] = found["peak_mib"]
        say(f"{splits}_seconds", found["cpu"])
        say(f"{splits}_peak_mib", found["peak_mib"])
        say(f"{splits}_generalization_error", found["error"])
    return say("ratio", peak["dyadic"] / peak["tree"])


if __name__ == "__main__":
    main()
