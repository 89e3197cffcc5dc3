"""Add discrete Laplace noise to every pair of tiles, also empty ones, and publish the volumes above a threshold.

Guarantee
---------
DifferentialPrivacy(epsilon): whether any one person is in the data changes the chance of what is published by a factor of
e^epsilon at most; in each time step (`unit = person-step`), or in the whole release (`unit = person`). Where people are not
known, the same holds for any `trips_per_person` trips of a time step. Group sizes are not guaranteed: a published flow may be
made by one person, or by none.

Assumptions
-----------
A given seed cannot be guessed and is kept secret, since the noise can be computed from it. Without one the noise comes from
entropy of the operating system.
The list of zones and the period from the first to the last time step do not depend on the trips and are public: zones come from
a file, not from ids or coordinates of trips. Volumes are trips, each counted as one. Where people are not known, no person makes
more than `trips_per_person` trips in a time step: with m times as many, epsilon is m times as large. Epsilon adds up: over the
time steps of a release, unless `unit = person`, and over all releases of the same people. The manifest has the sum over the time
steps from the first to the last.

Notes
-----
Each pair has a volume plus the difference of two geometric numbers, P(x) ~ exp(-|x| epsilon / trips_per_person), instead of a
rounded continuous Laplace number. Noise on pairs with trips and the size of noise on empty pairs are drawn exactly, with whole
numbers (Canonne, Kamath, Steinke; with epsilon of a trip rounded down to millionths). The empty pairs that reach `min_volume` are
drawn by the distances between them, with floating-point numbers, so that no full matrix is made.

Volumes below `min_volume` are left out after the noise, which costs no privacy. Nearly all pairs of a sparse matrix are empty, so
that a low threshold publishes mostly noise, and a high one loses small flows. `auto` is 0.65 ln(pairs) trips_per_person /
epsilon, rounded up, which depends on the number of tiles alone.

Where people are known, at most `trips_per_person` trips of each person are kept in a time step, or in the whole release, drawn at
random; repeated trips of a person between the same tiles in a time step count once. Volumes are of the trips that are kept. The
draw of a person depends on that person's own trips, so that one person more or less changes no trip of another.

Every row has 95 % confidence bounds of its volume (`volume_low`, `volume_high`). They follow from the noisy volume, the noise and
the threshold alone, so they cost no privacy, and hold among the published volumes, which were chosen by their noise too: a
volume near the threshold may be nothing but noise, and its lower bound is 0. The manifest states the unit and the period of the
guarantee, and the width of bounds that hold before that choice: of a single pair, and of all pairs of a time step at once.

All time steps from the first to the last get noise and are listed, also those without trips. Suppressed totals are not published,
and the column that k is compared with repeats the noisy volume. The manifest leaves out all exact figures of a run.

References
----------
Dwork, Roth, The algorithmic foundations of differential privacy; Canonne, Kamath, Steinke, The discrete Gaussian for
differential privacy (the exact sampler); Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization
of Origin-Destination matrices (the baseline "laplace-noise", and appendix B).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, Option, Text
from crowdveil.guarantees import DifferentialPrivacy, Guarantee
from crowdveil.methods.base import Facts, Method
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, FlowRelease
from crowdveil.model.time_axis import TimeAxis
from crowdveil.params import MinVolume, Params
from crowdveil.solve.od.noisy_volumes import kept_trips, volume_bounds
from crowdveil.solve.od.step_solver import check_person_ids, summarize_figures

FINEST = 1_000_000
"""Epsilon of one trip is a whole number of parts of one over this."""
AUTO_SHARE = 0.65
"""The automatic threshold as a share of ln(pairs) / rate, at which about one empty pair of a matrix would be published. The
error of reconstructed cells is smallest near it, on hours of taxi trips (docs/choosing-a-method.md)."""
CONFIDENCE = Fraction(95, 100)


class LaplaceParams(Params):
    """Parameters of Laplace noise."""

    epsilon: float = Field(1.0, ge=0.001, le=100)
    """Privacy loss: probabilities differ by at most a factor of e^epsilon. Smaller is safer."""
    trips_per_person: int = Field(1, ge=1, le=1000)
    """Trips of a person that are kept; where people are not known, trips that are protected together."""
    unit: Literal["person-step", "person"] = "person-step"
    """The protected unit: a person in each time step, or a person in the whole release."""
    min_volume: MinVolume = "auto"
    """Smallest noisy volume that is published; auto is 0.65 × ln(pairs of tiles) × trips per person / epsilon."""

    @property
    def rate(self) -> Fraction:
        """Return epsilon of one trip, rounded down: noise x has a chance that falls with exp(-|x| rate)."""
        return Fraction(max(1, math.floor(self.epsilon * FINEST / self.trips_per_person)), FINEST)

    def epsilon_of_release(self, steps: int) -> float:
        """Return the sum of epsilon over the time steps of a release: those with and without trips."""
        return round(self.epsilon * (1 if self.unit == "person" else steps), 6)

    def threshold(self, cells: int) -> int:
        """Return the smallest published volume of a matrix with a number of cells."""
        if self.min_volume != "auto":
            return self.min_volume
        return max(1, math.ceil(AUTO_SHARE * math.log(max(cells, 1)) / float(self.rate)))


def run(data: Flows, params: LaplaceParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Limit the trips of each person where people are known, and draw the noise of each time step."""
    root = rng.integers(0, 2**32, 4).tolist()
    trips, data = _trips(data, params, root), _whole_period(data)
    n, pairs, volumes = len(data.zones), [], []
    for step in range(data.steps):
        # A generator for each time step, by its time: its noise does not depend on other steps.
        own = np.random.default_rng([*root, int(data.t[step]) % 2**64])
        rows = np.arange(data.offsets[step], data.offsets[step + 1])
        rows = rows[trips[rows] > 0]
        pair = data.origin[rows].astype(np.int64) * n + data.destination[rows]
        noisy, volume = noisy_matrix(pair, trips[rows], n * n, params, own)
        pairs.append(noisy)
        volumes.append(volume)
        progress(step + 1, data.steps)
    none = np.zeros(0, np.int64)
    origin, destination = np.divmod(np.concatenate([none, *pairs]), max(n, 1))
    volume = np.concatenate([none, *volumes])
    figures = _figures(data)
    bounds = volume_bounds(volume, float(params.rate), params.threshold(n * n), float(1 - CONFIDENCE))
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
        facts=summarize_figures(figures, lambda known: summarize_diagnostics(params, known)),
        figures=figures,
        bounds=bounds,
    )


def _whole_period(data: Flows) -> Flows:
    """Return flows with all time steps from the first to the last, also those without trips."""
    if data.step_s is None or data.steps == 0:
        return data
    starts, _ = TimeAxis(data.step_s, data.tz).between(int(data.t[0]), int(data.t[-1]))
    # Times of flows that have time steps of their own may lie between these.
    t = np.union1d(starts, data.t)
    t = t[(t >= data.t[0]) & (t <= data.t[-1])]
    counts = np.zeros(len(t), np.int64)
    counts[np.searchsorted(t, data.t)] = np.diff(data.offsets)
    return replace(data, t=t, offsets=np.concatenate([[0], np.cumsum(counts)]))


def _trips(data: Flows, params: LaplaceParams, root: list[int]) -> Ints:
    """Return the trips of each flow that noise is added to."""
    if data.weight is not None or (data.k_unit == "trips" and not np.array_equal(data.volume, data.people)):
        raise InputError("laplace needs trips that count as one each, but volumes are weighted. Leave out the weights.")
    check_person_ids(data)
    if data.k_unit == "people":
        return kept_trips(data, params.trips_per_person, root, whole_release=params.unit == "person")
    if params.unit == "person":
        raise InputError(
            Option("unit"),
            Text(
                "Expected person-step, since people are not known, and the trips of a person cannot be limited. Name the "
                "column of people with {user}, or leave out {unit}."
            ),
        )
    return data.volume


def _figures(data: Flows) -> Floats:
    """Return for each time step the number of tiles, and whether people are known."""
    return np.tile([float(len(data.zones)), float(data.k_unit == "people")], (data.steps, 1))


def summarize_diagnostics(params: LaplaceParams, facts: Floats) -> dict[str, Any]:
    """Return the unit and the period that epsilon is for, its sum, the threshold, and the width of confidence bounds."""
    (tiles, people), steps = facts[0].tolist(), len(facts)
    cells, whole_release = int(tiles) ** 2, params.unit == "person"
    single, all_pairs = (noise_bound(params.rate, count) for count in (1, cells))
    return {
        "privacy_unit": "person" if people else "trip" if params.trips_per_person == 1 else "trips",
        "privacy_period": "release" if whole_release else "time step",
        "epsilon_of_the_release": params.epsilon_of_release(steps),
        "smallest_published_volume": params.threshold(cells),
        "confidence_95_of_a_volume": f"± {single:,}",
        "confidence_95_of_all_volumes_of_a_step": f"± {all_pairs:,}",
    }


def noise_bound(rate: Fraction, cells: int) -> int:
    """Return the smallest w such that the noise of all cells is within ± w with a chance of at least `CONFIDENCE`.

    Noise of one cell is beyond w with the chance 2 alpha^(w + 1) / (1 + alpha), alpha = exp(-rate); cells are independent.
    """
    beyond = -math.expm1(math.log(CONFIDENCE) / max(cells, 1))
    alpha = math.exp(-float(rate))
    return max(0, math.ceil(math.log(2 / (beyond * (1 + alpha))) / float(rate)) - 1)


def noisy_matrix(
    pair: Ints, volume: Ints, cells: int, params: LaplaceParams, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return the published pairs of a matrix, rising, and their noisy volumes.

    Parameters
    ----------
    pair, volume
        Pairs with trips, rising, as numbers below `cells`; and their volumes.
    """
    rate, threshold = params.rate, params.threshold(cells)
    filled = volume + two_sided(rate, len(volume), rng)
    keep = filled >= threshold
    empty = pick(cells - len(pair), above(rate, threshold), rng)
    # The r-th number that is no pair: the pairs below it are those with at most r others below them.
    others = empty + np.searchsorted(pair - np.arange(len(pair)), empty, side="right")
    drawn = threshold + one_sided(rate, len(others), rng)
    pairs, volumes = np.concatenate([pair[keep], others]), np.concatenate([filled[keep], drawn])
    order = np.argsort(pairs)
    return pairs[order], volumes[order]


def above(rate: Fraction, threshold: int) -> float:
    """Return the chance that noise is at least `threshold`, which is above zero: α^threshold / (1 + α) with α = exp(-rate)."""
    return math.exp(-float(rate) * threshold) / (1 + math.exp(-float(rate)))


def pick(cells: int, chance: float, rng: np.random.Generator) -> Ints:
    """Return the cells that are drawn, rising, each with the same chance: distances between them are geometric."""
    found, last = [np.zeros(0, np.int64)], -1
    while chance > 0 and last < cells:
        expected = (cells - last) * chance
        # A distance beyond all cells only means that there is none; without a bound the sum may overflow.
        distance = np.minimum(rng.geometric(chance, int(expected + 4 * math.sqrt(expected) + 8)), cells + 1)
        at = last + np.cumsum(distance)
        found.append(at[at < cells])
        last = int(at[-1])
    return np.concatenate(found)


def two_sided(rate: Fraction, size: int, rng: np.random.Generator) -> Ints:
    """Return whole numbers x with chances in proportion to exp(-|x| rate)."""
    noise = np.zeros(size, np.int64)
    left = np.arange(size)
    while len(left):
        value, negative = one_sided(rate, len(left), rng), rng.integers(0, 2, len(left)) == 1
        noise[left] = np.where(negative, -value, value)
        left = left[negative & (value == 0)]  # or 0 would be twice as frequent as it should
    return noise


def one_sided(rate: Fraction, size: int, rng: np.random.Generator) -> Ints:
    """Return whole numbers x from 0 with chances in proportion to exp(-x rate)."""
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
    """Return True with chance exp(-x / t), for x up to t: the first n without success of chance x / (t n) is odd."""
    n = np.ones(len(x), np.int64)
    left = np.arange(len(x))
    while len(left):
        left = left[rng.integers(0, t * n[left]) < x[left]]
        n[left] += 1
    odd: Mask = n % 2 == 1
    return odd


def guarantees(params: LaplaceParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return differential privacy."""
    return (
        DifferentialPrivacy(
            epsilon=params.epsilon,
            trips=params.trips_per_person,
            unit="person" if facts.k_unit == "people" else "trips",
            period="release" if params.unit == "person" else "step",
        ),
    )


def partitioning(params: LaplaceParams) -> str:
    """Return why the data cannot be partitioned, as it follows "since"."""
    if params.unit == "person":
        return "trips of a person are limited over all time steps"
    return "all time steps of the period get noise, also those without trips"


METHOD = Method(
    "laplace",
    takes=Flows,
    params=LaplaceParams,
    run=run,
    guarantees=guarantees,
    status="argued",
    summarize_diagnostics=summarize_diagnostics,
    partitioning=partitioning,
    needs_person_ids=True,
    needs_zones=True,
    row_semantics="noisy",
    aliases=("laplace-noise",),
)
