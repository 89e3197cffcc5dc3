"""Trips of thirty days to 720 anonymized hourly matrices, on Spark and on one machine; the ratio of the two, start-up aside.

    python benchmarks/spark.py [TRIPS [METHOD]]

5 million trips and joint, unless others are named; the full size is 50000000. Spark runs on executors in processes of their own,
one a core, on this machine (`local-cluster`). Memory is reported by kind of process: the driver (Python and Java), the largest
executor (Java), and the largest Python next to one. Both sides write and verify a release, attack it, and draw no report. Before
the clock runs, each side does a small run: libraries and kernels are loaded on both. The ratio in processor seconds is the one to
look at where the machine has other work to do.

What a billion trips take on 50 executors of one core is reckoned from this as if all of the time grew with the trips and were
spread over cores. It leaves out what this machine cannot show: a network between executors, and disks that are shared.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from _bench import SMALL, answer, data_file, measured, say

TRIPS, TILES, PEOPLE, DAYS, K = (50_000 if SMALL else 5_000_000), 400, 1_000_000, 30, 10
CORES = 2
MASTER = f"local-cluster[{CORES},1,3072]"
BILLION, EXECUTORS = 1_000_000_000, 50


def make(path: Path, trips: int) -> None:
    from crowdveil.synth.city import City
    from crowdveil.synth.trips import write_trips

    write_trips(City.make(1, TILES, PEOPLE), path, trips, DAYS, seed=1)


def make_zones(path: Path) -> None:
    from crowdveil.io.geojson import write_zones
    from crowdveil.synth.city import City

    write_zones(City.make(1, TILES, PEOPLE).zones, path)


def run(path: str, zones: str, method: str, spark: Any = None, step: str = "1h") -> int:
    import crowdveil

    with tempfile.TemporaryDirectory() as folder:
        result = crowdveil.anonymize(
            path,
            f"{folder}/out",
            method=method,
            zones=zones,
            step=step,
            tz="Europe/Paris",
            spark=spark,
            report=False,
            k=K,
        )
        volume: int = result.manifest["cost"]["published_volume"]
        return volume


class Watch(threading.Thread):
    """Looks at the processes below this one, and keeps the largest of each kind."""

    KINDS = ("driver_python", "driver_java", "executor_java", "executor_python")

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mib = dict.fromkeys(self.KINDS, 0.0)
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.2):
            for pid in _below(os.getpid()):
                kind, size = _kind(pid), _size_mib(pid)
                self.peak_mib[kind] = max(self.peak_mib[kind], size)


def _below(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(status.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _kind(pid: int) -> str:
    if pid == os.getpid():
        return "driver_python"
    try:
        line = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return "executor_python"
    if "CoarseGrainedExecutorBackend" in line:
        return "executor_java"
    return "driver_java" if "SparkSubmit" in line else "executor_python"


def _size_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), default=0.0)


def _cpu_s() -> float:
    """Processor seconds of this process and all below it, those that have ended too."""
    ticks = 0
    for pid in _below(os.getpid()):
        try:
            ticks += sum(int(x) for x in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15])
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def on_spark(path: str, small: str, zones: str, method: str) -> None:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    began = time.perf_counter()
    settings = {
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "spark.executor.memory": "2g",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master(MASTER)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session, watch = builder.getOrCreate(), Watch()
    watch.start()
    run(small, zones, method, session)
    start = time.perf_counter() - began

    def job() -> dict[str, float]:
        before = _cpu_s()
        volume = run(path, zones, method, session)
        watch.ended.set()
        return {"volume": volume, "start": start, "all_cpu": _cpu_s() - before, **watch.peak_mib}

    answer(job)
    session.stop()


def main(trips: int, method: str) -> None:
    path = str(data_file(f"spark_{trips}.parquet", lambda file: make(file, trips)))
    small = str(data_file("spark_20000.parquet", lambda file: make(file, 20_000)))
    zones = str(data_file("spark_zones.geojson", make_zones))
    say("trips", trips)
    say("method", method)
    here = measured(__file__, "local", path, small, zones, method)
    there = measured(__file__, "spark", path, small, zones, method)
    if here["result"] != there["volume"]:
        raise SystemExit("the two published different volumes")
    say("local_s", here["wall"])
    say("local_peak_mib", here["peak_mib"])
    say("spark_s", there["wall"])
    say("spark_start_and_small_run_s", there["start"])
    for kind in Watch.KINDS:
        say(f"{kind}_peak_mib", there[kind])
    rate = trips / there["wall"] / CORES
    say("trips_a_core_and_second_on_spark", int(rate))
    say("reckoned_minutes_for_a_billion_on_50_executors", BILLION / rate / EXECUTORS / 60)
    say("spark_over_local_in_processor_seconds", there["all_cpu"] / here["cpu"])
    say("spark_over_local", there["wall"] / here["wall"])


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "local":
        answer(lambda: run(sys.argv[2], *sys.argv[4:]), lambda: run(sys.argv[3], *sys.argv[4:]))
    elif len(sys.argv) > 2 and sys.argv[1] == "spark":
        on_spark(*sys.argv[2:])
    else:
        given = sys.argv[1:]
        main(int(given[0]) if given else TRIPS, given[1] if len(given) > 1 else "joint")
