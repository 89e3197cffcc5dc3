"""Numbers behind pictures, against plain computations."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.model.trees import ward
from crowdveil.model.zones import Zones
from crowdveil.report.flow_picture import FlowPicture, sum_by_pair
from crowdveil.report.plots import drawing, flow_maps, flow_panels, profiles, trajectory_maps, tree
from crowdveil.report.shapes import PictureFrame, Rings
from crowdveil.report.trajectory_picture import TrajectoryPicture, count_by_cell

TILES = 6


def make_zones(n: int = TILES) -> Zones:
    """Return points in a row."""
    ids = np.array([f"t{i}" for i in range(n)], dtype=object)
    return Zones(ids, 2 + np.arange(n) / 50, 48 + np.arange(n) ** 2 / 500, kind="centroids")


def make_panel(areas: list[list[int]], o: Any, d: Any, v: Any) -> flow_panels.FlowPanel:
    """Return the panel of rows between areas without positions."""
    nowhere, names = np.full(len(areas), np.nan), [f"a{i}" for i in range(len(areas))]
    flows = FlowPicture(
        names, nowhere, nowhere, nowhere, np.cumsum([0, *map(len, areas)]), np.concatenate([np.array(a) for a in areas]),
        Rings.of([None] * len(areas)), [], np.zeros(len(v), np.int64), o, d, v,
    )  # fmt: skip
    tiles = 1 + max(tile for area in areas for tile in area)
    return flow_panels.FlowPanel("x", False, flows, [f"t{i}" for i in range(max(tiles, TILES))])


@st.composite
def panels(draw: Any) -> flow_panels.FlowPanel:
    """Draw flows between areas, which may overlap."""
    areas = draw(st.lists(st.sets(st.integers(0, TILES - 1), min_size=1), min_size=1, max_size=5))
    pairs = draw(st.dictionaries(st.tuples(*[st.integers(0, len(areas) - 1)] * 2), st.integers(1, 99), min_size=1))
    return make_panel(
        [sorted(area) for area in areas],
        *sum_by_pair(
            np.array([o for o, _ in pairs]), np.array([d for _, d in pairs]), np.array(list(pairs.values())), len(areas)
        ),
    )


def rows_of(panel: flow_panels.FlowPanel) -> list[tuple[list[int], list[int], int]]:
    """Return the tiles of both ends, and the trips, of each row."""
    flows = panel.flows
    return [
        (panel.tiles_of(o).tolist(), panel.tiles_of(d).tolist(), int(v))
        for o, d, v in zip(flows.origin, flows.destination, flows.volume, strict=True)
    ]


@given(panels(), st.permutations(range(TILES)))
def test_a_matrix_has_the_trips_of_rows_spread_evenly(panel: flow_panels.FlowPanel, order: list[int]) -> None:
    position = {f"t{i}": order[i] for i in range(TILES)}
    wanted: dict[tuple[int, int], float] = {}
    for near, far, v in rows_of(panel):
        for a in near:
            for b in far:
                key = (order[a], order[b])
                wanted[key] = wanted.get(key, 0.0) + v / len(near) / len(far)
    found = flow_maps.dense_matrix(panel, position)
    assert {(int(i), int(j)): found[i, j] for i, j in np.argwhere(np.isfinite(found))} == pytest.approx(wanted)


def test_many_tiles_share_cells_and_keep_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 7
    panel = make_panel([[i] for i in range(n)], np.arange(n), np.arange(n)[::-1], np.arange(1, n + 1))
    monkeypatch.setattr(flow_maps, "MAX_CELLS", 3)
    found = flow_maps.dense_matrix(panel, {name: i for i, name in enumerate(panel.tile_names)})
    sizes = np.bincount(np.arange(n) * 3 // n)
    assert np.nansum(found * np.outer(sizes, sizes)) == pytest.approx(panel.flows.volume.sum())


@given(panels(), st.sampled_from(["origin", "destination"]))
def test_a_zone_was_merged_with_the_mean_size_of_its_areas(panel: flow_panels.FlowPanel, end: Any) -> None:
    for tile, value in enumerate(flow_maps.merged_with(panel, end).tolist()):
        ends = [(near if end == "origin" else far, v) for near, far, v in rows_of(panel)]
        rows = [(len(tiles), v) for tiles, v in ends if tile in tiles]
        trips = sum(v / size for size, v in rows)
        assert value == pytest.approx(sum(v for _, v in rows) / trips) if rows else np.isnan(value)


@given(panels(), st.sampled_from(["from", "to"]), st.integers(0, TILES - 1))
def test_trips_of_a_zone_are_those_of_the_reconstruction(panel: Any, direction: Any, zone: int) -> None:
    wanted: dict[int, float] = {}
    for o, d, v in rows_of(panel):
        near, far = (o, d) if direction == "from" else (d, o)
        if zone in near:
            for tile in far:
                wanted[tile] = wanted.get(tile, 0.0) + v / len(near) / len(far)
    found = flow_maps.trips_of_zone(panel, make_zones(), f"t{zone}", direction)
    assert {i: found[i] for i in range(TILES) if np.isfinite(found[i])} == pytest.approx(wanted)


@settings(max_examples=tries(25))
@given(st.integers(2, 12), st.integers(2, 30))
def test_groups_of_a_tree_are_a_partition(most: int, n: int) -> None:
    zones = ward(make_zones(n))
    cut = tree.cut_groups(zones, most)
    assert 1 < len(cut) <= most or n == 1
    assert sorted(np.concatenate([zones.node_tiles(node) for node in cut]).tolist()) == list(range(n))


@given(st.floats(1e-3, 1e6), st.floats(1.0, 1e5), st.integers(2, 7))
def test_ticks_are_inside_of_the_scale(low: float, ratio: float, most: int) -> None:
    scale = drawing.VolumeScale(low, low * ratio)
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most and ticks == sorted(ticks)
    assert all(low * 0.999 <= tick <= scale.high * 1.001 for tick in ticks)
    widths = scale.width(np.array(ticks))
    assert np.all(np.diff(widths) >= 0) and np.all(widths > 0) and float(scale.width(scale.high)) == drawing.WIDEST
    assert np.all(np.diff(scale.opacity(np.array(ticks))) >= 0), "small flows are faded"


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=5), st.integers(2, 7))
def test_a_legend_of_counts_has_no_fractions(counts: list[int], most: int) -> None:
    ticks = drawing.VolumeScale.of(counts).ticks(most)
    assert ticks == [round(tick) for tick in ticks] and len(ticks) <= most
    assert drawing.VolumeScale.of([0.5], counts).whole is False


def test_flows_bend_to_the_right_of_their_direction() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.patches import FancyArrowPatch

    from crowdveil.io.matplotlib_figure import new_figure
    from crowdveil.report.plots.flow_maps import draw_arrow

    axis = new_figure(4, 4).subplots()
    axis.set(xlim=(0, 10), ylim=(10, 0))
    draw_arrow(axis, (1, 5), (9, 5), 1.0, drawing.VolumeScale(1, 1))
    (arrow,) = [patch for patch in axis.patches if isinstance(patch, FancyArrowPatch)]
    low = arrow.get_window_extent().y0
    assert low < axis.transData.transform((5, 5))[1] - 5, "eastward, the right is south"


def _picture(rng: Any, n: int) -> TrajectoryPicture:
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 6, n))])
    lon, lat = 2 + rng.integers(0, 5, offsets[-1]) / 10, 48 + rng.integers(0, 5, offsets[-1]) / 10
    return TrajectoryPicture(lon, lat, np.arange(offsets[-1]), offsets)


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_heat_counts_each_trajectory_once_per_cell(seed: int, n: int) -> None:
    picture = _picture(np.random.default_rng(seed), n)
    frame = PictureFrame.around(np.array([2.0, 2.4]), np.array([48.0, 48.4]))
    found = count_by_cell(picture, frame, trajectory_maps.CELLS)
    places = [set(zip(*(c[a:b] for c in (picture.lon, picture.lat)), strict=True))
              for a, b in zip(picture.offsets[:-1], picture.offsets[1:], strict=True)]  # fmt: skip
    counts = Counter(place for own in places for place in own)
    assert sorted(found[found > 0].tolist()) == sorted(counts.values())


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_paths_are_counted_by_their_points(seed: int, n: int) -> None:
    picture = _picture(np.random.default_rng(seed), n)
    twice = TrajectoryPicture(
        np.tile(picture.lon, 2), np.tile(picture.lat, 2), np.tile(picture.t, 2),
        np.concatenate([picture.offsets, picture.offsets[1:] + picture.offsets[-1]]),
    )  # fmt: skip
    paths = trajectory_maps.distinct_paths(twice)
    assert sum(count for *_, count in paths) == 2 * n and all(count % 2 == 0 for *_, count in paths)


def test_days_are_labeled_where_steps_are_shorter() -> None:
    hours = [f"2026-03-{2 + h // 24:02d} {h % 24:02d}:00" for h in range(5, 24 * 12)]
    assert [hours[i] for i in profiles.time_ticks(hours)] == [f"2026-03-{d:02d} 00:00" for d in range(3, 14, 2)]
    assert profiles.time_ticks(hours[:19]) == list(range(0, 19, 3)), "one day has no second midnight"
