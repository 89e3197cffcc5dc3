"""Compare numbers of topics by how well they predict hours that they were not found from, and suggest one.

What it does
------------
The documents of `topics` are dealt into `folds` parts at random. For each number of topics and each part, topics are found from
the other parts. Of each document that was left out, a random half of the flows gives its mixture of topics, and the other half
is predicted from it (document completion). The perplexity is the exponential of the mean negative logarithm of the predicted
share of a trip's flow: among how many equally likely flows the prediction is as uncertain. Lower is better.

The suggestion is the smallest number whose perplexity is above the lowest one by at most the standard error of that difference,
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
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field

from crowdveil.analysis.base import Analysis
from crowdveil.analysis.study import Study
from crowdveil.analysis.topic_words import TopicParams, count_words, fit_topics, shares_of_words
from crowdveil.errors import InputError
from crowdveil.io.table_writer import open_table_writer
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.tabular import Tabular, align_rows
from crowdveil.params import Params
from crowdveil.progress import Progress, no_progress

TOLERANCE = 0.01
"""Share of the lowest perplexity by which that of the suggested number may be higher."""
_WANTED = "numbers of topics from 2 to 100, such as 2,3,5,8"


def _numbers(value: Any) -> Any:
    """Return rising numbers of topics as text."""
    try:
        numbers = sorted({int(part) for part in str(value).split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 2 or numbers[-1] > 100:
        raise ValueError(_WANTED)
    return ",".join(map(str, numbers))


class TopicNumberParams(Params):
    """Parameters of the choice of a number of topics."""

    numbers: Annotated[str, BeforeValidator(_numbers)] = "2,3,4,5,6,8,10"
    """Numbers of topics to compare, such as 2,3,5,8."""
    folds: int = Field(5, ge=2, le=20)
    """Parts of the documents; each is predicted from the others."""
    documents: Literal["week", "day", "step"] = "week"
    """Documents: hours of the week, hours of the day, or time steps."""
    words: Literal["zones", "areas"] = "zones"
    """Words: pairs of zones, or pairs of areas of the release."""
    most_flows: int = Field(2000, ge=2)
    """Maximum number of words: the largest flows."""
    rounds: int = Field(30, ge=1)
    """Passes over all documents."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the random parts and of the random start."""


@dataclass(frozen=True, eq=False, repr=False)
class TopicNumber(Tabular):
    """The perplexity of each number of topics.

    Attributes
    ----------
    topics
        Numbers of topics, rising.
    perplexity, error
        Mean over the parts, and the standard error of its difference from the lowest one.
    suggested
        The smallest number within one standard error of the best, or within 1 %.
    documents, flows
        Numbers of documents and of words.
    """

    params: TopicNumberParams
    topics: Ints
    perplexity: Floats
    error: Floats
    suggested: int
    documents: int
    flows: int

    def __len__(self) -> int:
        return len(self.topics)

    def to_arrow(self) -> pa.Table:
        """Return a row for each number of topics."""
        return pa.table(
            {
                "topics": self.topics,
                "perplexity": self.perplexity,
                "error_of_difference": self.error,
                "suggested": self.topics == self.suggested,
            }
        )

    def write(self, path: Path, progress: Progress = no_progress) -> None:
        """Write the table in the format of the suffix."""
        about = {
            "analysis": "topic-number",
            "parameters": self.params.model_dump(mode="json"),
            "meaning": "held-out perplexity by document completion; lower is better.",
            "suggested": self.suggested,
        }
        table = self.to_arrow()
        with open_table_writer(path, table.schema, about, np.zeros(0, dtype=object)) as write:
            write(table)

    def lines(self) -> list[str]:
        """Return the table and the suggestion."""
        rows = [["topics", "perplexity", "± of the difference from the best", ""]]
        for number, value, error in zip(self.topics.tolist(), self.perplexity, self.error, strict=True):
            rows.append([str(number), f"{value:.1f}", f"{error:.1f}", "suggested" if number == self.suggested else ""])
        return [
            f"held-out perplexity of {self.documents:,} documents with {self.flows:,} flows, {self.params.folds} parts; lower is "
            "better",
            "",
            *align_rows(rows, left=0),
            "",
            f"{self.suggested} topics: the fewest within one standard error, or 1 %, of the lowest perplexity",
        ]


def run(study: Study, params: TopicNumberParams, progress: Progress) -> TopicNumber:
    """Find topics without each part of the documents, for each number, and predict that part."""
    asked = TopicParams(documents=params.documents, words=params.words, most_flows=params.most_flows)
    counts = count_words(study, asked, no_progress).counts.tocsr()
    documents = counts.shape[0]
    if documents < params.folds:
        raise InputError(
            f"{params.folds} parts need as many documents with trips, but there are {documents:,}; give a longer release or "
            "fewer parts."
        )
    rng = np.random.default_rng(params.seed)
    part = rng.permutation(np.arange(documents) % params.folds)
    given = rng.random(counts.nnz) < 0.5
    numbers = [int(text) for text in params.numbers.split(",")]
    found = np.zeros((len(numbers), params.folds))
    for i, number in enumerate(numbers):
        for fold in range(params.folds):
            held = part == fold
            model, _ = fit_topics(counts[np.flatnonzero(~held)], number, params.rounds, params.seed)
            found[i, fold] = perplexity(model, counts, held, given)
            progress(i * params.folds + fold + 1, found.size)
    mean = found.mean(axis=1)
    above = found - found[int(np.argmin(mean))]  # of the same part, since parts differ more than numbers of topics
    error = above.std(axis=1, ddof=1) / np.sqrt(params.folds)
    suggested = numbers[int(np.flatnonzero(above.mean(axis=1) <= np.maximum(error, TOLERANCE * mean.min()))[0])]
    return TopicNumber(params, np.array(numbers, np.int64), mean, error, suggested, documents, counts.shape[1])


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


ANALYSIS = Analysis(
    "topic-number",
    TopicNumberParams,
    run,
    __doc__ or "",
    "Held-out perplexity of each number of topics: a table, a curve with --plot, and a suggestion for `topics --topics`.",
    compares=False,
    extra="analysis",
    examples=(
        "out/ --zones zones.geojson",
        "out/ --zones zones.geojson --numbers 2,3,5,8 --documents day -o numbers.csv --plot numbers.png",
    ),
)
