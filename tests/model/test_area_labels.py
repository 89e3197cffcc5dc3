"""Readable names of areas: different, short, and a function of public zones alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import shapely
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.model.area_labels import MAX_LENGTH, WHOLE_MAP, area_labels, explained, zone_labels
from crowdveil.model.areas import Areas
from crowdveil.model.trees import named_units
from crowdveil.model.zones import Zones


def _zones(names: list[str] | None, regions: list[str | None] | None = None, n: int = 0) -> Zones:
    n = len(names) if names is not None else n
    lon, lat = 2 + 0.01 * np.arange(n), np.full(n, 48.0)
    texts = [None if v is None else np.array(v, dtype=object) for v in (names, regions)]
    return Zones([f"z{i}" for i in range(n)], lon, lat, kind="centroids", names=texts[0], regions=texts[1])


def _areas(zones: Zones, *sets: tuple[int, ...], word: str = "area") -> Areas:
    names = [zones.ids[s[0]] if len(s) == 1 else f"{word}-{i}" for i, s in enumerate(sets)]
    tiles = np.array([t for s in sets for t in s], np.int32)
    return Areas(zones, np.array(names, dtype=object), np.cumsum([0, *map(len, sets)]), tiles)


def test_names_come_from_zones_and_regions() -> None:
    zones = _zones(["Astoria", "Elmhurst", "Corona", "Corona", "Bronx Park", "Soho"], ["Queens"] * 4 + ["Bronx", None])
    labels = area_labels(_areas(zones, (0,), (0, 1), (2,), (3,), (0, 1, 2, 3), (4, 5)))
    assert labels == ["Astoria", "Astoria + 1", "Corona (z2)", "Corona (z3)", "Queens", "Bronx Park + 1"]
    assert area_labels(_areas(_zones(None, n=3), (0,), (1, 2))) == ["z0", "z1 + 1"]


def test_an_area_is_named_after_the_zone_in_its_middle() -> None:
    """Not after a large zone at its edge; near ties fall to the first zone, whatever the last digits of coordinates are."""
    zones = _zones([f"Z{i}" for i in range(9)])
    areas = _areas(zones, tuple(range(5)), (0, 1, 2, 8), (3, 4, 5, 6), tuple(range(9)))
    assert area_labels(areas) == ["Z2 + 4", "Z2 + 3", "Z4 + 3", WHOLE_MAP]
    shapes = [
        f"POLYGON (({x} 48, {x + w} 48, {x + w} 48.1, {x} 48.1, {x} 48))"
        for x, w in ((2, 1), (3, 0.1), (3.1, 1), (9, 1))
    ]
    uneven = Zones(["west", "bridge", "east", "far"], [2.5, 3.05, 3.6, 9.5], [48.05] * 4, kind="polygons",
                   polygons=shapely.from_wkt(shapes))  # fmt: skip
    assert area_labels(_areas(uneven, (0, 1, 2))) == ["bridge + 2"]
    for shift in np.random.default_rng(3).uniform(-2e-6, 2e-6, (20, 9)):
        moved = replace(zones, lon=zones.lon + shift)
        assert area_labels(_areas(moved, (3, 4, 5, 6))) == ["Z4 + 3"]


def test_the_notation_is_explained() -> None:
    assert explained(["Astoria", "Elmhurst + 3", "Soho + 1"]) == "Elmhurst + 3 is an area of 4 zones around Elmhurst."
    assert explained(["Astoria", WHOLE_MAP]) == ""


@given(st.lists(st.text(max_size=90), min_size=1, max_size=12), st.data())
def test_names_differ_and_are_short_whatever_the_zones_are_called(names: list[str], data: st.DataObject) -> None:
    regions = data.draw(
        st.lists(
            st.one_of(st.none(), st.sampled_from(["A" * 40, "B", names[0]])), min_size=len(names), max_size=len(names)
        )
    )
    zones = _zones(names, regions)
    assert len(set(zone_labels(zones))) == len(zones)
    sets = [s for size in (1, 2, 3) for s in combinations(range(min(len(names), 5)), size)]
    for word in ("area", "small"):
        labels = area_labels(_areas(zones, *sets, word=word))
        assert len(set(labels)) == len(sets) and max(map(len, labels)) <= MAX_LENGTH


def test_the_name_of_an_area_does_not_depend_on_other_areas_or_their_order() -> None:
    """An attacker compares names of two releases: areas of a tree have the same ones in both."""
    zones = _zones([f"Z{i}" for i in range(8)])
    tree = [(0,), (1,), (0, 1), (2, 3), (0, 1, 2, 3), (4, 5, 6), tuple(range(8))]
    every = dict(zip(tree, area_labels(_areas(zones, *tree)), strict=True))
    for few in (tree[::-1], tree[2:5], [(0, 1), (4, 5, 6)]):
        assert area_labels(_areas(zones, *few)) == [every[s] for s in few]


LEVELS = {"tile": [f"z{i}" for i in range(8)], "district": list("aabbccdd"), "city": ["North"] * 4 + ["South"] * 4}


def test_units_of_the_users_levels_are_named() -> None:
    zones = _zones([f"Z{i}" for i in range(8)])
    zones = replace(zones, units=named_units(zones, pa.table(LEVELS)))
    labels = area_labels(_areas(zones, (0, 1), (4, 5), (0, 1, 2, 3), tuple(range(8)), (0, 1, 2), (1,)))
    assert labels == ["a", "c", "North", WHOLE_MAP, "Z1 + 2", "Z1"]
    large = area_labels(_areas(zones, tuple(range(6))))
    assert large == ["Z2 + 5"]
    edges = {
        "node": [*(f"z{i}" for i in range(8)), "a", "b"],
        "parent": [*("a" if i < 3 else "b" for i in range(8)), "b", None],
    }
    by_edges = replace(zones, units=named_units(zones, pa.table(edges)))
    assert area_labels(_areas(by_edges, (0, 1, 2), tuple(range(8)))) == ["a", "b"]
    nodes = {"node": [0], "parent": [None], "tiles": [1], "tile": ["z0"]}
    assert named_units(zones, pa.table(nodes)) == ()


@given(st.lists(st.tuples(st.sampled_from(["a", "b" * 70, "Z1", ""]), st.integers(0, 2)), min_size=2, max_size=8))
def test_names_of_units_differ_and_do_not_depend_on_other_areas(drawn: list[tuple[str, int]]) -> None:
    """Levels may repeat the names of each other and of zones; the tree decides what is added to them, not the release."""
    zones = _zones([f"Z{i}" for i in range(len(drawn))])
    held: dict[tuple[str, int], list[int]] = {}
    for tile, unit in enumerate(drawn):
        held.setdefault(unit, []).append(tile)
    units = [(name, np.array(tiles, np.int64)) for (name, _), tiles in held.items() if len(tiles) > 1]
    zones = replace(zones, units=tuple(units))
    sets = [tuple(tiles.tolist()) for _, tiles in units] + [(i,) for i in range(len(drawn))]
    every = area_labels(_areas(zones, *sets))
    assert len(set(every)) == len(sets) and max(map(len, every)) <= MAX_LENGTH
    for one, label in zip(sets, every, strict=True):
        assert area_labels(_areas(zones, one)) == [label]
