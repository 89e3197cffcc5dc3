"""Compare methods and parameters without publishing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from crowdveil.comparison.candidates import CONFIDENTIAL, Candidate, K, all_names, combinations, kind_of, varied_values
from crowdveil.comparison.comparison import Comparison, check_folder
from crowdveil.comparison.requested_measures import comparison_columns
from crowdveil.comparison.runs import Run, Runner
from crowdveil.comparison.samples import ComparisonParams, sampled
from crowdveil.engine.progress import Progress, Stage, no_progress
from crowdveil.errors import InputError, Option, ParameterError, Text, as_command_line, counted
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import NumberList, Params, TextList
from crowdveil.reading import EitherReading, FlowReading, TrajectoryReading, read
from crowdveil.run.verification import check_k_feasible
from crowdveil.verbs.base import FLOWS, InputFile, Outcome, Output, Task, Verb, with_examples
from crowdveil.verbs.opened import split_options, visible


@visible
def compare(
    data: Any,
    methods: Sequence[str] | None = None,
    output: str | Path | None = None,
    *,
    k: int | Sequence[int] | None = None,
    suppress: float | str | Sequence[float | str] | None = None,
    vary: Mapping[str, Sequence[Any]] | Sequence[str] | None = None,
    trajectories: bool = False,
    format: Literal["csv", "parquet", "json"] = "csv",
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> Comparison:
    """Run methods with each k, budget and varied value on the same data, and publish nothing.

    Parameters
    ----------
    data
        Trips, flows or trajectories, or a list of several inputs.
    methods
        Names, optionally with parameters as in `joint:splits=dyadic` or `joint:k=5`. By default all methods for flows run, or
        all for trajectories with `trajectories`.
    output
        A folder for the table (in `format`) and two plots, which are confidential.
    k
        One or several group sizes (default: 10 for flows, 2, 4 and 8 for trajectories).
    suppress
        One or several budgets, such as `"10%"` or `"500trips"`.
    vary
        Values of other parameters, as in `{"v_target": [40, 80]}`, for methods with these parameters.
    options
        `measures`, `sample`, `sampling`, `min_trips`, `seed` (see `ComparisonParams`), and input options. `zones` may be a
        list, with one for each input, or several for a single input.

    Returns
    -------
    Comparison
        `.table` (Arrow) has a row for each combination and measure, and for several inputs also rows over all of them.
        `.recommendation()` recommends k and the budget of a single method.

    Examples
    --------
    >>> crowdveil.compare("trips.parquet", ["joint", "oigh"], zones="zones.geojson").table  # doctest: +SKIP
    >>> crowdveil.compare("cabs.csv", ["microaggregation", "swapmob"], k=[2, 4]).table  # doctest: +SKIP
    """
    check_folder(output, overwrite=overwrite)
    inputs = list(data) if isinstance(data, list | tuple) else [data]
    if not inputs:
        raise InputError("input", "Expected at least one input, got none. Name one.")
    takes = kind_of(methods, Trajectories if trajectories or isinstance(inputs[0], Trajectories) else Flows)
    if trajectories and takes is Flows:
        raise ParameterError(Option("trajectories"), "The named methods are for flows. Omit this option.")
    notes = ReadNotes() if notes is None else notes
    asked, reading = split_options(options, ComparisonParams)
    shared: ComparisonParams = ComparisonParams.checked(asked)
    columns = comparison_columns(shared.measures, takes)
    varied = varied_values(vary)
    values: dict[str, list[Any]] = {"k": [*K[takes]] if k is None else _listed(k, "k")}
    if suppress is not None:
        values["suppress"] = _listed(suppress, "suppress")
    values |= varied
    if methods is not None:
        # Reject wrong names before anything is read.
        _combine(methods, values, [*varied], explicit_k=k is not None)
    runs: list[Run] = []
    left_out: dict[str, Text] = {}
    sizes: list[str] = []
    for source, name, zones in _sources(inputs, reading.pop("zones", None)):
        stage("reading")
        original = _read(takes, source, reading if zones is None else {**reading, "zones": zones}, notes)
        tiles = len(original.zones) if isinstance(original, Flows) else 0
        chosen = _combine(methods or all_names(takes, tiles), values, [*varied], explicit_k=k is not None)
        sample = sampled(original, max((candidate.k or 0 for candidate in chosen), default=0), chosen, shared)
        for candidate in chosen:
            check_k_feasible(sample, candidate.params)
        runner = Runner(sample, name, columns, shared.seed)
        runs += runner.run_all(chosen, progress, stage)
        left_out |= runner.left_out
        sizes.append(_size(original, sample, name, several_inputs=len(inputs) > 1))
    if not runs:
        raise InputError(next(iter(left_out.values())))
    found = Comparison(tuple(runs), tuple(columns), left_out, _caption(takes, sizes), _differ(inputs))
    if output is not None:
        found.write(output, format, overwrite=overwrite)
    return found


def _combine(
    methods: Sequence[str], values: Mapping[str, Sequence[Any]], varied: Sequence[str], *, explicit_k: bool
) -> list[Candidate]:
    """Return the candidates; methods without a k ignore the default one."""
    try:
        return combinations(methods, values, varied)
    except ParameterError:
        if explicit_k:
            raise
        return combinations(methods, {name: listed for name, listed in values.items() if name != "k"}, varied)


def _listed(value: Any, option: str) -> list[Any]:
    """Return a list of distinct values from one value or several."""
    listed = list(dict.fromkeys(value)) if isinstance(value, list | tuple) else [value]
    if not listed:
        raise ParameterError(Option(option), "Expected at least one value, got none. Give one or omit the option.")
    return listed


def _sources(inputs: Sequence[Any], zones: Any) -> list[tuple[Any, str, Any]]:
    """Return each input with its name and zones; a single input may have several zones, and is read with each."""
    listed = [text.strip() for text in zones.split(",")] if isinstance(zones, str) else zones
    listed = listed if isinstance(listed, list | tuple) else [listed]
    if len(listed) not in (1, len(inputs)) and len(inputs) > 1:
        raise ParameterError(
            Option("zones"),
            f"Expected one file for all {len(inputs):,} inputs or one for each, got {len(listed):,}. Change them.",
        )
    if len(inputs) == 1:
        data = inputs[0]
        return [(data, "" if len(listed) == 1 else str(each), each) for each in listed]
    names = [Path(data).name.split(".")[0] if isinstance(data, str | Path) else "input" for data in inputs]
    different = names if len(set(names)) == len(names) else [f"{name} {n}" for n, name in enumerate(names, start=1)]
    return list(zip(inputs, different, listed * len(inputs) if len(listed) == 1 else listed, strict=True))


def _read(takes: type, data: Any, options: dict[str, Any], notes: ReadNotes) -> Flows | Trajectories:
    """Read an input; flows with person ids, which some methods need."""
    if takes is Flows and not isinstance(data, Trajectories):
        flows: Flows = read(Flows, data, FlowReading.checked(options), notes, person_ids=True)
        return flows
    if takes is Trajectories and not isinstance(data, Flows):
        paths: Trajectories = read(Trajectories, data, TrajectoryReading.checked(options), notes)
        return paths
    kind, other = ("flows", "trajectories") if takes is Trajectories else ("trajectories", "flows")
    raise ParameterError(Option("methods"), f"Expected methods for {kind}, as in the input, got {other}. Name others.")


def _differ(inputs: Sequence[Any]) -> bool:
    """Return whether there are several inputs, all different."""
    distinct = {str(each) if isinstance(each, str | Path) else id(each) for each in inputs}
    return len(inputs) > 1 and len(distinct) == len(inputs)


def _size(original: Flows | Trajectories, sample: Flows | Trajectories, name: str, *, several_inputs: bool) -> str:
    """Describe the size of a sample; `name` is that of the input, or of its zones if there are several."""
    if isinstance(original, Flows) and isinstance(sample, Flows):
        size = f"{sample.steps:,} of {counted(original.steps, 'matrix', 'matrices')}"
    else:
        size = f"{len(sample):,} of {counted(len(original), 'trajectory', 'trajectories')}"
    return f"{size} {'of' if several_inputs else 'with'} {name}" if name else size


def _caption(takes: type, sizes: list[str]) -> str:
    """Describe the samples behind the numbers, and the unit of time."""
    listed = " and ".join(filter(None, (", ".join(sizes[:-1]), sizes[-1])))
    return f"{'Means over ' if takes is Flows else ''}{listed}. Seconds are processor time."


class CompareOptions(Params):
    """Options of a comparison."""

    methods: TextList = Field(None, json_schema_extra={"metavar": "NAMES"})
    """Names separated by commas, with parameters as in joint:splits=dyadic. [all for flows]"""
    trajectories: bool = False
    """Compare all methods for trajectories."""
    k: NumberList = Field(None, json_schema_extra={"metavar": "LIST"})
    """Group sizes separated by commas. [10 for flows; 2,4,8 for trajectories]"""
    suppress: TextList = Field(None, json_schema_extra={"metavar": "LIST"})
    """Suppression budgets separated by commas, such as 5%,10% or 500trips. [the default of each method]"""
    vary: tuple[str, ...] = Field((), json_schema_extra={"metavar": "NAME=LIST"})
    """Values of another parameter separated by commas, as in v_target=40,80. Can be repeated."""
    format: Literal["csv", "parquet", "json"] = "csv"
    """Format of the table."""


OPTIONS = (CompareOptions, ComparisonParams, EitherReading)


def compared(task: Task) -> Comparison:
    """Run the comparison of a task, and note missing methods and measures."""
    asked = CompareOptions.checked(task.of(CompareOptions))
    found = compare(
        list(task.files["data"]), asked.methods, task.output, k=asked.k, suppress=asked.suppress, vary=asked.vary,
        trajectories=asked.trajectories, format=asked.format, overwrite=task.overwrite, **task.reporting,
        **task.of(*OPTIONS[1:]),
    )  # fmt: skip
    for sentence in found.omissions(as_command_line):
        task.notes.add(sentence)
    return found


def _run(task: Task) -> Outcome:
    found = compared(task)
    recommendation = found.recommendation()
    conclusions = [found.caption, *([recommendation] if recommendation else []), CONFIDENTIAL]
    return Outcome(task.notes, [*found.lines(), "", *conclusions])


HELP = """Run methods with each group size, budget and varied parameter on the same data, and publish nothing.

The table has a row for each combination and measure. For flows, the measures are means over matrices: generalization Ḡ,
reconstruction error E, distribution distance D, and the share S of suppressed trips. For trajectories, they are the distortion of
range queries, SID and AID, by the longest time of a query, and the share of removed trajectories. Choose others with --measures.
Each of several inputs has a row, and there is one over all of them with the total time; each of several --zones for one input has
a row, too. A single method gets a recommended k and budget. The numbers are exact and confidential: do not publish them."""
VERB = Verb(
    verb="compare",
    summary="Run methods with several parameters side by side, and publish nothing.",
    run=_run,
    options=lambda name: OPTIONS,
    files=lambda name: (InputFile("data", FLOWS, "INPUT...", several=True),),
    output=lambda name: Output(
        "Write the table and two plots to this folder.", "FOLDER", note="table and plots written"
    ),
    help=lambda name: with_examples(
        HELP,
        "compare",
        "trips.parquet --zones zones.geojson --sample 10",
        "flows.csv --zones zones.geojson --methods joint,oigh,mondrian -k 5,10,20,50 -o by-k/",
        "trips.parquet --zones zones.geojson --methods joint -k 5,10,20 --suppress 5%,10%",
        "flows.csv --zones zones.geojson --methods atg-dual --vary v_target=50,100,200 -o targets/",
        "nyc.csv civ.csv --zones nyc.geojson,civ.geojson --methods atg-dual,oigh -o by-input/",
        "taxi.parquet --methods atg-exact --zones grid:500m,grid:1km,grid:2km -o by-tiles/",
        "cabs.csv --methods microaggregation,swapmob -k 3,10 --measures rmse,sid:queries=10000",
    ),
)
