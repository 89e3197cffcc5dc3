"""The kinds of job: for each, what is uploaded, which parameters there are, and how it runs. One entry a kind.

A job's parameters are one flat object, as in Python: those of the method, those of reading, and a few of the run. Where an
option of reading names a file, the file is uploaded in a field of that name; a path in a request is never opened.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from crowdveil import api, pipeline
from crowdveil.analysis.base import IN_THE_HOUSE
from crowdveil.analysis.study import StudyReading
from crowdveil.errors import ParameterError
from crowdveil.filters import FILTER_NAMES, Filter, check_filters, filter_file
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import write_table
from crowdveil.model.flows import Flows
from crowdveil.params import Params
from crowdveil.reading import READINGS, FlowReading, TrajectoryReading
from crowdveil.registry import (
    ANALYSES,
    MEASURES,
    all_methods,
    find_analysis,
    find_measure,
    find_method,
)
from crowdveil.report.measures import OVERLAPPING, named_measures
from crowdveil.server.files import TABLES
from crowdveil.server.kind import Kind, Task, Told, values_of

# Anonymising


class RunOptions(Params):
    """What every run of a method can be told."""

    seed: int = Field(0, ge=0, le=2**63 - 1)
    """Seed of every random choice."""
    format: Literal["parquet", "csv"] = "parquet"
    """Form of the tables."""
    data_name: str | None = Field(None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.(csv|parquet)$")
    """Name of the data file in the release, where the usual one is not wanted."""


def _anonymize(task: Task) -> Told:
    method, run = find_method(task.name), RunOptions.checked(values_of(task.values, RunOptions))
    reading = READINGS[method.takes]
    given = {n: f for n, f in task.files.items() if n in reading.model_fields}
    result = pipeline.run(
        pipeline.Request(
            method.name, task.files["data"], task.out, values_of(task.values, method.params),
            values_of(task.values, reading) | given, seed=run.seed, table_format=run.format, data_name=run.data_name,
        ),
        task.progress, task.stage,
    )  # fmt: skip
    return Told(result.notes.sentences(), result.lines())


def _about_method(name: str) -> dict[str, Any]:
    method = find_method(name)
    return {
        "summary": method.summary,
        "status": method.status,
        "takes": "flows" if method.takes is Flows else "trajectories",
    }


# Measuring


class MeasureOptions(Params):
    """What measuring can be told."""

    measures: list[str] | None = None
    """Names or symbols of measures; all of them where none are given."""
    format: Literal["json", "csv", "parquet"] = "json"
    """Form of the result: everything as JSON, or the values of each time step as a table."""


ALL = "all"
"""In place of one measure's name: those in `measures`."""


def _wanted(name: str, values: dict[str, Any]) -> list[str] | None:
    names: list[str] | None = values.get("measures")
    return names if name == ALL else [name]


def _check_measures(name: str, values: dict[str, Any]) -> None:
    if name != ALL and values.get("measures") is not None:
        raise ParameterError("measures: one measure is named in the address already; leave it out, or ask for all.")
    named_measures(_wanted(name, values))


def _measure(task: Task) -> Told:
    form, notes = task.values.get("format", "json"), ReadNotes()
    files = {n: f for n, f in task.files.items() if n in FlowReading.model_fields}
    task.stage("measuring")
    found = api.measure(
        task.files["original"], task.files["release"], _wanted(task.name, task.values), notes=notes,
        **values_of(task.values, FlowReading), **files,
    )  # fmt: skip
    target = task.out / f"measures.{form}"
    if form == "json":
        target.write_text(json.dumps(found.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        write_table(found.table(as_text=form == "csv"), target)
    said = notes.sentences()
    if found.overlapping:
        said.append(OVERLAPPING)
    return Told(said, found.lines())


def _about_measure(name: str) -> dict[str, Any]:
    if name == ALL:
        return {"summary": "All measures, or those that are named in `measures`."}
    measure = find_measure(name)
    return {
        "summary": measure.title,
        "symbol": measure.symbol or None,
        "better": measure.better,
        "unit": measure.unit or None,
    }


# Analysing


class AnalysisOptions(Params):
    """What every analysis can be told about its result."""

    format: Literal["json", "csv", "parquet"] = "json"
    """Form of the result."""
    plot: bool = False
    """Draw it too; the result is a zip file then."""


def _analyse(task: Task) -> Told:
    analysis, notes = find_analysis(task.name), ReadNotes()
    options = AnalysisOptions.checked(values_of(task.values, AnalysisOptions))
    files: dict[str, Any] = {n: f for n, f in task.files.items() if n in StudyReading.model_fields}
    found = api.analyse(
        analysis.name, task.files["release"], task.out / f"{analysis.name}.{options.format}",
        original=task.files.get("original"), plot=task.out / f"{analysis.name}.png" if options.plot else None,
        notes=notes, progress=task.progress, stage=task.stage,
        **values_of(task.values, analysis.params, StudyReading), **files,
    )  # fmt: skip
    return Told(notes.sentences(), [*found.lines(), *([IN_THE_HOUSE] if "original" in task.files else [])])


def _about_analysis(name: str) -> dict[str, Any]:
    analysis = find_analysis(name)
    return {"summary": analysis.summary, "compares": analysis.compares, "extra": analysis.extra or None}


# Filtering


TRAJECTORIES = "trajectories"


class FilterOptions(Params):
    """What filtering can be told."""

    filters: list[dict[str, str | float | list[str | float]]] = Field(
        examples=[[{"min_locations": 5}, {"max_speed": 120}]], max_length=100
    )
    """Filters in the order that they are applied, each an object of its name and its value."""
    format: Literal["csv", "parquet"] = "csv"
    """Form of the result."""


class FilterReading(TrajectoryReading):
    """How trajectories to be filtered are read; zones mean nothing to filters."""

    zones: None = None
    """Means nothing to filters."""


def filters_of(listed: list[dict[str, Any]]) -> list[Filter]:
    """Filters as they stand in a request or a run file."""
    pairs = [(name, value) for entry in listed for name, value in entry.items()]
    return [
        Filter(n, tuple(_text(x) for x in v) if isinstance(v, list) else tuple(_text(v).split(","))) for n, v in pairs
    ]


def _text(value: Any) -> str:
    return (
        str(int(value))
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        else str(value).strip()
    )


def _find_filter(name: str) -> str:
    if name != TRAJECTORIES:
        raise ParameterError(f"there is no way to filter {name}; known are {TRAJECTORIES}.")
    return name


def _check_filter(name: str, values: dict[str, Any]) -> None:
    check_filters(filters_of(values["filters"]))


def _filter(task: Task) -> Told:
    notes, form = ReadNotes(), task.values.get("format", "csv")
    options = values_of(task.values, TrajectoryReading)
    found = filter_file(
        task.files["data"], task.out / f"filtered.{form}", filters_of(task.values["filters"]), notes=notes, **options
    )
    return Told(notes.sentences(), [*found.lines(), found.rest()])


_FLOWS = (*TABLES, ".omx")
_RELEASE = (".zip", *TABLES)

KINDS: dict[str, Kind] = {
    kind.verb: kind
    for kind in (
        Kind(
            verb="anonymize",
            room="methods",
            summary="Anonymise trips, flows or trajectories; the result is a verified release.",
            names=lambda: list(all_methods()),
            find=lambda name: find_method(name).name,
            models=lambda name: (find_method(name).params, READINGS[find_method(name).takes], RunOptions),
            needs=lambda name: {"data": _FLOWS},
            may=lambda name: {},
            run=_anonymize,
            about=_about_method,
            packed=True,
        ),
        Kind(
            verb="measure",
            room="measures",
            summary="Measure what a release lost of the original. The numbers are exact: they stay in the house.",
            names=lambda: [ALL, *MEASURES],
            find=lambda name: name if name == ALL else find_measure(name).name,
            models=lambda name: (MeasureOptions, FlowReading),
            needs=lambda name: {"original": _FLOWS, "release": _RELEASE},
            may=lambda name: {},
            run=_measure,
            about=_about_measure,
            check=_check_measures,
        ),
        Kind(
            verb="analyze",
            room="analyses",
            summary="Learn something from a release.",
            names=lambda: list(ANALYSES),
            find=lambda name: find_analysis(name).name,
            models=lambda name: (find_analysis(name).params, StudyReading, AnalysisOptions),
            needs=lambda name: {"release": _RELEASE},
            may=lambda name: {"original": _FLOWS} if find_analysis(name).compares else {},
            run=_analyse,
            about=_about_analysis,
        ),
        Kind(
            verb="filter",
            room="filter",
            summary="Leave out whole trajectories, and keep every column of the rest.",
            names=lambda: [TRAJECTORIES],
            find=_find_filter,
            models=lambda name: (FilterOptions, FilterReading),
            needs=lambda name: {"data": TABLES},
            may=lambda name: {},
            run=_filter,
            about=lambda name: {"summary": "Filters: " + ", ".join(FILTER_NAMES) + "."},
            check=_check_filter,
        ),
    )
}
