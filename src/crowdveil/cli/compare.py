"""`crowdveil compare INPUT`: methods side by side on the same matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil import api
from crowdveil.cli.console import progress_bar, show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.errors import ParameterError, counted
from crowdveil.io.notes import ReadNotes
from crowdveil.reading import FlowReading
from crowdveil.report.compare import SUMMARY_FILE, SideBySide, check_folder, with_each_k

IN_THE_HOUSE = "Nothing was published; these numbers are exact and stay in the house."


def _call(data: str, methods: str | None, k: str, output: str | None, overwrite: bool, **values: Any) -> None:
    names = None if methods is None else listed(methods)
    ks = crowds(k)
    if len(ks) > 1:
        if names is None:
            raise ParameterError("k: several values were given, but no methods; name some with --methods.")
        names = with_each_k(names, [str(each) for each in ks])
    check_folder(output, SUMMARY_FILE, overwrite=overwrite)
    notes = ReadNotes()
    with progress_bar() as (progress, stage):
        found = api.compare(
            data, names, notes=notes, progress=progress, stage=stage, k=max(ks),
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


def crowds(text: str) -> list[int]:
    """The k between commas, each once."""
    checked = [SideBySide.checked({"k": each}).k for each in listed(text)]
    if not checked:
        raise ParameterError("k: wanted a number, or several with commas between, but got none.")
    return list(dict.fromkeys(checked))


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
        click.Option(["--k"], default=str(SideBySide().k), show_default=True, metavar="LIST",
                     help="Smallest crowd; or several with commas between, to see how E rises with them."),
        *[option for option in options_of(SideBySide) if option.name != "k"],
        click.Option(["-o", "--output"], metavar="FOLDER", help="Also write tables (CSV) and plots (PNG) to this folder."),
        click.Option(["--overwrite"], is_flag=True, help="Replace an earlier comparison in the folder."),
        *options_of(FlowReading),
    ],
    help="Run methods side by side on the same matrices, with the same k and budget, and publish nothing.\n\n"
    "The table has means over matrices: generalisation Ḡ, reconstruction error E, distribution distance D, share of trips "
    "suppressed S, and seconds. The numbers are exact: they stay in the house.\n\n"
    "\b\nExamples:\n"
    "  crowdveil compare trips.parquet --zones zones.geojson --sample 10\n"
    "  crowdveil compare flows.csv --methods joint,joint:splits=dyadic,atg-dual:v_target=sample -o compared/\n"
    "  crowdveil compare flows.csv --methods joint,oigh,mondrian --k 5,10,20,50 -o by-k/",
)  # fmt: skip
