"""Choose a number of topics by how well topics predict hours that they were not found from.

Documents are dealt into `folds` parts at random. For each number of topics and each part, topics are found from the other
parts. Of each document that was left out, a random half of the flows gives its mixture of topics, and the other half is
predicted from it (document completion). The perplexity is the exponential of the mean negative logarithm of the predicted share
of a trip's flow: among how many equally likely flows the prediction is as uncertain. Lower is better.

The chosen number is the smallest one whose perplexity is above the lowest one by at most the standard error of that difference,
taken over the parts, or by at most 1 %: more topics predict no better than chance would have it, or not noticeably.

Notes
-----
Perplexity says how well topics predict, not how well people can read them; look at neighboring numbers too. Few documents (less
than about 24) make the standard error large.

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
    """Find topics without each part of the documents, for each number, and predict that part."""
    documents = counts.shape[0]
    if documents < params.folds:
        raise InputError(
            f"Expected at least {params.folds} documents with trips, got {documents:,}. Give a longer release or fewer folds."
        )
    rng = np.random.default_rng(params.seed)
    part = rng.permutation(np.arange(documents) % params.folds)
    given = rng.random(counts.nnz) < 0.5
    found = np.zeros((len(params.numbers), params.folds))
    for i, number in enumerate(params.numbers):
        for fold in range(params.folds):
            held = part == fold
            model, _ = fit_topics(counts[np.flatnonzero(~held)], number, params.rounds, params.seed)
            found[i, fold] = perplexity(model, counts, held, given)
            progress(i * params.folds + fold + 1, found.size)
    mean = found.mean(axis=1)
    above = found - found[int(np.argmin(mean))]  # of the same part, since parts differ more than numbers of topics
    error = above.std(axis=1, ddof=1) / np.sqrt(params.folds)
    chosen = np.flatnonzero(above.mean(axis=1) <= np.maximum(error, TOLERANCE * mean.min()))[0]
    return TopicNumber(np.array(params.numbers, np.int64), mean, error, params.numbers[int(chosen)])


def perplexity(model: Any, counts: Any, held: Mask, given: Mask) -> float:
    """Return the perplexity of the cells of held-out documents that are not `given`, with mixtures from those that are."""
    known, other = counts.copy(), counts.copy()
    known.data = np.where(given, counts.data, 0.0)
    other.data = np.where(given, 0.0, counts.data)
    rows = np.flatnonzero(held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations of sparse matrices do not matter here
        mixture = np.asarray(model.transform(known[rows]), np.float64)
    cells = other[rows].tocoo()
    share = np.einsum("ct,tc->c", mixture[cells.row], shares_of_words(model)[:, cells.col])
    return float(np.exp(-(cells.data * np.log(share)).sum() / cells.data.sum()))
