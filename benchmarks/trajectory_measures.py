"""Measures of trajectories on San Francisco's cabs, against the CPU seconds that mdl-anonymizer takes for its own.

Each measure of MobiDataLab is computed from files, the original and a release of `microaggregation` (k = 3, λ = 0.0055) with its
pairing, in a process that has measured the small set once before, so that compiling and imports are not counted; the best of
several runs. Reading the files is counted with every one of ours, and is most of what RMSE and linkage of the small set take;
`all` are the five of MobiDataLab at once, read once, against the sum of the peer's. The peer's figures are the least of those
that were measured on two cores of the same kind, and two seconds of imports are taken off each; its RMSE of the small set takes
about as long as its imports, so that this ratio says little. What it computes is not the same: its linkage looks at a window, and
its propensity score is that of a model on the rows that it learnt from.

`large` takes all measures on the set of 23,830 trajectories, in one command as a user runs it, and exact linkage alone. The last
line is the ratio of all five on the set of 643.

The data is looked for in ../shared/data/sf_cabs; without it there is nothing to measure.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _bench import SMALL, answer, measured, say

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "sf_cabs"
FILES = {
    "S": "cabs_dataset_20080608_0700_0715.csv",
    "M": "cabs_dataset_20080608_0800_1200.parquet",
    "L": "cabs_dataset_20080608.parquet",
}
LAMBDA = 0.005492628237142597
"""Of MobiDataLab's example."""
IMPORTS = 2.0
PEER = {
    "ScikitMeasures": {"S": 24.0, "M": 67.0},
    "PropensityScore": {"S": 18.0, "M": 51.0},
    f"RecordLinkage:time_weight={LAMBDA}": {"S": 5.0, "M": 126.0},
    f"Rsme:time_weight={LAMBDA}": {"S": 3.0, "M": 7.0},
}
"""The least of the CPU seconds that were measured; of RMSE on the small set, 2 to 3 seconds, the most."""
ROUNDS = 1 if SMALL else 7


def anonymized(size: str, folder: Path) -> None:
    """A release and its pairing."""
    from crowdveil import anonymize

    kind = "microaggregation" if size != "L" else "time-partitioned-microaggregation"
    weight = {"time_weight": LAMBDA} if size != "L" else {}
    anonymize(
        DATA / FILES[size], folder / size, method=kind, k=3, format="csv" if size == "S" else "parquet",
        pairing=folder / f"{size}.parquet", **weight,
    )  # fmt: skip


def measure(size: str, folder: Path, names: str) -> None:
    from crowdveil import measure

    measure(DATA / FILES[size], folder / size, names.split(","), pairing=folder / f"{size}.parquet")


def best_cpu(size: str, folder: Path, names: str) -> float:
    taken = []
    for _ in range(ROUNDS if size == "S" else 3):
        start = time.process_time()
        measure(size, folder, names)
        taken.append(time.process_time() - start)
    return min(taken)


def ratios(folder: Path) -> float:
    """Each measure and all of them; returns the ratio of all on the small set."""
    of_all = {}
    for size in ("S", "M"):
        anonymized(size, folder)
        together = ",".join([*PEER, "TrajectoriesRemoved"])
        jobs = {name: peer[size] - IMPORTS for name, peer in PEER.items()}
        for names, theirs in {**jobs, together: sum(jobs.values())}.items():
            label = f"{size}_{'all' if names == together else names.partition(':')[0]}"
            cpu = measured(__file__, "best", size, str(folder), names)["best_cpu"]
            say(f"{label}_cpu", cpu, "s")
            say(f"{label}_peer_over_ours", theirs / cpu)
            of_all[size] = theirs / cpu
    return of_all["S"]


def large(folder: Path) -> None:
    """All measures in one command; and linkage alone, exact, by the λ of MobiDataLab's example and by its formula."""
    anonymized("L", folder)
    command = [sys.executable, "-c", "from crowdveil.cli.main import main; main()"]
    files = [str(DATA / FILES["L"]), str(folder / "L"), "--pairing", str(folder / "L.parquet")]
    for label, more in (
        ("all_measures", []),
        ("exact_linkage", ["-m", f"record-linkage:time_weight={LAMBDA}"]),
        ("exact_linkage_document", ["-m", "record-linkage"]),
    ):
        start = time.perf_counter()
        subprocess.run([*command, "measure", *files, *more], check=True, capture_output=True)
        say(f"L_{label}_wall", time.perf_counter() - start, "s")


def main(arguments: list[str]) -> None:
    if not DATA.is_dir():
        sys.exit(f"there is no {DATA}, so there is nothing to measure")
    with tempfile.TemporaryDirectory() as folder:
        if arguments != ["small"] and not SMALL:
            large(Path(folder))
        if arguments != ["large"]:
            say("ratio", ratios(Path(folder)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["best"]:
        _, _, size, place, name = sys.argv
        folder = Path(place)
        answer(lambda: {"best_cpu": best_cpu(size, folder, name)}, lambda: measure("S", folder, name))
    else:
        main(sys.argv[1:])
