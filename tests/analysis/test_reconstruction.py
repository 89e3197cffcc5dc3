"""Reconstruction against dense matrices, its bounds, and what must hold whatever the release."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import shapely
from examples import tries
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_measures import rebuilt, releases, tiles

import crowdveil
from crowdveil.analysis import estimates as estimates_module
from crowdveil.analysis.estimates import Groups, estimate_chunks, estimates
from crowdveil.analysis.study import OpenedRelease, Study, StudyReading, StudySide, build_study
from crowdveil.io.notes import ReadNotes
from crowdveil.model.areas import Areas
from crowdveil.model.flows import Flows
from crowdveil.model.projection import LocalProjection
from crowdveil.model.release import FlowRelease
from crowdveil.model.zones import Zones
from crowdveil.solve.od.overlaps import Shares, in_own_tiles, in_zones, overlaps, tile_trips
from crowdveil.testing import flows


def _study(release: FlowRelease, **reading: Any) -> Study:
    return build_study(OpenedRelease(release), StudyReading.checked(reading), None, ReadNotes())


def _dense(found: Any, groups: int, zones: int) -> np.ndarray:
    """volume, lower and upper of each group as full matrices."""
    full = np.zeros((3, groups, zones, zones))
    full[:, found.group, found.origin, found.destination] = found.volume, found.lower, found.upper
    return full


@settings(max_examples=tries(150))
@given(st.data())
def test_on_its_own_tiles_it_is_the_papers_reconstruction_to_the_last_bit(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    found = estimates(_study(release).released, Groups.steps(release))
    full = _dense(found, len(release.t), len(data.zones))[0]
    for i, t in enumerate(release.t):
        step = int(np.flatnonzero(data.t == t)[0])
        assert np.array_equal(full[i], rebuilt(data, release, step))
    assert found.volume.sum() == pytest.approx(release.volume.sum(), rel=1e-12)


def _plain(
    release: FlowRelease, part: np.ndarray, whole: np.ndarray, inside: np.ndarray, touch: np.ndarray
) -> np.ndarray:
    """Every row, every pair of zones: what dense shares of areas in zones come to."""
    zones = part.shape[1]
    full = np.zeros((3, len(release.t), zones, zones))
    for row, step in enumerate(release.step):
        o, d, v = release.origin[row], release.destination[row], release.volume[row]
        full[0, step] += v * np.outer(part[o], part[d]) / (whole[o] * whole[d])
        full[1, step] += v * np.outer(inside[o], inside[d])
        full[2, step] += v * np.outer(touch[o], touch[d])
    return full


@st.composite
def tile_shares(draw: st.DrawFn, count: int) -> tuple[Shares, np.ndarray]:
    """Tiles in up to four zones, some of them partly outside; also as a dense table."""
    zones = draw(st.integers(1, 4))
    table = np.zeros((count, zones))
    for tile in range(count):
        if draw(st.booleans()):
            table[tile, draw(st.integers(0, zones - 1))] = 1.0
        else:
            table[tile] = [draw(st.sampled_from([0.0, 0.125, 0.25])) for _ in range(zones)]
    tile, zone = np.nonzero(table)
    part = table[tile, zone]
    return Shares.of_entries(count, zones, tile, zone, part, part == 1.0), table


@settings(max_examples=tries(150))
@given(st.data())
def test_any_shares_and_weights_are_the_dense_twin(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    areas, n = release.areas, len(data.zones)
    shares, table = draw.draw(tile_shares(n))
    weight = np.array(draw.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0]), min_size=n, max_size=n)))
    part, whole = np.zeros((len(areas), table.shape[1])), np.ones(len(areas))
    inside, touch, without = np.zeros_like(part, bool), np.zeros_like(part, bool), 0
    for area in range(len(areas)):
        of_area = tiles(release, area)
        w = weight[of_area]
        without += not w.any()
        w = w if w.any() else np.ones(len(of_area))
        part[area], whole[area] = w @ table[of_area], w.sum()
        inside[area], touch[area] = (table[of_area] == 1).all(axis=0), (table[of_area] > 0).any(axis=0)
    made, missing = in_zones(areas, shares, weight)
    assert missing == without
    found = estimates(StudySide(release, made), Groups.steps(release))
    full = _plain(release, part, whole, inside, touch)
    assert _dense(found, len(release.t), table.shape[1]) == pytest.approx(full)
    assert len(found) == np.count_nonzero(full[2])  # a pair that rows touch is listed, even with an estimate of 0


@given(st.data())
def test_bounds_hold_the_estimate_and_every_way_to_spread_a_row(draw: st.DataObject) -> None:
    """What is published lies somewhere: put each row into any one cell of its box, and the bounds must hold that."""
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    shares, _ = in_zones(release.areas, _cells_of(data, 2))
    zone_of = np.arange(len(data.zones)) % 2
    found = _dense(estimates(StudySide(release, shares), Groups.steps(release)), len(release.t), 2)
    happened = np.zeros_like(found[0])
    for row, step in enumerate(release.step):
        o = draw.draw(st.sampled_from(tiles(release, release.origin[row]).tolist()))
        d = draw.draw(st.sampled_from(tiles(release, release.destination[row]).tolist()))
        happened[step, zone_of[o], zone_of[d]] += release.volume[row]
    for volume in (found[0], happened):
        assert np.all(found[1] <= volume + 1e-9) and np.all(volume <= found[2] + 1e-9)


def _cells_of(data: Flows, zones: int) -> Shares:
    """Tiles in zones by their number: 0, 1, 0, 1, …"""
    n = len(data.zones)
    return Shares.of_entries(n, zones, np.arange(n), np.arange(n) % zones, np.ones(n), np.ones(n, bool))


@given(st.data())
def test_margins_are_sums_over_the_other_end(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    side, n = _study(release).released, len(data.zones)
    full = _dense(estimates(side, Groups.steps(release)), len(release.t), n)[0]
    out = estimates(side, Groups.steps(release), destinations=False)
    into = estimates(side, Groups.steps(release), origins=False)
    assert np.all(out.destination == -1) and np.all(into.origin == -1)
    assert full[out.group, out.origin].sum(axis=1) == pytest.approx(out.volume)
    assert full[into.group, :, into.destination].sum(axis=1) == pytest.approx(into.volume)
    assert out.volume.sum() == pytest.approx(release.volume.sum())


@given(st.data())
def test_groups_add_steps_up(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    side, n = _study(release).released, len(data.zones)
    of_step = np.array([draw.draw(st.integers(0, 1)) for _ in release.t], np.int64)
    by_step = _dense(estimates(side, Groups.steps(release)), len(release.t), n)
    added = np.stack([by_step[:, of_step == group].sum(axis=1) for group in range(2)], axis=1)
    assert _dense(estimates(side, Groups(of_step, 2)), 2, n) == pytest.approx(added)


def test_pieces_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    release = _hand()
    side = _study(release).released
    whole = estimates(side, Groups.steps(release))
    monkeypatch.setattr(estimates_module, "CHUNK_PAIRS", 1)
    reported: list[tuple[int, int]] = []
    pieces = list(
        estimate_chunks(side, Groups.steps(release), progress=lambda done, total: reported.append((done, total)))
    )
    assert len(pieces) == 2 and reported == [(1, 2), (2, 2)]
    for name in ("group", "origin", "destination", "volume", "lower", "upper"):
        assert np.concatenate([getattr(p, name) for p in pieces]).tolist() == getattr(whole, name).tolist()


PLANE = LocalProjection(2.0, 48.0)


def _squares(*corners: tuple[float, float, float, float]) -> Zones:
    """Rectangles of meters (west, south, east, north) as zones named 0, 1, …"""
    boxes = shapely.box(*np.array(corners, float).T)
    shapes = shapely.transform(boxes, lambda xy: np.column_stack(PLANE.to_globe(xy[:, 0], xy[:, 1])))
    middle = shapely.centroid(shapes)
    ids = np.array([str(i) for i in range(len(corners))], dtype=object)
    return Zones(ids, shapely.get_x(middle), shapely.get_y(middle), np.asarray(shapes, dtype=object), "polygons")


STREET = tuple((1000.0 * i, 0.0, 1000.0 * (i + 1), 1000.0) for i in range(4))


def _hand(zones: Zones | None = None) -> FlowRelease:
    """Four tiles in a row; 12 trips from {0, 1} to {2}, then 6 from {0} to {0} and 8 from {1} to {2, 3}."""
    zones = zones or _squares(*STREET)
    areas = Areas(zones, np.array(["01", "0", "1", "2", "23"], dtype=object), np.array([0, 2, 3, 4, 5, 7]),
                  np.array([1, 0, 0, 1, 2, 2, 3], np.int32))  # fmt: skip
    volume = np.array([12, 6, 8])
    return FlowRelease(
        areas, np.array([0, 3600]), np.array([0, 1, 3]), np.array([0, 1, 2], np.int32), np.array([3, 1, 4], np.int32),
        volume, volume, np.zeros(3, np.uint8), np.zeros(2, np.int64), "trips", 3600,
    )  # fmt: skip


def _rows(found: Any) -> list[tuple[Any, ...]]:
    table = found.table()
    columns = [c for c in table.column_names if c != "t"]
    return [tuple(row[c] for c in columns) for row in table.to_pylist()]


def test_an_example_worked_out_by_hand() -> None:
    assert _rows(crowdveil.reconstruct(_hand())) == [
        ("0", "2", 6.0, 0, 12), ("1", "2", 6.0, 0, 12), ("0", "0", 6.0, 6, 6), ("1", "2", 4.0, 0, 8), ("1", "3", 4.0, 0, 8),
    ]  # fmt: skip
    halves = _squares((0, 0, 2000, 1000), (2000, 0, 4000, 1000))
    assert _rows(crowdveil.reconstruct(_hand(), to_zones=halves)) == [
        ("0", "1", 12.0, 12, 12), ("0", "0", 6.0, 6, 6), ("0", "1", 8.0, 8, 8),
    ]  # fmt: skip


def test_zones_across_tiles_get_their_share_of_the_surface() -> None:
    """Zone 0 is all of tile 0 and a quarter of tile 1; zone 1 the rest up to the middle of tile 2; the rest is outside."""
    zones = _squares((0, 0, 1250, 1000), (1250, 0, 2500, 1000))
    found = crowdveil.reconstruct(_hand(), to_zones=zones)
    rows = {row[:2]: row[2:] for row in _rows(found)[:2]}
    assert rows["0", "1"] == (pytest.approx(12 * 1.25 / 2 * 0.5), 0, 12)
    assert rows["1", "1"] == (pytest.approx(12 * 0.75 / 2 * 0.5), 0, 12)
    later = {row[:2]: row[2:] for row in _rows(found)[2:]}
    assert later["0", "0"] == (6.0, 6, 6)
    assert later["1", "1"] == (pytest.approx(8 * 0.75 * 0.25), 0, 8)
    assert any("outside all zones" in line for line in found.lines())


def test_weights_move_volume_between_the_tiles_of_an_area() -> None:
    import pyarrow as pa

    weights = pa.table({"id": ["0", "1", "2", "3"], "people": [3, 1, 0, 0]})
    notes = ReadNotes()
    rows = _rows(crowdveil.reconstruct(_hand(), weight=weights, notes=notes))
    assert rows[:2] == [("0", "2", 9.0, 0, 12), ("1", "2", 3.0, 0, 12)]
    assert rows[3:] == [("1", "2", 4.0, 0, 8), ("1", "3", 4.0, 0, 8)]  # no weight in it: even
    assert any("2 areas have no weight" in said for said in notes.messages)
    sizes = _squares((0, 0, 1000, 1000), (1000, 0, 4000, 1000), *STREET[2:])
    assert _rows(crowdveil.reconstruct(_hand(sizes), weight="area"))[0][2] == pytest.approx(3.0)


def test_borders_that_were_drawn_twice_do_not_touch() -> None:
    """A meter off: 0.1 % of a tile. Zones are still the tiles, and bounds are still tight."""
    near = _squares(*((w + 0.9, s, e + 0.9, n) for w, s, e, n in STREET))
    own, off = (
        estimates(_study(_hand(), **to).released, Groups(np.zeros(2, np.int64), 1)) for to in ({}, {"to_zones": near})
    )
    assert off.volume.tolist() == pytest.approx(own.volume.tolist(), rel=1e-3)
    assert off.lower.tolist() == own.lower.tolist() and off.upper.tolist() == own.upper.tolist()


@given(st.integers(300, 3000), st.integers(0, 2))
@example(size=999, finer=0)  # slivers on two sides, which are too many to be left out together
@settings(max_examples=tries(20))
def test_a_grid_or_hexagons_over_the_map_lose_nothing(size: int, finer: int) -> None:
    release = _hand()
    for zones in (f"grid:{size}m", f"h3:{7 + finer}"):
        found = crowdveil.reconstruct(release, to_zones=zones)
        assert found.tally().volume == pytest.approx(release.volume.sum(), rel=1e-9)


@given(st.data())
def test_shares_of_surface_are_those_of_rectangles(draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.sets(st.integers(1, 39), min_size=1, max_size=5)))
    bounds = [0, *cuts, 40]
    zones = _squares(*((100 * a, 0, 100 * b, 1000) for a, b in pairwise(bounds)))
    shares = overlaps(_squares(*STREET).polygons, zones)  # type: ignore[arg-type]
    for tile in range(4):
        entries = slice(shares.offsets[tile], shares.offsets[tile + 1])
        wanted = {i: (min(b, 10 * tile + 10) - max(a, 10 * tile)) / 10 for i, (a, b) in
                  enumerate(pairwise(bounds)) if min(b, 10 * tile + 10) > max(a, 10 * tile)}  # fmt: skip
        assert shares.zone[entries].tolist() == list(wanted)
        assert shares.part[entries].tolist() == pytest.approx(list(wanted.values()), abs=1e-4)
        assert shares.part[entries].sum() == pytest.approx(1, abs=1e-12)
        assert shares.inside[entries].tolist() == [len(wanted) == 1] * len(wanted)


def test_places_of_which_only_points_are_known_lie_in_one_zone() -> None:
    shape = np.array([shapely.MultiPoint([PLANE.to_globe(500.0, 500.0), PLANE.to_globe(1500.0, 500.0)]),
                      shapely.Point(PLANE.to_globe(2500.0, 500.0)), shapely.Point(9.0, 9.0)], dtype=object)  # fmt: skip
    shares = overlaps(shape, _squares(*STREET))
    assert shares.zone.tolist() == [0, 1, 2] and shares.part.tolist() == [0.5, 0.5, 1.0]
    assert shares.inside.tolist() == [False, False, True] and shares.touched.tolist() == [2, 1, 0]


def test_rows_that_overlap_are_added_up() -> None:
    """As glove has them: 10 trips from {0, 1} to {2} and 6 from {0} to {2}, which is a part of it."""
    hand = _hand()
    volume = np.array([10, 6, 8])
    both = replace(
        hand, offsets=np.array([0, 2, 3]), destination=np.array([3, 3, 4], np.int32), volume=volume, people=volume
    )
    assert _rows(crowdveil.reconstruct(both))[:2] == [("0", "2", 11.0, 6, 16), ("1", "2", 5.0, 0, 10)]


def test_small_estimates_are_left_out_only_if_asked_and_are_reported() -> None:
    found = crowdveil.reconstruct(_hand(), min_volume=5)
    assert [row[2] for row in _rows(found)] == [6.0, 6.0, 6.0]
    assert (found.tally().left_out, found.tally().left_out_volume) == (2, 8.0)
    assert any("dropped: 2 estimates with 8.0 trips" in line for line in found.lines())


@pytest.mark.parametrize("order", [np.arange(64), np.arange(64)[::-1], np.random.default_rng(3).permutation(64)])
def test_the_largest_are_named_whatever_the_pieces(monkeypatch: pytest.MonkeyPatch, order: np.ndarray) -> None:
    zones = _squares(*((1000.0 * i, 0.0, 1000.0 * (i + 1), 1000.0) for i in range(8)))
    pair = np.arange(64)
    volume = order + 1
    release = FlowRelease(
        Areas.of_tiles(zones, np.arange(8, dtype=np.int32)), np.arange(16) * 3600, np.arange(0, 65, 4),
        (pair // 8).astype(np.int32), (pair % 8).astype(np.int32), volume, volume, np.zeros(64, np.uint8),
        np.zeros(16, np.int64), "trips", 3600,
    )  # fmt: skip
    monkeypatch.setattr(estimates_module, "CHUNK_PAIRS", 4)
    largest = [row[0] for row in crowdveil.reconstruct(release).tally().largest]
    assert largest == sorted(volume.tolist(), reverse=True)[:10]


def test_over_adds_hours_up() -> None:
    day = replace(_hand(), t=np.array([0, 86400]))  # a Thursday and a Friday, midnight
    by_day = crowdveil.reconstruct(day, over="day").table()
    assert by_day.column_names == ["hour", "origin", "destination", "volume", "lower", "upper"]
    assert set(by_day["hour"].to_pylist()) == {"00:00"} and sum(by_day["volume"].to_pylist()) == 26
    week = crowdveil.reconstruct(day, over="week").table()
    assert sorted(set(week["day"].to_pylist())) == ["Friday", "Thursday"]
    whole = crowdveil.reconstruct(day, over="all").table()
    assert whole.column_names[0] == "origin" and sum(whole["volume"].to_pylist()) == 26


def test_a_release_of_nothing_has_no_estimates() -> None:
    data = _hand()
    none = np.zeros(0, np.int32)
    empty = FlowRelease(data.areas.only(np.zeros(0, np.int64)), np.zeros(0, np.int64), np.zeros(1, np.int64), none, none, none,
                        none, none, none, "trips", 3600)  # fmt: skip
    found = crowdveil.reconstruct(empty)
    assert found.table().num_rows == 0 and found.table().column_names[-1] == "upper"
    assert found.lines()[0].startswith("0 estimates")


def test_own_tiles_come_in_the_order_of_the_zones() -> None:
    shares, _ = in_own_tiles(_hand().areas)
    assert shares.zone[:2].tolist() == [0, 1]


def test_other_hours_show_how_to_spread_a_large_area() -> None:
    """6 trips leave tile 0 by itself and 8 tile 1: of 12 that leave either, more leave 1."""
    found = _rows(crowdveil.reconstruct(_hand(), weight="release"))
    first = {row[:2]: row[2:] for row in found[:2]}
    assert sum(row[0] for row in first.values()) == pytest.approx(12)
    assert first["1", "2"][0] == pytest.approx(12 * 8 / 14) and first["1", "2"][1:] == (0, 12)
    # Tile 2 is reached by itself and as a part of {2, 3}, tile 3 only as a part: in the end all is said to go to 2.
    assert found[-2][:2] == ("1", "2") and found[-2][2] == pytest.approx(8, abs=1e-3)


@given(st.data())
def test_trips_of_tiles_explain_those_of_areas_better_round_by_round(draw: st.DataObject) -> None:
    """No trip is lost, none is where nothing was, and the likelihood of what was published never falls."""
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    areas, trips = release.areas, np.bincount(release.origin, release.volume, len(release.areas))
    with_trips = np.flatnonzero(trips)
    before = -np.inf
    for rounds in (1, 2, 5, 20):
        found = tile_trips(areas, trips, rounds)
        assert found.sum() == pytest.approx(trips.sum()) and np.all(found >= 0)
        inside = np.array([found[tiles(release, area)].sum() for area in with_trips])
        assert np.all(inside >= trips[with_trips] * (1 - 1e-9))
        likelihood = float(trips[with_trips] @ np.log(inside)) if len(with_trips) else 0.0
        assert likelihood >= before - 1e-9
        before = likelihood
