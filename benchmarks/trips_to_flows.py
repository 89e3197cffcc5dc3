"""50 million trips in Parquet to hourly OD flows, against the engine's own bare group-by on the same file.

The bare group-by counts trips and distinct people by hour, origin and destination, and stops there. Ours also matches
zones, checks every row, cuts steps in a time zone, sorts, and makes the model. The bare query is measured in both of its
forms, count(DISTINCT) and two groupings; the ratio is to the faster one. What starting up takes is left out on both sides.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from _bench import SMALL, answer, best, data_file, measured, say

TRIPS, TILES, PEOPLE, DAYS, ROUNDS = (20_000 if SMALL else 50_000_000), 400, 1_000_000, 14, (1 if SMALL else 3)


def make(path: Path) -> None:
    from crowdveil.synth.city import City
    from crowdveil.synth.trips import write_trips

    write_trips(City.make(1, TILES, PEOPLE), path, TRIPS, DAYS, seed=1, zone_ids="index")


HOUR = "time_bucket(INTERVAL 1 HOUR, departure) AS h, origin, destination"
BARE = {
    "bare_trips": "SELECT {h}, count(*) FROM '{f}' GROUP BY ALL",
    "bare_distinct": "SELECT {h}, count(*), count(DISTINCT user_id) FROM '{f}' GROUP BY ALL",
    "bare_two_groupings": "SELECT h, origin, destination, sum(n), count(*) FROM "
    "(SELECT {h}, user_id, count(*) AS n FROM '{f}' GROUP BY ALL) GROUP BY ALL",
}


def bare(path: str, job: str) -> int:
    import duckdb

    from crowdveil.engine.threads import thread_count
    from crowdveil.io.duckdb_engine import MEMORY_LIMIT

    with (
        tempfile.TemporaryDirectory() as spilled,
        duckdb.connect(
            config={
                "memory_limit": MEMORY_LIMIT,
                "threads": thread_count(),
                "preserve_insertion_order": False,
                "temp_directory": spilled,
            }
        ) as connection,
    ):
        return len(connection.sql(BARE[job].format(h=HOUR, f=path)).to_arrow_table())


def ours(path: str, people: bool) -> int:
    import numpy as np

    from crowdveil.io.flows import read_flows
    from crowdveil.io.source import open_source
    from crowdveil.model.zones import Zones

    zones = Zones.from_ids([str(i) for i in np.arange(TILES)])
    source = open_source(path)
    if not people:
        source = type(source)(source.name, source.schema.remove(source.schema.get_field_index("user_id")), source.path)
    return len(read_flows(source, zones=zones, step="1h", tz="Europe/Paris"))


def warm() -> None:
    """Load the libraries and the compiled kernels, for both sides alike."""
    import pyarrow as pa

    from crowdveil.io.flows import read_flows

    read_flows(pa.table({"origin": ["a", "b"], "destination": ["b", "a"], "user_id": [1, 2]}), tz="Europe/Paris")


def main() -> None:
    path = str(data_file(f"trips_{TRIPS}.parquet", make))
    say("trips", TRIPS)
    runs: dict[str, list[dict[str, float]]] = {}
    for _ in range(ROUNDS):
        for job in (*BARE, "ours_trips", "ours_people"):
            runs.setdefault(job, []).append(measured(__file__, job, path))
    for job, figures in runs.items():
        say(f"{job}_wall", best(figures), "s")
        say(f"{job}_cpu", best(figures, "cpu"), "s")
        say(f"{job}_peak", best(figures, "peak_mib"), "MiB")
    say("flows", int(runs["ours_people"][0]["result"]))
    say("peak_memory_ours", max(r["peak_mib"] for r in runs["ours_people"]), "MiB")
    faster = min(best(runs["bare_distinct"]), best(runs["bare_two_groupings"]))
    ratios = {
        "trips_only": best(runs["ours_trips"]) / best(runs["bare_trips"]),
        "people": best(runs["ours_people"]) / faster,
    }
    for name, ratio in ratios.items():
        say(f"ratio_{name}", ratio)
    say("ratio", max(ratios.values()))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] in BARE:
        answer(lambda: bare(sys.argv[2], sys.argv[1]), warm)
    else:
        answer(lambda: ours(sys.argv[2], sys.argv[1] == "ours_people"), warm)
