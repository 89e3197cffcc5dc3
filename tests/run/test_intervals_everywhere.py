"""Everything that reads a release takes a row with an interval for what it is: trips of all time steps from `t` to `until`."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import crowdveil
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.written_release import WrittenRelease
from crowdveil.report.attack_table import _guessed_destination
from crowdveil.report.plots.flow_panels import released_panel
from crowdveil.run.releases import open_release
from crowdveil.synth.city import City
from crowdveil.synth.trips import write_trips

HOUR = timedelta(hours=1)
ASKED = {"k": 5, "step": "1h", "time_partition": "adaptive", "hour_weight": 1}


class IntervalRelease(NamedTuple):
    """The folder of the trips and of the release, and the published rows."""

    folder: Path
    rows: list[dict[str, Any]]

    @property
    def out(self) -> Path:
        """Return the folder of the release."""
        return self.folder / "out"

    @property
    def trips(self) -> tuple[Path, dict[str, Any]]:
        """Return the original and its input options."""
        return self.folder / "trips.parquet", {"zones": self.folder / "zones.geojson"}

    def spread(self) -> dict[Any, float]:
        """Return the trips of each hour, those of a row spread evenly over its hours."""
        found: dict[Any, float] = defaultdict(float)
        for row in self.rows:
            hours = (row["until"] - row["t"]) // HOUR
            for i in range(hours):
                found[row["t"] + i * HOUR] += row["volume"] / hours
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> IntervalRelease:
    """A release of two days of a small city with every file that a run can write, audited with a ledger."""
    folder = tmp_path_factory.mktemp("intervals")
    town = City.make(1, 16, 300)
    crowdveil.write_zones(town.zones, folder / "zones.geojson")
    write_trips(town, folder / "trips.parquet", 3000, 2, seed=1)
    crowdveil.ledger_init(folder / "ledger")
    crowdveil.anonymize(
        folder / "trips.parquet", folder / "out", method="joint", zones=folder / "zones.geojson", export="all",
        ledger=folder / "ledger", **ASKED,
    )  # fmt: skip
    rows = pq.read_table(folder / "out" / "flows.parquet").to_pylist()
    assert len({row["until"] - row["t"] for row in rows}) > 2
    return IntervalRelease(folder, rows)


def _cells(made: IntervalRelease) -> dict[Any, int]:
    return {(_label(r), r["origin_area"], r["destination_area"]): r["volume"] for r in made.rows}


def _label(row: dict[str, Any]) -> str:
    return f"{row['t'].isoformat()} to {row['until'].isoformat()}"


def check_verify(made: IntervalRelease) -> None:
    original, reading = made.trips
    assert all(finding.holds for _, finding in crowdveil.verify(made.out, original, **reading))
    said = {g.name: finding.detail for g, finding in crowdveil.verify(made.out)}
    assert "2 days checked" in said["period-budget"]


def check_measure(made: IntervalRelease) -> None:
    original, reading = made.trips
    found = crowdveil.measure(original, made.out, ["mean-duration", "generalization-by-duration", "E"], **reading)
    volume = np.array([r["volume"] for r in made.rows])
    hours = np.array([(r["until"] - r["t"]) / HOUR for r in made.rows])
    assert found["mean-duration"].pooled == pytest.approx(np.average(hours, weights=volume))
    by_length = np.array(found["generalization-by-duration"].pooled)
    assert np.isfinite(by_length[0]) == bool(np.any(hours <= 1)) and np.isfinite(by_length).sum() > 1


def check_attacks(made: IntervalRelease) -> None:
    found = {exposure.name: exposure for exposure in crowdveil.attack("all", made.out).exposures}
    assert not found["differencing"].below_k and found["minimum-group-size"].worst >= 5
    groups = {(r["t"], r["until"], r["origin_area"]) for r in made.rows}
    assert found["homogeneity"].values["origins"] == len(groups)


def check_reconstruct(made: IntervalRelease) -> None:
    table = crowdveil.reconstruct(made.out).table().to_pylist()
    found: dict[Any, float] = defaultdict(float)
    for row in table:
        found[row["t"]] += row["volume"]
    assert found == pytest.approx(made.spread())
    assert all(row["lower"] <= row["volume"] + 1e-9 <= row["upper"] + 1e-6 for row in table)


def check_profiles(made: IntervalRelease) -> None:
    """Means over the two days of the trips that leave any zone, by hour of the day."""
    found: dict[str, float] = defaultdict(float)
    for row in crowdveil.profiles(made.out, period="day").table().to_pylist():
        if row["destination"] is None and row["volume"] is not None:
            found[row["hour"]] += row["volume"]
    wanted: dict[str, float] = defaultdict(float)
    for hour, trips in made.spread().items():
        wanted[hour.strftime("%H:%M")] += trips / 2
    assert found == pytest.approx(wanted)


def check_land_use(made: IntervalRelease) -> None:
    pytest.importorskip("sklearn")
    assert len(crowdveil.land_use(made.out, least_trips=1, **made.trips[1]).clusters)


def check_topics(made: IntervalRelease) -> None:
    pytest.importorskip("sklearn")
    assert len(crowdveil.topics(made.out, topics=2, **made.trips[1]).hours)


def check_report(made: IntervalRelease) -> None:
    page = (made.out / "report.html").read_text()
    assert all(text in page for text in ("Length of intervals", "spread evenly over their time steps"))


def check_omx(made: IntervalRelease) -> None:
    h5py = pytest.importorskip("h5py")
    found = {}
    with h5py.File(made.out / "flows.omx") as file:
        ids = [i.decode() for i in file["lookup"]["zone_id"][:]]
        for name in (n for n in file["data"] if not n.startswith("published")):
            dense, mask = file["data"][name][:], file["data"][f"published {name}"][:]
            assert np.array_equal(mask == 1, np.isfinite(dense))
            found |= {(name, ids[o], ids[d]): int(dense[o, d]) for o, d in zip(*np.nonzero(mask), strict=True)}
    assert found == _cells(made)


def check_flow_maps(made: IntervalRelease) -> None:
    for name in ("flowmap_flows", "kepler_flows"):
        text = pacsv.ConvertOptions(column_types={"time": pa.string(), "until": pa.string()})
        rows = pacsv.read_csv(made.out / f"{name}.csv", convert_options=text).to_pylist()
        assert {(f"{r['time']} to {r['until']}", r["origin"], r["dest"]): r["count"] for r in rows} == _cells(made)


def check_plots(made: IntervalRelease) -> None:
    """What a picture of one hour shows are the trips of all rows that span the hour, spread evenly."""
    manifest, written = open_release(made.out)
    for hour, trips in list(made.spread().items())[:12]:
        at = hour.isoformat()[:13]
        if trips < 5:
            continue
        spanning = [r for r in made.rows if r["t"] <= hour < r["until"]]
        panel = released_panel(written, manifest, at, "")
        assert abs(panel.flows.volume.sum() - trips) <= len(spanning)
    assert released_panel(written, manifest, None, "").flows.volume.sum() == sum(r["volume"] for r in made.rows)
    assert manifest.time_zone == "UTC"
    pytest.importorskip("matplotlib")
    assert crowdveil.plot("coarsening", made.out) and crowdveil.plot("profiles", made.out)


def check_derive(made: IntervalRelease) -> None:
    crowdveil.derive(made.out, made.folder / "days", step="1d", report=False)
    days = pq.read_table(made.folder / "days" / "flows.parquet").to_pylist()
    assert sum(r["volume"] for r in days) == sum(r["volume"] for r in made.rows) and len({r["t"] for r in days}) == 2
    with pytest.raises(ParameterError, match="span several steps"):
        crowdveil.derive(made.out, made.folder / "hours", step="1h")


def check_ledger(made: IntervalRelease) -> None:
    original, reading = made.trips
    assert crowdveil.ledger_check(made.folder / "ledger", made.out, original, **reading).passed
    assert len(crowdveil.ledger_list(made.folder / "ledger")) == 1
    assert json.loads((made.out / "manifest.json").read_text())["ledger"]["entry"] == 1


def check_comparison(made: IntervalRelease) -> None:
    original, reading = made.trips
    methods = ["joint", "joint:time_partition=adaptive"]
    found = crowdveil.compare(original, methods, k=5, sample=4, step="1h", measures="mean-duration", **reading)
    assert len(found.runs) == 2


def check_partition(made: IntervalRelease) -> None:
    """An interval is no set of areas for every hour, so `fixed` refuses it; as rows of the same trips it is taken."""
    original, reading = made.trips
    with pytest.raises(InputError, match="intervals of time"):
        crowdveil.anonymize(original, made.folder / "f", method="fixed", partition=made.out, step="1h", k=5, **reading)


CHECKS: dict[str, Callable[[IntervalRelease], None]] = {
    name.removeprefix("check_"): check for name, check in globals().items() if re.match("check_", name)
}


@pytest.mark.parametrize("reader", CHECKS)
def test_every_reader_honors_until(made: IntervalRelease, reader: str) -> None:
    CHECKS[reader](made)


def _written(rows: list[tuple[int, int, int, int]]) -> WrittenRelease:
    times = {
        name: pa.array([1000 * 3600 * r[i] for r in rows], pa.timestamp("ms", "UTC"))
        for i, name in enumerate(("t", "until"))
    }
    areas = {"origin_area": ["a"] * len(rows), "destination_area": ["ab"[r[2]] for r in rows]}
    data = pa.table(
        times
        | areas
        | {"volume": [r[3] for r in rows], "trips": [r[3] for r in rows], "state": ["published"] * len(rows)}
    )
    features = [{"properties": {"area": a, "tiles": [a]}, "geometry": None} for a in "ab"]
    return WrittenRelease(
        Path("memory"), data, pa.table({"t": [], "until": [], "published": [], "suppressed": []}), features
    )


@examples(60)
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(4, 6), st.integers(0, 1), st.integers(1, 9)), min_size=1))
def test_a_guess_is_for_an_interval(rows: Any) -> None:
    """Rows that begin at one hour and end at two are two groups, of which each has a destination with most trips."""
    groups: dict[Any, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for start, end, destination, volume in rows:
        groups[start, end][destination] += volume
    wanted = 100 * sum(max(g.values()) for g in groups.values()) / sum(r[3] for r in rows)
    assert _guessed_destination(_written(rows), tiles_only=False) == pytest.approx(wanted)
