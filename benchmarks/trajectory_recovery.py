"""Recovery of trajectories from aggregates: seconds of 10,000 trajectories in 24 steps, and accuracy on cabs of San Francisco.

Accuracy is the mean share of time steps in which the recovered trajectory of a person is in the person's place; in brackets that
of linking at random. Before: from counts by tile and step. After: from tiles with at least k people (heat maps), and from flows
between tiles of one kilometer that `joint` published. `python benchmarks/trajectory_recovery.py rides` does the same for heat
maps of 2,000 taxi rides of New York, whose times are put into one day. The last figure is the ratio of the accuracy from flows
(k = 10, one hour) to that from the original counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from _bench import say

DATA = Path(__file__).parents[2] / "shared" / "data"
CABS = DATA / "sf_cabs" / "cabs_dataset_20080608.parquet"
RIDES = DATA / "nyc_taxi" / "yellow_2015-01_lonlat_50k.parquet"


def commuters(people: int, steps: int) -> Any:
    """People between home and work, with some visits elsewhere."""
    from crowdveil.model.trajectories import Trajectories

    rng = np.random.default_rng(1)
    home, work = rng.normal(0, 6000, (people, 2)), rng.normal(0, 4000, (people, 2))
    leave, back = rng.integers(6, 10, people), rng.integers(16, 20, people)
    xy = np.empty((people, steps, 2))
    for step in range(steps):
        at_work = (step >= leave) & (step < back)
        xy[:, step] = np.where(at_work[:, None], work, home) + rng.normal(0, 100, (people, 2))
        elsewhere = rng.random(people) < 0.08
        xy[elsewhere, step] = rng.normal(0, 5000, (int(elsewhere.sum()), 2))
    ids = np.array([str(i) for i in range(people)], dtype=object)
    t = np.tile(np.arange(steps) * 3600 + 1800, people)
    lon, lat = 2 + xy[..., 0].ravel() / 74_500, 48 + xy[..., 1].ravel() / 111_200
    return Trajectories(lon, lat, t, np.arange(0, people * steps + 1, steps), ids, np.arange(people), ids, "people")


def shown(values: Any, side: str) -> str:
    """Accuracy, and that of random links."""
    return f"{values[f'accuracy_percent_{side}']} % ({values[f'accuracy_of_random_links_percent_{side}']} %)"


def recover_cabs() -> float:
    """Measure accuracy on the cabs; return the ratio of after to before."""
    import crowdveil

    ratio = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for step in sys.argv[1:] or ("10min", "30min", "1h", "3h"):
            for k in (2, 5, 10):
                found = crowdveil.attack(
                    "trajectory-recovery", CABS, tile_m=1000, step=step, k=k, tz="America/Los_Angeles"
                )
                values = found["trajectory-recovery"].values
                if k == 2:
                    say(f"cabs_{step}_before", shown(values, "before"))
                say(f"cabs_{step}_heat_map_k_{k}", shown(values, "after"))
                out = Path(folder) / f"{step}-{k}"
                try:
                    moves = crowdveil.trips(CABS, by="transitions", zones="grid:1000m")
                    crowdveil.anonymize(moves, out, method="joint", zones="grid:1000m", step=step, k=k,
                                        tz="America/Los_Angeles", report=False)  # fmt: skip
                except crowdveil.errors.CrowdveilError as error:
                    say(f"cabs_{step}_flows_k_{k}", f"nothing published ({type(error).__name__})")
                    continue
                found = crowdveil.attack(
                    "trajectory-recovery", CABS, out, tile_m=1000, step=step, tz="America/Los_Angeles"
                )
                values = found["trajectory-recovery"].values
                area = f"places of {values['mean_km2_of_a_place_after']} km2"
                say(f"cabs_{step}_flows_k_{k}", f"{shown(values, 'after')}, {area}")
                if step == "1h" and k == 10:
                    ratio = values["accuracy_percent_after"] / values["accuracy_percent_before"]
    return ratio


def recover_rides(rides: int = 2_000) -> None:
    """Measure accuracy on taxi rides: trajectories of two points, pickup and dropoff."""
    import pyarrow.parquet as pq

    import crowdveil
    from crowdveil.model.trajectories import Trajectories

    table = pq.read_table(RIDES)
    ends = ("pickup", "dropoff")
    t = np.stack([table[f"tpep_{end}_datetime"].to_numpy().astype("datetime64[s]").astype(np.int64) for end in ends], 1)
    t = np.minimum(t - t[:, :1] // 86_400 * 86_400, 86_399)
    used = np.flatnonzero(t[:, 1] > t[:, 0])[:rides]
    lon, lat = (
        np.stack([table[f"{end}_{name}"].to_numpy() for end in ends], 1)[used].ravel()
        for name in ("longitude", "latitude")
    )
    ids, offsets = np.array([str(i) for i in range(len(used))], dtype=object), np.arange(0, 2 * len(used) + 1, 2)
    data = Trajectories(lon, lat, t[used].ravel(), offsets, ids, np.arange(len(used)), ids, "people")
    for step in ("30min", "1h", "3h"):
        for k in (2, 10):
            values = crowdveil.attack("trajectory-recovery", data, tile_m=1000, step=step, k=k)[
                "trajectory-recovery"
            ].values
            if k == 2:
                say(f"rides_{step}_before", shown(values, "before"))
            say(f"rides_{step}_heat_map_k_{k}", shown(values, "after"))


def main() -> None:
    if "rides" in sys.argv[1:]:
        return recover_rides()
    from crowdveil.attacks.trajectory.aggregated import AggregatedTrajectories
    from crowdveil.experiments.trajectory_recovery import RecoveryParams, run

    run(AggregatedTrajectories(commuters(50, 24)), RecoveryParams())  # compile
    data = commuters(10_000, 24)
    begin, used = time.perf_counter(), time.process_time()
    values = run(AggregatedTrajectories(data), RecoveryParams(k=10)).values
    say("people_10000_steps_24_seconds", time.perf_counter() - begin)
    say("people_10000_steps_24_processor_seconds", time.process_time() - used)
    say("people_10000_before", shown(values, "before"))
    say("people_10000_heat_map_k_10", shown(values, "after"))
    if CABS.is_file():
        say("ratio", recover_cabs())


if __name__ == "__main__":
    main()
