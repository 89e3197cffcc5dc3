"""Leave out whole trajectories."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from crowdveil.errors import ParameterError
from crowdveil.params import Params
from crowdveil.run.filters import check_filters, filter_file, filter_names, filters_of
from crowdveil.verbs.base import TABLES, InputFile, Outcome, Output, PlainReading, ResultName, Task, Verb, with_examples

TRAJECTORIES = "trajectories"


class FilterOptions(Params):
    """Parameters of filtering."""

    filters: list[dict[str, str | float | list[str | float]]] = Field(
        [], examples=[[{"min_locations": 5}, {"max_speed": 120}]], max_length=100
    )
    """Filters in the order of their application, each an object with a name and a value."""
    split_by: str | None = Field(None, json_schema_extra={"metavar": "COLUMN"})
    """First split the trajectories of vehicles into rides: consecutive points with 1, true or yes in this column. Other points
    are left out."""


class FilterForm(ResultName):
    """Parameters of a job that writes trajectories."""

    format: Literal["csv", "parquet"] = "csv"
    """Format of the result."""


def _find(name: str) -> str:
    if name != TRAJECTORIES:
        raise ParameterError(f"Expected {TRAJECTORIES} to filter, got {name}. Change it.")
    return name


def _check(name: str, values: dict[str, Any]) -> None:
    check_filters(filters_of(values.get("filters", [])), split_by=values.get("split_by"))


def _run(task: Task) -> Outcome:
    found = filter_file(
        task.files["data"], str(task.output), filters_of(task.values.get("filters", [])),
        split_by=task.values.get("split_by"), overwrite=task.overwrite, notes=task.notes, **task.of(PlainReading),
    )  # fmt: skip
    return Outcome(task.notes, [*found.lines(), found.rest()])


VERB = Verb(
    verb="filter",
    collection="filter",
    summary="Leave out whole trajectories, and keep every column of the rest.",
    names=lambda: [TRAJECTORIES],
    find=_find,
    run=_run,
    options=lambda name: (FilterOptions, PlainReading),
    files=lambda name: (InputFile("data", TABLES, "TRAJECTORIES"),),
    output=lambda name: Output("File to write: .csv or .parquet.", form=FilterForm, required=True, stem="filtered"),
    hidden=lambda name: frozenset(("filters", "zones", "zone_id")),
    check=_check,
    about=lambda name: {"summary": "Filters: " + ", ".join(filter_names()) + "."},
    help=lambda name: with_examples(
        "Leave out whole trajectories, and keep every column of the rest.\n\n"
        "Filters are applied in their order on the command line, and each reports the number of removed trajectories.",
        "filter",
        "cabs.csv --min-locations 5 --max-speed 120 -o filtered.csv",
        "cabs.csv --bbox=-122.52,37.70,-122.35,37.83 -o city.parquet",
        "raw.csv --user cab --split-by occupied --min-locations 2 -o rides.parquet",
        "-f parameters.json",
    ),
    example={"filters": [{"min_locations": 5}, {"max_speed": 120}]},
)
