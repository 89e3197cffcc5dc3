"""The same areas in all time steps (`time_partition=stable`) against areas of each time step, and `atg-dual` of each.

k = 10, at most 10 % suppressed, Ward tree: the yellow taxi sample by hour of day, and a week of green taxis by hour. Ḡ is
weighted by volume over all time steps. Profiles of zones are the trips that leave a zone in each hour, for a reader who spreads
every row evenly over its tiles. The correlation with the original is the median over zones with at least 20 trips, and over
those with at least 1,000, without zones that have no profile at all, which are counted. CPU seconds of both. The last figure is
Ḡ of the stable areas of the yellow sample in parts of the free one.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from _bench import say

TAXI = Path(__file__).parents[2] / "shared" / "data" / "nyc_taxi"
WEEK = ("2020-03-02", "2020-03-09")
THIN, BUSY = 20, 1000


def yellow() -> Any:
    """24 matrices, one for each hour of the day."""
    from od_quality import taxi

    return taxi()


def green() -> Any:
    """A week, one matrix for each hour."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from crowdveil import read_flows

    table = pq.read_table(TAXI / "green_2020-03_2020-12.parquet")
    when = table["lpep_pickup_datetime"]
    first, last = (pc.cast(pa.scalar(day), when.type) for day in WEEK)
    table = table.filter(pc.and_(pc.greater_equal(when, first), pc.less(when, last)))
    return read_flows(
        table, zones=TAXI / "taxi_zones.geojson", zone_id="OBJECTID", origin="PULocationID", destination="DOLocationID",
        time="lpep_pickup_datetime", step="1h", tz="America/New_York", drop_invalid=True,
    )  # fmt: skip


def solved(flows: Any, method: str, **parameters: Any) -> tuple[Any, float]:
    """A release, and the CPU seconds that it took."""
    from crowdveil.progress import no_progress
    from crowdveil.registry import find_method

    found = find_method(method)
    begun = time.process_time()
    release = found.run(flows, found.params.checked({"k": 10, **parameters}), np.random.default_rng(0), no_progress)
    return release, time.process_time() - begun


def tiles_of(release: Any) -> float:
    """Tiles of origin and destination together, the mean over all published trips."""
    size = release.areas.size
    return float(np.average(size[release.origin] + size[release.destination], weights=release.volume))


def leaving(flows: Any, release: Any = None) -> Any:
    """Trips that leave each zone in each time step, of the original or of a reader of a release; a row for each zone."""
    found = np.zeros((len(flows.zones), flows.steps))
    if release is None:
        np.add.at(found, (flows.origin, flows.step), flows.volume)
        return found
    areas = release.areas
    for step, origin, volume in zip(release.step, release.origin, release.volume, strict=True):
        tiles = areas.tiles[areas.offsets[origin] : areas.offsets[origin + 1]]
        found[tiles, step] += volume / len(tiles)
    return found


def correlation(original: Any, estimate: Any, least: int) -> tuple[float, int]:
    """The median over zones with so many trips of the correlation of their hours; and how many have no profile to correlate."""
    zones = np.flatnonzero((original.sum(axis=1) >= least) & (np.ptp(original, axis=1) > 0))
    shown = [zone for zone in zones if np.ptp(estimate[zone]) > 0]
    found = [float(np.corrcoef(original[zone], estimate[zone])[0, 1]) for zone in shown]
    return float(np.median(found)), len(zones) - len(shown)


def compare(name: str, flows: Any) -> float:
    """Print the figures of a data set; the ratio of the generalization of stable and free areas."""
    say(f"{name}: trips", int(flows.volume.sum()))
    original, found = leaving(flows), {}
    runs: dict[str, tuple[str, dict[str, Any]]] = {
        "free": ("joint", {}),
        "stable": ("joint", {"time_partition": "stable"}),
        "stable dyadic": ("joint", {"time_partition": "stable", "splits": "dyadic"}),
        "stable by type of day": ("joint", {"time_partition": "stable", "stable_by": "day-type"}),
        "free atg-dual": ("atg-dual", {}),
        "stable atg-dual": ("atg-dual", {"time_partition": "stable"}),
    }
    for label, (method, parameters) in runs.items():
        release, cpu = solved(flows, method, **parameters)
        found[label] = tiles_of(release)
        say(f"{name}: {label}: Ḡ", found[label], "tiles")
        say(f"{name}: {label}: suppressed", 1 - float(release.volume.sum()) / float(flows.volume.sum()))
        estimate = leaving(flows, release)
        for least in (THIN, BUSY):
            median, without = correlation(original, estimate, least)
            say(f"{name}: {label}: correlation of zones with {least} trips", median)
            say(f"{name}: {label}: zones with {least} trips without a profile", without)
        say(f"{name}: {label}: CPU", cpu, "s")
    return found["stable"] / found["free"]


def main() -> None:
    """Compare on both data sets."""
    if not TAXI.exists():
        say("skipped", "the taxi data are not there")
        return
    say("green week: stable / free Ḡ", compare("green week", green()))
    say("yellow sample: stable / free Ḡ", compare("yellow sample", yellow()))


if __name__ == "__main__":
    main()
