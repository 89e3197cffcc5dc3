"""Compare methods, and sweep parameters of one, without publishing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from crowdveil.api.opened import split_options, visible
from crowdveil.comparison.candidates import (
    COMPARING,
    KINDS,
    Candidate,
    data_kind_of,
    varied_values,
    with_each,
    with_each_k,
)
from crowdveil.comparison.flows import (
    FlowComparison,
    FlowComparisonParams,
    candidates,
    compare_flow_methods,
    sample_matrices,
)
from crowdveil.comparison.requested_measures import flow_columns
from crowdveil.comparison.several_inputs import InputComparisons
from crowdveil.comparison.sweep import K, Sweep, run_sweep, sweep_candidates
from crowdveil.comparison.tables import SUMMARY_FILE, SWEEP_FILE, check_folder, write_comparison
from crowdveil.comparison.trajectories import K as K_OF_TRAJECTORIES
from crowdveil.comparison.trajectories import (
    TrajectoryComparisonParams,
    TrajectoryMethodComparison,
    TrajectorySweep,
    compare_trajectory_methods,
    sample_trajectories,
    trajectory_candidates,
    trajectory_sweep_candidates,
)
from crowdveil.errors import Option, ParameterError, counted
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress, Stage, no_progress
from crowdveil.reading import FlowReading, TrajectoryReading, read
from crowdveil.run.verification import check_k_feasible

Found = TypeVar("Found", bound=TrajectoryMethodComparison)
Vary = Mapping[str, Sequence[Any]] | Sequence[str] | None
"""Values of parameters by name, or texts such as `v_target=40,80`."""


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
    measures: Sequence[str] | str | None = None,
    vary: Vary = None,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> FlowComparison | TrajectoryMethodComparison:
    """Run methods with the same k on the same data. Nothing is published.

    `methods` are names, with parameters where wanted, as in `joint:splits=dyadic` or `joint:k=5`; all for flows where none are
    given, all for trajectories with `trajectories`. With several `k` each method runs with each; `vary` has values of other
    parameters, as in `{"interval_s": [900, 3600]}`, for the methods that have them. `measures` are those of the table, with
    parameters as in `generalization-cost:delta=1`; `"all"` takes every one.

    For flows (k 10, budget `suppress` 10 %, or a number `suppress_trips`) `sample` matrices are taken, evenly spread, or at
    random with `sampling="random"`, of at least `min_trips` trips; at most 10 where it is not given, and fewer if they have
    more than 2 million flows (48 that follow one another where a method joins time steps). The table (`.table`, Arrow) has
    the means of generalization Ḡ, reconstruction error E, distribution distance D and suppression S, and processor seconds a
    matrix. For trajectories (k 2, 4 and 8) it has the distortion of range queries, SID and AID, by windows of time (see
    `RangeQueryParams` for `options`), and the share removed; `sample` trajectories are drawn at random, at most 5,000 where
    it is not given. With `output` tables and plots are written to that folder. Numbers are exact and confidential.

    >>> crowdveil.compare("trips.parquet", ["joint", "oigh"], zones="zones.geojson").table  # doctest: +SKIP
    >>> crowdveil.compare("cabs.csv", ["microaggregation", "swapmob"], k=[2, 4]).table  # doctest: +SKIP
    """
    check_folder(output, SUMMARY_FILE, overwrite=overwrite)
    takes = data_kind_of(methods, Trajectories if trajectories or isinstance(data, Trajectories) else Flows)
    other = Flows if takes is Trajectories else Trajectories
    if isinstance(data, other):
        wanted, got = KINDS[other][0], KINDS[takes][0]
        raise ParameterError(Option("methods"), f"wanted those for {wanted}, but got ones for {got}; name others.")
    said, varied = notes if notes is not None else ReadNotes(), varied_values(vary)
    found: FlowComparison | TrajectoryMethodComparison
    if takes is Trajectories:
        if suppress is not None or suppress_trips is not None:
            raise ParameterError(
                Option("suppress" if suppress_trips is None else "suppress_trips"),
                "it is a budget of trips, and these methods are for trajectories; leave it out.",
            )
        of_each = K_OF_TRAJECTORIES if k is None else [k] if isinstance(k, int) else k
        chosen = trajectory_candidates(methods, of_each, varied)
        values = {**options, "sample": sample, "seed": seed, "measures": measures}
        found = _run_trajectories(data, chosen, values, [*varied], TrajectoryMethodComparison, said, progress, stage)
    else:
        ks = [10] if k is None else [k] if isinstance(k, int) else list(dict.fromkeys(k))
        budget = {"suppress": suppress, "suppress_trips": suppress_trips}
        values = {**options, "k": max(ks, default=0), "sample": sample, "seed": seed, "measures": measures}
        values |= {n: v for n, v in budget.items() if v is not None}
        found = _compare_flows(data, methods, ks, values, varied, said, progress, stage)
    if output is not None:
        write_comparison(found, output, overwrite=overwrite)
    return found


def _compare_flows(
    data: Any,
    methods: Sequence[str] | None,
    ks: Sequence[int],
    options: dict[str, Any],
    varied: Mapping[str, Sequence[str]],
    notes: ReadNotes,
    progress: Progress,
    stage: Stage,
) -> FlowComparison:
    asked, reading = split_options(options, FlowComparisonParams)
    shared: FlowComparisonParams = FlowComparisonParams.checked(asked)
    flow_columns(shared.measures)  # a misspelled one is refused before anything is read
    if len(ks) > 1 or varied:
        if methods is None:
            raise ParameterError(
                Option("k" if len(ks) > 1 else "vary"),
                f"several values were given, but no methods; name some with {Option('methods')}.",
            )
        methods = with_each(methods if len(ks) == 1 else with_each_k(methods, [str(k) for k in ks]), varied)
    stage("reading")
    whole = _flows(data, reading, notes)
    chosen = candidates(methods, {"k": shared.k, **shared.budget}, whole)
    flows = _sampled(whole, shared.k, chosen, shared, "method", stage)
    return compare_flow_methods(flows, chosen, shared, progress, stage)


def _sampled(
    whole: Flows, k: int, chosen: Sequence[Candidate], shared: FlowComparisonParams, what: str, stage: Stage
) -> Flows:
    """Return the matrices that candidates run on; raise if one of them cannot."""
    flows = sample_matrices(whole, shared.sample, k, chosen, shared)
    for candidate in chosen:
        check_k_feasible(flows, candidate.params)
    matrices = counted(whole.steps, "matrix", "matrices")
    stage(f"{COMPARING} {counted(len(chosen), what)} on {flows.steps:,} of {matrices}")
    return flows


def _run_trajectories(
    data: Any,
    chosen: Sequence[Candidate],
    options: dict[str, Any],
    varied: Sequence[str],
    kind: type[Found],
    notes: ReadNotes,
    progress: Progress,
    stage: Stage,
) -> Found:
    """Run candidates on a sample of the trajectories."""
    asked, reading = split_options(options, TrajectoryComparisonParams)
    shared: TrajectoryComparisonParams = TrajectoryComparisonParams.checked(asked)
    checked: TrajectoryReading = TrajectoryReading.checked(reading)
    _ = shared.columns  # a misspelled measure is refused before anything is read
    stage("reading")
    whole = read(Trajectories, data, checked, notes)
    paths = sample_trajectories(whole, shared.sample, shared.seed)
    for candidate in chosen:
        check_k_feasible(paths, candidate.params)
    runs, trajectories = counted(len(chosen), "run"), counted(len(whole), "trajectory", "trajectories")
    stage(f"{COMPARING} {runs} on {len(paths):,} of {trajectories}")
    found = compare_trajectory_methods(paths, chosen, shared, progress, stage, varied)
    return kind(found.data, found.shared, found.outcomes, found.left_out)


@visible
def compare_inputs(
    inputs: Sequence[Any],
    methods: Sequence[str] | None = None,
    output: str | Path | None = None,
    *,
    grids: Sequence[str | float] | str | None = None,
    overwrite: bool = False,
    **options: Any,
) -> InputComparisons:
    """Run the same methods on several inputs, or on several `grids` of each, with the options of `compare`.

    `zones` is one file for all inputs, or a list of one for each, also as a text with commas between.
    `.table` has a row for each input and method, with the number of tiles; `.by_input` has the comparison of each. With
    `output` the plots are those of each input, ratios of all methods to the first by input, and the time by number of tiles.

    >>> crowdveil.compare_inputs(["nyc.parquet", "civ.parquet"], ["atg-dual", "oigh"]).table  # doctest: +SKIP
    >>> crowdveil.compare_inputs(["trips.csv"], ["atg-exact"], grids=["500m", "1km"]).table  # doctest: +SKIP
    """
    check_folder(output, SUMMARY_FILE, overwrite=overwrite)
    listed: Any = [None] if grids is None else grids
    sizes = [text.strip() for text in listed.split(",")] if isinstance(listed, str) else list(listed)
    if not inputs or not sizes or "" in sizes:
        raise ParameterError(Option("grids"), "wanted at least one input and one size of tiles, such as 500m,1km.")
    if sizes != [None] and options.get("zones") is not None:
        raise ParameterError(Option("grids"), f"wanted sizes there or {Option('zones')}, but got both; omit one.")
    found: dict[str, FlowComparison | TrajectoryMethodComparison] = {}
    zones = _zones_of_inputs(options.pop("zones", None), len(inputs))
    for number, data in enumerate(inputs, start=1):
        shared = options if zones is None else {**options, "zones": zones[number - 1]}
        for size in sizes:
            own = shared if size is None else {**shared, "zones": f"grid:{size}"}
            found[_input_name(data, number, size, found)] = compare(data, methods, **own)
    made = InputComparisons(found)
    if output is not None:
        write_comparison(made, output, overwrite=overwrite)
    return made


def _zones_of_inputs(zones: Any, inputs: int) -> list[Any] | None:
    """Return the zones of each input: one for all, or a list, as text with commas between, of one for each."""
    if zones is None:
        return None
    given: Any = [text.strip() for text in zones.split(",")] if isinstance(zones, str) else zones
    listed: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    if len(listed) not in (1, inputs):
        raise ParameterError(
            Option("zones"), f"wanted one file for all {inputs:,} inputs, or one for each, but got {len(listed):,}."
        )
    return listed * inputs if len(listed) == 1 else listed


def _input_name(data: Any, number: int, size: Any, taken: Mapping[str, Any]) -> str:
    """Return a name of an input that no other has: of its file and grid, or its number."""
    name = Path(data).name.split(".")[0] if isinstance(data, str | Path) else f"input {number}"
    name = name if size is None else f"{name}, {size}"
    return f"{name} ({number})" if name in taken else name


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
    measures: Sequence[str] | str | None = None,
    vary: Vary = None,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> Sweep:
    """Run one method with several k and budgets on the same matrices, and recommend one. Nothing is published.

    Budgets are shares (`suppress`) or numbers of trips (`suppress_trips`); 5 %, 10 % and 20 % where none are given.
    `.table` (Arrow) has a row for each k and budget, `.recommendation()` a sentence. `vary` has values of other parameters, as
    in `{"v_target": [50, 100]}`; `.choices()` has the best of them for each k and budget: for target volumes the one at which
    origins and destinations have the nearest mean sizes. The other parameters are those of `compare`.

    >>> crowdveil.sweep("joint", "trips.parquet", k=[5, 10, 20], zones="zones.geojson").table  # doctest: +SKIP
    >>> crowdveil.sweep("atg-dual", "trips.parquet", k=[5, 10], vary={"v_target": [50, 100]}).choices()  # doctest: +SKIP
    """
    values = {**options, "sample": sample, "seed": seed, "measures": measures}
    asked, reading = split_options(values, FlowComparisonParams)
    shared: FlowComparisonParams = FlowComparisonParams.checked(asked)
    varied, columns = varied_values(vary), flow_columns(shared.measures)
    chosen = sweep_candidates(method, k, suppress, suppress_trips, varied)
    check_folder(output, SWEEP_FILE, overwrite=overwrite)
    stage("reading")
    whole, largest_k = _flows(data, reading, notes), max(getattr(c.params, "k", 1) for c in chosen)
    flows = _sampled(whole, largest_k, chosen, shared, "run", stage)
    found = run_sweep(flows, chosen, shared.seed, progress, stage, columns, [*varied])
    if output is not None:
        write_comparison(found, output, overwrite=overwrite)
    return found


@visible
def sweep_trajectories(
    method: str,
    data: Any,
    output: str | Path | None = None,
    *,
    k: Sequence[int | str] = K_OF_TRAJECTORIES,
    suppress: Sequence[float | str] | None = None,
    vary: Vary = None,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> TrajectorySweep:
    """Run one method for trajectories with several k, budgets and values of other parameters, and recommend one.

    `options` are those of `compare` for trajectories: `measures`, `sample`, `seed`, those of range queries, and input options.
    `.table` has a row for each run. Nothing is published.

    >>> crowdveil.sweep_trajectories("microaggregation", "cabs.csv", k=[3, 5], measures="rmse").table  # doctest: +SKIP
    """
    check_folder(output, SWEEP_FILE, overwrite=overwrite)
    varied = varied_values(vary)
    chosen = trajectory_sweep_candidates(method, k, suppress, varied)
    differing = [*varied, *([] if suppress is None else ["suppress"])]
    said = notes if notes is not None else ReadNotes()
    found = _run_trajectories(data, chosen, options, differing, TrajectorySweep, said, progress, stage)
    if output is not None:
        write_comparison(found, output, overwrite=overwrite)
    return found


def _flows(data: Any, options: dict[str, Any], notes: ReadNotes | None) -> Flows:
    """Read flows with person ids, which some methods need."""
    said = notes if notes is not None else ReadNotes()
    flows: Flows = read(Flows, data, FlowReading.checked(options), said, person_ids=True)
    return flows
