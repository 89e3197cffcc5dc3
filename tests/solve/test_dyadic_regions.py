from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import plain_halves

from crowdveil.errors import InputError
from crowdveil.io.flows import trips_to_flows
from crowdveil.kernels.od.structures import BY_DESTINATION, BY_ORIGIN
from crowdveil.model.projection import LocalProjection
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.trips import Trips
from crowdveil.model.zones import Grid, Zones
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.dyadic_regions import DyadicRegions
from crowdveil.solve.od.region_space import RegionSpace

places = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9)


def _zones(points: list[tuple[int, int]]) -> Zones:
    x, y = (np.array(c, float) / 100 for c in zip(*points, strict=True))
    return Zones(np.arange(len(points)).astype(str), 2.0 + x, 48.0 + y, kind="centroids")


def _as_sets(regions: DyadicRegions) -> dict[frozenset[int], set[frozenset[frozenset[int]]]]:
    sets = [frozenset(regions.node_tiles(i).tolist()) for i in range(len(regions))]
    ways = [range(regions.split_offsets[i], regions.split_offsets[i + 1]) for i in range(len(regions))]
    return {
        sets[i]: {frozenset((sets[regions.first[w]], sets[regions.second[w]])) for w in ways[i]}
        for i in range(len(sets))
    }


@given(places)
def test_regions_are_the_plain_twin(points: list[tuple[int, int]]) -> None:
    zones = _zones(points)
    assert _as_sets(DyadicRegions.of(zones)) == plain_halves(zones)


@given(places)
def test_halves_come_first_and_the_map_last(points: list[tuple[int, int]]) -> None:
    regions = DyadicRegions.of(_zones(points))
    whole = np.repeat(np.arange(len(regions)), np.diff(regions.split_offsets))
    assert np.all(regions.first < whole) and np.all(regions.second < whole)
    assert sorted(regions.node_tiles(regions.root).tolist()) == list(range(len(points)))
    weights = np.arange(len(points)) + 1
    assert regions.subtree_sums(weights).tolist() == [weights[regions.node_tiles(i)].sum() for i in range(len(regions))]


def test_on_a_grid_they_are_the_dyadic_rectangles() -> None:
    zones = grid_zones(Grid(LocalProjection(2.0, 48.0), 0.0, 0.0, 500.0, 4, 4))
    # Intervals of four places: 4 of one, 2 of two, 1 of four; a rectangle is a pair of them.
    assert len(DyadicRegions.of(zones)) == 7 * 7


@pytest.mark.parametrize("with_people", [False, True])
def test_more_boxes_than_the_first_arrays_hold_are_the_plain_twin(with_people: bool) -> None:
    """Arrays of boxes begin with 1,024 places; 49 rectangles on both sides give 2,401 boxes, as all cells have trips."""
    zones = grid_zones(Grid(LocalProjection(2.0, 48.0), 0.0, 0.0, 500.0, 4, 4))
    cell = np.repeat(np.arange(256), 1 + np.arange(256) % 3)
    person = np.arange(len(cell)) * 7 % 60 if with_people else None
    flows = trips_to_flows(Trips(zones, cell // 16, cell % 16, person=person), members=True)
    boxes = BoxSpace.of(flows, 0, RegionSpace.rectangles(flows), 1)
    regions = DyadicRegions.of(zones)
    sets = [frozenset(regions.node_tiles(i).tolist()) for i in range(len(regions))]
    halves, splits = plain_halves(zones), boxes.splits
    pairs = [(sets[o], sets[d]) for o, d in zip(boxes.origin.tolist(), boxes.destination.tolist(), strict=True)]
    assert len(boxes) == 49 * 49 > 1024 and set(pairs) == {(a, b) for a in halves for b in halves}
    for i, (a, b) in enumerate(pairs):
        inside = np.isin(cell // 16, list(a)) & np.isin(cell % 16, list(b))
        crowd = len(np.unique(person[inside])) if person is not None else inside.sum()
        assert (boxes.volume[i], boxes.crowd[i]) == (inside.sum(), crowd)
        ways = range(splits.offsets[i], splits.offsets[i + 1])
        found = [(splits.kind[w], splits.link[splits.link_offsets[w] : splits.link_offsets[w + 1]]) for w in ways]
        expected = [(BY_ORIGIN, frozenset((x, b) for x in parts)) for parts in halves[a]]
        expected += [(BY_DESTINATION, frozenset((a, x) for x in parts)) for parts in halves[b]]
        assert len(found) == len(expected) and np.all(splits.lost[list(ways)] == 0)
        assert {(kind, frozenset(pairs[x] for x in link)) for kind, link in found} == set(expected)


def test_zones_must_be_somewhere() -> None:
    with pytest.raises(InputError, match="dyadic splits need the positions of the zones"):
        DyadicRegions.of(Zones.from_ids(["a", "b"]))
