"""Zones that are cropped or split, with their trips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from synthetic import grid_around

import crowdveil
from crowdveil.errors import InputError, ParameterError
from crowdveil.experiments.zone_edits import keep_trips, keep_zones, parse_shares, split_trips, split_zones
from crowdveil.io.geojson import write_zones
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.zones import Zones

ZONES = grid_zones(grid_around(2.0, 48.0, 1000.0, 4, 3))


def _trips(n: int = 4000, **more: Any) -> pa.Table:
    rng = np.random.default_rng(2)
    ends = {end: pa.array([str(i) for i in ZONES.ids[rng.integers(0, 12, n)]]) for end in ("origin", "destination")}
    return pa.table({**ends, **more})


@pytest.mark.parametrize(("side", "order"), [("west", ZONES.lon), ("east", -ZONES.lon), ("north", -ZONES.lat)])
def test_the_outermost_zones_are_kept(side: Any, order: Any) -> None:
    kept = keep_zones(ZONES, keep=4, side=side)
    assert len(kept) == 4 and {*kept.ids} == {*ZONES.ids[np.argsort(order, kind="stable")[:4]]}
    trips = keep_trips(_trips(), kept)
    ends = {*trips["origin"].to_pylist(), *trips["destination"].to_pylist()}
    every = [row for row in _trips().to_pylist() if {row["origin"], row["destination"]} <= {*kept.ids}]
    assert trips.to_pylist() == every and ends <= {*kept.ids}


def test_zones_in_a_box_keep_their_names() -> None:
    named = crowdveil.Zones(ZONES.ids, ZONES.lon, ZONES.lat, ZONES.shapes(), "polygons", names=ZONES.ids[::-1])
    box = f"{ZONES.lon.min() - 1},{ZONES.lat.min() - 1},{np.median(ZONES.lon)},{ZONES.lat.max() + 1}"
    kept = keep_zones(named, bbox=box)
    wanted = np.flatnonzero(ZONES.lon <= np.median(ZONES.lon))
    assert kept.ids.tolist() == ZONES.ids[wanted].tolist()
    assert kept.names is not None and kept.names.tolist() == ZONES.ids[::-1][wanted].tolist()


@pytest.mark.parametrize("parts", [2, 3, 4, 7])
def test_parts_of_a_zone_have_equal_areas_and_fill_it(parts: int) -> None:
    odd = shapely.Polygon([(2, 48), (2.1, 48), (2.1, 48.02), (2.02, 48.03), (2.02, 48.1), (2, 48.1)])
    split = split_zones(
        Zones(np.array(["a"], object), np.array([2.0]), np.array([48.0]), np.array([odd], object)), parts
    )
    assert split.ids.tolist() == [f"a.{i + 1}" for i in range(parts)] and split.polygons is not None
    areas = shapely.area(split.polygons)
    assert areas == pytest.approx(np.full(parts, odd.area / parts), rel=1e-6)
    assert shapely.symmetric_difference(shapely.union_all(split.polygons), odd).area < 1e-9


def test_points_are_moved_apart() -> None:
    split = split_zones(
        Zones(np.array(["a", "b"], object), np.array([2.0, 2.1]), np.array([48.0, 48.0]), kind="centroids")
    )
    assert len({*zip(split.lon, split.lat, strict=True)}) == 8 and split.kind == "centroids"
    nearer = np.abs(split.lon[:, None] - np.array([2.0, 2.1])).argmin(axis=1)
    assert nearer.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]  # each stays with its zone


def test_trips_are_drawn_by_the_shares() -> None:
    trips = _trips()
    found = split_trips(trips, ZONES, seed=3)
    for end in ("origin", "destination"):
        names = [name.rsplit(".", 1) for name in found[end].to_pylist()]
        assert [name for name, _ in names] == trips[end].to_pylist()
        share = np.bincount([int(part) for _, part in names], minlength=5)[1:] / len(trips)
        assert share == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.03)
    assert split_trips(trips, ZONES, seed=3).equals(found) and not split_trips(trips, ZONES, seed=4).equals(found)


def test_volumes_of_flows_are_kept() -> None:
    flows = _trips(30, volume=pa.array(np.arange(30)))
    found = split_trips(flows, ZONES, (0.5, 0.5)).to_pandas()
    found["pair"] = found["origin"].str.rsplit(".", n=1).str[0] + found["destination"].str.rsplit(".", n=1).str[0]
    before = flows.to_pandas()
    before["pair"] = before["origin"] + before["destination"]
    sums = before.groupby("pair")["volume"].sum()
    assert found.groupby("pair")["volume"].sum().to_dict() == sums[sums > 0].to_dict()


def test_what_cannot_be_edited() -> None:
    with pytest.raises(ParameterError, match="nothing is cropped"):
        keep_zones(ZONES)
    with pytest.raises(ParameterError, match="from 1 to 12"):
        keep_zones(ZONES, keep=13)
    with pytest.raises(InputError, match="no zone has its center"):
        keep_zones(ZONES, bbox="10,10,11,11")
    for shares in ("1", "0.5,0.6", "a,b", "1.5,-0.5"):
        with pytest.raises(ParameterError, match="with the sum 1"):
            parse_shares(shares)
    with pytest.raises(InputError, match="numbers of people"):
        split_trips(_trips(3, volume=[1, 2, 3], people=[1, 1, 1]), ZONES)
    with pytest.raises(InputError, match="not among the zones"):
        split_trips(_trips(), keep_zones(ZONES, keep=2))


def test_the_commands(tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_zones(ZONES, "zones.geojson")
    _trips().to_pandas().to_csv("trips.csv", index=False)
    both = ("--trips", "trips.csv", "--trips-out")
    ran = command("experiment", "crop", "zones.geojson", "--keep", 4, *both, "west.csv", "-o", "west.geojson")
    assert ran.code == 0 and "west.geojson: 4 zones" in ran.out, ran.err
    ran = command("experiment", "split", "zones.geojson", *both, "split.csv", "-o", "split.geojson")
    assert ran.code == 0 and "split.geojson: 48 zones" in ran.out and "4,000 rows" in ran.out, ran.err
    flows = crowdveil.read_flows("split.csv", zones="split.geojson")
    assert flows.total == 4000 and len(flows.zones) == 48
    assert command("experiment", "split", "zones.geojson", *both, "split.csv", "-o", "other.geojson").code == 2
    assert not Path("other.geojson").exists()  # nothing is half-written
    assert (
        command("experiment", "crop", "zones.geojson", "--keep", 4, "--trips", "trips.csv", "-o", "x.geojson").code == 2
    )
