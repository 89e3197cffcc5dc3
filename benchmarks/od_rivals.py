"""All OD methods side by side, k = 10 and at most 10 % suppressed: generalization Ḡ, reconstruction E, suppression S, seconds.

On matrices like those of the literature, and on the yellow taxi sample by hour of day where it is available; one
thread, solving only. Ḡ is the mean over matrices of |o| + |d| over published trips, |o| the tiles that are published. For boxes
of rivals that are no nodes of a tree (mondrian, glove, glove-sk) these are the tiles whose centroids lie in them, the finest way
to count; `meets` counts the tiles whose outlines meet the box, as the paper does. E of rows that overlap is that of their sum,
as `crowdveil measure` has it. `uniform` needs a grid and is left out; glove-sk is slow and gets one matrix of each data set.

Last come ratios, mean over data sets, of Ḡ of `joint` with dyadic splits to that of the best rival: of those whose rows do not
overlap (as ours do not), of all as the paper counts, of all as published; and, as published, the largest ratio of any data set
with `--splits free`, and its time in parts of that without. `od_rivals.py NAME…` compares these data sets only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from _bench import SMALL, say

DATA = Path(__file__).parents[2] / "shared" / "data"
PROFILES = ("nyc",) if SMALL else ("nyc", "civ", "senegal_crop", "senegal")
MATRICES = 1 if SMALL else 3
K = 10
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "joint-tree": ("joint", {}),
    "joint-dyadic": ("joint", {"splits": "dyadic"}),
    "joint-free": ("joint", {"splits": "free"}),
    "atg-dual": ("atg-dual", {}),
    "atg-coupled": ("atg-coupled", {}),
    "atg-soft": ("atg-soft", {}),
    "atg-exact": ("atg-exact", {}),
}
RIVALS: dict[str, tuple[str, dict[str, Any]]] = {
    "oigh": ("oigh", {}),
    "mondrian": ("mondrian", {}),
    "glove-small": ("glove", {"join": "small"}),
    "glove-any": ("glove", {"join": "any"}),
    "glove-sk": ("glove-sk", {}),
    "suppression": ("suppression", {}),
    "laplace": ("laplace", {}),
}
if SMALL:
    del RIVALS["glove-sk"]
BOXES = tuple(name for name in ("mondrian", "glove-small", "glove-any", "glove-sk") if name in RIVALS)
"""Rivals whose areas are rectangles."""


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a job, and its result."""
    begin = time.process_time()
    result = job()
    return time.process_time() - begin, result


def solved(name: str, flows: Any, parameters: dict[str, Any]) -> tuple[float, Any]:
    """Seconds and release of a method."""
    from crowdveil import engine
    from crowdveil.engine.progress import no_progress
    from crowdveil.registry import find_method

    found = find_method(name)
    known = {"k": K} if "k" in found.params.model_fields else {}
    params = found.params.checked({**known, **parameters})
    with engine.use(engine.LocalEngine(1)):
        return timed(lambda: found.run(flows, params, np.random.default_rng(0), no_progress))


def generalization(flows: Any, release: Any, size: Any) -> float:
    """Ḡ, with these sizes of areas."""
    errors = []
    for low, high in pairwise(release.offsets.tolist()):
        volume = release.volume[low:high]
        if volume.sum():
            both = size[release.origin[low:high]] + size[release.destination[low:high]]
            errors.append((both * volume).sum() / volume.sum())
    return float(np.mean(errors))


def compare(name: str, flows: Any) -> dict[str, float]:
    """All methods on a data set; Ḡ of joint with dyadic splits over that of the best rival, in three ways."""
    import crowdveil
    from crowdveil.measures.od.generalization import tiles_met

    errors, met, took = {}, {}, {}
    for label, (method, parameters) in {**OURS, **RIVALS}.items():
        here = flows if label != "glove-sk" else flows.where(flows.step == 0)
        solved(method, flows.where(flows.step == -1), parameters)  # so that imports are not measured
        seconds, release = solved(method, here, parameters)
        if label == "glove-sk":
            here = first_of(here)
            release = first_of(release)
        took[label] = seconds
        say(f"{name}_{label}_seconds_a_matrix", seconds / max(1, here.steps))
        if label not in ("suppression", "laplace"):
            errors[label] = generalization(here, release, release.areas.size)
            say(f"{name}_{label}_G", errors[label])
        if label in BOXES:
            met[label] = generalization(here, release, tiles_met(release.areas))
            say(f"{name}_{label}_G_meets", met[label])
        lost = crowdveil.measure(here, release, ["E", "S"])
        say(f"{name}_{label}_E", float(lost["E"].mean))
        say(f"{name}_{label}_S", float(lost["S"].mean))
    published = {label: errors[label] for label in ("oigh", *BOXES)}
    ways = {
        "ratio_disjoint": {label: errors[label] for label in ("oigh", "mondrian")},
        "ratio_meets": published | met,
        "ratio": published,
    }
    ratios = {way: errors["joint-dyadic"] / min(rivals.values()) for way, rivals in ways.items()}
    ratios["free_ratio"] = errors["joint-free"] / min(published.values())
    ratios["free_time"] = took["joint-free"] / took["joint-dyadic"]
    say(f"{name}_best_rival", min(published, key=lambda label: published[label]))
    for way, ratio in ratios.items():
        say(f"{name}_{way}", ratio)
    return ratios


def first_of(table: Any) -> Any:
    """Flows or a release with their first time step alone."""
    from dataclasses import replace

    more = {"suppressed": table.suppressed[:1]} if hasattr(table, "suppressed") else {}
    return replace(table, t=table.t[:1], offsets=table.offsets[:2], **more)


def main() -> None:
    from plain_rivals import taxis

    from crowdveil.experiments.profiles import make_profile
    from crowdveil.io.flows import with_tree

    wanted = sys.argv[1:] or [*PROFILES, *([] if SMALL else ["taxi_by_hour"])]
    made = [name for name in PROFILES if name in wanted]
    data = {name: with_tree(make_profile(name, np.random.default_rng(11), MATRICES), "ward") for name in made}
    if "taxi_by_hour" in wanted and (DATA / "nyc_taxi").is_dir():
        data["taxi_by_hour"] = taxis(DATA, "ward")
    if SMALL:
        data = {name: flows.where(np.arange(len(flows)) % 10 == 0) for name, flows in data.items()}
    warm = with_tree(make_profile("nyc", np.random.default_rng(1)), "ward")
    for method, parameters in {**OURS, **RIVALS}.values():
        solved(method, warm, parameters)
    ratios = [compare(name, flows) for name, flows in data.items()]
    for way in ratios[0]:
        over = max if way.startswith("free") else np.mean
        say(way, float(over([ratio[way] for ratio in ratios])))


if __name__ == "__main__":
    main()
