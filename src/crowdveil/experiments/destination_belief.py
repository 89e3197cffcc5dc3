"""Measure what a release adds to a belief about the destination of a trip (probabilistic attack).

The adversary knows the origin tile and the time step of a person's trip, and believes that the published flows describe it.
Before the release the belief about the destination is the prior: the destinations of all published trips of the time step, as a
census or a map of jobs would give them, or every tile alike. With the release it is the posterior: the destinations of the
published trips from that tile. Trips of an area are spread evenly over its tiles.

Reported are the divergence of the posterior from the prior (Kullback-Leibler, in bits), the largest ratio of the two for a single
destination tile, and the mean probability that either gives to the actual destination, if it is drawn from the posterior.

Notes
-----
No k protects from it, and the person need not be in the data: flows that describe a population describe its members. It is
measured, not guaranteed. The divergence is 0 if all origins have the same destinations; t-closeness bounds another distance
between the same distributions. Where rows overlap, their shares in a pair of tiles are added.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices
(section 1).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams
from crowdveil.attacks.od.published import Published
from crowdveil.errors import counted
from crowdveil.model.arrays import Floats, Indices, Ints, row_slices, take_slices
from crowdveil.model.release import FlowRelease

MAX_TILES = 3000
"""Largest map on which overlapping rows are added up pair by pair."""


class BeliefParams(FlowAttackParams):
    """Parameters of the belief about a destination."""

    prior: Literal["margins", "uniform"] = "margins"
    """Belief before the release: the destinations of all trips of the time step, or every tile alike."""


class Beliefs(NamedTuple):
    """Beliefs of each origin tile of each time step that has trips.

    Attributes
    ----------
    weight
        Trips that leave the tile.
    divergence
        Kullback-Leibler divergence of the posterior from the prior, bits.
    ratio
        Largest ratio of posterior and prior for one destination tile.
    prior, posterior
        Mean probability of the actual destination.
    """

    weight: Floats
    divergence: Floats
    ratio: Floats
    prior: Floats
    posterior: Floats


def run(published: Published, params: BeliefParams) -> Exposure:
    """Measure the divergence, the largest ratio and both beliefs over origin tiles and time steps."""
    release = published.release
    overlapping = published.row_semantics == "overlapping"
    if overlapping and len(release.areas.zones) > MAX_TILES:
        sentence = f"The belief was not computed: rows overlap, and the map has more than {MAX_TILES:,} tiles."
        return Exposure(ATTACK.name, ATTACK.title, _values(_NOTHING), None, False, sentence)
    step, _ = published.margins(np.zeros(len(release), np.int32), over_steps=False)
    steps = int(step.max(initial=-1)) + 1
    solve = _of_pairs if overlapping else _of_rows
    order, some = np.argsort(step, kind="stable"), release.volume > 0
    each = np.split(order, np.cumsum(np.bincount(step, minlength=steps))[:-1]) if steps else []
    found = [solve(release, rows[some[rows]], params.prior) for rows in each if some[rows].any()]
    beliefs = (
        Beliefs(*(np.concatenate([_NOTHING[0], *column]) for column in zip(*found, strict=True))) if found else _NOTHING
    )
    values = _values(beliefs)
    sentence = (
        f"{counted(len(beliefs.weight), 'origin tile')} of time steps checked; the release gives an adversary with a known "
        f"origin {values['divergence_bits_mean'] or 0:.3g} bits about a destination on average, and makes one at most "
        f"{values['ratio_largest'] or 1:.3g} times as likely as before."
    )
    return Exposure(ATTACK.name, ATTACK.title, values, None, False, sentence)


_NOTHING = Beliefs(*(np.zeros(0) for _ in range(5)))


def _values(beliefs: Beliefs) -> dict[str, float | int | None]:
    """Return means over trips, and the largest values."""
    total = float(beliefs.weight.sum())

    def mean(values: Floats) -> float | None:
        return round(float((values * beliefs.weight).sum() / total), 4) if total else None

    def largest(values: Floats) -> float | None:
        return round(float(values.max()), 4) if total else None

    return {
        "origin_tiles": len(beliefs.weight),
        "divergence_bits_mean": mean(beliefs.divergence),
        "divergence_bits_largest": largest(beliefs.divergence),
        "ratio_mean": mean(beliefs.ratio),
        "ratio_largest": largest(beliefs.ratio),
        "prior_belief_percent_mean": None if total == 0 else round(100 * (mean(beliefs.prior) or 0.0), 2),
        "posterior_belief_percent_mean": None if total == 0 else round(100 * (mean(beliefs.posterior) or 0.0), 2),
    }


def _prior(release: FlowRelease, rows: Ints, how: str) -> Floats:
    """Return the probability of each tile as a destination before the release."""
    tiles = len(release.areas.zones)
    if how == "uniform":
        return np.full(tiles, 1 / max(tiles, 1))
    row, tile = _spread(release, release.destination[rows])
    volume = release.volume[rows] / release.areas.size[release.destination[rows]]
    spread = _sums(tile, volume[row], tiles)
    shares: Floats = spread / spread.sum()
    return shares


def _spread(release: FlowRelease, area: Indices) -> tuple[Ints, Ints]:
    """Return the position and the tile of each tile of these areas."""
    taken, offsets = take_slices(release.areas.offsets, area.astype(np.int64))
    return row_slices(offsets), release.areas.tiles[taken].astype(np.int64)


def _sums(number: Ints, values: Floats, size: int) -> Floats:
    return np.bincount(number, values, size).astype(np.float64)


def _of_rows(release: FlowRelease, rows: Ints, how: str) -> Beliefs:
    """Return the beliefs of a time step whose rows share no pair of tiles: each destination tile is in one row of an origin."""
    prior = _prior(release, rows, how)
    _, tile = _spread(release, release.destination[rows])
    size = release.areas.size[release.destination[rows]].astype(np.float64)
    starts = np.concatenate([[0], np.cumsum(size[:-1])]).astype(np.int64)
    mean_log = np.add.reduceat(np.log2(prior[tile]), starts) / size
    mean_prior, least = np.add.reduceat(prior[tile], starts) / size, np.minimum.reduceat(prior[tile], starts)
    at, origin = _spread(release, release.origin[rows])
    tiles = len(release.areas.zones)
    share = (release.volume[rows] / release.areas.size[release.origin[rows]])[at]
    leaving = _sums(origin, share, tiles)
    chance = share / leaving[origin]  # of the row, given the origin tile
    each = chance / size[at]  # of each destination tile in it
    ratio = np.zeros(tiles)
    np.maximum.at(ratio, origin, each / least[at])
    found = Beliefs(
        leaving,
        _sums(origin, chance * (np.log2(each) - mean_log[at]), tiles),
        ratio,
        _sums(origin, chance * mean_prior[at], tiles),
        _sums(origin, chance * each, tiles),
    )
    return Beliefs(*(values[leaving > 0] for values in found))


def _of_pairs(release: FlowRelease, rows: Ints, how: str) -> Beliefs:
    """Return the beliefs of a time step whose rows overlap, from the added volumes of each pair of tiles."""
    prior, tiles = _prior(release, rows, how), len(release.areas.zones)
    matrix = np.zeros((tiles, tiles))
    areas = release.areas
    for row in rows.tolist():
        ends = [
            areas.tiles[areas.offsets[a] : areas.offsets[a + 1]]
            for a in (release.origin[row], release.destination[row])
        ]
        matrix[np.ix_(*ends)] += release.volume[row] / (len(ends[0]) * len(ends[1]))
    leaving = matrix.sum(axis=1)
    posterior = matrix[leaving > 0] / leaving[leaving > 0, None]
    likely = posterior > 0
    ratio = np.divide(posterior, prior, out=np.zeros_like(posterior), where=likely)
    divergence = (posterior * np.log2(ratio, out=np.zeros_like(ratio), where=likely)).sum(axis=1)
    return Beliefs(leaving[leaving > 0], divergence, ratio.max(axis=1), posterior @ prior, (posterior**2).sum(axis=1))


ATTACK = Attack(
    "destination-belief",
    "belief about a destination",
    takes=FlowRelease,
    params=BeliefParams,
    run=run,
    aliases=("probabilistic",),
)
