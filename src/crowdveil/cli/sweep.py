"""`crowdveil sweep METHOD INPUT`: one method with several k, budgets and values of other parameters."""

from __future__ import annotations

from typing import Any

import click

from crowdveil.api import compare as api
from crowdveil.cli.compare import (
    SETTINGS,
    announced,
    listed,
    refuse_others,
    show_comparison,
    vary_option,
)
from crowdveil.cli.console import show_notes
from crowdveil.cli.options import given, options_of
from crowdveil.comparison.candidates import data_kind_of
from crowdveil.comparison.flows import FlowSample
from crowdveil.comparison.sweep import SUPPRESS, K, Sweep
from crowdveil.comparison.tables import SWEEP_FILE, check_folder
from crowdveil.comparison.trajectories import K as K_OF_TRAJECTORIES
from crowdveil.comparison.trajectories import TrajectoryComparisonParams, TrajectorySweep
from crowdveil.errors import Option, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import progress_bar
from crowdveil.reading import FlowReading, TrajectoryReading


def _call(
    method: str, data: str, k: str | None, suppress: str | None, suppress_trips: str | None, vary: tuple[str, ...],
    output: str | None, overwrite: bool, **values: Any,
) -> None:  # fmt: skip
    check_folder(output, SWEEP_FILE, overwrite=overwrite)
    notes, trajectories = ReadNotes(), data_kind_of([method]) is Trajectories
    settings, reading = SETTINGS[trajectories]
    refuse_others(values, settings, reading)
    if trajectories and suppress_trips is not None:
        raise ParameterError(
            Option("suppress_trips"), "it is a budget of trips, and the method is for trajectories; leave it out."
        )
    texts = {"k": k, "suppress": suppress, "suppress_trips": suppress_trips}
    tried: dict[str, Any] = {name: None if text is None else listed(text) for name, text in texts.items()}
    crowds = K_OF_TRAJECTORIES if trajectories and not k else K if k is None else tried["k"]
    found: Sweep | TrajectorySweep
    with progress_bar() as (progress, stage):
        options: dict[str, Any] = {
            "k": crowds, "suppress": tried["suppress"], "vary": vary, "notes": notes, "progress": progress,
            "stage": announced(stage), **given(settings, {**values, "k": None}), **given(reading, values),
        }  # fmt: skip
        if trajectories:
            found = api.sweep_trajectories(method, data, **options)
        else:
            found = api.sweep(method, data, suppress_trips=tried["suppress_trips"], **options)
    show_notes(notes)
    show_comparison(found, output, overwrite=overwrite)


_OPTIONS = {
    option.name: option
    for model in (TrajectoryComparisonParams, TrajectoryReading, FlowReading)
    for option in options_of(model)
}
_OPTIONS |= {option.name: option for option in options_of(FlowSample)}

command = click.Command(
    "sweep",
    callback=_call,
    params=[
        click.Argument(["method"], metavar="METHOD"),
        click.Argument(["data"], metavar="INPUT"),
        click.Option(["-k", "--k"], metavar="LIST",
                     help=f"Smallest crowds, with commas between. [{','.join(map(str, K))} for flows, "
                     f"{','.join(map(str, K_OF_TRAJECTORIES))} for trajectories]"),
        click.Option(["--suppress"], metavar="LIST",
                     help=f"Budgets as shares, with commas between. [{','.join(SUPPRESS)} if the method has one]"),
        click.Option(["--suppress-trips"], metavar="LIST", help="Budgets as numbers of trips, with commas between."),
        vary_option(),
        click.Option(["-o", "--output"], metavar="FOLDER", help="Also write the table (CSV) and a plot (PNG) to this folder."),
        click.Option(["--overwrite"], is_flag=True, help="Replace an earlier sweep in the folder."),
        *_OPTIONS.values(),
    ],
    help="Run a method with several k and budgets on the same matrices or trajectories, publish nothing, and say which to "
    "take.\n\n"
    "The rule: the least budget whose Ḡ at the smallest k is at most twice that of the largest budget, and with it the "
    "largest k whose Ḡ is at most twice that of the smallest k; for trajectories the first measure takes the place of Ḡ. With "
    "--vary it also says which value to choose for each k and budget: of target volumes the one at which origins and "
    "destinations have the nearest mean sizes, of other parameters the one with the least error.\n\n"
    "\b\nExamples:\n"
    "  crowdveil sweep joint trips.parquet --zones zones.geojson --k 5,10,20,50 --suppress 5%,10%\n"
    "  crowdveil sweep joint:splits=dyadic flows.csv --zones zones.geojson --sample 10 -o swept/\n"
    "  crowdveil sweep atg-dual flows.csv --zones zones.geojson --k 5,10,15 --suppress 10% "
    "--vary v_target=50,100,200,400 -o targets/\n"
    "  crowdveil sweep time-partitioned-microaggregation cabs.csv --k 3,10 --vary interval_s=900,3600 --measures rmse",
)  # fmt: skip
