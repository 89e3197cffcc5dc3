"""Compare the lengths of reconstructed trips with the original lengths.

The Wasserstein distance of the two distributions of distances between centroids: the mean change of length, in kilometers, that
turns one into the other. Distances are counted on a ruler of 1,000 marks from 0 to the diagonal of the map; one between two
marks counts partly at either, which leaves means exact.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels.od.release_rows import add_lengths
from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats, frozen
from crowdveil.model.flows import Flows

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
        "trip-length", "error of trip lengths", "km", "lower", Flows, wasserstein_km,
        "Wasserstein distance between the lengths of original and reconstructed trips, from centroid to centroid; needs zones "
        "with a location.", "W₁",
    ),
)  # fmt: skip
