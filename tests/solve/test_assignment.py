from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_measures import releases, row_by_search

from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.methods.od.suppression import SuppressionParams, run
from crowdveil.model.areas import Areas
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.model.zones import Zones
from crowdveil.solve.od.assignment import row_of_flows, rows_met
from crowdveil.testing import flows


@given(st.data())
def test_is_the_plain_twin(draw: st.DataObject) -> None:
    data = draw.draw(flows(empty=True))
    release = draw.draw(releases(data))
    assert row_of_flows(data, release).tolist() == row_by_search(data, release)


@given(st.data())
def test_rows_hold_the_volume_that_they_publish(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    row = row_of_flows(data, release)
    held = np.bincount(row[row >= 0], data.volume[row >= 0], len(release))
    assert held.tolist() == release.volume.tolist()


@given(st.data())
def test_rows_in_any_order_are_those_that_hold_a_flow(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = _with_other_rows(draw, draw.draw(releases(data)))
    areas = [set(_tiles(release.areas, area)) for area in range(len(release.areas))]
    holding = [
        [
            row
            for row in range(len(release))
            if release.t[release.step[row]] == data.t[data.step[flow]]
            and data.origin[flow] in areas[release.origin[row]]
            and data.destination[flow] in areas[release.destination[row]]
        ]
        for flow in range(len(data))
    ]
    row, twice = rows_met(data, release)
    assert (twice > 0) == any(len(held) > 1 for held in holding)
    assert all(
        (at in held) if held else at == -1 for at, held in zip(row.tolist(), holding, strict=True) if len(held) < 2
    )


def _tiles(areas: Areas, area: int) -> list[int]:
    tiles: list[int] = areas.tiles[areas.offsets[area] : areas.offsets[area + 1]].tolist()
    return tiles


def _with_other_rows(draw: st.DataObject, release: FlowRelease) -> FlowRelease:
    """Some rows of a release in any order, and others of the same areas, which may be the same or overlap."""
    kept = [
        row for row in zip(release.step, release.origin, release.destination, strict=True) if draw.draw(st.booleans())
    ]
    area = st.integers(0, max(len(release.areas) - 1, 0))
    step = st.integers(0, max(len(release.t) - 1, 0))
    more = draw.draw(st.lists(st.tuples(step, area, area), max_size=3)) if len(release) else []
    rows = sorted(draw.draw(st.permutations([*kept, *more])), key=lambda row: row[0])
    steps, origin, destination = np.array(rows, np.int64).reshape(-1, 3).T
    ones = np.ones(len(rows), np.int64)
    offsets = np.searchsorted(steps, np.arange(len(release.t) + 1))
    columns = {"origin": origin.astype(np.int32), "destination": destination.astype(np.int32), "state": ones - 1}
    return replace(release, offsets=offsets, volume=ones, people=ones, **columns)


def _example() -> tuple[Flows, object]:
    zones = Zones.from_ids(["a", "b"])
    column = np.array([0, 1], np.int32)
    data = Flows.from_rows(zones, np.zeros(2, np.int64), column, column, np.array([30, 20], np.int64))
    return data, run(data, SuppressionParams(k=10), np.random.default_rng(0), no_progress)


def test_flows_in_two_rows_are_refused() -> None:
    data, release = _example()
    areas = Areas(data.zones, np.array(["a", "ab"], dtype=object), np.array([0, 1, 3]), np.array([0, 0, 1], np.int32))
    for destination in ([0, 1], [1, 1]):  # of one origin area, and of two
        broken = replace(release, areas=areas, destination=np.array(destination, np.int32))
        for origin in ([1, 1], [0, 1]):
            with pytest.raises(InputError, match="in several"):
                row_of_flows(data, replace(broken, origin=np.array(origin, np.int32)))


def test_other_zones_and_other_steps_are_refused() -> None:
    data, release = _example()
    other = replace(release, areas=Areas.of_tiles(Zones.from_ids(["b", "a"]), np.array([0, 1], np.int32)))
    with pytest.raises(InputError, match="zones"):
        row_of_flows(data, other)
    with pytest.raises(InputError, match="got 1 time step that the original does not have"):
        row_of_flows(data, replace(release, t=np.array([3600])))
