"""`crowdveil plot KIND`: pictures of releases and originals, a command for each kind."""

from __future__ import annotations

from typing import Any

import click

from crowdveil.cli.console import show_notes
from crowdveil.cli.options import NamedCommands, options_of
from crowdveil.io.notes import ReadNotes
from crowdveil.reading import FlowReading, TrajectoryReading
from crowdveil.report.plots.kinds import KINDS, PlotKind, find_kind
from crowdveil.verbs import plot as api


def command_of(name: str) -> click.Command:
    """Return the command of a kind of picture."""
    kind = find_kind(name)

    def call(output: str, overwrite: bool, **values: Any) -> None:
        notes = ReadNotes()
        folders, original = list(values.pop("release", ()) or ()), values.pop("original", None)
        options = {name: value for name, value in values.items() if value is not None and value != ()}
        picture = api.plot(name, folders, output, original=original, overwrite=overwrite, notes=notes, **options)
        show_notes(notes)
        click.echo(f"{output}: written{'; it shows the original: do not publish it' if picture.confidential else ''}")

    return click.Command(name, callback=call, params=_params(kind), help=_help(kind), short_help=kind.summary)


def _params(kind: PlotKind) -> list[click.Parameter]:
    params: list[click.Parameter] = []
    if kind.releases != "no":
        metavar = "RELEASE" if kind.most == 1 else "RELEASE..."
        metavar = f"[{metavar}]" if kind.releases == "optional" else metavar
        params.append(click.Argument(["release"], nargs=-1, metavar=metavar, required=kind.releases == "required"))
    params.append(click.Option(["-o", "--output"], required=True, metavar="FILE", help="The picture: .png or .svg."))
    if kind.original != "no":
        params.append(
            click.Option(["--original"], metavar="FILE",
                         help="The data before anonymization. The picture is then confidential, and FILE must say so.")
        )  # fmt: skip
    params.append(click.Option(["--overwrite"], is_flag=True, help="Replace the file."))
    own = options_of(kind.params)
    several = [name for name, field in kind.params.model_fields.items() if field.default == ()]
    for option in own:
        if option.name in several:
            option.multiple = True
    return [*params, *own, *_reading(kind)]


def _reading(kind: PlotKind) -> list[click.Option]:
    """Return the input options: files; those of the manifest only for an original that may be drawn without a release."""
    if kind.releases != "required" and kind.original != "no" and kind.data == "trajectories":
        return options_of(TrajectoryReading)
    named = () if kind.zones == "no" and kind.original == "no" else ("zones", "zone_id")
    return options_of(FlowReading, only=(*named, *(("hierarchy",) if kind.name in ("tree", "matrix") else ())))


def _help(kind: PlotKind) -> str:
    examples = "\n".join(f"  crowdveil {example}" for example in kind.examples)
    return f"{kind.text.strip()}\n\n\b\nExamples:\n{examples}"


command = NamedCommands(
    "plot",
    names=lambda: KINDS,
    make=command_of,
    help="Draw a picture of a release, of the original, or of both on the same scale, as PNG or SVG.\n\n"
    "A picture of a release has published numbers only. A picture that shows the original is marked as confidential, and its "
    "file must have a name with the word confidential.\n\n"
    "\b\nExamples:\n"
    "  crowdveil plot flows out/ -o flows.png\n"
    "  crowdveil plot destinations out/ --zone r3c3 --zones zones.geojson --original trips.parquet -o to-confidential.png\n"
    "  crowdveil plot paths cabs/ -o paths.png\n"
    "  crowdveil plot tree --zones zones.geojson -o tree.svg",
)
