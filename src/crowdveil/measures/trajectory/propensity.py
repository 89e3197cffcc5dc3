"""How well a model tells published trajectories from original ones.

Each trajectory is the sequence of square tiles that it passes, consecutive repeats once; shorter ones are padded with 0 at the left.
Tiles are numbered from 1, row by row, and at levels of time one after the other; numbers are divided by the largest. A model
learns from position to number whether a sequence is published, and every sequence is scored by one that did not see it, nor any
sequence that is equal: two equal data sets score 0. Nothing is balanced, as in the document: where many trajectories are
removed, the score rises for that alone.

A logistic regression on tile numbers is weak: it sees lengths and places north or south, and little else. With boosting the
score is what a strong model finds, and much higher.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import InputError, MissingExtraError
from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats, Ints, row_slices
from crowdveil.model.distances import Paths
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params

FOLDS = 5
MOST_CELLS = 1 << 28
"""Positions of all sequences together that fit into memory."""


class PropensityParams(Params):
    """Parameters of the propensity score."""

    tile_m: float = Field(200.0, gt=0, le=100_000)
    """Side of the square tiles."""
    time_interval_s: int | None = Field(None, ge=1)
    """Tiles at different times are different, in intervals of this length; without it times do not count."""
    model: Literal["logistic", "boosting"] = "logistic"
    """What tells the two apart: a logistic regression, or gradient boosting, which is much better at it."""
    balanced: bool = False
    """Let both sides weigh the same, so that removed trajectories do not count by themselves."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of who is scored by which model."""


def propensity(compared: TrajectoryComparison, params: PropensityParams) -> Floats:
    """U = 4/n Σ (p̂ − ½)²."""
    if len(compared.release) == 0:
        return np.array([np.nan])
    features, published = _sequences(compared, params)
    score = _scored(features, published, params, compared)
    return np.array([4 * float(np.mean((score - 0.5) ** 2))])


def _sequences(compared: TrajectoryComparison, params: PropensityParams) -> tuple[Floats, Ints]:
    """A row for each sequence, original and then published, and which is published."""
    sides = (compared.paths, compared.published)
    numbers = [
        _numbers(paths, tile, params) for paths, tile in zip(sides, compared.tiles(params.tile_m), strict=True)
    ]
    tiles, levels = max(int(tile.max()) for tile, _ in numbers), [level for _, level in numbers]
    kept = [
        _without_repeats(tile + tiles * level, paths.offsets) for paths, (tile, level) in zip(sides, numbers, strict=True)
    ]
    longest = max(int(np.diff(offsets).max()) for _, offsets in kept)
    rows = sum(len(offsets) - 1 for _, offsets in kept)
    if rows * longest > MOST_CELLS:
        raise InputError(
            f"propensity-score: {rows:,} trajectories of up to {longest:,} tiles are too many to learn from; "
            "give larger tiles with tile_m, or cut trajectories into shorter ones."
        )
    features = np.concatenate([_padded(number, offsets, longest) for number, offsets in kept])
    features /= tiles * (1 + max(int(level.max()) for level in levels))
    return features, np.repeat([0, 1], [len(paths) for paths in sides])


def _numbers(paths: Paths, tile: Ints, params: PropensityParams) -> tuple[Ints, Ints]:
    """Tile and level of time of each point."""
    if params.time_interval_s is None:
        return tile, np.zeros(len(tile), np.int64)
    return tile, (paths.t // params.time_interval_s).astype(np.int64)


def _without_repeats(number: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    new = np.ones(len(number), np.bool_)
    new[1:] = number[1:] != number[:-1]
    new[offsets[:-1]] = True
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(new)])
    return number[new], before[offsets]


def _padded(number: Ints, offsets: Ints, longest: int) -> Floats:
    """Sequences that end at the last column."""
    made = np.zeros((len(offsets) - 1, longest))
    row = row_slices(offsets)
    made[row, longest - offsets[1:][row] + np.arange(len(number))] = number
    return made


def _scored(features: Floats, published: Ints, params: PropensityParams, compared: TrajectoryComparison) -> Floats:
    """The probability that each is published, by a model that saw neither it nor its equals."""
    _, equal = np.unique(features, axis=0, return_inverse=True)
    rng = np.random.default_rng(params.seed)
    fold = (rng.permutation(int(equal.max()) + 1) % FOLDS)[equal.reshape(-1)]
    score = np.empty(len(published))
    for here in range(FOLDS):
        test, train = fold == here, fold != here
        known = np.unique(published[train])
        if len(known) == 2:
            model = _fitted(params, features[train], published[train])
            score[test] = model.predict_proba(features[test])[:, 1] if test.any() else 0
        else:  # nothing to learn from, or nothing to tell apart
            score[test] = known[0] if len(known) else 0.5
        compared.progress(here + 1, FOLDS)
    return score


def _fitted(params: PropensityParams, features: Floats, published: Ints) -> Any:
    weight = "balanced" if params.balanced else None
    if params.model == "logistic":
        model = _sklearn("linear_model").LogisticRegression(class_weight=weight, max_iter=1000)
    else:
        booster = _sklearn("ensemble").HistGradientBoostingClassifier
        model = booster(class_weight=weight, random_state=params.seed, early_stopping=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model that came to no end scores as it scores
        return model.fit(features, published)


def _sklearn(part: str) -> Any:
    try:
        return import_module(f"sklearn.{part}")
    except ImportError:
        raise MissingExtraError("scikit-learn", "analysis", "the propensity score") from None


MEASURES = (
    Measure(
        "propensity-score", "propensity score", "", "lower", Trajectories, propensity,
        "How far from an even guess a model is that tells published trajectories from originals: 0 if it cannot, 1 if it always can.",
        symbol="U", params=PropensityParams, aliases=("PropensityScore",),
        parameter_aliases=(("tiles_size", "tile_m"), ("time_interval", "time_interval_s")),
    ),
)  # fmt: skip
