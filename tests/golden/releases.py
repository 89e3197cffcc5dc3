"""Small releases with a digest of their rows, so that a rewrite shows what it changes.

`python tests/golden/releases.py` makes all releases and lists those that differ; with `--update` it keeps the new digests.
If the digest differs and the figures do not, another solution of equal cost was found.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import crowdveil

DIGESTS = Path(__file__).parent / "digests.json"
WEST, SOUTH, SIDE, ACROSS = 2.30, 48.80, 0.01, 8
MONDAY = 1_583_107_200
"""2020-03-02 00:00 UTC."""


def write_data(folder: Path) -> None:
    """Write the inputs: zones with crooked outlines, trips, flows and trajectories."""
    rng = np.random.default_rng(2020)
    _write_zones(folder / "zones.geojson", rng)
    trips = _trips(rng, 6_000)
    _write(folder / "trips.csv", ("time", "origin", "destination", "user", "weight"), trips)
    counts: dict[tuple[Any, ...], list[Any]] = {}
    for time, origin, destination, user, _ in trips:
        counts.setdefault((time[:13] + ":00:00", origin, destination), []).append(user)
    flows = [(*key, len(users)) for key, users in sorted(counts.items())]
    _write(folder / "flows.csv", ("time", "origin", "destination", "volume"), flows)
    _write(folder / "points.csv", ("trajectory", "user", "time", "lon", "lat"), _points(rng, 240))
    crowdveil.trips(folder / "points.csv", folder / "rides.csv")
    groups = [(_zone(column, row), f"{column // 2}-{row // 2}") for column in range(ACROSS) for row in range(ACROSS)]
    _write(folder / "groups.csv", ("zone", "group"), groups)


def _write(path: Path, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _zone(column: int, row: int) -> str:
    return f"z{column}{row}"


def _write_zones(path: Path, rng: np.random.Generator) -> None:
    shift = rng.integers(-250, 251, (ACROSS + 1, ACROSS + 1, 2)) / 100_000
    corners = [[(WEST + SIDE * x + shift[x, y, 0], SOUTH + SIDE * y + shift[x, y, 1]) for y in range(ACROSS + 1)]
               for x in range(ACROSS + 1)]  # fmt: skip
    features = []
    for x in range(ACROSS):
        for y in range(ACROSS):
            ring = [corners[x][y], corners[x + 1][y], corners[x + 1][y + 1], corners[x][y + 1], corners[x][y]]
            rounded = [[round(lon, 5), round(lat, 5)] for lon, lat in ring]
            properties = {"id": _zone(x, y), "inhabitants": int(rng.integers(0, 500))}
            geometry = {"type": "Polygon", "coordinates": [rounded]}
            features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def _trips(rng: np.random.Generator, n: int) -> list[tuple[Any, ...]]:
    """Trips of two days between zones that attract more people near the middle."""
    place = np.minimum(rng.poisson(3.2, (n, 4)), ACROSS - 1)
    hours = rng.choice([7, 8, 9, 12, 17, 18], n, p=[0.15, 0.25, 0.15, 0.1, 0.25, 0.1]) + 24 * rng.integers(0, 2, n)
    seconds = rng.integers(0, 3600, n)
    users = rng.integers(0, n // 3, n)
    weights = rng.integers(5, 40, n) / 10
    return [
        (_text(MONDAY + 3600 * int(h) + int(s)), _zone(*map(int, p[:2])), _zone(*map(int, p[2:])), f"u{u}", float(w))
        for p, h, s, u, w in zip(place, hours, seconds, users, weights, strict=True)
    ]


def _text(time: int) -> str:
    return str(np.datetime64(time, "s"))


def _points(rng: np.random.Generator, n: int) -> list[tuple[Any, ...]]:
    """Rides between a few places, so that many of them are near one another; a person has one or two."""
    places = rng.integers(0, 8_000, (5, 2))
    rows: list[tuple[Any, ...]] = []
    for ride in range(n):
        begin, end = places[rng.integers(0, 5, 2)] + rng.integers(-400, 400, (2, 2))
        start = MONDAY + 28_800 + int(rng.integers(0, 5_400))
        for i in range(m := int(rng.integers(6, 14))):
            x, y = begin + (end - begin) * i // (m - 1) + rng.integers(-40, 41, 2)
            lon, lat = WEST + int(x) / 100_000, SOUTH + int(y) / 100_000
            rows.append((f"r{ride}", f"p{ride % 150}", _text(start + 60 * i), round(lon, 5), round(lat, 5)))
    return rows


Case = tuple[str, str, dict[str, Any]]
TRIPS: dict[str, Any] = {"zones": "zones.geojson", "step": "1h"}
POINTS: dict[str, Any] = {"k": 3}


def cases() -> dict[str, Case]:
    """Return for each release its method, its input and its options."""
    flows = [
        ("joint", {}),
        ("joint", {"k": 5}),
        ("joint", {"suppress": "2%"}),
        ("joint", {"suppress": 0.0}),
        ("joint", {"splits": "dyadic"}),
        ("joint", {"splits": "free"}),
        ("joint", {"objective": "area"}),
        ("joint", {"objective": "reconstruction"}),
        ("joint", {"max_area_km2": 8.0, "k": 3, "suppress": "30%"}),
        ("joint", {"min_tiles": 2}),
        ("joint", {"min_tiles": 2, "min_tiles_of": "visited"}),
        ("joint", {"aggregate_small": True}),
        ("joint", {"time_partition": "stable"}),
        ("joint", {"time_partition": "stable", "stable_by": "hour-of-day"}),
        ("joint", {"time_partition": "adaptive"}),
        ("joint", {"time_partition": "adaptive", "hour_weight": 1.0, "longest": "4h"}),
        ("joint", {"hierarchy": "kd"}),
        ("joint", {"step": "1d"}),
        ("joint", {"step": "all"}),
        ("joint", {"step": "15min", "k": 3}),
        ("joint", {"fold": "1d", "tz": "Europe/Paris"}),
        ("joint", {"weight": "weight"}),
        ("joint", {"include_empty": False}),
        ("atg-dual", {}),
        ("atg-dual", {"v_target": 60}),
        ("atg-dual", {"spend_rest": True}),
        ("atg-dual", {"time_partition": "stable"}),
        ("atg-dual", {"weight": "weight"}),
        ("atg-dual", {"aggregate_small": True}),
        ("atg-soft", {}),
        ("atg-soft", {"price": 0.5}),
        ("atg-coupled", {}),
        ("atg-coupled", {"min_tiles": 2}),
        ("atg-exact", {}),
        ("atg-exact", {"scope": "origin"}),
        ("atg-exact", {"delta": 1.0}),
        ("fixed", {"partition": "groups.csv"}),
        ("suppression", {"k": 3}),
        ("suppression", {"k": 3, "aggregate_small": True}),
        ("laplace", {"epsilon": 1.0}),
        ("laplace", {"epsilon": 2.0, "trips_per_person": 3, "min_volume": 12}),
        ("oigh", {}),
        ("mondrian", {}),
        ("glove", {}),
        ("glove", {"join": "any", "cost": "growth"}),
        ("glove", {"neighbors": 5}),
        ("glove-sk", {}),
        ("glove-sk", {"neighbors": 5}),
    ]
    trajectories = [
        ("microaggregation", {}),
        ("microaggregation", {"k": 5}),
        ("microaggregation", {"aggregation": "composed-trajectory"}),
        ("microaggregation", {"aggregation": "closest-trajectory"}),
        ("microaggregation", {"improve": 2}),
        ("microaggregation", {"center": "remaining"}),
        ("microaggregation", {"distance": "dtw"}),
        ("microaggregation", {"distance": "frechet-manhattan"}),
        ("microaggregation", {"clustering": "pivots", "distance": "frechet-manhattan"}),
        ("microaggregation", {"suppress": "10%"}),
        ("microaggregation", {"count_trajectories": True}),
        ("microaggregation", {"center_aggregation": "closest-trajectory"}),
        ("microaggregation", {"aggregation": "composed-trajectory", "aggregation_time_weight": 0.5}),
        ("time-partitioned-microaggregation", {"interval_s": 900}),
        ("time-partitioned-microaggregation", {"interval_s": 900, "parts_by": "first-time", "exchange": False}),
        ("segment-microaggregation", {"segment_s": 300}),
        ("log-cost-generalization", {}),
        ("frechet-microaggregation", {}),
        ("frechet-microaggregation", {"left_over": "drop"}),
        ("frechet-microaggregation", {"resample": True, "pivot_path": "exact"}),
        ("protected-generalization", {"tile_size_m": 2_000.0}),
        (
            "protected-generalization",
            {"tile_size_m": 4_000.0, "strategy": "centroid", "knowledge": 1, "time_interval_s": 0},
        ),
        ("swap-locations", {"max_radius_m": 1_000.0, "max_time_s": 900}),
        ("swap-locations-2012", {}),
        ("w4m", {}),
        ("w4m", {"trash": 0.2, "delta_m": 250.0, "tolerance_m": 100.0}),
        ("swapmob", {"max_distance_m": 500.0, "max_time_s": 300}),
        ("swapmob", {"max_distance_m": 500.0, "max_time_s": 300, "min_n_swaps": 2}),
        ("simple-generalization", {"tile_size_m": 1_000.0}),
        ("simple-generalization", {"tile_size_m": 1_000.0, "link_users": True}),
    ]
    named: dict[str, Case] = {}
    for method, options in flows:
        named[_name(method, options)] = (method, "trips.csv", TRIPS | options)
    named["joint of flows"] = ("joint", "flows.csv", {"zones": "zones.geojson"})
    named["atg-dual of flows"] = ("atg-dual", "flows.csv", {"zones": "zones.geojson"})
    grid = {"zones": "grid:1km", "step": "1h"}
    named["joint on a grid"] = ("joint", "rides.csv", grid | {"k": 3})
    named["joint on H3 cells"] = ("joint", "rides.csv", grid | {"k": 3, "zones": "h3:7"})
    named["uniform on a grid"] = ("uniform", "rides.csv", grid | {"k": 3, "block": 2})
    named["joint on a quadtree"] = ("joint", "rides.csv", grid | {"k": 3, "hierarchy": "quadtree"})
    for method, options in trajectories:
        k = {} if method in ("swapmob", "simple-generalization") else POINTS
        named[_name(method, options)] = (method, "points.csv", k | options)
    return named


def _name(method: str, options: dict[str, Any]) -> str:
    return " ".join([method, *(f"{name}={value}" for name, value in options.items())])


def make(case: Case, data: Path, output: Path) -> dict[str, Any]:
    """Make a release and return a digest of its rows, and figures."""
    method, table, options = case
    files = {
        name: str(data / value) for name, value in options.items() if name == "partition" or value == "zones.geojson"
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crowdveil.anonymize(
            str(data / table),
            output,
            method=method,
            **(options | files),
            seed=7,
            attack=False,
            report=False,
            format="csv",
        )
    if (output / "flows.csv").exists():
        return _flows(_read(output / "flows.csv"), _read(output / "crosswalk.csv"))
    return _trajectories(_read(output / "trajectories.csv"))


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _digest(rows: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()[:16]


def _flows(flows: list[dict[str, str]], crosswalk: list[dict[str, str]]) -> dict[str, Any]:
    """Describe rows by the tiles of their areas, so that names and numbers of areas do not matter."""
    tiles: dict[str, list[str]] = {}
    for row in crosswalk:
        tiles.setdefault(row["area"], []).append(row["tile"])
    ends = [(tiles[row["origin_area"]], tiles[row["destination_area"]], float(row["volume"] or 0)) for row in flows]
    texts = [
        f"{row['t']} {row.get('until', '')} {sorted(origin)} {sorted(destination)} {volume}"
        for row, (origin, destination, volume) in zip(flows, ends, strict=True)
    ]
    cost = sum(volume * (len(origin) + len(destination)) for origin, destination, volume in ends)
    return {"rows": len(flows), "volume": sum(end[2] for end in ends), "cost": cost, "digest": _digest(texts)}


def _trajectories(points: list[dict[str, str]]) -> dict[str, Any]:
    """Describe each trajectory by its points to a tenth of a meter, whatever its number."""
    places = [(round(float(row["lon"]), 6), round(float(row["lat"]), 6)) for row in points]
    texts: dict[str, list[str]] = {}
    for row, place in zip(points, places, strict=True):
        texts.setdefault(row["published_id"], []).append(f"{row['timestamp']} {place}")
    middle = np.mean(places, axis=0).round(5).tolist()
    return {"rows": len(points), "middle": middle, "digest": _digest([" ".join(text) for text in texts.values()])}


def make_all() -> dict[str, dict[str, Any]]:
    """Make every release."""
    with TemporaryDirectory() as folder:
        data = Path(folder)
        write_data(data)
        return {name: make(case, data, data / f"out{i}") for i, (name, case) in enumerate(cases().items())}


def main() -> None:
    """List the releases that differ from those that were kept, or keep the new ones."""
    made = make_all()
    kept = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    differing = [name for name in made | kept if made.get(name) != kept.get(name)]
    for name in differing:
        print(f"{name}\n  kept {kept.get(name)}\n  made {made.get(name)}")
    print(f"{len(differing)} of {len(made)} releases differ")
    if "--update" in sys.argv:
        DIGESTS.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
