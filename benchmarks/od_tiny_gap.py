"""How far `joint` is from the constrained optimum on thousands of tiny matrices, against brute force over all partitions.

Matrices of up to 40 trips between 2 to 5 places, with people and without, k from 2 to 5, budgets from 0 to 50 %, on the Ward tree
and with dyadic splits. Gaps in per cent of the optimum: of the partition that a multiplier finds with the rest of the budget
spent, and of the result, which is searched between two multipliers; and both as they are certified. `od_tiny_gap.py NUMBER` sets
the number of matrices on the tree (2,000); with dyadic splits, which have many more partitions, it is a tenth. The last figure is
the mean gap of the result.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from _bench import SMALL, say

SHARES = (0.0, 0.1, 0.2, 0.3, 0.5)


def instance(rng: np.random.Generator) -> tuple[Any, Any]:
    """Flows between a few places of one time step, and the trips that they are made of."""
    from crowdveil.io.flows import trips_to_flows
    from crowdveil.model.trips import Trips
    from crowdveil.model.zones import Zones

    n, trips = int(rng.integers(2, 6)), int(rng.integers(5, 41))
    places = 2 + rng.permutation(100)[:n] / 100, 48 + rng.permutation(100)[:n] / 100
    zones = Zones(np.array([f"z{i}" for i in range(n)]), *places, kind="centroids")
    ends = (np.minimum(rng.geometric(0.5, trips) - 1, n - 1).astype(np.int32) for _ in range(2))
    person = rng.integers(0, 15, trips) if rng.integers(2) else None
    made = Trips(zones, *(rng.permutation(n).astype(np.int32)[end] for end in ends), person=person)
    return trips_to_flows(made, members=True), made


def all_partitions(flows: Any, trips: Any, k: int, splits: str) -> Any:
    """(cost, suppressed volume) of every partition, or of the best ones."""
    from plain_boxes import Plain, PlainRectangles, with_trees

    from crowdveil.model.trees import ward

    if splits == "tree":
        return Plain(with_trees(flows, *[ward(flows.zones)] * 2), trips, k).all()
    plain = PlainRectangles(flows.zones, trips, k)
    crowd = set(plain.inside(plain.everything, plain.everything))
    return plain.partitions(plain.everything, plain.everything) if len(crowd) >= k else frozenset()


def gaps(rng: np.random.Generator, splits: str) -> tuple[float, float, float, float] | None:
    """Gap of the multiplier and of the result, true and certified; None where nothing can be published."""
    from crowdveil.solve.od.boxes import BoxSpace
    from crowdveil.solve.od.region_space import RegionSpace

    flows, trips = instance(rng)
    k, share = int(rng.integers(2, 6)), float(rng.choice(SHARES))
    everything, budget = all_partitions(flows, trips, k, splits), int(share * flows.total + 1e-9)
    if not everything:
        return None
    system = RegionSpace.trees(flows) if splits == "tree" else RegionSpace.rectangles(flows)
    boxes = BoxSpace.of(flows, 0, system, k)
    best = min(a for a, s in everything if s <= budget)
    first = boxes.solve_for_budget(budget)
    boxes.spend_slack(first, budget - first.suppressed)
    before = boxes.cost_of(first.choice)
    choice, (certified, certified_before), _ = boxes.solve(budget)
    after = boxes.cost_of(choice)
    if after < best or 100 * (after / best - 1) > certified + 1e-9:
        raise ValueError("a cost is below the optimum, or a certified gap is too small")
    return 100 * (before / best - 1), 100 * (after / best - 1), certified_before, certified


def main() -> None:
    """Compare with brute force."""
    number, found = int(sys.argv[1]) if len(sys.argv) > 1 else 40 if SMALL else 2000, []
    for splits in ("tree", "dyadic"):
        rng = np.random.default_rng(25)
        many = number if splits == "tree" else number // 10
        here = np.array([g for g in (gaps(rng, splits) for _ in range(many)) if g is not None])
        found.append(here)
        say(f"{splits}: matrices", len(here))
        for i, label in enumerate(
            (
                "gap of the multiplier",
                "gap of the result",
                "certified gap of the multiplier",
                "certified gap of the result",
            )
        ):
            say(f"{splits}: {label}, mean", float(here[:, i].mean()), "%")
            say(f"{splits}: {label}, largest", float(here[:, i].max()), "%")
        say(f"{splits}: results at the optimum", float((here[:, 1] == 0).mean()))
    say("mean gap of the result", float(np.concatenate(found)[:, 1].mean()), "%")


if __name__ == "__main__":
    main()
