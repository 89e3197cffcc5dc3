"""Trips of a made-up city: exact, repeatable, bounded in memory, and at the hours and distances of a city."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from synthetic import make_trips

from crowdveil.errors import OutputError, ParameterError
from crowdveil.model.trips import Trips
from crowdveil.synth.city import City
from crowdveil.synth.trips import CHUNK, trip_chunks, write_trips

MONDAY = 1_772_409_600


@pytest.fixture(scope="module")
def city() -> City:
    return City.make(3, tiles=900, people=10_000)


@pytest.fixture(scope="module")
def week(city: City) -> Trips:
    return make_trips(city, 200_000, seed=8)


def hours(trips: Trips) -> tuple[np.ndarray, np.ndarray]:
    assert trips.t is not None
    day, second = np.divmod(trips.t - MONDAY, 86_400)
    return day, second // 3600


def test_a_file_has_the_columns_and_rows_asked_for(city: City, tmp_path: Path) -> None:
    write_trips(city, tmp_path / "t.parquet", 1234, seed=8)
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.num_rows == 1234
    assert table.column_names == ["user_id", "departure", "origin", "destination"]
    assert table.schema.field("user_id").type == pa.int64()
    assert table.schema.field("departure").type == pa.timestamp("us")
    assert table.schema.field("origin").type == pa.dictionary(pa.int32(), pa.string())
    assert set(table["origin"].to_pylist()) <= set(city.zones.ids)


def test_memory_and_file_hold_the_same_trips(city: City, tmp_path: Path) -> None:
    trips = make_trips(city, 5000, seed=8)
    write_trips(city, tmp_path / "t.parquet", 5000, seed=8)
    write_trips(city, tmp_path / "i.parquet", 5000, seed=8, zone_ids="index")
    named, indexed = pq.read_table(tmp_path / "t.parquet"), pq.read_table(tmp_path / "i.parquet")
    assert indexed.schema.field("destination").type == pa.int32()
    assert trips.t is not None and trips.person is not None
    assert indexed["origin"].to_numpy().tolist() == trips.origin.tolist()
    assert named["destination"].to_pylist() == city.zones.ids[trips.destination].tolist()
    assert named["user_id"].to_numpy().tolist() == trips.person.tolist()
    assert named["departure"].to_numpy().astype("datetime64[s]").astype(int).tolist() == trips.t.tolist()


def test_a_file_that_is_called_csv_is_csv(city: City, tmp_path: Path) -> None:
    write_trips(city, tmp_path / "t.csv", 500, seed=8)
    write_trips(city, tmp_path / "t.parquet", 500, seed=8)
    plain, packed = pacsv.read_csv(tmp_path / "t.csv"), pq.read_table(tmp_path / "t.parquet")
    assert plain.column_names == packed.column_names
    for name in ("user_id", "origin", "destination"):
        assert plain[name].to_pylist() == packed[name].to_pylist(), name
    assert plain["departure"].cast(pa.timestamp("us")).to_pylist() == packed["departure"].to_pylist()


def test_same_seed_same_bytes(city: City, tmp_path: Path) -> None:
    for name, seed in (("a", 8), ("b", 8), ("c", 9)):
        write_trips(city, tmp_path / name, 5000, seed=seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_chunks_are_bounded_and_add_up(city: City) -> None:
    chunks = [rows for _, rows in trip_chunks(city, 2500, days=7, start="2026-03-02", seed=8, chunk=1000)]
    assert [len(rows.person) for rows in chunks] == [1000, 1000, 500]
    assert not np.array_equal(chunks[0].person, chunks[1].person)


def test_row_groups_are_bounded_and_progress_is_reported(city: City, tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    total = CHUNK + 1000
    write_trips(
        city, tmp_path / "t", total, seed=8, zone_ids="index", progress=lambda done, of: reported.append((done, of))
    )
    file = pq.ParquetFile(tmp_path / "t")
    groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    assert groups == [CHUNK, 1000]
    assert reported == [(CHUNK, total), (total, total)]


def test_no_trips_is_an_empty_file(city: City, tmp_path: Path) -> None:
    write_trips(city, tmp_path / "t.parquet", 0, seed=8)
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 0
    assert len(make_trips(city, 0, seed=8)) == 0


def test_weekdays_peak_at_commuting_hours_and_weekends_do_not(week: Trips) -> None:
    day, hour = hours(week)
    assert day.min() == 0 and day.max() == 6
    weekday = np.bincount(hour[day < 5], minlength=24) / (day < 5).sum()
    weekend = np.bincount(hour[day >= 5], minlength=24) / (day >= 5).sum()
    assert weekday[8] > 1.5 * weekday[10] and weekday[17] > 1.5 * weekday[15]
    assert weekday[3] < 0.05 * weekday[8]
    assert weekend[8] < 0.4 * weekday[8] and weekend[15] > 1.2 * weekday[15]
    assert (day == 6).sum() < 0.8 * (day == 0).sum()


def test_mornings_lead_to_work_and_evenings_home(city: City, week: Trips) -> None:
    day, hour = hours(week)
    assert week.person is not None
    home, work = city.home[week.person], city.work[week.person]
    to_work = (week.origin == home) & (week.destination == work)
    to_home = (week.origin == work) & (week.destination == home)
    assert to_work[(day < 5) & (hour == 8)].mean() > 0.7
    assert to_home[(day < 5) & (hour == 17)].mean() > 0.5
    assert to_work[(day < 5) & (hour == 20)].mean() < 0.1


def test_every_trip_touches_home_or_work(city: City, week: Trips) -> None:
    assert week.person is not None
    home, work = city.home[week.person], city.work[week.person]
    touches = (week.origin == home) | (week.origin == work) | (week.destination == home) | (week.destination == work)
    assert touches.all()


def test_errands_are_near_and_trips_much_shorter_than_random_pairs(city: City, week: Trips) -> None:
    x, y = city.zones.xy
    far = np.hypot(x[week.origin] - x[week.destination], y[week.origin] - y[week.destination])
    tiles = np.random.default_rng(0).integers(0, len(x), (2, 10_000))
    anywhere = np.hypot(x[tiles[0]] - x[tiles[1]], y[tiles[0]] - y[tiles[1]]).mean()
    day, _ = hours(week)
    assert far.mean() < 0.5 * anywhere
    # Weekends are errands; on weekdays people go as far as their work.
    assert far[day >= 5].mean() < 0.9 * far[day < 5].mean()


def test_some_people_make_many_trips(city: City, week: Trips) -> None:
    assert week.person is not None
    made = np.sort(np.bincount(week.person, minlength=city.people))[::-1]
    assert made[0] > 6 * made.mean()
    assert made[: city.people // 100].sum() > 0.03 * made.sum()
    assert np.median(made) < 0.95 * made.mean()
    # The number of a person says nothing about it.
    assert abs(np.corrcoef(np.arange(city.people), np.bincount(week.person, minlength=city.people))[0, 1]) < 0.1


def test_flows_are_heavy_tailed(week: Trips) -> None:
    pair = week.origin.astype(np.int64) * 900 + week.destination
    volume = np.sort(np.unique(pair, return_counts=True)[1])[::-1]
    assert volume[: len(volume) // 10].sum() > 0.35 * volume.sum()
    assert np.median(volume) <= 3


def test_days_and_start_set_the_period(city: City) -> None:
    trips = make_trips(city, 3000, days=2, start="2026-03-07", seed=1)
    assert trips.t is not None
    assert trips.t.min() >= MONDAY + 5 * 86_400
    assert MONDAY + 6 * 86_400 < trips.t.max() < MONDAY + 7 * 86_400


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"trips": -1}, "trips"), ({"days": 0}, "days"), ({"start": "soon"}, "start"), ({"seed": -5}, "seed")],
)
def test_wrong_parameters_are_refused_by_name(city: City, tmp_path: Path, wrong: dict[str, object], name: str) -> None:
    arguments: dict[str, object] = {"trips": 10, "seed": 1} | wrong
    with pytest.raises(ParameterError, match=name):
        write_trips(city, tmp_path / "trips.parquet", **arguments)  # type: ignore[arg-type]


def test_wrong_zone_ids_and_folders_are_refused(city: City, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="zone_ids"):
        write_trips(city, tmp_path / "t", 10, seed=1, zone_ids="names")  # type: ignore[arg-type]
    with pytest.raises(OutputError, match="folder"):
        write_trips(city, tmp_path / "none" / "t", 10, seed=1)


def test_a_run_that_breaks_off_leaves_no_file(city: City, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_trips(city, tmp_path / "t", 10, seed=1, progress=stop)
    assert list(tmp_path.iterdir()) == []
