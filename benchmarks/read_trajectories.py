"""10 million points of trajectories from Parquet to the model, against pyarrow reading the same file.

Twice: the file as it is usually written, in order, and the same rows shuffled.
"""

from __future__ import annotations

import sys
from pathlib import Path

from _bench import FOLDER, answer, best, data_file, measured, say

POINTS, ROUNDS = 10_000_000, 5


def make(path: Path) -> None:
    import pyarrow.parquet as pq

    from crowdveil.synth.city import City
    from crowdveil.synth.trajectories import write_trajectories

    write_trajectories(City.make(1), path, POINTS // 8, 14, seed=1)
    table = pq.read_table(path).slice(0, POINTS)
    pq.write_table(table, path, compression="snappy")


def shuffle(path: Path) -> None:
    import numpy as np
    import pyarrow.parquet as pq

    table = pq.read_table(data_file(f"points_{POINTS}.parquet", make))
    pq.write_table(table.take(np.random.default_rng(1).permutation(len(table))), path, compression="snappy")


def pyarrow_alone(path: str) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_table(path).num_rows)


def ours(path: str) -> int:
    from crowdveil.io.trajectories import read_trajectories

    return read_trajectories(path).points


def main() -> None:
    files = {
        "ordered": str(data_file(f"points_{POINTS}.parquet", make)),
        "shuffled": str(data_file(f"points_{POINTS}_shuffled.parquet", shuffle)),
    }
    ratios = {}
    for name, path in files.items():
        runs: dict[str, list[dict[str, float]]] = {"pyarrow": [], "ours": []}
        for _ in range(ROUNDS):
            for job in runs:
                runs[job].append(measured(__file__, job, path, str(FOLDER)))
        say(f"{name}_points", int(runs["ours"][0]["result"]))
        for job, figures in runs.items():
            say(f"{name}_{job}_wall", best(figures), "s")
            say(f"{name}_{job}_peak", best(figures, "peak_mib"), "MiB")
        ratios[name] = best(runs["ours"]) / best(runs["pyarrow"])
    say("ratio_shuffled", ratios["shuffled"])
    say("ratio", ratios["ordered"])


def warm() -> None:
    """Load the compiled kernels and the libraries, on a table of three rows."""
    import pyarrow as pa

    from crowdveil.io.trajectories import read_trajectories

    table = {
        "lat": [1.0, 1.0, 1.0],
        "lon": [1.0] * 3,
        "timestamp": [3, 2, 1],
        "trajectory_id": [1, 2, 1],
        "user_id": [1, 1, 1],
    }
    read_trajectories(pa.table(table))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        job = {"pyarrow": pyarrow_alone, "ours": ours}[sys.argv[1]]
        answer(lambda: job(sys.argv[2]), warm)
