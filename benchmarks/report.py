"""A run with its report against the same run without: a week of hourly flows by `joint`.

Prints the size of that report and of one of 100,000 flows between 10,000 areas, the processor seconds that the latter takes, and
last the processor seconds of the run with a report over those without.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from _bench import say

AREAS, FLOWS, STEPS, ROUNDS = 100, 100_000, 24, 3


def many_flows(folder: Path, manifest: dict[str, object]) -> None:
    """Flows between the cells of a grid, written as a release."""
    from synthetic import grid_frame

    from crowdveil.io.release_writer import write_release
    from crowdveil.io.written_release import read_release
    from crowdveil.model.areas import Areas
    from crowdveil.model.release import FlowRelease
    from crowdveil.model.tessellation import grid_zones
    from crowdveil.report.html import public_report

    rng = np.random.default_rng(1)
    column, row = np.meshgrid(np.arange(AREAS, dtype=np.int32), np.arange(AREAS, dtype=np.int32))
    zones = grid_zones(grid_frame(np.array([2.0, 2.6]), np.array([48.5, 49.0]), 400.0), column.ravel(), row.ravel())
    ends = rng.integers(0, AREAS * AREAS, (2, FLOWS))
    volume = (10 / (rng.random(FLOWS) + 0.001)).astype(np.int64) + 1
    release = FlowRelease(
        Areas.of_tiles(zones, np.arange(AREAS * AREAS, dtype=np.int32)), 1_767_225_600 + 3600 * np.arange(STEPS),
        np.linspace(0, FLOWS, STEPS + 1).astype(np.int64), ends[0], ends[1], volume, volume, np.zeros(FLOWS, np.uint8),
        np.full(STEPS, -1), "people", 3600, "UTC",
    )  # fmt: skip
    written = read_release(folder, write_release(release, folder, "parquet"))
    begin = time.process_time()
    text = public_report(written, manifest)
    say("many_flows_report_cpu", time.process_time() - begin, "s")
    say("many_flows_report", len(text.encode()) / 1e6, "MB")


def main() -> None:
    import crowdveil
    from crowdveil.synth.city import City
    from crowdveil.synth.trips import write_trips

    quick = "quick" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        city = City.make(1, 144, 20_000)
        crowdveil.write_zones(city.zones, folder / "zones.geojson")
        write_trips(city, folder / "trips.parquet", 50_000 if quick else 400_000, 7, seed=1)
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(ROUNDS + 1):
            for report in (True, False):
                begin = time.process_time()
                crowdveil.anonymize(folder / "trips.parquet", folder / "out", method="joint", zones=folder / "zones.geojson",
                                    step="1h", k=10, report=report, overwrite=True)  # fmt: skip
                if turn:  # the first compiles
                    seconds[report].append(time.process_time() - begin)
        crowdveil.write_report(folder / "out")
        say("week_report", (folder / "out" / "report.html").stat().st_size / 1e6, "MB")
        manifest = json.loads((folder / "out" / "manifest.json").read_text())
        (folder / "many").mkdir()
        many_flows(folder / "many", manifest)
        with_it, without = min(seconds[True]), min(seconds[False])
        say("run_with_report_cpu", with_it, "s")
        say("run_without_report_cpu", without, "s")
        say("ratio", with_it / without)


if __name__ == "__main__":
    main()
