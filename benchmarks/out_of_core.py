"""Trips in Parquet to hourly flows and a verified release of `suppression`, at 1, 10 and 100 times the trips; memory and time.

A city of 400 tiles, 1 million people and a week of hours, so that the number of flows is bounded while trips grow: memory
must not grow with trips. Each size is a folder of files of 10 million trips, and runs in a process of its own. Printed are
seconds, peak memory, the exponents of growth (0: constant, 1: in proportion to the trips), and what they give for a billion
trips. Arguments: the numbers of trips (default: 10⁶, 10⁷, 10⁸). The last figure is the peak memory of the largest number
over that of the one before. The files are removed afterwards.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from _bench import answer, measured, peak_mib, say

TILES, PEOPLE, DAYS, PER_FILE = 400, 1_000_000, 7, 10_000_000
SIZES = (10**6, 10**7, 10**8)
BILLION = 10**9


def make(folder: Path, trips: int) -> None:
    """Write trips to files of at most `PER_FILE` each, and the zones."""
    from crowdveil.synth.city import City
    from crowdveil.synth.trips import write_trips

    city = City.make(1, TILES, PEOPLE)
    for i, first in enumerate(range(0, trips, PER_FILE)):
        number = min(PER_FILE, trips - first)
        write_trips(city, folder / f"trips-{i:03}.parquet", number, DAYS, seed=i, zone_ids="name")


def write_zones(path: Path) -> None:
    """Write the tiles of the city."""
    from crowdveil.synth.city import City

    zones = City.make(1, TILES, PEOPLE).zones
    lines = [f"{name},{lon},{lat}" for name, lon, lat in zip(zones.ids, zones.lon, zones.lat, strict=True)]
    path.write_text("zone_id,lon,lat\n" + "\n".join(lines) + "\n")


def release(data: str, zones: str) -> dict[str, float]:
    """Run from files to a verified release; seconds and memory of each stage, and the rows published."""
    from crowdveil.run.pipeline import Request, run

    begun: list[tuple[str, float, float]] = []

    def note(stage: str) -> None:
        begun.append((stage.split()[0], time.perf_counter(), peak_mib()))

    with tempfile.TemporaryDirectory() as folder:
        request = Request(
            "suppression", data, Path(folder) / "out", {"k": 10}, {"zones": zones, "step": "1h"},
            options={"attack": False, "report": False},
        )  # fmt: skip
        result = run(request, stage=note)
        note("end")
    figures: dict[str, float] = {"published": len(result.release)}
    for (stage, begin, _), (_, end, peak) in pairwise(begun):
        figures |= {f"{stage}_wall": end - begin, f"peak_mib_after_{stage}": peak}
    return figures


def main() -> None:
    sizes = tuple(int(size) for size in sys.argv[1:]) or SIZES
    found: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as scratch:
        zones = Path(scratch) / "zones.csv"
        write_zones(zones)
        for trips in sizes:
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                make(Path(folder), trips)
                found.append(measured(__file__, "release", folder, str(zones)))
            for name in found[-1]:
                say(f"{trips}_trips_{name}", found[-1][name])
    before, last = found[-2:]
    times = math.log(sizes[-1] / sizes[-2])
    exponent = {name: math.log(last[name] / before[name]) / times for name in ("cpu", "wall", "peak_mib", "published")}
    for name, value in exponent.items():
        say(f"exponent_{name}", value)
        say(f"at_a_billion_trips_{name}", last[name] * (BILLION / sizes[-1]) ** value)
    say("ratio", last["peak_mib"] / before["peak_mib"])


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "release":
        answer(lambda: release(sys.argv[2], sys.argv[3]))
    else:
        main()
