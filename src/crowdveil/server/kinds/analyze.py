"""Learn something from a release, or draw a map of trajectories that can be published."""

from __future__ import annotations

from typing import Any, Literal

from crowdveil.analysis.base import CONFIDENTIAL
from crowdveil.analysis.study import Study, StudyReading
from crowdveil.api import analyze as api
from crowdveil.errors import Option, ParameterError
from crowdveil.params import Params
from crowdveil.registry import all_analyses, find_analysis
from crowdveil.server.kinds.base import JobOutput, Kind, PlainReading, ResultOptions, SourceOptions, Task, values_of
from crowdveil.server.queue.files import FLOWS, RELEASE, TABLES


class AnalysisOptions(ResultOptions):
    """Parameters of every analysis of a release: the form of its result."""

    format: Literal["json", "csv", "parquet"] = "json"
    """Form of the result."""
    plot: bool = False
    """Draw it too; the result is a zip file then."""


class MapOptions(SourceOptions, ResultOptions):
    """Parameters of every analysis of trajectories: the form of its result, and its source."""

    format: Literal["all", "geojson", "png", "html"] = "all"
    """Form of the result: one of these files, or all three in a zip file."""


def _of_release(name: str) -> bool:
    return find_analysis(name).takes is Study


def _run(task: Task) -> JobOutput:
    return _study(task) if _of_release(task.name) else _map(task)


def _study(task: Task) -> JobOutput:
    analysis = find_analysis(task.name)
    options = AnalysisOptions.checked(values_of(task.values, AnalysisOptions))
    found = api.analyze(
        analysis.name, task.files["release"], task.out / f"{analysis.name}.{options.format}",
        original=task.files.get("original"), plot=task.out / f"{analysis.name}.png" if options.plot else None,
        **task.reporting, **values_of(task.values, analysis.params), **values_of(task.reading, StudyReading),
    )  # fmt: skip
    return JobOutput(task.notes.sentences(), [*found.lines(), *([CONFIDENTIAL] if "original" in task.files else [])])


def _map(task: Task) -> JobOutput:
    analysis = find_analysis(task.name)
    form = MapOptions.checked(values_of(task.values, MapOptions)).format
    found = api.analyze(
        analysis.name, task.files["data"], task.out if form == "all" else task.out / f"{analysis.name}.{form}",
        ledger=task.ledger, **task.reporting, **values_of(task.values, analysis.params, PlainReading),
    )  # fmt: skip
    return JobOutput(task.notes.sentences(), found.lines())


def _check(name: str, values: dict[str, Any]) -> None:
    """Raise where a map that is to be audited has no manifest, since only a folder has one."""
    if values.get("source") is not None and values.get("format", "all") != "all":
        raise ParameterError(
            Option("format"),
            f"a map of a {Option('source')} is recorded with its manifest; leave it out for all files.",
        )


def _models(name: str) -> tuple[type[Params], ...]:
    own = find_analysis(name).params
    return (own, StudyReading, AnalysisOptions) if _of_release(name) else (own, PlainReading, MapOptions)


def _needs(name: str) -> dict[str, tuple[str, ...]]:
    return {"release": RELEASE} if _of_release(name) else {"data": TABLES}


def _about(name: str) -> dict[str, Any]:
    analysis = find_analysis(name)
    takes = "release" if _of_release(name) else "trajectories"
    return {
        "summary": analysis.summary,
        "takes": takes,
        "compares": analysis.compares,
        "extra": analysis.extra or None,
    }


KIND = Kind(
    verb="analyze",
    collection="analyses",
    summary="Learn something from a release, or draw a map of trajectories that can be published.",
    names=lambda: list(all_analyses()),
    find=lambda name: find_analysis(name).name,
    models=_models,
    required_files=_needs,
    optional_files=lambda name: {"original": FLOWS} if find_analysis(name).compares else {},
    run=_run,
    about=_about,
    check=_check,
    example={"format": "csv"},
)
