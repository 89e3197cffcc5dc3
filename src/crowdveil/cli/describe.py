"""`crowdveil describe INPUT`: OD matrices before anonymization."""

from __future__ import annotations

from typing import Any

import click

from crowdveil.cli.compare import listed
from crowdveil.cli.console import show_notes, show_result
from crowdveil.cli.options import given, options_of
from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.comparison.description import K
from crowdveil.errors import Option, ParameterError
from crowdveil.io.atomic import new_files
from crowdveil.io.notes import ReadNotes
from crowdveil.progress import progress_bar
from crowdveil.reading import FlowReading
from crowdveil.verbs import describe as api
from crowdveil.verbs.opened import check_outputs


def _call(
    data: str,
    k: str,
    suggest: bool,
    as_json: bool,
    output: str | None,
    plot: str | None,
    overwrite: bool,
    **values: Any,
) -> None:
    check_outputs(output, plot)
    notes = ReadNotes()
    with new_files(output, plot, overwrite=overwrite) as (table, picture):
        with progress_bar() as (progress, stage):
            found = api.describe(
                data,
                _sizes(k),
                suggest=suggest,
                notes=notes,
                progress=progress,
                stage=stage,
                **given(FlowReading, values),
            )
        if table is not None:
            found.write(table)
        if picture is not None:
            found.plot(picture)
    show_notes(notes)
    show_result(found, as_json=as_json)
    if not as_json:
        click.echo(f"\n{CONFIDENTIAL}")


def _sizes(text: str) -> list[int]:
    try:
        return [int(value) for value in listed(text)]
    except ValueError:
        raise ParameterError(Option("k"), "wanted whole numbers with commas between, such as 6,10.") from None


command = click.Command(
    "describe",
    callback=_call,
    params=[
        click.Argument(["data"], metavar="TRIPS_OR_FLOWS"),
        click.Option(["--k"], default=",".join(map(str, K)), show_default=True, metavar="LIST",
                     help="Group sizes, with commas between."),
        click.Option(["--suggest/--no-suggest"], default=True,
                     help="Also try longer time steps, larger tiles, and several k and budgets on a sample. [default]"),
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."),
        click.Option(["-o", "--output"], metavar="FILE",
                     help="Also write it: .json, or the figures of each time step as .csv or .parquet."),
        click.Option(["--plot"], metavar="FILE", help="Also draw it, .png."),
        click.Option(["--overwrite"], is_flag=True, help="Replace files that exist."),
        *options_of(FlowReading),
    ],
    help="Describe OD matrices before anonymization: tiles, time steps, flows, trips, density, and the shares of flows and of "
    "trips that are in flows of at least k people. The numbers are exact and confidential: do not publish them.\n\n"
    "Density is the number of flows divided by the squared number of tiles.\n\n"
    "\b\nExamples:\n"
    "  crowdveil describe trips.parquet --zones zones.geojson --k 6,10\n"
    "  crowdveil describe rides.csv --zones grid:500m --plot described.png",
)  # fmt: skip
