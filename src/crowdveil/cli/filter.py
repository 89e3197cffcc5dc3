"""`crowdveil filter`: leave out trajectories, keep every column of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.cli.console import show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.cli.remote_jobs import RemoteTarget, remote_target, server_options
from crowdveil.compat.mobidatalab import runfiles
from crowdveil.errors import ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending
from crowdveil.reading import TrajectoryReading
from crowdveil.run.filters import (
    Filter,
    check_filters,
    filter_file,
    filter_names,
    filters_of,
    find_filter,
)
from crowdveil.runfiles.common import load


def _collect(ctx: click.Context, option: Any, values: tuple[str, ...]) -> None:
    """Gather the filters in the order that they stand on the command line, which is the order of these calls."""
    for value in values:
        ctx.ensure_object(list).append(Filter(option.name, tuple(v.strip() for v in value.split(","))))


def _filter_options() -> list[click.Option]:
    return [
        click.Option([f"--{kind.name.replace('_', '-')}"], metavar=kind.metavar, help=kind.summary, multiple=True,
                     callback=_collect, expose_value=False)
        for kind in map(find_filter, filter_names())
    ]  # fmt: skip


def _call(
    data: str | None, output: str | None, run_file: str | None, overwrite: bool,
    split_by: str | None, **values: Any,
) -> None:  # fmt: skip
    filters: list[Filter] = click.get_current_context().ensure_object(list)
    server = remote_target(values)
    if run_file is not None:
        asked = runfiles.filters_of(Path(run_file), load(Path(run_file)))
        data, output, filters = asked.data, output or asked.output, [*filters_of(asked.methods), *filters]
    if data is None or output is None:
        raise ParameterError("Expected a file to filter and -o FILE to write to, or a run file with -f. Give them.")
    if server is not None:
        split = {} if split_by is None else {"split_by": split_by}
        _run_remotely(server, data, output, filters, overwrite, given(TrajectoryReading, values) | split)
        return
    notes, reading = ReadNotes(), given(TrajectoryReading, values)
    found = filter_file(data, output, filters, split_by=split_by, overwrite=overwrite, notes=notes, **reading)
    show_notes(notes)
    for line in found.lines():
        click.echo(line)
    click.echo(f"{output}: {found.rest()}")


def _run_remotely(
    server: RemoteTarget, data: str, output: str, filters: list[Filter], overwrite: bool, options: dict[str, Any]
) -> None:
    check_filters(filters, split_by=options.get("split_by"))
    check_ending(Path(output))
    parameters = {**options, "filters": [{f.name: list(f.values)} for f in filters]}
    lines = server.run_for_table("filter", "trajectories", parameters, {"data": data}, output, overwrite=overwrite)
    if lines is not None:
        *removed, rest = lines
        click.echo("\n".join([*removed, f"{output}: {rest}"]))


command = click.Command(
    "filter",
    callback=_call,
    params=[
        click.Argument(["data"], required=False, metavar="TRAJECTORIES"),
        click.Option(["-o", "--output"], metavar="FILE", help="File to write, .csv or .parquet."),
        *_filter_options(),
        click.Option(
            ["--split-by"],
            metavar="COLUMN",
            help="First split the trajectories of vehicles into rides: runs of points "
            "in which this column is 1, true or yes. Other points are left out.",
        ),
        click.Option(["-f", "--file", "run_file"], metavar="FILE", help="A run file, as mdl-anonymizer has it."),
        click.Option(["--overwrite"], is_flag=True, help="Replace the file if it exists."),
        *server_options(),
        *[o for o in options_of(TrajectoryReading) if o.name not in ("zones", "zone_id")],
    ],
    help="Leave out whole trajectories, and keep every column of the rest.\n\n"
    "Filters are applied in the order given, and each says how many trajectories it removed.\n\n"
    "\b\nExamples:\n"
    "  crowdveil filter cabs.csv --min-locations 5 --max-speed 120 -o filtered.csv\n"
    "  crowdveil filter cabs.csv --bbox=-122.52,37.70,-122.35,37.83 -o city.parquet\n"
    "  crowdveil filter raw.csv --user cab --split-by occupied --min-locations 2 -o rides.parquet\n"
    "  crowdveil filter -f parameters.json",
)
