"""Sizes of areas: each checker goes red on an area too small or too large, and on nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from written_flows import AREAS, written

from crowdveil.guarantees import (
    GeneralizationLimit,
    MaxArea,
    MinTiles,
)
from crowdveil.model.flows import VISITED, CountedTiles, Flows
from crowdveil.model.zones import Zones

LARGE = {**AREAS, "cd": ["c", "d"], "wide": ["c", "d", "e", "f"]}


def test_flows_to_several_tiles_are_limited_and_others_are_not() -> None:
    rows: list[tuple[Any, ...]] = [(0, "ab", "c", 10, 10), (0, "a", "ab", 10, 10)]
    assert GeneralizationLimit(tiles=3).check(written(rows)).holds
    finding = GeneralizationLimit(tiles=2.5).check(written(rows))
    assert finding.violated and "1 are larger" in finding.detail
    reported = [rows[0], (*rows[1], "reported")]
    assert GeneralizationLimit(tiles=2.5).check(written(reported)).holds, "small destinations together have no limit"


def test_small_areas_are_found_only_if_a_row_names_them() -> None:
    rows = [(0, "ab", "cd", 10, 10), (3600, "cd", "wide", 10, 10, "reported")]
    assert MinTiles(tiles=2).check(written(rows, areas=LARGE)).holds
    finding = MinTiles(tiles=2).check(written([*rows, (0, "ab", "c", 12, 11)], areas=LARGE))
    assert finding.violated and "3 rows checked, 1 name a smaller area" in finding.detail
    twice = {"ab": ["a", "a"], "cd": ["c", "d"], "wide": ["c", "d", "e"]}
    assert MinTiles(tiles=2).check(written(rows, areas=twice)).violated, "a tile that is listed twice is one tile"


def test_an_area_that_is_not_listed_has_no_size() -> None:
    rows = [(0, "ab", "nowhere", 10, 10)]
    for guarantee in (MinTiles(tiles=1), MaxArea(km2=100)):
        assert guarantee.check(written(rows)).violated


def _visited(*tiles: str) -> Flows:
    zones = Zones.from_ids(list("abcdef"))
    origin = np.array(["abcdef".index(t) for t in tiles], np.int32)
    ones = np.ones(len(tiles), np.int64)
    return Flows.from_rows(zones, 7200 * ones, origin, 0 * origin, ones, step_s=3600)


def test_visited_tiles_need_the_original() -> None:
    rows = [(0, "ab", "wide", 10, 10)]
    guarantee = MinTiles(tiles=2, of=VISITED)
    alone = guarantee.check(written(rows, areas=LARGE))
    assert alone.outcome == "not checked"
    assert guarantee.check_with_flows(written(rows, areas=LARGE), _visited("a", "b", "c", "f")).holds
    finding = guarantee.check_with_flows(written(rows, areas=LARGE), _visited("a", "b", "f"))
    assert finding.violated and finding.with_original and "1 name a smaller area" in finding.detail


def test_too_few_tiles_are_too_few_visited_ones() -> None:
    finding = MinTiles(tiles=2, of=VISITED).check(written([(0, "a", "ab", 10, 10)]))
    assert finding.violated


@pytest.mark.parametrize(("homes", "holds"), [("abcf", True), ("abf", False), ("cdef", False)])
def test_only_tiles_that_count_are_counted(homes: str, holds: bool) -> None:
    release = written([(0, "ab", "wide", 10, 10)], areas=LARGE)
    guarantee = MinTiles(tiles=2, of="inhabitants")
    assert guarantee.check(release).outcome == "not checked"
    assert guarantee.check_with_flows(release, _visited("a")).outcome == "not checked", "without the column"
    counted = CountedTiles("inhabitants", np.array([name in homes for name in "abcdef"]))
    other = replace(_visited("a"), counted=counted._replace(of="shops"))
    assert guarantee.check_with_flows(release, other).outcome == "not checked", "with another column"
    finding = guarantee.check_with_flows(release, replace(_visited("a"), counted=counted))
    assert finding.with_original and finding.holds is holds and finding.violated is not holds


def test_areas_above_the_limit_are_found_in_published_rows_only() -> None:
    rows = [(0, "ab", "c", 10, 10), (0, "a", "wide", 10, 10, "reported")]
    assert MaxArea(km2=4).check(written(rows, areas=LARGE)).holds
    assert MaxArea(km2=3.9).check(written(rows, areas=LARGE)).violated
    assert MaxArea(km2=4).check(written([(0, "a", "wide", 10, 10)], areas=LARGE)).violated


@pytest.mark.parametrize(("km2", "holds"), [(1.9999996, True), (1.9999994, False)])
def test_areas_are_written_with_six_decimals(km2: float, holds: bool) -> None:
    assert MaxArea(km2=km2).check(written([(0, "a", "b", 10, 10)])).holds is holds


def test_an_area_of_unknown_size_may_be_too_large() -> None:
    release = written([(0, "a", "b", 10, 10)])
    release.features[1]["properties"]["area_km2"] = None
    finding = MaxArea(km2=100).check(release)
    assert finding.violated and "not known" in finding.detail
