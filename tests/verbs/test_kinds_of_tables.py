"""Frames of any library: every function of the public API takes them wherever it takes data or zones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from examples import ALL

import crowdveil

pd = pytest.importorskip("pandas")
gpd = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")
KINDS = ("arrow", "pandas", "polars", "path")
COSTLY = {"plot"}
"""Calls of a second and more for each kind, of which `make test` tries two."""
TZ = {"step": "1d", "tz": "Europe/Paris"}


def _trips() -> pa.Table:
    """Return 400 trips of 80 people between four squares, on two days."""
    rng, n = np.random.default_rng(5), 400
    ends = {end: [f"z{i}" for i in rng.integers(0, 4, n)] for end in ("origin", "destination")}
    times = [f"2024-01-0{1 + i} 08:00:00" for i in rng.integers(0, 2, n)]
    return pa.table({**ends, "time": times, "user": [f"u{i}" for i in rng.integers(0, 80, n)]})


def _points() -> pa.Table:
    """Return 12 trajectories of 12 people that run in parallel."""
    rows = [(0.001 * i + 0.0002 * j, 0.002 * j, 60 * j, f"t{i}", f"u{i}") for i in range(12) for j in range(5)]
    names = ("lat", "lon", "timestamp", "trajectory_id", "user_id")
    return pa.table(dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True)))


@dataclass(frozen=True)
class Given:
    """Data and zones of one kind, and releases to use them with."""

    kind: str
    folder: Path
    release: Any
    cabs: Any

    def _table(self, name: str, table: pa.Table) -> Any:
        if self.kind == "pandas":
            return table.to_pandas()
        if self.kind == "polars":
            return pytest.importorskip("polars").from_arrow(table)
        if self.kind == "path":
            path = self.folder / f"{name}.csv"
            table.to_pandas().to_csv(path, index=False)
            return path
        return table

    @property
    def trips(self) -> Any:
        return self._table("trips", _trips())

    @property
    def points(self) -> Any:
        return self._table("points", _points())

    @property
    def levels(self) -> Any:
        return self._table("levels", pa.table({"tile": [f"z{i}" for i in range(4)], "side": ["a", "a", "b", "b"]}))

    @property
    def groups(self) -> Any:
        return self._table("groups", pa.table({"zone": [f"z{i}" for i in range(4)], "group": ["a", "a", "b", "b"]}))

    @property
    def stations(self) -> Any:
        places = {"id": [f"z{i}" for i in range(4)], "lon": [0.005, 0.005, 0.015, 0.015], "lat": [0.005, 0.015] * 2}
        return self._table("stations", pa.table(places))

    @property
    def queries(self) -> Any:
        circle = {"lon": [0.01], "lat": [0.01], "radius_m": [500.0], "start": [0], "end": [4_000_000_000]}
        return self._table("queries", pa.table(circle))

    @property
    def zones(self) -> Any:
        """Squares: a GeoDataFrame, a file, or a table with geometries as WKB."""
        squares = [shapely.box(x / 100, y / 100, (x + 1) / 100, (y + 1) / 100) for x in range(2) for y in range(2)]
        frame = gpd.GeoDataFrame({"zone_id": [f"z{i}" for i in range(4)]}, geometry=squares, crs="EPSG:4326")
        if self.kind == "pandas":
            return frame
        frame.to_file(self.folder / "zones.geojson", driver="GeoJSON")
        if self.kind == "path":
            return self.folder / "zones.geojson"
        return self._table("zones", pa.table(frame.to_arrow(geometry_encoding="WKB")))


def _ledger(given: Given) -> Any:
    crowdveil.ledger_init(given.folder / "ledger")
    return given.folder / "ledger"


def _describe(given: Given) -> Any:
    return crowdveil.describe(given.trips, [5], zones=given.zones, suggest=False, **TZ).pooled


CALLS: dict[str, Callable[[Given], Any]] = {
    "anonymize": lambda g: len(
        crowdveil.anonymize(g.trips, method="joint", zones=g.zones, hierarchy=g.levels, k=5, report=False, **TZ).flows
    ),
    "verify": lambda g: [f.outcome for _, f in crowdveil.verify(g.release, g.trips, zones=g.zones)],
    "derive": lambda g: len(crowdveil.derive(g.release, g.folder / "derived", to_zones=g.groups, report=False).flows),
    "ledger_add": lambda g: (
        crowdveil.ledger_add(_ledger(g), g.release.save(g.folder / "saved"), g.trips, zones=g.zones).passed
    ),
    "ledger_check": lambda g: (
        crowdveil.ledger_check(_ledger(g), g.release.save(g.folder / "saved"), g.trips, zones=g.zones).passed
    ),
    "trips": lambda g: crowdveil.trips(g.points).num_rows,
    "plot": lambda g: (
        crowdveil.plot("flows", g.release, g.folder / "confidential.png", original=g.trips, zones=g.zones)
        .save(g.folder / "again-confidential.png")
        .exists()
    ),
    "measure": lambda g: crowdveil.measure(g.trips, g.release, ["E"], zones=g.zones)["E"].pooled,
    "attack": lambda g: crowdveil.attack("location", g.points, g.cabs, seed=1).to_arrow().num_rows,
    "describe": _describe,
    "compare": lambda g: len(crowdveil.compare(g.trips, ["suppression"], k=5, zones=g.zones, **TZ).to_pandas()),
    "reconstruct": lambda g: crowdveil.reconstruct(g.release, to_zones=g.zones).to_arrow().num_rows,
    "profiles": lambda g: crowdveil.profiles(g.release, to_zones=g.zones).to_arrow().num_rows,
    "land_use": lambda g: crowdveil.land_use(g.release, to_zones=g.zones, clusters=2).to_arrow().num_rows,
    "topics": lambda g: crowdveil.topics(g.release, to_zones=g.zones, topics=2).to_arrow().num_rows,
    "measure_queries": lambda g: crowdveil.measure_queries(g.points, g.cabs, g.queries).sometime.tolist(),
    "quadtree_heatmap": lambda g: len(crowdveil.quadtree_heatmap(g.points, min_k=2).to_pandas()),
    "read_flows": lambda g: crowdveil.read_flows(g.trips, zones=g.zones, hierarchy=g.levels, **TZ).total,
    "read_trips": lambda g: len(crowdveil.read_trips(g.trips, zones=g.zones)),
    "read_trajectories": lambda g: len(crowdveil.read_trajectories(g.points)),
    "read_zones": lambda g: len(crowdveil.read_zones(g.zones)),
    "read_voronoi": lambda g: len(crowdveil.read_voronoi(g.stations)),
    "build_hierarchy": lambda g: len(crowdveil.build_hierarchy(crowdveil.read_zones(g.zones), g.levels)),
}
"""Functions that take data or zones, each with a call that gives a number or a list to compare."""
WITHOUT_DATA = {
    "list_methods", "all_methods", "all_measures", "all_analyses", "all_attacks",
    "ledger_init", "ledger_list", "write_report", "ledger_explain", "ledger_verify", "ledger_retire",
}  # fmt: skip
"""Functions that take no data."""
OF_MODELS = {
    "trips_to_flows",
    "write_flows",
    "write_zones",
    "write_trajectories",
    "filter_trajectories",
}
"""Functions of data that was read: `Trips`, `Flows`, `Zones` or `Trajectories`."""
CLASSES = {
    "Flows", "Trips", "Trajectories", "Zones", "Hierarchy", "FlowRelease", "TrajectoryRelease",
    "CrowdveilError", "CrowdveilWarning",
}  # fmt: skip


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    folder = tmp_path_factory.mktemp("releases")
    first = Given("path", folder, None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = crowdveil.anonymize(first.trips, folder / "out", method="suppression", zones=first.zones, k=5, **TZ)
        cabs = crowdveil.anonymize(first.points, folder / "cabs", method="microaggregation", k=2, report=False)
    return made, cabs


def test_every_public_function_is_called_with_frames_or_takes_none() -> None:
    groups = [set(CALLS), WITHOUT_DATA, OF_MODELS, CLASSES]
    assert set().union(*groups) == set(crowdveil.__all__), "a new public name belongs into one of the groups"
    assert sum(map(len, groups)) == len(crowdveil.__all__)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("few_queries")
@pytest.mark.parametrize("name", CALLS)
def test_data_and_zones_are_files_tables_or_frames(name: str, releases: tuple[Any, Any], tmp_path: Path) -> None:
    """The same call gives the same result, whatever library holds the data."""
    found = {}
    for kind in KINDS if ALL or name not in COSTLY else ("polars", "path"):
        folder = tmp_path / kind
        folder.mkdir()
        found[kind] = CALLS[name](Given(kind, folder, *releases))
    assert all(value == found["path"] for value in found.values()), found
