"""`crowdveil trips`: find trips in trajectories."""

from __future__ import annotations

from typing import Any

import click

from crowdveil.cli.console import show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.io.notes import ReadNotes
from crowdveil.run.trips import TripOptions
from crowdveil.verbs.trips import trips


def _call(data: str, output: str, overwrite: bool, **values: Any) -> None:
    notes = ReadNotes()
    found = trips(data, output, overwrite=overwrite, notes=notes, **given(TripOptions, values))
    show_notes(notes)
    click.echo(f"{output}: {len(found):,} trips; not anonymized")


command = click.Command(
    "trips",
    callback=_call,
    params=[
        click.Argument(["data"], metavar="TRAJECTORIES"),
        click.Option(["-o", "--output"], required=True, metavar="FILE", help="Table to write: .csv or .parquet."),
        click.Option(["--overwrite"], is_flag=True, help="Replace the file if it exists."),
        *options_of(TripOptions, only=("by", "stay_s", "stay_radius_m", "zones", "zone_id")),
        *options_of(TripOptions, without=("by", "stay_s", "stay_radius_m", "zones", "zone_id")),
    ],
    help="Find trips in trajectories or records of calls, for methods of flows. Nothing is anonymized.\n\n"
    "\b\nExamples:\n"
    "  crowdveil trips cabs.csv -o trips.parquet\n"
    "  crowdveil trips cabs.csv --by stays --stay-s 900 -o trips.parquet\n"
    "  crowdveil trips calls.csv --by transitions --zones voronoi:antennas.csv -o trips.parquet",
)
