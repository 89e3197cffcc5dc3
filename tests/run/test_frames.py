"""Zones as a data frame: a run must not compare it with a default."""

from __future__ import annotations

from pathlib import Path

import pytest

import crowdveil


def test_zones_may_be_a_geopandas_frame(tmp_path: Path) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    squares = [shapely.box(2 + i / 100, 48, 2.01 + i / 100, 48.01) for i in range(2)]
    zones = geopandas.GeoDataFrame({"id": ["a", "b"]}, geometry=squares, crs="EPSG:4326")
    flows = tmp_path / "flows.csv"
    flows.write_text("origin,destination,volume\na,b,30\nb,a,20\n")
    made = crowdveil.anonymize(
        flows, tmp_path / "out", method="suppression", zones=zones, k=2, report=False, attack=False
    )
    assert (tmp_path / "out" / "manifest.json").is_file() and made.folder == tmp_path / "out"
