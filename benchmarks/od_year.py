"""A year of hourly matrices like `nyc` (7,242 of about 3,000 flows), from a Parquet file of flows to a verified release.

`joint` and `atg-dual` (target volume 100, as published, and the best of the grid), each in a process of its own, with all
checks against the original. Then the job of the quadtree paper: 2,616 hourly matrices on a grid of 64 × 64 cells, 42 million
rows, solved by `atg-exact` with k = 11 (16 hours in the paper). `quick` as argument does a tenth of both. The last figure
is matrices a second of `joint` over those of `atg-dual`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from _bench import answer, data_file, measured, say

MATRICES, DISTINCT = 7242, 400
QUADTREE_MATRICES, QUADTREE_DISTINCT, QUADTREE_ROWS = 2616, 40, 16_000
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "atg-dual": ("atg-dual", {"v_target": 100}),
    "atg-dual-auto": ("atg-dual", {}),
    "joint": ("joint", {}),
}


def write_year(path: Path, matrices: int) -> None:
    """Hours of one map, a few hundred different ones again and again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from crowdveil.synth.profiles import make_profile

    flows = make_profile("nyc", np.random.default_rng(17), min(DISTINCT, matrices))
    names = pa.array([str(name) for name in flows.zones.ids])
    schema = pa.schema(
        [("t", pa.timestamp("s", "UTC")), ("origin", pa.string()), ("destination", pa.string()), ("volume", pa.int64())]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, matrices, flows.steps):
            steps = min(flows.steps, matrices - begin)
            rows = slice(0, int(flows.offsets[steps]))
            t = flows.t[0] + 3600 * (begin + flows.step[rows])
            columns = [
                pa.array(t, pa.timestamp("s", "UTC")),
                names.take(pa.array(flows.origin[rows])),
                names.take(pa.array(flows.destination[rows])),
                pa.array(flows.volume[rows]),
            ]
            writer.write_table(pa.table(columns, schema=schema))


def write_zones_of_year(path: Path) -> None:
    """The zones of the map: centroids."""
    from crowdveil.synth.profiles import make_profile

    zones = make_profile("nyc", np.random.default_rng(17), DISTINCT).zones
    lines = [f"{name},{lon},{lat}" for name, lon, lat in zip(zones.ids, zones.lon, zones.lat, strict=True)]
    path.write_text("zone_id,lon,lat\n" + "\n".join(lines) + "\n")


def year(label: str, data: str, zones: str) -> int:
    """One run from file to verified release; returns the number of published flows."""
    import crowdveil

    method, parameters = RUNS[label]
    with tempfile.TemporaryDirectory() as folder:
        result = crowdveil.anonymize(
            method, data, Path(folder) / "out", zones=zones, step="1h", k=10, hierarchy="ward", **parameters
        )
        return len(result.release)


def quadtree(matrices: int) -> int:
    """The matrices of the quadtree paper, solved in memory; returns how many."""
    from crowdveil.io.flows import with_trees
    from crowdveil.model.flows import Flows
    from crowdveil.model.tessellation import grid_frame, grid_zones
    from crowdveil.progress import no_progress
    from crowdveil.registry import find_method

    rng = np.random.default_rng(23)
    frame = grid_frame(np.array([-74.02, -73.87]), np.array([40.70, 40.815]), 200.0)
    column, row = np.meshgrid(np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32))
    zones = grid_zones(frame, column.ravel(), row.ravel())
    # Trips gather in the middle, as in Manhattan; about 30,000 trips on 16,000 pairs an hour, as in the paper.
    pull = np.exp(-((column.ravel() - 32) ** 2) / 30 - (row.ravel() - 32) ** 2 / 250) * rng.lognormal(0, 1.4, 4096)
    pull /= pull.sum()
    steps = []
    for step in range(min(QUADTREE_DISTINCT, matrices)):
        pairs = rng.choice(4096, (2, 29_700), p=pull)
        keys, volume = np.unique(pairs[0] * 4096 + pairs[1], return_counts=True)
        steps.append((np.full(len(keys), 3600 * step), keys // 4096, keys % 4096, volume))
    columns = [np.concatenate(c) for c in zip(*steps, strict=True)]
    once = with_trees(
        Flows.from_rows(zones, columns[0], columns[1].astype(np.int32), columns[2].astype(np.int32), columns[3]),
        "quadtree",
    )
    say("quadtree_rows_a_matrix", len(once) // once.steps)
    say("quadtree_trips_a_matrix", once.total // once.steps)
    method = find_method("atg-exact")
    params = method.params.checked({"k": 11, "v_target": 700, "scope": "origin", "report_small": True})
    solved, begin = 0, time.perf_counter()
    while solved < matrices:
        method.run(once, params, np.random.default_rng(0), no_progress)
        solved += once.steps
    say("quadtree_matrices", solved)
    say("quadtree_minutes", (time.perf_counter() - begin) / 60)
    return solved


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] in RUNS:
        label, data, zones = sys.argv[1:]
        warm = str(data_file("od_year_warm.parquet", lambda path: write_year(path, 3)))
        answer(lambda: year(label, data, zones), warm=lambda: year(label, warm, zones))
        return
    quick = "quick" in sys.argv[1:]
    matrices = MATRICES // 10 if quick else MATRICES
    data = data_file(f"od_year_{matrices}.parquet", lambda path: write_year(path, matrices))
    zones = data_file("od_year_zones.csv", write_zones_of_year)
    rates = {}
    for label in RUNS:
        found = measured(__file__, label, str(data), str(zones))
        rates[label] = matrices / found["wall"]
        say(f"{label}_seconds", found["wall"])
        say(f"{label}_matrices_a_second", rates[label])
        say(f"{label}_peak_mib", found["peak_mib"])
        say(f"{label}_published_flows", int(found["result"]))
    quadtree(QUADTREE_MATRICES // 10 if quick else QUADTREE_MATRICES)
    say("ratio", rates["joint"] / rates["atg-dual"])


if __name__ == "__main__":
    main()
