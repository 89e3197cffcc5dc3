"""The kinds of job: for each, what is uploaded, which parameters there are, and how it runs. One entry a kind.

A job's parameters are one flat object, as in Python: those of the method, those of reading, and a few of the run. Where an
option of reading names a file, the file is uploaded in a field of that name; a path in a request is never opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
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
from crowdveil.progress import Progress
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
from crowdveil.server.files import MAPS, TABLES

WORD = r"^[A-Za-z0-9_ -]{1,64}$"
"""What an option that can name a file may be in a request: a plain word, such as `ward` or a column's name."""


@dataclass(frozen=True)
class Task:
    """One run of a job: names of files are relative to the folder that it runs in."""

    name: str
    values: dict[str, Any]
    files: dict[str, str]
    out: Path
    progress: Progress
    stage: pipeline.Stage


@dataclass(frozen=True)
class Told:
    """What a run has to say: notes beside the output, and lines of it, as on the command line."""

    notes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    Attributes
    ----------
    verb, room
        What it is called, and the first part of its routes.
    summary
        What it does, in a sentence.
    names
        What can be run, in the order that people see.
    find
        The name by which something is registered, from that or an alias; raises where there is none.
    models
        The parameter models of one of them, whose fields together are its parameters.
    uploads
        Fields of files that must be there, and those that may, with the endings of each.
    check
        Raises where parameters mean nothing beyond what the models see.
    run
        Runs it, and writes files to `task.out`.
    packed
        Whether the result is always a zip file; otherwise it is where there is more than one file.
    about
        What a listing tells of one of them.
    """

    verb: str
    room: str
    summary: str
    names: Callable[[], list[str]]
    find: Callable[[str], str]
    models: Callable[[str], tuple[type[Params], ...]]
    needs: dict[str, tuple[str, ...]]
    may: Callable[[str], dict[str, tuple[str, ...]]]
    run: Callable[[Task], Told]
    about: Callable[[str], dict[str, Any]]
    check: Callable[[str, dict[str, Any]], None] = lambda name, values: None
    packed: bool = False

    def fields(self, name: str) -> dict[str, tuple[str, ...]]:
        """Every field of files with its endings."""
        options = {option: MAPS for model in self.models(name) for option in file_options(model)}
        return self.needs | self.may(name) | options

    def checked(self, name: str, values: dict[str, Any], uploaded: dict[str, str]) -> None:
        """Raise unless parameters and uploads can be run; nothing is read for it."""
        models = self.models(name)
        known = [option for model in models for option in model.model_fields]
        for option in values:
            if option not in known:
                raise ParameterError(f"{option}: there is no such parameter; known are {', '.join(known) or 'none'}.")
        for model in models:
            for option in file_options(model):
                _check_word(option, values.get(option), option in uploaded)
            model.checked({n: v for n, v in values.items() if n in model.model_fields})
        for need in self.needs:
            if need not in uploaded:
                raise ParameterError(f"{need}: wanted a file in this field of the form; add it.")
        self.check(name, values)

    def schema(self, name: str) -> dict[str, Any]:
        """The JSON schema of its parameters."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        for model in self.models(name):
            drawn = model.model_json_schema()
            for option in file_options(model):
                told = drawn["properties"][option].get("description", "")
                drawn["properties"][option] = {
                    "type": "string", "pattern": WORD,
                    "description": f"{told} Upload a file in the field `{option}` of the form, or give a plain word here.",
                }  # fmt: skip
            properties |= {n: {k: v for k, v in p.items() if k != "title"} for n, p in drawn["properties"].items()}
            required += drawn.get("required", [])
        return {"type": "object", "properties": properties, "additionalProperties": False,
                **({"required": required} if required else {})}  # fmt: skip


def file_options(model: type[Params]) -> list[str]:
    """Options that can name a file: those that take anything."""
    return [name for name, info in model.model_fields.items() if info.annotation is Any]


def _check_word(option: str, value: Any, uploaded: bool) -> None:
    if value is None:
        return
    if uploaded:
        raise ParameterError(f"{option}: wanted a file in the form or a word among the parameters, but got both.")
    if not isinstance(value, str) or not re.fullmatch(WORD, value):
        raise ParameterError(
            f"{option}: wanted a file in the field {option} of the form, or a plain word; upload the file."
        )


def _split(values: dict[str, Any], *models: type[Params]) -> dict[str, Any]:
    return {n: v for n, v in values.items() if any(n in model.model_fields for model in models)}


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
    method, run = find_method(task.name), RunOptions.checked(_split(task.values, RunOptions))
    reading = READINGS[method.takes]
    given = {n: f for n, f in task.files.items() if n in reading.model_fields}
    result = pipeline.run(
        pipeline.Request(
            method.name, task.files["data"], task.out, _split(task.values, method.params),
            _split(task.values, reading) | given, seed=run.seed, table_format=run.format, data_name=run.data_name,
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
        **_split(task.values, FlowReading), **files,
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
    options = AnalysisOptions.checked(_split(task.values, AnalysisOptions))
    files: dict[str, Any] = {n: f for n, f in task.files.items() if n in StudyReading.model_fields}
    found = api.analyse(
        analysis.name, task.files["release"], task.out / f"{analysis.name}.{options.format}",
        original=task.files.get("original"), plot=task.out / f"{analysis.name}.png" if options.plot else None,
        notes=notes, progress=task.progress, stage=task.stage,
        **_split(task.values, analysis.params, StudyReading), **files,
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
    options = _split(task.values, TrajectoryReading)
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
            needs={"data": _FLOWS},
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
            needs={"original": _FLOWS, "release": _RELEASE},
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
            needs={"release": _RELEASE},
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
            needs={"data": TABLES},
            may=lambda name: {},
            run=_filter,
            about=lambda name: {"summary": "Filters: " + ", ".join(FILTER_NAMES) + "."},
            check=_check_filter,
        ),
    )
}
