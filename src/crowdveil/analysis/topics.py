"""Find topics: groups of flows that occur at the same hours, by Latent Dirichlet Allocation.

What it does
------------
Latent Dirichlet Allocation treats each hour as a document and each pair of zones as a word, repeated once per trip. It finds
topics, each a mixture of flows, such that every hour is a mixture of few topics: commuting to work, commuting home, night.
Topics with less than 0.5 % of the trips are left out with a note: more topics were requested than the data have. With
a range such as `--topics 2-8`, the number is chosen by held-out perplexity.

`hours` are the shares of the topics in each hour, `flows` the shares of the flows in each topic. Topics are numbered by their
trips, the largest first.

Documents are the hours of the week (or of the day), or single time steps. Words are pairs of target zones, with the release
spread over them as `reconstruct` does; or pairs of areas of the release.

If the original is given, its topics are found in the same way, over the largest flows of both. Each topic of the release is
paired with one of the original such that the sum of the distances is smallest. The distance of two topics is the total variation:
half the sum of the absolute differences of their shares of flows, 0 for equal topics, 1 for topics without a common flow.

Notes
-----
Only the `most_flows` largest flows are words; their share of the trips is reported. Areas change from hour to hour, so words of
areas distinguish hours by the generalization as well as by travel; zones do not. The implementation is scikit-learn's, with
variational Bayes over all documents at once.

References
----------
Blei, Ng, Jordan, Latent Dirichlet Allocation, 2003. Matet et al., Mobile phone Origin-Destination Matrix Anonymization and
Analysis, CCS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from crowdveil.analysis.base import Analysis, TableResult
from crowdveil.analysis.calendar import Slots, when_columns
from crowdveil.analysis.study import Study
from crowdveil.analysis.topic_model import (
    TopicNumber,
    TopicParams,
    choose_number,
    count_words,
    filled_counts,
    fit_topics,
    shares_of_words,
)
from crowdveil.engine.progress import Progress
from crowdveil.errors import Text, as_command_line, counted, render
from crowdveil.model.arrays import Floats, Ints, Labels
from crowdveil.model.tabular import align_rows

MAX_LISTED = 3
"""Flows of a topic in the summary."""
EMPTY = 0.005
"""Share of all trips below which a topic counts as empty: more topics were requested than the data have."""


class TopicMatch(NamedTuple):
    """Topics of a release paired with those of the original.

    Attributes
    ----------
    topic
        The topic of the original for each topic of the release, -1 for none, since the original may have fewer.
    distance
        Total variation between the two, NaN for none.
    original_topics
        Number of topics of the original that are not empty.
    """

    topic: Ints
    distance: Floats
    original_topics: int


@dataclass(frozen=True, eq=False, repr=False)
class Topics(TableResult):
    """Topics of the hours of a release.

    Attributes
    ----------
    names
        Names of the zones or areas.
    places
        Longitude and latitude of each; NaN if unknown.
    slots
        The hours; None if documents are time steps.
    documents
        Hour or time step of each document.
    hours
        Share of each topic (column) in each document (row).
    origin, destination
        Flows that are words.
    flows
        Share of each flow (column) in each topic (row).
    share
        Share of each topic in all trips.
    covered
        Share of the release's trips in the words.
    empty
        Number of empty topics, which are left out.
    match
        The pairing with topics of the original; None if it was not given.
    choice
        The perplexity of each number of topics; None where the number was given.
    """

    study: Study
    params: TopicParams
    names: Labels
    places: Floats
    slots: Slots | None
    documents: Ints
    hours: Floats
    origin: Ints
    destination: Ints
    flows: Floats
    share: Floats
    covered: float
    empty: int = 0
    match: TopicMatch | None = None
    choice: TopicNumber | None = None

    def __len__(self) -> int:
        return len(self.flows)

    def main_flows(self, topic: int, count: int | None = None) -> list[tuple[int, int, float]]:
        """Return origin, destination and share of the largest flows of a topic."""
        top = np.argsort(-self.flows[topic], kind="stable")[: count or self.params.flows]
        return [(int(self.origin[i]), int(self.destination[i]), float(self.flows[topic, i])) for i in top]

    def by_slot(self) -> tuple[Slots, Floats]:
        """Return the mean share of each topic in each hour of the week (or day); NaN in hours without trips."""
        release = self.study.released.release
        slots = self.slots or Slots.of([release], "week")
        slot = self.documents if self.slots is not None else slots.of_times(release.step_starts[self.documents])
        count = np.bincount(slot, minlength=len(slots))
        sums = np.stack([np.bincount(slot, column, len(slots)) for column in self.hours.T], axis=1)
        return slots, np.divide(sums, count[:, None], out=np.full(sums.shape, np.nan), where=count[:, None] > 0)

    def table(self) -> pa.Table:
        """Return two kinds of rows: `hours`, the share of a topic in a document; `flows`, that of a main flow in a topic."""
        n, k = self.hours.shape
        when = when_columns(self.study.released.release, self.slots, np.repeat(self.documents, k))
        hours = pa.table(
            {"what": ["hours"] * (n * k), "topic": np.tile(np.arange(k), n) + 1, **when, "share": self.hours.ravel()}
        )
        main = [(t, *flow) for t in range(k) for flow in self.main_flows(t)]
        flows = pa.table(
            {
                "what": pa.array(["flows"] * len(main)),
                "topic": [t + 1 for t, _, _, _ in main],
                "origin": [str(self.names[o]) for _, o, _, _ in main],
                "destination": [str(self.names[d]) for _, _, d, _ in main],
                "share": [share for _, _, _, share in main],
            }
        )
        both = pa.concat_tables([hours, flows], promote_options="default")
        return both.select(["what", "topic", *when, "origin", "destination", "share"])

    @property
    def labels(self) -> Labels:
        """The names of the zones or areas."""
        return self.names

    def about(self) -> dict[str, Any]:
        """Return the description of the numbers, for the file."""
        return {
            "analysis": "topics",
            "parameters": self.params.model_dump(mode="json"),
            "meaning": "hours: share of a topic in the published trips of an hour; flows: share of a flow in a topic.",
            "share_of_trips": [round(float(s), 6) for s in self.share],
            "trips_in_words": round(self.covered, 6),
            "empty_topics_left_out": self.empty,
            **({} if self.choice is None else {"numbers_of_topics": self.choice.to_arrow().to_pylist()}),
            **({} if self.match is None else _as_json(self.match)),
        }

    def lines(self) -> list[str]:
        """Return a line per topic: its share of trips, peak hour and main flows."""
        slots, by_slot = self.by_slot()
        match = self.match
        rows = [["topic", "peak", "main flows", "of trips", *([] if match is None else ["from the original"])]]
        for topic in range(len(self)):
            main = ", ".join(f"{self.names[o]} → {self.names[d]}" for o, d, _ in self.main_flows(topic, MAX_LISTED))
            peak = slots.name(int(np.nanargmax(by_slot[:, topic])))
            far = [] if match is None else ["–" if match.topic[topic] < 0 else f"{match.distance[topic]:.2f}"]
            rows.append([str(topic + 1), peak, main, f"{100 * self.share[topic]:.0f} %", *far])
        documents = {"week": "hour of the week", "day": "hour of the day", "step": "time step"}[self.params.documents]
        plural = documents.replace("hour", "hours").replace("step", "steps")
        more = Text(
            "{empty} of {topics_asked} topics {are} empty and left out (below {most:g} % of the trips); "
            "choose a smaller {topics}.",
            empty=self.empty,
            topics_asked=len(self) + self.empty,
            are="is" if self.empty == 1 else "are",
            most=100 * EMPTY,
        )
        return [
            *([] if self.choice is None else [*self.choice.lines(), ""]),
            f"{counted(len(self), 'topic')} of {counted(len(self.documents), documents, plural)}, "
            f"{counted(len(self.origin), 'flow')} with {100 * self.covered:.0f} % of the published trips",
            "",
            *align_rows(rows, left=3),
            *(["", render(more, as_command_line)] if self.empty else []),
            *([] if match is None else ["", _distance_line(self.share, match)]),
        ]


def run(study: Study, params: TopicParams, progress: Progress) -> Topics:
    """Count trips by document and flow, and find the topics."""
    words = count_words(study, params, progress)
    choice = choose_number(words.counts.tocsr(), params, progress) if len(params.numbers) > 1 else None
    number = params.numbers[0] if choice is None else choice.chosen
    hours, flows, share, empty = _not_empty(words.counts, number, params)
    match = None
    if study.original is not None:
        original, _ = filled_counts(study.original, words.slots, words.keys, progress)
        match = match_topics(flows, _not_empty(original, number, params)[1])
    covered = float(words.counts.sum() / study.released.release.volume.sum())
    origin, destination = words.keys // words.zones, words.keys % words.zones
    return Topics(
        study, params, words.names, words.places, words.slots, words.documents, hours, origin, destination, flows, share,
        covered, empty, match, choice,
    )  # fmt: skip


def _not_empty(counts: Any, topics: int, params: TopicParams) -> tuple[Floats, Floats, Floats, int]:
    """Return shares of topics in documents, of flows in topics and of topics in all trips, and the number of empty topics.

    Topics are in order of their trips; empty ones are left out, and their shares of documents go to the others.
    """
    model, hours = fit_topics(counts, topics, params.rounds, params.seed)
    flows = shares_of_words(model)
    # The share of each topic in all trips: hours are weighted by their trips.
    share = counts.sum(axis=1) @ hours / counts.sum()
    order = np.argsort(-share, kind="stable")
    order = order[: max(1, int((share >= EMPTY).sum()))]
    hours = hours[:, order] / hours[:, order].sum(axis=1, keepdims=True)
    return hours, flows[order], counts.sum(axis=1) @ hours / counts.sum(), len(share) - len(order)


def match_topics(flows: Floats, original: Floats) -> TopicMatch:
    """Pair topics of the release and the original, given as shares of the same flows, with the least sum of distances."""
    from scipy.optimize import linear_sum_assignment

    distance = np.abs(flows[:, None, :] - original[None, :, :]).sum(axis=2) / 2
    topic, far = np.full(len(flows), -1, np.int64), np.full(len(flows), np.nan)
    for own, other in zip(*linear_sum_assignment(distance), strict=True):
        topic[own], far[own] = other, distance[own, other]
    return TopicMatch(topic, far, len(original))


def _distance_line(share: Floats, match: TopicMatch) -> str:
    """Return the mean distance of paired topics, weighted by their trips."""
    paired = match.topic >= 0
    mean = float((share[paired] * match.distance[paired]).sum() / share[paired].sum())
    return (
        f"distance from the topics of the original: {mean:.3f} (0 equal, 1 no common flow), mean by trips over "
        f"{int(paired.sum())} pairs; the original has {counted(match.original_topics, 'topic')}"
    )


def _as_json(match: TopicMatch) -> dict[str, Any]:
    """Return the pairing as plain values, topics from 1."""
    far = [None if np.isnan(d) else round(float(d), 6) for d in match.distance]
    return {
        "topic_of_original": [None if t < 0 else int(t) + 1 for t in match.topic],
        "distance_from_original": far,
        "topics_of_original": match.original_topics,
    }


ANALYSIS = Analysis(
    "topics",
    TopicParams,
    run,
    __doc__ or "",
    "Latent Dirichlet Allocation: hours are documents, flows are words. Reports the share of each topic in each hour, and the "
    "main flows of each topic.",
    extra="analysis",
    examples=(
        "out/ --topics 5 -o topics.json",
        "out/ --zones zones.geojson --topics 2-8 --documents day",
        "out/ --zones zones.geojson --to-zones h3:7 --documents day --plot topics.png",
        "out/ --zones zones.geojson --original trips.parquet",
    ),
)
