"""Measure what a release lost of the original flows or trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from crowdveil.api import measure as api
from crowdveil.comparison.requested_measures import named_measures, parsed
from crowdveil.errors import Option, ParameterError, as_command_line
from crowdveil.io.pairing import PUBLISHED
from crowdveil.io.source import open_source
from crowdveil.measures.base import MeasureRequest
from crowdveil.model.flows import Flows
from crowdveil.params import Params
from crowdveil.reading import EitherReading
from crowdveil.registry import all_measures, find_measure
from crowdveil.server.kinds.base import JobOutput, Kind, ResultOptions, Task, values_of
from crowdveil.server.queue.files import FLOWS, RELEASE, TABLES

IF_POSSIBLE = "if-possible"
ALL = "all"
"""In place of one measure's name: those in `measures`."""


class MeasureOptions(ResultOptions):
    """Parameters of a measurement."""

    measures: list[str] | None = None
    """Names or symbols, with parameters as in rmse:distance=dtw, or all; five that show most where none are given."""
    format: Literal["json", "csv", "parquet"] = "json"
    """Form of the result: everything as JSON, or the values (of flows those of each time step) as a table."""
    paired_by_id: bool | Literal["if-possible"] = False
    """Pair published and original trajectories by equal ids; only for trajectories that others published under them. With
    if-possible, a release of Crowdveil, whose ids are new, is not paired."""
    plot: bool = False
    """Draw it too; the result is a zip file then."""


def _models(name: str) -> tuple[type[Params], ...]:
    own = None if name == ALL else find_measure(name).params
    return (MeasureOptions, EitherReading) if own is None else (own, MeasureOptions, EitherReading)


def _wanted(name: str, values: dict[str, Any]) -> Sequence[str | MeasureRequest] | None:
    """The measures that are asked for, None where none are named."""
    if name != ALL:
        measure = find_measure(name)
        return [MeasureRequest.of(measure, {} if measure.params is None else values_of(values, measure.params))]
    names: list[str] | None = values.get("measures")
    return names if names in (None, [ALL]) else [asked for text in names for asked in parsed(text)]


def _check(name: str, values: dict[str, Any]) -> None:
    if name != ALL and values.get("measures") is not None:
        raise ParameterError(
            Option("measures"), "one measure is named in the address already; leave it out, or ask for all."
        )
    if _wanted(name, values) == []:
        named_measures([])  # says what is wrong with that


def _run(task: Task) -> JobOutput:
    options = MeasureOptions.checked(values_of(task.values, MeasureOptions))
    by_id = not _has_new_ids(task.files["release"]) if options.paired_by_id == IF_POSSIBLE else options.paired_by_id
    found = api.measure(
        task.files["original"], task.files["release"], _wanted(task.name, task.values), pairing=task.files.get("pairing"),
        paired_by_id=bool(by_id),
        **task.reporting, **values_of(task.reading, EitherReading),
    )  # fmt: skip
    found.write(task.out / f"measures.{options.format}")
    if options.plot:
        task.stage("drawing")
        found.plot(task.out / "measures.png")
    return JobOutput([*task.notes.sentences(), *found.sentences(as_command_line)], found.lines())


def _has_new_ids(release: str) -> bool:
    """Return whether a release has ids of Crowdveil: it is a whole release, or its table has their column."""
    return Path(release).is_dir() or PUBLISHED in open_source(Path(release)).columns


def _about(name: str) -> dict[str, Any]:
    if name == ALL:
        return {"summary": "All measures of what is given, or those that are named in `measures`."}
    measure = find_measure(name)
    return {
        "summary": measure.title,
        "takes": "flows" if measure.takes is Flows else "trajectories",
        "symbol": measure.symbol or None,
        "better": measure.better,
        "unit": measure.unit or None,
    }


KIND = Kind(
    verb="measure",
    collection="measures",
    summary="Measure what a release lost of the original. The figures are exact and confidential: do not publish them.",
    names=lambda: [ALL, *all_measures()],
    find=lambda name: name if name == ALL else find_measure(name).name,
    models=_models,
    required_files=lambda name: {"original": FLOWS, "release": RELEASE},
    optional_files=lambda name: {"pairing": TABLES},
    run=_run,
    about=_about,
    check=_check,
    example={"measures": ["E", "D"]},
)
