"""Movers on a road network: on roads, by shortest routes, no faster than they may, seen as often as asked, repeatable."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from crowdveil import engine
from crowdveil.errors import ParameterError
from crowdveil.experiments.movers import (
    NetworkPlacement,
    Traffic,
    make_movers,
    mover_chunks,
    shortest_routes,
    stamps_on_routes,
    write_movers,
)
from crowdveil.experiments.network import RoadNetwork, read_network, street_grid
from crowdveil.model.trajectories import Trajectories

NOBODY = np.zeros((0, 7))


@pytest.fixture(scope="module")
def town() -> RoadNetwork:
    return street_grid(4, side=25)


@pytest.fixture(scope="module")
def movers(town: RoadNetwork) -> Trajectories:
    return make_movers(town, 600, seed=3)


HERE = NetworkPlacement()


def on_the_network(
    network: RoadNetwork, data: Trajectories, place: NetworkPlacement = HERE
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions in the unit of the network."""
    from crowdveil.model.projection import LocalProjection

    x, y = LocalProjection(place.lon, place.lat).to_plane(data.lon, data.lat)
    return x / place.unit_m + network.middle[0], y / place.unit_m + network.middle[1]


def off_road(network: RoadNetwork, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    ends = np.stack(
        [network.x[network.begin], network.y[network.begin], network.x[network.end], network.y[network.end]]
    )
    tree = shapely.STRtree(shapely.linestrings(ends.T.reshape(-1, 2, 2)))
    return tree.query_nearest(shapely.points(x, y), all_matches=False, return_distance=True)[1]  # type: ignore[no-any-return]


def moved(data: Trajectories, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far it is from each point to the next of the same mover, and how many seconds."""
    same = np.diff(data.trajectory) == 0
    return np.hypot(np.diff(x), np.diff(y))[same], np.diff(data.t)[same]


# Routes


@st.composite
def networks(draw: st.DrawFn) -> RoadNetwork:
    """A tree and some more roads; lengths have nothing to do with straight lines, and may be 0."""
    n = draw(st.integers(2, 9))
    place, length = st.integers(0, 5), st.integers(0, 7)
    x, y = (np.array(draw(st.lists(place, min_size=n, max_size=n)), np.float64) for _ in range(2))
    roads = [(draw(st.integers(0, node - 1)), node) for node in range(1, n)]
    roads += draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda r: r[0] != r[1]), max_size=8)
    )
    begin, end = np.array(roads).T
    lengths = draw(st.lists(length, min_size=len(roads), max_size=len(roads)))
    return RoadNetwork(x, y, begin, end, np.array(lengths, np.float64))


def plain_distances(network: RoadNetwork, begin: int) -> list[float]:
    """Bellman and Ford's way: over all roads, as often as there are nodes."""
    reached = [math.inf] * network.nodes
    reached[begin] = 0.0
    for _ in range(network.nodes):
        for a, b, length in zip(network.begin, network.end, network.length, strict=True):
            reached[a] = min(reached[a], reached[b] + length)
            reached[b] = min(reached[b], reached[a] + length)
    return reached


@given(networks())
def test_routes_are_shortest(network: RoadNetwork) -> None:
    begins, goals = (nodes.ravel() for nodes in np.indices((network.nodes, network.nodes)))
    first, to, length = network.leaving
    roads, offsets = shortest_routes(network, begins, goals)
    origin = np.repeat(np.arange(network.nodes), np.diff(first))
    for i, (begin, goal) in enumerate(zip(begins, goals, strict=True)):
        route = roads[offsets[i] : offsets[i + 1]]
        nodes = [begin, *to[route]]
        assert nodes[-1] == goal and nodes[:-1] == origin[route].tolist()
        assert length[route].sum() == plain_distances(network, begin)[goal]


# Time-stamps


def plain_walk(network: RoadNetwork, route: list[int], speed: float, lifespan: int) -> list[tuple[float, float]]:
    """Return the position after 0, 1, 2, … time-stamps, from how far along the way each node lies."""
    _, to, length = network.leaving
    origin = np.repeat(np.arange(network.nodes), np.diff(network.leaving[0]))
    nodes = [int(origin[route[0]]), *(int(to[r]) for r in route)]
    along = np.concatenate([[0.0], np.cumsum(length[route])])
    stamps = min(math.ceil(along[-1] / speed - 1e-9) + 1, lifespan)
    way = np.minimum(np.arange(stamps) * speed, along[-1])
    x, y = (np.interp(way, along, c[nodes]) for c in (network.x, network.y))
    return list(zip(x, y, strict=True))


def test_movers_go_on_along_their_route_by_their_speed(town: RoadNetwork) -> None:
    rng = np.random.default_rng(0)
    begins, goals = rng.integers(0, town.nodes, (2, 40))
    begins, goals = begins[begins != goals], goals[begins != goals]
    speed = rng.uniform(10, 900, len(begins))
    _, to, length = town.leaving
    roads, offsets = shortest_routes(town, begins, goals)
    x, y, ends = stamps_on_routes(
        town.x, town.y, to, length, roads, offsets, begins, speed, np.arange(len(begins)), 50, 0, NOBODY, 10
    )  # fmt: skip
    assert np.diff(ends).max() == 50
    for i in range(len(begins)):
        wanted = plain_walk(town, roads[offsets[i] : offsets[i + 1]].tolist(), speed[i], 50)
        np.testing.assert_allclose(np.column_stack([x, y])[ends[i] : ends[i + 1]], wanted, atol=1e-6)


def along_a_line(events: np.ndarray, life: int) -> list[float]:
    """Where a mover of speed 10 is on a line of 128, with an external object at each time-stamp."""
    line = RoadNetwork(np.array([0.0, 128.0]), np.zeros(2), np.array([0]), np.array([1]), np.array([128.0]))
    first, to, length = line.leaving
    one = np.zeros(1, np.int64)
    route = (np.array([first[0]]), np.array([0, 1]), one, np.array([10.0]), one)
    return stamps_on_routes(line.x, line.y, to, length, *route, 1000, 1, events, life)[0].tolist()  # type: ignore[no-any-return]


def with_one(born: int, event: tuple[float, ...]) -> np.ndarray:
    """External objects that are far away but for one."""
    events = np.tile(np.array([1e6, 0, 0, 0, 1, 1, 0.1]), (40, 1))
    events[born] = event
    return events


@pytest.mark.parametrize(
    ("born", "life", "drift", "wanted"),
    [
        (
            0,
            20,
            0.0,
            [0, 10, 20, 30, 40, 45, 50, 55, 60, 65, 75, 85, 95, 105, 115, 125, 128],
        ),  # slow from 40 to 60, borders too
        (4, 20, 0.0, [0, 10, 20, 30, 40, 45, 50, 55, 60, 65, 75, 85, 95, 105, 115, 125, 128]),
        (
            5,
            20,
            0.0,
            [0, 10, 20, 30, 40, 50, 55, 60, 65, 75, 85, 95, 105, 115, 125, 128],
        ),  # it comes when the mover is in its middle
        (
            0,
            6,
            0.0,
            [0, 10, 20, 30, 40, 45, 50, 60, 70, 80, 90, 100, 110, 120, 128],
        ),  # it is there for the time-stamps 0 to 5
        (2, 4, 0.0, [0, 10, 20, 30, 40, 45, 50, 60, 70, 80, 90, 100, 110, 120, 128]),  # and here for 2 to 5
        (0, 20, 5.0, [*range(0, 81, 10), *range(85, 126, 5), 128]),  # it leads, until it is caught up with
        (0, 20, -5.0, [0, 10, 20, 30, 35, 40, 50, 60, 70, 80, 90, 100, 110, 120, 128]),
    ],
)
def test_external_objects_slow_down_who_is_inside_while_they_are_there(
    born: int, life: int, drift: float, wanted: list[float]
) -> None:
    assert along_a_line(with_one(born, (50, 0, drift, 0, 10, 1, 0.5)), life) == wanted


def test_of_several_external_objects_the_worst_counts() -> None:
    events = with_one(0, (50, 0, 0, 0, 100, 1, 0.5))
    events[1] = (50, 0, 0, 0, 100, 1, 0.8)
    events[2] = (50, 0.5, 0, 0, 100, 1, 0.25)
    events[3] = (50, 5, 0, 0, 100, 1, 0.01)  # on another road
    assert along_a_line(events, 5)[:9] == [0, 5, 10, 12.5, 15, 17.5, 20, 22.5, 32.5]


# Whole data sets


def test_movers_are_on_roads(town: RoadNetwork, movers: Trajectories) -> None:
    assert off_road(town, *on_the_network(town, movers)).max() < 0.02


def test_they_begin_and_end_at_nodes(town: RoadNetwork, movers: Trajectories) -> None:
    x, y = on_the_network(town, movers)
    nodes = shapely.STRtree(shapely.points(town.x, town.y))
    for those in (movers.offsets[:-1], movers.offsets[1:] - 1):
        found = nodes.query_nearest(shapely.points(x[those], y[those]), all_matches=False, return_distance=True)[1]
        assert found.max() < 0.02


def test_no_mover_is_faster_than_its_class(town: RoadNetwork, movers: Trajectories) -> None:
    speeds = Traffic().speeds(town)
    far, seconds = moved(movers, *on_the_network(town, movers))
    assert (seconds == 1).all() and far.max() <= speeds.max() + 0.02
    assert len(set(speeds[:5])) == 1 and speeds[5] == sum(town.extent) / 10 / 32, "roads decide for all but the slowest"
    # With one class of a speed that roads do not limit, and nothing in the way, most steps are that long.
    alone = Traffic(classes=1, external_per_stamp=0, speed=1000)
    free, _ = moved(data := make_movers(town, 100, alone, seed=1), *on_the_network(town, data))
    assert free.max() <= alone.speeds(town)[0] + 0.02 and np.median(free) > 0.98 * alone.speeds(town)[0]
    assert far.mean() < 0.9 * speeds.max(), "external objects slow them down"


def test_slower_classes_are_slower_and_fewer(town: RoadNetwork) -> None:
    traffic = Traffic(classes=12, external_classes=0, lifespan=100_000)
    data = make_movers(town, 2000, traffic, seed=1)
    far, _ = moved(data, *on_the_network(town, data))
    top = np.maximum.reduceat(np.append(far, 0), (data.offsets[:-1] - np.arange(len(data))))
    speeds = traffic.speeds(town)
    count = [np.sum((top > 0.9 * speed) & (top < speed + 0.02)) for speed in speeds[5:9]]
    np.testing.assert_allclose(count, 2000 * 0.5 ** np.arange(6, 10), rtol=0.6)


def test_they_appear_in_order_a_fixed_number_each_time_stamp(movers: Trajectories) -> None:
    first = movers.t[movers.offsets[:-1]]
    np.testing.assert_array_equal(first - first[0], np.arange(600) // 5)
    assert first[0] == np.datetime64("2026-03-02").astype("datetime64[s]").astype(int)
    assert len(movers) == movers.people == 600 and movers.k_unit == "people"


def test_no_more_time_stamps_than_a_life_has(town: RoadNetwork, movers: Trajectories) -> None:
    short = make_movers(town, 600, Traffic(lifespan=30), seed=3)
    points = np.diff(short.offsets)
    assert points.max() == 30
    np.testing.assert_array_equal(points, np.minimum(np.diff(movers.offsets), 30))


def test_positions_are_reported_with_the_given_probability(town: RoadNetwork, movers: Trajectories) -> None:
    some = make_movers(town, 600, Traffic(report=300), seed=3)
    inner, all_inner = some.points - 2 * 600, movers.points - 2 * 600
    assert abs(inner / all_inner - 0.3) < 0.02
    for ends in (lambda o: o[:-1], lambda o: o[1:] - 1):
        np.testing.assert_array_equal(some.lon[ends(some.offsets)], movers.lon[ends(movers.offsets)])
    rows = set(zip(movers.trajectory, movers.t, movers.lon, movers.lat, strict=True))
    assert rows.issuperset(zip(some.trajectory, some.t, some.lon, some.lat, strict=True))
    assert (np.diff(make_movers(town, 50, Traffic(report=0), seed=3).offsets) == 2).all()


def test_a_network_has_the_given_position_and_time(town: RoadNetwork, movers: Trajectories) -> None:
    place = NetworkPlacement(lon=-70.0, lat=-33.0, unit_m=2.0, start="2026-05-01T08:00", step_s=30)
    far = make_movers(town, 600, placement=place, seed=3)
    np.testing.assert_array_equal(far.offsets, movers.offsets)
    np.testing.assert_array_equal((far.t - far.t[0]) // 30, movers.t - movers.t[0])
    assert far.t[0] == np.datetime64("2026-05-01T08:00:00").astype("datetime64[s]").astype(int)
    assert off_road(town, *on_the_network(town, far, place)).max() < 0.02
    np.testing.assert_allclose(on_the_network(town, far, place), on_the_network(town, movers), atol=0.02)
    assert NetworkPlacement(start="2026-05-01T10:00+02:00").first_s == far.t[0]


def test_lengths_are_about_as_asked(town: RoadNetwork) -> None:
    means = []
    for length in (800.0, 1600.0, 3200.0):
        data = make_movers(town, 500, Traffic(length=length), seed=1)
        means.append(moved(data, *on_the_network(town, data))[0].sum() / 500)
    np.testing.assert_allclose(means, (800, 1600, 3200), rtol=0.2)


def test_same_seed_same_bytes_on_any_number_of_threads(town: RoadNetwork, tmp_path: Path) -> None:
    for name, seed, threads in (("a", 8, 1), ("b", 8, 3), ("c", 9, 1)):
        with engine.use(engine.LocalEngine(threads)):
            write_movers(town, tmp_path / name, 300, seed=seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b != c


def test_a_file_has_the_same_movers(town: RoadNetwork, movers: Trajectories, tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    write_movers(town, tmp_path / "m", 600, seed=3, progress=lambda done, of: reported.append((done, of)))
    table = pq.read_table(tmp_path / "m")
    assert table.column_names == ["lat", "lon", "timestamp", "trajectory_id", "user_id"] and reported == [(600, 600)]
    np.testing.assert_array_equal(table["lon"].to_numpy(), movers.lon)
    np.testing.assert_array_equal(table["trajectory_id"].to_numpy(), movers.trajectory)
    np.testing.assert_array_equal(table["user_id"].to_numpy(), movers.trajectory)
    np.testing.assert_array_equal(table["timestamp"].to_numpy().astype("datetime64[s]").astype(int), movers.t)


def test_chunks_add_up(town: RoadNetwork) -> None:
    chunks = list(mover_chunks(town, 250, Traffic(), NetworkPlacement(), seed=1, chunk=100))
    assert [rows.person.tolist() for rows in chunks] == [
        list(range(a, b)) for a, b in ((0, 100), (100, 200), (200, 250))
    ]
    assert len(make_movers(town, 0, seed=1)) == 0


def test_two_nodes_are_enough() -> None:
    line = RoadNetwork(np.array([0.0, 100.0]), np.zeros(2), np.array([0]), np.array([1]), np.array([100.0]))
    data = make_movers(line, 20, seed=1)
    assert len(data) == 20 and np.diff(data.offsets).min() >= 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"classes": 0}, "classes"), ({"per_stamp": 0}, "per_stamp"), ({"lifespan": 1}, "lifespan"),
        ({"speed": 0}, "speed"), ({"report": 1001}, "report"), ({"length": -1.0}, "length"),
    ],
)  # fmt: skip
def test_impossible_traffic_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Traffic.checked(wrong)


def test_impossible_positions_are_refused(town: RoadNetwork) -> None:
    for wrong in ({"lon": 200.0}, {"lat": -91.0}, {"unit_m": 0.0}, {"step_s": 0}, {"start": "soon"}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            NetworkPlacement.checked(wrong)
    with pytest.raises(ParameterError, match="Give unit_m=, meters a unit"):
        make_movers(town, 1, placement=NetworkPlacement(unit_m=1000.0), seed=1)
    with pytest.raises(ParameterError, match="movers"):
        make_movers(town, -1, seed=1)


@pytest.mark.slow  # tiny networks are compared in every run
@pytest.mark.realdata
def test_on_oldenburg_they_are_as_in_the_paper(realdata: Path) -> None:
    network = read_network(realdata / "oldenburg" / "vertices.txt", realdata / "oldenburg" / "edges.txt")
    data = make_movers(network, 5000, seed=1)
    far, seconds = moved(data, *on_the_network(network, data))
    assert data.points / 492_105 == pytest.approx(1, abs=0.05)
    assert far.sum() / 5000 == pytest.approx(7284, rel=0.02)
    assert (seconds == 1).all() and off_road(network, *on_the_network(network, data)).max() < 0.02


@pytest.mark.slow  # the same in meters; the speeds of tiny networks are compared in every run
@pytest.mark.realdata
def test_on_oldenburg_in_meters_they_are_as_in_the_paper(realdata: Path) -> None:
    network = read_network(realdata / "oldenburg" / "vertices.txt", realdata / "oldenburg" / "edges.txt")
    wide = make_movers(network, 5000, Traffic(length=2600.0, speed=25), NetworkPlacement(unit_m=2.52), seed=1)
    assert moved(wide, *wide.xy)[0].sum() / 5000 == pytest.approx(7284, rel=0.05)
    assert wide.points / 492_105 == pytest.approx(1, abs=0.05)
