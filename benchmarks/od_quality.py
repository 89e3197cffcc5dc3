"""Generalization and reconstruction error of `joint` against `atg-dual` (best target volume of each matrix).

k = 10, at most 10 % suppressed. On matrices like those of the literature, and on the yellow taxi sample by hour of day where it
is available. For each data set the mean generalization error and the reconstruction error of every method, and
their ratios to those of `atg-dual`; dyadic and free splits on maps of fewer than 2,000 tiles. The last figure is the largest
ratio of the generalization error of `joint` on the tree, senegal_big aside, where nearly nothing is left to gain.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from _bench import SMALL, say

TAXI = Path(__file__).parents[2] / "shared" / "data" / "nyc_taxi"
PROFILES = (
    {"nyc": 1} if SMALL else {"nyc": 6, "civ": 6, "senegal_crop": 3, "senegal": 3, "senegal_big": 2, "senegal_split": 1}
)
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "atg-dual": ("atg-dual", {}),
    "atg-coupled": ("atg-coupled", {}),
    "joint": ("joint", {}),
    "joint-reconstruction": ("joint", {"objective": "reconstruction"}),
    "joint-dyadic": ("joint", {"splits": "dyadic"}),
    "joint-free": ("joint", {"splits": "free"}),
    "joint-dyadic-reconstruction": ("joint", {"splits": "dyadic", "objective": "reconstruction"}),
}
if SMALL:
    METHODS = {label: METHODS[label] for label in ("atg-dual", "joint")}
DYADIC_TILES = 2000


def errors_of(method: str, flows: Any, **parameters: Any) -> dict[str, Any]:
    """Means over the matrices of the generalization and the reconstruction error, the largest share suppressed, and facts."""
    from crowdveil.engine.progress import no_progress
    from crowdveil.registry import find_method

    found = find_method(method)
    release = found.run(flows, found.params.checked({"k": 10, **parameters}), np.random.default_rng(0), no_progress)
    return {**scores(flows, release), "facts": release.facts}


def scores(flows: Any, release: Any) -> dict[str, float]:
    """The measures that are compared."""
    from crowdveil.verbs.measure import measure

    found = measure(flows, release, ["generalization", "reconstruction-error", "suppressed"])
    return {
        "error": float(found["generalization"].mean),
        "reconstruction": float(found["reconstruction-error"].mean),
        "max_suppressed": float(np.nanmax(found["suppressed"].by_step)),
    }


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
    from crowdveil.experiments.profiles import make_profile
    from crowdveil.io.flows import with_tree

    wanted = sys.argv[1:] or [*PROFILES, *([] if SMALL else ["taxi_by_hour"])]
    ratios = []
    for name in wanted:
        if name == "taxi_by_hour":
            if not TAXI.is_dir():
                continue
            flows = taxi()
        else:
            flows = with_tree(make_profile(name, np.random.default_rng(11), PROFILES[name]), "ward")
        found = {}
        for label, (method, parameters) in METHODS.items():
            if "splits" in parameters and len(flows.zones) >= DYADIC_TILES:
                continue
            found[label] = errors_of(method, flows, **parameters)
            for what in ("error", "reconstruction", "max_suppressed"):
                say(f"{name}_{label}_{what}", found[label][what])
            if parameters.get("objective") == "reconstruction":
                # What no partition of this kind can go below: the certified distance to the best one.
                gap = found[label]["facts"]["certified_gap_percent_mean"]
                say(f"{name}_{label}_least_possible", found[label]["reconstruction"] / (1 + float(gap) / 100))
            if label != "atg-dual":
                say(f"{name}_{label}_ratio", found[label]["error"] / found["atg-dual"]["error"])
                say(
                    f"{name}_{label}_ratio_reconstruction",
                    found[label]["reconstruction"] / found["atg-dual"]["reconstruction"],
                )
        if name != "senegal_big":
            ratios.append(found["joint"]["error"] / found["atg-dual"]["error"])
    say("ratio", max(ratios))


if __name__ == "__main__":
    main()
