"""Methods for trajectories side by side on the same data: how far range queries are off, how much is missing, how long it took.

Everything is done in memory. Nothing of it is a release, and the numbers are exact: they stay in the house.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.compare.candidates import (
    Candidate,
    Stage,
    aligned,
    mean_of_defined,
    numbers_or_null,
    with_each_k,
)
from crowdveil.errors import CrowdveilError, InputError, counted
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.range_queries import RangeQueryParams
from crowdveil.model.arrays import Floats
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress, no_progress
from crowdveil.registry import all_methods, find_measure

MEASURES = ("sid", "aid")
K = (2, 4, 8)
"""What is tried where it is not said: as in the paper."""
WARM_UP = 200
"""So many trajectories are enough to compile what a method needs."""


class TrajectoriesSideBySide(RangeQueryParams):
    """What all methods of a comparison of trajectories share."""

    sample: int | None = Field(None, ge=2)
    """Take so many trajectories, drawn at random; without it all of them."""


@dataclass(frozen=True, eq=False)
class TrajectoryOutcome:
    """What came of one method.

    Attributes
    ----------
    label, k
        What it is called, and its smallest crowd, None where it has none.
    by_window
        The distortion in each window, by name of measure.
    removed
        Share of trajectories that are not in the release.
    seconds
        Processor seconds.
    remark
        What sets it apart from methods with a proven guarantee.
    """

    label: str
    k: int | None
    by_window: Mapping[str, Floats]
    removed: float
    seconds: float
    remark: str = ""


@dataclass(frozen=True, eq=False)
class TrajectoryMethods:
    """Methods for trajectories side by side.

    Attributes
    ----------
    data
        The trajectories that they ran on.
    shared
        What was asked of all of them.
    outcomes
        Of each method, in the order asked for.
    left_out
        Why methods are missing, by name.
    """

    data: Trajectories
    shared: TrajectoriesSideBySide
    outcomes: tuple[TrajectoryOutcome, ...]
    left_out: Mapping[str, str]

    @property
    def windows(self) -> tuple[int, ...]:
        """Lengths of the windows, seconds."""
        return self.shared.windows

    @property
    def table(self) -> pa.Table:
        """A row for each method: the mean of each distortion over windows, the share removed, processor seconds, a remark."""
        columns: dict[str, Any] = {
            "method": [found.label for found in self.outcomes],
            "k": pa.array([found.k for found in self.outcomes], pa.int64()),
        }
        for name in MEASURES:
            columns[name] = numbers_or_null([mean_of_defined(found.by_window[name]) for found in self.outcomes])
        columns["trajectories_removed"] = numbers_or_null([found.removed for found in self.outcomes])
        columns["seconds"] = numbers_or_null([found.seconds for found in self.outcomes])
        columns["remark"] = pa.array([found.remark or None for found in self.outcomes], pa.string())
        return pa.table(columns)

    @property
    def values(self) -> pa.Table:
        """A row for each method, measure and window."""
        cells = [
            (found.label, found.k, name, window, value)
            for found in self.outcomes
            for name in MEASURES
            for window, value in zip(self.windows, found.by_window[name].tolist(), strict=True)
        ]
        label, k, name, window, value = (list(column) for column in zip(*cells, strict=True))
        columns = {"method": label, "k": pa.array(k, pa.int64()), "measure": name, "window_s": window}
        return pa.table({**columns, "value": numbers_or_null(value)})

    def lines(self) -> list[str]:
        """A table for people, a column for each measure and window."""
        titles = [f"{find_measure(name).symbol} {window}" for name in MEASURES for window in self.windows]
        head = ["method", *titles, "removed", "seconds", ""]
        rows = [
            [
                found.label,
                *(f"{v:.3f}" if np.isfinite(v) else "–" for name in MEASURES for v in found.by_window[name]),
                f"{100 * found.removed:.1f} %",
                f"{found.seconds:.3g}",
                found.remark,
            ]
            for found in self.outcomes
        ]
        return aligned([head, *rows])

    def told(self) -> str:
        """What the numbers of the table are of."""
        return (
            f"{counted(len(self.data), 'trajectory', 'trajectories')}; {self.shared.queries:,} queries for each longest time of "
            "a query in seconds; seconds of processor time."
        )


def trajectory_candidates(names: Sequence[str] | None, ks: Sequence[int]) -> list[Candidate]:
    """The methods that are named, each once and with each k; all for trajectories where none are."""
    if names is None:
        names = [name for name, method in all_methods().items() if method.takes is Trajectories]
    return [Candidate.named(name, {}) for name in dict.fromkeys(with_each_k(names, [str(k) for k in ks]))]


def sampled(data: Trajectories, wanted: int | None, seed: int) -> Trajectories:
    """The trajectories that are compared on."""
    if len(data) == 0:
        raise InputError("input", "there is no trajectory in it, so that nothing can be compared.")
    if wanted is None or wanted >= len(data):
        return data
    keep = np.zeros(len(data), np.bool_)
    keep[np.random.default_rng(seed).permutation(len(data))[:wanted]] = True
    return data.where(keep)


def trajectory_methods(
    data: Trajectories,
    chosen: Sequence[Candidate],
    shared: TrajectoriesSideBySide,
    *,
    all_of_them: bool,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
) -> TrajectoryMethods:
    """Run methods on the same trajectories.

    Each runs on a few of them before, so that compiling is not measured. What cannot run is an error if the method was named, and
    left out where `all_of_them` were wanted.
    """
    left_out: dict[str, str] = {}
    outcomes = []
    few, warm = sampled(data, WARM_UP, shared.seed), set[str]()
    compared: TrajectoryComparison | None = None
    for candidate in chosen:
        try:
            if candidate.method.name not in warm and len(few) < len(data):
                stage(f"warming up {candidate.method.name}")
                _warm_up(candidate, few, shared.seed)
            warm.add(candidate.method.name)
            stage(candidate.label)
            seconds, release = candidate.run(data, shared.seed, progress)
        except CrowdveilError as error:
            if not all_of_them:
                raise
            left_out[candidate.label] = str(error)
            continue
        stage(f"measuring {candidate.label}")
        compared = TrajectoryComparison(data, release) if compared is None else compared.with_release(release)
        by_window = {name: find_measure(name).of(compared, shared)[0] for name in MEASURES}
        # A release may hold several pieces of one trajectory.
        left = len(np.unique(release.source)) if release.source is not None else len(release)
        remark = "" if candidate.method.status == "proven" else candidate.method.status
        removed = max(1 - left / len(data), 0.0)
        outcomes.append(TrajectoryOutcome(candidate.label, candidate.k, by_window, removed, seconds, remark))
    if not outcomes:
        raise InputError(next(iter(left_out.values())))
    return TrajectoryMethods(data, shared, tuple(outcomes), left_out)


def _warm_up(candidate: Candidate, few: Trajectories, seed: int) -> None:
    """Compile what a method needs; a few trajectories may be too few for it, which says nothing."""
    try:
        candidate.run(few, seed)
    except InputError:
        return
