"""l-diversity by points of interest: every method keeps it, and an adversary who knows the points finds too few nowhere."""

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
from crowdveil.errors import InputError, ParameterError
from crowdveil.guarantees import Outcome
from crowdveil.model.points_of_interest import PointsOfInterest
from crowdveil.progress import no_progress
from crowdveil.registry import find_method

METHODS = ("joint", "atg-dual", "atg-coupled", "atg-soft", "atg-exact")
KINDS = ("clinic", "shop", "school", "shop", "school", "shop", "school", "shop", "shop", "school")
POINTS = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 2), st.integers(0, 2)), min_size=1, max_size=8)


@examples(60)
@given(
    problem=problems(),
    points=POINTS,
    pois=st.integers(0, 3),
    categories=st.integers(0, 2),
    small=st.booleans(),
    refine=st.booleans(),
)
def test_every_area_has_enough(
    problem: Any, points: list[tuple[int, int, int]], pois: int, categories: int, small: bool, refine: bool
) -> None:
    flows = replace(problem[0], pois=PointsOfInterest(*(np.array(column) for column in zip(*points, strict=True))))
    for name in METHODS:
        method = find_method(name)
        given = {"k": 2, "min_pois": pois, "min_poi_categories": categories, "aggregate_small": small}
        given |= {} if name == "atg-soft" else {"suppress": 0.9}
        given |= {"splits": "free"} if name == "joint" and refine and flows.zones.located else {}
        try:
            made: Any = method.run(flows, method.params.checked(given), np.random.default_rng(0), no_progress)
        except InputError as error:
            if "ask for fewer" in str(error) or "suppressed" in str(error):  # what is asked cannot be kept on this map
                continue
            raise
        for area in {*made.origin.tolist(), *made.destination.tolist()}:
            tiles = {*made.areas.tiles[made.areas.offsets[area] : made.areas.offsets[area + 1]].tolist()}
            held = [(c, n) for t, c, n in points if t in tiles]
            assert sum(n for _, n in held) >= pois, name
            assert len({c for c, n in held if c >= 0 and n > 0}) >= categories, name


def _write_city(folder: Path) -> dict[str, Any]:
    """Trips to three of the tiles in a row; the first has the only clinic, and a crowd that goes there."""
    ids = [f"t{i}" for i in range(len(KINDS))]
    with (folder / "zones.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("zone_id", "lon", "lat"), *((name, 2 + i / 100, 48.0) for i, name in enumerate(ids))]
        )
    with (folder / "trips.csv").open("w", newline="") as file:
        rows = [(f"p{i}", ids[i % 3 + 3], ids[i % 3]) for i in range(90)]
        csv.writer(file).writerows([("user", "origin", "destination"), *rows])
    with (folder / "pois.csv").open("w", newline="") as file:
        points = [(2 + i / 100, 48.0, kind) for i, kind in enumerate(KINDS)]
        csv.writer(file).writerows([("lon", "lat", "category"), *points])
    return {"zones": folder / "zones.csv"}


def _guess(folder: Path, tiles_of_points: dict[str, list[str]]) -> int:
    """Return the rows whose destination has points of one category only: the adversary learns what each traveler went to."""
    rows = pq.read_table(folder / "flows.parquet").to_pylist()
    features = json.loads((folder / "areas.geojson").read_text())["features"]
    tiles = {f["properties"]["area"]: f["properties"]["tiles"] for f in features}
    return sum(
        len({kind for t in tiles[row["destination_area"]] for kind in tiles_of_points.get(t, ())}) < 2 for row in rows
    )


@pytest.mark.parametrize("name", METHODS)
def test_an_adversary_who_knows_the_points_learns_no_category(name: str, tmp_path: Path) -> None:
    options = _write_city(tmp_path)
    kinds = {f"t{i}": [kind] for i, kind in enumerate(KINDS)}
    plain = {
        "k": 5,
        "step": "all",
        "format": "parquet",
        **options,
        **({"price": 1, "v_target": 30} if name == "atg-soft" else {}),
    }
    crowdveil.anonymize(tmp_path / "trips.csv", tmp_path / "plain", method=name, attack=False, report=False, **plain)
    assert _guess(tmp_path / "plain", kinds) > 0  # the adversary succeeds where nothing is asked for
    crowdveil.anonymize(
        tmp_path / "trips.csv", tmp_path / "diverse", method=name, attack=False, report=False, pois=tmp_path / "pois.csv",
        min_poi_categories=2, **plain,
    )  # fmt: skip
    assert pq.read_metadata(tmp_path / "diverse/flows.parquet").num_rows > 0
    assert _guess(tmp_path / "diverse", kinds) == 0
    found = crowdveil.verify(tmp_path / "diverse", tmp_path / "trips.csv", pois=tmp_path / "pois.csv", **options)
    assert {g.name: f.outcome for g, f in found}["min-poi-categories"] == Outcome.HOLDS
    forged = {g.name: f for g, f in crowdveil.verify(tmp_path / "diverse", tmp_path / "trips.csv", **options)}
    assert forged["min-poi-categories"].outcome == Outcome.NOT_CHECKED  # without the table
    (tmp_path / "other.csv").write_text("lon,lat\n2.0,48.0\n")
    with pytest.raises(InputError, match="not the file that the release was made with"):
        crowdveil.verify(tmp_path / "diverse", tmp_path / "trips.csv", pois=tmp_path / "other.csv", **options)


def test_points_that_nothing_counts_are_refused(tmp_path: Path) -> None:
    options = _write_city(tmp_path)
    for name in ("joint", "oigh"):
        with pytest.raises(ParameterError, match="nothing counts points of interest"):
            crowdveil.anonymize(
                tmp_path / "trips.csv", tmp_path / "out", method=name, pois=tmp_path / "pois.csv", step="all", **options
            )
    with pytest.raises(InputError, match="none are given"):
        crowdveil.anonymize(tmp_path / "trips.csv", tmp_path / "out", method="joint", min_pois=2, step="all", **options)
    (tmp_path / "bare.csv").write_text("lon,lat\n2.0,48.0\n")
    with pytest.raises(InputError, match="no point of interest has a category"):
        crowdveil.anonymize(
            tmp_path / "trips.csv",
            tmp_path / "out",
            method="joint",
            pois=tmp_path / "bare.csv",
            min_poi_categories=2,
            step="all",
            **options,
        )
