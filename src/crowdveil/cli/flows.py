"""`crowdveil flows`: trips to OD flows, and flows from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.cli.console import show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, write_flows
from crowdveil.model.flows import Flows
from crowdveil.progress import progress_bar
from crowdveil.reading import FlowReading, read


def _call(data: str, output: str, overwrite: bool, **values: Any) -> None:
    check_ending(Path(output), ".omx")
    notes = ReadNotes()
    options = FlowReading.checked(given(FlowReading, values))
    with progress_bar("grouping"):
        flows: Flows = read(Flows, data, options, notes)
        write_flows(flows, Path(output), overwrite=overwrite)
    show_notes(notes)
    click.echo(
        f"{output}: {len(flows):,} flows, {flows.total:,} trips, {flows.steps:,} time steps, {len(flows.zones):,} zones"
        f"{', people counted' if flows.k_unit == 'people' else ''}; not anonymized"
    )


command = click.Command(
    "flows",
    callback=_call,
    params=[
        click.Argument(["data"], metavar="TRIPS_OR_FLOWS"),
        click.Option(["-o", "--output"], required=True, metavar="FILE", help="File to write: .csv, .parquet or .omx."),
        click.Option(["--overwrite"], is_flag=True, help="Replace the file if it exists."),
        *options_of(FlowReading),
    ],
    help="Turn trips to OD flows by time step, or flows from one format to another. Nothing is anonymized.\n\n"
    "\b\nExamples:\n"
    "  crowdveil flows trips.parquet --zones zones.geojson --step 1h --tz America/New_York -o flows.parquet\n"
    "  crowdveil flows taxi.parquet --zones grid:500m -o flows.csv\n"
    "  crowdveil flows trips.parquet --zones zones.geojson --step 1h --fold 2w -o two-weeks.parquet\n"
    "  crowdveil flows flows.csv -o flows.omx",
)
