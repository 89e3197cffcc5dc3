"""Add discrete Laplace noise to every pair of tiles, empty ones too, and publish the volumes that are above zero.

Guarantee
---------
DifferentialPrivacy(epsilon): in each time step, whether any one trip (or any `most_trips` trips) took place changes the chance
of what is published by a factor of e^epsilon at most. Crowds are not guaranteed: a published flow may be made by one person, or
by nobody.

Assumptions
-----------
Owed by the caller: a seed, where one is given, cannot be guessed and is kept secret, since who has it can make the noise again.
Without one the noise comes from entropy of the operating system.
The list of zones does not depend on who traveled (a file of zones or a grid, not the ids that
occur in trips). Volumes are trips, each counted as one. Nobody makes more than `most_trips` trips in a time step: who makes m
times as many has m times epsilon. Time steps add up: a person in T of them has T times epsilon.

Notes
-----
A rival that others are measured against; on sparse matrices the noise on empty pairs outweighs the trips. Each pair has a volume
plus the difference of two geometric numbers, P(x) ~ exp(-|x| epsilon / most_trips), in place of a rounded continuous
Laplace number; what is below `least_volume` is left out, as the paper does below 1. That is done after the noise, and costs no
privacy. Noise on pairs with trips and the size of noise on empty pairs are drawn exactly, with whole numbers (Canonne, Kamath,
Steinke; with epsilon of a trip rounded down to millionths). Which empty pairs reach `least_volume` is drawn by the
distances between them, with floating-point numbers, so that no full matrix is made.

The time steps are those that have trips in the data, or that lie in its calendar: which ones these are is data too, and is not
hidden. Nothing is told of what is suppressed, and the column that k would be compared with repeats the noisy volume. The
manifest leaves out all exact figures of a run.

References
----------
Dwork, Roth, The algorithmic foundations of differential privacy; Canonne, Kamath, Steinke, The discrete Gaussian for differential
privacy (the exact sampler); Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of
Origin-Destination matrices (the rival "laplace-noise", and appendix B).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from pydantic import Field

from crowdveil.errors import InputError
from crowdveil.guarantees import DifferentialPrivacy, Guarantee
from crowdveil.method import INDEPENDENT, Method
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, Areas, FlowRelease
from crowdveil.params import Params
from crowdveil.progress import Progress

FINEST = 1_000_000
"""Epsilon of one trip is a whole number of parts of one over this."""


class LaplaceParams(Params):
    """Parameters of Laplace noise."""

    epsilon: float = Field(1.0, ge=0.001, le=100)
    """How much a trip may show: chances differ by a factor of e^epsilon at most. Smaller is safer."""
    most_trips: int = Field(1, ge=1, le=1000)
    """Trips of one person in a time step that are hidden together."""
    least_volume: int = Field(1, ge=1)
    """Least noisy volume that is published."""

    @property
    def rate(self) -> Fraction:
        """Epsilon of one trip, rounded down: noise x has a chance that falls with exp(-|x| rate)."""
        return Fraction(max(1, math.floor(self.epsilon * FINEST / self.most_trips)), FINEST)


def run(data: Flows, params: LaplaceParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Draw the noise of each time step."""
    if data.weight is not None or (data.counts == "trips" and not np.array_equal(data.volume, data.people)):
        raise InputError("laplace needs trips that count as one each, but volumes are weighted; leave out the weights.")
    n, pairs, volumes = len(data.zones), [], []
    root = rng.integers(0, 2**32, 4).tolist()
    for step in range(data.steps):
        # A generator for each time step, by its time: its noise is the same whatever other steps there are.
        own = np.random.default_rng([*root, int(data.t[step]) % 2**64])
        rows = slice(data.offsets[step], data.offsets[step + 1])
        pair = data.origin[rows].astype(np.int64) * n + data.destination[rows]
        noisy, volume = noisy_matrix(pair, data.volume[rows], n * n, params, own)
        pairs.append(noisy)
        volumes.append(volume)
        progress(step + 1, data.steps)
    none = np.zeros(0, np.int64)
    origin, destination = np.divmod(np.concatenate([none, *pairs]), max(n, 1))
    volume = np.concatenate([none, *volumes])
    return FlowRelease(
        Areas.of_tiles(data.zones, np.arange(n, dtype=np.int32)),
        data.t,
        np.cumsum([0, *map(len, pairs)]),
        origin.astype(np.int32),
        destination.astype(np.int32),
        volume,
        volume,
        np.full(len(volume), PUBLISHED, np.uint8),
        np.full(data.steps, NOT_GIVEN),
        "trips",
        data.step_s,
        data.tz,
    )


def noisy_matrix(
    pair: Ints, volume: Ints, cells: int, params: LaplaceParams, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """The pairs that are published of a matrix, rising, and their noisy volumes.

    Parameters
    ----------
    pair, volume
        Pairs with trips, rising, as numbers below `cells`; and how many.
    """
    rate, least = params.rate, params.least_volume
    filled = volume + two_sided(rate, len(volume), rng)
    keep = filled >= least
    empty = pick(cells - len(pair), above(rate, least), rng)
    # The r-th number that is no pair: as many pairs lie below it as have at most r others below them.
    others = empty + np.searchsorted(pair - np.arange(len(pair)), empty, side="right")
    drawn = least + one_sided(rate, len(others), rng)
    pairs, volumes = np.concatenate([pair[keep], others]), np.concatenate([filled[keep], drawn])
    order = np.argsort(pairs)
    return pairs[order], volumes[order]


def above(rate: Fraction, least: int) -> float:
    """The chance that noise is at least `least`, which is above zero: α^least / (1 + α) with α = exp(-rate)."""
    return math.exp(-float(rate) * least) / (1 + math.exp(-float(rate)))


def pick(cells: int, chance: float, rng: np.random.Generator) -> Ints:
    """Which of so many cells come up, rising, each with a chance of its own: distances between them are geometric."""
    found, last = [np.zeros(0, np.int64)], -1
    while chance > 0 and last < cells:
        expected = (cells - last) * chance
        # Distances beyond all cells say no more than that there is none; without a bound their sum may overflow.
        apart = np.minimum(rng.geometric(chance, int(expected + 4 * math.sqrt(expected) + 8)), cells + 1)
        at = last + np.cumsum(apart)
        found.append(at[at < cells])
        last = int(at[-1])
    return np.concatenate(found)


def two_sided(rate: Fraction, size: int, rng: np.random.Generator) -> Ints:
    """Whole numbers x with chances in proportion to exp(-|x| rate)."""
    noise = np.zeros(size, np.int64)
    left = np.arange(size)
    while len(left):
        value, negative = one_sided(rate, len(left), rng), rng.integers(0, 2, len(left)) == 1
        noise[left] = np.where(negative, -value, value)
        left = left[negative & (value == 0)]  # or 0 would come up twice as often as it should
    return noise


def one_sided(rate: Fraction, size: int, rng: np.random.Generator) -> Ints:
    """Whole numbers x from 0 with chances in proportion to exp(-x rate)."""
    s, t = rate.as_integer_ratio()
    rest = np.zeros(size, np.int64)
    left = np.arange(size)
    while len(left):
        rest[left] = rng.integers(0, t, len(left))
        left = left[~falls(rest[left], t, rng)]
    rounds = np.zeros(size, np.int64)
    left = np.arange(size)
    while len(left):
        left = left[falls(np.ones(len(left), np.int64), 1, rng)]
        rounds[left] += 1
    whole: Ints = (rest + t * rounds) // s
    return whole


def falls(x: Ints, t: int, rng: np.random.Generator) -> Mask:
    """True with chance exp(-x / t), for x up to t: the first n without success of chance x / (t n) is odd."""
    n = np.ones(len(x), np.int64)
    left = np.arange(len(x))
    while len(left):
        left = left[rng.integers(0, t * n[left]) < x[left]]
        n[left] += 1
    odd: Mask = n % 2 == 1
    return odd


def guarantees(data: Flows, params: LaplaceParams) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    return (DifferentialPrivacy(epsilon=params.epsilon, most_trips=params.most_trips),)


METHOD = Method(
    "laplace",
    takes=Flows,
    params=LaplaceParams,
    run=run,
    guarantees=guarantees,
    status="argued",
    doc=__doc__ or "",
    partitioning=INDEPENDENT,
    row_semantics="noisy",
    aliases=("laplace-noise",),
)
