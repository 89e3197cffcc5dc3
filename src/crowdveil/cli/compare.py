"""`crowdveil compare INPUT`: methods side by side on the same matrices."""

from __future__ import annotations

from typing import Any

import click

from crowdveil.api import compare as api
from crowdveil.cli.console import show_notes, show_sentences
from crowdveil.cli.options import given, options_of
from crowdveil.comparison.candidates import CONFIDENTIAL, Stage, announcement, data_kind_of
from crowdveil.comparison.flows import FlowComparisonParams
from crowdveil.comparison.tables import SUMMARY_FILE, Comparison, check_folder, conclusions, omissions, write_comparison
from crowdveil.comparison.trajectories import K, TrajectoryComparisonParams
from crowdveil.errors import Option, ParameterError, as_command_line
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.progress import progress_bar
from crowdveil.reading import FlowReading, TrajectoryReading

WRITTEN = "{}: tables and plots written"


def _call(
    data: tuple[str, ...],
    methods: str | None,
    trajectories: bool,
    k: str | None,
    vary: tuple[str, ...],
    grids: str | None,
    output: str | None,
    overwrite: bool,
    **values: Any,
) -> None:
    names = None if methods is None else listed(methods)
    check_folder(output, SUMMARY_FILE, overwrite=overwrite)
    of_trajectories = data_kind_of(names, Trajectories if trajectories else Flows) is Trajectories
    if trajectories and not of_trajectories:
        raise ParameterError(Option("trajectories"), "the methods that were named are for flows; leave it out.")
    settings, reading = SETTINGS[of_trajectories]
    refuse_others(values, settings, reading)
    notes = ReadNotes()
    with progress_bar() as (progress, stage):
        options: dict[str, Any] = {
            "notes": notes, "progress": progress, "stage": announced(stage), "k": None if k is None else crowds(k), "vary": vary,
            "trajectories": trajectories, **given(settings, values), **given(reading, values),
        }  # fmt: skip
        found: Comparison
        if len(data) > 1 or grids is not None:
            found = api.compare_inputs(data, names, grids=grids, **options)
        else:
            found = api.compare(data[0], names, **options)
    show_notes(notes)
    show_comparison(found, output, overwrite=overwrite)


def show_comparison(found: Comparison, output: str | None, *, overwrite: bool) -> None:
    """Print a comparison, and write its files if they are wanted."""
    show_sentences(omissions(found, as_command_line))
    click.echo("\n".join([*found.lines(), "", *conclusions(found), CONFIDENTIAL]))
    if output is not None:
        write_comparison(found, output, overwrite=overwrite)
        click.echo(WRITTEN.format(output))


def announced(stage: Stage) -> Stage:
    """Print how much will be compared before it begins, also where no progress bar is shown."""

    def show(name: str) -> None:
        show_sentences(announcement(name))
        stage(name)

    return show


def vary_option() -> click.Option:
    """Return the option that varies parameters of methods."""
    return click.Option(["--vary"], metavar="NAME=LIST", multiple=True,
                        help="Values of another parameter with commas between, as in v_target=40,80; several times for "
                        "several.")  # fmt: skip


def refuse_others(values: dict[str, Any], settings: type[Params], reading: type[Params]) -> None:
    """Refuse options of the other kind of data, so that none is passed over."""
    known = {*settings.model_fields, *reading.model_fields}
    for name, value in values.items():
        if value is not None and name not in known:
            kind = "flows" if settings is TrajectoryComparisonParams else "trajectories"
            raise ParameterError(name, f"it is an option for {kind}, and the methods are not; leave it out.")


def crowds(text: str) -> list[int]:
    """Return the values of k between commas, each once."""
    checked = [FlowComparisonParams.checked({"k": each}).k for each in listed(text)]
    if not checked:
        raise ParameterError(Option("k"), "wanted a number, or several with commas between, but got none.")
    return list(dict.fromkeys(checked))


def listed(text: str) -> list[str]:
    """Return the texts between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


SETTINGS: dict[bool, tuple[type[Params], type[Params]]] = {
    False: (FlowComparisonParams, FlowReading),
    True: (TrajectoryComparisonParams, TrajectoryReading),
}
_OPTIONS = list(
    {
        option.name: option
        for model in (TrajectoryComparisonParams, FlowComparisonParams, TrajectoryReading, FlowReading)
        for option in options_of(model)
        if option.name != "k"
    }.values()
)
"""Those of flows stand for both kinds where they have the same name."""

command = click.Command(
    "compare",
    callback=_call,
    params=[
        click.Argument(["data"], metavar="INPUT...", nargs=-1, required=True),
        click.Option(
            ["--methods"], metavar="NAMES",
            help="Names with commas between, with parameters as in joint:splits=dyadic. [all for flows]",
        ),
        click.Option(["--trajectories"], is_flag=True, help="Compare methods for trajectories: all where none are named."),
        click.Option(["-k", "--k"], metavar="LIST",
                     help="Smallest crowd; or several with commas between, to see how the loss rises with them. "
                     f"[{FlowComparisonParams().k} for flows, {', '.join(map(str, K))} for trajectories]"),
        vary_option(),
        click.Option(["--grids"], metavar="LIST",
                     help="Compare on several grids, such as 500m,1km,2km: time and loss by the number of tiles."),
        click.Option(["-o", "--output"], metavar="FOLDER", help="Also write tables (CSV) and plots (PNG) to this folder."),
        click.Option(["--overwrite"], is_flag=True, help="Replace an earlier comparison in the folder."),
        *_OPTIONS,
    ],
    help="Run methods side by side on the same data, with the same k, and publish nothing.\n\n"
    "For flows the table has means over matrices: generalization Ḡ, reconstruction error E, distribution distance D, share of "
    "trips suppressed S, and seconds. For trajectories it has the distortion of range queries, SID and AID, by the longest time "
    "of a query, and the share of trajectories removed. --measures names others. With several inputs there is a table for "
    "each, and the plots show the ratios by input and the time by number of tiles; not with --server. The numbers are exact and "
    "confidential: do not publish them.\n\n"
    "\b\nExamples:\n"
    "  crowdveil compare trips.parquet --zones zones.geojson --sample 10\n"
    "  crowdveil compare flows.csv --zones zones.geojson --methods joint,joint:splits=dyadic,atg-dual:v_target=sample "
    "-o compared/\n"
    "  crowdveil compare flows.csv --zones zones.geojson --methods joint,oigh,mondrian --k 5,10,20,50 -o by-k/\n"
    "  crowdveil compare flows.csv --zones zones.geojson --methods atg-dual,oigh "
    "--measures MAO,MAD,generalization-cost:delta=1,multiplier\n"
    "  crowdveil compare nyc.csv civ.csv --zones nyc.geojson,civ.geojson --methods atg-dual,oigh,mondrian -o by-input/\n"
    "  crowdveil compare taxi.parquet --methods atg-exact --grids 500m,1km,2km -o by-tiles/\n"
    "  crowdveil compare movers.parquet --trajectories -o figure/\n"
    "  crowdveil compare cabs.csv --methods microaggregation,swapmob --k 3,10 --queries 10000\n"
    "  crowdveil compare cabs.csv --methods microaggregation,time-partitioned-microaggregation --vary interval_s=900,3600 "
    "--measures rmse,propensity-score,record-linkage -o evaluation/",
)  # fmt: skip
