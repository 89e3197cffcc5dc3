"""Compare methods for trajectories on the same data: distortion of range queries, other measures, suppression and time.

All is done in memory and nothing is published. The numbers are exact and therefore confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.comparison.candidates import (
    REFUSALS,
    Candidate,
    Stage,
    mean_of_defined,
    numbers_or_null,
    plain_column,
    reason_of,
    with_each,
    with_each_k,
)
from crowdveil.comparison.requested_measures import Column, Names, columns_of, named_measures
from crowdveil.comparison.sweep import recommend
from crowdveil.errors import CrowdveilError, InputError, Option, ParameterError, Reason, counted, reason_as
from crowdveil.measures.base import MeasureRequest, shown
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.range_queries import RangeQueryParams
from crowdveil.model.arrays import Floats
from crowdveil.model.tabular import TableProperty, align_rows
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress, no_progress
from crowdveil.registry import all_methods, find_measure

MEASURES, REMOVED = ("sid", "aid"), "trajectories-removed"
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
    measures: Names = Field(None, json_schema_extra={"metavar": "NAMES"})
    """Measures of the table with commas between, as in rmse,propensity-score,record-linkage; all for every one. Default: SID
    and AID."""

    @property
    def by_window(self) -> tuple[str, ...]:
        """Return the measures that have a value for each window of time."""
        if self.measures is None:
            return MEASURES
        wanted = {asked.measure.name for asked in self._requests()}
        return tuple(name for name in MEASURES if name in wanted)

    @property
    def columns(self) -> list[Column]:
        """Return the other measures of the table."""
        others = () if self.measures is None else self._requests()
        return columns_of([asked for asked in others if asked.measure.name not in (*MEASURES, REMOVED)])

    def _requests(self) -> list[MeasureRequest]:
        names = [text.strip() for text in (self.measures or "").split(",") if text.strip()]
        return named_measures(None if names == ["all"] else names, Trajectories)


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
    scores
        Other measures, by the key of their column; NaN where undefined.
    parameters
        Parameters that differ between outcomes, by name.
    """

    label: str
    k: int | None
    by_window: Mapping[str, Floats]
    removed: float
    seconds: float
    remark: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryMethodComparison(TableProperty):
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

    @property
    def table(self) -> pa.Table:
        """A row per method: mean distortion over windows, other measures, suppressed share, processor seconds, and a remark."""
        columns: dict[str, Any] = {
            "method": [found.label for found in self.outcomes],
            "k": pa.array([found.k for found in self.outcomes], pa.int64()),
        }
        for name in dict.fromkeys(name for found in self.outcomes for name in found.parameters):
            columns[name] = plain_column([found.parameters.get(name) for found in self.outcomes])
        for name in self.shared.by_window:
            columns[name] = numbers_or_null([mean_of_defined(found.by_window[name]) for found in self.outcomes])
        for column in self.shared.columns:
            columns[column.name] = numbers_or_null([found.scores[column.key] for found in self.outcomes])
        columns["trajectories_removed"] = numbers_or_null([found.removed for found in self.outcomes])
        columns["seconds"] = numbers_or_null([found.seconds for found in self.outcomes])
        columns["remark"] = pa.array([found.remark or None for found in self.outcomes], pa.string())
        return pa.table(columns)

    @property
    def values(self) -> pa.Table:
        """A row per method and measure, and per window where a measure has them."""
        cells: list[tuple[str, int | None, str, int | None, float]] = []
        for found in self.outcomes:
            for name in self.shared.by_window:
                by_window = zip(self.windows, found.by_window[name].tolist(), strict=True)
                cells += [(found.label, found.k, name, window, value) for window, value in by_window]
            cells += [(found.label, found.k, c.name, None, found.scores[c.key]) for c in self.shared.columns]
        columns = {
            "method": [cell[0] for cell in cells],
            "k": pa.array([cell[1] for cell in cells], pa.int64()),
            "measure": [cell[2] for cell in cells],
            "window_s": pa.array([cell[3] for cell in cells], pa.int64()),
        }
        return pa.table({**columns, "value": numbers_or_null([cell[4] for cell in cells])})

    def lines(self) -> list[str]:
        """Return the table as text, a column per measure, and per window where a measure has them."""
        windowed, others = self.shared.by_window, self.shared.columns
        titles = [f"{find_measure(name).symbol} {window}" for name in windowed for window in self.windows]
        head = ["method", *titles, *(column.title for column in others), "removed", "seconds", ""]
        rows = [
            [
                found.label,
                *(f"{v:.3f}" if np.isfinite(v) else "–" for name in windowed for v in found.by_window[name]),
                *(shown(found.scores[column.key], column.unit) for column in others),
                f"{100 * found.removed:.1f} %",
                f"{found.seconds:.3g}",
                found.remark,
            ]
            for found in self.outcomes
        ]
        return align_rows([head, *rows], remarks=True)

    def caption(self) -> str:
        """Return what the numbers of the table mean."""
        queries = f" {self.shared.queries:,} queries for each maximum query duration in seconds;"
        trajectories = counted(len(self.data), "trajectory", "trajectories")
        return f"{trajectories};{queries if self.shared.by_window else ''} seconds of processor time."


@dataclass(frozen=True, eq=False, repr=False)
class TrajectorySweep(TrajectoryMethodComparison):
    """One method for trajectories with several k, budgets and values of other parameters."""

    @property
    def weighed(self) -> str:
        """The criterion: the first measure of the table."""
        return (*self.shared.by_window, *(column.key for column in self.shared.columns))[0]

    @property
    def recommended(self) -> TrajectoryOutcome | None:
        """The outcome that `recommend` chooses; None if the criterion is undefined for all."""
        best = recommend(
            [(found.k or 0, found.parameters.get("suppress"), self._error(found)) for found in self.outcomes]
        )
        return None if best is None else self.outcomes[best]

    def _error(self, found: TrajectoryOutcome) -> float:
        windowed = self.weighed in found.by_window
        return mean_of_defined(found.by_window[self.weighed]) if windowed else found.scores[self.weighed]

    def recommendation(self) -> str:
        """Return the recommendation in one sentence."""
        best = self.recommended
        if best is None:
            return f"{self.weighed} is undefined for all of them; name another measure with {Option('measures')}."
        return (
            f"Take {best.label}: it has the largest k whose {self.weighed} ({self._error(best):.3g}) is at most twice that of "
            "the smallest k, at the smallest budget with which it is at most twice that of the largest."
        )


def trajectory_candidates(
    names: Sequence[str] | None, ks: Sequence[int], varied: Mapping[str, Sequence[str]] | None = None
) -> list[Candidate]:
    """Return the distinct named methods with each k and each varied value; by default all for trajectories."""
    if names is None:
        names = [name for name, method in all_methods().items() if method.takes is Trajectories]
    wanted = with_each(with_each_k(names, [str(k) for k in ks]), varied or {})
    return [Candidate.named(name, {}) for name in dict.fromkeys(wanted)]


def trajectory_sweep_candidates(
    method: str, ks: Sequence[Any], suppress: Sequence[Any] | None, varied: Mapping[str, Sequence[str]]
) -> list[Candidate]:
    """Return a method with each budget, k and varied value; raise if it has no such parameter."""
    fields = Candidate.named(method, {}).method.params.model_fields
    if "k" not in fields and not varied:
        raise ParameterError(
            method, f"it has no k, so there is nothing to sweep; vary a parameter with {Option('vary')}."
        )
    if suppress is not None and "suppress" not in fields:
        raise ParameterError(method, f"it has no budget; omit {Option('suppress')}, or name another method.")
    names = [method] if suppress is None else [f"{method}:suppress={share}" for share in suppress]
    return trajectory_candidates(names, list(ks) if "k" in fields else [], varied)


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
    varied: Sequence[str] = (),
) -> TrajectoryMethodComparison:
    """Run methods on the same trajectories; `varied` names the parameters that differ, for the table.

    Each first runs on a few of them, so that compilation is not measured. A method that fails is left out
    with its reason; raise if all fail.
    """
    left_out: dict[str, str] = {}
    outcomes = []
    few, warm = sample_trajectories(data, WARM_UP, shared.seed), set[str]()
    compared: TrajectoryComparison | None = None
    for candidate in chosen:
        try:
            if candidate.method.name not in warm:
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
        by_window = {name: find_measure(name).of(compared, shared)[0] for name in shared.by_window}
        scores = _scores(compared, candidate.label, shared.columns, left_out)
        # A release may hold several segments of one trajectory.
        left = len(np.unique(release.source)) if release.source is not None else len(release)
        remark = "" if candidate.method.status == "proven" else candidate.method.status
        removed = max(1 - left / len(data), 0.0)
        parameters = {name: getattr(candidate.params, name) for name in varied if hasattr(candidate.params, name)}
        outcomes.append(
            TrajectoryOutcome(candidate.label, candidate.k, by_window, removed, seconds, remark, scores, parameters)
        )
    if not outcomes:
        raise InputError(reason_as(next(iter(left_out.values())), str))
    return TrajectoryMethodComparison(data, shared, tuple(outcomes), left_out)


def _scores(
    compared: TrajectoryComparison, label: str, columns: Sequence[Column], left_out: dict[str, str]
) -> dict[str, float]:
    """Return the measures of a release by the key of their column; those that cannot be computed are NaN, with a reason."""
    found: dict[str, float] = {}
    values: dict[str, Floats] = {}
    for column in columns:
        asked = column.asked
        if asked is None:  # a figure of matrices
            continue
        try:
            if asked.label not in values:
                values[asked.label] = asked.measure.of(compared, asked.params)
            found[column.key] = float(np.ravel(column.of(values[asked.label]))[0])
        except CrowdveilError as error:
            found[column.key] = float("nan")
            left_out[f"{asked.label} of {label}"] = Reason(error)
    return found


def _warm_up(candidate: Candidate, few: Trajectories, seed: int) -> None:
    """Compile the kernels of a method; a few trajectories may be too few for it, which is ignored."""
    try:
        candidate.run(few, seed)
    except InputError:
        return
