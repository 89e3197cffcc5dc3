"""Trips to flows against a plain twin: a dict of counts and sets, one row at a time, with zoneinfo's clocks."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.io.flows import read_flows, read_trips, trips_to_flows
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.model.tessellation import locate
from crowdveil.model.zones import Zones

unhurried = settings(
    deadline=None,
    max_examples=tries(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
CHANGES = {
    "Europe/Paris": (1711846800, 1729990800), "America/New_York": (1710054000, 1730613600),
    "Australia/Lord_Howe": (1712415600, 1728142200), "America/Sao_Paulo": (1541300400, 1550368800),
    "Pacific/Apia": (1325239200, 1333202400), "Asia/Kathmandu": (504901800,), "UTC": (6_000_000, 1711846800),
}  # fmt: skip
"""Moments at which clocks are put forward and back."""
NAMES = ["7", "12", "a", "b c", "07"]
ZONES = Zones(np.array(NAMES, dtype=object), np.linspace(2, 3, 5), np.linspace(41, 42, 5), kind="centroids")


@dataclass(frozen=True)
class Trip:
    origin: str
    destination: str
    utc: datetime
    user: int
    weight: float


@st.composite
def many_trips(draw: st.DrawFn) -> tuple[str, list[Trip]]:
    zone = draw(st.sampled_from(sorted(CHANGES)))
    changes = CHANGES[zone]

    def moment() -> datetime:
        around = draw(st.sampled_from(changes))
        seconds = draw(st.sampled_from([7200, 90_000, 5_000_000]))
        micro = timedelta(microseconds=draw(st.sampled_from([0, 1, 500_000, 999_999])))
        return (
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=around + draw(st.integers(-seconds, seconds))) + micro
        )

    n = draw(st.integers(1, 25))
    names = st.sampled_from(NAMES[:4] if draw(st.booleans()) else NAMES[:2])
    trips = [
        Trip(draw(names), draw(names), moment(), draw(st.integers(1, 4)), draw(st.integers(0, 12)) / 4)
        for _ in range(n)
    ]
    return zone, trips


def shown(trip: Trip, zone: str, naive: bool) -> datetime:
    """The time as it stands in the data: with its zone, or as a clock showed it that was not put forward or back."""
    if not naive:
        return trip.utc
    before = datetime.fromtimestamp(CHANGES[zone][0] - 1, ZoneInfo(zone)).utcoffset()
    assert before is not None
    return trip.utc.replace(tzinfo=None) + before


def plain_flows(
    trips: list[Trip], zone: str, step: str, *, naive: bool, people: bool, weights: bool, names: list[str] | None = None
) -> dict[tuple[int | None, str, str], tuple[int, int]]:
    """(start of the step, origin, destination) → (volume, crowd)."""
    counted: dict[Any, Fraction] = defaultdict(Fraction)
    crowd: dict[Any, list[int]] = defaultdict(list)
    for trip in trips:
        moment = shown(trip, zone, naive)
        if naive:
            # the first of two equal times; a time that no clock showed, as if the clock had not been put forward
            moment = moment.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC)
        wall = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
        begin = {
            "15min": wall.replace(minute=wall.minute // 15 * 15, second=0, microsecond=0),
            "1h": wall.replace(minute=0, second=0, microsecond=0),
            "1d": midnight,
            "1w": midnight - timedelta(days=midnight.weekday()),
            "all": None,
        }[step]
        start = 0 if begin is None else int(begin.replace(tzinfo=ZoneInfo(zone), fold=0).timestamp())
        key = (start, trip.origin, trip.destination)
        counted[key] += Fraction(str(trip.weight)) if weights else 1
        crowd[key].append(trip.user)
    volume, so_far = {}, defaultdict(Fraction)
    order = {name: i for i, name in enumerate(names or NAMES)}
    filled = [key for key in counted if counted[key] > 0]
    for key in sorted(filled, key=lambda key: (key[0], order[key[1]], order[key[2]])):
        before = so_far[key[0]]
        so_far[key[0]] += counted[
            key
        ]  # rounded to whole trips, with the rest carried over to the next flow of the step
        volume[key] = floor(so_far[key[0]] + Fraction(1, 2)) - floor(before + Fraction(1, 2))
    return {
        key: (volume[key], len(set(crowd[key])) if people else len(crowd[key]))
        for key in volume
        if so_far[key[0]] >= Fraction(1, 2)
    }


def as_dict(flows: Flows) -> dict[tuple[int | None, str, str], tuple[int, int]]:
    """A model of flows in the form of the twin; fails where a key stands twice."""
    t = flows.t[flows.step].tolist()
    ids = flows.zones.ids
    keys = list(zip(t, ids[flows.origin].tolist(), ids[flows.destination].tolist(), strict=True))
    values = list(zip(flows.volume.tolist(), flows.people.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, values, strict=True))


def table_of(trips: list[Trip], zone: str, naive: bool, people: bool) -> pa.Table:
    times = [shown(t, zone, naive) for t in trips]
    columns: dict[str, Any] = {
        "from": pa.array([t.origin for t in trips]),
        "to": pa.array([t.destination for t in trips]),
        "when": pa.array(times, pa.timestamp("us") if naive else pa.timestamp("us", "UTC")),
        "w": [t.weight for t in trips],
    }
    if people:
        columns["who"] = [t.user for t in trips]
    return pa.table(columns)


def as_csv(table: pa.Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow([v.isoformat() if isinstance(v, datetime) else v for v in row.values()])
    return text.getvalue()


@unhurried
@given(many_trips(), st.sampled_from(["15min", "1h", "1d", "1w", "all"]), st.booleans(), st.booleans(), st.booleans())
def test_every_way_of_reading_trips_agrees_with_the_twin(
    tmp_path: Path, made: tuple[str, list[Trip]], step: str, naive: bool, people: bool, weights: bool
) -> None:
    zone, trips = made
    # Flows are rounded in the order of the zones: as they are given, or names that came up with numbers first.
    by_order = {
        given: plain_flows(trips, zone, step, naive=naive, people=people, weights=weights, names=names)
        for given, names in ((True, NAMES), (False, ["07", *NAMES[:-1]]))
    }
    table = table_of(trips, zone, naive, people)
    pq.write_table(table, tmp_path / "trips.parquet")
    (tmp_path / "trips.csv").write_text(as_csv(table))
    options: dict[str, Any] = {
        "origin": "from",
        "destination": "to",
        "time": "when",
        "step": step,
        "tz": zone,
        "each_row_is_a_trip": True,
    }
    options |= {"user": "who"} if people else {}
    options |= {"weight": "w"} if weights else {}
    sources = (
        ("Parquet", tmp_path / "trips.parquet", {"zones": ZONES}),
        ("CSV", str(tmp_path / "trips.csv"), {}),
        ("pandas", table.to_pandas(), {"zones": ZONES}),
    )
    for name, data, more in sources:
        wanted = by_order["zones" in more]
        if not wanted:
            with pytest.raises(InputError, match=r"all volumes are zero|half a trip"):
                read_flows(data, **options, **more)
            continue
        flows = read_flows(data, **options, **more)
        assert as_dict(flows) == wanted, name
        assert flows.k_unit == ("people" if people else "trips")
        assert flows.tz == (zone if step != "all" else "UTC")
        assert flows.step_s == {"15min": 900, "1h": 3600, "1d": 86400, "1w": 604800, "all": None}[step]
    if wanted:
        in_memory = read_trips(
            tmp_path / "trips.csv",
            tz=zone,
            zones=ZONES,
            **{k: v for k, v in options.items() if k not in ("step", "tz", "each_row_is_a_trip")},
        )
        assert len(in_memory) == len(trips)
        assert as_dict(trips_to_flows(in_memory, step=step, tz=zone)) == wanted
        grouped = read_flows(in_memory, step=step, tz=zone)
        assert as_dict(grouped) == wanted
        assert grouped.distinct_people == read_flows(tmp_path / "trips.csv", zones=ZONES, **options).distinct_people


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
def test_times_before_1970_are_rounded_down(zone: str) -> None:
    times = pa.array([-1, -500_000, -1_000_000, -3_600_000_001, 1], pa.timestamp("us", "UTC"))
    table = pa.table({"origin": ["7"] * 5, "destination": ["7"] * 5, "time": times})
    flows = read_flows(table, tz=zone, time_format="%Y-%m-%d %H:%M:%S")
    assert as_dict(flows) == {(-7200, "7", "7"): (1, 1), (-3600, "7", "7"): (3, 3), (0, "7", "7"): (1, 1)}


@pytest.mark.parametrize("names", [("o", "d", "person", "step"), ("d", "o", "i", "n"), ("from", "to", "file_row_number", "wall"),
                                   ("O", "o", "D", "d"), ('a"b', "c'd", "e f", "select")])  # fmt: skip
def test_names_of_columns_mean_nothing_to_the_engine(names: tuple[str, str, str, str]) -> None:
    origin, destination, user, other = names
    columns = {
        origin: ["a", "a", "7"], destination: ["7", "7", "a"], user: [1, 2, 3], other: ["12"] * 3, "key": [9] * 3,
        "time": pa.array([0, 1, 2], pa.timestamp("s")),
    }  # fmt: skip
    flows = read_flows(pa.table(columns), origin=origin, destination=destination, user=user, zones=ZONES)
    assert as_dict(flows) == {(0, "a", "7"): (2, 2), (0, "7", "a"): (1, 1)}


@pytest.mark.parametrize("kind", [pa.int64(), pa.int8(), pa.uint64(), pa.float64(), pa.string(), pa.large_string(),
                                  pa.string_view(), pa.dictionary(pa.int8(), pa.string())])  # fmt: skip
@pytest.mark.parametrize("zones", [None, ZONES])
def test_ids_of_every_type_are_the_same_zones(kind: pa.DataType, zones: Zones | None, tmp_path: Path) -> None:
    origin = pa.array(["7", "7", "12"]) if not pa.types.is_floating(kind) else pa.array([7.0, 7.0, 12.0])
    destination = pa.array([12, 12, 7]).cast(pa.string()) if not pa.types.is_integer(kind) else pa.array([12, 12, 7])
    origin = origin.dictionary_encode() if pa.types.is_dictionary(kind) else origin.cast(kind)
    table = pa.table({"origin": origin, "destination": destination, "user": [1, 1, 2]})
    pq.write_table(table, tmp_path / "trips.parquet")
    for data in (table, tmp_path / "trips.parquet"):
        assert as_dict(read_flows(data, zones=zones)) == {(0, "7", "12"): (2, 1), (0, "12", "7"): (1, 1)}


def test_users_that_are_missing_or_no_number_are_not_people() -> None:
    table = pa.table({"origin": ["7"] * 4, "destination": ["12"] * 4, "user": [1.0, 2.0, float("nan"), None]})
    with pytest.raises(InputError, match=r"2 rows \(rows 3 and 4\) have no user in column user"):
        read_flows(table)
    notes = ReadNotes()
    assert as_dict(read_flows(table, drop_invalid=True, notes=notes)) == {(0, "7", "12"): (2, 2)}
    assert notes.dropped == {"have no user in column user": 2}


@unhurried
@given(st.lists(st.tuples(st.sampled_from(["7", "12", "nowhere", None]), st.sampled_from(["7", "a", "07x", None]),
                          st.sampled_from([None, 0, 4000]), st.sampled_from([None, 1, 2])), min_size=1, max_size=12))  # fmt: skip
def test_bad_rows_are_counted_by_their_first_fault(rows: list[tuple[Any, ...]]) -> None:
    columns = list(zip(*rows, strict=True))
    table = pa.table({
        "origin": pa.array(columns[0], pa.string()), "destination": pa.array(columns[1], pa.string()),
        "time": pa.array(columns[2], pa.timestamp("s")), "user": pa.array(columns[3], pa.int64()),
    })  # fmt: skip
    reasons = (
        "name a zone that is not among the zones in column origin",
        "name a zone that is not among the zones in column destination",
        "have no usable time in column time",
        "have no user in column user",
    )
    dropped: dict[str, int] = defaultdict(int)
    good: dict[Any, list[int]] = defaultdict(list)
    first: dict[str, int] = {}
    for number, (o, d, t, user) in enumerate(rows, start=1):
        faults = (o not in NAMES, d not in NAMES, t is None, user is None)
        if any(faults):
            reason = reasons[faults.index(True)]
            dropped[reason] += 1
            first.setdefault(reason, number)
        else:
            good[(t // 3600 * 3600, o, d)].append(user)
    notes = ReadNotes()
    if dropped:
        with pytest.raises(InputError) as refused:
            read_flows(table, zones=ZONES)
        reason = next(r for r in reasons if r.partition(" ")[2] in str(refused.value))
        assert f"{dropped[reason]} row" in str(refused.value)
        assert str(first[reason]) in str(refused.value)
    if not good:
        with pytest.raises(InputError):
            read_flows(table, zones=ZONES, drop_invalid=True)
        return
    flows = read_flows(table, zones=ZONES, drop_invalid=True, notes=notes)
    assert as_dict(flows) == {key: (len(users), len(set(users))) for key, users in good.items()}
    assert notes.dropped == dropped


# Flows that come as flows.


def test_flows_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text(
        "origin,destination,flow,time\n7,12,3,2024-01-01 00:10\n7,12,4,2024-01-01 00:50\n12,7,0,2024-01-01\n"
    )
    flows = read_flows(tmp_path / "flows.csv", step="1h")
    assert as_dict(flows) == {(1704067200, "7", "12"): (7, 7)}
    assert flows.k_unit == "trips"
    own = read_flows(tmp_path / "flows.csv")
    assert as_dict(own) == {(1704067800, "7", "12"): (3, 3), (1704070200, "7", "12"): (4, 4)}
    assert own.step_s == 2400
    assert read_flows(tmp_path / "flows.csv", step="all").step_s is None


def test_people_of_a_flow_are_taken_and_never_added_up() -> None:
    rows = {"origin": ["7", "12"], "destination": ["12", "7"], "volume": [5, 9], "people": [2, 9]}
    flows = read_flows(pa.table(rows))
    assert as_dict(flows) == {(0, "7", "12"): (5, 2), (0, "12", "7"): (9, 9)}
    assert flows.k_unit == "people"
    with pytest.raises(InputError, match="1 pair of zones have several rows"):
        read_flows(pa.table({**rows, "origin": ["7", "7"], "destination": ["12", "12"]}))


def test_volumes_of_people_who_are_known_count_them() -> None:
    rows = {"origin": ["7"] * 3, "destination": ["12"] * 3, "volume": [5, 9, 1], "user_id": ["ann", "ann", "ben"]}
    flows = read_flows(pa.table(rows))
    assert as_dict(flows) == {(0, "7", "12"): (15, 2)}
    assert flows.k_unit == "people"


def test_zones_that_come_up_are_sorted_numbers_first() -> None:
    flows = read_flows(pa.table({"origin": ["b", "10", "9"], "destination": ["a", "9", "010"]}))
    assert flows.zones.ids.tolist() == ["9", "010", "10", "a", "b"]


def test_trips_do_not_come_from_flows() -> None:
    with pytest.raises(InputError, match="column volume holds volumes"):
        read_trips(pa.table({"origin": ["a"], "destination": ["b"], "volume": [1]}))


# Coordinates.


@pytest.mark.parametrize("way", ["grid:500m", "grid:750", "h3:8"])
def test_coordinates_are_put_into_tiles(way: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    lon, lat = 2.1 + rng.random((2, 300)) / 10, 41.3 + rng.random((2, 300)) / 10
    frame = pd.DataFrame({"start_lng": lon[0], "start_lat": lat[0], "end_lng": lon[1], "end_lat": lat[1]})
    frame.to_csv(tmp_path / "trips.csv", index=False)
    for data in (frame, tmp_path / "trips.csv"):
        flows = read_flows(data, zones=way)
        assert flows.total == 300
        ids = flows.zones.ids
        origin, destination = (locate(flows.zones, x, y) for x, y in zip(lon, lat, strict=True))
        wanted: dict[Any, int] = defaultdict(int)
        for o, d in zip(origin, destination, strict=True):
            wanted[(0, ids[o], ids[d])] += 1
        assert as_dict(flows) == {key: (n, n) for key, n in wanted.items()}


def test_coordinates_are_put_into_voronoi_cells(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    x, y = 2.1 + rng.random(12) / 10, 41.3 + rng.random(12) / 10
    points = "antenna,lon,lat\n" + "".join(
        f"A{i},{a!r},{b!r}\n" for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True))
    )
    (tmp_path / "antennas.csv").write_text(points)
    lon, lat = 2.1 + rng.random((2, 50)) / 10, 41.3 + rng.random((2, 50)) / 10
    trips = pa.table({"origin_lon": lon[0], "origin_lat": lat[0], "destination_lon": lon[1], "destination_lat": lat[1]})
    flows = read_flows(trips, zones=f"voronoi:{tmp_path / 'antennas.csv'}", zone_id="antenna")
    scale = np.cos(np.radians(41.35))

    def nearest(a: float, b: float) -> str:
        return f"A{np.argmin(((x - a) * scale) ** 2 + (y - b) ** 2)}"

    wanted: dict[Any, int] = defaultdict(int)
    for a, b, c, d in zip(lon[0], lat[0], lon[1], lat[1], strict=True):
        wanted[(0, nearest(a, b), nearest(c, d))] += 1
    assert as_dict(flows) == {key: (n, n) for key, n in wanted.items()}


# Across pieces of a file.


def test_pieces_with_and_without_zone_do_not_mix() -> None:
    times = pa.chunked_array([["2024-05-06T08:00:00"] * 2, [None] * 2, ["2024-05-06T08:00:00Z"] * 2])
    table = pa.table({"origin": ["a"] * 6, "destination": ["b"] * 6, "time": times})
    assert [b.num_rows for b in table.to_batches()] == [2, 2, 2]
    with pytest.raises(InputError, match="column time: some times have a zone and some have none"):
        read_flows(table, drop_invalid=True)
    assert read_flows(table.slice(2), drop_invalid=True).total == 2


def test_a_file_of_several_pieces_is_read_as_one(tmp_path: Path) -> None:
    """More rows than a block of the CSV reader holds, with a zone of times that changes half way."""
    n = 300_000
    number = np.arange(n)
    lines = [f"z{a},y{b},2024-05-06T08:00:00,{u}" for a, b, u in zip(number % 7, number % 5, number % 11, strict=True)]
    (tmp_path / "trips.csv").write_text("origin,destination,time,user\n" + "\n".join(lines) + "\n")
    wanted = {
        (1714982400, f"z{a}", f"y{b}"): (len(range(i, n, 35)), 11) for i in range(35) for a, b in [(i % 7, i % 5)]
    }
    assert as_dict(read_flows(tmp_path / "trips.csv")) == wanted
    lines[-1] = lines[-1].replace("08:00:00", "08:00:00Z")
    (tmp_path / "trips.csv").write_text("origin,destination,time,user\n" + "\n".join(lines) + "\n")
    with pytest.raises(InputError, match="column time: some times have a zone and some have none"):
        read_flows(tmp_path / "trips.csv")
    lines[-1] = lines[0].replace("08:00:00", "noon")
    (tmp_path / "trips.csv").write_text("origin,destination,time,user\n" + "\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"1 row \(row 300,000\) has no usable time in column time"):
        read_flows(tmp_path / "trips.csv")


# Real data.


@pytest.mark.realdata
def test_commuting_flows_between_counties(commuting: Path) -> None:
    file = commuting / "NY_commuting_flows_2011.csv"
    with file.open() as opened:
        rows = list(csv.DictReader(opened))
    flows = read_flows(file, zones=commuting / "NY_counties_2011.geojson")
    assert flows.total == sum(int(r["flow"]) for r in rows)


class TestUnreadVolumes:
    """A table of counted flows is not taken for single trips because its volumes have an unknown name."""

    pairs = "origin,destination,commuters\na,b,12\nb,a,30\n"
    hours = "time,origin,destination,commuters\n2020-01-01 08:00,a,b,12\n2020-01-01 09:00,a,b,30\n"

    def read(self, tmp_path: Path, text: str, **options: Any) -> Flows:
        (tmp_path / "table.csv").write_text(text, encoding="utf-8")
        return read_flows(tmp_path / "table.csv", **options)

    @pytest.mark.parametrize("text", [pairs, hours, pairs.replace("12", "12.5"), pairs.replace("30", "")])
    def test_numbers_of_unknown_meaning_are_refused(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(
            InputError, match=r"in commuters\. Name the volumes with volume=, or give each_row_is_a_trip="
        ):
            self.read(tmp_path, text)

    def test_either_answer_reads_the_table(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, self.pairs, volume="commuters").volume.tolist() == [12, 30]
        assert self.read(tmp_path, self.pairs, each_row_is_a_trip=True).volume.tolist() == [1, 1]

    @pytest.mark.parametrize(
        "text",
        [
            hours.replace("08:00", "08:01"),  # a time of one trip
            pairs.replace("12", "one").replace("30", "two"),
            pairs.replace("12", "-1"),
            pairs.replace("12", "0").replace("30", "1"),
            pairs.replace("commuters", "user_id"),
            pairs.replace("commuters", "start_lat"),
        ],
    )
    def test_trips_need_no_answer(self, tmp_path: Path, text: str) -> None:
        assert self.read(tmp_path, text).volume.tolist() in ([1, 1], [2])
