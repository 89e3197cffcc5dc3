"""Anonymize data, and list the methods."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pydantic import Field

from crowdveil.engine.progress import Progress, Stage, progress_bar
from crowdveil.errors import Option, ParameterError, Text
from crowdveil.io.notes import ReadNotes
from crowdveil.io.written_release import MANIFEST_FILE
from crowdveil.ledger.candidates import check_auditable
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.tabular import Table
from crowdveil.params import Params, no_such_parameter
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods, default_method, find_method, method_names
from crowdveil.run import pipeline
from crowdveil.run.options import AuditOptions, ReleaseOptions, RunOptions
from crowdveil.run.result import Result
from crowdveil.verbs.base import FLOWS, InputFile, Outcome, Output, SourceOptions, Task, Verb, with_examples
from crowdveil.verbs.opened import split_options, warn


def anonymize(
    data: Any,
    output: str | Path | None = None,
    *,
    method: str | None = None,
    k: int | None = None,
    suppress: str | float | None = None,
    zones: Any = None,
    step: str | timedelta | None = None,
    tz: str | None = None,
    spark: Any = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Result:
    """Anonymize data, and write a verified release to the folder `output`, or keep it in memory.

    The result has tables (`result.flows.to_pandas()`, `result.areas.to_geopandas()`), `result.report()`, `result.plot.flows()`
    and `result.save(folder)`. Notes of reading are warnings (`CrowdveilWarning`), and `result.notes`.

    Parameters
    ----------
    data
        Trips, flows or trajectories: a path, an Arrow table, a data frame, `Flows` or `Trajectories`.
    output
        The folder of the release.
    method
        By default `joint` for trips and flows, and `microaggregation` for trajectories.
    k
        Smallest group size. By default 10 for flows, and 3 for trajectories.
    suppress
        The suppression budget, such as "10%".
    zones
        A file or a frame of zones, "grid:500m" or "h3:8", for trips and flows.
    step
        Length of a time step, such as "1h" or `timedelta(hours=1)`, for trips and flows.
    tz
        Time zone of the time steps, and of times without one.
    spark
        A Spark session to run on; `data` is then a path for Spark, or a data frame of the session.
    progress
        A function that is called with the work done and the total, in place of the progress bar.
    **parameters
        The other parameters of the method, input options, and options of every run: `seed`, `format`, `overwrite`, `pairing`,
        `attack`, `report`, `engine`, `master` and more (see `list_methods()` and `crowdveil anonymize METHOD --help`). Random
        choices are drawn from entropy of the operating system; with a `seed` a run is reproducible. Keep the seed secret: it
        repeats every random choice. Keep the file of a `pairing` secret, too: it undoes the new ids.

    >>> crowdveil.anonymize("trips.parquet", "out", zones="zones.geojson", k=10)  # doctest: +SKIP
    """
    named = {"k": k, "suppress": suppress, "zones": zones, "step": step, "tz": tz}
    options = parameters | {name: value for name, value in named.items() if value is not None}
    run_options, options = split_options(options, RunOptions)
    on_spark = spark is not None or run_options.get("engine") == "spark"
    if on_spark and (output is None or method is None):
        missing = "method" if method is None else "output"
        raise ParameterError(
            Option(missing), f"Expected a {'method' if method is None else 'folder'} on Spark, got none. Name it."
        )
    chosen = find_method(method) if method is not None else default_method(data, options)
    reading, method_options = split_options(options, READINGS[chosen.takes])
    for name in method_options.keys() - chosen.params.model_fields.keys():
        models = (chosen.params, READINGS[chosen.takes], RunOptions)
        raise no_such_parameter(name, [known for model in models for known in model.model_fields])
    with ExitStack() as opened:
        target = output if output is not None else Path(opened.enter_context(TemporaryDirectory())) / "release"
        request = pipeline.Request(chosen.name, data, target, method_options, reading, run_options, spark=spark)
        stage: Stage = lambda name: None  # noqa: E731
        if progress is None:
            progress, stage = opened.enter_context(progress_bar())
        result = pipeline.run(request, progress, stage)
        result = result.in_memory() if output is None else result
    warn(result.notes)
    return result


def list_methods() -> Table:
    """Return a table of the methods: name, kind of data, status, parameters, and summary.

    >>> crowdveil.list_methods().to_pandas()  # doctest: +SKIP
    """
    return Table(pa.Table.from_pylist([_row(method) for method in all_methods().values()]))


def _row(method: Method) -> dict[str, str]:
    return {
        "name": method.name,
        "takes": "flows" if method.takes is Flows else "trajectories",
        "status": method.status,
        "parameters": ", ".join(method.params.model_fields),
        "summary": method.summary,
    }


class JobOptions(ReleaseOptions):
    """Options of a run on the service, which chooses the paths of files."""

    data_name: str | None = Field(
        None, title="Name of the data file", pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.(csv|parquet)$"
    )
    """Name of the data file in the release. [named after the kind of data]"""


class FlowAuditOptions(AuditOptions, SourceOptions):
    """Options of a run of flows with an audit against the ledger of its source."""


def _of_flows(name: str) -> bool:
    return find_method(name).takes is Flows


def _options(name: str) -> tuple[type[Params], ...]:
    method = find_method(name)
    return (method.params, READINGS[method.takes])


def _hidden(name: str) -> frozenset[str]:
    """Return the options without effect on the method."""
    params = find_method(name).params.model_fields
    if not _of_flows(name):
        return frozenset(("ledger", "overwrite", *AuditOptions.model_fields))
    read_by = {
        "partition": name == "fixed",
        "min_tiles_of": "min_tiles" in params,
        "hierarchy": name not in ("suppression", "laplace", "fixed"),
    }
    return frozenset(("pairing", "overwrite", *(option for option, read in read_by.items() if not read)))


def _by_data(data: Any, values: dict[str, Any], notes: ReadNotes) -> str:
    """Choose the method for the data, and note the choice."""
    if values.get("engine") == "spark":
        raise ParameterError("Expected a method on Spark, got none. Write its name before the input, such as joint.")
    method = default_method(data, values)
    kind = "trips and flows" if method.takes is Flows else "trajectories"
    notes.add(
        f"the method is {method.name}, the default for {kind}. To choose another, write its name before the input."
    )
    return method.name


def _run(task: Task) -> Outcome:
    method = find_method(task.name)
    options = task.of(RunOptions) | {"overwrite": task.overwrite}
    request = pipeline.Request(
        method.name, task.files["data"], str(task.output), task.of(method.params), task.of(READINGS[method.takes]), options,
        task.values.get("data_name"),
    )  # fmt: skip
    result = pipeline.run(request, task.progress, task.stage)
    if options.get("pairing") is not None:
        # Added after the run, since the manifest repeats the other notes and must not show that such a file exists.
        result.notes.add(f"{options['pairing']} links each published trajectory to its original. Keep it secret.")
    for sentence in task.notes.texts:
        result.notes.add(sentence)
    return Outcome(result.notes, result.lines())


def _check(name: str, values: dict[str, Any]) -> None:
    """Raise before reading anything if the release cannot be audited."""
    source = values.get("source")
    if source is not None:
        check_auditable(name, "source")
    for option in AuditOptions.model_fields:
        if values.get(option) and source is None:
            raise ParameterError(
                Option(option), Text("Expected a {source} for an audit, but the token has none. Leave this out.")
            )


def _about(name: str) -> dict[str, Any]:
    method = find_method(name)
    takes = "flows" if method.takes is Flows else "trajectories"
    return {"summary": method.summary, "status": method.status, "takes": takes}


def _help(name: str) -> str:
    method = find_method(name)
    usual = "trips.parquet --zones zones.geojson --step 1h --tz Europe/Paris" if _of_flows(name) else "cabs.csv"
    text = f"{method.summary}\n\nStatus: {method.status}."
    return with_examples(text, f"anonymize {name}", f"{method.example or usual} -o out/")


VERB = Verb(
    verb="anonymize",
    collection="methods",
    summary="Anonymize trips, flows or trajectories; the result is a verified release.",
    names=method_names,
    usual=("joint", "microaggregation"),
    by_data=_by_data,
    group=with_examples(
        "Anonymize trips, flows or trajectories, or run a run file.\n\n"
        "The default method is joint for trips and flows, and microaggregation for trajectories.",
        "anonymize",
        "trips.parquet --zones zones.geojson -k 10 -o out/",
        "atg-dual trips.parquet --zones zones.geojson -o out/",
        "simple-generalization cabs.csv --tile-size-m 500 -o out/",
        "-f run.toml",
        "trips.parquet --zones zones.geojson -o out/ --server https://crowdveil.example.org",
    ),
    find=lambda name: find_method(name).name,
    run=_run,
    options=_options,
    local=lambda name: (RunOptions,),
    remote=lambda name: (JobOptions, FlowAuditOptions) if _of_flows(name) else (JobOptions,),
    files=lambda name: (InputFile("data", FLOWS, "TRIPS_OR_FLOWS" if _of_flows(name) else "TRAJECTORIES"),),
    output=lambda name: Output(
        "Folder to write the release to.", "FOLDER", required=True, mark=MANIFEST_FILE, note="verified and written"
    ),
    hidden=_hidden,
    check=_check,
    about=_about,
    help=_help,
    secret=("seed",),
    example={"k": 10, "zone_id": "id", "step": "1h", "tz": "Europe/Paris"},
)
