"""Peak memory of `joint` at 1, 10 and 100 times the time steps: hourly matrices like `nyc`, from Parquet to a verified release.

Each size runs in a process of its own; the first two also with intervals of time in windows of a day, which take four times as
long. Boxes of one time step or one window are held at a time; the flows of all time steps are, and the rows of the release while
they are verified. Printed are seconds, peak memory, and the bytes that each further flow takes. The last figure is the peak
memory at 100 times the steps over that at 10 times.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from _bench import answer, measured, say
from od_year import write_year, write_zones_of_year, year

STEPS = (72, 720, 7200)


def rows_of(path: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(path).metadata.num_rows)


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
                found = measured(__file__, label, str(path), str(zones))
                say(f"{steps}_steps_{label}_cpu", found["cpu"], "s")
                say(f"{steps}_steps_{label}_peak", found["peak_mib"], "MiB")
                peaks.setdefault(label, []).append((rows_of(path), found["peak_mib"]))
    for label, ((rows, peak), (more, higher)) in ((label, found[-2:]) for label, found in peaks.items()):
        say(f"{label}_bytes_a_flow", (higher - peak) * 2**20 / (more - rows))
    say("ratio", peaks["joint"][-1][1] / peaks["joint"][-2][1])


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        answer(lambda: year(sys.argv[1], sys.argv[2], sys.argv[3]))
