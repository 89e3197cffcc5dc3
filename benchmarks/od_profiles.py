"""What is left of weekly profiles, and how long a year of hours takes to be reconstructed.

Green taxis of ten months where they are available, k = 10, at most 10 % suppressed: for zones with at least 20 trips a
day, leaving and reaching, the correlation and the error between the weekly profiles of the original and those of the release,
medians over profiles. `joint` against `atg-dual`, spread evenly and by what the rest of the release shows (`--weight release`);
anonymized hour by hour, and with all weeks laid on one first (168 matrices). `busy_ends` are the profiles that have 20 trips
a day by themselves. Then a year of hourly matrices like `nyc` on its 263 zones, released with `joint`: seconds from the folder of
the release to a Parquet file of all estimates with their bounds, in a process of its own, and to one with hours of the week added
up.
The last figure is the median correlation of `joint` over that of `atg-dual`, hour by hour, spread evenly.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from _bench import FOLDER, answer, data_file, measured, say
from od_year import MATRICES, write_year, write_zones_of_year

TAXI = Path(__file__).parents[2] / "shared" / "data" / "nyc_taxi"
METHODS = ("joint", "atg-dual")
TRIPS_A_DAY = 20
MONDAY = 1_577_664_000  # 2019-12-30


def taxi(*, typical_week: bool) -> Any:
    """Hours of ten months, or those of one week with the trips of all of them."""
    from datetime import datetime

    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from crowdveil import read_flows

    table = pq.read_table(TAXI / "green_2020-03_2020-12.parquet")
    start = table["lpep_pickup_datetime"]
    inside = pc.and_(pc.greater_equal(start, datetime(2020, 3, 1)), pc.less(start, datetime(2021, 1, 1)))
    table = table.filter(inside)
    seconds = table["lpep_pickup_datetime"].cast(pa.timestamp("s")).cast(pa.int64()).to_numpy()
    if typical_week:
        seconds = MONDAY + (seconds - MONDAY) % (7 * 86400)
    trips = {
        "origin": table["PULocationID"],
        "destination": table["DOLocationID"],
        "time": pa.array(seconds, pa.timestamp("s")),
    }
    return read_flows(
        pa.table(trips), zones=TAXI / "taxi_zones.geojson", step="1h", hierarchy="ward", drop_invalid=True
    )


def compared(flows: Any, label: str, least_trips: float) -> dict[str, float]:
    """Median correlation of each method, spread evenly."""
    import crowdveil
    from crowdveil.analysis.profiles import trips_a_day
    from crowdveil.progress import no_progress
    from crowdveil.registry import find_method

    medians = {}
    for name in METHODS:
        method = find_method(name)
        release = method.run(flows, method.params.checked({"k": 10}), np.random.default_rng(0), no_progress)
        for weight in (None, "release"):
            found = crowdveil.profiles(release, original=flows, least_trips=least_trips, weight=weight)
            what = f"{label}_{name}{'_by_release' if weight else ''}"
            busy = trips_a_day(found.original, found.slots) >= least_trips
            say(f"{what}_median_correlation", float(np.nanmedian(found.correlation)))
            say(f"{what}_mean_correlation", float(np.nanmean(found.correlation)))
            say(f"{what}_median_error", float(np.nanmedian(found.error)))
            say(f"{what}_busy_ends_median_correlation", float(np.nanmedian(found.correlation[busy])))
            if weight is None:
                medians[name] = float(np.nanmedian(found.correlation))
                say(f"{what}_profiles", len(found))
                say(f"{what}_busy_ends_profiles", int(busy.sum()))
    return medians


def release_of_year() -> Path:
    """A year of hours as a verified release, made once."""
    import crowdveil

    folder = FOLDER / "od_profiles_year"
    if not folder.exists():
        data = data_file(f"od_year_{MATRICES}.parquet", lambda path: write_year(path, MATRICES))
        zones = data_file("od_year_zones.csv", write_zones_of_year)
        crowdveil.anonymize(data, folder, method="joint", zones=zones, step="1h", k=10, hierarchy="ward")
    return folder


def reconstruct(folder: str, over: str) -> int:
    """All estimates to a file; returns how many they are."""
    import crowdveil

    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        return crowdveil.reconstruct(folder, Path(scratch) / "estimates.parquet", over=over).tally().rows


def main() -> None:
    if len(sys.argv) == 3:
        folder, over = sys.argv[1:]
        answer(lambda: reconstruct(folder, over))
        return
    ratio = float("nan")
    if TAXI.is_dir():
        medians = compared(taxi(typical_week=False), "hours", TRIPS_A_DAY)
        # Ten months on one week: 43.7 times as many trips a day.
        compared(taxi(typical_week=True), "typical_week", TRIPS_A_DAY * 306 / 7)
        ratio = medians["joint"] / medians["atg-dual"]
    folder = release_of_year()
    for over in ("step", "week"):
        figures = measured(__file__, str(folder), over)
        say(f"year_{over}_seconds", figures["wall"])
        say(f"year_{over}_processor_seconds", figures["cpu"])
        say(f"year_{over}_estimates", int(figures["result"]))
        say(f"year_{over}_peak_mib", figures["peak_mib"])
    say("ratio", ratio)


if __name__ == "__main__":
    main()
