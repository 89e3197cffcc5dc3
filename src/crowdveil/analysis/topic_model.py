"""Models of topics: count trips by hour and flow, fit a model to the counts, and choose the number of topics.

The number of topics is chosen by how well topics predict hours that they were not found in.

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
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field

from crowdveil.analysis.calendar import Slots
from crowdveil.analysis.estimates import Groups, estimate_chunks, estimates
from crowdveil.analysis.study import Study, StudySide
from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, Option, Text, import_extra
from crowdveil.model.arrays import Floats, Ints, Labels, Mask, row_slices
from crowdveil.model.tabular import Tabular, align_rows
from crowdveil.params import Params
from crowdveil.solve.od.overlaps import Shares

MAX_TOPICS = 100
TOLERANCE = 0.01
"""Share of the lowest perplexity by which that of the chosen number may be higher."""


def _number_or_range(value: Any) -> str:
    """Return a number of topics, or a range of them, as text."""
    first, dash, last = str(value).partition("-")
    good = first.strip().isdecimal() and (not dash or last.strip().isdecimal())
    if not good or not 2 <= int(first) <= int(last or first) <= MAX_TOPICS:
        raise ValueError(f"a number from 2 to {MAX_TOPICS}, such as 5, or a range, such as 2-8")
    return f"{int(first)}-{int(last)}" if dash else f"{int(first)}"


class TopicParams(Params):
    """Parameters of topics."""

    topics: Annotated[str, BeforeValidator(_number_or_range)] = Field("5", json_schema_extra={"metavar": "N or N-N"})
    """Number of topics, such as 5; or a range, such as 2-8, from which the number is chosen by held-out perplexity."""
    folds: int = Field(5, ge=2, le=20)
    """Parts of the documents, each predicted from the others, to choose the number of topics."""
    documents: Literal["week", "day", "step"] = "week"
    """Documents: hours of the week, hours of the day, or time steps."""
    words: Literal["zones", "areas"] = "zones"
    """Words: pairs of zones, or pairs of areas of the release."""
    flows: int = Field(10, ge=1)
    """Number of main flows of a topic to report."""
    most_flows: int = Field(2000, ge=2)
    """Maximum number of words: the largest flows."""
    rounds: int = Field(30, ge=1)
    """Passes over all documents."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the random start, and of the random parts."""

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of topics to try."""
        first, _, last = self.topics.partition("-")
        return list(range(int(first), int(last or first) + 1))


class WordCounts(NamedTuple):
    """Trips by document and flow.

    Attributes
    ----------
    slots
        The hours; None if documents are time steps.
    names, places
        Names of the zones or areas, and their centers.
    keys
        Flows that are words, as origin × zones + destination.
    zones
        Number of zones or areas.
    documents
        Hour or time step of each document that has trips.
    counts
        Trips of each flow (column) in each document (row), a sparse matrix.
    """

    slots: Slots | None
    names: Labels
    places: Floats
    keys: Ints
    zones: int
    documents: Ints
    counts: Any


def count_words(study: Study, params: TopicParams, progress: Progress) -> WordCounts:
    """Count the trips of the release by document and flow; with the original, over the largest flows of both."""
    release = study.released.release
    # Time steps need hours, too, since the summary and the plot have the peak hour of each topic.
    hours = Slots.of([release], "week" if params.documents == "step" else params.documents)
    slots = None if params.documents == "step" else hours
    side, names, places = _places(study, params)
    keys = _largest(side, params.most_flows)
    if study.original is not None:
        keys = np.union1d(keys, _largest(study.original, params.most_flows))
    counts, filled = filled_counts(side, slots, keys, progress)
    if len(filled) < 2 or len(keys) < 2:
        raise InputError("topics need at least two hours and two flows with published trips. Give a longer release.")
    return WordCounts(slots, names, places, keys, side.shares.zones, filled, counts)


def filled_counts(side: StudySide, slots: Slots | None, keys: Ints, progress: Progress) -> tuple[Any, Ints]:
    """Return the trips by document and flow, and the documents; those without trips are left out."""
    groups = Groups.steps(side.release) if slots is None else slots.groups(side.release)
    counts = _counts(side, groups, keys, progress)
    filled = np.flatnonzero(counts.sum(axis=1) > 0)
    return counts[filled], filled


def _places(study: Study, params: TopicParams) -> tuple[StudySide, Labels, Floats]:
    """Return the flows between zones or areas, with names and centers of these."""
    if params.words == "areas" and study.original is not None:
        raise InputError(
            Option("words"), Text("the original has no areas; compare topics of zones, or leave {original} out.")
        )
    if params.words == "zones":
        zones = study.zones
        return study.released, zones.ids, np.column_stack([zones.lon, zones.lat])
    areas = study.released.release.areas
    n, one = len(areas), np.ones(len(areas))
    alone = Shares(n, np.arange(n + 1), np.arange(n, dtype=np.int32), one, one, np.ones(n, np.bool_))
    tiles = np.column_stack([areas.zones.lon, areas.zones.lat])[areas.tiles]
    middle = np.add.reduceat(tiles, areas.offsets[:-1], axis=0) / areas.size[:, None] if n else np.zeros((0, 2))
    return StudySide(study.released.release, alone), areas.names, middle


def _largest(side: StudySide, most: int) -> Ints:
    """Return the keys (origin × zones + destination) of the largest flows over all time, ascending."""
    flows = estimates(side, Groups.all(side.release))
    return _keys(side, flows.origin, flows.destination)[np.sort(np.argsort(-flows.volume, kind="stable")[:most])]


def _keys(side: StudySide, origin: Any, destination: Any) -> Ints:
    keys: Ints = origin.astype(np.int64) * side.shares.zones + destination
    return keys


def _counts(side: StudySide, groups: Groups, keys: Ints, progress: Progress) -> Any:
    """Return trips by document and flow as a sparse matrix."""
    from scipy.sparse import csr_array

    total = csr_array((groups.count, len(keys)), dtype=np.float64)
    for chunk in estimate_chunks(side, groups, progress=progress):
        key = _keys(side, chunk.origin, chunk.destination)
        index = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
        known = keys[index] == key if len(keys) else np.zeros(len(key), np.bool_)
        cells = chunk.group[known], index[known]
        total = total + csr_array((chunk.volume[known], cells), shape=total.shape)
    return total


def fit_topics(counts: Any, topics: int, rounds: int, seed: int) -> tuple[Any, Floats]:
    """Return the model of topics, and their shares in each document."""
    decomposition = import_extra("sklearn.decomposition", "scikit-learn", "analysis", "finding topics")
    model = decomposition.LatentDirichletAllocation(topics, max_iter=rounds, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations of sparse matrices do not matter here
        hours = model.fit_transform(counts)
    return model, np.asarray(hours, np.float64)


def shares_of_words(model: Any) -> Floats:
    """Return the share of each flow (column) in each topic (row) of a model."""
    return np.asarray(model.components_ / model.components_.sum(axis=1, keepdims=True), np.float64)


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
            Text(
                "Expected at least {least} documents with trips, got {documents:,}. Give a longer release, or fewer {folds}.",
                least=params.folds,
                documents=documents,
            )
        )
    rng = np.random.default_rng(params.seed)
    part = rng.permutation(np.arange(documents) % params.folds)
    known = rng.random(counts.nnz) < 0.5
    if not np.bincount(part[row_slices(counts.indptr)[~known]], minlength=params.folds).all():
        raise InputError(
            Text("Expected more flows to predict in each part of the hours. Give a longer release, or fewer {folds}.")
        )
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
