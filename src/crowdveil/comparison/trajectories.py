"""Compare methods for trajectories on the same data: distortion of range queries, suppressed trajectories and time.

All is done in memory and nothing is published. The numbers are exact and therefore confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.comparison.candidates import (
    REFUSALS,
    Candidate,
    Stage,
    align_columns,
    mean_of_defined,
    numbers_or_null,
    reason_of,
    with_each_k,
)
from crowdveil.errors import InputError, counted
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.range_queries import RangeQueryParams
from crowdveil.model.arrays import Floats
from crowdveil.model.tabular import Tabular
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress, no_progress
from crowdveil.registry import all_methods, find_measure

MEASURES = ("sid", "aid")
K = (2, 4, 8)
"""Default values, as in the paper."""
MAX_TRAJECTORIES = 5_000
"""Default number of trajectories."""
WARM_UP = 200
"""Number of trajectories that suffices to compile the kernels of a method."""


class TrajectoryComparisonParams(RangeQueryParams):
    """Parameters that all methods of a comparison of trajectories share."""

    sample: int | None = Field(None, ge=2)
    """Number of trajectories, drawn at random (default: at most 5,000)."""


@dataclass(frozen=True, eq=False)
class TrajectoryOutcome:
    """Result of one method.

    Attributes
    ----------
    label, k
        Its label, and its k (None if it has none).
    by_window
        Distortion in each window, by name of measure.
    removed
        Share of suppressed trajectories.
    seconds
        Processor seconds.
    remark
        How it differs from methods with a proven guarantee.
    """

    label: str
    k: int | None
    by_window: Mapping[str, Floats]
    removed: float
    seconds: float
    remark: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryMethodComparison(Tabular):
    """Comparison of methods for trajectories.

    Attributes
    ----------
    data
        The compared trajectories.
    shared
        Shared parameters.
    outcomes
        Result of each method, in the requested order.
    left_out
        Why methods are missing, by name.
    """

    data: Trajectories
    shared: TrajectoryComparisonParams
    outcomes: tuple[TrajectoryOutcome, ...]
    left_out: Mapping[str, str]

    @property
    def windows(self) -> tuple[int, ...]:
        """Lengths of the windows, seconds."""
        return self.shared.windows

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return self.table

    @property
    def table(self) -> pa.Table:
        """A row per method: mean distortion over windows, suppressed share, processor seconds, and a remark."""
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
        """A row per method, measure and window."""
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
        """Return the table as text, a column per measure and window."""
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
        return align_columns([head, *rows])

    def caption(self) -> str:
        """Return what the numbers of the table mean."""
        return (
            f"{counted(len(self.data), 'trajectory', 'trajectories')}; {self.shared.queries:,} queries for each maximum query "
            "duration in seconds; seconds of processor time."
        )


def trajectory_candidates(names: Sequence[str] | None, ks: Sequence[int]) -> list[Candidate]:
    """Return the distinct named methods with each k; by default all for trajectories."""
    if names is None:
        names = [name for name, method in all_methods().items() if method.takes is Trajectories]
    return [Candidate.named(name, {}) for name in dict.fromkeys(with_each_k(names, [str(k) for k in ks]))]


def sample_trajectories(data: Trajectories, wanted: int | None, seed: int) -> Trajectories:
    """Return a random sample of trajectories, or all of them where there are not more."""
    if len(data) == 0:
        raise InputError("input", "there is no trajectory; wanted at least one.")
    number = MAX_TRAJECTORIES if wanted is None else wanted
    if number >= len(data):
        return data
    keep = np.zeros(len(data), np.bool_)
    keep[np.random.default_rng(seed).permutation(len(data))[:number]] = True
    return data.where(keep)


def compare_trajectory_methods(
    data: Trajectories,
    chosen: Sequence[Candidate],
    shared: TrajectoryComparisonParams,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
) -> TrajectoryMethodComparison:
    """Run methods on the same trajectories.

    Each first runs on a few of them, so that compilation is not measured. A method that fails is left out
    with its reason; raise if all fail.
    """
    left_out: dict[str, str] = {}
    outcomes = []
    few, warm = sample_trajectories(data, WARM_UP, shared.seed), set[str]()
    compared: TrajectoryComparison | None = None
    for candidate in chosen:
        try:
            if candidate.method.name not in warm and len(few) < len(data):
                stage(f"warming up {candidate.method.name}")
                _warm_up(candidate, few, shared.seed)
            warm.add(candidate.method.name)
            stage(candidate.label)
            seconds, release = candidate.run(data, shared.seed, progress)
        except REFUSALS as error:
            left_out[candidate.label] = reason_of(error)
            continue
        stage(f"measuring {candidate.label}")
        compared = TrajectoryComparison(data, release) if compared is None else compared.with_release(release)
        by_window = {name: find_measure(name).of(compared, shared)[0] for name in MEASURES}
        # A release may hold several segments of one trajectory.
        left = len(np.unique(release.source)) if release.source is not None else len(release)
        remark = "" if candidate.method.status == "proven" else candidate.method.status
        removed = max(1 - left / len(data), 0.0)
        outcomes.append(TrajectoryOutcome(candidate.label, candidate.k, by_window, removed, seconds, remark))
    if not outcomes:
        raise InputError(next(iter(left_out.values())))
    return TrajectoryMethodComparison(data, shared, tuple(outcomes), left_out)


def _warm_up(candidate: Candidate, few: Trajectories, seed: int) -> None:
    """Compile the kernels of a method; a few trajectories may be too few for it, which is ignored."""
    try:
        candidate.run(few, seed)
    except InputError:
        return
