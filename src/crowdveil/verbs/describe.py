"""Describe OD matrices before anonymization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.comparison.description import Description, K, describe_flows
from crowdveil.engine.progress import Progress, Stage, no_progress
from crowdveil.errors import CrowdveilError
from crowdveil.io.atomic import new_files
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.params import NumberList, Params
from crowdveil.reading import FlowReading, read
from crowdveil.verbs.base import FLOWS, OF_METHODS, DrawnForm, InputFile, Outcome, Output, Task, Verb, with_examples
from crowdveil.verbs.compare import compare
from crowdveil.verbs.opened import check_outputs, visible

SAMPLE = 6
"""Number of matrices on which k and budgets are tried."""
BUDGETS = ("5%", "10%", "20%")


@visible
def describe(
    data: Any,
    k: int | Sequence[int] = K,
    output: str | Path | None = None,
    *,
    plot: str | Path | None = None,
    overwrite: bool = False,
    suggest: bool = True,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> Description:
    """Describe trips or flows: tiles, time steps, flows, trips, density, and the share in flows of at least k.

    With `suggest`, longer time steps and larger tiles are tried, too, and `joint` runs with several k and budgets on a sample
    of the matrices. `.lines()` is the text, and `.table` (Arrow) has the numbers of each time step. `output` writes the result as
    JSON, CSV or Parquet, and `plot` draws it as PNG. `options` are input options of flows. Numbers are exact and confidential.

    >>> crowdveil.describe("trips.parquet", [6, 10], zones="zones.geojson").pooled["flows_k6"]  # doctest: +SKIP
    """
    check_outputs(output, plot)
    with new_files(output, plot, overwrite=overwrite) as (table, picture):
        stage("reading")
        flows: Flows = read(Flows, data, FlowReading.checked(options), notes if notes is not None else ReadNotes())
        stage("describing")
        found = describe_flows(flows, [k] if isinstance(k, int) else k, suggest=suggest)
        if suggest and (flows.origin_tree is not None or flows.zones.located):
            stage("trying k and budgets")
            found = replace(found, suggestion=_recommendation(flows, found, progress))
        if table is not None:
            found.write(table)
        if picture is not None:
            found.plot(picture)
    return found


def _recommendation(flows: Flows, found: Description, progress: Progress) -> str:
    """Return the k and budget that a comparison on a sample recommends, "" if the method cannot run."""
    try:
        tried = compare(
            flows, ["joint"], k=[max(value, 2) for value in found.k], suppress=BUDGETS, sample=SAMPLE, notes=ReadNotes(),
            progress=progress, stage=lambda name: None,
        )  # fmt: skip
    except CrowdveilError:  # too few people, or a method that cannot run: describe the data without a recommendation
        return ""
    return tried.recommendation()


class DescribeOptions(Params):
    """Options of a description."""

    k: NumberList = Field(list(K), json_schema_extra={"metavar": "LIST"})
    """Group sizes separated by commas."""
    suggest: bool = True
    """Also try longer time steps, larger tiles, and several k and budgets on a sample."""


def _run(task: Task) -> Outcome:
    asked = DescribeOptions.checked(task.of(DescribeOptions))
    found = describe(
        task.files["data"], asked.k or K, task.output, plot=task.plot, overwrite=task.overwrite, suggest=asked.suggest,
        **task.reporting, **task.of(FlowReading),
    )  # fmt: skip
    return Outcome(task.notes, [*found.lines(), "", CONFIDENTIAL], found.as_json)


HELP = """Describe OD matrices before anonymization: tiles, time steps, flows, trips, density, and the share of flows of at least
k people, and of trips in them. The numbers are exact and confidential: do not publish them.

Density is the number of flows divided by the squared number of tiles."""
VERB = Verb(
    verb="describe",
    summary="Describe OD matrices: size, density, and the share that is already k-anonymous.",
    run=_run,
    options=lambda name: (DescribeOptions, FlowReading),
    files=lambda name: (InputFile("data", FLOWS, "TRIPS_OR_FLOWS"),),
    output=lambda name: Output(
        "Also write the description as .json, or the numbers of each time step as .csv or .parquet.",
        form=DrawnForm,
        plot=True,
        json=True,
    ),
    hidden=lambda name: OF_METHODS - {"hierarchy"},  # larger tiles are areas of the tree
    help=lambda name: with_examples(
        HELP,
        "describe",
        "trips.parquet --zones zones.geojson --k 6,10",
        "rides.csv --zones grid:500m --plot described.png",
    ),
)
