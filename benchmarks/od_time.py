"""Intervals of time that fit the flows, and the same areas in all time steps, against areas of each time step.

`joint` with `time_partition` adaptive and stable, against steps; and `atg-dual` of the last two. k = 10, at most 10 %
suppressed, Ward tree: the yellow taxi sample by hour of day, and a week of green taxis by hour. "Cut again" is with free
splits. Ḡ is weighted by volume over all time steps. Profiles of zones are the trips that leave a zone in each hour, for a
reader who spreads every row evenly over its tiles. The correlation with the original is the median over zones with at least
20 trips, and over those with at least 1,000, without zones that have no profile at all, which are counted; of the week also with
the trips of equal hours of the day added up, which is what the other data set has. E is the
reconstruction error of the cells of time steps, a reader spreading rows evenly over tiles and time steps. CPU seconds of all.
`--small` as argument leaves out what is not of intervals. The last figure is Ḡ of adaptive intervals on the green week in parts
of the free one.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from _bench import SMALL, say

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
    from crowdveil.engine.progress import no_progress
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
    areas, step, row = release.areas, release.step, np.arange(len(release))
    if release.intervals is not None:
        slot, row = release.intervals.spread()
        step = np.searchsorted(flows.t, release.intervals.start)[slot]
        known = np.isin(release.intervals.start, flows.t)[slot]
        step, row = step[known], row[known]
    volume = (release.volume / release.steps_spanned)[row]
    for at, origin, trips in zip(step, release.origin[row], volume, strict=True):
        tiles = areas.tiles[areas.offsets[origin] : areas.offsets[origin + 1]]
        found[tiles, at] += trips / len(tiles)
    return found


def by_hour_of_day(flows: Any, profiles: Any) -> Any:
    """Add up the equal hours of all days, in the time that the week begins with; its first step is at midnight."""
    found = np.zeros((len(profiles), 24))
    np.add.at(found.T, (flows.t - flows.t[0]) // 3600 % 24, profiles.T)
    return found


def error_of_cells(flows: Any, release: Any) -> float:
    """E over all time steps together."""
    from crowdveil.measures.od.comparison import OdComparison
    from crowdveil.registry import find_measure

    return float(find_measure("E").of(OdComparison.between(flows, release).all_steps())[0])


def correlation(original: Any, estimate: Any, least: int) -> tuple[float, int]:
    """The median over zones with so many trips of the correlation of their hours; and how many have no profile to correlate."""
    zones = np.flatnonzero((original.sum(axis=1) >= least) & (np.ptp(original, axis=1) > 0))
    shown = [zone for zone in zones if np.ptp(estimate[zone]) > 0]
    found = [float(np.corrcoef(original[zone], estimate[zone])[0, 1]) for zone in shown]
    return float(np.median(found)), len(zones) - len(shown)


ADAPTIVE: dict[str, dict[str, Any]] = {
    f"adaptive, an hour worth {weight}": {"time_partition": "adaptive", "hour_weight": weight} for weight in (20, 5, 1)
}
FIVE, ONE = (f"adaptive, an hour worth {weight}" for weight in (5, 1))


def compare(name: str, flows: Any, *, quick: bool) -> dict[str, float]:
    """Print the figures of a data set; the generalization of each run in parts of the free one."""
    say(f"{name}: trips", int(flows.volume.sum()))
    original, found = leaving(flows), {}
    runs: dict[str, tuple[str, dict[str, Any]]] = {
        "free": ("joint", {}),
        **{label: ("joint", asked) for label, asked in ADAPTIVE.items()},
        "stable": ("joint", {"time_partition": "stable"}),
        "stable dyadic": ("joint", {"time_partition": "stable", "splits": "dyadic"}),
        "stable by type of day": ("joint", {"time_partition": "stable", "stable_by": "day-type"}),
        "stable, cut again": ("joint", {"time_partition": "stable", "splits": "free"}),
        "adaptive, cut again": ("joint", {"time_partition": "adaptive", "splits": "free"}),
        "free atg-dual": ("atg-dual", {}),
        "stable atg-dual": ("atg-dual", {"time_partition": "stable"}),
    }
    for label, (method, parameters) in runs.items():
        if quick and label != "free" and label not in ADAPTIVE:
            continue
        release, cpu = solved(flows, method, **parameters)
        found[label] = tiles_of(release)
        say(f"{name}: {label}: Ḡ", found[label], "tiles")
        say(f"{name}: {label}: suppressed", 1 - float(release.volume.sum()) / float(flows.volume.sum()))
        say(f"{name}: {label}: mean length of intervals", float(np.average(release.hours, weights=release.volume)), "h")
        say(f"{name}: {label}: E", error_of_cells(flows, release))
        estimate = leaving(flows, release)
        for least in (THIN, BUSY):
            median, without = correlation(original, estimate, least)
            say(f"{name}: {label}: correlation of zones with {least} trips", median)
            say(f"{name}: {label}: zones with {least} trips without a profile", without)
            if flows.steps > 24:
                days = correlation(by_hour_of_day(flows, original), by_hour_of_day(flows, estimate), least)[0]
                say(f"{name}: {label}: correlation of zones with {least} trips, hours of the day", days)
        say(f"{name}: {label}: CPU", cpu, "s")
    return {label: value / found["free"] for label, value in found.items()}


def main() -> None:
    """Compare on both data sets."""
    if not TAXI.exists():
        say("skipped", "the taxi data are not there")
        return
    week = compare("green week", green(), quick=SMALL)
    sample = compare("yellow sample", yellow(), quick=SMALL)
    if not SMALL:
        say("green week: stable / free Ḡ", week["stable"])
        say("yellow sample: stable / free Ḡ", sample["stable"])
    say("yellow sample: adaptive / free Ḡ", sample[ONE])
    say("green week: adaptive / free Ḡ", week[FIVE])


if __name__ == "__main__":
    main()
