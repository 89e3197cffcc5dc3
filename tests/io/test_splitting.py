"""Trajectories of vehicles are split into rides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import crowdveil
from crowdveil.cli.main import cli
from crowdveil.errors import InputError
from crowdveil.run.filters import Filter, filter_file


def plain_rides(rows: list[tuple[str, int, int, bool]]) -> dict[tuple[str, int], list[int]]:
    """Number the rides of each cab, in order of time: the rows of each."""
    rides: dict[tuple[str, int], list[int]] = {}
    for cab in {cab for cab, *_ in rows}:
        number, before = 0, False
        for _, row, inside in sorted((t, row, inside) for c, row, t, inside in rows if c == cab):
            number += inside and not before
            before = inside
            if inside:
                rides.setdefault((cab, number), []).append(row)
    return rides


def table_of(rows: list[tuple[str, int, int, bool]], values: tuple[object, object]) -> pa.Table:
    cabs, _, t, inside = zip(*rows, strict=True)
    n = len(rows)
    return pa.table(
        {"cab": cabs, "lat": np.arange(n) / 1e4, "lon": np.zeros(n), "time": t, "occupied": [values[i] for i in inside]}
    )


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), min_size=1, max_size=12),
    st.sampled_from([(0, 1), (False, True), ("no", "Yes "), (0.0, 1.0)]),
    st.randoms(use_true_random=False),
)
def test_rides_are_those_of_a_plain_loop(
    tmp_path_factory: pytest.TempPathFactory,
    points: list[tuple[str, bool]],
    values: tuple[object, object],
    random: object,
) -> None:
    times = list(range(1_211_018_400, 1_211_018_400 + 60 * len(points), 60))
    random.shuffle(times)  # type: ignore[attr-defined]
    rows = [(cab, row, t, inside) for row, ((cab, inside), t) in enumerate(zip(points, times, strict=True))]
    out = tmp_path_factory.mktemp("rides") / "rides.parquet"
    found = filter_file(table_of(rows, values), out, [], split_by="occupied", user="cab")
    expected = plain_rides(rows)
    assert found.trajectories == (len(expected),) * 2
    written = crowdveil.read_trajectories(out, user="cab") if expected else None
    import pyarrow.parquet as pq

    ids = pq.read_table(out)
    assert ids["lat"].to_pylist() == [row / 1e4 for row in sorted(r for of in expected.values() for r in of)]
    by_id: dict[str, set[float]] = {}
    for ride, lat in zip(ids["trajectory_id"].to_pylist(), ids["lat"].to_pylist(), strict=True):
        by_id.setdefault(ride, set()).add(lat)
    assert {frozenset(of) for of in by_id.values()} == {frozenset(r / 1e4 for r in of) for of in expected.values()}
    if written is not None:
        assert written.k_unit == "people" and set(written.people_ids) == {cab for cab, _ in expected}


def test_a_recipe_from_raw_cabs_to_rides(tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    lines = [
        f"{cab},37.75,-122.{39 + i % 3},{int(i % 4 > 0)},{1211018400 + 60 * i}" for cab in "xyz" for i in range(40)
    ]
    raw.write_text("\n".join(["cab,lat,lon,occupied,time", *lines]) + "\n")
    out = tmp_path / "rides.csv"
    ran = CliRunner().invoke(
        cli, ["filter", str(raw), "--user", "cab", "--split-by", "occupied", "--min-locations", "3", "-o", str(out)],
        catch_exceptions=False,
    )  # fmt: skip
    assert ran.exit_code == 0 and "split by occupied: 30 rides" in ran.output
    rides = crowdveil.read_trajectories(out, user="cab")
    assert len(rides) == 30 and len(rides.people_ids) == 3 and rides.points == 90


def test_bad_columns_are_refused(tmp_path: Path) -> None:
    rows = [("a", 0, 1211018400, True), ("a", 1, 1211018460, False)]
    for table, options, says in (
        (table_of(rows, (0, 1)), {"split_by": "free", "user": "cab"}, "no column free"),
        (table_of(rows, (0, 2)), {"split_by": "occupied", "user": "cab"}, "1 values? of column occupied"),
        (table_of(rows, (0, None)), {"split_by": "occupied", "user": "cab"}, "1 values? of column occupied"),
        (table_of(rows, (0, 1)).rename_columns(["trajectory_id", "lat", "lon", "time", "occupied"]),
         {"split_by": "occupied"}, "known people or vehicles"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            filter_file(table, tmp_path / "out.csv", [Filter("min_locations", ("1",))], **options)
        assert not (tmp_path / "out.csv").exists()
