"""Leave out whole trajectories."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from crowdveil.errors import ParameterError
from crowdveil.run.filters import check_filters, filter_file, filter_names, filters_of
from crowdveil.verbs.base import TABLES, Outcome, PlainReading, ResultOptions, Task, Verb, values_of

TRAJECTORIES = "trajectories"


class FilterOptions(ResultOptions):
    """Parameters of a filter."""

    filters: list[dict[str, str | float | list[str | float]]] = Field(
        examples=[[{"min_locations": 5}, {"max_speed": 120}]], max_length=100
    )
    """Filters in the order that they are applied, each an object of its name and its value."""
    split_by: str | None = None
    """First split the trajectories of vehicles into rides: runs of points in which this column is 1, true or yes."""
    format: Literal["csv", "parquet"] = "csv"
    """Form of the result."""


def _find(name: str) -> str:
    if name != TRAJECTORIES:
        raise ParameterError(f"there is no way to filter {name}; known are {TRAJECTORIES}.")
    return name


def _check(name: str, values: dict[str, Any]) -> None:
    check_filters(filters_of(values["filters"]), split_by=values.get("split_by"))


def _run(task: Task) -> Outcome:
    form = task.values.get("format", "csv")
    found = filter_file(
        task.files["data"], task.out / f"filtered.{form}", filters_of(task.values["filters"]),
        split_by=task.values.get("split_by"), notes=task.notes, **values_of(task.values, PlainReading),
    )  # fmt: skip
    return Outcome(task.notes.sentences(), [*found.lines(), found.rest()])


VERB = Verb(
    verb="filter",
    collection="filter",
    summary="Leave out whole trajectories, and keep every column of the rest.",
    names=lambda: [TRAJECTORIES],
    find=_find,
    models=lambda name: (FilterOptions, PlainReading),
    required_files=lambda name: {"data": TABLES},
    run=_run,
    about=lambda name: {"summary": "Filters: " + ", ".join(filter_names()) + "."},
    check=_check,
    example={"filters": [{"min_locations": 5}, {"max_speed": 120}]},
)
