"""Trips in trajectories: by first and last point, between tiles, between stays, from home to work; and OD methods on them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdveil
from crowdveil.errors import CrowdveilError, InputError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.trajectories import read_trajectories
from crowdveil.model.flows import Flows
from crowdveil.model.tessellation import locate
from crowdveil.model.trajectories import Trajectories
from crowdveil.reading import FlowReading, read
from crowdveil.run.trips import TripOptions, find_trips

METER = 1 / 111_195


def _data(walks: list[list[tuple[float, float, int]]], users: list[int] | None = None) -> Trajectories:
    """Trajectories of points (meters east and north of 2° E on the equator, seconds)."""
    rows = [(i, x, y, t) for i, walk in enumerate(walks) for x, y, t in walk]
    columns: dict[str, Any] = {
        "lon": [2 + x * METER for _, x, _, _ in rows],
        "lat": [y * METER for _, _, y, _ in rows],
        "timestamp": [1_767_571_200 + t for *_, t in rows],  # 2026-01-05 00:00 UTC, a Monday
        "trajectory_id": [i for i, *_ in rows],
    }
    if users is not None:
        columns["user_id"] = [users[i] for i, *_ in rows]
    return read_trajectories(pa.table(columns))


def trips_of(data: Any, by: str, **options: Any) -> pa.Table:
    return find_trips(data, TripOptions.checked({"by": by, **options}), ReadNotes())


def _read(data: Any, **options: Any) -> Flows:
    flows = read(Flows, data, FlowReading.checked(options), ReadNotes())
    assert isinstance(flows, Flows)
    return flows


def test_first_and_last_points_are_one_trip() -> None:
    data = _data([[(0, 0, 0), (500, 0, 60), (900, 100, 120)], [(5, 5, 30)], [(0, 0, 50), (7, 0, 80)]])
    trips = trips_of(data, "first-last")
    assert trips["time"].cast(pa.int64()).to_pylist() == [1_767_571_200_000, 1_767_571_250_000]
    assert trips["user_id"].to_pylist() == ["0", "2"]
    np.testing.assert_allclose(trips["destination_lon"], [2 + 900 * METER, 2 + 7 * METER])
    np.testing.assert_allclose(trips["destination_lat"], [100 * METER, 0])


walks = st.lists(
    st.lists(
        st.tuples(st.integers(0, 900), st.integers(0, 900), st.sampled_from([0, 1, 30, 60, 100, 200])),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=6,
)


def _plain_stays(data: Trajectories, i: int, radius: float, duration: int) -> list[tuple[int, int]]:
    """The definition, read from the paper: points within the radius of the first, for the duration."""
    x, y = data.xy
    at, end, found = int(data.offsets[i]), int(data.offsets[i + 1]), []
    while at < end:
        inside = at
        while inside + 1 < end and np.hypot(x[inside + 1] - x[at], y[inside + 1] - y[at]) <= radius:
            inside += 1
        if data.t[inside] - data.t[at] >= duration:
            found.append((at, inside))
            at = inside + 1
        else:
            at += 1
    return found


@settings(max_examples=tries(60), deadline=None)
@given(walks, st.sampled_from([50.0, 150.0, 400.0]), st.sampled_from([1, 60, 200]))
def test_trips_between_stays_are_those_of_the_definition(drawn: Any, radius: float, duration: int) -> None:
    data = _data([[(x, y, sum(p[2] for p in walk[: j + 1])) for j, (x, y, _) in enumerate(walk)] for walk in drawn])
    wanted = []
    x, y = data.xy
    for i in range(len(data)):
        found = _plain_stays(data, i, radius, duration)
        for (a, b), (c, d) in pairwise(found):
            middle = [np.mean(v[p : q + 1]) for p, q in ((a, b), (c, d)) for v in (x, y)]
            wanted.append((int(data.t[b]), i, *middle))
    if not wanted:
        with pytest.raises(InputError, match="no trip was found"):
            trips_of(data, "stays", stay_radius_m=radius, stay_s=duration)
        return
    trips = trips_of(data, "stays", stay_radius_m=radius, stay_s=duration)
    lon, lat = (np.column_stack([trips[f"origin_{e}"], trips[f"destination_{e}"]]) for e in ("lon", "lat"))
    assert len(trips) == len(wanted)
    px, py = data.projection.to_plane(lon.ravel(), lat.ravel())
    made = np.column_stack(
        [px.reshape(-1, 2)[:, 0], py.reshape(-1, 2)[:, 0], px.reshape(-1, 2)[:, 1], py.reshape(-1, 2)[:, 1]]
    )
    np.testing.assert_allclose(made, [row[2:] for row in wanted], atol=1e-3)
    assert (trips["time"].cast(pa.int64()).to_numpy() // 1000).tolist() == [row[0] for row in wanted]


@settings(max_examples=tries(30), deadline=None)
@given(walks, st.booleans())
def test_transitions_are_the_changes_of_tile(drawn: Any, known: bool) -> None:
    timed = [[(x, y, 100 * j) for j, (x, y, _) in enumerate(walk)] for walk in drawn]
    data = _data(timed, users=[i // 2 for i in range(len(timed))] if known else None)
    tiles = [f"t{x}_{y}" for x in range(5) for y in range(5)]
    side = 200 * METER
    shapes = [
        shapely.box(2 + x * side, y * side, 2 + (x + 1) * side, (y + 1) * side) for x in range(5) for y in range(5)
    ]
    zones = geopandas.GeoDataFrame({"id": tiles}, geometry=shapes, crs=4326)
    changes: dict[tuple[int, int], list[int]] = {}
    try:
        flows = _read(trips_of(data, "transitions", zones=zones), zones=zones, step="all")
    except CrowdveilError:  # no point leaves its tile, or there are no two points
        return
    tile = locate(flows.zones, data.lon, data.lat)
    for i in range(len(data)):
        rows = range(int(data.offsets[i]), int(data.offsets[i + 1]))
        for a, b in pairwise(rows):
            if tile[a] != tile[b]:
                changes.setdefault((int(tile[a]), int(tile[b])), []).append(int(data.person[i]))
    made = {
        (int(o), int(d)): (int(v), int(p))
        for o, d, v, p in zip(flows.origin, flows.destination, flows.volume, flows.people, strict=True)
    }
    # k counts people: one person who goes to and fro many times counts once.
    assert made == {pair: (len(who), len(set(who))) for pair, who in changes.items()}
    assert flows.k_unit == "people"


def _days(
    night: tuple[float, float], day: tuple[float, float], days: int, extra: int = 0
) -> list[tuple[float, float, int]]:
    """Points at home at 22:00 and 03:00 and at work at 10:00 of days from Monday on; `extra` points elsewhere in one night."""
    points = []
    for d in range(days):
        points += [(*night, 86400 * d + 3 * 3600), (*day, 86400 * d + 10 * 3600), (*night, 86400 * d + 22 * 3600)]
    points += [(5000.0, 5000.0, 23 * 3600 + i) for i in range(extra)]
    return sorted(points, key=lambda p: p[2])


def test_home_and_work_are_where_most_days_are_spent_and_not_most_points() -> None:
    data = _data([_days((0, 0), (3000, 0), 4, extra=50), _days((0, 0), (3000, 0), 1), _days((900, 900), (900, 900), 3)])
    trips = trips_of(data, "home-work").to_pylist()
    assert [trip["user_id"] for trip in trips] == ["0", "2"] and "time" not in trips[0]  # the second was seen once
    assert trips[0]["origin_lon"] == pytest.approx(2.0) and trips[0]["destination_lon"] == pytest.approx(
        2 + 3000 * METER
    )
    weekend = _data([[(x, y, t + 5 * 86400) for x, y, t in _days((0, 0), (3000, 0), 2)]])
    with pytest.raises(InputError, match="no trip was found"):  # Saturday and Sunday are no working days
        trips_of(weekend, "home-work")
    shifted = trips_of(data, "home-work", tz="Pacific/Auckland").to_pylist()
    assert shifted != trips  # nights are those of the local clock


def test_every_od_method_runs_on_trajectories_in_one_command(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    lines = ["lat,lon,timestamp,trajectory_id,user_id"]
    for i in range(60):
        x, y = rng.integers(0, 4, 2) * 900
        for stop in range(3):
            lines += [
                f"{y * METER + j * 1e-5:.6f},{2 + x * METER:.6f},{1_767_571_200 + stop * 3000 + j * 700},{i},{i // 2}"
                for j in range(2)
            ]
            x, y = (x + 900 * (stop + 1)) % 3600, y
    Path("cabs.csv").write_text("\n".join(lines) + "\n")
    ran = command("trips", "cabs.csv", "--by", "stays", "-o", "trips.parquet")
    assert ran.code == 0 and "not anonymized" in ran.out, ran.err
    arguments = ["trips.parquet", "--zones", "grid:500m", "--step", "all"]
    ran = command("anonymize", "joint", *arguments, "--k", "3", "-o", "out")
    assert ran.code == 0, ran.err
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["k_unit"] == "people" and manifest["input"]["options"]["zones"] == {"name": "grid:500m"}
    assert command("verify", "out").code == 0
    assert command("measure", "trips.parquet", "out", "-m", "E,S").code == 0  # options of the release are used again
    assert command("flows", *arguments, "-o", "flows.csv").code == 0
    plain = command("anonymize", "suppression", *arguments[:-2], "--k", "2", "-o", "plain", "--no-report")
    assert plain.code == 0, plain.err
    trips = crowdveil.trips("cabs.csv", by="stays")
    found = crowdveil.anonymize(trips, "py", method="joint", k=3, zones="grid:500m", step="all")
    assert Path("py/flows.parquet").read_bytes() == Path("out/flows.parquet").read_bytes() and found.release is not None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"by": "transitions"}, "needs tiles"),
        ({"by": "stays", "zones": "grid:1km"}, "Leave it out"),
        ({"by": "first-last", "stay_s": 5}, "Leave it out"),
        ({"by": "stays", "stay_s": 10**6}, "no trip was found"),
        ({"by": "transitions", "zones": "grid:100km"}, "Choose smaller tiles"),
    ],
)
def test_what_cannot_be_read_as_trips_is_refused(options: dict[str, Any], sentence: str) -> None:
    data = _data([[(0, 0, 0), (500, 0, 60), (900, 100, 120)]])
    with pytest.raises(CrowdveilError, match=sentence):
        trips_of(data, **options)
