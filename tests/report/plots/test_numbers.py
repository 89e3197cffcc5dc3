"""Numbers behind pictures, against plain computations."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.model.trees import ward
from crowdveil.model.zones import Zones
from crowdveil.report.plots import chord, flow_panels, matrix, scales, teaching, trajectory_maps, zone_maps
from crowdveil.report.shapes import PictureFrame, Rings
from crowdveil.report.trajectory_picture import TrajectoryPicture

TILES = 6


def make_zones(n: int = TILES) -> Zones:
    """Return points in a row."""
    ids = np.array([f"t{i}" for i in range(n)], dtype=object)
    return Zones(ids, 2 + np.arange(n) / 50, 48 + np.arange(n) ** 2 / 500, kind="centroids")


@st.composite
def panels(draw: Any) -> flow_panels.FlowPanel:
    """Draw flows between areas, which may overlap."""
    areas = draw(st.lists(st.sets(st.integers(0, TILES - 1), min_size=1), min_size=1, max_size=5))
    pairs = draw(st.dictionaries(st.tuples(*[st.integers(0, len(areas) - 1)] * 2), st.integers(1, 99), min_size=1))
    o, d, v = flow_panels.summed(
        np.array([o for o, _ in pairs]), np.array([d for _, d in pairs]), np.array(list(pairs.values())), len(areas)
    )
    nowhere = np.full(len(areas), np.nan)
    return flow_panels.FlowPanel(
        "x", False, [f"a{i}" for i in range(len(areas))], nowhere, nowhere, Rings.of_geometries([None] * len(areas)),
        [f"t{i}" for i in range(TILES)], [np.array(sorted(area)) for area in areas], o, d, v,
    )  # fmt: skip


@given(panels(), st.permutations(range(TILES)))
def test_a_matrix_has_the_trips_of_rows_spread_evenly(panel: flow_panels.FlowPanel, order: list[int]) -> None:
    position = {f"t{i}": order[i] for i in range(TILES)}
    wanted: dict[tuple[int, int], float] = {}
    for o, d, v in zip(panel.origin, panel.destination, panel.volume, strict=True):
        for a in panel.tiles[o]:
            for b in panel.tiles[d]:
                key = (order[a], order[b])
                wanted[key] = wanted.get(key, 0.0) + v / len(panel.tiles[o]) / len(panel.tiles[d])
    found = matrix.dense_matrix(panel, position)
    assert {(int(i), int(j)): found[i, j] for i, j in np.argwhere(np.isfinite(found))} == pytest.approx(wanted)


def test_many_tiles_share_cells_and_keep_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    zones = make_zones(7)
    n = len(zones)
    panel = flow_panels.FlowPanel(
        "x", True, list(zones.ids), zones.lon, zones.lat, Rings.of_geometries([None] * n), list(zones.ids),
        list(np.arange(n).reshape(-1, 1)), np.arange(n), np.arange(n)[::-1], np.arange(1, n + 1),
    )  # fmt: skip
    monkeypatch.setattr(matrix, "MAX_CELLS", 3)
    found = matrix.dense_matrix(panel, {name: i for i, name in enumerate(zones.ids)})
    sizes = np.bincount(np.arange(n) * 3 // n)
    assert np.nansum(found * np.outer(sizes, sizes)) == pytest.approx(panel.volume.sum())


@given(panels(), st.sampled_from(["origin", "destination"]))
def test_a_zone_was_merged_with_the_mean_size_of_its_areas(panel: flow_panels.FlowPanel, end: Any) -> None:
    column = panel.origin if end == "origin" else panel.destination
    for tile, value in enumerate(zone_maps.merged_with(panel, end).tolist()):
        rows = [(len(panel.tiles[a]), v) for a, v in zip(column, panel.volume, strict=True) if tile in panel.tiles[a]]
        trips = sum(v / size for size, v in rows)
        assert value == pytest.approx(sum(v for _, v in rows) / trips) if rows else np.isnan(value)


@given(panels(), st.sampled_from(["destinations", "origins"]), st.integers(0, TILES - 1))
def test_trips_of_a_zone_are_those_of_the_reconstruction(panel: Any, direction: Any, zone: int) -> None:
    wanted: dict[int, float] = {}
    for o, d, v in zip(panel.origin, panel.destination, panel.volume, strict=True):
        near, far = (panel.tiles[a].tolist() for a in ((o, d) if direction == "destinations" else (d, o)))
        if zone in near:
            for tile in far:
                wanted[tile] = wanted.get(tile, 0.0) + v / len(near) / len(far)
    found = zone_maps.trips_of_zone(panel, make_zones(), f"t{zone}", direction)
    assert {i: found[i] for i in range(TILES) if np.isfinite(found[i])} == pytest.approx(wanted)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), min_size=1, max_size=12))
def test_pieces_of_the_function_are_those_of_all_lines(lines: list[tuple[int, int]]) -> None:
    def solve(multiplier: Fraction | None) -> tuple[int, int]:
        if multiplier is None:
            return min(lines, key=lambda line: (line[1], line[0]))
        return min(lines, key=lambda line: (line[0] + multiplier * line[1], line[1]))

    found = teaching.find_envelope(solve)
    assert found.complete
    breaks = found.breakpoints
    assert breaks == sorted(breaks)
    for at in [Fraction(0), *breaks, *(b + Fraction(1, 7) for b in breaks), Fraction(1000)]:
        value = min(a + at * s for a, s in lines)
        assert min(a + at * s for a, s in found.pieces) == value
    slopes = [s for _, s in found.pieces]
    assert slopes == sorted(slopes, reverse=True), "concave"


def test_the_search_ends_after_some_pieces() -> None:
    lines = [(i * i, 100 - i) for i in range(60)]
    found = teaching.find_envelope(
        lambda at: min(lines, key=lambda x: x[1] if at is None else x[0] + at * x[1]), most=10
    )
    assert len(found.pieces) == 10 and not found.complete


@settings(max_examples=tries(25))
@given(st.integers(2, 12), st.integers(2, 30))
def test_groups_of_a_tree_are_a_partition(most: int, n: int) -> None:
    tree = ward(make_zones(n))
    cut = teaching.cut_groups(tree, most)
    assert 1 < len(cut) <= most or n == 1
    assert sorted(np.concatenate([tree.node_tiles(node) for node in cut]).tolist()) == list(range(n))


@given(st.floats(1e-3, 1e6), st.floats(1.0, 1e5), st.integers(2, 7))
def test_ticks_are_inside_of_the_scale(low: float, ratio: float, most: int) -> None:
    scale = scales.VolumeScale(low, low * ratio)
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most and ticks == sorted(ticks)
    assert all(low * 0.999 <= tick <= scale.high * 1.001 for tick in ticks)
    widths = scale.width(np.array(ticks))
    assert np.all(np.diff(widths) >= 0) and np.all(widths > 0) and float(scale.width(scale.high)) == scales.WIDEST
    assert np.all(np.diff(scale.opacity(np.array(ticks))) >= 0), "small flows are faded"


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=5), st.integers(2, 7))
def test_a_legend_of_counts_has_no_fractions(counts: list[int], most: int) -> None:
    ticks = scales.VolumeScale.of(counts).ticks(most)
    assert ticks == [round(tick) for tick in ticks] and len(ticks) <= most
    assert scales.VolumeScale.of([0.5], counts).whole is False


@given(st.lists(st.floats(-270, 90), min_size=1, max_size=12))
def test_labels_around_a_circle_are_apart(angles: list[float]) -> None:
    shown = chord.spread_angles(np.array(sorted(angles, reverse=True)), 8.0)
    assert np.all(-np.diff(shown) >= 7.5)


def test_flows_bend_to_the_right_of_their_direction() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.patches import FancyArrowPatch

    from crowdveil.io.matplotlib_figure import new_figure
    from crowdveil.report.plots.flow_map import draw_arrow

    axis = new_figure(4, 4).subplots()
    axis.set(xlim=(0, 10), ylim=(10, 0))
    draw_arrow(axis, (1, 5), (9, 5), 1.0, scales.VolumeScale(1, 1))
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
    found = trajectory_maps.heat_cells(picture, frame)
    places = [set(zip(*(c[a:b] for c in (picture.lon, picture.lat)), strict=True))
              for a, b in zip(picture.offsets[:-1], picture.offsets[1:], strict=True)]  # fmt: skip
    counts = Counter(place for own in places for place in own)
    assert sorted(found[np.isfinite(found)].tolist()) == sorted(map(float, counts.values()))


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_paths_are_counted_by_their_points(seed: int, n: int) -> None:
    picture = _picture(np.random.default_rng(seed), n)
    twice = TrajectoryPicture(
        np.tile(picture.lon, 2), np.tile(picture.lat, 2), np.tile(picture.t, 2),
        np.concatenate([picture.offsets, picture.offsets[1:] + picture.offsets[-1]]),
    )  # fmt: skip
    paths = trajectory_maps.distinct_paths(twice)
    assert sum(count for *_, count in paths) == 2 * n and all(count % 2 == 0 for *_, count in paths)


def test_an_example_is_a_published_trajectory_of_ordinary_length() -> None:
    before = TrajectoryPicture(np.zeros(9), np.zeros(9), np.arange(9), np.array([0, 1, 4, 9]))
    assert trajectory_maps.choose_example(before, np.array([2, 1, 0, 1]), None) == (1, 1)
    assert trajectory_maps.choose_example(before, np.array([2, 0]), 0) == (0, 1)
    with pytest.raises(Exception, match="that was published"):
        trajectory_maps.choose_example(before, np.array([2, 0]), 1)
