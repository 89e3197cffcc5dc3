"""`crowdveil measure ORIGINAL RELEASE`: what a release lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from crowdveil import api
from crowdveil.cli.console import show_notes, show_sentences
from crowdveil.cli.elsewhere import Elsewhere, check_file, elsewhere, form_of, put_file, server_options, split_files
from crowdveil.cli.options import given, options_of
from crowdveil.errors import ParameterError
from crowdveil.io.atomic import new_file
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, write_table
from crowdveil.reading import FlowReading
from crowdveil.registry import MEASURES
from crowdveil.report.measures import OVERLAPPING

_TREES = ("hierarchy", "destination_hierarchy")


def _call(
    original: str, release: str, measures: str | None, as_json: bool, output: str | None, overwrite: bool, **values: Any
) -> None:
    if output is not None:
        check_ending(Path(output))
    names = None if measures is None else [name.strip() for name in measures.split(",")]
    there = elsewhere(values)
    if there is not None:
        _run_there(there, original, release, names, as_json, output, overwrite, given(FlowReading, values))
        return
    notes = ReadNotes()
    found = api.measure(original, release, names, notes=notes, **given(FlowReading, values))
    if output is not None:
        with new_file(Path(output), overwrite=overwrite) as file:
            write_table(found.table(as_text=file.suffix.lower() == ".csv"), file)
    show_notes(notes)
    if found.overlapping:
        show_sentences([OVERLAPPING])
    click.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False) if as_json else "\n".join(found.lines()))


def _run_there(
    there: Elsewhere, original: str, release: str, names: list[str] | None, as_json: bool, output: str | None,
    overwrite: bool, given: dict[str, Any],
) -> None:  # fmt: skip
    if as_json and output is not None:
        raise ParameterError("json: a server makes one form of a result; give --json or -o with --server, not both.")
    check_file(output, overwrite=overwrite)
    options, files = split_files(FlowReading, given)
    wanted = {} if names is None else {"measures": names}
    shown: list[str] = []

    def take(_job: dict[str, Any], result: Path) -> None:
        if output is not None:
            put_file(result, Path(output), overwrite=overwrite)
        else:
            shown.append(result.read_text(encoding="utf-8").rstrip("\n"))

    job = there.run(
        "measures", "all", {**options, **wanted, "format": form_of(output, "json")},
        {"original": original, "release": release, **files}, take, fetch=as_json or output is not None,
    )  # fmt: skip
    if job is not None:
        click.echo("\n".join(shown if as_json else job["summary"]["lines"]))


command = click.Command(
    "measure",
    callback=_call,
    params=[
        click.Argument(["original"], metavar="TRIPS_OR_FLOWS"),
        click.Argument(["release"], metavar="RELEASE_FOLDER"),
        click.Option(["--measures"], metavar="NAMES", help=f"Names with commas between: {', '.join(MEASURES)}. [all]"),
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, with the values of each time step."),
        click.Option(
            ["-o", "--output"], metavar="FILE", help="Also write the values of each time step, .csv or .parquet."
        ),
        click.Option(["--overwrite"], is_flag=True, help="Replace the file if it exists."),
        *server_options(),
        *[option for option in options_of(FlowReading) if option.name not in _TREES],
    ],
    help="Measure what a release lost of the original trips or flows. The numbers are exact: they stay in the house.\n\n"
    "Options of reading are those of the release unless given; files, such as zones, must be given again. "
    "↓ lower is better, ↑ higher is better, – undefined.\n\n"
    "\b\nExamples:\n"
    "  crowdveil measure trips.parquet out/ --zones zones.geojson\n"
    "  crowdveil measure trips.parquet out/ --zones zones.geojson --measures generalisation,E,D -o lost.csv",
)
