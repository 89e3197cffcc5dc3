"""CPU seconds of a small run against those of bare imports: what every command pays before and after the work itself.

A run goes from the command line to a verified release with attack and report, with compiled kernels: about 9,000 flows between
263 zones with `joint`, and 2,500 cab rides with `microaggregation` (made-up drives where the cab file is not there). Bare imports
are those of numba, pyarrow, pydantic and click, without which no run works. Runs and imports alternate, and the least of several
rounds counts, since other work on the machine only adds to it. `stages` prints where the seconds of the run on flows go.

The last figure is the run on flows over the bare imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _bench import FOLDER, data_file, say

ROUNDS = 5
RIDES = 2500
CABS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sf_cabs" / "cabs_dataset_0700_0715.parquet"
IMPORTS = [sys.executable, "-c", "import click, numba, pyarrow.parquet, pydantic"]
COMMAND = [sys.executable, "-m", "crowdveil"]


def cpu(command: list[str]) -> float:
    """User and system seconds of a command and all that it starts. Bytecode is kept, as after an installation."""
    before = os.times()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def make_flows(path: Path) -> None:
    zones = str(FOLDER / "fixed-cost-zones.geojson")
    subprocess.run(
        [*COMMAND, "synth", "flows", "nyc", "--matrices", "3", "--zones-out", zones, "-o", str(path), "--overwrite"],
        check=True, capture_output=True,
    )  # fmt: skip


def make_rides(path: Path) -> None:
    if not CABS.exists():
        subprocess.run(
            [*COMMAND, "synth", "trajectories", str(RIDES), "-o", str(path)], check=True, capture_output=True
        )
        return
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(CABS)
    first = pc.unique(table["trajectory_id"]).slice(0, RIDES)
    pq.write_table(table.filter(pc.is_in(table["trajectory_id"], value_set=first)), path)


def main() -> None:
    flows, rides = data_file("fixed-cost-flows.parquet", make_flows), data_file("fixed-cost-rides.parquet", make_rides)
    zones = str(FOLDER / "fixed-cost-zones.geojson")
    with tempfile.TemporaryDirectory() as scratch:
        out = ["-o", str(Path(scratch, "out")), "--overwrite"]
        commands = {
            "imports": IMPORTS,
            "flows": [*COMMAND, "anonymize", "joint", str(flows), "--zones", zones, *out],
            "rides": [*COMMAND, "anonymize", "microaggregation", str(rides), *out],
        }
        for command in commands.values():
            cpu(command)  # compiles kernels, where they are not on the disk
        taken = {name: min(seconds) for name, seconds in _rounds(commands).items()}
    for name, seconds in taken.items():
        say(f"{name}_cpu", seconds, "s")
    say("rides_ratio", taken["rides"] / taken["imports"])
    say("ratio", taken["flows"] / taken["imports"])


def _rounds(commands: dict[str, list[str]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            found[name].append(cpu(command))
    return found


def stages() -> None:
    """Print CPU seconds of imports, and of each stage of a first and of a second run in one process."""
    from crowdveil.startup.lazy_records import parse_types_later, write_methods_later
    from crowdveil.startup.unused_imports import leave_out_unused

    leave_out_unused()
    write_methods_later()
    parse_types_later()
    flows = data_file("fixed-cost-flows.parquet", make_flows)
    begin = time.process_time()
    import click
    import numba
    import pyarrow.parquet
    import pydantic

    say(
        "imports_bare",
        time.process_time() - begin,
        f"s ({click.__name__}, {numba.__name__}, {pyarrow.__name__}, {pydantic.__name__})",
    )
    begin = time.process_time()
    import crowdveil.cli.anonymize
    from crowdveil.run import pipeline

    say("imports_crowdveil", time.process_time() - begin, f"s ({crowdveil.__name__})")
    with tempfile.TemporaryDirectory() as scratch:
        for turn in ("first", "second"):
            last = ["start", time.process_time()]

            def stage(name: str, turn: str = turn, last: list[object] = last) -> None:
                now = time.process_time()
                say(f"{turn}_{last[0]}", now - float(str(last[1])), "s")
                last[:] = [name, now]

            request = pipeline.Request(
                "joint", flows, Path(scratch, turn), {}, {"zones": FOLDER / "fixed-cost-zones.geojson"}
            )
            pipeline.run(request, stage=stage)
            stage("end")


if __name__ == "__main__":
    stages() if sys.argv[1:] == ["stages"] else main()
