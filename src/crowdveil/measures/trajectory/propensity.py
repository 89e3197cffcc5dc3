"""Measure how well a model distinguishes published from original trajectories.

Each trajectory is the sequence of its square tiles, consecutive repeats once; shorter ones are padded with 0 at the left. Tiles
are numbered from 1, row by row, and at levels of time one after the other; numbers are divided by the largest. A model learns
from the number at each position whether a sequence is published, and every sequence is scored by one that was trained without
it and its equals: two equal data sets score 0. Classes are not balanced, as in the MobiDataLab deliverable: where many
trajectories are removed, the score rises for that alone.

A logistic regression on tile numbers is weak: it uses lengths and positions north or south, and little else. Boosting is a
strong model, and its score is much higher.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, import_extra
from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats, Ints, row_slices
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.solve.trajectory.distances import Paths

FOLDS = 5
MAX_CELLS = 1 << 27
"""Positions of all padded sequences that fit into memory."""


class PropensityParams(Params):
    """Parameters of the propensity score."""

    tile_m: float = Field(200.0, gt=0, le=100_000)
    """Side of the square tiles."""
    time_interval_s: int | None = Field(None, ge=1)
    """Tiles at different times differ, in intervals of this length; without it times do not count."""
    model: Literal["logistic", "boosting"] = "logistic"
    """The classifier: a logistic regression, or gradient boosting, which is much stronger."""
    balanced: bool = False
    """Give both sides the same weight, so that removed trajectories do not count by themselves."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the folds."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of tiles, original ones and then published ones: number[offsets[i]:offsets[i + 1]], up to `largest`."""

    number: Ints
    offsets: Ints
    published: Ints
    largest: int

    @classmethod
    def of(cls, compared: TrajectoryComparison, params: PropensityParams) -> Sequences:
        """Return the sequences of both sides."""
        sides, tiles = (compared.paths, compared.published), compared.tiles(params.tile_m)
        levels = [_levels(paths, params.time_interval_s) for paths in sides]
        most = max(int(tile.max()) for tile in tiles)
        kept = [
            _without_repeats(tile + most * level, paths.offsets)
            for paths, tile, level in zip(sides, tiles, levels, strict=True)
        ]
        (first, before), (second, after) = kept
        return cls(
            np.concatenate([first, second]),
            np.concatenate([before, before[-1] + after[1:]]),
            np.repeat([0, 1], [len(paths) for paths in sides]),
            most * (1 + max(int(level.max()) for level in levels)),
        )

    def equal(self) -> Ints:
        """Return a number for each sequence, the same for equal ones."""
        number: dict[bytes, int] = {}
        cuts = pairwise(self.offsets.tolist())
        return np.array([number.setdefault(self.number[i:j].tobytes(), len(number)) for i, j in cuts])

    def padded(self) -> Any:
        """Return a row for each, as long as the longest, with numbers up to 1 at its end; sparse, without stored padding."""
        from scipy.sparse import csr_array

        longest = int(np.diff(self.offsets).max())
        column = longest - self.offsets[1:][row_slices(self.offsets)] + np.arange(len(self.number))
        cells = self.number / self.largest, column.astype(np.int32), self.offsets.astype(np.int32)
        return csr_array(cells, shape=(len(self.published), longest))


def _levels(paths: Paths, interval_s: int | None) -> Ints:
    """Return the level of time of each point."""
    if interval_s is None:
        return np.zeros(len(paths.t), np.int64)
    return (paths.t // interval_s).astype(np.int64)


def _without_repeats(number: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    new = np.ones(len(number), np.bool_)
    new[1:] = number[1:] != number[:-1]
    new[offsets[:-1]] = True
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(new)])
    return number[new], before[offsets]


def propensity(compared: TrajectoryComparison, params: PropensityParams) -> Floats:
    """Return U = 4/n Σ (p̂ − ½)²."""
    if len(compared.release) == 0:
        return np.array([np.nan])
    score = _scored(Sequences.of(compared, params), params, compared.progress)
    return np.array([4 * float(np.mean((score - 0.5) ** 2))])


def _scored(sequences: Sequences, params: PropensityParams, progress: Progress) -> Floats:
    """Return the probability that each is published, by a model trained without it and its equals."""
    features, published, equal = sequences.padded(), sequences.published, sequences.equal()
    if params.model == "boosting":
        features = _dense(features)
    rng = np.random.default_rng(params.seed)
    fold = (rng.permutation(int(equal.max()) + 1) % FOLDS)[equal]
    score = np.empty(len(published))
    # Its threads wait without sleeping: on a busy machine one is much faster than several.
    with _sklearn("threadpoolctl").threadpool_limits(1):
        for here in range(FOLDS):
            test, train = np.flatnonzero(fold == here), np.flatnonzero(fold != here)
            known = np.unique(published[train])
            if len(known) == 2 and len(test):
                model = _fitted(params, features[train], published[train])
                score[test] = model.predict_proba(features[test])[:, 1]
            else:  # one class alone, or nothing to score
                score[test] = known[0] if len(known) else 0.5
            progress(here + 1, FOLDS)
    return score


def _dense(features: Any) -> Floats:
    rows, longest = features.shape
    if rows * longest > MAX_CELLS:
        raise InputError(
            "propensity-score",
            f"{rows:,} trajectories of up to {longest:,} tiles are too many for boosting. "
            "Choose a larger tile_m, split trajectories into shorter ones, or choose the logistic model.",
        )
    dense: Floats = features.toarray()
    return dense


def _fitted(params: PropensityParams, features: Any, published: Ints) -> Any:
    weight = "balanced" if params.balanced else None
    if params.model == "logistic":
        regression = _sklearn("sklearn.linear_model").LogisticRegression
        model = regression(class_weight=weight, max_iter=1000, solver="newton-cg")
    else:
        booster = _sklearn("sklearn.ensemble").HistGradientBoostingClassifier
        model = booster(class_weight=weight, random_state=params.seed, early_stopping=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model that did not converge is scored all the same
        return model.fit(features, published)


def _sklearn(module: str) -> Any:
    return import_extra(module, "scikit-learn", "analysis", "the propensity score")


MEASURES = (
    Measure(
        "propensity-score", "propensity score", "", "lower", Trajectories, propensity,
        "Certainty of a model about which trajectories are published: 0 if it cannot distinguish them, 1 if always.",
        symbol="U", params=PropensityParams,
    ),
)  # fmt: skip
