"""`crowdveil attack NAME INPUT`: a command for each attack, drawn from the registry, and one for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.api import attack as api
from crowdveil.api.opened import check_outputs
from crowdveil.attacks.base import AllAttackParams, Attack
from crowdveil.attacks.od.releases import PublishedReleases
from crowdveil.attacks.trajectory.trajectory_recovery import AggregatedTrajectories
from crowdveil.cli.console import show_notes, show_result
from crowdveil.cli.options import NamedCommands, given, options_of
from crowdveil.cli.remote_jobs import RemoteTarget, check_target_of, form_of, put_file, remote_target, server_options
from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.errors import InputError, Option
from crowdveil.io.notes import ReadNotes
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.progress import progress_bar
from crowdveil.reading import FlowReading, TrajectoryReading
from crowdveil.registry import ATTACKS, find_attack
from crowdveil.report.attack_results import ALL

_ZONES = ("zones", "zone_id")


def _make(name: str) -> click.Command:
    """Make the command of an attack, or of all; its help is what the adversary knows, without the sections below it."""
    if name == ALL:
        text = "All attacks on what is given: trajectories, or a release of flows."
        return _command(ALL, AllAttackParams, text, True)
    attack = find_attack(name)
    if attack.takes is PublishedReleases:
        return _releases_command(attack)
    text = attack.doc.strip().split("\n\nNotes\n")[0].split("\n\nReferences\n")[0]
    return _command(attack.name, attack.params, text, attack.takes in (Trajectories, AggregatedTrajectories))


def _command(name: str, params: type[Params], text: str, trajectories: bool) -> click.Command:
    def call(data: str, output: str | None, as_json: bool, overwrite: bool, **values: Any) -> None:
        server, notes = remote_target(values), ReadNotes()
        options = given(params, values) | (given(TrajectoryReading, values) if trajectories else {})
        if server is not None:
            also = {field: values[field] for field in ("release", "pairing") if values.get(field) is not None}
            _run_remotely(server, name, {"data": data, **also}, options, output, as_json, overwrite)
            return
        with progress_bar() as (progress, stage):
            found = api.attack(
                name, data, values.get("release"), output, pairing=values.get("pairing"), overwrite=overwrite, notes=notes,
                progress=progress, stage=stage, **options,
            )  # fmt: skip
        show_notes(notes)
        show_result(found, as_json=as_json)
        if as_json:
            return
        if found.confidential:
            click.echo(CONFIDENTIAL)
        if output is not None:
            click.echo(f"{Path(output)}: written")

    metavar = "TRAJECTORIES_OR_RELEASE_FOLDER" if name == ALL else "TRAJECTORIES" if trajectories else "RELEASE_FOLDER"
    release = "flows-of-cabs/" if name == "trajectory-recovery" else "out/"
    example = f"crowdveil attack {name} {f'cabs.csv --release {release} --tile-m 500' if trajectories else 'out/'}"
    return click.Command(
        name,
        callback=call,
        params=[
            click.Argument(["data"], metavar=metavar),
            *options_of(params),
            *(_of_trajectories() if trajectories else []),
            click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, with intervals."),
            click.Option(["-o", "--output"], metavar="FILE", help="Write it: .json; .csv or .parquet with each individual."),
            click.Option(["--overwrite"], is_flag=True, help="Replace the file if it exists."),
            *server_options(),
            *([o for o in options_of(TrajectoryReading) if o.name not in _ZONES] if trajectories else []),
        ],
        help=f"{text}\n\n\b\nExample:\n  {example}",
        short_help=text.splitlines()[0],
    )  # fmt: skip


def _releases_command(attack: Attack) -> click.Command:
    """Make the command of the attack on several releases."""

    def call(
        folders: tuple[str, ...],
        original: str | None,
        output: str | None,
        as_json: bool,
        overwrite: bool,
        **values: Any,
    ) -> None:
        server, notes = remote_target(values), ReadNotes()
        options, reading = given(attack.params, values), given(FlowReading, values)
        if server is not None:
            if len(folders) != 2 or original is not None:
                raise InputError(
                    "input", f"a server takes two releases, without {Option('original')}; give these alone."
                )
            uploads = {"data": folders[0], "release": folders[1]}
            _run_remotely(server, attack.name, uploads, options, output, as_json, overwrite)
            return
        with progress_bar() as (progress, stage):
            found = api.attack(
                attack.name, folders[0], list(folders[1:]), output, original=original, overwrite=overwrite, notes=notes,
                progress=progress, stage=stage, **options, **reading,
            )  # fmt: skip
        show_notes(notes)
        show_result(found, as_json=as_json)
        if output is not None and not as_json:
            click.echo(f"{Path(output)}: written")

    text = attack.doc.strip().split("\n\nNotes\n")[0]
    return click.Command(
        attack.name,
        callback=call,
        params=[
            click.Argument(["folders"], metavar="RELEASE_FOLDER RELEASE_FOLDER...", nargs=-1, required=True),
            *options_of(attack.params),
            click.Option(["--original"], metavar="FILE", help="Trips or flows of the releases, to count what is recovered."),
            click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."),
            click.Option(["-o", "--output"], metavar="FILE", help="Write it: .json, .csv or .parquet."),
            click.Option(["--overwrite"], is_flag=True, help="Replace the file if it exists."),
            *server_options(),
            *options_of(FlowReading),
        ],
        help=f"{text}\n\n\b\nExample:\n  crowdveil attack {attack.name} hours/ days/",
        short_help=text.splitlines()[0],
    )  # fmt: skip


def _run_remotely(
    server: RemoteTarget, name: str, uploads: dict[str, str], options: dict[str, Any], output: str | None, as_json: bool,
    overwrite: bool,
) -> None:  # fmt: skip
    check_outputs(output, None)
    check_target_of(output, overwrite=overwrite)
    form, shown = form_of(output, "json", as_json=as_json), list[str]()

    def take(_job: dict[str, Any], result: Path) -> None:
        if output is not None:
            put_file(result, Path(output), overwrite=overwrite)
        if as_json:
            shown.append(result.read_text(encoding="utf-8").rstrip("\n"))

    job = server.run(
        "attacks", name, {**options, "format": form}, uploads, take, fetch=as_json or output is not None
    )  # fmt: skip
    if job is not None:
        written = [] if output is None else [f"{Path(output)}: written"]
        click.echo("\n".join(shown if as_json else [*job["summary"]["lines"], *written]))


def _of_trajectories() -> list[click.Option]:
    return [
        click.Option(["--release"], metavar="FOLDER", help="Look for the same people in this release too."),
        click.Option(["--pairing"], metavar="FILE", help="Table that says which published trajectory is whose."),
    ]


@click.command(cls=NamedCommands, names=lambda: [*ATTACKS, ALL], make=_make)
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
