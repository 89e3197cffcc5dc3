"""Compare methods, and sweep parameters of one, without publishing anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crowdveil.api.opened import visible
from crowdveil.comparison.candidates import COMPARING, KINDS, data_kind_of, with_each_k
from crowdveil.comparison.flows import (
    FlowComparison,
    FlowComparisonParams,
    candidates,
    compare_flow_methods,
    sample_matrices,
)
from crowdveil.comparison.sweep import K, Sweep, run_sweep, sweep_candidates
from crowdveil.comparison.tables import SUMMARY_FILE, SWEEP_FILE, check_folder, write_comparison
from crowdveil.comparison.trajectories import K as K_OF_TRAJECTORIES
from crowdveil.comparison.trajectories import (
    TrajectoryComparisonParams,
    TrajectoryMethodComparison,
    compare_trajectory_methods,
    sample_trajectories,
    trajectory_candidates,
)
from crowdveil.errors import Option, ParameterError, counted
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress, Stage, no_progress
from crowdveil.reading import FlowReading, TrajectoryReading, read
from crowdveil.run.verification import check_k_feasible


@visible
def compare(
    data: Any,
    methods: Sequence[str] | None = None,
    output: str | Path | None = None,
    *,
    k: int | Sequence[int] | None = None,
    trajectories: bool = False,
    suppress: float | str | None = None,
    suppress_trips: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> FlowComparison | TrajectoryMethodComparison:
    """Run methods with the same k on the same data. Nothing is published.

    `methods` are names, with parameters where wanted, as in `joint:splits=dyadic` or `joint:k=5`; all for flows where none are
    given, all for trajectories with `trajectories`. With several `k` each method runs with each.

    For flows (k 10, budget `suppress` 10 %, or a number `suppress_trips`) `sample` matrices are taken, evenly spread; at most
    10 where it is not given, and fewer if they have more than 2 million flows (48 that follow one another where a method joins
    time steps). The table (`.table`, Arrow) has the means of generalization Ḡ, reconstruction error E, distribution distance D
    and suppression S, and processor seconds a matrix. For trajectories (k 2, 4 and 8) it has the distortion of range queries,
    SID and AID, by windows of time (see `RangeQueryParams` for `options`), and the share removed; `sample` trajectories are
    drawn at random, at most 5,000 where it is not given. With `output` tables and plots are written to that folder. Numbers are
    exact and confidential.

    >>> crowdveil.compare("trips.parquet", ["joint", "oigh"], zones="zones.geojson").table  # doctest: +SKIP
    >>> crowdveil.compare("cabs.csv", ["microaggregation", "swapmob"], k=[2, 4]).table  # doctest: +SKIP
    """
    check_folder(output, SUMMARY_FILE, overwrite=overwrite)
    takes = data_kind_of(methods, Trajectories if trajectories or isinstance(data, Trajectories) else Flows)
    other = Flows if takes is Trajectories else Trajectories
    if isinstance(data, other):
        wanted, got = KINDS[other][0], KINDS[takes][0]
        raise ParameterError(Option("methods"), f"wanted those for {wanted}, but got ones for {got}; name others.")
    said = notes if notes is not None else ReadNotes()
    found: FlowComparison | TrajectoryMethodComparison
    if takes is Trajectories:
        if suppress is not None or suppress_trips is not None:
            raise ParameterError(
                Option("suppress" if suppress_trips is None else "suppress_trips"),
                "it is a budget of trips, and these methods are for trajectories; leave it out.",
            )
        values = {**options, "sample": sample, "seed": seed}
        asked = {n: v for n, v in values.items() if n in TrajectoryComparisonParams.model_fields}
        reading = {n: v for n, v in options.items() if n not in asked}
        found = _compare_trajectories(
            data, methods, K_OF_TRAJECTORIES if k is None else k, TrajectoryComparisonParams.checked(asked),
            TrajectoryReading.checked(reading), said, progress, stage,
        )  # fmt: skip
    else:
        ks = [10] if k is None else [k] if isinstance(k, int) else list(dict.fromkeys(k))
        asked = {"k": max(ks, default=0), "sample": sample, "seed": seed}
        budget = {"suppress": suppress, "suppress_trips": suppress_trips}
        shared: FlowComparisonParams = FlowComparisonParams.checked(
            asked | {n: v for n, v in budget.items() if v is not None}
        )
        found = _compare_flows(data, methods, ks, shared, options, said, progress, stage)
    if output is not None:
        write_comparison(found, output, overwrite=overwrite)
    return found


def _compare_flows(
    data: Any,
    methods: Sequence[str] | None,
    ks: Sequence[int],
    shared: FlowComparisonParams,
    options: dict[str, Any],
    notes: ReadNotes,
    progress: Progress,
    stage: Stage,
) -> FlowComparison:
    if len(ks) > 1:
        if methods is None:
            raise ParameterError(
                Option("k"), f"several values were given, but no methods; name some with {Option('methods')}."
            )
        methods = with_each_k(methods, [str(k) for k in ks])
    stage("reading")
    whole = _flows(data, options, notes)
    chosen = candidates(methods, {"k": shared.k, **shared.budget}, whole)
    flows = sample_matrices(whole, shared.sample, shared.k, chosen)
    for candidate in chosen:
        check_k_feasible(flows, candidate.params)
    matrices = counted(whole.steps, "matrix", "matrices")
    stage(f"{COMPARING} {counted(len(chosen), 'method')} on {flows.steps:,} of {matrices}")
    return compare_flow_methods(flows, chosen, shared, progress, stage)


def _compare_trajectories(
    data: Any,
    methods: Sequence[str] | None,
    k: int | Sequence[int],
    shared: TrajectoryComparisonParams,
    reading: TrajectoryReading,
    notes: ReadNotes,
    progress: Progress,
    stage: Stage,
) -> TrajectoryMethodComparison:
    chosen = trajectory_candidates(methods, [k] if isinstance(k, int) else k)
    stage("reading")
    whole = read(Trajectories, data, reading, notes)
    paths = sample_trajectories(whole, shared.sample, shared.seed)
    for candidate in chosen:
        check_k_feasible(paths, candidate.params)
    runs, trajectories = counted(len(chosen), "run"), counted(len(whole), "trajectory", "trajectories")
    stage(f"{COMPARING} {runs} on {len(paths):,} of {trajectories}")
    return compare_trajectory_methods(paths, chosen, shared, progress, stage)


@visible
def sweep(
    method: str,
    data: Any,
    output: str | Path | None = None,
    *,
    k: Sequence[int | str] = K,
    suppress: Sequence[float | str] | None = None,
    suppress_trips: Sequence[int | str] | None = None,
    sample: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> Sweep:
    """Run one method with several k and budgets on the same matrices, and recommend one. Nothing is published.

    Budgets are shares (`suppress`) or numbers of trips (`suppress_trips`); 5 %, 10 % and 20 % where none are given.
    `.table` (Arrow) has a row for each k and budget, `.recommendation()` a sentence. The other parameters are those of `compare`.

    >>> crowdveil.sweep("joint", "trips.parquet", k=[5, 10, 20], zones="zones.geojson").table  # doctest: +SKIP
    """
    shared: FlowComparisonParams = FlowComparisonParams.checked({"sample": sample, "seed": seed})
    chosen = sweep_candidates(method, k, suppress, suppress_trips)
    check_folder(output, SWEEP_FILE, overwrite=overwrite)
    stage("reading")
    whole, largest_k = _flows(data, options, notes), max(getattr(c.params, "k", 1) for c in chosen)
    flows = sample_matrices(whole, shared.sample, largest_k, chosen)
    for candidate in chosen:
        check_k_feasible(flows, candidate.params)
    stage(
        f"{COMPARING} {counted(len(chosen), 'run')} on {flows.steps:,} of {counted(whole.steps, 'matrix', 'matrices')}"
    )
    found = run_sweep(flows, chosen, shared.seed, progress, stage)
    if output is not None:
        write_comparison(found, output, overwrite=overwrite)
    return found


def _flows(data: Any, options: dict[str, Any], notes: ReadNotes | None) -> Flows:
    """Read flows with person ids, which some methods need."""
    said = notes if notes is not None else ReadNotes()
    flows: Flows = read(Flows, data, FlowReading.checked(options), said, person_ids=True)
    return flows
