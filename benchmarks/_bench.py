"""What the benchmarks share: data made once, work measured in a process of its own, `name: value` lines."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SMALL = "--small" in sys.argv
"""Whether the small size was asked for, which a test runs."""
if SMALL:
    sys.argv.remove("--small")
FOLDER = Path(__file__).parents[1] / ".bench"
sys.path.extend(str(Path(__file__).resolve().parents[1] / "tests" / part) for part in ("support", "reference"))


def data_file(name: str, make: Callable[[Path], None]) -> Path:
    """A file that is made the first time it is asked for."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / name
    if not path.exists():
        partial = path.with_name("new-" + name)
        make(partial)
        partial.rename(path)
    return path


def say(name: str, value: float | int | str, unit: str = "") -> None:
    """Print one figure."""
    shown = f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
    print(f"{name}: {shown}{' ' + unit if unit else ''}", flush=True)


def measured(script: str, job: str, *arguments: str) -> dict[str, float]:
    """Run one of a script's jobs in a fresh process; wall and CPU seconds of the job, and the process's peak memory."""
    command = [sys.executable, script, job, *arguments, *(["--small"] if SMALL else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def answer(job: Callable[[], Any], warm: Callable[[], Any] | None = None) -> None:
    """In the measured process: run the job, and print what it took, with the number or the figures that it returns."""
    if warm is not None:
        warm()
    wall, cpu = time.perf_counter(), time.process_time()
    result = job()
    figures = {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak_mib": peak_mib(),
        **(result if isinstance(result, dict) else {"result": result if isinstance(result, int) else 0}),
    }
    print(json.dumps(figures))


def peak_mib() -> float:
    """Peak memory of this process alone: what getrusage reports includes the parent before the process was started."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def best(runs: list[dict[str, float]], what: str = "wall") -> float:
    """The smallest of several measurements: the one that the machine's other work disturbed least."""
    return min(run[what] for run in runs)


def oldenburg() -> Any:
    """The road network of Oldenburg, or a synthetic town where it is not there."""
    from crowdveil.experiments.network import read_network, street_grid

    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "oldenburg"
    files = folder / "vertices.txt", folder / "edges.txt"
    return read_network(*files) if files[1].exists() else street_grid(0)
