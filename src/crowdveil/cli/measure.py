"""`crowdveil measure ORIGINAL RELEASE`: what a release lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.compare import listed
from crowdveil.cli.console import show_notes, show_result, show_sentences
from crowdveil.cli.options import given, options_of
from crowdveil.cli.remote_jobs import RemoteTarget, remote_target, server_options, split_files
from crowdveil.compat.mobidatalab.runfiles import measures_of
from crowdveil.errors import Option, ParameterError, as_command_line
from crowdveil.io.atomic import new_file, new_files
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, write_table
from crowdveil.measures.base import MeasureRequest
from crowdveil.progress import progress_bar
from crowdveil.reading import EitherReading, FlowReading
from crowdveil.registry import MEASURES
from crowdveil.runfiles.common import load
from crowdveil.verbs import measure as api
from crowdveil.verbs.opened import check_outputs


def _call(
    original: str | None, release: str | None, measures: str | None, run_file: str | None, pairing: str | None,
    paired_by_id: bool, as_json: bool, output: str | None, plot: str | None, overwrite: bool, query_table: str | None,
    **values: Any,
) -> None:  # fmt: skip
    if query_table is not None:
        if None in (original, release) or any(
            (measures, run_file, pairing, paired_by_id, as_json, plot, values.get("server"))
        ):
            raise ParameterError(
                Option("query_table"),
                "wanted an original, a release and input options alone with it; leave the others out.",
            )
        _ask(str(original), str(release), query_table, output, overwrite, given(EitherReading, values))
        return
    names: Any = None if measures is None else listed(measures)
    if run_file is not None:
        if original is not None or release is not None or measures is not None:
            raise ParameterError("wanted either an original, a release and measures, or a file with -f, but got both.")
        asked = measures_of(Path(run_file), load(Path(run_file)))
        original, release, names = asked.original, asked.release, asked.measures
        output = output or (None if asked.output is None else str(asked.output))
        pairing, paired_by_id = pairing or asked.pairing, paired_by_id or asked.paired_by_id
    if original is None or release is None:
        raise ParameterError("wanted an original and a release to measure, or a file with -f; give them.")
    check_outputs(output, plot)
    server, notes = remote_target(values), ReadNotes()
    options = given(EitherReading, values)
    if server is not None:
        uploads = {"original": original, "release": release, **({} if pairing is None else {"pairing": pairing})}
        _run_remotely(
            server, uploads, names, as_json, output, plot, overwrite, options | {"paired_by_id": paired_by_id}
        )
        return
    with new_files(output, plot, overwrite=overwrite) as (table, picture):
        with progress_bar() as (progress, stage):
            found = api.measure(
                original, release, names, pairing=pairing, paired_by_id=paired_by_id, notes=notes, progress=progress,
                stage=stage, **options,
            )  # fmt: skip
        if table is not None:
            found.write(table)
        if picture is not None:
            found.plot(picture)
    show_notes(notes)
    show_sentences(found.sentences(as_command_line))
    show_result(found, as_json=as_json)


def _ask(original: str, release: str, table: str, output: str | None, overwrite: bool, options: dict[str, Any]) -> None:
    """Answer the range queries of a table in the original and in the release."""
    from crowdveil.verbs.queries import measure_queries

    if output is not None:
        check_ending(Path(output))
    notes = ReadNotes()
    found = measure_queries(original, release, table, notes=notes, **options)
    if output is not None:
        with new_file(Path(output), overwrite=overwrite) as file:
            write_table(found.to_arrow(), file)
    show_notes(notes)
    click.echo("\n".join(found.lines()))


def _run_remotely(
    server: RemoteTarget, uploads: dict[str, str], names: Sequence[str | MeasureRequest] | None, as_json: bool,
    output: str | None,
    plot: str | None, overwrite: bool, options: dict[str, Any],
) -> None:  # fmt: skip
    values, files = split_files(FlowReading, options)
    wanted = {} if names is None else {"measures": [name if isinstance(name, str) else name.label for name in names]}
    lines = server.run_for_table(
        "measures", "all", {**values, **wanted, "plot": plot is not None}, {**uploads, **files}, output, overwrite=overwrite,
        plot=plot, made="measures", as_json=as_json,
    )  # fmt: skip
    if lines is not None:
        click.echo("\n".join(lines))


command = click.Command(
    "measure",
    callback=_call,
    params=[
        click.Argument(["original"], required=False, metavar="ORIGINAL"),
        click.Argument(["release"], required=False, metavar="RELEASE"),
        click.Option(
            ["-m", "--measures"], metavar="NAMES",
            help="Names with commas between, with parameters as in rmse:distance=dtw; all for every measure. "
            f"[five that show most] Of flows and of trajectories: {', '.join(MEASURES)}.",
        ),
        click.Option(["-f", "--file", "run_file"], metavar="FILE", help="A file of measures, as mdl-anonymizer has it."),
        click.Option(["--pairing"], metavar="FILE", help="What was kept with --pairing when trajectories were anonymized."),
        click.Option(
            ["--paired-by-id"], is_flag=True,
            help="Pair trajectories with their originals by equal ids; only for those that others published under them.",
        ),
        click.Option(
            ["--query-table"], metavar="FILE",
            help="Instead: SID and AID of your own range queries, a table with lon, lat, radius_m, start and end.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, of flows with the values of each time step."),
        click.Option(
            ["-o", "--output"], metavar="FILE",
            help="Also write it, .csv, .parquet or .json; of flows with the values of each time step.",
        ),
        click.Option(["--plot"], metavar="FILE", help="Also draw it, .png."),
        click.Option(["--overwrite"], is_flag=True, help="Replace files that exist."),
        *server_options(),
        *options_of(EitherReading, only=("zones",)),
    ],
    help="Measure what a release lost of the original flows or trajectories. The numbers are exact and confidential: do not "
    "publish them.\n\n"
    "RELEASE is the folder of a release. Trajectories that others published may be a CSV or Parquet file; "
    "with --paired-by-id if their ids are the original's. "
    "The original is read as it was for the release; only files, such as zones, are given again. "
    "↓ lower is better, ↑ higher is better, – undefined.\n\n"
    "\b\nExamples:\n"
    "  crowdveil measure trips.parquet out/ --zones zones.geojson\n"
    "  crowdveil measure trips.parquet out/ --zones zones.geojson -m generalization,E,D -o lost.csv\n"
    "  crowdveil measure cabs.csv out/ --pairing cabs-pairing.csv -m rmse,record-linkage:time_weight=0.005 --plot lost.png\n"
    "  crowdveil measure cabs.csv published-by-others.csv --paired-by-id -m rmse\n"
    "  crowdveil measure cabs.csv out/ --query-table queries.csv -o answers-confidential.csv\n"
    "  crowdveil measure -f measures.json",
)  # fmt: skip
