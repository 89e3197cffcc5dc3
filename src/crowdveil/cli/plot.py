"""`crowdveil plot KIND FOLDER`: pictures for papers."""

from __future__ import annotations

from typing import Any

import click

from crowdveil import api
from crowdveil.cli.console import show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.errors import Option, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.reading import FlowReading


def _call(
    kind: str,
    folder: str,
    output: str,
    top: int,
    zone: tuple[str, ...],
    original: str | None,
    overwrite: bool,
    **values: Any,
) -> None:
    reading, notes = given(FlowReading, values), ReadNotes()
    if kind not in api.ZONE_PLOTS:
        if original is not None or reading:
            raise ParameterError(f"input options are for {' and '.join(api.ZONE_PLOTS)}; leave them out.")
        api.plot(kind, folder, output, top=top, zones=zone, overwrite=overwrite)
    else:
        if len(zone) != 1:
            raise ParameterError(Option("zone"), f"wanted one zone, but got {len(zone)}; name one.")
        if reading.get("zones") is None:
            raise ParameterError(Option("zones"), "the map needs the zones of the release; give their file.")
        direction: Any = kind
        api.plot_zone(
            direction, folder, zone[0], output, original=original, overwrite=overwrite, notes=notes, **reading
        )
    show_notes(notes)
    click.echo(f"{output}: written{'; it shows the original: do not publish it' if original is not None else ''}")


command = click.Command(
    "plot",
    callback=_call,
    params=[
        click.Argument(["kind"], type=click.Choice([*api.PLOTS, *api.ZONE_PLOTS])),
        click.Argument(["folder"]),
        click.Option(["-o", "--output"], required=True, metavar="FILE", help="The picture: .png or .svg."),
        click.Option(["--top"], type=click.IntRange(1, 20_000), default=300, metavar="N", help="Flows on the map. [default 300]"),
        click.Option(["--zone"], multiple=True, metavar="AREA",
                     help="An area whose profile is drawn, may be given again; or the zone of destinations or origins."),
        click.Option(["--original"], metavar="TRIPS_OR_FLOWS",
                     help="With destinations or origins: draw the original too. The picture is then confidential."),
        click.Option(["--overwrite"], is_flag=True, help="Replace the file."),
        *options_of(FlowReading),
    ],
    help="Draw a release on a map, profiles of its areas, where the trips of a zone go or come from, a heat map of "
    "trajectories, or the Pareto curves of a comparison.\n\n"
    "FOLDER is a release, and for pareto what compare or sweep wrote. Input options are for destinations and origins. Needs "
    "matplotlib (extra report).\n\n"
    "\b\nExamples:\n"
    "  crowdveil plot flows out/ -o flows.svg --top 500\n"
    "  crowdveil plot areas out/ -o areas.png\n"
    "  crowdveil plot profiles out/ --zone 74 -o profile.png\n"
    "  crowdveil plot destinations out/ --zone 74 --zones zones.geojson --original trips.parquet -o compared.png\n"
    "  crowdveil plot pareto compared/ -o pareto.svg",
)  # fmt: skip
