"""Find topics: groups of flows that occur at the same hours, by Latent Dirichlet Allocation.

What it does
------------
Latent Dirichlet Allocation treats each hour as a document and each pair of zones as a word, repeated once per trip. It finds
topics, each a mixture of flows, such that every hour is a mixture of few topics: commuting to work, commuting home, night.
`hours` are the shares of the topics in each hour, `flows` the shares of the flows in each topic. Topics are numbered by their
trips, the largest first.

Documents are the hours of the week (or of the day), or single time steps. Words are pairs of target zones, with the release
spread over them as `reconstruct` does; or pairs of areas of the release.

Notes
-----
Only the `most_flows` largest flows are words; their share of the trips is reported. Areas change from hour to hour, so that
words of areas distinguish hours by the generalization as well as by travel; zones do not. The implementation is scikit-learn's,
with variational Bayes over all documents at once.

References
----------
Blei, Ng, Jordan, Latent Dirichlet Allocation, 2003. Matet et al., Mobile phone Origin-Destination Matrix Anonymization and
Analysis, CCS 2021.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.analysis.base import Analysis
from crowdveil.analysis.calendar import Slots
from crowdveil.analysis.estimates import Groups, estimate_chunks
from crowdveil.analysis.reconstruction import align_rows
from crowdveil.analysis.study import Study, StudySide
from crowdveil.errors import InputError, Option, as_command_line, counted, import_extra, render
from crowdveil.io.table_writer import open_table_writer
from crowdveil.io.times import time_column
from crowdveil.model.arrays import Floats, Ints, Labels
from crowdveil.model.tabular import Tabular
from crowdveil.params import Params
from crowdveil.progress import Progress, no_progress
from crowdveil.solve.od.overlaps import Shares

MAX_LISTED = 3
"""Flows of a topic in the summary."""
EMPTY = 0.005
"""Share of all trips below which a topic counts as empty: more topics were requested than the hours have."""


class TopicParams(Params):
    """Parameters of topics."""

    topics: int = Field(5, ge=2, le=100)
    """Number of topics."""
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
    """Seed of the random start."""


@dataclass(frozen=True, eq=False, repr=False)
class Topics(Tabular):
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

    def __len__(self) -> int:
        return len(self.flows)

    @property
    def filled(self) -> int:
        """Number of topics that are not empty; they come first."""
        return max(1, int((self.share >= EMPTY).sum()))

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

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return self.table()

    def table(self) -> pa.Table:
        """Return two kinds of rows: `hours`, the share of a topic in a document; `flows`, that of a main flow in a topic."""
        n, k = self.hours.shape
        when = {name: c.take(pa.array(np.repeat(np.arange(n), k))) for name, c in self._when().items()}
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

    def _when(self) -> dict[str, Any]:
        """Return the columns that identify documents."""
        if self.slots is None:
            release = self.study.released.release
            return {"t": time_column(release.step_starts[self.documents], release.tz, as_text=False)}
        return {
            name: pa.array(c, pa.string()).take(pa.array(self.documents)) for name, c in self.slots.columns().items()
        }

    def about(self) -> dict[str, Any]:
        """Return the description of the numbers, for the file."""
        return {
            "analysis": "topics",
            "parameters": self.params.model_dump(mode="json"),
            "meaning": "hours: share of a topic in the published trips of an hour; flows: share of a flow in a topic.",
            "share_of_trips": [round(float(s), 6) for s in self.share],
            "trips_in_words": round(self.covered, 6),
        }

    def write(self, path: Path, progress: Progress = no_progress) -> None:
        """Write both kinds of rows in the format of the suffix."""
        table = self.table()
        with open_table_writer(path, table.schema, self.about(), self.names) as write:
            write(table)

    def lines(self) -> list[str]:
        """Return a line per topic: its share of trips, peak hour and main flows."""
        slots, by_slot = self.by_slot()
        rows = [["topic", "peak", "main flows", "of trips"]]
        for topic in range(self.filled):
            main = ", ".join(f"{self.names[o]} → {self.names[d]}" for o, d, _ in self.main_flows(topic, MAX_LISTED))
            peak = slots.name(int(np.nanargmax(by_slot[:, topic])))
            rows.append([str(topic + 1), peak, main, f"{100 * self.share[topic]:.0f} %"])
        empty = len(self) - self.filled
        documents = {"week": "hour of the week", "day": "hour of the day", "step": "time step"}[self.params.documents]
        plural = documents.replace("hour", "hours").replace("step", "steps")
        more = f"{counted(empty, 'topic')} {'is' if empty == 1 else 'are'} empty; choose a smaller {Option('topics')}."
        return [
            f"{counted(len(self), 'topic')} of {counted(len(self.documents), documents, plural)}, "
            f"{counted(len(self.origin), 'flow')} with {100 * self.covered:.0f} % of the published trips",
            "",
            *align_rows(rows, left=3),
            *(["", render(more, as_command_line)] if empty else []),
        ]


def run(study: Study, params: TopicParams, progress: Progress) -> Topics:
    """Count trips by document and flow, and find the topics."""
    release = study.released.release
    slots = None if params.documents == "step" else Slots.of([release], params.documents)
    if slots is None and release.step_s is None:
        raise InputError(
            f"topics need time steps, but the release has none; make one with times and {Option('step', '1h')}."
        )
    groups = Groups.steps(release) if slots is None else slots.groups(release)
    side, names, places = _places(study, params)
    keys, volume = _largest(side, params.most_flows)
    counts = _counts(side, groups, keys, progress)
    filled = np.flatnonzero(counts.sum(axis=1) > 0)
    if len(filled) < 2 or len(keys) < 2:
        raise InputError("topics need at least two hours and two flows with published trips; give a longer release.")
    hours, flows = _topics(counts[filled], params)
    # The share of each topic in all trips: hours are weighted by their trips.
    share = counts[filled].sum(axis=1) @ hours / volume
    order = np.argsort(-share, kind="stable")
    origin, destination = keys // side.shares.zones, keys % side.shares.zones
    return Topics(
        study, params, names, places, slots, filled, hours[:, order], origin, destination, flows[order], share[order],
        float(volume / release.volume.sum()),
    )  # fmt: skip


def _places(study: Study, params: TopicParams) -> tuple[StudySide, Labels, Floats]:
    """Return the flows between zones or areas, with names and centers of these."""
    if params.words == "zones":
        zones = study.zones
        return study.released, zones.ids, np.column_stack([zones.lon, zones.lat])
    areas = study.released.release.areas
    n, one = len(areas), np.ones(len(areas))
    alone = Shares(n, np.arange(n + 1), np.arange(n, dtype=np.int32), one, one, np.ones(n, np.bool_))
    tiles = np.column_stack([areas.zones.lon, areas.zones.lat])[areas.tiles]
    middle = np.add.reduceat(tiles, areas.offsets[:-1], axis=0) / areas.size[:, None] if n else np.zeros((0, 2))
    return StudySide(study.released.release, alone), areas.names, middle


def _largest(side: StudySide, most: int) -> tuple[Ints, float]:
    """Return the keys (origin × zones + destination) of the largest flows over all time, ascending, and their trips."""
    everything = Groups.all(side.release)
    chunks = [(_keys(side, c.origin, c.destination), c.volume) for c in estimate_chunks(side, everything)]
    keys, volume = (np.concatenate(column) for column in zip(*chunks, strict=True))
    top = np.sort(np.argsort(-volume, kind="stable")[:most])
    return keys[top], float(volume[top].sum())


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


def _topics(counts: Any, params: TopicParams) -> tuple[Floats, Floats]:
    """Return the shares of topics in documents, and of flows in topics."""
    decomposition = import_extra("sklearn.decomposition", "scikit-learn", "analysis", "finding topics")
    model = decomposition.LatentDirichletAllocation(params.topics, max_iter=params.rounds, random_state=params.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations of sparse matrices do not matter here
        hours = model.fit_transform(counts)
    flows = model.components_ / model.components_.sum(axis=1, keepdims=True)
    return np.asarray(hours, np.float64), np.asarray(flows, np.float64)


ANALYSIS = Analysis(
    "topics",
    TopicParams,
    run,
    __doc__ or "",
    "Latent Dirichlet Allocation: hours are documents, flows are words. Reports the share of each topic in each hour, and the "
    "main flows of each topic.",
    compares=False,
    extra="analysis",
    examples=(
        "out/ --topics 5 -o topics.json",
        "out/ --zones zones.geojson --to-h3 7 --documents day --plot topics.png",
    ),
)
