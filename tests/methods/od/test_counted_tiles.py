"""l-diversity: every area has as many tiles that count as asked, by every method that has smallest areas."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import problems

import crowdveil
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, ParameterError
from crowdveil.guarantees import Outcome
from crowdveil.model.flows import CountedTiles
from crowdveil.model.zones import Zones
from crowdveil.registry import find_method

METHODS = ("joint", "atg-dual", "atg-coupled", "atg-soft", "atg-exact")
SHOPS = (3, 0, 1, 0, 0, 2, 1, 0, 4, 1)


@examples(60)
@given(
    problem=problems(), counts=st.lists(st.booleans(), min_size=4, max_size=4), least=st.integers(1, 3),
    small=st.booleans(), refine=st.booleans(),
)  # fmt: skip
def test_every_area_has_enough(problem: Any, counts: list[bool], least: int, small: bool, refine: bool) -> None:
    flows = replace(problem[0], counted=CountedTiles("shops", np.array(counts)))
    for name in METHODS:
        method = find_method(name)
        given = {"k": 2, "min_tiles": least, "aggregate_small": small}
        given |= {} if name == "atg-soft" else {"suppress": 0.9}
        given |= {"splits": "free"} if name == "joint" and refine and flows.zones.located else {}
        try:
            made: Any = method.run(flows, method.params.checked(given), np.random.default_rng(0), no_progress)
        except InputError as error:
            if "fewer tiles" in str(error) or "suppressed" in str(error):  # what is asked cannot be kept on this map
                continue
            raise
        for area in {*made.origin.tolist(), *made.destination.tolist()}:
            tiles = made.areas.tiles[made.areas.offsets[area] : made.areas.offsets[area + 1]]
            assert sum(counts[tile] for tile in {*tiles.tolist()}) >= least, name


def _write_city(folder: Path) -> dict[str, Any]:
    """Trips from three tiles in a row to the three before, of which the second has no shop."""
    ids = [f"t{i}" for i in range(len(SHOPS))]
    with (folder / "zones.csv").open("w", newline="") as file:
        zones = [(name, 2 + i / 100, 48.0, shops) for i, (name, shops) in enumerate(zip(ids, SHOPS, strict=True))]
        csv.writer(file).writerows([("zone_id", "lon", "lat", "shops"), *zones])
    with (folder / "trips.csv").open("w", newline="") as file:
        rows = [(f"p{i}", ids[i % 3 + 3], ids[i % 3]) for i in range(90)]
        csv.writer(file).writerows([("user", "origin", "destination"), *rows])
    return {"zones": folder / "zones.csv", "step": "all", "attack": False, "report": False}


def _fewest(folder: Path) -> int:
    """Return the fewest tiles with shops of the areas that rows name."""
    rows = pq.read_table(folder / "flows.parquet").to_pylist()
    features = json.loads((folder / "areas.geojson").read_text())["features"]
    shops = {f"t{i}": value for i, value in enumerate(SHOPS)}
    tiles = {f["properties"]["area"]: f["properties"]["tiles"] for f in features}
    return min(
        sum(bool(shops[t]) for t in tiles[row[end]]) for row in rows for end in ("origin_area", "destination_area")
    )


@pytest.mark.parametrize("name", METHODS)
def test_tiles_count_by_a_column_of_the_zones(name: str, tmp_path: Path) -> None:
    options = _write_city(tmp_path) | {"k": 5, "format": "parquet"}
    options |= {"price": 1, "v_target": 30} if name == "atg-soft" else {}
    trips, out = tmp_path / "trips.csv", tmp_path / "out"
    crowdveil.anonymize(trips, tmp_path / "plain", method=name, min_tiles=2, **options)
    assert _fewest(tmp_path / "plain") < 2
    crowdveil.anonymize(trips, out, method=name, min_tiles=2, min_tiles_of="shops", **options)
    assert _fewest(out) >= 2
    found = {g.name: f for g, f in crowdveil.verify(out, trips, zones=options["zones"])}
    assert found["min-tiles"].outcome == Outcome.HOLDS and found["min-tiles"].with_original
    assert {g.name: f for g, f in crowdveil.verify(out)}["min-tiles"].outcome == Outcome.NOT_CHECKED
    # A publisher who claims afterwards that all tiles count is found out.
    manifest = json.loads((out / "manifest.json").read_text())
    next(g for g in manifest["guarantees"] if g["name"] == "min-tiles")["parameters"]["of"] = None
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(crowdveil.CrowdveilError, match="does not state the guarantee min-tiles"):
        crowdveil.verify(out)


def test_columns_that_cannot_be_counted_are_refused(tmp_path: Path) -> None:
    options = _write_city(tmp_path)
    trips, out = tmp_path / "trips.csv", tmp_path / "out"
    with pytest.raises(InputError, match="there is no column inhabitants"):
        crowdveil.anonymize(trips, out, method="joint", min_tiles_of="inhabitants", **options)
    with pytest.raises(ParameterError, match="oigh has no smallest areas"):
        crowdveil.anonymize(trips, out, method="oigh", min_tiles_of="shops", **options)
    ids = Zones.from_ids([f"t{i}" for i in range(len(SHOPS))])
    with pytest.raises(InputError, match="Expected zones from a file or table with a column shops"):
        crowdveil.anonymize(trips, out, method="joint", min_tiles_of="shops", **options | {"zones": ids})
    assert not out.exists()
