"""Audit of several releases: missed and false leaks against all sets of tiny releases, real leaks, and seconds per million atoms.

`proof`: 5,000 random pairs and 1,000 random triples of tiny releases (trees, dyadic, time-adaptive, suppressed totals, people),
against linear algebra over all sets of overlaps. `taxi`: two releases of the yellow taxi sample by hour of day, k = 10, joint on
the ward tree against another tree, dyadic splits, k = 20 and a budget of 5 %; an overlap is recovered if its volume follows
exactly from the published volumes. `synthetic`: a million atoms of two partitions that are not nested, in many time steps; one
matrix of 100,000 atoms; and nested releases with suppressed rows. The last figure is seconds per million atoms of the first.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from _bench import SMALL, say

sys.path.extend(
    str(Path(__file__).resolve().parents[1] / "tests" / part) for part in ("support", "reference", "ledger")
)
DATA = Path(__file__).parents[2] / "shared" / "data"
K = 10
SEED = 11
TRIPS_ALONE, WITH_PEOPLE, TRIPLES = (20, 20, 5) if SMALL else (3_000, 2_000, 500)
SIDE, STEPS = (50, 5) if SMALL else (700, 500)
"""Seed of the proof; `python benchmarks/ledger.py proof 20261116` takes other releases than the audit was developed with."""
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "other_tree": ("kd", {}),
    "dyadic": ("ward", {"splits": "dyadic"}),
    "k_20": ("ward", {"k": 20}),
    "budget_5_percent": ("ward", {"suppress": 0.05}),
}


def prove(seed: int) -> None:
    """Count what the audit misses, and what it refuses without a reason."""
    from audit_checks import check_pair, releases_of
    from plain_ledger import smallest_set

    from crowdveil.ledger.audit import audit

    missed = false = 0
    say("proof_seed", seed)
    for people, number in ((False, TRIPS_ALONE), (True, WITH_PEOPLE)):
        for world, made, k in releases_of(seed + people, number, people=people):
            exists, refused = check_pair(world, made, k)
            missed += exists and not refused
            false += refused and not exists
    say("pairs", TRIPS_ALONE + WITH_PEOPLE)
    say("pairs_missed", missed)
    say("pairs_false_alarms", false)
    missed = strict = 0
    for people, number in ((False, TRIPLES), (True, TRIPLES)):
        for world, made, k in releases_of(seed + 2 + people, number, people=people, releases=3):
            # The earlier two must have passed: what they reveal together is not new.
            if smallest_set([m.row for m in made[1:]], *world.records)[0] < k:
                continue
            exists = smallest_set([m.row for m in made], *world.records)[0] < k
            passed = audit(world.records, made[0], made[1:], k).passed
            missed += exists and passed
            strict += not exists and not passed
    say("triples", 2 * TRIPLES)
    say("triples_missed", missed)
    say("triples_refused_though_safe", strict)


def row_of(flows: Any, release: Any) -> Any:
    """The row of each flow; a published suppressed total is a row of its own."""
    from crowdveil.solve.od.assignment import row_of_flows, steps_of_release

    row = row_of_flows(flows, release)
    total = np.zeros(flows.steps, np.bool_)
    total[steps_of_release(flows, release)] = release.suppressed > 0
    step = np.repeat(np.arange(flows.steps), np.diff(flows.offsets))
    return np.where((row < 0) & total[step], len(release) + step, row)


def attack_taxis() -> None:
    """Audit pairs of releases of real trips."""
    from plain_rivals import taxis

    from crowdveil.engine.progress import no_progress
    from crowdveil.io.flows import with_tree
    from crowdveil.ledger.audit import Published, Records, audit
    from crowdveil.registry import find_method

    def made(tree: str, **parameters: Any) -> tuple[Any, Any]:
        method = find_method("joint")
        data = with_tree(flows, tree)
        params = method.params.checked({"k": K, **parameters})
        release = method.run(data, params, np.random.default_rng(0), no_progress)
        return release, row_of(data, release)

    flows = taxis(DATA)
    records = Records(flows.volume, None)
    say("taxi_trips", int(flows.volume.sum()))
    one, rows_of_one = made("ward")
    first = Published("first", rows_of_one)
    for name, (tree, parameters) in OTHERS.items():
        other, rows_of_other = made(tree, **parameters)
        second = Published(name, rows_of_other)
        begin = time.perf_counter()
        found = audit(records, second, [first], K)
        seconds = time.perf_counter() - begin
        pairs = np.unique(np.stack([first.row, second.row]), axis=1).shape[1]
        say(f"taxi_{name}_atoms", pairs)
        say(f"taxi_{name}_seconds", seconds)
        for release, rows in found.leaking_rows.items():
            say(f"taxi_{name}_leaking_rows_of_{release}", rows)
        say(f"taxi_{name}_smallest", found.smallest or 0)
        say(f"taxi_{name}_confined", found.confined)
        exact, single = recovered(records, first.row, second.row)
        say(f"taxi_{name}_overlaps_recovered", exact)
        say(f"taxi_{name}_flows_recovered", single)
        begin = time.perf_counter()
        attacked = attack_releases(one, other)
        say(f"taxi_{name}_attack_seconds", time.perf_counter() - begin)
        for value, number in attacked.items():
            say(f"taxi_{name}_attack_{value}", number or 0)


def attack_releases(one: Any, other: Any) -> Any:
    """What the published volumes alone reveal."""
    from crowdveil.attacks.base import FlowAttackParams
    from crowdveil.attacks.od.published import Published
    from crowdveil.attacks.od.releases import PublishedReleases, run

    releases = PublishedReleases(("first", "second"), (Published(one), Published(other)))
    return run(releases, FlowAttackParams(k=K)).values


def recovered(records: Any, first: Any, second: Any) -> tuple[int, int]:
    """Count the overlaps of 1 to k - 1 trips that follow exactly, and those of them with the trips of one flow alone."""
    from crowdveil.ledger.pairs import pair_of
    from crowdveil.solve.od.derivable_sets import PairCuts

    pair = pair_of(records, second, first, K)
    cuts = PairCuts(pair.overlaps, pair.volume, pair.needed)
    leaking = cuts.leaking()
    exact = leaking[cuts.lowest(leaking, pair.volume) == cuts.smallest[leaking]]
    flows = np.bincount(pair.overlap, minlength=len(pair.volume))
    return len(exact), int((flows[exact] == 1).sum())


def partition(rng: np.random.Generator, volume: Any, smallest: int) -> Any:
    """The row of each cell of a matrix: halves at random places while both have enough trips."""
    row = np.empty(volume.shape, np.int64)
    sums = np.pad(volume.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    boxes, rows = [(0, volume.shape[0], 0, volume.shape[1])], 0
    while boxes:
        a, b, c, d = boxes.pop()
        along = rng.random() < 0.5
        low, high = (a, b) if along else (c, d)
        if high - low > 1:
            cut = int(rng.integers(low + 1, high))
            parts = ((a, cut, c, d), (cut, b, c, d)) if along else ((a, b, c, cut), (a, b, cut, d))
            held = [sums[q, s] - sums[p, s] - sums[q, r] + sums[p, r] for p, q, r, s in parts]
            if min(held) >= smallest:
                boxes += parts
                continue
        row[a:b, c:d] = rows
        rows += 1
    return row


def matrices(steps: int, side: int, smallest: int = K) -> tuple[Any, Any, Any]:
    """Volumes and rows of two partitions of random matrices, as flat columns."""
    rng = np.random.default_rng(5)
    columns: list[list[Any]] = [[], [], []]
    used = np.zeros(2, np.int64)
    for _ in range(steps):
        volume = rng.poisson(1.0, (side, side))
        columns[0].append(volume[volume > 0])
        for i in range(2):
            row = partition(rng, volume, smallest)
            columns[1 + i].append(row[volume > 0] + used[i])
            used[i] += row.max() + 1
    volume, first, second = (np.concatenate(column) for column in columns)
    return volume, first, second


def timed(name: str, volume: Any, first: Any, second: Any) -> float:
    """Audit two partitions; return seconds per million atoms."""
    from crowdveil.ledger.audit import Published, Records, audit
    from crowdveil.model.arrays import number_rows

    atoms = int(number_rows(first, second).max()) + 1
    begin = time.perf_counter()
    found = audit(Records(volume, None), Published("new", first), [Published("earlier", second)], K)
    seconds = time.perf_counter() - begin
    say(f"{name}_atoms", atoms)
    say(f"{name}_tier", found.tier)
    say(f"{name}_leaking_rows", sum(found.leaking_rows.values()))
    say(f"{name}_seconds", seconds)
    return seconds / atoms * 1e6


def time_synthetic() -> float:
    """Time large audits."""
    timed("one_matrix", *matrices(1, SIDE))
    volume, fine, _ = matrices(STEPS, 100, smallest=3)
    # Nested: rows below k are suppressed, and eight rows are one of the coarser release.
    timed("nested", volume, np.where(np.bincount(fine, volume)[fine] < K, -1, fine), fine // 8)
    volume, first, second = matrices(STEPS, 100)
    return timed("many_steps", volume, first, second)


def compile_kernels() -> None:
    """Run the audit once, so that compilation is not timed."""
    from crowdveil.ledger.audit import Published, Records, audit

    records = Records(np.array([9, 2, 9]), None)
    audit(records, Published("a", np.array([0, 0, 1])), [Published("b", np.array([0, 1, 1]))], 3)


def main() -> None:
    seed = next((int(word) for word in sys.argv[1:] if word.isdecimal()), SEED)
    wanted = [word for word in sys.argv[1:] if not word.isdecimal()] or ["proof", "taxi", "synthetic"]
    compile_kernels()
    if "proof" in wanted:
        prove(seed)
    if "taxi" in wanted and (DATA / "nyc_taxi").is_dir() and not SMALL:
        attack_taxis()
    if "synthetic" in wanted:
        say("seconds_per_million_atoms", time_synthetic())


if __name__ == "__main__":
    main()
