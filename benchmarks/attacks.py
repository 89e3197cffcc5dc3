"""Adversaries who know h places: against their plain Python twins, against scikit-mobility's 191 s, and on a day of cabs.

100 people with 1,000 points between them at 100 places, two of them known: the twin in tests/ goes through all choices and all
people by the definition; scikit-mobility took 191 s for as many people and points, measured once on two cores of the same kind.
On San Francisco's cabs, where they are available (496 people, 240,280 points), all choices of two and three places, of tiles of
500 m and exact ones. Times are processor seconds, the best of some runs after a first one. The last figure is ours over the plain
twin.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _bench import SMALL, say

CABS = Path(__file__).parents[2] / "shared" / "data" / "sf_cabs" / "cabs_dataset_20080608.parquet"
PEOPLE, POINTS, PLACES, KNOWN, RUNS = (20, 100, 20, 2, 1) if SMALL else (100, 1000, 100, 2, 5)
SCIKIT_MOBILITY_S = 191.0


def people() -> Any:
    """People at random places, some of which are more popular."""
    from crowdveil.model.trajectories import Trajectories

    rng = np.random.default_rng(7)
    place = np.minimum((rng.random(POINTS) ** 2 * PLACES).astype(np.int64), PLACES - 1)
    person = np.sort(rng.integers(0, PEOPLE, POINTS))
    person[:PEOPLE] = np.arange(PEOPLE)  # nobody without a point
    person = np.sort(person)
    offsets = np.searchsorted(person, np.arange(PEOPLE + 1))
    who = np.array([f"p{i}" for i in range(PEOPLE)], dtype=object)
    return Trajectories(
        10 + place % 10 / 100,
        43 + place // 10 / 100,
        np.arange(POINTS),
        offsets,
        np.arange(PEOPLE),
        np.arange(PEOPLE),
        who,
    )


def attacked(data: Any, name: str, tile_m: float | None, knowledge: int) -> Any:
    """Ours."""
    from crowdveil.attacks.adversary_view import AttackScenario
    from crowdveil.engine.progress import no_progress
    from crowdveil.registry import find_attack

    attack = find_attack(name)
    return attack.run(
        AttackScenario(data), attack.params.checked({"knowledge": knowledge, "tile_m": tile_m}), no_progress
    )


def plain(data: Any, name: str) -> list[float]:
    """The twin, on the same people."""
    from plain_attacks import crowds, risk

    points = list(zip(zip(data.lat.tolist(), data.lon.tolist(), strict=True), data.t.tolist(), strict=True))
    units = [points[a:b] for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    labels = list(range(len(units)))
    return [risk(found) for found in crowds(name, units, units, labels, labels, KNOWN)]


def timed(job: Callable[[], Any], runs: int = RUNS) -> tuple[float, Any]:
    """Processor seconds of the best of some runs, and its result."""
    best, result = np.inf, None
    for _ in range(runs):
        start = time.process_time()
        result = job()
        best = min(best, time.process_time() - start)
    return best, result


def cabs() -> None:
    """All choices of places of all people of a day."""
    from crowdveil.io.trajectories import read_trajectories

    data = read_trajectories(CABS)
    for name in ("location", "sequence", "time"):
        for tile_m in (500.0, None):
            for knowledge in (2, 3):
                seconds, risk = timed(lambda n=name, m=tile_m, h=knowledge: attacked(data, n, m, h), 1)
                label = f"cabs_{name}_{'exact' if tile_m is None else '500m'}_h{knowledge}"
                say(f"{label}_seconds", seconds)
                say(f"{label}_found_for_sure_percent", 100 * risk.unique.value)
                say(f"{label}_exact", str(risk.exact))


def main() -> None:
    data = people()
    ratio = 0.0
    for name in ("sequence", "frequency", "proportion", "location"):
        attacked(data, name, None, KNOWN)  # compiles
        ours, risk = timed(lambda n=name: attacked(data, n, None, KNOWN))
        theirs, twin = timed(lambda n=name: plain(data, n), 1)
        assert risk.risk.tolist() == twin, name  # noqa: S101
        say(f"{name}_seconds", ours)
        say(f"{name}_plain_seconds", theirs)
        say(f"{name}_plain_over_ours", theirs / ours)
        ratio = ours / theirs
        if name == "location":
            say("scikit_mobility_over_ours", SCIKIT_MOBILITY_S / ours)
    if CABS.is_file() and not SMALL:
        cabs()
    say("ratio", ratio)


if __name__ == "__main__":
    main()
