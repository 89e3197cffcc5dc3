"""How far `atg-dual` is from the constrained optimum for the same origins (`atg-exact`), k = 10, at most 10 % suppressed.

On matrices like those of the literature and on the yellow taxi sample by hour of day where it is available; the
target volume is the best of the grid for each matrix. As published, and with what is left of the budget spent. The last figure is
the mean generalization error of `atg-dual` over that of `atg-exact`, as published, the largest over the data sets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from _bench import say
from od_quality import TAXI, errors_of, taxi

PROFILES = {"nyc": 6, "civ": 6, "senegal_crop": 3, "senegal": 3, "senegal_big": 1}


def main() -> None:
    from crowdveil.io.flows import with_tree
    from crowdveil.experiments.profiles import make_profile

    data: dict[str, Any] = {
        name: with_tree(make_profile(name, np.random.default_rng(11), matrices), "ward")
        for name, matrices in PROFILES.items()
    }
    if TAXI.is_dir():
        data["taxi_by_hour"] = taxi()
    ratios = []
    for name, flows in data.items():
        dual, exact = errors_of("atg-dual", flows), errors_of("atg-exact", flows)
        say(f"{name}_certified_gap_percent_mean", float(dual["facts"]["certified_gap_percent_mean"]))
        say(f"{name}_gap_of_cost_percent_mean", float(exact["facts"]["gap_of_atg_dual_percent_mean"]))
        say(f"{name}_gap_of_cost_percent_largest", float(exact["facts"]["gap_of_atg_dual_percent_largest"]))
        ratios.append(dual["error"] / exact["error"])
        spent = errors_of("atg-dual", flows, spend_rest=True)
        say(f"{name}_ratio_with_the_rest_spent", f"{spent['error'] / exact['error']:.5f}")
        say(f"{name}_ratio", f"{ratios[-1]:.5f}")
    say("ratio", f"{max(ratios):.5f}")


if __name__ == "__main__":
    main()
