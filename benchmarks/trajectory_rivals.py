"""The two rivals of trajectory anonymization, each against its twin in plain Python on the same movers in a synthetic town.

CPU seconds of the groups at a small log cost (`log-cost-generalization`) and of the swaps inside groups (`swap-locations-2012`),
after a first run that loads compiled kernels. What comes out is the same, and the script fails where it is not. The twins are
those of the tests, and take every cost and every distance, where the kernels pass over most. The last line is the smaller ratio.

`trajectory_rivals.py large` runs both methods on 5,000 trajectories of a hundred points, for k = 2, 4 and 8: seconds, and the
share of costs that is computed; the last line is the longest time in minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _bench import say

sys.path.extend(str(Path(__file__).resolve().parents[1] / "tests" / part) for part in ("support", "reference"))

MOVERS, K = 60, 4
LARGE, POINTS = 5_000, 98


def movers(n: int) -> Any:
    """Movers in a town: five begin every second, and each goes on over crossings for about a hundred seconds."""
    import numpy as np

    from crowdveil.model.projection import LocalProjection
    from crowdveil.model.trajectories import Trajectories

    rng = np.random.default_rng(1)
    lengths = np.maximum(rng.gamma(3.0, POINTS / 3, n).astype(np.int64), 5)
    crossings = rng.normal(0, 4000, (300, 2))
    ways = []
    for points in lengths:
        stops = crossings[rng.integers(0, len(crossings), 20)]
        corners = np.empty((2 * len(stops) - 1, 2))
        corners[::2], corners[1::2, 0], corners[1::2, 1] = stops, stops[1:, 0], stops[:-1, 1]
        along = np.concatenate([[0], np.cumsum(np.abs(np.diff(corners, axis=0)).sum(axis=1))])
        at = np.arange(points) * 74 * rng.uniform(0.6, 1.4)
        ways.append(np.column_stack([np.interp(at, along, corners[:, axis]) for axis in (0, 1)]))
    lon, lat = LocalProjection(8.2, 53.1).to_globe(*np.concatenate(ways).T)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    start = rng.integers(0, n // 5, n)
    t = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths) + np.repeat(start, lengths)
    return Trajectories(lon, lat, t, offsets, *[np.arange(n)] * 3)


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, and what came out."""
    begin = time.process_time()
    found = job()
    return time.process_time() - begin, found


def same(found: Any, wanted: Any) -> None:
    """Stop where a kernel finds something else than its twin."""
    if found != wanted:
        raise SystemExit("a kernel and its twin do not come to the same")


def log_cost(data: Any) -> float:
    """How many times faster groups at a small log cost are made."""
    import numpy as np
    import plain_log_cost as plain

    from crowdveil.solve.trajectory.distances import Paths
    from crowdveil.solve.trajectory.log_cost import LogCost

    paths = Paths.of(data)
    boxes = [plain.boxes_of(list(zip(*(c.tolist() for c in paths.one(i)), strict=True))) for i in range(len(data))]
    cost, order = LogCost(paths), np.random.default_rng(1).permutation(len(data)).tolist()
    cost.groups(data.person, K, True, np.random.default_rng(1))
    runs = [timed(lambda: cost.groups(data.person, K, True, np.random.default_rng(1))) for _ in range(5)]
    slow, wanted = timed(lambda: plain.groups(boxes, data.person.tolist(), K, True, order, cost.costs))
    found = [(g.members.tolist(), [tuple(column) for column in g.sides.T.tolist()]) for g in runs[0][1]]
    same(found, wanted)
    fast = min(seconds for seconds, _ in runs)
    say("log_cost_groups_kernel", 1000 * fast, "ms")
    say("log_cost_groups_plain", slow, "s")
    say("log_cost_groups_ratio", slow / fast)
    return slow / fast


def swapping(data: Any) -> float:
    """How many times faster locations change hands, in groups of twice as many people as a set has."""
    import numpy as np
    from plain_swaps import Point, swap_in_groups

    from crowdveil.methods.trajectory.swap_locations_2012 import SwapLocations2012Params, _swapped

    group, params = np.arange(len(data)) // (2 * K), SwapLocations2012Params(k=K)
    rng = np.random.default_rng(1)
    order, turn, draw = rng.permutation(len(data)), rng.permutation(data.points), rng.random(data.points)
    (x, y), whose = (a.tolist() for a in data.xy), data.trajectory
    columns = (range(data.points), whose.tolist(), data.person[whose].tolist(), x, y, data.t.tolist(), draw.tolist())
    points = [Point(*row) for row in zip(*columns, strict=True)]
    seeds = np.lexsort((turn, order[whose], group[whose])).tolist()
    run = lambda: _swapped(data, params, data.person, group, np.random.default_rng(1))  # noqa: E731
    run()
    runs = [timed(run) for _ in range(5)]
    slow, wanted = timed(
        lambda: swap_in_groups(points, group.tolist(), seeds, K, float("inf"), float("inf"), circle=False)
    )
    same(runs[0][1].tolist(), [wanted.get(i, -1) for i in range(data.points)])
    fast = min(seconds for seconds, _ in runs)
    say("swaps_kernel", 1000 * fast, "ms")
    say("swaps_plain", slow, "s")
    say("swaps_ratio", slow / fast)
    return slow / fast


def large() -> None:
    """Both whole methods on movers as many and as long as in the literature."""
    import numpy as np

    from crowdveil.progress import no_progress
    from crowdveil.registry import find_method
    from crowdveil.solve.trajectory.distances import Paths
    from crowdveil.solve.trajectory.log_cost import LogCost

    data, small = movers(LARGE), movers(50)
    worst = 0.0
    for name in ("log-cost-generalization", "swap-locations-2012"):
        method = find_method(name)
        for k in (2, 4, 8):
            params = method.params.checked({"k": k})
            method.run(small, params, np.random.default_rng(1), no_progress)
            seconds, release = timed(lambda m=method, p=params: m.run(data, p, np.random.default_rng(1), no_progress))
            say(f"{name}_k{k}_cpu", seconds, "s")
            say(f"{name}_k{k}_points_left", 100 * release.points / data.points, "%")
            worst = max(worst, seconds)
    cost = LogCost(Paths.of(data))
    cost.groups(data.person, K, True, np.random.default_rng(1))
    pairs = LARGE**2 / 2 * (K - 1) / K
    for how, count in zip(("by chunks", "by rough logs", "to the end"), cost.computed[1:].tolist(), strict=True):
        say(f"log costs of pairs, k = {K}, {how}", 100 * count / pairs, "%")
    say("longest_minutes", worst / 60)


def main() -> None:
    data = movers(MOVERS)
    say("trajectories", len(data))
    say("points", data.points)
    say("ratio", min(log_cost(data), swapping(data)))


if __name__ == "__main__":
    large() if sys.argv[1:] == ["large"] else main()
