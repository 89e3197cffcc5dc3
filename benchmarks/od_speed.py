"""Solving matrices: `atg-dual` against the plain recursive twin, `joint` against `atg-dual`, all on one thread and the same data.

k = 10, at most 10 % suppressed, target volumes as published (nyc 100, senegal 300). Solving only: flows lie in memory and
nothing is written. The last figure is how many times as fast as the twin `atg-dual` is on matrices like `senegal`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from _bench import SMALL, say

MATRICES = {"nyc": 2} if SMALL else {"nyc": 12, "senegal": 6}
ROUNDS = 1 if SMALL else 8
TARGET = {"nyc": 100.0, "senegal": 300.0}


def cpu_seconds(job: Callable[[], Any]) -> float:
    """The CPU time that a job takes."""
    begin = time.process_time()
    job()
    return time.process_time() - begin


def main() -> None:
    from plain_atg import leaves, nodes
    from plain_atg import solve as plain_solve

    from crowdveil.experiments.profiles import make_profile
    from crowdveil.io.flows import with_tree
    from crowdveil.solve.od.boxes import BoxSpace
    from crowdveil.solve.od.region_space import RegionSpace
    from crowdveil.solve.od.step_matrix import Matrix
    from crowdveil.solve.od.targets import origins_near

    ratio = 0.0
    for name, count in MATRICES.items():
        flows = with_tree(make_profile(name, np.random.default_rng(11), count), "ward")
        system = RegionSpace.trees(flows)
        budgets = [
            int(flows.volume[a:b].sum()) // 10 for a, b in zip(flows.offsets[:-1], flows.offsets[1:], strict=True)
        ]
        root = nodes(system.origins.tree)
        leaf = leaves(root)

        def dual(flows: Any = flows, system: Any = system, budgets: Any = budgets, name: str = name) -> list[Any]:
            answers = []
            for step, budget in enumerate(budgets):
                matrix = Matrix.of(flows, step, system)
                boxes = BoxSpace.of_origins(matrix, origins_near(matrix, TARGET[name]), 10)
                answers.append(boxes.solve_for_budget(budget))
            return answers

        def joint(flows: Any = flows, system: Any = system, budgets: Any = budgets) -> None:
            for step, budget in enumerate(budgets):
                boxes = BoxSpace.of(flows, step, system, 10)
                found = boxes.solve_for_budget(budget)
                boxes.spend_slack(found, budget - found.suppressed)

        def plain(
            flows: Any = flows, root: Any = root, leaf: Any = leaf, budgets: Any = budgets, name: str = name
        ) -> list[Any]:
            return [plain_solve(flows, i, root, leaf, 10, budget, TARGET[name]) for i, budget in enumerate(budgets[:2])]

        answers = dual()
        joint()
        for found, twin in zip(answers, plain(), strict=False):
            if (found.cost, found.suppressed) != twin:
                raise SystemExit("the twin found another answer")
        # In turns, so that whatever else the machine does hits all three.
        taken: list[list[float]] = [[], [], []]
        for _ in range(ROUNDS):
            for job, seconds in zip((dual, plain, joint), taken, strict=True):
                seconds.append(cpu_seconds(job))
        fast, slow, both = (min(seconds) / n for seconds, n in zip(taken, (count, 2, count), strict=True))
        say(f"{name}_plain_ms", 1e3 * slow)
        say(f"{name}_atg_dual_ms", 1e3 * fast)
        say(f"{name}_joint_ms", 1e3 * both)
        say(f"{name}_joint_over_atg_dual", both / fast)
        ratio = slow / fast
        say(f"{name}_times_as_fast_as_plain", ratio)
    if "nyc" in MATRICES:
        flows = make_profile("nyc", np.random.default_rng(11), 4)
        rectangles = RegionSpace.rectangles(flows)

        def dyadic() -> None:
            for step in range(4):
                boxes = BoxSpace.of(flows, step, rectangles, 10)
                boxes.solve_for_budget(boxes.total // 10)

        dyadic()
        say("nyc_dyadic_ms", 1e3 * min(cpu_seconds(dyadic) for _ in range(4)) / 4)
    say("ratio", ratio)


if __name__ == "__main__":
    main()
