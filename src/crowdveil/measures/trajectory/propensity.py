"""How well a model tells published trajectories from original ones.

Each trajectory is the sequence of square tiles that it passes, consecutive repeats once; shorter ones are padded with 0 at the
left. Tiles are numbered from 1, row by row, and at levels of time one after the other; numbers are divided by the largest. A
model learns from the number at each position whether a sequence is published, and every sequence is scored by one that saw
neither it nor any equal one: two equal data sets score 0. Nothing is balanced, as in the document: where many trajectories are
removed, the score rises for that alone.

A logistic regression on tile numbers is weak: it sees lengths and places north or south, and little else. With boosting the
score is what a strong model finds, and much higher.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import InputError, MissingExtraError, Option
from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats, Ints, row_slices
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.solve.trajectory.distances import Paths

FOLDS = 5
MOST_CELLS = 1 << 27
"""Positions of all sequences together, padded, that fit into memory."""


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


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of tiles, original ones and then published ones: number[offsets[i]:offsets[i + 1]], up to `largest`."""

    number: Ints
    offsets: Ints
    published: Ints
    largest: int

    @classmethod
    def of(cls, compared: TrajectoryComparison, params: PropensityParams) -> Sequences:
        """Those of both sides."""
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
        """A number for each sequence, the same for equal ones."""
        number: dict[bytes, int] = {}
        cuts = pairwise(self.offsets.tolist())
        return np.array([number.setdefault(self.number[i:j].tobytes(), len(number)) for i, j in cuts])

    def padded(self) -> Any:
        """A row for each, as long as the longest, with numbers up to 1 at its end; sparse, so that padding takes no room."""
        from scipy.sparse import csr_array

        longest = int(np.diff(self.offsets).max())
        column = longest - self.offsets[1:][row_slices(self.offsets)] + np.arange(len(self.number))
        cells = self.number / self.largest, column.astype(np.int32), self.offsets.astype(np.int32)
        return csr_array(cells, shape=(len(self.published), longest))


def _levels(paths: Paths, interval_s: int | None) -> Ints:
    """The level of time of each point."""
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
    """U = 4/n Σ (p̂ − ½)²."""
    if len(compared.release) == 0:
        return np.array([np.nan])
    score = _scored(Sequences.of(compared, params), params, compared.progress)
    return np.array([4 * float(np.mean((score - 0.5) ** 2))])


def _scored(sequences: Sequences, params: PropensityParams, progress: Progress) -> Floats:
    """The probability that each is published, by a model that saw neither it nor its equals."""
    features, published, equal = sequences.padded(), sequences.published, sequences.equal()
    if params.model == "boosting":
        features = _dense(features)
    rng = np.random.default_rng(params.seed)
    fold = (rng.permutation(int(equal.max()) + 1) % FOLDS)[equal]
    score = np.empty(len(published))
    # Threads there wait for one another without sleeping: where others work too, one is much faster than several.
    with _sklearn("threadpoolctl").threadpool_limits(1):
        for here in range(FOLDS):
            test, train = np.flatnonzero(fold == here), np.flatnonzero(fold != here)
            known = np.unique(published[train])
            if len(known) == 2 and len(test):
                model = _fitted(params, features[train], published[train])
                score[test] = model.predict_proba(features[test])[:, 1]
            else:  # nothing to learn from, or nothing to tell apart
                score[test] = known[0] if len(known) else 0.5
            progress(here + 1, FOLDS)
    return score


def _dense(features: Any) -> Floats:
    rows, longest = features.shape
    if rows * longest > MOST_CELLS:
        raise InputError(
            Option("propensity_score"),
            f"{rows:,} trajectories of up to {longest:,} tiles are too many for boosting; "
            "give larger tiles with tile_m, cut trajectories into shorter ones, or take the logistic model.",
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
        warnings.simplefilter("ignore")  # a model that came to no end scores as it scores
        return model.fit(features, published)


def _sklearn(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError("scikit-learn", "analysis", "the propensity score") from None


MEASURES = (
    Measure(
        "propensity-score", "propensity score", "", "lower", Trajectories, propensity,
        "How sure a model is of which trajectories are published and which are originals: 0 if it cannot tell, 1 if always.",
        symbol="U", params=PropensityParams, aliases=("PropensityScore",),
        parameter_aliases=(("tiles_size", "tile_m"), ("time_interval", "time_interval_s")),
    ),
)  # fmt: skip
