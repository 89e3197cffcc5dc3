"""What two papers report, against what the methods here give: the tables of docs/reproduction.md.

- Matet et al., Adaptative generalization over a value hierarchy (Tables 3 to 6): Ḡ, E, D, S and time at k = 10 and at most
  10 % suppressed, on matrices made up after its Table 2, and on the yellow taxi sample by hour of day where it is available.
- Matet et al., A lightweight approach for origin-destination matrix anonymization (Table 1): areas, cost and share k-anonymous on
  a grid of 64 × 64 cells of 200 m, on the taxi sample with coordinates; left out where that is missing.

One thread, CPU seconds of solving. Before the tables: cells of the papers that cannot be, since |E − D| ≤ S wherever nothing is
added, E = S and D = 2 S where nothing is generalized, and neither exceeds 2. The last figure is the share of pairs of methods
that the first paper and we put into the same order by Ḡ, over its six data sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from _bench import SMALL, say
from od_rivals import first_of, generalization, solved

TAXI = Path(__file__).parents[2] / "shared" / "data" / "nyc_taxi"
YELLOW, LONLAT = TAXI / "yellow_sample_2018_2020.parquet", TAXI / "yellow_2015-01_lonlat_50k.parquet"
MATRICES = {"nyc": 4, "civ": 4, "senegal_crop": 3, "senegal": 3, "senegal_big": 1, "senegal_split": 1}
SMALL_SETS, LARGE_SETS = ("nyc", "civ", "senegal_crop", "senegal"), ("senegal_big", "senegal_split")
METHODS: dict[str, dict[str, Any]] = {
    "atg-dual": {"v_target": "sample"},
    "atg-soft": {"v_target": "sample"},
    "oigh": {},
    "glove": {},
    "glove-sk": {},
    "mondrian": {},
    "suppression": {},
    "laplace": {"min_volume": 1},
}
if SMALL:
    MATRICES = {"nyc": 1}
    del METHODS["glove-sk"]
BOXES, EXACT = ("mondrian", "glove", "glove-sk"), ("suppression", "laplace")
SHOWN = ("Ḡ", "E", "D", "S")

# Ḡ, E, D, S (per cent), seconds for all matrices
TABLE_3 = {
    "atg-dual": (24.90, 1.18, 1.14, 9.99, 23),
    "atg-soft": (40.41, 1.76, 1.31, 3.24, 9),
    "oigh": (53.62, 1.34, 1.30, 9.87, 56),
    "glove-sk": (444.12, 1.10, 1.36, 9.99, 358),
    "glove": (18.70, 0.81, 0.84, 9.98, 23203),
    "mondrian": (27.39, 0.95, 1.02, 0.0, 688),
    "suppression": (None, 0.33, 1.34, 39.46, None),
    "laplace": (None, 2.88, 6.78, -170.92, None),
}
TABLE_4 = {
    "atg-dual": (19.85, 0.72, 0.78, 9.92, 111),
    "atg-soft": (65.39, 1.07, 1.09, 1.54, 32),
    "oigh": (29.68, 1.10, 1.15, 9.79, 985),
    "glove-sk": (1361.51, 1.04, 1.25, 10.0, 3376),
    "mondrian": (25.19, 0.76, 0.85, 0.0, 11541),
    "suppression": (None, 0.49, 1.02, 59.0, None),
    "laplace": (None, 2.87, 3.33, -86.98, None),
}
# Ḡ, E, "E (normalized)", which is 10 D, S (per cent), seconds
TABLE_6 = {
    "civ": {
        "atg-dual": (57.2, 1.72, 17.05, 10.0, 5),
        "atg-soft": (74.4, 3.58, 18.10, 5.3, 2),
        "oigh": (106.8, 1.79, 17.81, 9.9, 11),
        "glove": (35.7, 1.01, 11.57, 10.0, 394),
        "glove-sk": (542.9, 1.39, 16.81, 9.9, 9),
        "mondrian": (52.0, 1.32, 13.40, 0.0, 37),
    },
    "nyc": {
        "atg-dual": (4.7, 0.49, 4.75, 10.0, 1),
        "atg-soft": (9.1, 0.62, 6.38, 3.3, 0),
        "oigh": (7.0, 0.75, 7.05, 9.7, 5),
        "glove": (4.2, 0.52, 4.61, 10.0, 282),
        "glove-sk": (24.4, 0.70, 7.48, 10.0, 9),
        "mondrian": (7.5, 0.49, 6.26, 0.0, 92),
    },
    "senegal": {
        "atg-dual": (17.4, 1.21, 12.00, 10.0, 9),
        "atg-soft": (43.5, 1.41, 14.28, 3.2, 4),
        "oigh": (26.2, 1.36, 13.48, 9.9, 26),
        "glove": (16.0, 0.82, 8.66, 10.0, 15458),
        "glove-sk": (667.6, 1.21, 15.10, 10.0, 78),
        "mondrian": (22.7, 0.96, 10.60, 0.0, 333),
    },
    "senegal_big": {
        "atg-dual": (3.9, 0.17, 5.92, 9.8, 15),
        "atg-soft": (13.9, 0.53, 8.84, 1.1, 5),
        "oigh": (6.2, 0.79, 10.32, 9.5, 54),
        "glove-sk": (80.9, 0.68, 10.70, 10.0, 340),
        "mondrian": (7.5, 0.41, 7.40, 0.0, 1979),
    },
    "senegal_crop": {
        "atg-dual": (13.6, 1.19, 11.95, 10.0, 6),
        "atg-soft": (27.5, 1.31, 13.53, 3.0, 1),
        "oigh": (32.7, 1.35, 13.67, 9.8, 12),
        "glove": (13.5, 0.82, 8.87, 10.0, 7067),
        "glove-sk": (508.0, 1.04, 15.10, 10.0, 52),
        "mondrian": (20.4, 0.95, 10.63, 0.0, 223),
    },
    "senegal_split": {
        "atg-dual": (16.0, 0.75, 9.76, 10.0, 95),
        "atg-soft": (83.5, 1.14, 13.50, 1.8, 26),
        "oigh": (19.7, 1.09, 12.68, 9.9, 930),
        "glove-sk": (2304.5, 1.09, 14.41, 10.0, 3023),
        "mondrian": (20.2, 0.78, 9.66, 0.0, 9561),
    },
}
KS = range(5, 16)
TABLE_5: dict[str, dict[int, int]] = {
    "civ": dict(zip(KS, (100, 100, 100, 100, 100, 200, 100, 200, 200, 200, 200), strict=True)),
    "nyc": dict(zip(KS, (100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 200), strict=True)),
    "senegal_crop": dict(zip(KS, (200, 300, 300, 300, 300, 400, 400, 400, 400, 400, 400), strict=True)),
    "senegal": {10: 300},
    "senegal_big": {10: 400},
    "senegal_split": {10: 500},
}
"""Target volumes by k."""
# Table 1 of the earlier paper: MAO, MAD, total cost, per cent k-anonymous; by k and block (0: their method)
TABLE_1 = {
    (6, 0): (1.71, 1.67, 1.7e6, 99.97),
    (6, 4): (0.64, 3.60, 2.0e6, 99.61),
    (6, 8): (2.56, 3.41, 2.8e6, 99.90),
    (6, 16): (10.24, 10.35, 9.8e6, 99.94),
    (11, 0): (2.93, 2.86, 2.7e6, 99.93),
    (11, 4): (0.64, 7.83, 4.0e6, 99.23),
    (11, 8): (2.56, 4.81, 3.5e6, 99.78),
    (11, 16): (10.24, 10.60, 9.9e6, 99.91),
    (16, 0): (3.77, 3.56, 3.5e6, 99.90),
    (16, 4): (0.64, 11.69, 5.8e6, 98.86),
    (16, 8): (2.56, 6.22, 4.2e6, 99.67),
    (16, 16): (10.24, 10.89, 1.0e7, 99.88),
}
TARGETS = {6: 400, 11: 700, 16: 1000}
TRIPS_1 = 77_696_280
ROUNDING = 0.0151
"""Two figures with two decimals, and a share, may be apart by so much more than they should."""


def number(value: float | None) -> str:
    """Three digits, or a dash."""
    if value is None or not np.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table in Markdown."""
    names = list(head)
    print(f"\n{title}\n\n| {' | '.join(names)} |\n|{' --- |' * len(names)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def impossible() -> None:
    """Cells of the first paper that contradict one another."""
    for name, cells in (("table_3", TABLE_3), ("table_4", TABLE_4)):
        for method, (_, e, d, percent, _) in cells.items():
            s, wrong = percent / 100, []
            if method == "suppression":
                wrong = [f"E {e} is not S {s:.2f}"] * (abs(e - s) > ROUNDING)
                wrong += [f"D {d} is not 2 S {2 * s:.2f}"] * (abs(d - 2 * s) > ROUNDING)
            elif method != "laplace":
                wrong = [f"E {e} and D {d} are further apart than S {s:.3f}"] * (abs(e - d) > s + ROUNDING)
            wrong += [f"D {d} is above 2"] * (d > 2)
            for what in wrong:
                say(f"impossible_{name}_{method}", what)
    for name, cells in TABLE_6.items():
        for method, (_, e, normalized, percent, _) in cells.items():
            if e > 2:
                say(f"impossible_table_6_{name}_{method}", f"E {e} is above 2")
            elif abs(e - normalized / 10) > percent / 100 + ROUNDING:
                say(f"impossible_table_6_{name}_{method}", f"E {e} and D {normalized / 10:.2f} differ by more than S")
    for names, table in ((SMALL_SETS, TABLE_3), (LARGE_SETS, TABLE_4)):
        for method in TABLE_6[names[0]]:
            mean = float(np.mean([TABLE_6[name][method][2] / 10 for name in names]))
            say(f"normalized_E_{len(names)}_sets_{method}", f"{mean:.3f} is a tenth of it; D is {table[method][2]}")
    for method in TABLE_6["senegal_big"]:
        low, high = sorted(TABLE_6[name][method][0] for name in LARGE_SETS)
        if not low <= TABLE_4[method][0] <= high:
            say(f"impossible_table_4_{method}_G", f"{TABLE_4[method][0]} is no mean of {low} and {high} in Table 6")


def scores(method: str, flows: Any) -> dict[str, Any]:
    """The measures of a method on a data set, and its seconds a matrix; glove-sk on the first matrix alone."""
    from crowdveil.measures.od.generalization import tiles_met
    from crowdveil.verbs.measure import measure

    if method == "glove-sk":
        flows = first_of(flows.where(flows.step == 0))
    seconds, release = solved(method, flows, METHODS[method])
    found: dict[str, Any] = {"seconds": seconds / flows.steps, "facts": release.facts}
    measures = measure(flows, release, ["E", "D", "S"])
    found |= {name: float(measures[name].mean) for name in ("E", "D", "S")}
    size = tiles_met(release.areas) if method in BOXES else release.areas.size
    return found | {"Ḡ": None if method in EXACT else generalization(flows, release, size)}


def shape(name: str, flows: Any) -> list[str]:
    """What a data set looks like."""
    big = flows.volume >= 10
    shares = f"{100 * big.mean():.1f} %", f"{100 * flows.volume[big].sum() / flows.total:.1f} %"
    return [
        name,
        str(flows.steps),
        f"{len(flows.zones):,}",
        f"{len(flows) / flows.steps:,.0f}",
        f"{flows.total / flows.steps:,.0f}",
        *shares,
    ]


def target_lines(name: str, flows: Any, found: dict[str, Any]) -> list[str]:
    """Ḡ of atg-dual by the way its target volume is chosen."""
    from crowdveil.errors import InputError

    theirs = TABLE_5.get(name, TABLE_5["nyc"])[10]
    row = [name, str(theirs), f"{found['facts']['v_target_least']:.0f}", number(found["Ḡ"])]
    for wanted in (float(theirs), "auto"):
        try:
            _, release = solved("atg-dual", flows, {"v_target": wanted})
            row.append(number(generalization(flows, release, release.areas.size)))
        except InputError:
            row.append("not possible")
    return row


def targets_by_k(name: str, flows: Any) -> list[str]:
    """Target volumes of `sample` for each k, next to Table 5."""
    row = [name]
    for k, theirs in TABLE_5[name].items():
        _, release = solved("atg-dual", flows, {"k": k, "v_target": "sample"})
        row.append(f"{release.facts['v_target_least']:.0f} · {theirs}")
    return row


def same_order(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[int, int, list[str]]:
    """Pairs of methods in the same order, all pairs but those that are equal in the paper, and those in another order."""
    both = [m for m in theirs if ours.get(m) is not None]
    pairs = [(a, b) for a, b in combinations(both, 2) if theirs[a] != theirs[b]]
    other = [f"{a}/{b}" for a, b in pairs if (ours[a] < ours[b]) != (theirs[a] < theirs[b])]
    return len(pairs) - len(other), len(pairs), other


def first_paper() -> float:
    """Tables 3, 4 and 6; the share of pairs of methods in the same order by Ḡ."""
    from plain_rivals import taxis

    from crowdveil.experiments.profiles import make_profile
    from crowdveil.io.flows import with_tree

    data = {name: with_tree(make_profile(name, np.random.default_rng(11), m), "ward") for name, m in MATRICES.items()}
    if YELLOW.exists() and not SMALL:
        data["taxi_by_hour"] = taxis(TAXI.parent, "ward")
    for method in METHODS:  # so that imports and compiling are not measured
        solved(method, first_of(data["nyc"].where(data["nyc"].step == 0)), METHODS[method])
    head = ("data", "matrices", "tiles", "flows", "trips", "flows ≥ 10", "trips in them")
    table("The data, means of a matrix", head, [shape(*item) for item in data.items()])
    found = {
        name: {m: scores(m, flows) for m in METHODS if m != "glove-sk" or name not in LARGE_SETS}
        for name, flows in data.items()
    }
    rows = [target_lines(name, flows, found[name]["atg-dual"]) for name, flows in data.items()]
    table(
        "Target volumes and Ḡ of atg-dual",
        ("data", "Table 5", "`sample`", "Ḡ `sample`", "Ḡ Table 5", "Ḡ `auto`"),
        rows,
    )
    by_k = [targets_by_k(name, data[name]) for name, row in TABLE_5.items() if name in data and len(row) > 1]
    table("Table 5: ours · paper", ("k", *map(str, KS)), by_k)
    for name in data:
        detail(name, found[name])
    for title, names, paper in (("Table 3", SMALL_SETS, TABLE_3), ("Table 4", LARGE_SETS, TABLE_4)):
        if all(name in found for name in names):
            summary(f"{title}: mean of {', '.join(names)}", [found[name] for name in names], paper)
    return agreement(found)


def detail(name: str, found: dict[str, Any]) -> None:
    """A part of Table 6."""
    paper = TABLE_6.get(name, TABLE_6["nyc"])
    rows = []
    for method, ours in found.items():
        cell = paper.get(method)
        theirs = (None,) * 4 if cell is None else (cell[0], cell[1], cell[2] / 10, cell[3])
        pairs = zip((ours["Ḡ"], ours["E"], ours["D"], 100 * ours["S"]), theirs, strict=True)
        shown = [f"{number(a)} · {number(b)}" for a, b in pairs]
        time = number(ours["seconds"] / found["atg-dual"]["seconds"])
        their_time = number(cell[4] / paper["atg-dual"][4]) if cell and cell[4] else "–"
        rows.append([f"`{method}`", *shown, f"{ours['seconds']:.3f}", f"{time} · {their_time}"])
    head = ("ours · paper", "Ḡ", "E", "D", "S, %", "seconds a matrix (ours)", "time, `atg-dual` = 1")
    table(f"Table 6, {name}", head, rows)


def summary(title: str, found: list[dict[str, Any]], paper: dict[str, Any]) -> None:
    """Table 3 or 4: means over data sets."""
    rows = []
    for method, cell in paper.items():
        if not all(method in one for one in found):
            continue
        shown = []
        for name, theirs in zip(SHOWN, cell, strict=False):
            values = [one[method][name] for one in found]
            mean = None if None in values else float(np.mean(values)) * (100 if name == "S" else 1)
            shown.append(f"{number(mean)} · {number(theirs)}")
        rows.append([f"`{method}`", *shown])
    table(title, ("ours · paper", "Ḡ", "E", "D", "S, %"), rows)


def agreement(found: dict[str, Any]) -> float:
    """How many pairs of methods have the same order, by Ḡ and by E."""
    shares = {}
    for column, measure in ((1, "E"), (0, "Ḡ")):
        same = pairs = 0
        for name in found:
            cells = {m: cell[column] for m, cell in TABLE_6.get(name, TABLE_6["nyc"]).items()}
            paper = {m: value for m, value in cells.items() if measure != "E" or value <= 2}
            ours = {m: scores[measure] for m, scores in found[name].items()}
            right, all_pairs, other = same_order(ours, paper)
            say(f"{name}_{measure}_same_order", f"{right} of {all_pairs}; not: {', '.join(other) or 'none'}")
            if name in TABLE_6:
                same, pairs = same + right, pairs + all_pairs
        shares[measure] = same / pairs
        say(f"{measure}_pairs_in_the_same_order", f"{same} of {pairs}")
    return shares["Ḡ"]


def grid_flows(part: Any, volume: Any = None) -> Any:
    """The sample with coordinates on 64 × 64 cells of 200 m, each part of the day a matrix, on a quadtree."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from crowdveil import read_flows
    from crowdveil.io.flows import with_tree
    from crowdveil.model.tessellation import grid_zones

    trips = pq.read_table(LONLAT)
    columns = {
        f"{end}_{axis[:3]}": trips[f"{theirs}_{axis}"]
        for end, theirs in (("origin", "pickup"), ("destination", "dropoff"))
        for axis in ("longitude", "latitude")
    }
    more = {} if volume is None else {"volume": trips[volume]}
    rows = pa.table({**columns, **more, "time": pa.array(part * 3600)})
    flows = read_flows(rows, zones="grid:200m", step="1h", drop_invalid=True)
    # The grid covers the sample, which is a little smaller than the map of the paper: empty cells north and east fill it up.
    zones, grid = flows.zones, replace(flows.zones.grid, columns=64, rows=64)
    ends = [(64 * zones.row[end] + zones.column[end]).astype(np.int32) for end in (flows.origin, flows.destination)]
    return with_tree(replace(flows, zones=grid_zones(grid), origin=ends[0], destination=ends[1]), "quadtree")


def second_paper() -> None:
    """Table 1, by trips and by passengers."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    hour = pc.hour(pq.read_table(LONLAT, columns=["tpep_pickup_datetime"]).column(0)).to_numpy()
    since_four = (hour - 4) % 24
    for name, flows in (
        ("trips", grid_flows(since_four // 12)),
        ("passengers", grid_flows(since_four // 8, "passenger_count")),
    ):
        volumes = np.add.reduceat(flows.volume, flows.offsets[:-1])
        say(f"table_1_{name}_volume_of_matrices", ", ".join(f"{v:,}" for v in volumes))
        say(f"table_1_{name}_volume_of_a_flow", flows.total / len(flows))
        say(f"table_1_{name}_6_anonymous_percent", 100 * float(flows.volume[flows.volume >= 6].sum() / flows.total))
        rows = [line for k in TARGETS for line in areas_of(flows, k)]
        head = ("k", "method", "MAO", "MAD", "MAD, empty too", "G_δ a trip", "G_δ a trip, empty too", "% k-anon")
        table(f"Table 1 by {name}: ours · paper", head, rows)


def areas_of(flows: Any, k: int) -> list[list[str]]:
    """The lines of Table 1 for a k."""
    ours = {"scope": "origin", "delta": 0.01}
    lines: list[tuple[str, str, dict[str, Any], int]] = [
        ("`atg-exact`, v_target", "atg-exact", ours | {"v_target": "sample"}, 0),
        ("`atg-exact`, v_target", "atg-exact", ours | {"v_target": float(TARGETS[k])}, 0),
        *((f"`uniform` {block} × {block}", "uniform", {"block": block}, block) for block in (4, 8, 16)),
    ]
    rows = []
    for label, method, parameters, block in lines:
        paper = TABLE_1[k, block]
        ways = [
            {"aggregate_small": True, "include_empty": False},
            {"aggregate_small": True},
            {"aggregate_small": False},
        ]
        scored = [area_scores(flows, method, {"k": k, **parameters, **way}) for way in ways]
        (mao, mad, cost, share, target), (_, mad_empty, cost_empty, _, _), plain = scored
        name = f"{label} {target:.0f}{' (`sample`)' * (parameters['v_target'] == 'sample')}" if block == 0 else label
        rows.append(
            [
                str(k),
                name,
                f"{mao:.2f} · {paper[0]:.2f}",
                f"{mad:.2f} · {paper[1]:.2f}",
                f"{mad_empty:.2f}",
                f"{cost:.4f} · {paper[2] / TRIPS_1:.4f}",
                f"{cost_empty:.4f}",
                f"{share:.2f} · {paper[3]:.2f}",
            ]
        )
        if block == 0:
            rows.append(
                [
                    str(k),
                    "the same, not reported",
                    f"{plain[0]:.2f} · {paper[0]:.2f}",
                    f"{plain[1]:.2f} · {paper[1]:.2f}",
                    "",
                    f"{plain[2]:.4f} · {paper[2] / TRIPS_1:.4f}",
                    "",
                    f"{plain[3]:.2f}",
                ]
            )
    return rows


def area_scores(flows: Any, method: str, parameters: dict[str, Any]) -> tuple[float, ...]:
    """MAO, MAD, cost a trip as a share of the map, per cent published, and the target volume; of all matrices together."""
    from crowdveil.verbs.measure import measure

    _, release = solved(method, flows, parameters)
    found = measure(flows, release, ["origin-area", "destination-area", "generalization-cost", "suppressed"])
    mao, mad, cost, share = (float(found[name].pooled) for name in ("MAO", "MAD", "G_δ", "S"))
    return (
        mao,
        mad,
        cost / len(flows.zones) / flows.total,
        100 * (1 - share),
        float(release.facts.get("v_target_least", 0)),
    )


def main() -> None:
    impossible()
    if LONLAT.exists() and not SMALL:
        second_paper()
    else:
        print("the taxi sample with coordinates is not used or not available: Table 1 left out")
    say("ratio", first_paper())


if __name__ == "__main__":
    main()
