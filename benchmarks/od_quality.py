"""Mean generalisation error of `joint` beside `atg-dual` (best target volume of each matrix), k = 10, at most 10 % withheld.

On matrices like those of the literature, and on the yellow taxi sample by hour of day where it lies beside the checkout. The
last figure is the largest ratio of `joint` on the tree; with dyadic splits, on maps of fewer than 1,000 tiles, it has another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from _bench import say

TAXI = Path(__file__).parents[2] / "shared" / "data" / "nyc_taxi"
PROFILES = ("nyc", "civ", "senegal_crop", "senegal")
MATRICES = 3


def mean_error(method: str, flows: Any, **parameters: Any) -> tuple[float, float]:
    """Mean generalisation error over matrices, and the largest share withheld."""
    from crowdveil.progress import no_progress
    from crowdveil.registry import find_method

    found = find_method(method)
    release = found.run(flows, found.params.checked({"k": 10, **parameters}), np.random.default_rng(0), no_progress)
    size, errors, shares = release.areas.size, [], []
    for step in range(flows.steps):
        rows = slice(release.offsets[step], release.offsets[step + 1])
        volume = release.volume[rows]
        total = flows.volume[flows.offsets[step] : flows.offsets[step + 1]].sum()
        errors.append(((size[release.origin[rows]] + size[release.destination[rows]]) * volume).sum() / volume.sum())
        shares.append(1 - volume.sum() / total)
    return float(np.mean(errors)), float(max(shares))


def taxi() -> Any:
    """24 matrices, one for each hour of the day."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from crowdveil import read_flows

    table = pq.read_table(TAXI / "yellow_sample_2018_2020.parquet")
    hour = pc.multiply(pc.hour(table["pickup_datetime"]).cast(pa.int64()), 3600)
    trips = {"origin": table["pickup_location_id"], "destination": table["dropoff_location_id"], "time": hour}
    return read_flows(
        pa.table(trips), zones=TAXI / "taxi_zones.geojson", step="1h", hierarchy="ward", drop_invalid=True
    )


def main() -> None:
    from crowdveil.io.flows import with_trees
    from crowdveil.synth.profiles import make_profile

    data = {name: with_trees(make_profile(name, np.random.default_rng(11), MATRICES), "ward") for name in PROFILES}
    if TAXI.is_dir():
        data["taxi_by_hour"] = taxi()
    ratios = []
    for name, flows in data.items():
        errors = {method: mean_error(method, flows) for method in ("atg-dual", "atg-coupled", "joint")}
        if len(flows.zones) < 1000:
            errors["joint-dyadic"] = mean_error("joint", flows, splits="dyadic")
            say(f"{name}_ratio_dyadic", errors["joint-dyadic"][0] / errors["atg-dual"][0])
        for method, (error, share) in errors.items():
            say(f"{name}_{method}_error", error)
            say(f"{name}_{method}_most_withheld", share)
        ratios.append(errors["joint"][0] / errors["atg-dual"][0])
        say(f"{name}_ratio", ratios[-1])
    say("ratio", max(ratios))


if __name__ == "__main__":
    main()
