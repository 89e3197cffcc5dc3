"""A year of hourly matrices like `nyc` (7,242 of about 3,000 flows), from a Parquet file to a verified release with report.

`joint`, by time step and with intervals of time in windows of a day, and `atg-dual` (target volume 100, as published, and the
best of the grid), each in a process of its own, with all checks against the original; also the seconds of each stage, by the
clock and of the processors, since others may use them too. Then the job of the quadtree paper: 2,616 hourly matrices on a
grid of 64 × 64 cells, 42 million rows, solved by `atg-exact` with k = 11 (16 hours in the paper).
The last figure is matrices a second of `joint` over those of `atg-dual`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from _bench import SMALL, answer, data_file, measured, say

if TYPE_CHECKING:
    from crowdveil.model.flows import Flows

MATRICES, DISTINCT = (12, 12) if SMALL else (7242, 400)
STAGES = ("reading", "anonymizing", "writing", "verifying", "reporting")
QUADTREE_MATRICES, QUADTREE_DISTINCT = (1, 1) if SMALL else (2616, 40)
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "atg-dual": ("atg-dual", {"v_target": 100}),
    "atg-dual-auto": ("atg-dual", {}),
    "joint": ("joint", {}),
    "joint-adaptive": ("joint", {"time_partition": "adaptive"}),
}
if SMALL:
    del RUNS["atg-dual-auto"], RUNS["joint-adaptive"]


def write_year(path: Path, matrices: int) -> None:
    """Hours of one map, a few hundred different ones again and again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from crowdveil.experiments.profiles import make_profile

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
    from crowdveil.experiments.profiles import make_profile

    zones = make_profile("nyc", np.random.default_rng(17), DISTINCT).zones
    lines = [f"{name},{lon},{lat}" for name, lon, lat in zip(zones.ids, zones.lon, zones.lat, strict=True)]
    path.write_text("zone_id,lon,lat\n" + "\n".join(lines) + "\n")


def year(label: str, data: str, zones: str) -> dict[str, float]:
    """One run from file to verified release; the number of published flows, and the seconds of each stage."""
    from crowdveil.run.pipeline import Request, run

    method, parameters = RUNS[label]
    begun: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        request = Request(
            method, data, Path(folder) / "out", {"k": 10, **parameters},
            {"zones": zones, "step": "1h", "hierarchy": "ward"}, options={"attack": False},
        )  # fmt: skip
        result = run(request, stage=lambda _: begun.append((time.perf_counter(), time.process_time())))
        begun.append((time.perf_counter(), time.process_time()))
    figures: dict[str, float] = {"published": result.manifest["cost"]["published_flows"]}
    for stage, before, after in zip(STAGES, begun[:-1], begun[1:], strict=True):
        figures |= {f"{stage}_seconds": after[0] - before[0], f"{stage}_cpu_seconds": after[1] - before[1]}
    return figures


def quadtree_hours(hours: int) -> Flows:
    """Hours like those of the quadtree paper: 29,700 passengers on 15,945 pairs of 64 × 64 cells.

    The paper does not say that it counts passengers; docs/reproduction.md says why we think so. Rides gather in the middle, as
    in Manhattan.
    """
    from synthetic import grid_frame

    from crowdveil.io.flows import with_tree
    from crowdveil.model.flows import Flows
    from crowdveil.model.tessellation import grid_zones

    rng = np.random.default_rng(23)
    frame = grid_frame(np.array([-74.02, -73.87]), np.array([40.70, 40.815]), 200.0)
    column, row = np.meshgrid(np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32))
    zones = grid_zones(frame, column.ravel(), row.ravel())
    pull = np.exp(-((column.ravel() - 32) ** 2) / 50 - (row.ravel() - 32) ** 2 / 417) * rng.lognormal(0, 1.4, 4096)
    pull /= pull.sum()
    parties = np.array([0.72, 0.14, 0.04, 0.02, 0.05, 0.03])  # rides with 1 to 6 passengers
    steps = []
    for hour in range(hours):
        rides = rng.choice(4096, (2, 18_221), p=pull)
        pairs, which = np.unique(rides[0] * 4096 + rides[1], return_inverse=True)
        volume = np.bincount(which, weights=rng.choice(np.arange(1, 7), len(which), p=parties)).astype(np.int64)
        steps.append((np.full(len(pairs), 3600 * hour), pairs // 4096, pairs % 4096, volume))
    t, origin, destination, volume = (np.concatenate(c) for c in zip(*steps, strict=True))
    return with_tree(
        Flows.from_rows(zones, t, origin.astype(np.int32), destination.astype(np.int32), volume), "quadtree"
    )


def quadtree(matrices: int) -> None:
    """The job of the quadtree paper, solved in memory: a few different hours again and again."""
    from crowdveil.engine.progress import no_progress
    from crowdveil.registry import find_method

    hours = quadtree_hours(min(QUADTREE_DISTINCT, matrices))
    say("quadtree_rows_a_matrix", len(hours) // hours.steps)
    say("quadtree_passengers_a_matrix", hours.total // hours.steps)
    method = find_method("atg-exact")
    params = method.params.checked({"k": 11, "v_target": 700, "scope": "origin", "aggregate_small": True})
    solved, rows, begin = 0, 0, time.perf_counter()
    while solved < matrices:
        now = hours.at_steps(np.arange(min(hours.steps, matrices - solved)))
        method.run(now, params, np.random.default_rng(0), no_progress)
        solved, rows = solved + now.steps, rows + len(now)
    say("quadtree_matrices", solved)
    say("quadtree_rows", rows)
    say("quadtree_minutes", (time.perf_counter() - begin) / 60)


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] in RUNS:
        label, data, zones = sys.argv[1:]
        warm = str(data_file("od_year_warm.parquet", lambda path: write_year(path, 3)))
        answer(lambda: year(label, data, zones), warm=lambda: year(label, warm, zones))
        return
    data = data_file(f"od_year_{MATRICES}.parquet", lambda path: write_year(path, MATRICES))
    zones = data_file("od_year_zones.csv", write_zones_of_year)
    rates = {}
    for label in RUNS:
        found = measured(__file__, label, str(data), str(zones))
        rates[label] = MATRICES / found["wall"]
        say(f"{label}_seconds", found["wall"])
        say(f"{label}_matrices_a_second", rates[label])
        say(f"{label}_peak_mib", found["peak_mib"])
        say(f"{label}_published_flows", int(found["published"]))
        for stage in STAGES:
            say(
                f"{label}_{stage}", found[f"{stage}_seconds"], f"s, {found[f'{stage}_cpu_seconds']:.1f} s of processors"
            )
    quadtree(QUADTREE_MATRICES)
    say("ratio", rates["joint"] / rates["atg-dual"])


if __name__ == "__main__":
    main()
