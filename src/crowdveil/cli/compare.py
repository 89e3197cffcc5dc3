"""`crowdveil compare INPUT`: methods side by side on the same matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil import api
from crowdveil.cli.console import progress_bar, show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.errors import counted
from crowdveil.io.notes import ReadNotes
from crowdveil.reading import FlowReading
from crowdveil.report.compare import SUMMARY_FILE, SideBySide, check_folder

IN_THE_HOUSE = "Nothing was published; these numbers are exact and stay in the house."


def _call(data: str, methods: str | None, output: str | None, overwrite: bool, **values: Any) -> None:
    names = None if methods is None else listed(methods)
    check_folder(output, SUMMARY_FILE, overwrite=overwrite)
    notes = ReadNotes()
    with progress_bar() as (progress, stage):
        found = api.compare(
            data, names, notes=notes, progress=progress, stage=stage,
            **given(SideBySide, values), **given(FlowReading, values),
        )  # fmt: skip
    show_notes(notes)
    for label, reason in found.left_out.items():
        click.echo(f"note: {label} is left out: {reason}", err=True)
    click.echo("\n".join(found.lines()))
    matrices = counted(found.flows.steps, "matrix", "matrices")
    click.echo(f"\nMeans of {matrices}; seconds of processor time a matrix.")
    click.echo(IN_THE_HOUSE)
    if output is not None:
        found.write(Path(output), overwrite=overwrite)
        click.echo(f"{output}: tables and plots written")


def listed(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


command = click.Command(
    "compare",
    callback=_call,
    params=[
        click.Argument(["data"], metavar="TRIPS_OR_FLOWS"),
        click.Option(
            ["--methods"], metavar="NAMES",
            help="Names with commas between, with parameters as in joint:splits=dyadic. [all for flows]",
        ),
        *options_of(SideBySide),
        click.Option(["-o", "--output"], metavar="FOLDER", help="Also write tables (CSV) and plots (PNG) to this folder."),
        click.Option(["--overwrite"], is_flag=True, help="Replace an earlier comparison in the folder."),
        *options_of(FlowReading),
    ],
    help="Run methods side by side on the same matrices, with the same k and budget, and publish nothing.\n\n"
    "The table has means over matrices: generalisation Ḡ, reconstruction error E, distribution distance D, share of trips "
    "suppressed S, and seconds. The numbers are exact: they stay in the house.\n\n"
    "\b\nExamples:\n"
    "  crowdveil compare trips.parquet --zones zones.geojson --sample 10\n"
    "  crowdveil compare flows.csv --methods joint,joint:splits=dyadic,atg-dual:v_target=sample -o compared/",
)  # fmt: skip
