"""`crowdveil verify FOLDER`: every promise of a release, checked from its files, and with the original if given."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from crowdveil import pipeline
from crowdveil.cli.options import engine_options, given, options_of
from crowdveil.guarantees import Finding
from crowdveil.manifest import read_manifest
from crowdveil.reading import FlowReading, TrajectoryReading

NOT_CHECKED = "not checked: needs the original data; give it with --original"


class EitherReading(FlowReading, TrajectoryReading):
    """Options of reading flows or trajectories; those of the other kind are refused when the original is read."""


@click.command(params=[*engine_options(), *options_of(EitherReading)])
@click.argument("folder")
@click.option("--original", metavar="FILE", help="The trips, flows or trajectories that the release was made from.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(folder: str, original: str | None, as_json: bool, engine: str, master: str | None, **values: Any) -> None:
    """Check a release from its files alone, or with the original data too.

    The original is read as it was for the release; the other options are for that, and only files, such as zones, must
    be given again. Exit code 0 if no promise is broken, 1 if one is or a file was changed, 2 if it cannot be checked.

    \b
    Examples:
      crowdveil verify out/
      crowdveil verify out/ --original trips.parquet --zones zones.geojson
      crowdveil verify hdfs:///releases/january --engine spark --master yarn
    """
    reading = given(EitherReading, values)
    if reading and original is None:
        raise click.UsageError("options of reading are for the original data; give it with --original.")
    if engine == "spark":
        checked, manifest = pipeline.verify_there(folder, original, reading, master=master)
    else:
        checked = pipeline.verify(Path(folder), original, reading)
        manifest = read_manifest(Path(folder))
    if as_json:
        findings = [
            {"name": p.name, "kind": p.kind, "statement": p.statement(), **_as_json(finding)} for p, finding in checked
        ]
        click.echo(json.dumps({"folder": folder, "k_counts": manifest["k_counts"], "findings": findings}, indent=2))
    else:
        for promise, finding in checked:
            click.echo(f"{_verdict(finding)}  {promise.name}: {promise.statement()}")
            click.echo(f"        {finding.detail}")
            if not finding.looked:
                click.echo(f"        {NOT_CHECKED if original is None else 'not checked'}.")
        if not any(p.kind == "privacy" for p, _ in checked):
            click.echo("        no promise of anonymity is made: the method is a heuristic.")
        click.echo(f"k counts {manifest['k_counts']}; files are as they were written.")
    if not all(finding.holds for _, finding in checked):
        sys.exit(1)


def _verdict(finding: Finding) -> str:
    return "BROKEN" if not finding.holds else "holds " if finding.looked else "?     "


def _as_json(finding: Finding) -> dict[str, Any]:
    """A finding in plain values; what was not checked neither holds nor does it not."""
    holds = finding.holds if finding.looked or not finding.holds else None
    return {"holds": holds, "checked": finding.detail, "with_original": finding.with_original}
