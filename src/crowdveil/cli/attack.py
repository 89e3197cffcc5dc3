"""`crowdveil attack NAME INPUT`: a command for each attack, drawn from the registry, and one for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.attacks.base import AllAttackParams
from crowdveil.attacks.dominance import Groups
from crowdveil.attacks.od.releases import PublishedReleases
from crowdveil.attacks.trajectory.aggregated import AggregatedTrajectories
from crowdveil.cli.console import show_notes, show_result
from crowdveil.cli.options import NamedCommands, given, options_of
from crowdveil.cli.remote_jobs import RemoteTarget, remote_target, server_options
from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.errors import InputError, Option
from crowdveil.io.notes import ReadNotes
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.progress import progress_bar
from crowdveil.reading import FlowReading, TrajectoryReading
from crowdveil.registry import ATTACKS, EXPERIMENTS, find_attack
from crowdveil.report.attack_results import ALL
from crowdveil.verbs import attack as api
from crowdveil.verbs.opened import check_outputs

_ZONES = ("zones", "zone_id")


def _make(name: str) -> click.Command:
    """Make the command of an attack, or of all; its help is what the adversary knows, without the sections below it."""
    if name == ALL:
        return _command(
            ALL, AllAttackParams, "All attacks on what is given: trajectories, or a release of flows.", Trajectories
        )
    attack = find_attack(name)
    text = attack.doc.strip().split("\n\nNotes\n")[0].split("\n\nReferences\n")[0]
    return _command(attack.name, attack.params, text, attack.takes)


def _command(name: str, params: type[Params], text: str, takes: type) -> click.Command:
    several, trajectories = takes is PublishedReleases, takes in (Trajectories, AggregatedTrajectories, Groups)
    reading = FlowReading if several else TrajectoryReading if trajectories else None

    def call(data: Any, output: str | None, as_json: bool, overwrite: bool, **values: Any) -> None:
        server, notes = remote_target(values), ReadNotes()
        options = given(params, values)
        read = {} if reading is None else given(reading, values)
        first, *others = data if several else [data]
        also: dict[str, Any] = {"release": others} if several else {}
        also |= {field: values[field] for field in ("release", "pairing", "original") if values.get(field) is not None}
        if server is not None:
            if several and (len(others) != 1 or "original" in also):
                raise InputError(
                    "input", f"a server takes two releases, without {Option('original')}; give these alone."
                )
            uploads = {"data": first, **also, **({"release": others[0]} if several else {})}
            _run_remotely(server, name, uploads, options | ({} if several else read), output, as_json, overwrite)
            return
        with progress_bar() as (progress, stage):
            found = api.attack(
                name, first, output=output, overwrite=overwrite, notes=notes, progress=progress, stage=stage, **also,
                **options, **read,
            )  # fmt: skip
        show_notes(notes)
        show_result(found, as_json=as_json)
        if found.confidential and not as_json:
            click.echo(CONFIDENTIAL)
        if output is not None and not as_json:
            click.echo(f"{Path(output)}: written")

    return click.Command(
        name,
        callback=call,
        params=[
            _argument(name, several, trajectories),
            *options_of(params),
            *_other_data(several, trajectories),
            click.Option(["--json", "as_json"], is_flag=True, help=f"Print JSON{'' if several else ', with intervals'}."),
            click.Option(
                ["-o", "--output"], metavar="FILE",
                help=f"Write it: {'.json, .csv or .parquet' if several else '.json; .csv or .parquet with each individual'}.",
            ),
            click.Option(["--overwrite"], is_flag=True, help="Replace the file if it exists."),
            *server_options(),
            *([] if reading is None else options_of(reading, without=() if several else _ZONES)),
        ],
        help=f"{text}\n\n\b\nExample:\n  crowdveil attack {name} {_example(name, several, trajectories)}",
        short_help=text.splitlines()[0],
    )  # fmt: skip


def _argument(name: str, several: bool, trajectories: bool) -> click.Argument:
    if several:
        return click.Argument(["data"], metavar="RELEASE_FOLDER RELEASE_FOLDER...", nargs=-1, required=True)
    if name in (ALL, "dominance"):
        return click.Argument(["data"], metavar="TRAJECTORIES_OR_RELEASE_FOLDER")
    return click.Argument(["data"], metavar="TRAJECTORIES" if trajectories else "RELEASE_FOLDER")


def _example(name: str, several: bool, trajectories: bool) -> str:
    if name == "dominance":
        return "cabs.csv --release out/ --pairing pairing.parquet"
    release = "flows-of-cabs/" if name == "trajectory-recovery" else "out/"
    return "hours/ days/" if several else f"cabs.csv --release {release} --tile-m 500" if trajectories else "out/"


def _run_remotely(
    server: RemoteTarget, name: str, uploads: dict[str, str], options: dict[str, Any], output: str | None, as_json: bool,
    overwrite: bool,
) -> None:  # fmt: skip
    check_outputs(output, None)
    lines = server.run_for_table("attacks", name, options, uploads, output, overwrite=overwrite, as_json=as_json)
    if lines is not None:
        written = [] if output is None or as_json else [f"{Path(output)}: written"]
        click.echo("\n".join([*lines, *written]))


def _other_data(several: bool, trajectories: bool) -> list[click.Option]:
    """Return the options of data that an attack takes besides its own."""
    if several:
        return [
            click.Option(
                ["--original"], metavar="FILE", help="Trips or flows of the releases, to count what is recovered."
            )
        ]
    release = click.Option(["--release"], metavar="FOLDER", help="Look for the same people in this release too.")
    pairing = click.Option(["--pairing"], metavar="FILE", help="Table that says which published trajectory is whose.")
    return [release, pairing] if trajectories else []


@click.command(cls=NamedCommands, names=lambda: [*ATTACKS, *EXPERIMENTS, ALL], make=_make)
def command() -> None:
    """Estimate the re-identification risk: how likely an adversary with background knowledge finds a person.

    Trajectories are attacked in the original and in a release of it, flows in the release alone.

    \b
    Examples:
      crowdveil attack location cabs.csv --knowledge 3 --tile-m 500
      crowdveil attack all cabs.csv --release out/ --pairing pairing.parquet --tile-m 500
      crowdveil attack homogeneity out/
      crowdveil attack releases hours/ days/
    """
