"""Choose a number of topics by how well topics predict hours that they were not found from.

Documents are split into `folds` parts at random. For each number of topics and each part, topics are found in the other parts.
In each held-out document, a random half of the flows determines the mixture of topics, and the other half is predicted from it
(document completion). The perplexity is the exponential of the mean negative logarithm of the predicted share of a trip's flow:
the prediction is as uncertain as a draw among so many equally likely flows. Lower is better.

The chosen number is the smallest one whose perplexity exceeds the lowest by at most the standard error of that difference over
the parts, or by at most 1 %: more topics do not predict noticeably better.

Notes
-----
Perplexity measures how well topics predict, not how well people can interpret them; look at neighboring numbers, too. With few
documents (fewer than about 24) the standard error is large.

References
----------
Blei, Ng, Jordan, Latent Dirichlet Allocation, 2003. Wallach et al., Evaluation methods for topic models, ICML 2009. Breiman et
al., Classification and regression trees, 1984 (rule of one standard error).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.analysis.topic_words import TopicParams, fit_topics, shares_of_words
from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.tabular import Tabular, align_rows

TOLERANCE = 0.01
"""Share of the lowest perplexity by which that of the chosen number may be higher."""


@dataclass(frozen=True, eq=False, repr=False)
class TopicNumber(Tabular):
    """The held-out perplexity of each number of topics.

    Attributes
    ----------
    topics
        Numbers of topics, rising.
    perplexity, error
        Mean over the parts, and the standard error of its difference from the lowest one.
    chosen
        The smallest number within one standard error of the best, or within 1 %.
    """

    topics: Ints
    perplexity: Floats
    error: Floats
    chosen: int

    def to_arrow(self) -> pa.Table:
        """Return a row for each number of topics."""
        return pa.table(
            {
                "topics": self.topics,
                "perplexity": self.perplexity,
                "error_of_difference": self.error,
                "chosen": self.topics == self.chosen,
            }
        )

    def lines(self) -> list[str]:
        """Return the table and the reason of the choice."""
        rows = [["topics", "perplexity", "± of the difference from the best"]]
        for number, value, error in zip(self.topics.tolist(), self.perplexity, self.error, strict=True):
            rows.append([str(number), f"{value:.1f}", f"{error:.1f}"])
        reason = f"{self.chosen} topics: the fewest within one standard error, or 1 %, of the lowest perplexity"
        return [*align_rows(rows, left=0), "", reason]


def choose_number(counts: Any, params: TopicParams, progress: Progress) -> TopicNumber:
    """For each number of topics, find topics without each part of the documents, and predict that part."""
    documents = counts.shape[0]
    if documents < params.folds:
        raise InputError(
            f"Expected at least {params.folds} documents with trips, got {documents:,}. Give a longer release or fewer folds."
        )
    rng = np.random.default_rng(params.seed)
    part = rng.permutation(np.arange(documents) % params.folds)
    known = rng.random(counts.nnz) < 0.5
    perplexities = np.zeros((len(params.numbers), params.folds))
    for i, number in enumerate(params.numbers):
        for fold in range(params.folds):
            held_out = part == fold
            model, _ = fit_topics(counts[np.flatnonzero(~held_out)], number, params.rounds, params.seed)
            perplexities[i, fold] = perplexity(model, counts, held_out, known)
            progress(i * params.folds + fold + 1, perplexities.size)
    mean = perplexities.mean(axis=1)
    above = perplexities - perplexities[int(np.argmin(mean))]  # by part, since parts differ more than numbers of topics
    error = above.std(axis=1, ddof=1) / np.sqrt(params.folds)
    chosen = np.flatnonzero(above.mean(axis=1) <= np.maximum(error, TOLERANCE * mean.min()))[0]
    return TopicNumber(np.array(params.numbers, np.int64), mean, error, params.numbers[int(chosen)])


def perplexity(model: Any, counts: Any, held_out: Mask, known: Mask) -> float:
    """Return the perplexity of the unknown cells of held-out documents, with mixtures from their `known` cells."""
    first, second = counts.copy(), counts.copy()
    first.data = np.where(known, counts.data, 0.0)
    second.data = np.where(known, 0.0, counts.data)
    rows = np.flatnonzero(held_out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations of sparse matrices do not matter here
        mixture = np.asarray(model.transform(first[rows]), np.float64)
    cells = second[rows].tocoo()
    share = np.einsum("ct,tc->c", mixture[cells.row], shares_of_words(model)[:, cells.col])
    return float(np.exp(-(cells.data * np.log(share)).sum() / cells.data.sum()))
