"""Make synthetic OD matrices of the size and shape of the data sets in a published benchmark.

The figures are those of Table 2 of "Adaptative generalization over a value hierarchy for the k-anonymization of
Origin-Destination matrices": tiles, flows, volume, and the shares of flows and of volume that reach 10. The data of most rows
are not public; these matrices replace them.

Notes
-----
- Tiles cluster in cities of very unequal size. Pairs are drawn without replacement by gravity (attraction × attraction
  × a power of the distance × noise that is constant over all hours), and the larger volumes go to the heavier pairs, with noise.
- Volumes below 10 and from 10 on each follow a power law with the mean of the row; none exceeds ten times the mean of the
  latter. With that bound, splitting `senegal_big` as the paper did gives its row `senegal_split`.
- `senegal_split` is made as in the paper: every tile of a `senegal_big` becomes four, and each trip falls on one of
  the 16 pairs with the chances (0.4, 0.3, 0.2, 0.1) at either end.
- `senegal_crop` takes the 599 western-most tiles of a map of 1,666.
- The row `civ` is impossible: 3,117 trips cannot fill 3,523 flows. Its flows and both shares are kept. The 0.3 % of
  3,523 flows that have 10 trips or more hold 106 trips at least; these are 2.6 % of the volume, so the volume is at
  least 4,065. It is set to 5,000: large flows then have 12.3 trips on average and the others 1.39, close to `senegal`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.errors import ParameterError
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.projection import LocalProjection
from crowdveil.model.tessellation import voronoi_zones
from crowdveil.model.zones import Zones
from crowdveil.synth.city import require_between

BIG = 10
STEP_S = 3600
FIRST_S = 1_772_409_600
"""2026-03-02, a Monday, UTC."""
MAX_MATRICES = 100_000
LARGEST = 10
"""The largest flow, in means of the flows from `BIG` on."""
SPLIT = (0.4, 0.3, 0.2, 0.1)


@dataclass(frozen=True)
class Profile:
    """The shape of the matrices of a data set; figures are averages over its matrices."""

    tiles: int
    flows: int
    """Pairs of tiles with a trip."""
    volume: int
    """Trips."""
    big_flows: float
    """Share of the flows that have 10 trips or more."""
    big_volume: float
    """Share of the volume in flows of 10 trips or more."""
    lon: float
    """Middle of the map, degrees."""
    lat: float
    half_m: float
    """Half the side of the map."""
    cities: int
    """Clusters of tiles, the first the largest."""
    capital: tuple[float, float]
    """Position of the largest city, from -1 (west, south) to 1."""
    inner: bool = False
    """Whether trips inside a tile count."""
    western_of: int | None = None
    """Number of tiles of the larger map of which these are the western-most."""
    split_of: str | None = None
    """The profile whose tiles and trips are split to make this one."""


PROFILES: dict[str, Profile] = {
    "nyc": Profile(263, 3058, 15_009, 0.158, 0.590, -73.94, 40.72, 22_000, 5, (-0.1, 0.2), inner=True),
    "civ": Profile(1221, 3523, 5_000, 0.003, 0.026, -5.55, 7.54, 300_000, 14, (0.5, -0.8)),
    "senegal": Profile(1666, 18_276, 41_027, 0.057, 0.368, -14.45, 14.50, 250_000, 14, (-0.95, 0.1)),
    "senegal_crop": Profile(
        599, 13_710, 29_614, 0.058, 0.378, -14.45, 14.50, 250_000, 14, (-0.95, 0.1), western_of=1666
    ),
    "senegal_split": Profile(
        6664, 305_194, 956_742, 0.065, 0.460, -14.45, 14.50, 250_000, 14, (-0.95, 0.1), split_of="senegal_big"
    ),
    "senegal_big": Profile(1666, 100_322, 956_742, 0.123, 0.807, -14.45, 14.50, 250_000, 14, (-0.95, 0.1)),
}


def make_profile(name: str, rng: np.random.Generator, matrices: int = 1) -> Flows:
    """Make hourly matrices in the shape of a data set, over one map.

    Parameters
    ----------
    name
        One of `PROFILES`.
    rng
        The source of all random choices; the same state gives the same flows.
    matrices
        Number of hours. Each differs a little in its number of flows.
    """
    if name not in PROFILES:
        raise ParameterError(f"there is no profile {name!r}. Choose one of {', '.join(PROFILES)}.")
    require_between("matrices", matrices, 1, MAX_MATRICES)
    profile = PROFILES[name]
    if profile.split_of is not None:
        return _split(make_profile(profile.split_of, rng, matrices), rng)
    zones, attraction = _map(profile, rng)
    pull = _log_gravity(profile, zones, attraction, rng)
    return _flows(zones, [_matrix(profile, pull, rng) for _ in range(matrices)])


def _map(profile: Profile, rng: np.random.Generator) -> tuple[Zones, Floats]:
    """Return clustered tiles and their attraction, which is heavy-tailed."""
    drawn = profile.western_of or profile.tiles
    # Cities by Zipf's law have five tiles in six; the rest is countryside, cluster -1.
    share = 1 / np.arange(1, profile.cities + 1)
    share /= share.sum() * 1.2
    city = rng.choice(np.arange(-1, profile.cities), drawn, p=np.concatenate([[1 - share.sum()], share]))
    middle = rng.uniform(-0.9, 0.9, (profile.cities, 2))
    middle[0] = profile.capital
    width = 0.12 * np.sqrt(share)
    # Student's t: a dense core and a long sparse edge.
    around = middle[city] + width[city, None] * rng.standard_t(3, (drawn, 2))
    x, y = np.where(city[:, None] < 0, rng.uniform(-1, 1, (drawn, 2)), np.clip(around, -1.5, 1.5)).T * profile.half_m
    attraction = rng.lognormal(0.0, 1.0, drawn)
    keep = np.sort(np.argsort(x, kind="stable")[: profile.tiles])
    return _cells(profile, x[keep], y[keep]), attraction[keep]


def _cells(profile: Profile, x: Floats, y: Floats) -> Zones:
    """Return the Voronoi cells of points, so that boxes of areas meet tiles as on a real map."""
    lon, lat = LocalProjection(profile.lon, profile.lat).to_globe(x, y)
    return voronoi_zones(np.arange(len(x)), lon, lat)


def _log_gravity(profile: Profile, zones: Zones, attraction: Floats, rng: np.random.Generator) -> Floats:
    """Return the logarithm of the gravity of every pair, row by row; a dense square of 1,666 tiles at most."""
    x, y = zones.xy
    n = len(zones)
    near_m = profile.half_m / np.sqrt(n)
    log_attraction = np.log(attraction)
    pull = 0.8 * rng.standard_normal((n, n))
    pull += log_attraction[:, None] + log_attraction
    pull -= 2.0 * np.log1p(np.hypot(x[:, None] - x, y[:, None] - y) / near_m)
    if not profile.inner:
        np.fill_diagonal(pull, -np.inf)
    return pull.ravel()


def _matrix(profile: Profile, pull: Floats, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return pairs (origin × tiles + destination) and volumes of one hour."""
    flows = round(profile.flows * rng.uniform(0.95, 1.05))
    # The greatest of weight + Gumbel noise, in logarithms, are a weighted sample without replacement.
    # Sorted, since the order in which a partition returns them differs between machines.
    pairs = np.sort(np.argpartition(-(pull + rng.gumbel(size=len(pull))), flows)[:flows])
    order = np.argsort(pull[pairs] + 0.7 * rng.standard_normal(flows), kind="stable")
    return pairs[order], _volumes(profile, flows, rng)


def _volumes(profile: Profile, flows: int, rng: np.random.Generator) -> Ints:
    """Return rising volumes of `flows` flows, with the profile's shares of flows and of volume from 10 on."""
    big = round(flows * profile.big_flows)
    total = profile.volume * flows / profile.flows
    small_mean, big_mean = total * (1 - profile.big_volume) / (flows - big), total * profile.big_volume / big
    small = _power_law(1, BIG - 1, small_mean, flows - big, rng)
    return np.concatenate([small, _power_law(BIG, round(LARGEST * big_mean), big_mean, big, rng)])


def _power_law(low: int, high: int, mean: float, n: int, rng: np.random.Generator) -> Ints:
    """Return `n` rising whole numbers from `low` to `high`, by a power law with the given mean.

    One is drawn from each of `n` equal parts of the distribution, so that even a few have about its mean.
    """
    values = np.arange(low, high + 1, dtype=np.float64)
    lower, upper = -20.0, 40.0
    for _ in range(60):
        exponent = (lower + upper) / 2
        weight = (values / low) ** -exponent
        lower, upper = (exponent, upper) if weight @ values > mean * weight.sum() else (lower, exponent)
    running = np.cumsum((values / low) ** -lower)
    part = (np.arange(n) + rng.random(n)) / n
    return low + np.searchsorted(running[:-1] / running[-1], part, side="right")


def _flows(zones: Zones, matrices: list[tuple[Ints, Ints]]) -> Flows:
    """Put matrices of (pairs, volumes) into one sorted table, an hour each."""
    orders = [np.argsort(pairs, kind="stable") for pairs, _ in matrices]
    pair = np.concatenate([pairs[order] for (pairs, _), order in zip(matrices, orders, strict=True)])
    volume = np.concatenate([volumes[order] for (_, volumes), order in zip(matrices, orders, strict=True)])
    offsets = np.concatenate([[0], np.cumsum([len(pairs) for pairs, _ in matrices])])
    t = FIRST_S + STEP_S * np.arange(len(matrices))
    origin, destination = np.divmod(pair, len(zones))
    return Flows(
        zones,
        t,
        offsets,
        origin.astype(np.int32),
        destination.astype(np.int32),
        volume,
        volume,
        k_unit="trips",
        step_s=STEP_S,
    )


def _split(whole: Flows, rng: np.random.Generator) -> Flows:
    """Split every tile into four, and assign every trip to one of the 16 resulting pairs."""
    parts, tiles = len(SPLIT), len(whole.zones) * len(SPLIT)
    matrices = []
    for first, last in zip(whole.offsets[:-1], whole.offsets[1:], strict=True):
        rows = slice(first, last)
        volume = rng.multinomial(whole.volume[rows], np.outer(SPLIT, SPLIT).ravel())
        row, cell = np.nonzero(volume)
        start, end = np.divmod(cell, parts)
        origin = whole.origin[rows][row].astype(np.int64) * parts + start
        destination = whole.destination[rows][row].astype(np.int64) * parts + end
        matrices.append((origin * tiles + destination, volume[row, cell]))
    return _flows(_split_zones(whole.zones), matrices)


def _split_zones(zones: Zones) -> Zones:
    """Return four tiles around each, shifted to either side by a quarter of the distance to its nearest neighbor."""
    x, y = zones.xy
    distance = np.hypot(x[:, None] - x, y[:, None] - y)
    np.fill_diagonal(distance, np.inf)
    off = distance.min(axis=1, keepdims=True) / 4
    four_x, four_y = x[:, None] + off * [-1, 1, -1, 1], y[:, None] + off * [-1, -1, 1, 1]
    lon, lat = zones.projection.to_globe(four_x.ravel(), four_y.ravel())
    ids = np.array([f"{i}.{j}" for i in range(len(zones)) for j in range(len(SPLIT))], dtype=object)
    return voronoi_zones(ids, lon, lat)
