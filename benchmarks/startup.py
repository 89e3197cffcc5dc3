"""`crowdveil --help` against `python -c "import click, pydantic"`: what a user waits before anything happens."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from _bench import say

ROUNDS = 15
HELP = [
    sys.executable,
    "-c",
    "import sys; sys.argv = ['crowdveil', '--help']; from crowdveil.cli.main import run; run()",
]
BARE = [sys.executable, "-c", "import click, pydantic"]
HEAVY = ("numba", "geopandas", "pandas", "numpy", "pyarrow", "scipy")
LOADED = [
    sys.executable,
    "-c",
    "import sys, contextlib\nsys.argv = ['crowdveil', '--help']\nfrom crowdveil.cli.main import main\n"
    f"with contextlib.suppress(SystemExit): main()\nprint(','.join(m for m in {HEAVY} if m in sys.modules) or 'none')",
]


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    times: dict[str, list[float]] = {"help": [], "bare_imports": []}
    for _ in range(ROUNDS):
        times["help"].append(seconds(HELP))
        times["bare_imports"].append(seconds(BARE))
    for name, values in times.items():
        say(f"{name}_median", median(values), "s")
    loaded = subprocess.run(LOADED, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    say("heavy_packages_loaded_by_help", loaded)
    say("ratio", median(times["help"]) / median(times["bare_imports"]))


if __name__ == "__main__":
    main()
