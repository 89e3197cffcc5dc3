"""Make movers on a road network, after Brinkhoff's generator of network-based moving objects (2002).

At each time stamp some movers appear. Each has a class with a maximum speed, takes the shortest route from one node to another,
reports its position at every time stamp, and disappears when it arrives or when its lifespan is over. External objects (a
shower, an accident, a fair) appear too: rectangles that drift for ten time stamps and slow down movers inside.

Notes
-----
- The classes are those of Brinkhoff's generator: "speed" divides, so that a mover of the fastest class may go (width + height
  of the network) / speed in a time stamp, and each class half as fast as the one before; every class has half as many movers as
  the one before, and the last two as many. External objects: the largest class is up to (width + height) / 5 wide, and each
  class before it half as wide and twice as frequent; they leave 64 %, 32 %, 16 %, and then always 8 % of the speed.
- In the generator, roads have classes as well, which limit the speed of movers. Our files lack them, so there is one class of
  roads with the speed limit `ROAD` of the fastest class, and the fastest route is the shortest. Where several external objects
  overlap, the slowest counts. Movers do not obstruct each other, and none turns around.
- `ROAD` and `LENGTH` were chosen so that the settings of Ferreira Torres and Trujillo-Rasua (2016) on Oldenburg's roads give
  their results: 5,000 movers with 98 points each, on trajectories of 7,284 units. These settings are the defaults. The paper
  does not give the period; 5 a time stamp make 5,000 in 1,000 time stamps. Here all movers continue to their goal.
- Public copies of that network are scaled to 10,000 × 10,000, while the generator's own is about 23,600 × 26,900. With
  `length = 2600`, `speed = 25` and `unit_m = 2.52` trajectories have as many points and meters as on a map of its size.

References
----------
T. Brinkhoff: A framework for generating network-based moving objects. GeoInformatica 6(2), 2002.
C. Ferreira Torres, R. Trujillo-Rasua: The Fréchet/Manhattan distance and the trajectory anonymization problem. DBSec 2016,
section 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pydantic import Field, field_validator
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from crowdveil import engine
from crowdveil.engine.progress import Progress
from crowdveil.errors import ParameterError, Text
from crowdveil.experiments.network import RoadNetwork
from crowdveil.kernels._jit import grow, kernel
from crowdveil.model.arrays import Floats, Ints, Mask, row_slices
from crowdveil.model.projection import LocalProjection
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.synth.city import generators, require_between
from crowdveil.synth.trajectories import TrajectoryRows, in_memory, stream_trajectories

CHUNK = 5000
"""Movers made at a time: about half a million points."""
BLOCK = 250
"""Movers of one task."""
MAX_MOVERS = 10**7
ROAD = 0.0535
"""Speed limit of roads, as a share of the speed of the fastest class."""
LENGTH = 0.405
"""Mean wanted distance of movers, as a share of width + height. Few nodes are that far apart: they go 0.36 of it."""
SPREAD = (0.5, 1.5)
"""Wanted distance of a mover, as a multiple of the mean."""
STRAIGHT = 0.8
"""The straight line between the ends of a route, as a share of the route."""
PAIRS = 24
"""Pairs of nodes that a mover chooses from: the one nearest to its wanted distance."""
LIFE = 10
"""Lifespan of an external object, time stamps."""
LARGEST = 1 / 5
"""Width of the largest external objects, as a share of width + height."""


class Traffic(Params):
    """The movers and external objects on the roads; the defaults are the settings of the paper."""

    classes: int = Field(6, ge=1, le=50)
    """Classes of movers, each half as fast as the one before."""
    external_classes: int = Field(3, ge=0, le=50)
    """Classes of external objects, which slow down the movers around them."""
    per_stamp: int = Field(5, ge=1, le=10**6)
    """Movers that appear at each time stamp."""
    external_per_stamp: int = Field(3, ge=0, le=1000)
    """External objects that appear at each time stamp."""
    lifespan: int = Field(1000, ge=2, le=10**6)
    """Largest number of time stamps of a mover."""
    speed: float = Field(10.0, ge=1e-3, le=1e6)
    """The fastest class may go (width + height) / speed in a time stamp, as far as roads allow: the larger, the slower."""
    report: int = Field(1000, ge=0, le=1000)
    """Probability, in thousandths, that a mover reports its position at a time stamp; the first and last are always reported."""
    length: float | None = Field(None, ge=1e-6, le=1e9)
    """Mean wanted distance of movers, in units of the network. Short routes turn out a little longer, since roads are not
    straight, and very long ones shorter, since there are few. Default: 0.405 × (width + height)."""

    def speeds(self, network: RoadNetwork) -> Floats:
        """Return the largest distance of each class in a time stamp."""
        fastest = sum(network.extent) / self.speed
        return np.asarray(np.minimum(fastest / 2.0 ** np.arange(self.classes), fastest * ROAD), np.float64)


class NetworkPlacement(Params):
    """The position and time of a network; by default in Oldenburg."""

    lon: float = Field(8.2146, ge=-180, le=180)
    """Longitude of the middle of the network."""
    lat: float = Field(53.1435, ge=-90, le=90)
    """Latitude of the middle of the network."""
    unit_m: float = Field(1.0, ge=1e-3, le=1e5)
    """Length of one unit of the network."""
    start: str = Field("2026-03-02", json_schema_extra={"metavar": "TIME"})
    """First time stamp, a date or a time in UTC."""
    step_s: int = Field(1, ge=1, le=86_400)
    """Time between time stamps."""

    @field_validator("start")
    @classmethod
    def _is_time(cls, value: str) -> str:
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("a date or a time such as 2026-03-02T08:00") from None
        return value

    @property
    def first_s(self) -> int:
        """Return the first time stamp in seconds since 1970."""
        when = datetime.fromisoformat(self.start)
        return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())

    def to_degrees(self, network: RoadNetwork, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return longitudes and latitudes, to a centimeter."""
        (middle_x, middle_y), plane = network.middle, LocalProjection(self.lon, self.lat)
        lon, lat = plane.to_globe((x - middle_x) * self.unit_m, (y - middle_y) * self.unit_m)
        return lon.round(7), lat.round(7)


def mover_chunks(
    network: RoadNetwork, movers: int, traffic: Traffic, placement: NetworkPlacement, *, seed: int, chunk: int = CHUNK
) -> Iterator[TrajectoryRows]:
    """Yield chunks of at most `chunk` movers that make `movers` in all, in the order in which they appear."""
    require_between("movers", movers, 0, MAX_MOVERS)
    _check_width(network, placement)
    events = _external_objects(network, traffic, -(-movers // traffic.per_stamp) + traffic.lifespan, seed)
    starts = range(0, movers, chunk)
    for rng, low in zip(generators(seed, 4, len(starts)), starts, strict=True):
        number = np.arange(low, min(low + chunk, movers), dtype=np.int64)
        yield _chunk(network, traffic, placement, rng, number, events)


def make_movers(
    network: RoadNetwork,
    movers: int,
    traffic: Traffic | None = None,
    placement: NetworkPlacement | None = None,
    *,
    seed: int,
) -> Trajectories:
    """Return movers in memory: the rows of `write_movers`, with ids from 0. Each is a person."""
    return in_memory(mover_chunks(network, movers, traffic or Traffic(), placement or NetworkPlacement(), seed=seed))


def write_movers(
    network: RoadNetwork,
    path: str | Path,
    movers: int,
    traffic: Traffic | None = None,
    placement: NetworkPlacement | None = None,
    *,
    seed: int,
    progress: Progress | None = None,
) -> None:
    """Stream movers to a Parquet file with columns lat, lon, timestamp (UTC), trajectory_id, user_id.

    Parameters
    ----------
    network
        The network.
    path
        The file; replaced if there is one.
    movers
        Their exact number.
    traffic, placement
        The traffic, and the position and time of the network.
    seed
        The same seed, network and version give the same bytes.
    progress
        Called with (movers written, movers).
    """
    chunks = mover_chunks(network, movers, traffic or Traffic(), placement or NetworkPlacement(), seed=seed)
    stream_trajectories(path, chunks, movers, progress)


def _chunk(
    network: RoadNetwork,
    traffic: Traffic,
    placement: NetworkPlacement,
    rng: np.random.Generator,
    number: Ints,
    events: Floats,
) -> TrajectoryRows:
    """Return the movers of these numbers."""
    of_class = rng.choice(traffic.classes, len(number), p=_shares(traffic.classes))
    begin, goal = _ends(network, traffic, rng, len(number))
    appears = number // traffic.per_stamp
    x, y, offsets = _moved(network, traffic, traffic.speeds(network)[of_class], begin, goal, appears, events)
    stamp = np.arange(len(x)) + np.repeat(appears - offsets[:-1], np.diff(offsets))
    reported = _reported(traffic, rng, offsets)
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(reported)])[offsets]
    lon, lat = placement.to_degrees(network, x[reported], y[reported])
    return TrajectoryRows(lon, lat, placement.first_s + stamp[reported] * placement.step_s, kept, number)


def _moved(
    network: RoadNetwork, traffic: Traffic, speed: Floats, begin: Ints, goal: Ints, appears: Ints, events: Floats
) -> tuple[Floats, Floats, Ints]:
    """Return the positions of movers at all their time stamps, and their offsets; blocks of movers run on the engine."""
    _, to, length = network.leaving

    def task(block: int) -> tuple[Floats, Floats, Ints]:
        those = slice(block * BLOCK, (block + 1) * BLOCK)
        roads, ends = shortest_routes(network, begin[those], goal[those])
        return stamps_on_routes(
            network.x, network.y, to, length, roads, ends, begin[those], speed[those], appears[those],
            traffic.lifespan, traffic.external_per_stamp, events, LIFE,
        )  # fmt: skip

    x, y, ends = zip(*engine.current().map(task, -(-len(begin) // BLOCK)), strict=True)
    points = np.concatenate([np.diff(offsets) for offsets in ends])
    return np.concatenate(x), np.concatenate(y), np.concatenate([np.zeros(1, np.int64), np.cumsum(points)])


def shortest_routes(network: RoadNetwork, begins: Ints, goals: Ints) -> tuple[Ints, Ints]:
    """Return the roads of a shortest route from each of `begins` to its goal, one after the other, and their offsets."""
    first, to, length = network.leaving
    pair = row_slices(first) * network.nodes + to
    rising = np.lexsort((length, pair))  # of several roads between two nodes the shortest counts
    pairs, place = np.unique(pair[rising], return_index=True)
    road = rising[place]
    ends = pairs // network.nodes, pairs % network.nodes
    graph = csr_array((length[road], ends), shape=(network.nodes, network.nodes))
    starts, row = np.unique(begins, return_inverse=True)
    before = dijkstra(graph, indices=starts, return_predecessors=True)[1][row]
    nodes, routes = goals, []
    while np.any(nodes != begins):
        come_from = np.where(nodes == begins, nodes, before[np.arange(len(begins)), nodes])
        routes.append(np.where(nodes == begins, -1, come_from * network.nodes + nodes))
        nodes = come_from
    steps = np.array(routes[::-1], np.int64).reshape(-1, len(begins)).T
    taken = steps >= 0
    return road[np.searchsorted(pairs, steps[taken])], np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(taken.sum(axis=1))]
    )


def _ends(network: RoadNetwork, traffic: Traffic, rng: np.random.Generator, n: int) -> tuple[Ints, Ints]:
    """Return the first and the last node of movers: of some random pairs, the one nearest to the wanted distance."""
    mean = traffic.length or LENGTH * sum(network.extent)
    wanted = mean * STRAIGHT * rng.uniform(*SPREAD, (n, 1))
    begin = rng.integers(0, network.nodes, (n, PAIRS))
    goal = (begin + rng.integers(1, network.nodes, (n, PAIRS))) % network.nodes  # never the first node
    distance = np.hypot(network.x[begin] - network.x[goal], network.y[begin] - network.y[goal])
    best = np.abs(distance - wanted).argmin(axis=1)[:, None]
    return tuple(np.take_along_axis(nodes, best, axis=1)[:, 0] for nodes in (begin, goal))  # type: ignore[return-value]


def _reported(traffic: Traffic, rng: np.random.Generator, offsets: Ints) -> Mask:
    """Return which positions movers report."""
    reported: Mask = rng.integers(0, 1000, offsets[-1]) < traffic.report
    reported[offsets[:-1]] = True
    reported[offsets[1:] - 1] = True
    return reported


def _external_objects(network: RoadNetwork, traffic: Traffic, stamps: int, seed: int) -> Floats:
    """Return a row for each external object, in the order in which they appear; columns as in `_slowed`."""
    (rng,) = generators(seed, 5, 1)
    n = stamps * traffic.external_per_stamp if traffic.external_classes else 0
    of_class = rng.choice(max(traffic.external_classes, 1), n, p=_shares(max(traffic.external_classes, 1)))
    width = LARGEST * sum(network.extent) / 2.0 ** (traffic.external_classes - 1 - of_class)
    left, bottom = network.x.min(), network.y.min()
    events = np.empty((n, 7))
    events[:, 0] = left + rng.random(n) * network.extent[0]
    events[:, 1] = bottom + rng.random(n) * network.extent[1]
    # In its lifespan it drifts at most by its largest width.
    events[:, 2:4] = rng.uniform(-1, 1, (n, 2)) * (width / LIFE)[:, None]
    events[:, 4:6] = rng.random((n, 2)) * (width / 2)[:, None]
    events[:, 6] = np.maximum(0.64 / 2.0**of_class, 0.08)
    return events


def _shares(classes: int) -> Floats:
    """Return 1/2 for the first class, 1/4 for the second, and so on; the last has the share of the one before."""
    shares: Floats = 0.5 ** np.arange(1, classes + 1, dtype=np.float64)
    shares[-1] *= 2
    return shares


def _check_width(network: RoadNetwork, placement: NetworkPlacement) -> None:
    wide = max(network.extent) * placement.unit_m
    if wide > 2e6:
        raise ParameterError(
            Text("the network is {wide:,.0f} km wide on the globe. Give {unit_m}, meters a unit.", wide=wide / 1000)
        )


@kernel
def _slowed(x: float, y: float, stamp: int, per_stamp: int, events: Floats, life: int) -> float:
    """Return the share of its speed that external objects leave a mover: the least factor of those that it is in, 1 without
    one.

    `per_stamp` objects appear at each time stamp and stay for `life` of them. The columns of `events` are the middle of each,
    how far it drifts in a time stamp, half its width and its height, and its factor.
    """
    factor = 1.0
    for i in range(max(stamp - life + 1, 0) * per_stamp, min((stamp + 1) * per_stamp, len(events))):
        age = stamp - i // per_stamp
        middle_x, middle_y = events[i, 0] + age * events[i, 2], events[i, 1] + age * events[i, 3]
        if abs(x - middle_x) <= events[i, 4] and abs(y - middle_y) <= events[i, 5]:
            factor = min(factor, events[i, 6])
    return factor


@kernel
def stamps_on_routes(
    x: Floats,
    y: Floats,
    to: Ints,
    length: Floats,
    roads: Ints,
    offsets: Ints,
    begins: Ints,
    speed: Floats,
    appears: Ints,
    lifespan: int,
    per_stamp: int,
    events: Floats,
    life: int,
) -> tuple[Floats, Floats, Ints]:
    """Return positions of movers on their routes at each time stamp from the one at which each appears, and offsets of movers.

    A mover stands at its first node, then goes on by its speed a time stamp, less where external objects slow it down at the
    beginning of the time stamp. It is last seen at its goal, or when its lifespan is over.
    """
    size, px, py = 0, np.empty(64 * len(begins) + 1), np.empty(64 * len(begins) + 1)
    ends = np.zeros(len(begins) + 1, np.int64)
    for i in range(len(begins)):
        node, road, gone, stamp = begins[i], offsets[i], 0.0, appears[i]
        here_x, here_y = x[node], y[node]
        while True:
            px, py = grow(px, size + 1), grow(py, size + 1)
            px[size], py[size] = here_x, here_y
            size += 1
            if road == offsets[i + 1] or stamp - appears[i] + 1 >= lifespan:
                break
            gone += speed[i] * _slowed(here_x, here_y, stamp, per_stamp, events, life)
            stamp += 1
            while road < offsets[i + 1] and gone >= length[roads[road]]:
                gone -= length[roads[road]]
                node = to[roads[road]]
                road += 1
            here_x, here_y = x[node], y[node]
            if road < offsets[i + 1]:
                other = to[roads[road]]
                share = gone / length[roads[road]]
                here_x += share * (x[other] - x[node])
                here_y += share * (y[other] - y[node])
        ends[i + 1] = size
    return px[:size].copy(), py[:size].copy(), ends
