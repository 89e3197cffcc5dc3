from __future__ import annotations

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import grid_frame

from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.io.flows import trips_to_flows
from crowdveil.methods.baselines.uniform import UniformParams, blocks, run
from crowdveil.model.flows import Flows
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Zones


def _grid() -> Zones:
    """A grid of at least 5 × 5 cells of 100 m."""
    return grid_zones(grid_frame(np.array([2.0, 2.006]), np.array([48.0, 48.005]), 100.0))


@settings(max_examples=tries(100), deadline=None)
@given(
    trips=st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24), st.integers(0, 9)), min_size=1, max_size=60),
    side=st.integers(1, 4),
    k=st.integers(2, 6),
    people=st.booleans(),
)
def test_it_is_the_plain_twin(trips: list[tuple[int, int, int]], side: int, k: int, people: bool) -> None:
    zones = _grid()
    o, d, who = (np.array(c) for c in zip(*trips, strict=True))
    person = who if people else None
    flows = trips_to_flows(Trips(zones, o, d, person=person), members=people)
    release = run(flows, UniformParams(k=k, block=side), np.random.default_rng(0), no_progress)
    assert zones.column is not None and zones.row is not None
    place = [(int(c) // side, int(r) // side) for c, r in zip(zones.column, zones.row, strict=True)]
    wanted = {}
    for start in set(place):
        for end in set(place):
            inside = [w if people else i for i, (a, b, w) in enumerate(trips) if place[a] == start and place[b] == end]
            if len(set(inside)) >= k:
                tiles = [frozenset(t for t in range(len(zones)) if place[t] == x) for x in (start, end)]
                wanted[tuple(tiles)] = (len(inside), len(set(inside)))
    areas = release.areas
    sets = [frozenset(areas.tiles[areas.offsets[i] : areas.offsets[i + 1]].tolist()) for i in range(len(areas))]
    rows = zip(release.origin, release.destination, release.volume.tolist(), release.people.tolist(), strict=True)
    assert {(sets[a], sets[b]): (v, u) for a, b, v, u in rows} == wanted


def test_zones_that_are_no_grid_are_refused() -> None:
    one = np.ones(1, np.int64)
    flows = Flows.from_rows(Zones.from_ids(["a"]), 0 * one, 0 * one, 0 * one, 20 * one)
    with pytest.raises(InputError, match="zones="):
        run(flows, UniformParams(), np.random.default_rng(0), no_progress)


def test_blocks_at_the_edge_are_smaller() -> None:
    zones = _grid()
    size = np.bincount(blocks(zones, 4))
    assert size.max() == 16 and size.min() < 16 and size.sum() == len(zones)
