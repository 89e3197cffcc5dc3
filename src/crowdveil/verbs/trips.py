"""Find trips in trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from crowdveil.io.atomic import new_files
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, write_table
from crowdveil.run.trips import TripOptions, find_trips
from crowdveil.verbs.base import TABLES, InputFile, Outcome, Output, Task, Verb, with_examples


def trips(
    data: Any,
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    **options: Any,
) -> pa.Table:
    """Find trips in trajectories, or in records of calls, for methods of flows. Nothing is anonymized.

    Parameters
    ----------
    data
        Trajectories: a file or a folder of Parquet files, a table, a data frame, or `Trajectories`.
    output
        Table to write, .csv or .parquet.
    overwrite
        Replace the file if it exists.
    notes
        Collects assumptions and counts of dropped rows.
    options
        `by` ("first-last", "transitions" with `zones`, "stays" with `stay_s` and `stay_radius_m`, or "home-work"), and input
        options of trajectories.

    Returns
    -------
    Arrow table
        Coordinates of both ends, time of departure, and person of each trip.

    Examples
    --------
    >>> crowdveil.trips("cabs.csv", "trips.parquet", by="stays", stay_s=900)  # doctest: +SKIP
    """
    if output is not None:
        check_ending(Path(output))
    with new_files(output, overwrite=overwrite) as (file,):
        table = find_trips(data, TripOptions.checked(options), notes if notes is not None else ReadNotes())
        if file is not None:
            write_table(table, file, as_input=True)
    return table


def _run(task: Task) -> Outcome:
    table = trips(
        task.files["data"], task.output, overwrite=task.overwrite, notes=task.notes, **task.of(TripOptions)
    )  # fmt: skip
    return Outcome(task.notes, [f"{len(table):,} trips; not anonymized"])


VERB = Verb(
    verb="trips",
    summary="Find trips in trajectories or records of calls.",
    run=_run,
    options=lambda name: (TripOptions,),
    files=lambda name: (InputFile("data", TABLES, "TRAJECTORIES"),),
    output=lambda name: Output("Table to write: .csv or .parquet.", required=True),
    help=lambda name: with_examples(
        "Find trips in trajectories or records of calls, for methods of flows. Nothing is anonymized.",
        "trips",
        "cabs.csv -o trips.parquet",
        "cabs.csv --by stays --stay-s 900 -o trips.parquet",
        "calls.csv --by transitions --zones voronoi:antennas.csv -o trips.parquet",
    ),
)
