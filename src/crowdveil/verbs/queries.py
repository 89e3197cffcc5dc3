"""Measure how the answers to the user's range queries differ between original trajectories and a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.progress import Progress, Stage, no_progress
from crowdveil.errors import InputError, counted, rows_that
from crowdveil.io.columns import need_column
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import open_source
from crowdveil.io.times import read_seconds
from crowdveil.io.values import read_floats
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.tabular import Tabular
from crowdveil.model.time_axis import Clock
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.path_tree import PathTree, RangeQueries
from crowdveil.verbs.measure import read_both
from crowdveil.verbs.opened import visible

Distortion = Callable[[Ints, Ints], Floats]
"""From answers in the original and in the release to the distortion of each query."""


def relative_change(original: Ints, published: Ints) -> Floats:
    """Return |Q − Q*| / max(Q, Q*) of each query, 0 if both are 0."""
    return np.asarray(np.abs(original - published) / np.maximum(np.maximum(original, published), 1), np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class QueryAnswers(Tabular):
    """Answers to the queries of a table, and their distortion.

    Attributes
    ----------
    sometime, sometime_published
        Number of trajectories inside at some time of each query, in the original and in the release.
    always, always_published
        Number of trajectories inside all the time.
    sid, aid
        Mean distortion of these two.
    """

    sometime: Ints
    sometime_published: Ints
    always: Ints
    always_published: Ints
    sid: float
    aid: float

    def __len__(self) -> int:
        return len(self.sometime)

    def to_arrow(self) -> pa.Table:
        """Return a row for each query. It is confidential: it has exact counts of the original."""
        names = ("sometime", "sometime_published", "always", "always_published")
        return pa.table({"query": np.arange(1, len(self) + 1), **{name: getattr(self, name) for name in names}})

    def lines(self) -> list[str]:
        """Return a summary."""
        asked = counted(len(self), "query", "queries")
        return [f"{asked}: SID {self.sid:.4f}, AID {self.aid:.4f} (0 no change; exact and confidential)"]


@visible
def measure_queries(
    original: Any,
    release: Any,
    queries: Any,
    *,
    distortion: Distortion = relative_change,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> QueryAnswers:
    """Measure how the answers to your own spatio-temporal range queries change. The numbers are exact and confidential.

    `queries` is a path or a table with the columns `lon`, `lat`, `radius_m`, `start` and `end`: closed circles and intervals of
    time, as in `sid` and `aid`; times without a zone are in that of the original. `distortion` takes the answers to all queries
    in the original and in the release, and returns the distortion of each; the default is abs(Q − Q*) / max(Q, Q*). `original`,
    `release` and `options` are those of `measure`.

    >>> crowdveil.measure_queries("cabs.csv", "out", "queries.csv").sid  # doctest: +SKIP
    """
    stage("reading")
    data, made, _, tz = read_both(original, release, None, False, options, notes if notes is not None else ReadNotes())
    if not isinstance(data, Trajectories) or not isinstance(made, TrajectoryRelease):
        raise InputError("Expected trajectories, got flows. Range queries are for trajectories.")
    if len(data) == 0:
        raise InputError("Expected at least one original trajectory, got none.")
    compared = TrajectoryComparison(data, made)
    asked = read_queries(queries, compared, tz)
    stage("answering")
    before, after = (PathTree.of(paths).counts(asked) for paths in (compared.paths, compared.published))
    means = [float(np.mean(distortion(a, b))) for a, b in zip(before, after, strict=True)]
    return QueryAnswers(before[0], after[0], before[1], after[1], *means)


def read_queries(queries: str | Path | Any, compared: TrajectoryComparison, tz: str) -> RangeQueries:
    """Read a table of circles and intervals, in the plane and the seconds of the original."""
    source, notes = open_source(queries), ReadNotes()
    table = source.read()
    names = {role: need_column(source, role, None, notes) for role in ("lon", "lat")}
    for name in ("radius_m", "start", "end"):
        if name not in table.column_names:
            raise InputError(
                source.name, f"Expected the columns lon, lat, radius_m, start and end, but {name} is missing. Add it."
            )
    wrong = np.zeros(len(table), np.bool_)
    columns: list[Floats] = []
    for column, low, high in ((names["lon"], -180, 180), (names["lat"], -90, 90), ("radius_m", 0, 1e7)):
        values, bad = read_floats(table[column], f"{source.name}, column {column}")
        wrong |= ~((values >= low) & (values <= high)) | (False if bad is None else bad)
        columns.append(values)
    times = []
    for name in ("start", "end"):
        read = read_seconds(table[name], f"{source.name}, column {name}")
        wrong |= read.bad
        times.append((read.values if read.instants else Clock(tz).to_utc(read.values)).astype(np.float64))
    wrong |= times[0] > times[1]
    rows = np.flatnonzero(wrong) + 1
    if len(rows):
        raise InputError(
            source.name, f"{rows_that(rows.tolist(), len(rows), 'have no usable circle or interval')}. Fix them."
        )
    x, y = compared.original.projection.to_plane(columns[0], columns[1])
    return RangeQueries(x, y, columns[2], times[0] - compared.start, times[1] - compared.start)
