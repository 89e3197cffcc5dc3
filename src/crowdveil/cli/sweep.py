"""`crowdveil sweep METHOD INPUT`: one method with several k and budgets."""

from __future__ import annotations

from typing import Any

import click

from crowdveil import api
from crowdveil.cli.compare import announced, listed, show_comparison
from crowdveil.cli.console import show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.comparison.flows import FlowComparisonParams
from crowdveil.comparison.sweep import SUPPRESS, K
from crowdveil.comparison.tables import SWEEP_FILE, check_folder
from crowdveil.errors import counted
from crowdveil.io.notes import ReadNotes
from crowdveil.progress import progress_bar
from crowdveil.reading import FlowReading

_SHARED = ("sample", "seed")


def _call(
    method: str, data: str, k: str, suppress: str | None, suppress_trips: str | None, output: str | None, overwrite: bool,
    **values: Any,
) -> None:  # fmt: skip
    check_folder(output, SWEEP_FILE, overwrite=overwrite)
    notes = ReadNotes()
    with progress_bar() as (progress, stage):
        found = api.sweep(
            method, data, k=listed(k), suppress=None if suppress is None else listed(suppress),
            suppress_trips=None if suppress_trips is None else listed(suppress_trips), notes=notes,
            progress=progress, stage=announced(stage), **given(FlowComparisonParams, {name: values[name] for name in _SHARED}),
            **given(FlowReading, values),
        )  # fmt: skip
    show_notes(notes)
    caption = f"Means of {counted(found.flows.steps, 'matrix', 'matrices')}.\n{found.recommendation()}"
    show_comparison(found, caption, output, "table and plot", overwrite=overwrite)


command = click.Command(
    "sweep",
    callback=_call,
    params=[
        click.Argument(["method"], metavar="METHOD"),
        click.Argument(["data"], metavar="TRIPS_OR_FLOWS"),
        click.Option(["-k", "--k"], default=",".join(map(str, K)), show_default=True, metavar="LIST",
                     help="Smallest crowds, with commas between."),
        click.Option(["--suppress"], metavar="LIST",
                     help=f"Budgets as shares, with commas between. [{','.join(SUPPRESS)} if the method has one]"),
        click.Option(["--suppress-trips"], metavar="LIST", help="Budgets as numbers of trips, with commas between."),
        *[option for option in options_of(FlowComparisonParams) if option.name in _SHARED],
        click.Option(["-o", "--output"], metavar="FOLDER", help="Also write the table (CSV) and a plot (PNG) to this folder."),
        click.Option(["--overwrite"], is_flag=True, help="Replace an earlier sweep in the folder."),
        *options_of(FlowReading),
    ],
    help="Run a method with several k and budgets on the same matrices, publish nothing, and say which to take.\n\n"
    "The rule: the least budget whose Ḡ at the smallest k is at most twice that of the largest budget, and with it the "
    "largest k whose Ḡ is at most twice that of the smallest k.\n\n"
    "\b\nExamples:\n"
    "  crowdveil sweep joint trips.parquet --zones zones.geojson --k 5,10,20,50 --suppress 5%,10%\n"
    "  crowdveil sweep joint:splits=dyadic flows.csv --sample 10 -o swept/",
)  # fmt: skip
