"""Protected generalization, swapping of locations and SwapMob on San Francisco's cabs, against mdl-anonymizer.

CPU seconds of the whole way (read, anonymize, write, verify), after a small run that loads libraries and compiled kernels,
against the CPU seconds that mdl-anonymizer took on the same files with the same parameters, less two seconds for its imports; and
the trajectories that both remove. With its settings trajectories are counted, times kept, and steps broken that one trajectory
makes alone. Then what our defaults remove, and what each guarantee costs. The last line is the least ratio on the largest files
that mdl-anonymizer finished.

`generalize_swap.py large` runs swap-locations on as many points as MobiDataLab's Navitia set has, and SwapMob on 11 million.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from _bench import answer, best, data_file, measured, say

CABS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sf_cabs"
FILES = {
    "S": "cabs_dataset_20080608_0700_0715.csv",
    "M": "cabs_dataset_20080608_0800_1200.parquet",
    "L": "cabs_dataset_20080608.parquet",
}
ROUNDS, IMPORTS_S = 3, 2.0

PROTECTED = {"count_trajectories": True, "time_strategy": "keep", "time_interval_s": 0}
SWAPPED = {"count_trajectories": True, "min_pair_people": 2}
CROSSED = {"count_trajectories": True, "max_distance_m": 100, "max_time_s": 60}
PEER = [
    # method, parameters, file, CPU seconds and removed trajectories of mdl-anonymizer, whether it finished no larger file
    ("protected-generalization", PROTECTED | {"k": 3}, "M", 61.0, 10.0, False),
    ("protected-generalization", PROTECTED | {"k": 10}, "M", 63.0, 27.0, False),
    ("protected-generalization", PROTECTED | {"k": 3}, "L", 334.0, 5.9, True),
    ("protected-generalization", PROTECTED | {"k": 10}, "L", 286.0, 11.0, True),
    ("swap-locations", SWAPPED | {"k": 3}, "M", 413.0, 5.4, True),
    ("swap-locations", SWAPPED | {"k": 10}, "M", 422.0, 8.9, True),
    ("swapmob", CROSSED, "M", 33.0, 16.0, False),
    ("swapmob", CROSSED, "L", 143.0, 19.0, True),
]
COSTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "protected-generalization": [
        ("as mdl-anonymizer", PROTECTED),
        ("and people counted", PROTECTED | {"count_trajectories": False}),
        ("and hours known", {"time_strategy": "keep"}),
        ("and times as published, our default", {}),
        ("and three visits known", {"knowledge": 3}),
    ],
    "swap-locations": [
        ("as mdl-anonymizer", SWAPPED),
        ("and people counted", {"min_pair_people": 2}),
        ("and steps of k people, our default", {}),
    ],
    "swapmob": [
        ("as mdl-anonymizer", CROSSED),
        ("and people counted", CROSSED | {"count_trajectories": False}),
        ("and swapped twice", CROSSED | {"count_trajectories": False, "min_n_swaps": 2}),
        ("our default: 200 m, 30 s, once", {}),
    ],
}


def anonymize(method: str, path: Path, parameters: dict[str, Any]) -> dict[str, float]:
    """The whole way; trajectories removed, those with two points or more that are left, points removed, all in percent."""
    import numpy as np

    from crowdveil.run import pipeline

    folder = Path(tempfile.mkdtemp())
    try:
        release: Any = pipeline.run(
            pipeline.Request(method, path, folder / "out", parameters, options={"attack": False, "report": False})
        ).release
    finally:
        shutil.rmtree(folder)
    return {
        "published": len(release),
        "points": release.points,
        "several": int((np.diff(release.offsets) > 1).sum()),
        "found": (release.facts.get("measured") or {}).get("found_percent") or 0,
        "linked": (release.facts.get("measured") or {}).get("linked_percent") or 0,
        "true": (release.facts.get("measured") or {}).get("true_points_percent") or 0,
    }


def job(method: str, path: Path, parameters: dict[str, Any]) -> dict[str, float]:
    return measured(__file__, "run", method, str(path), json.dumps(parameters))


def against_the_peer(sizes: dict[str, tuple[int, int]]) -> float:
    """Seconds and removed trajectories against those of mdl-anonymizer."""
    ratios = []
    for method, parameters, name, seconds, removed, largest in PEER:
        runs = [job(method, CABS / FILES[name], parameters) for _ in range(ROUNDS)]
        k = f"_k{parameters['k']}" if "k" in parameters else ""
        what = f"{method}{k}_{name}"
        ratio = (seconds - IMPORTS_S) / best(runs, "cpu")
        lost = 100 * (1 - runs[0]["published"] / sizes[name][0])
        say(f"{what}_cpu", best(runs, "cpu"), f"s, mdl-anonymizer {seconds - IMPORTS_S:g} s")
        say(f"{what}_removed", lost, f"% of trajectories, mdl-anonymizer {removed:g} %")
        say(f"{what}_left_with_one_point", 100 * (1 - runs[0]["several"] / max(runs[0]["published"], 1)), "%")
        say(f"{what}_ratio", ratio)
        if lost > removed:
            say(f"{what}_removes_more", "yes")
        ratios += [ratio] if largest else []
    return min(ratios)


def what_guarantees_cost(sizes: dict[str, tuple[int, int]]) -> None:
    """Trajectories and points removed on the whole day, from mdl-anonymizer's settings to ours, and what is measured."""
    trajectories, points = sizes["L"]
    for method, settings in COSTS.items():
        for words, parameters in settings:
            for k in (3, 5, 10, 25) if method != "swapmob" else (0,):
                done = job(method, CABS / FILES["L"], parameters | ({"k": k} if k else {}))
                lost = 100 * (1 - done["published"] / trajectories), 100 * (1 - done["points"] / points)
                shown = f"{lost[0]:.1f} % of trajectories, {lost[1]:.1f} % of points"
                if method == "protected-generalization":
                    shown += "" if "keep" in parameters.values() else " (a visit is one point)"
                else:
                    shown += (
                        f"; two known points find {done['found']:.0f} %, {done['true']:.0f} % of what is seen is true, "
                        f"and the whole way {done['linked']:.0f} %"
                    )
                say(f"{method}, {words}{f', k = {k}' if k else ''}: removed", shown)


def make_planned(path: Path) -> None:
    """192,855 planned journeys of 759,123 points in a day: door, stops, door; most at few stops, and at rush hours."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, journeys, points = np.random.default_rng(7), 192_855, 759_123
    length = np.full(journeys, 4)
    length[rng.permutation(journeys)[: 4 * journeys - points]] = 3
    where = rng.normal([2.35, 48.86], [0.25, 0.17], (12_000, 2))
    popularity = 1 / np.arange(1, len(where) + 1) ** 0.8
    trajectory = np.repeat(np.arange(journeys), length)
    number = np.arange(points) - np.repeat(np.cumsum(length) - length, length)
    stop = where[rng.choice(len(where), points, p=popularity / popularity.sum())]
    door = (number == 0) | (number == np.repeat(length, length) - 1)
    place = stop + np.where(door[:, None], rng.normal(0, 0.004, (points, 2)), 0)
    start = np.where(rng.random(journeys) < 0.6, rng.normal(8.5, 1.5, journeys), rng.normal(18, 2.5, journeys))
    t = np.repeat(np.clip(start * 3600, 0, 80_000).astype(np.int64), length) + number * rng.integers(300, 1200, points)
    table = {"lat": place[:, 1].round(6), "lon": place[:, 0].round(6), "timestamp": t + 1_672_704_000}
    pq.write_table(pa.table(table | {"trajectory_id": trajectory, "user_id": trajectory}), path)


def make_drives(path: Path, points: int) -> None:
    """Drives of a month in a made-up city."""
    import pyarrow.parquet as pq

    from crowdveil.synth.city import City
    from crowdveil.synth.trajectories import write_trajectories

    write_trajectories(City.make(1), path, points // 8, 30, seed=1)
    pq.write_table(pq.read_table(path).slice(0, points), path)


def large() -> None:
    """The two large runs: minutes and memory."""
    planned = data_file("planned_759123.parquet", make_planned)
    worst = 0.0
    for k in (3, 10):
        done = job("swap-locations", planned, {"k": k})
        say(f"swap-locations_759123_points_k{k}_wall", done["wall"] / 60, "minutes; MobiDataLab took almost 12 hours")
        say(f"swap-locations_759123_points_k{k}_peak", done["peak_mib"], "MiB")
        say(f"swap-locations_759123_points_k{k}_removed", 100 * (1 - done["published"] / 192_855), "% of trajectories")
        worst = max(worst, done["wall"] / 60)
    peaks = []
    for points in (2_750_000, 11_000_000):
        drives = data_file(f"drives_{points}.parquet", lambda path, n=points: make_drives(path, n))  # type: ignore[misc]
        done = job("swapmob", drives, {})
        say(f"swapmob_{points}_points_wall", done["wall"] / 60, "minutes")
        say(f"swapmob_{points}_points_peak", done["peak_mib"], "MiB")
        say(f"swapmob_{points}_points_published", int(done["points"]))
        peaks.append(done["peak_mib"])
        worst = max(worst, done["wall"] / 60)
    say("swapmob_peak_for_four_times_the_points", peaks[1] / peaks[0])
    say("longest_minutes", worst)


def main() -> None:
    from crowdveil.io.trajectories import read_trajectories

    sizes = {name: (len(data), data.points) for name in ("M", "L") for data in [read_trajectories(CABS / FILES[name])]}
    least = against_the_peer(sizes)
    what_guarantees_cost(sizes)
    say("ratio", least)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        method, path, parameters = sys.argv[2], Path(sys.argv[3]), json.loads(sys.argv[4])
        warm = CABS / "mock_dataset.csv"
        answer(
            lambda: anonymize(method, path, parameters),
            lambda: anonymize(method, warm, parameters | {"k": 2} if "k" in parameters else parameters),
        )
    elif sys.argv[1:] == ["large"]:
        large()
    elif not CABS.is_dir():
        print(f"the cabs are not at {CABS}")
    else:
        main()
