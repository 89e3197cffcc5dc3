"""Compare the original with a release whose rows are spread evenly over their cells: cells, margins and trip lengths.

E and D compare cells; common part, cosine and Jensen-Shannon are the similarities of transport research. Lengths are compared by
the Wasserstein distance of the two distributions of distances between centroids: the mean change of length, in kilometers, that
turns one into the other. Distances are counted on a ruler of 1,000 marks from 0 to the diagonal of the map; one between two
marks counts partly at either, which leaves means exact.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from crowdveil.kernels.od.release_rows import add_lengths
from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, Indices, frozen, take_slices
from crowdveil.model.flows import Flows


def error(compared: OdComparison) -> Floats:
    """Return E: Σ |ṽ − v| / Σ v over all cells."""
    if compared.row is None:
        filled = compared.of_flows(np.abs(compared.original.volume - compared.rebuilt))
    else:
        filled = compared.of_differences(compared.original.volume, compared.level)
    return ratio(filled + compared.outside, compared.volume)


def distance(compared: OdComparison) -> Floats:
    """Return D: Σ |ṽ / Σ ṽ − v / Σ v| over all cells."""
    if compared.level_share is None:
        filled = compared.of_flows(np.abs(compared.rebuilt_share - compared.volume_share))
    else:
        filled = compared.of_differences(compared.volume_share, compared.level_share)
    # Where nothing is published there is no distribution to compare with.
    empty = ratio(compared.outside, compared.published)
    return np.where(compared.volume > 0, filled + empty, np.nan)


def common_part(compared: OdComparison) -> Floats:
    """Return CPC: 2 Σ min(v, ṽ) / (Σ v + Σ ṽ)."""
    common = compared.of_flows(np.minimum(compared.original.volume, compared.rebuilt))
    return ratio(2 * common, np.where(compared.volume > 0, compared.volume + compared.published, 0))


def cosine_distance(compared: OdComparison) -> Floats:
    """Return 1 − v·ṽ / (‖v‖ ‖ṽ‖)."""
    volume = compared.original.volume.astype(np.float64)
    product = compared.of_flows(volume * compared.rebuilt)
    squares = compared.of_flows(volume**2) * compared.squares
    return np.maximum(1 - ratio(product, np.sqrt(squares)), 0.0)


def jensen_shannon(compared: OdComparison) -> Floats:
    """Return √ of the Jensen-Shannon divergence of the two distributions, in bits, between 0 and 1."""
    p, q = compared.volume_share, compared.rebuilt_share
    filled = compared.of_flows(_towards(p, q) + _towards(q, p))
    # A cell without an original trip adds half of its reconstructed share: log₂ 2 = 1.
    empty = ratio(compared.outside, compared.published) / 2
    return np.sqrt(np.where(compared.volume > 0, np.maximum(filled + empty, 0.0), np.nan))


def _towards(p: Floats, q: Floats) -> Floats:
    """Return ½ p log₂(p / m), m the middle of p and q; 0 where p is 0."""
    quotient = np.where(p > 0, 2 * p / (p + q), 1.0)
    divergence: Floats = p / 2 * np.log2(quotient)
    return divergence


def margin_error(compared: OdComparison, end: Literal["origin", "destination"]) -> Floats:
    """Return Σ over tiles of |ṽ_i· − v_i·| / Σ v, or of |ṽ_·j − v_·j| / Σ v for destinations."""
    tile, area = getattr(compared.original, end), getattr(compared.release, end)
    by_step = compared.once(f"{end} margin", lambda: _differences(compared, tile, area))
    return ratio(compared.of_steps(by_step), compared.volume)


def _differences(compared: OdComparison, tile: Indices, area: Indices) -> Floats:
    """Return the differences of each time step, one after the other: no table of all tiles in all steps is made."""
    original, release = compared.original, compared.release
    sums = np.zeros(original.steps)
    for step in range(original.steps):
        flows = slice(original.offsets[step], original.offsets[step + 1])
        rows = compared.rows_of(step)
        margin = np.bincount(tile[flows], original.volume[flows].astype(np.float64), len(original.zones))
        level = (
            np.bincount(area[rows], compared.step_volume[rows].astype(np.float64), len(release.areas))
            / release.areas.size
        )
        used = np.flatnonzero(level)
        taken, offsets = take_slices(release.areas.offsets, used)
        spread = np.repeat(level[used], np.diff(offsets))
        sums[step] = np.abs(margin - np.bincount(release.areas.tiles[taken], spread, len(original.zones))).sum()
    return sums


MARKS = 1000


def wasserstein_km(compared: OdComparison) -> Floats:
    """Return ∫ |F − F̃| over lengths, in kilometers; NaN where the positions of tiles are unknown."""
    if not compared.original.zones.located:
        return np.full(compared.groups, np.nan)
    lengths, rebuilt = (compared.of_steps(ruler) for ruler in compared.once("lengths", lambda: _rulers(compared)))
    difference = np.cumsum(_shares(lengths) - _shares(rebuilt), axis=1)
    kilometers: Floats = np.abs(difference).sum(axis=1) * mark_m(compared.original) / 1000
    return kilometers


def _shares(ruler: Floats) -> Floats:
    return ratio(ruler, np.broadcast_to(ruler.sum(axis=1, keepdims=True), ruler.shape))


def mark_m(original: Flows) -> float:
    """Return the meters between the marks of the ruler."""
    x, y = original.zones.xy
    return float(np.hypot(np.ptp(x), np.ptp(y))) / (MARKS - 1) or 1.0


def _rulers(compared: OdComparison) -> tuple[Floats, Floats]:
    """Return trips by length and step, of the original and of the reconstruction."""
    original, release = compared.original, compared.release
    x, y = (frozen(c, np.float64) for c in original.zones.xy)
    spacing, lengths = mark_m(original), np.zeros((original.steps, MARKS))
    tiles = frozen(np.arange(len(original.zones)), np.int32)
    each = frozen(np.arange(len(tiles) + 1), np.int64)
    volume = original.volume.astype(np.float64)
    add_lengths(original.step, original.origin, original.destination, volume, each, tiles, x, y, spacing, lengths)
    rebuilt = np.zeros((original.steps, MARKS))
    step, row = compared.step_rows
    add_lengths(
        step, release.origin[row], release.destination[row], compared.level[row],
        release.areas.offsets, release.areas.tiles, x, y, spacing, rebuilt,
    )  # fmt: skip
    return lengths, rebuilt


MEASURES = (
    Measure(
        "reconstruction-error", "reconstruction error", "", "lower", Flows, error,
        "Sum over all pairs of tiles of the difference between the original volume and that of its row spread evenly over "
        "the row's pairs, in original trips. At most 2; plain suppression has the share suppressed.", "E",
    ),
    Measure(
        "distribution-distance", "distribution distance", "", "lower", Flows, distance,
        "The same between shares of the original trips and shares of the published trips, so that suppression alone does "
        "not count. At most 2; plain suppression has twice the share suppressed.", "D",
    ),
    Measure(
        "common-part", "common part of commuters", "", "higher", Flows, common_part,
        "Share of trips that the original and the reconstruction have in common; 1 where they are equal, 0 where they share "
        "no pair of tiles.", "CPC",
    ),
    Measure(
        "cosine-distance", "cosine distance", "", "lower", Flows, cosine_distance,
        "One minus the cosine between the original and the reconstructed matrix; from 0, proportional, to 1, nothing in common.",
    ),
    Measure(
        "jensen-shannon", "Jensen-Shannon distance", "", "lower", Flows, jensen_shannon,
        "Square root of the Jensen-Shannon divergence (base 2) of the original and the reconstructed shares; from 0, "
        "equal, to 1, nothing in common.", "JS",
    ),
    Measure(
        "origin-margin", "error of trips by origin", "", "lower", Flows, partial(margin_error, end="origin"),
        "Sum over tiles of the difference between the trips that leave it in the original and in the reconstruction, in "
        "original trips.",
    ),
    Measure(
        "destination-margin", "error of trips by destination", "", "lower", Flows,
        partial(margin_error, end="destination"),
        "Sum over tiles of the difference between the trips that reach it in the original and in the reconstruction, in "
        "original trips.",
    ),
    Measure(
        "trip-length", "error of trip lengths", "km", "lower", Flows, wasserstein_km,
        "Wasserstein distance between the lengths of original and reconstructed trips, from centroid to centroid; needs zones "
        "with a location.", "W₁",
    ),
)  # fmt: skip
