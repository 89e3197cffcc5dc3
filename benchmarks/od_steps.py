"""Peak memory of `joint` at 1, 10 and 100 times the time steps: hourly matrices like `nyc`, from Parquet to a verified release.

Each size runs in a process of its own, with the flows in memory and on the disk (`rows_in`); the first two also with intervals
of time in windows of a day, which take four times as long. Printed are seconds, peak memory, and the bytes that each further
flow takes. Peak memory is that of the process itself: pages of files that are mapped into memory are not counted, since the
system drops them where it needs memory; `resident` includes them. The last figure is the peak memory on the disk at 100 times
the steps over that in memory.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

from _bench import answer, measured, say
from od_year import write_year, write_zones_of_year, year

STEPS = (72, 720, 7200)
STATUS = Path("/proc/self/status")


def rows_of(path: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(path).metadata.num_rows)


def own_memory_mib() -> float:
    """Memory of this process that is in no file."""
    line = next(x for x in STATUS.read_text().splitlines() if x.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


def watched(label: str, data: str, zones: str, rows_in: str) -> dict[str, float]:
    """One run, and the peak of the memory that is in no file, looked at every 20 milliseconds."""
    peak, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.is_set():
            peak[0] = max(peak[0], own_memory_mib())
            time.sleep(0.02)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        figures = year(label, data, zones, rows_in)
    finally:
        ended.set()
        watching.join()
    return {**figures, "own_mib": peak[0]}


def main() -> None:
    peaks: dict[str, list[tuple[int, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        zones = Path(folder) / "zones.csv"
        write_zones_of_year(zones)
        for steps in STEPS:
            path = Path(folder) / f"steps-{steps}.parquet"
            write_year(path, steps)
            say(f"{steps}_steps_flows", rows_of(path))
            for label in ("joint", "joint-adaptive")[: 1 if steps == STEPS[-1] else 2]:
                for rows_in in ("memory", "disk"):
                    found, name = measured(__file__, label, str(path), str(zones), rows_in), f"{label}_{rows_in}"
                    say(f"{steps}_steps_{name}_cpu", found["cpu"], "s")
                    say(f"{steps}_steps_{name}_peak", found["own_mib"], f"MiB, {found['peak_mib']:,.0f} resident")
                    peaks.setdefault(name, []).append((rows_of(path), found["own_mib"]))
    for name, ((rows, peak), (more, higher)) in ((name, found[-2:]) for name, found in peaks.items()):
        say(f"{name}_bytes_a_flow", (higher - peak) * 2**20 / (more - rows))
    say("ratio", peaks["joint_disk"][-1][1] / peaks["joint_memory"][-1][1])


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        answer(lambda: watched(*sys.argv[1:]))
