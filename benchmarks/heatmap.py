"""The heat map of San Francisco's cabs, against the CPU seconds that mdl-anonymizer takes, and with the plain twin of the tests.

From reading the file to the GeoJSON that was checked against the original, in a process that has done a small run before; best of
several runs, CPU seconds. The peer's figures were measured once on two cores of the same kind, and two seconds of imports are
taken off. Ours counts people, and finds more sectors than MobiDataLab's method (`document`: long sectors are not halved,
nothing is suppressed). The last line is the plain twin's CPU seconds over ours, for cutting the map of the whole day on the same
cells.

`heatmap.py large` draws a made-up city of 200,000 drives; its last line is the share of the CPU seconds that cutting takes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _bench import answer, data_file, measured, say

ROOT = Path(__file__).resolve().parents[1]
CABS = ROOT.parent / "shared" / "data" / "sf_cabs"
FILES = {
    "S": "cabs_dataset_20080608_0700_0715.csv",
    "M": "cabs_dataset_20080608_0800_1200.parquet",
    "L": "cabs_dataset_20080608.parquet",
}
PEER = {("S", 5): 14.0, ("S", 10): 9.7, ("M", 5): 126.0, ("M", 10): 86.0}
IMPORTS_S, ROUNDS = 2.0, 5
DOCUMENT = {"halve_long": False, "suppress": 0.0}


def draw(path: str, k: int, **options: Any) -> Any:
    import crowdveil

    with tempfile.TemporaryDirectory() as folder:
        return crowdveil.quadtree_heatmap(path, Path(folder) / "map.geojson", min_k=k, **options)


def best_cpu(work: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, Any]:
    """CPU seconds of the run that the machine's other work disturbed least, and its result."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        found = work()
        taken.append(time.process_time() - start)
    return min(taken), found


def whole_way(size: str, k: int, document: bool) -> dict[str, float]:
    cpu, found = best_cpu(lambda: draw(str(CABS / FILES[size]), k, **(DOCUMENT if document else {})))
    return {"best_cpu": cpu, "sectors": len(found), "suppressed": found.cut.suppressed, "points": found.data.points}


def against_the_twin() -> dict[str, float]:
    """Cutting alone, on the same cells."""
    import numpy as np

    from crowdveil.io.trajectories import read_trajectories
    from crowdveil.kernels.trajectory.quadtree import k_anonymous_sectors as cut
    from crowdveil.model.sectors import SectorFrame
    from crowdveil.model.tessellation import public_box

    sys.path.insert(0, str(ROOT / "tests"))
    from plain_quadtree import HeatMap, Point

    data = read_trajectories(CABS / FILES["L"])
    frame = SectorFrame.around(public_box(data.extent, 100.0), 100.0)
    x, y = (frame.cells(along) for along in frame.projection.to_plane(data.lon, data.lat))
    person = np.repeat(data.person, np.diff(data.offsets)).astype(np.int32)
    points = [Point(*row) for row in zip(x.tolist(), y.tolist(), person.tolist(), strict=True)]
    side = 1 << frame.depth
    ours, found = best_cpu(
        lambda: cut(x.copy(), y.copy(), person.copy(), data.people, frame.depth, 5, 5, True, True, 0.01)
    )
    plain, wanted = best_cpu(lambda: HeatMap(5, 5, True, True, 0.01).sectors(points, (0, 0, side, side)), 2)
    if len(found[0]) != len(wanted):
        sys.exit("the two cut the map differently")
    return {"ours": ours, "plain": plain}


def main() -> None:
    if not CABS.is_dir():
        sys.exit(f"there is no {CABS}, so there is nothing to measure")
    for size in FILES:
        for k in (5, 10):
            for how in ("ours", "document"):
                figures = measured(__file__, "whole", size, str(k), how)
                label = f"{size}_k{k}_{how}"
                say(f"{label}_sectors", int(figures["sectors"]))
                say(f"{label}_suppressed", f"{int(figures['suppressed']):,} of {int(figures['points']):,}")
                say(f"{label}_cpu", figures["best_cpu"], "s")
                if (size, k) in PEER:
                    peer = PEER[size, k]
                    say(f"{label}_peer", f"{peer:g} s, {(peer - IMPORTS_S) / figures['best_cpu']:,.0f} times ours")
    figures = measured(__file__, "twin")
    say("cutting_cpu", figures["ours"], "s")
    say("plain_twin_cpu", figures["plain"], "s")
    say("ratio", figures["plain"] / figures["ours"])


def large() -> None:
    from crowdveil.synth.city import City
    from crowdveil.synth.trajectories import write_trajectories

    city = City.make(1, 2500, 100_000)
    path = data_file("drives_heatmap.parquet", lambda file: write_trajectories(city, file, 200_000, seed=1))
    figures = measured(__file__, "large_run", str(path))
    say("points", int(figures["points"]))
    say("sectors", int(figures["sectors"]))
    say("cutting_cpu", figures["cut"], "s")
    say("whole_cpu", figures["cpu"], "s")
    say("peak", figures["peak_mib"], "MiB")
    say("ratio", figures["cut"] / figures["cpu"])


def large_run(path: str) -> dict[str, float]:
    import crowdveil
    from crowdveil.solve.trajectory.quadtree import k_anonymous_sectors

    with tempfile.TemporaryDirectory() as folder:
        found = crowdveil.quadtree_heatmap(path, Path(folder) / "map.geojson")
    start = time.process_time()
    k_anonymous_sectors(found.data, 5, 100.0, 5, suppress=0.01)
    return {"points": found.data.points, "sectors": len(found), "cut": time.process_time() - start}


if __name__ == "__main__":
    job = sys.argv[1] if len(sys.argv) > 1 else ""
    if not job:
        main()
    elif job == "large":
        large()
    elif job == "whole":
        _, _, size, k, how = sys.argv
        small = str(CABS / FILES["S"])
        answer(lambda: whole_way(size, int(k), how == "document"), lambda: draw(small, 5))
    elif job == "twin":
        answer(against_the_twin)
    else:
        answer(lambda: large_run(sys.argv[2]))
