"""CPU seconds of the first run after an installation against a later one: what compiling kernels takes.

Both are the run of `fixed_cost.py` on about 9,000 flows with `joint`, from the command line to a verified release with attack
and report; the first has an empty folder for compiled kernels. They alternate, and the least of several rounds counts, since
other work on the machine only adds to it. Printed too: the seconds that the first run takes longer.

The last figure is the first run over the later one.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from _bench import FOLDER, data_file, say
from fixed_cost import COMMAND, cpu, make_flows

ROUNDS = 3


def main() -> None:
    flows, zones = data_file("fixed-cost-flows.parquet", make_flows), str(FOLDER / "fixed-cost-zones.geojson")
    taken: dict[str, list[float]] = {"first": [], "later": []}
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            os.environ["NUMBA_CACHE_DIR"] = scratch
            out = ["-o", str(Path(scratch, "out")), "--overwrite"]
            for name in ("first", "later"):
                taken[name].append(cpu([*COMMAND, "anonymize", "joint", str(flows), "--zones", zones, *out]))
    first, later = (min(seconds) for seconds in taken.values())
    say("first_cpu", first, "s")
    say("later_cpu", later, "s")
    say("longer", first - later, "s")
    say("ratio", first / later)


if __name__ == "__main__":
    main()
