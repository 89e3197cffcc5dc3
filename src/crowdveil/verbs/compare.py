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
    """Run methods with each k, budget and varied value on the same data. Nothing is published.

    Parameters
    ----------
    data
        Trips, flows or trajectories, or a list of several inputs.
    methods
        Names, with parameters where wanted, as in `joint:splits=dyadic` or `joint:k=5`. Without names all methods for flows
        run, or all for trajectories with `trajectories`.
    output
        A folder for the table (in `format`) and two plots. Its files are confidential.
    k
        One or several group sizes (default: 10 for flows, 2, 4 and 8 for trajectories).
    suppress
        One or several budgets, such as `"10%"` or `"500trips"`.
    vary
        Values of other parameters, as in `{"v_target": [40, 80]}`, for the methods that have them.
    options
        `measures`, `sample`, `sampling`, `min_trips`, `seed` (see `ComparisonParams`), and input options. `zones` may be a
        list: one for each input, or several for one input.

    Returns
    -------
    Comparison
        `.table` (Arrow) has a row for each combination and measure, with several inputs also over all of them;
        `.recommendation()` is a sentence on k and the budget of a single method.

    Examples
    --------
    >>> crowdveil.compare("trips.parquet", ["joint", "oigh"], zones="zones.geojson").table  # doctest: +SKIP
    >>> crowdveil.compare("cabs.csv", ["microaggregation", "swapmob"], k=[2, 4]).table  # doctest: +SKIP
    """
    check_folder(output, overwrite=overwrite)
    inputs = list(data) if isinstance(data, list | tuple) else [data]
    takes = kind_of(methods, Trajectories if trajectories or isinstance(inputs[0], Trajectories) else Flows)
    if trajectories and takes is Flows:
        raise ParameterError(Option("trajectories"), "The named methods are for flows. Omit this option.")
    said = notes if notes is not None else ReadNotes()
    asked, reading = split_options(options, ComparisonParams)
    shared: ComparisonParams = ComparisonParams.checked(asked)
    columns = comparison_columns(shared.measures, takes)
    varied = varied_values(vary)
    values: dict[str, list[Any]] = {"k": [*K[takes]] if k is None else _listed(k, "k")}
    if suppress is not None:
        values["suppress"] = _listed(suppress, "suppress")
    values |= varied
    if methods is not None:
        _combine(
            methods, values, [*varied], explicit_k=k is not None
        )  # wrong names are refused before anything is read
    runs: list[Run] = []
    left_out: dict[str, Text] = {}
    sizes: list[str] = []
    for source, name, zones in _sources(inputs, reading.pop("zones", None)):
        stage("reading")
        whole = _read(takes, source, reading if zones is None else {**reading, "zones": zones}, said)
        names = (
            methods if methods is not None else all_names(takes, len(whole.zones) if isinstance(whole, Flows) else 0)
        )
        chosen = _combine(names, values, [*varied], explicit_k=k is not None)
        few = sampled(whole, max((candidate.k or 0 for candidate in chosen), default=0), chosen, shared)
        for candidate in chosen:
            check_k_feasible(few, candidate.params)
        runner = Runner(few, name, columns, shared.seed)
        runs += runner.run_all(chosen, progress, stage)
        left_out |= runner.left_out
        sizes.append(_size(whole, few, name, several_inputs=len(inputs) > 1))
    if not runs:
        raise InputError(next(iter(left_out.values())))
    found = Comparison(tuple(runs), tuple(columns), left_out, _caption(takes, sizes), _differ(inputs))
    if output is not None:
        found.write(output, format, overwrite=overwrite)
    return found


def _combine(
    methods: Sequence[str], values: Mapping[str, Sequence[Any]], varied: Sequence[str], *, explicit_k: bool
) -> list[Candidate]:
    """Return the candidates; the default k is no error for methods that have none."""
    try:
        return combinations(methods, values, varied)
    except ParameterError:
        if explicit_k:
            raise
        return combinations(methods, {name: listed for name, listed in values.items() if name != "k"}, varied)


def _listed(value: Any, option: str) -> list[Any]:
    """Return one value or several as a list without repetitions."""
    listed = list(dict.fromkeys(value)) if isinstance(value, list | tuple) else [value]
    if not listed:
        raise ParameterError(Option(option), "Expected at least one value, got none. Give one or omit the option.")
    return listed


def _sources(inputs: Sequence[Any], zones: Any) -> list[tuple[Any, str, Any]]:
    """Return each input with its name and its zones; a single input is read once with each of several zones."""
    listed = [text.strip() for text in zones.split(",")] if isinstance(zones, str) else zones
    listed = listed if isinstance(listed, list | tuple) else [listed]
    if not inputs or (len(listed) not in (1, len(inputs)) and len(inputs) > 1):
        raise ParameterError(
            Option("zones"),
            f"Expected one file for all {len(inputs):,} inputs or one for each, got {len(listed):,}.",
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
    wanted = "flows" if takes is Trajectories else "trajectories"
    raise ParameterError(
        Option("methods"), f"Expected methods for {wanted}, since the input has {wanted}. Name others."
    )


def _differ(inputs: Sequence[Any]) -> bool:
    """Return whether there are several inputs, and none of them twice."""
    distinct = {str(each) if isinstance(each, str | Path) else id(each) for each in inputs}
    return len(inputs) > 1 and len(distinct) == len(inputs)


def _size(whole: Flows | Trajectories, few: Flows | Trajectories, name: str, *, several_inputs: bool) -> str:
    """Return how much of an input is compared on; `name` is that of the input, or of its zones where these are several."""
    if isinstance(whole, Flows) and isinstance(few, Flows):
        size = f"{few.steps:,} of {counted(whole.steps, 'matrix', 'matrices')}"
    else:
        size = f"{len(few):,} of {counted(len(whole), 'trajectory', 'trajectories')}"
    return f"{size} {'of' if several_inputs else 'with'} {name}" if name else size


def _caption(takes: type, sizes: list[str]) -> str:
    """Return what the numbers are means of, as a sentence, and one on time."""
    listed = " and ".join(filter(None, (", ".join(sizes[:-1]), sizes[-1])))
    return f"{'Means over ' if takes is Flows else ''}{listed}. Seconds are processor time."


class CompareOptions(Params):
    """What is compared."""

    methods: TextList = Field(None, json_schema_extra={"metavar": "NAMES"})
    """Names with commas between, with parameters as in joint:splits=dyadic. [all for flows]"""
    trajectories: bool = False
    """Compare all methods for trajectories."""
    k: NumberList = Field(None, json_schema_extra={"metavar": "LIST"})
    """Group sizes with commas between. [10 for flows, 2, 4, 8 for trajectories]"""
    suppress: TextList = Field(None, json_schema_extra={"metavar": "LIST"})
    """Suppression budgets with commas between, such as 5%,10% or 500trips. [that of each method]"""
    vary: tuple[str, ...] = Field((), json_schema_extra={"metavar": "NAME=LIST"})
    """Values of another parameter with commas between, as in v_target=40,80. Can be repeated."""
    format: Literal["csv", "parquet", "json"] = "csv"
    """Format of the table."""


OPTIONS = (CompareOptions, ComparisonParams, EitherReading)


def compared(task: Task) -> Comparison:
    """Run the comparison of a task, and note what is left out."""
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

The table has a row for each combination and measure. For flows these are means over matrices of generalization Ḡ,
reconstruction error E, distribution distance D and the share of trips suppressed S; for trajectories the distortion of range
queries, SID and AID, by the longest time of a query, and the share of trajectories removed. --measures names others. Several
inputs have a row each and one over all of them, with the total time; several --zones for one input have a row each. For a single
method one k and budget are recommended. The numbers are exact and confidential: do not publish them."""
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
