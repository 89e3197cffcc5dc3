"""Time and memory of whole runs at 1, 10 and 100 times the flows, time steps, tiles or points, with the exponents of growth.

From Parquet to a verified release, without attack and report, in a process of its own for each size: `joint` on one matrix of
10⁴ to 10⁶ flows on 3,000 tiles; on 7 to 720 hourly matrices like `nyc`; on 50,000 flows (45,000 on the fewest) on 300 to 30,000
tiles; `microaggregation` (k = 3) on 27,500 to 2.75 million points of drives in a month, and `swapmob` on 110,000 to 11 million. A
small run before loads libraries and kernels; its peak memory is what a process takes in any case, and is subtracted. An exponent
of 1 means in proportion to the size, 0 a constant.

Arguments: some of flows, steps, tiles, grouped (`microaggregation`), swapped (`swapmob`), points (both); default: all. The last
figure is the memory of each unit (such as bytes a point) at the largest size of the last subject over that at a tenth of it.
"""

from __future__ import annotations

import math
import sys
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from _bench import answer, data_file, measured, peak_mib, say

SIZES = {
    "flows": (10**4, 10**5, 10**6),
    "steps": (7, 72, 720),
    "tiles": (300, 3_000, 30_000),
    "grouped": (27_500, 275_000, 2_750_000),
    "swapped": (110_000, 1_100_000, 11_000_000),
}
WARM = {"flows": 1_000, "steps": 1, "tiles": 100, "grouped": 20_000, "swapped": 20_000}
METHODS: dict[str, tuple[str, dict[str, int]]] = {"grouped": ("microaggregation", {"k": 3}), "swapped": ("swapmob", {})}
"""Methods on points; all others run `joint`."""
TILES, FLOWS = 3_000, 50_000


def write_matrix(folder: Path, tiles: int, flows: int) -> None:
    """Write one matrix, gravity on scattered tiles, as `data.parquet` with `zones.csv`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(flows + tiles)
    place = rng.normal(0, 0.3, (tiles, 2)) * rng.lognormal(0, 0.5, (tiles, 1)) + (2, 48)
    lines = [f"z{i},{lon:.6f},{lat:.6f}" for i, (lon, lat) in enumerate(place.tolist())]
    (folder / "zones.csv").write_text("zone_id,lon,lat\n" + "\n".join(lines) + "\n")
    pull = rng.lognormal(0, 0.6, tiles)
    keys = np.zeros(0, np.int64)
    while len(keys) < min(flows, tiles * tiles // 2):
        pairs = rng.choice(tiles, (2, flows), p=pull / pull.sum())
        keys = np.unique(np.append(keys, pairs[0] * tiles + pairs[1]))
    keys = np.sort(rng.permutation(keys)[:flows])
    names = pa.array([f"z{i}" for i in range(tiles)])
    ends = {"origin": names.take(pa.array(keys // tiles)), "destination": names.take(pa.array(keys % tiles))}
    pq.write_table(pa.table(ends | {"volume": rng.zipf(2.2, len(keys)).clip(max=200)}), folder / "data.parquet")


def make(subject: str, size: int, folder: Path) -> None:
    """Write the data of one size into a folder."""
    if subject in METHODS:
        from generalize_swap import make_drives

        drives = data_file(f"drives_{size}.parquet", partial(make_drives, points=size))
        (folder / "data.parquet").symlink_to(drives)
    elif subject == "steps":
        from od_year import write_year, write_zones_of_year

        write_year(folder / "data.parquet", size)
        write_zones_of_year(folder / "zones.csv")
    else:
        write_matrix(folder, *((TILES, size) if subject == "flows" else (size, min(FLOWS, size * size // 2))))


def release(subject: str, folder: str) -> None:
    """Run from files to a verified release."""
    from crowdveil.run.pipeline import Request, run

    reading = {} if subject in METHODS else {"zones": str(Path(folder) / "zones.csv"), "hierarchy": "ward"}
    if subject == "steps":
        reading["step"] = "1h"
    method, parameters = METHODS.get(subject, ("joint", {"k": 10}))
    with tempfile.TemporaryDirectory() as out:
        quick = {"attack": False, "report": False}
        run(Request(method, str(Path(folder) / "data.parquet"), Path(out) / "out", parameters, reading, quick))


def job(subject: str, folder: str, small: str) -> None:
    """In a process of its own: a small run, then the one that is measured."""
    release(subject, small)
    fixed = peak_mib()

    def run_large() -> dict[str, float]:
        release(subject, folder)
        return {"fixed_mib": fixed}

    answer(run_large)


def grow(subject: str, sizes: tuple[int, ...]) -> float:
    """Print the figures of each size of a subject; return the last ratio of memory for each unit."""
    found: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as scratch:
        small = Path(scratch) / "small"
        small.mkdir()
        make(subject, WARM[subject], small)
        for size in sizes:
            folder = Path(scratch) / str(size)
            folder.mkdir()
            make(subject, size, folder)
            found.append(measured(__file__, "job", subject, str(folder), str(small)))
            found[-1]["mib"] = max(found[-1]["peak_mib"] - found[-1]["fixed_mib"], 0.1)
            say(f"{size}_{subject}_cpu", found[-1]["cpu"], "s")
            say(f"{size}_{subject}_memory", found[-1]["mib"], f"MiB, and {found[-1]['fixed_mib']:.0f} MiB in any case")
            say(f"{size}_{subject}_bytes_each", found[-1]["mib"] * 2**20 / size)
    for (less, more), (before, after) in zip(pairwise(sizes), pairwise(found), strict=True):
        times = math.log(more / less)
        for what in ("cpu", "mib"):
            say(f"{subject}_{less}_to_{more}_exponent_{what}", math.log(after[what] / before[what]) / times)
    return found[-1]["mib"] / sizes[-1] / (found[-2]["mib"] / sizes[-2])


def main() -> None:
    ratio = 1.0
    given = [one for word in sys.argv[1:] for one in (METHODS if word == "points" else (word,))]
    for subject in given or SIZES:
        ratio = grow(subject, SIZES[subject])
    say("ratio", ratio)


if __name__ == "__main__":
    if sys.argv[1:2] == ["job"]:
        job(*sys.argv[2:5])
    else:
        main()
