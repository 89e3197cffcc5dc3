"""`crowdveil compare INPUT`: methods and parameters side by side on the same data."""

from __future__ import annotations

from typing import Any, Literal

import click

from crowdveil.cli.console import show_notes, show_sentences
from crowdveil.cli.options import given, options_of
from crowdveil.comparison.candidates import CONFIDENTIAL, K, kind_of
from crowdveil.comparison.comparison import Comparison, check_folder
from crowdveil.comparison.samples import ComparisonParams
from crowdveil.errors import Option, ParameterError, as_command_line
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import progress_bar
from crowdveil.reading import FlowReading, TrajectoryReading
from crowdveil.verbs import compare as api


def _call(output: str | None, **values: Any) -> None:
    found = compare_with_options(output, **values)
    recommendation = found.recommendation()
    conclusions = [found.caption, *([recommendation] if recommendation else []), CONFIDENTIAL]
    click.echo("\n".join([*found.lines(), "", *conclusions]))
    if output is not None:
        click.echo(f"{output}: table and plots written")


def compare_with_options(
    output: str | None, *, data: tuple[str, ...], methods: str | None, trajectories: bool, k: str | None,
    suppress: str | None, vary: tuple[str, ...], table_format: Literal["csv", "parquet", "json"] = "csv",
    overwrite: bool = False, **values: Any,
) -> Comparison:  # fmt: skip
    """Compare with the values of the command's options, and show notes and what is left out."""
    names = None if methods is None else listed(methods)
    check_folder(output, overwrite=overwrite)
    takes = kind_of(names, Trajectories if trajectories else Flows)
    if trajectories and takes is Flows:
        raise ParameterError(Option("trajectories"), "The named methods are for flows. Omit this option.")
    reading = TrajectoryReading if takes is Trajectories else FlowReading
    known = {*ComparisonParams.model_fields, *reading.model_fields}
    for name, value in values.items():
        if value is not None and name not in known:
            kind = "flows" if takes is Trajectories else "trajectories"
            raise ParameterError(name, f"This is an option for {kind}, and the methods are not. Omit it.")
    notes = ReadNotes()
    with progress_bar() as (progress, stage):
        found = api.compare(
            list(data), names, output, k=None if k is None else _sizes(k),
            suppress=None if suppress is None else listed(suppress), vary=vary, trajectories=trajectories,
            format=table_format, overwrite=overwrite, notes=notes, progress=progress, stage=stage,
            **given(ComparisonParams, values), **given(reading, values),
        )  # fmt: skip
    show_notes(notes)
    show_sentences(found.omissions(as_command_line))
    return found


def listed(text: str) -> list[str]:
    """Return the texts between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in listed(text)]
    except ValueError:
        raise ParameterError(Option("k"), "Expected whole numbers with commas between, such as 5,10.") from None


RUNS: list[click.Parameter] = [
    click.Argument(["data"], metavar="INPUT...", nargs=-1, required=True),
    click.Option(["--methods"], metavar="NAMES",
                 help="Names with commas between, with parameters as in joint:splits=dyadic. [all for flows]"),
    click.Option(["--trajectories"], is_flag=True, help="Compare all methods for trajectories."),
    click.Option(["-k", "--k"], metavar="LIST",
                 help=f"Group sizes with commas between. [{K[Flows][0]} for flows, "
                 f"{', '.join(map(str, K[Trajectories]))} for trajectories]"),
    click.Option(["--suppress"], metavar="LIST",
                 help="Suppression budgets with commas between, such as 5%,10% or 500trips. [that of each method]"),
    click.Option(["--vary"], metavar="NAME=LIST", multiple=True,
                 help="Values of another parameter with commas between, as in v_target=40,80. Can be repeated."),
]  # fmt: skip
READING: list[click.Parameter] = list(
    {
        option.name: option
        for model in (ComparisonParams, TrajectoryReading, FlowReading)
        for option in options_of(model)
    }.values()
)

command = click.Command(
    "compare",
    callback=_call,
    params=[
        *RUNS,
        click.Option(["-o", "--output"], metavar="FOLDER", help="Write the table and two plots to this folder."),
        click.Option(["--format", "table_format"], type=click.Choice(["csv", "parquet", "json"]), default="csv",
                     show_default=True, help="Format of the table."),
        click.Option(["--overwrite"], is_flag=True, help="Replace an earlier comparison in the folder."),
        *READING,
    ],
    help="Run methods with each group size, budget and varied parameter on the same data, and publish nothing.\n\n"
    "The table has a row for each combination and measure. For flows these are means over matrices of generalization Ḡ, "
    "reconstruction error E, distribution distance D and the share of trips suppressed S; for trajectories the distortion of "
    "range queries, SID and AID, by the longest time of a query, and the share of trajectories removed. --measures names "
    "others. Several inputs, or several --zones for one input, have a row each and one over all of them. For a single method "
    "one k and budget are recommended. The numbers are exact and confidential: do not publish them.\n\n"
    "\b\nExamples:\n"
    "  crowdveil compare trips.parquet --zones zones.geojson --sample 10\n"
    "  crowdveil compare flows.csv --zones zones.geojson --methods joint,oigh,mondrian -k 5,10,20,50 -o by-k/\n"
    "  crowdveil compare trips.parquet --zones zones.geojson --methods joint -k 5,10,20 --suppress 5%,10%\n"
    "  crowdveil compare flows.csv --zones zones.geojson --methods atg-dual --vary v_target=50,100,200 -o targets/\n"
    "  crowdveil compare nyc.csv civ.csv --zones nyc.geojson,civ.geojson --methods atg-dual,oigh -o by-input/\n"
    "  crowdveil compare taxi.parquet --methods atg-exact --zones grid:500m,grid:1km,grid:2km -o by-tiles/\n"
    "  crowdveil compare cabs.csv --methods microaggregation,swapmob -k 3,10 --measures rmse,sid:queries=10000",
)  # fmt: skip
